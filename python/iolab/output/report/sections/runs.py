# SPDX-License-Identifier: Apache-2.0
"""Runs as the page shows them: the table of all, and what is known of each with where every number
came from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from iolab.base import metrics
from iolab.base.files import read_regular
from iolab.base.units import format_quantity
from iolab.base.verdict import Level
from iolab.studies.compare.axes import level_text
from iolab.studies.compare.model import Comparison
from iolab.studies.compare.render.words import scale_for
from iolab.studies.results.evidence.marks import seconds_of
from iolab.studies.results.evidence.model import Observation, Run

from ..model.payload import (
    Link,
    ReasonGroup,
    ReasonLevel,
    RunColumn,
    RunDetail,
    RunReason,
    RunTable,
    Scalar,
    Strip,
)

JOB_FILE = "job.fio"
LONGEST_TEXT = 20_000
"""Letters of a job that are shown; the file itself is linked."""


def run_table(runs: Sequence[Run], factors: Sequence[str], shown: Sequence[Comparison]) -> RunTable:
    """Every run with its variant, factors, repetition, verdict and the metrics of `shown`, each in
    the unit of its tables."""
    columns = [_text_column("variant", "variant", [run.variant for run in runs])]
    columns += [_factor_column(name, [run.factors.get(name) for run in runs]) for name in factors]
    for key in ("repetition", "block"):
        values = [getattr(run.plan, key) for run in runs]
        if len(set(values)) > 1 and not (
            key == "block" and values == [run.plan.repetition for run in runs]
        ):
            columns.append(
                RunColumn(
                    key=key, title=key, unit="", numeric=True, values=list(values), texts=None
                )
            )
    columns += [_metric_column(comparison, runs) for comparison in shown]
    return RunTable(
        ids=[run.id for run in runs],
        levels=[run.verdict.level.value for run in runs],
        columns=columns,
    )


def _text_column(key: str, title: str, values: Sequence[str]) -> RunColumn:
    return RunColumn(key=key, title=title, unit="", numeric=False, values=list(values), texts=None)


def _factor_column(name: str, levels: Sequence[object]) -> RunColumn:
    numeric = all(
        isinstance(level, (int, float)) and not isinstance(level, bool)
        for level in levels
        if level is not None
    )
    texts = ["" if level is None else level_text(level) for level in levels]
    if not numeric:
        return _text_column(name, name, texts)
    values: list[Scalar] = [
        float(str(level)) if isinstance(level, float) else level if isinstance(level, int) else None
        for level in levels
    ]
    return RunColumn(key=name, title=name, unit="", numeric=True, values=values, texts=texts)


def _metric_column(comparison: Comparison, runs: Sequence[Run]) -> RunColumn:
    scale, name = scale_for(comparison, None), comparison.metric.name
    values = [run.value(name) for run in runs]
    return RunColumn(
        key=name,
        title=name,
        unit=scale.symbol,
        numeric=True,
        values=list(values),
        texts=["" if value is None else scale.value(value) for value in values],
    )


def reason_groups(runs: Sequence[Run]) -> list[ReasonGroup]:
    """Runs by what the gates said of them, the gravest first, then the most frequent; notes
    last."""
    runs_of_reason: dict[tuple[str, Level], tuple[str, list[int]]] = {}
    for place, run in enumerate(runs):
        for reason in run.verdict.reasons:
            members = runs_of_reason.setdefault((reason.code, reason.level), (reason.text, []))[1]
            if not members or members[-1] != place:
                members.append(place)
    ordered = sorted(
        runs_of_reason.items(), key=lambda item: (-item[0][1].rank, -len(item[1][1]), item[0][0])
    )
    return [
        ReasonGroup(code=code, level=reason_level(level), text=text, runs=members)
        for (code, level), (text, members) in ordered
    ]


def reason_level(level: Level) -> ReasonLevel:
    """A reason of level OK is a note."""
    return "NOTE" if level is Level.OK else level.value


class Texts:
    """The distinct texts of a document, each stored once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """The place of this text, added if new."""
        index = self._places.setdefault(text, len(self.texts))
        if index == len(self.texts):
            self.texts.append(text)
        return index


def run_detail(
    run: Run,
    texts: Texts,
    strips: list[Strip],
    spans: list[tuple[float, float]],
    *,
    results: Path,
    base: Path | None,
) -> RunDetail:
    """Everything about one run.

    Args:
        results: the results directory, which contains the evidence.
        base: directory that the report is written to, for relative links; None leaves files named
        but unlinked.
    """
    reasons = [
        RunReason(code=reason.code, level=reason_level(reason.level), text=reason.text)
        for reason in run.verdict.reasons
    ]
    observed = sorted(run.observations.values(), key=lambda one: metrics.sort_key(one.metric))
    return RunDetail(
        reasons=reasons,
        facts=_facts(run),
        observations=[_observation(observation, texts) for observation in observed],
        command=shlex.join(run.plan.command),
        job=job_text(run),
        links=links(run, results, base),
        assumptions=list(run.assumptions),
        strips=strips,
        spans=spans,
        marks=[
            (round(second, 3), label)
            for second, label in seconds_of(run.evidence, run.plan.window, run.plan.files)
        ],
    )


def _observation(one: Observation, texts: Texts) -> tuple[int, int, int, int, int]:
    original = (
        "" if one.source_value is None else f"{_exact(one.source_value)} {one.source_unit}".rstrip()
    )
    place = texts.place
    return (
        place(one.metric),
        place(format_quantity(one.value, one.unit)),
        place(one.source_file),
        place(one.source_field),
        place(original),
    )


def _exact(value: float) -> str:
    """Every digit that a file had; whole numbers without a point."""
    return (
        str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
    )


def _facts(run: Run) -> list[tuple[str, str]]:
    plan = run.plan
    facts = [
        ("status", plan.status),
        ("host", plan.host),
        ("repetition", str(plan.repetition)),
        ("block", str(plan.block)),
        ("jobs", _text_or_empty(plan.jobs)),
        ("depth", _text_or_empty(plan.depth)),
        ("runtime", _text_or_empty(plan.runtime, "s")),
        ("ramp", _text_or_empty(plan.ramp, "s")),
        ("offered rate", _text_or_empty(plan.offered_iops, "1/s")),
        ("exit code", _text_or_empty(plan.exit_code)),
    ]
    facts += [(name, version) for name, version in plan.tools.items()]
    if isinstance(origin := plan.extra.get("imported_from"), str):
        facts.append(("imported from", origin))
    return [(name, value) for name, value in facts if value]


def _text_or_empty(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:.10g} {unit}".rstrip()


def job_text(run: Run) -> str:
    """The job as the run was given it: from its plan, else its job file, else what fio echoed;
    empty without any of them."""
    job = run.plan.extra.get("job")
    if isinstance(job, str):
        return job[:LONGEST_TEXT]
    try:
        return read_regular(run.evidence / JOB_FILE).decode("utf-8", "replace")[:LONGEST_TEXT]
    except OSError:
        return _echo_text(run)


def _echo_text(run: Run) -> str:
    if not run.options:
        return ""
    lines = [f"{name}={value}" for name, value in run.options.items()]
    return "\n".join(
        [
            "; as fio echoed it: options without a value (time_based, group_reporting) are missing",
            "[job]",
            *lines,
        ]
    )


def links(run: Run, results: Path, base: Path | None) -> list[Link]:
    """The evidence's files by their path below the results, linked relative to the report's
    directory where there is one."""
    try:
        names = sorted(
            entry.name for entry in os.scandir(run.evidence) if not entry.name.startswith(".")
        )
        folder = run.evidence
    except NotADirectoryError:
        names, folder = [run.evidence.name], run.evidence.parent
    except OSError:
        return []
    label, target = _relative(folder, results), None if base is None else _relative(folder, base)
    return [
        Link(
            text=_join(label or str(folder), name),
            href=None if target is None else quote(_join(target, name)),
        )
        for name in names
    ]


def _relative(folder: Path, start: Path) -> str | None:
    """The way from one directory to another, with slashes; None where there is none (another
    drive)."""
    try:
        return os.path.relpath(os.path.realpath(folder), os.path.realpath(start)).replace(
            os.sep, "/"
        )
    except ValueError:
        return None


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def environment_groups(runs: Sequence[Run]) -> Mapping[str, dict[str, int]]:
    """Fact to its values over the runs, each with how many runs have it."""
    runs_of_value: dict[str, dict[str, int]] = {}
    for run in runs:
        for name, value in run.environment.items():
            counts = runs_of_value.setdefault(name, {})
            counts[str(value)] = counts.get(str(value), 0) + 1
    return runs_of_value
