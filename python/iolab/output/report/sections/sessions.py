# SPDX-License-Identifier: Apache-2.0
"""Arms that were not measured in turn, and several results directories as arms: what follows for the
changes, in what the arms differ, and when they were measured."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from iolab.studies.compare.axes import axis_text
from iolab.studies.compare.model import CONFOUNDED, Comparison
from iolab.studies.results.evidence.model import Run

from ..model.payload import Grid, Sentence, SessionsPart
from ..words.phrases import count_text, list_text

MOST_CELLS = 24
"""Unmatched cells that are listed."""

BOOT_LETTERS = 8
"""Letters of a boot id, enough to tell boots apart."""


def sessions_part(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> SessionsPart | None:
    """Sessions and environments of the arms; None where the arms of one results directory were
    measured in turn."""
    sentences = _session_sentences(comparisons)
    if not any(run.results for run in runs):
        return SessionsPart(title="Sessions", sentences=sentences, tables=[]) if sentences else None
    first = comparisons[0] if comparisons else None
    tables = (
        []
        if first is None
        else [_differences(first), _directories(runs, first), _unmatched_cells(first)]
    )
    return SessionsPart(
        title="Results compared",
        sentences=[*([] if first is None else _environment_sentences(first)), *sentences],
        tables=[table for table in tables if table.rows],
    )


def _session_sentences(comparisons: Sequence[Comparison]) -> list[Sentence]:
    changes = [
        cell.change
        for comparison in comparisons
        for cell in comparison.cells
        if cell.change is not None
    ]
    confounded = sum(change.reason == CONFOUNDED for change in changes)
    sentences = []
    if confounded:
        which = (
            "No change is significant"
            if confounded == len(changes)
            else f"{confounded} of {len(changes)} changes are not significant for this reason"
        )
        sentences.append(
            Sentence(
                text="Confounded with time: the arms were not measured in turn, and an arm has a single "
                "session. Whatever else differed between the sessions (temperature, free space, state "
                f"of the device, other load) is part of the change. {which}, however many runs there "
                "are. Intervals cover the variation within the sessions only.",
                tone="caution",
            )
        )
        baseline, *_, variant = comparisons[0].variants
        turn = f"{baseline}, {variant}"
        sentences.append(
            Sentence(
                text=f"Remedy: measure each arm in at least 3 sessions, alternating ({turn}, {turn}, "
                f"{turn}), and give all of these results, with --as for their arms.",
                under=True,
            )
        )
    counts = sorted(
        {
            change.sessions
            for change in changes
            if change.sessions is not None and change.reason is None
        }
    )
    if counts:
        listed = list_text([f"{before} against {after}" for before, after in counts])
        sentences.append(
            Sentence(
                text=f"The unit of repetition is the session, not the run: {listed} sessions. Intervals "
                "and tests are over session means, so that they contain the variation between "
                "sessions.",
            )
        )
    return sentences


def _environment_sentences(comparison: Comparison) -> list[Sentence]:
    differences, unmatched = comparison.differences, comparison.unmatched
    sentences = [
        Sentence(
            text=f"The arms differ in {count_text(len(differences), 'recorded fact')} of the environment "
            f"({list_text([difference.name for difference in differences])}): any of them may be the "
            "cause of a change.",
            tone="caution",
        )
        if differences
        else Sentence(text="No recorded fact of the environment differs between the arms.")
    ]
    if unmatched:
        sentences.append(
            Sentence(
                text=f"{count_text(len(unmatched), 'cell')} missing in an arm (listed below) and not "
                "compared with it.",
            )
        )
    return sentences


def _differences(comparison: Comparison) -> Grid:
    return Grid(
        title="Environments differ",
        note="An empty place was not recorded.",
        head=["fact", *comparison.variants],
        rows=[
            [
                difference.name,
                *("; ".join(difference.values.get(arm, ())) for arm in comparison.variants),
            ]
            for difference in comparison.differences
        ],
    )


def _directories(runs: Sequence[Run], comparison: Comparison) -> Grid:
    """A row per results directory, in the order of their first run."""
    directories: dict[str, list[Run]] = {}
    for run in runs:
        directories.setdefault(run.results, []).append(run)
    rows = []
    for label, members in directories.items():
        windows = [run.window for run in members if run.window is not None]
        start = min((window[0] for window in windows), default=None)
        end = max((window[1] for window in windows), default=None)
        arms = dict.fromkeys(run.variant for run in members if run.variant in comparison.variants)
        boots = dict.fromkeys(run.boot[:BOOT_LETTERS] for run in members if run.boot)
        row = [
            label,
            ", ".join(arms),
            str(len(members)),
            _moment(start),
            _moment(end),
            ", ".join(boots),
        ]
        rows.append((start is None, start or 0, row))
    head = ["results", "arm", "runs", "first run", "last run", "boot"]
    ordered = [row for *_, row in sorted(rows, key=lambda entry: entry[:2])]
    kept = [place for place in range(len(head)) if place < 3 or any(row[place] for row in ordered)]
    return Grid(
        title="Results in order of time",
        note="Times are UTC.",
        head=[head[place] for place in kept],
        rows=[[row[place] for place in kept] for row in ordered],
    )


def _moment(time_ns: int | None) -> str:
    if time_ns is None:
        return ""
    moment = datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _unmatched_cells(comparison: Comparison) -> Grid:
    listed = comparison.unmatched[:MOST_CELLS]
    more = len(comparison.unmatched) - len(listed)
    return Grid(
        title="Unmatched cells",
        note=f"{more} more are not listed." if more else "",
        head=["cell", "in"],
        rows=[
            [
                axis_text(cell.factors.keys(), tuple(cell.factors.values())) or "no factors",
                ", ".join(cell.variants),
            ]
            for cell in listed
        ],
    )
