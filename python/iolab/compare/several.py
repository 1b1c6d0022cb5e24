"""Several results directories as the arms of one comparison: measured, changed, measured again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..errors import UsageError
from ..recording.base.layout import is_recording
from ..results.evidence.manifest import FILE
from ..results.evidence.model import Run
from ..results.open.results import Progress, Results, default_metric
from .model import Difference, Unmatched, Warning
from .remarks import study_notes

STUDY_VARIANT = "study_variant"
"""Factor that holds the variant within its study, where arms are whole results."""

_UNKNOWN = "?"
_LOGS = ("write_bw_log", "write_iops_log", "write_lat_log", "log_avg_msec", "name", "description")
"""Options of fio that change no load."""

Match = Literal["variant"]


@dataclass(frozen=True)
class Several:
    """Results of several directories, whose runs have the arm as their variant.

    Attributes:
        runs: of all directories, each under `<directory>/<run>`. arms: names, in order of the
        directories. notes: what is missing or damaged in any of the directories.
    """

    runs: list[Run]
    arms: tuple[str, ...]
    notes: tuple[Warning, ...]
    baseline: None = None

    def default_metric(self) -> str:
        """As `Results.default_metric`, over all runs."""
        return default_metric(self.runs, " ".join(self.arms))


def parse_names(texts: Iterable[str]) -> list[tuple[str, str]]:
    """`old=A,new=B` as pairs of an arm and a directory; UsageError for anything else."""
    found = []
    for text in texts:
        for part in text.split(","):
            arm, equals, directory = (word.strip() for word in part.partition("="))
            if not equals or not arm or not directory:
                raise UsageError(
                    f"'{part}' does not name an arm", where="--as", hint="write --as old=A,new=B"
                )
            found.append((arm, directory))
    return found


def open_several(
    paths: Sequence[Path],
    names: Iterable[tuple[str, str]] = (),
    *,
    match: Match | None = None,
    progress: Progress | None = None,
) -> Several:
    """Open results directories as arms.

    Args:
        names: pairs of an arm and a directory (a path, or its last part). A directory without one
        is the arm of its own name. Directories of the same arm are repetitions of it.
        match: "variant" compares each variant of a study with the variant of the same name. This is
        the default where a study has several variants.

    Raises UsageError for a path that is no results directory, a directory given twice, a name that
    fits none, and two directories of the same name; ResultsError where a directory is damaged.
    """
    places = [path.parent if path.is_file() and path.name == FILE else path for path in paths]
    for place in places:
        _check(place)
    resolved = [place.resolve() for place in places]
    for number, place in enumerate(resolved):
        if place in resolved[:number]:
            raise UsageError(
                "is given twice", where=places[number], hint="a comparison needs different results"
            )
    arms = _arms(resolved, places, names)
    opened = [Results(place, progress=progress) for place in places]
    for number, results in enumerate(opened):
        for other in opened[:number]:
            if _is_copy(results, other):
                raise UsageError(
                    f"holds the same runs as {other.path}",
                    where=results.path,
                    hint="a copy is no repetition: give different results",
                )
    variants = [
        {run.variant for run in results.runs if run.variant != _UNKNOWN} for results in opened
    ]
    by_variant = match == "variant" or any(len(names) > 1 for names in variants)
    labels = [place.name for place in resolved]
    if len(set(labels)) < len(labels):
        labels = [str(place) for place in places]
    runs = [
        _join_arm(run, results, arm, label, by_variant)
        for results, arm, label in zip(opened, arms, labels, strict=True)
        for run in results.runs
    ]
    notes = [
        replace(note, text=f"{label}: {note.text}")
        for results, label in zip(opened, labels, strict=True)
        for note in study_notes(results.runs, results.standing, results.manifest.imported)
    ]
    return Several(runs, tuple(dict.fromkeys(arms)), tuple(notes))


def _check(place: Path) -> None:
    if not place.exists():
        raise UsageError("no such file or directory", where=place)
    if is_recording(place):
        raise UsageError(
            "is a recording, not results",
            where=place,
            hint="iolab compare takes results of iolab run or iolab import",
        )
    if not place.is_dir():
        raise UsageError(
            "only results directories, or only fio results, can be compared together",
            where=place,
            hint="import it with iolab import",
        )


def _arms(
    resolved: Sequence[Path], places: Sequence[Path], names: Iterable[tuple[str, str]]
) -> list[str]:
    given: dict[int, str] = {}
    for arm, directory in names:
        fitting = [
            number
            for number, place in enumerate(resolved)
            if Path(directory).resolve() == place or place.name == directory.rstrip("/")
        ]
        if len(fitting) != 1:
            listed = ", ".join(str(place) for place in places)
            which = "no" if not fitting else "more than one"
            raise UsageError(
                f"'{directory}' is {which} directory of this comparison",
                where="--as",
                hint=f"directories are {listed}",
            )
        if given.setdefault(fitting[0], arm) != arm:
            raise UsageError(f"'{directory}' has two names", where="--as", hint="give it one")
    arms = [given.get(number, place.name) for number, place in enumerate(resolved)]
    for number, arm in enumerate(arms):
        if number not in given and arm in arms[:number]:
            raise UsageError(
                f"two directories are named '{arm}'",
                where=places[number],
                hint=f"name the arms: --as old={places[arms.index(arm)]},new={places[number]}",
            )
    if len(set(arms)) < 2:
        raise UsageError(
            f"'{arms[0]}' is the only arm", where="--as", hint="a comparison needs two arms"
        )
    return arms


def _is_copy(one: Results, other: Results) -> bool:
    """Whether two directories have a run in common, by its time and all of its values."""
    contents = [
        {
            (
                run.boot,
                run.window,
                tuple(sorted((o.metric, o.value) for o in run.observations.values())),
            )
            for run in results.runs
            if run.observations and run.window is not None
        }
        for results in (one, other)
    ]
    return bool(contents[0] & contents[1])


def _join_arm(run: Run, results: Results, arm: str, label: str, by_variant: bool) -> Run:
    is_known = run.variant != _UNKNOWN
    factors = {STUDY_VARIANT: run.variant, **run.factors} if by_variant else run.factors
    own = {"iolab": results.manifest.iolab} if results.manifest.origin == "run" else {}
    return replace(
        run,
        plan=replace(
            run.plan,
            run=f"{label}/{run.id}",
            variant=arm if is_known else _UNKNOWN,
            factors=factors if is_known else run.factors,
        ),
        environment={**own, **run.environment},
        results=label,
    )


def differences_of(runs: Sequence[Run]) -> tuple[Difference, ...]:
    """Facts of the environment, and options that fio echoed in cells that all arms have, in which
    arms of several results differ; facts that an arm does not have are left out of its side."""
    alone = [unmatched.factors for unmatched in unmatched_of(runs)]
    values: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        options = {} if run.factors in alone else run.options
        facts = {
            **run.environment,
            **{f"fio option {k}": v for k, v in options.items() if k not in _LOGS},
        }
        for name, value in facts.items():
            values.setdefault(name, {}).setdefault(run.variant, set()).add(value)
    return tuple(
        Difference(name, {arm: tuple(sorted(texts)) for arm, texts in by_arm.items()})
        for name, by_arm in values.items()
        if len({frozenset(texts) for texts in by_arm.values()}) > 1
    )


def unmatched_of(runs: Iterable[Run]) -> tuple[Unmatched, ...]:
    """Cells that not all arms have. UsageError where no cell has two arms."""
    cells: dict[tuple[tuple[str, object], ...], dict[str, Mapping[str, object]]] = {}
    for run in runs:
        if run.variant != _UNKNOWN:
            key = tuple(sorted(run.factors.items(), key=lambda item: item[0]))
            cells.setdefault(key, {})[run.variant] = run.factors
    every = {arm for arms in cells.values() for arm in arms}
    if len(every) > 1 and all(len(arms) == 1 for arms in cells.values()):
        first = {arm: factors for arms in cells.values() for arm, factors in arms.items()}
        listed = "; ".join(f"{arm} has {_cell(factors)}" for arm, factors in first.items())
        raise UsageError("the results have no cell in common", where="compare", hint=listed)
    return tuple(
        Unmatched(tuple(arms), dict(next(iter(arms.values()))))
        for arms in cells.values()
        if len(arms) < len(every)
    )


def _cell(factors: Mapping[str, object]) -> str:
    return " ".join(f"{name}={level}" for name, level in factors.items()) or "no factors"
