# SPDX-License-Identifier: Apache-2.0
"""Several results directories as the arms of one comparison: measured, changed, measured again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from iolab import __version__
from iolab.base.errors import ResultsError, UsageError
from iolab.recordings.store.base.layout import is_recording

from ..results.evidence.completeness import Standing, joined_standing
from ..results.evidence.manifest import FILE, Manifest
from ..results.evidence.model import Histogram, Run, Series
from ..results.open.profiles import Profile
from ..results.open.results import Progress, Results, default_metric, metrics_of
from .model import Difference, Unmatched
from .remarks import study_notes

STUDY_VARIANT = "study_variant"
"""Factor that holds the variant within its study, where arms are whole results."""

_UNKNOWN = "?"
_LOGS = ("write_bw_log", "write_iops_log", "write_lat_log", "log_avg_msec", "name", "description")
"""Options of fio that change no load."""
_SCRATCH = re.compile(r"scratch(-\d+)?")
"""Directory of results in which runs have theirs, if the target names no other."""
_MADE = re.compile(r"iolab-[0-9a-f]{12}")
"""Directory that a study makes for its runs, below the path of its target."""

Match = Literal["variant"]


@dataclass(frozen=True)
class Member:
    """One results directory of several: its arm, and the label before the names of its runs."""

    results: Results
    arm: str
    label: str


class Several:
    """Results of several directories, opened as arms.

    Attributes:
        members: the directories. path: the directory that all of them are below. runs: of all
        directories, each under `<label>/<run>`, with its arm as its variant. arms: names, in order
        of the directories. manifest: of all of them together. notes: what is missing or damaged in
        any of the directories.
    """

    baseline: None = None

    def __init__(
        self,
        paths: Sequence[Path],
        names: Iterable[tuple[str, str]] = (),
        *,
        match: Match | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Open results directories as arms.

        Args:
            names: pairs of an arm and a directory (a path, or its last part). A directory without
            one is the arm of its own name. Directories of the same arm are repetitions of it.
            match: "variant" compares each variant of a study with the variant of the same name.
            This is the default where a study has several variants.

        Raises UsageError for a path that is no results directory, a directory given twice, a name
        that fits none, and two directories of the same name; ResultsError where a directory is
        damaged.
        """
        places = [path.parent if path.is_file() and path.name == FILE else path for path in paths]
        for place in places:
            _check(place)
        resolved = [place.resolve() for place in places]
        for number, place in enumerate(resolved):
            if place in resolved[:number]:
                raise UsageError(
                    "is given twice",
                    where=places[number],
                    hint="a comparison needs different results",
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
        self.path = Path(os.path.commonpath([place.parent for place in resolved]))
        self.members = tuple(map(Member, opened, arms, labels))
        self.arms = tuple(dict.fromkeys(arms))
        self.manifest = _joined_manifest(self.members, self.arms, by_variant)
        self.notes = tuple(
            replace(note, text=f"{member.label}: {note.text}")
            for member in self.members
            for note in study_notes(
                member.results.runs, member.results.standing, member.results.manifest.imported
            )
        )
        self._by_id: dict[str, tuple[Member, str, Run]] = {}
        for member in self.members:
            for run in member.results.runs:
                joined = _join_arm(run, member, by_variant)
                self._by_id[joined.id] = (member, run.id, joined)
        self.runs = [run for _, _, run in self._by_id.values()]

    def default_metric(self) -> str:
        """As `Results.default_metric`, over all runs."""
        return default_metric(self.runs, " ".join(self.arms))

    def metrics(self) -> list[str]:
        """As `Results.metrics`, over all runs."""
        return metrics_of(self.runs)

    def run(self, run_id: str) -> Run | None:
        """The run of that name (`<label>/<run>`), or None."""
        return self._by_id[run_id][2] if run_id in self._by_id else None

    def home(self, run: Run) -> Path:
        """The results directory of a run: that of its host, where results are of several hosts."""
        member, own, _ = self._by_id[run.id]
        return member.results.path / own.rpartition("/")[0]

    @cached_property
    def standing(self) -> Standing | None:
        """How complete the studies are; None where it is not known of any."""
        return joined_standing({member.label: member.results.standing for member in self.members})

    def series(self, run_id: str) -> tuple[Series, ...]:
        """Per-second series of a run, read from its evidence."""
        member, own, _ = self._by_id[run_id]
        return member.results.series(own)

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """Latency histograms of a run, read from its evidence; empty unless fio wrote json+."""
        member, own, _ = self._by_id[run_id]
        return member.results.histograms(own)

    def profiles(self) -> tuple[list[Profile], list[str]]:
        """Profiles of all directories, with their arms as variants, and notes on unreadable ones."""
        profiles, notes = [], []
        for member in self.members:
            own, unreadable = member.results.profiles()
            profiles += [
                replace(profile, run=f"{member.label}/{profile.run}", variant=member.arm)
                for profile in own
            ]
            notes += [f"{member.label}: {note}" for note in unreadable]
        return profiles, notes

    def window_runs(self) -> list[Run]:
        """ResultsError: windows are compared within one results directory."""
        raise ResultsError(
            "windows and steps of several results are not compared",
            where=self.path,
            hint="give one results directory",
        )

    step_runs = client_runs = window_runs

    def environments(self) -> dict[str, dict[str, Any]]:
        """`Results.environments` of each directory, by the name before the names of its runs."""
        return {
            f"{member.label}/{host}" if host else member.label: environment
            for member in self.members
            for host, environment in member.results.environments().items()
        }

    def manifests(self) -> dict[str, Manifest]:
        """The manifest of each directory, by its label."""
        return {member.label: member.results.manifest for member in self.members}


def parse_names(texts: Iterable[str]) -> list[tuple[str, str]]:
    """`old=A,new=B` as pairs of an arm and a directory; UsageError for anything else."""
    names = []
    for text in texts:
        for part in text.split(","):
            arm, equals, directory = (word.strip() for word in part.partition("="))
            if not equals or not arm or not directory:
                raise UsageError(
                    f"'{part}' does not name an arm", where="--as", hint="write --as old=A,new=B"
                )
            names.append((arm, directory))
    return names


def _joined_manifest(members: Sequence[Member], arms: Sequence[str], by_variant: bool) -> Manifest:
    manifests = [member.results.manifest for member in members]
    factors = [name for manifest in manifests for name in manifest.factors]
    origins = {manifest.origin for manifest in manifests}
    return Manifest(
        name=f"{', '.join(arms[1:])} against {arms[0]}",
        origin=origins.pop() if len(origins) == 1 else "run",
        created_ns=max(manifest.created_ns for manifest in manifests),
        iolab=__version__,
        baseline=arms[0],
        variants=list(arms),
        factors=list(dict.fromkeys([*([STUDY_VARIANT] if by_variant else []), *factors])),
    )


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
    name_of_place: dict[int, str] = {}
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
        if name_of_place.setdefault(fitting[0], arm) != arm:
            raise UsageError(f"'{directory}' has two names", where="--as", hint="give it one")
    arms = [name_of_place.get(number, place.name) for number, place in enumerate(resolved)]
    for number, arm in enumerate(arms):
        if number not in name_of_place and arm in arms[:number]:
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


def _join_arm(run: Run, member: Member, by_variant: bool) -> Run:
    is_known = run.variant != _UNKNOWN
    manifest = member.results.manifest
    factors = {STUDY_VARIANT: run.variant, **run.factors} if by_variant else run.factors
    own = {"iolab": manifest.iolab} if manifest.origin == "run" else {}
    return replace(
        run,
        plan=replace(
            run.plan,
            run=f"{member.label}/{run.id}",
            variant=member.arm if is_known else _UNKNOWN,
            factors=factors if is_known else run.factors,
        ),
        environment={**own, **run.environment},
        results=member.label,
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
            **{
                f"fio option {name}": _without_own_directory(value, run)
                for name, value in options.items()
                if name not in _LOGS
            },
        }
        for name, value in facts.items():
            values.setdefault(name, {}).setdefault(run.variant, set()).add(value)
    return tuple(
        Difference(name, {arm: tuple(sorted(texts)) for arm, texts in by_arm.items()})
        for name, by_arm in values.items()
        if len({frozenset(texts) for texts in by_arm.values()}) > 1
    )


def _without_own_directory(value: str, run: Run) -> str:
    """An option without the directories that iolab made for the run and its study, in which all
    runs differ: the directory above them, or "scratch" if that is of the results themselves."""
    above, _, last = value.rpartition("/")
    if last != run.evidence.name:
        return value
    name = PurePosixPath(above).name
    if _MADE.fullmatch(name):
        return str(PurePosixPath(above).parent)
    return "scratch" if _SCRATCH.fullmatch(name) else above


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
