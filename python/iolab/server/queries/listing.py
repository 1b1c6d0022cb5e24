# SPDX-License-Identifier: Apache-2.0
"""What is served, what can be asked of it, how far it is, its marks and losses."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ...errors import IolabError
from ...files import read_regular
from ...recording.write.ingest import source_of
from ...statistics.ask.available import available
from ...statistics.engine.coverage import covered_spans
from ...statistics.engine.snapshot import snapshot
from ...statistics.language.fields import MAPPED
from ..base.models import (
    Breakdown,
    Lacking,
    Loss,
    Losses,
    Mark,
    Marks,
    RecordingFacts,
    Recordings,
    SourceFacts,
    StatisticFacts,
    Statistics,
)
from ..base.store import Store
from .parameters import Words, recording_of

FILE = "status.json"
_LARGEST = 1 << 20
STALE = 30.0
"""Seconds without a change after which recording has ended, whatever the last session says."""


def status_of(directory: Path) -> dict[str, Any]:
    """Its content; empty where there is none that can be read."""
    path = directory / FILE
    try:
        status = json.loads(read_regular(path, limit=_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def counts(status: dict[str, Any], name: str) -> dict[str, int]:
    """Whole numbers by source."""
    counts = status.get(name)
    return (
        {key: value for key, value in counts.items() if isinstance(value, int)}
        if isinstance(counts, dict)
        else {}
    )


def changes(directory: Path, *, now: float | None = None) -> bool:
    """Whether something was written there within `STALE` seconds."""
    moment = time.time() if now is None else now
    newest = 0.0
    for path in (directory / FILE, *(directory / "hot").glob("*")):
        try:
            newest = max(newest, path.stat().st_mtime)
        except OSError:
            continue
    return moment - newest < STALE


def run_facts(results: Path | None) -> dict[str, dict[str, Any]]:
    """By run: `variant`, `cell` (factors with their levels), `verdict` and `reasons` (of what is not
    OK). Nothing of runs that are not read yet, or of results that can't be read: their problem is
    stated where they are listed."""
    if results is None:
        return {}
    # slow to load
    from ...results.open.cache import evidence_key

    try:
        return _facts_of_runs(results, evidence_key(results))
    except (IolabError, OSError):
        return {}


@lru_cache(maxsize=8)
def _facts_of_runs(path: Path, key: str) -> dict[str, dict[str, Any]]:
    """Of results with this key of their evidence."""
    from ...results.open.results import Results

    return {
        run.id: {
            "variant": run.variant,
            "cell": {name: str(level) for name, level in run.factors.items()},
            "repetition": run.plan.repetition,
            "verdict": run.verdict.level.value,
            "reasons": [
                reason.text for reason in run.verdict.reasons if reason.level.value != "OK"
            ],
        }
        for run in Results(path).runs
    }


MOST_LINES = 2000
"""Marks or losses in one answer: the latest."""

_RUNS = "runs/"
_EPOCH = 10**17
"""Later than this (March 1973) a time in ns counts from 1970."""


def recordings(store: Store, words: Words) -> Recordings:
    """Everything that is served; what can't be read is listed with its problem."""
    return Recordings(recordings=[facts_of(store, name) for name in store.names])


def facts_of(store: Store, name: str) -> RecordingFacts:
    """One of them."""
    trace = store.is_trace(name)
    try:
        return _of_trace(store, name) if trace else _of_recording(store, name)
    except IolabError as error:
        kind: Literal["trace", "recording"] = "trace" if trace else "recording"
        return RecordingFacts(
            name=name,
            kind=kind,
            host="",
            clock="trace",
            live=False,
            first_ns=None,
            last_ns=None,
            events={},
            events_from_ns=None,
            samples={},
            problem=error.message,
        )


def _of_trace(store: Store, name: str) -> RecordingFacts:
    first, last = store.ends(name)
    summary = store.summary(name)
    has_events = summary.events > 0
    return RecordingFacts(
        name=name,
        kind="trace",
        host="",
        clock="realtime" if first > _EPOCH else "trace",
        live=False,
        first_ns=first if has_events else None,
        last_ns=last if has_events else None,
        events={source_of(summary.format): summary.events},
        events_from_ns=first if has_events else None,
        samples={},
        problem="",
    )


def _of_recording(store: Store, name: str) -> RecordingFacts:
    recording = store.recording(name)
    assert recording is not None
    recording = recording.frozen()
    facts, span = recording.facts, store.ends(name)
    has_events = span != (0, 0)
    segments = recording.segments()
    starts = [segment.first_ns for segment in segments]
    events: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    for segment in segments:
        events.update(segment.sources)
    for segment in recording.sample_segments():
        samples.update(segment.sources)
    return RecordingFacts(
        name=name,
        kind="recording",
        host=facts.host,
        clock=facts.clock,
        live=_is_live(facts.sessions, store.path(name)),
        first_ns=span[0] if has_events else None,
        last_ns=span[1] if has_events else None,
        events=dict(events),
        events_from_ns=min(starts, default=None),
        samples=dict(samples),
        problem="",
    )


def is_live(store: Store, name: str) -> bool:
    """Whether it is being recorded: its last session has no end, and something was written lately
    (a writer that was killed left none)."""
    recording = store.recording(name)
    return recording is not None and _is_live(recording.facts.sessions, store.path(name))


def _is_live(sessions: Sequence[Mapping[str, Any]], directory: Path) -> bool:
    return bool(sessions) and sessions[-1].get("until_ns") is None and changes(directory)


def statistics(store: Store, words: Words) -> Statistics:
    """The catalogue, with what the recording can answer."""
    name = recording_of(store, words)
    return Statistics(
        recording=name,
        statistics=[
            StatisticFacts(
                name=available_statistic.entry.name,
                about=available_statistic.entry.about,
                covers=available_statistic.entry.covers,
                unit=available_statistic.entry.unit,
                source=available_statistic.source,
                counted=available_statistic.counted,
                filters=list(available_statistic.entry.filters),
                available=not available_statistic.why_not,
                why_not=available_statistic.why_not,
                sources=[
                    SourceFacts(
                        name=source.source, counted=source.counted, fields=list(source.fields)
                    )
                    for source in available_statistic.sources
                ],
                breakdowns=[
                    Breakdown(field=field, kind=_kind(field))
                    for field in available_statistic.breakdowns
                ],
                lacking=[
                    Lacking(field=field, kind=_kind(field), why_not=why)
                    for field, why in available_statistic.lacking.items()
                ],
            )
            for available_statistic in available(
                store.open(name), store.summary(name).has if store.is_trace(name) else None
            )
        ],
    )


def _kind(field: str) -> Literal["stack", "heat"]:
    return "heat" if field in MAPPED else "stack"


def marks(store: Store, words: Words) -> Marks:
    """Named spans of a recording; a trace has none."""
    name = recording_of(store, words)
    recording = store.recording(name)
    marks_found = [] if recording is None else recording.marks()
    results = store.results_of(name)
    runs = run_facts(None if results is None else store.results.get(results))
    return Marks(
        recording=name,
        left=max(0, len(marks_found) - MOST_LINES),
        marks=[
            Mark(
                label=mark["label"],
                kind=mark["kind"],
                from_ns=mark["from_ns"],
                until_ns=mark["until_ns"],
                link=None if mark["link"] is None else str(mark["link"]),
                facts=_facts(mark, results, runs),
            )
            for mark in marks_found[-MOST_LINES:]
        ],
    )


def run_of(mark: Mapping[str, Any]) -> str | None:
    """The run that a line of marks is of, None where it is of none."""
    link = mark["link"]
    if mark["kind"] != "run" or not isinstance(link, str) or not link.startswith(_RUNS):
        return None
    return link.removeprefix(_RUNS)


def _facts(
    mark: Mapping[str, Any], results: str | None, runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What is known of a mark; for a run in a served report, where that is (`report` and `run`),
    and its variant, cell and verdict."""
    facts = mark["facts"] if isinstance(mark["facts"], dict) else {}
    run = run_of(mark)
    if run is None or results is None:
        return facts
    return {**runs.get(run, {}), **facts, "report": results, "run": run}


def losses(store: Store, words: Words) -> Losses:
    """What a recording lost, and when nothing was recorded; of a trace the answers themselves say
    it."""
    name = recording_of(store, words)
    recording = store.recording(name)
    if recording is None:
        return Losses(recording=name, losses=[], totals={}, gaps=[], recorded=[], left=0)
    losses_found = recording.losses()
    totals: Counter[str] = Counter()
    for loss in losses_found:
        totals[loss["kind"]] += loss["count"] or 0
    spans = covered_spans(snapshot(recording), store.ends(name)[1]) or []
    return Losses(
        recording=name,
        totals=dict(totals),
        gaps=recording.gaps()[-MOST_LINES:],
        recorded=spans[-MOST_LINES:],
        left=max(0, len(losses_found) - MOST_LINES),
        losses=[
            Loss(
                source=loss["source"],
                kind=loss["kind"],
                from_ns=loss["from_ns"],
                until_ns=loss["until_ns"],
                count=loss["count"],
                words=loss["words"],
            )
            for loss in losses_found[-MOST_LINES:]
        ],
    )
