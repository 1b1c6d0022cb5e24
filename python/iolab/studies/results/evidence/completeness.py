# SPDX-License-Identifier: Apache-2.0
"""How much of results is there: the runs that the journal of a study planned, or that an import
made, compared with the runs that have evidence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError

from .files import ENVIRONMENT_FILE, profile_directories, read_document, run_directories, run_number
from .journal import FILE, examine_journal
from .lock import is_locked
from .manifest import Manifest
from .model import NO_PLAN, Run

_NAMED = 4
"""Runs named in one line; more are counted."""


@dataclass(frozen=True)
class Standing:
    """A study's runs, counted.

    Attributes:
        planned: all of them; to_come: those without any evidence yet.
        damaged: changed files about the whole study, as texts.
        is_running: whether a process writes the study and has runs to come; the run that it
        executes is one of these.
        unknown: why journals can't be read, so that their planned and missing runs are unknown.
    """

    planned: int
    to_come: int
    gone: tuple[str, ...] = ()
    """Names of runs that the journal says are finished, without evidence."""
    unknown: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    is_running: bool = False

    def words(self) -> list[str]:
        """A line for each thing that is missing; none where every planned run is there."""
        lines = []
        if self.to_come:
            present = self.planned - self.to_come - len(self.gone)
            runs_present = (
                f"{present} of {self.planned} planned runs {'is' if present == 1 else 'are'} there"
            )
            lines.append(
                f"the study is running: {runs_present}, {self.to_come} to come"
                if self.is_running
                else f"{runs_present}, {self.to_come} to come: "
                "iolab run --resume continues a study that ended early"
            )
        if self.gone:
            is_single = len(self.gone) == 1
            more = f" and {len(self.gone) - _NAMED} more" if len(self.gone) > _NAMED else ""
            lines.append(
                f"{len(self.gone)} finished run{'' if is_single else 's'} of {self.planned} "
                f"{'is' if is_single else 'are'} missing with all evidence: {', '.join(self.gone[:_NAMED])}{more}"
            )
        return [
            *lines,
            *self.damaged,
            *(f"whether all planned runs are there is not known: {why}" for why in self.unknown),
        ]


def standing(directory: Path, manifest: Manifest) -> Standing | None:
    """By the journal of a study, or by the list of runs in the manifest of an import, and the run
    directories; None where nothing was planned (tables)."""
    if manifest.origin != "run":
        return None if manifest.runs is None else _of_import(directory, manifest.runs)
    wrong = _damaged_environment(directory)
    if not os.path.lexists(directory / FILE):
        return Standing(
            0,
            0,
            unknown=(f"{FILE}, the list of planned and ended runs, is missing",),
            damaged=wrong,
        )
    try:
        events, _, lines = examine_journal(directory)
    except ResultsError as error:
        return Standing(0, 0, unknown=(str(error),), damaged=wrong)
    if lines:
        wrong += (
            f"{FILE} is damaged: {len(lines)} line{'' if len(lines) == 1 else 's'} changed or missing, the first is line "
            f"{lines[0]}",
        )
    planned: dict[int, str] = {}
    finished: dict[int, str] = {}
    for event in events:
        name = event.get("run")
        number = run_number(name) if isinstance(name, str) else None
        if number is None:
            continue
        if event["event"] == "planned":
            planned[number] = str(name)
        elif event["event"] == "finished":
            finished[number] = str(name)
        elif event["event"] == "aside":
            finished.pop(number, None)
    present = {
        run_number(path.name)
        for path in (*run_directories(directory), *profile_directories(directory))
    }
    if not planned and not present - {None}:
        return Standing(0, 0, damaged=wrong) if wrong else None
    if unplanned := {number for number in present if number is not None} - planned.keys():
        wrong += (
            f"{FILE} is damaged: it has no plan of {len(unplanned)} run{'' if len(unplanned) == 1 else 's'} that are there",
        )
    is_running = is_locked(directory)
    if is_running:
        present -= {run_number(name) for name in open_runs(events)}
    missing = [number for number in sorted(planned) if number not in present]
    missing_runs = tuple(finished[number] for number in missing if number in finished)
    to_come = len(missing) - len(missing_runs)
    return Standing(
        len(planned), to_come, missing_runs, damaged=wrong, is_running=is_running and to_come > 0
    )


def open_runs(events: Iterable[Mapping[str, Any]]) -> set[str]:
    """Runs that the journal knows and does not know as ended: they are planned, under way, or were
    killed."""
    named: dict[str, bool] = {}
    for event in events:
        if isinstance(run := event.get("run"), str):
            ended = event["event"] in ("finished", "failed", "interrupted")
            named[run] = ended or (named.get(run, False) and event["event"] != "started")
    return {run for run, ended in named.items() if not ended}


def _of_import(directory: Path, names: Sequence[str]) -> Standing:
    present = {path.name for path in run_directories(directory)}
    unlisted = sorted(present - {*names})
    wrong = (
        (
            f"{len(unlisted)} run{'' if len(unlisted) == 1 else 's'} are there that the import did "
            f"not make, such as {unlisted[0]}",
        )
        if unlisted
        else ()
    )
    missing = tuple(name for name in names if name not in present)
    return Standing(len(names), 0, missing, damaged=wrong)


def _damaged_environment(directory: Path) -> tuple[str, ...]:
    """`environment.json` in words, where it was changed after it was written."""
    path = directory / ENVIRONMENT_FILE
    if read_document(directory, ENVIRONMENT_FILE):
        return ()
    what = "damaged" if os.path.lexists(path) else "missing"
    return (f"{ENVIRONMENT_FILE} is {what}: on what the study ran is not known",)


def unreadable_runs(runs: Iterable[Run]) -> list[str]:
    """A line for each run that no number comes from because its `run.json` is missing or damaged,
    with the run's name and the reason, which names the file."""
    lines = [
        f"run {run.id} is left out: {reason.text}"
        for run in runs
        for reason in run.verdict.reasons
        if reason.code == NO_PLAN
    ]
    more = len(lines) - _NAMED
    return [
        *lines[:_NAMED],
        *([f"{more} more runs are left out so: iolab verify lists them"] if more > 0 else []),
    ]


def joined_standing(
    parts: Mapping[str, Standing | None], absent: Sequence[str] = ()
) -> Standing | None:
    """Of several hosts, with runs named `<host>/<run>`; None where none is known. `absent`: hosts
    without results."""
    known_parts = {name: part for name, part in parts.items() if part is not None}
    if not known_parts and not absent:
        return None
    return Standing(
        sum(part.planned for part in known_parts.values()),
        sum(part.to_come for part in known_parts.values()),
        tuple(f"{name}/{run}" for name, part in known_parts.items() for run in part.gone),
        (
            *(why for part in known_parts.values() for why in part.unknown),
            *(
                f"{name}: the study was not begun there, or its results are missing"
                for name in absent
            ),
        ),
        tuple(f"{name}: {why}" for name, part in known_parts.items() for why in part.damaged),
        any(part.is_running for part in known_parts.values()),
    )
