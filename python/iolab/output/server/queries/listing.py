# SPDX-License-Identifier: Apache-2.0
"""What is served, what can be asked of it, how far it is, its marks and losses."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from iolab.base.errors import IolabError
from iolab.base.files import read_regular
from iolab.recordings.ask.available import Available, available, available_of_hosts
from iolab.recordings.ask.engine.snapshot import covered_spans, snapshot
from iolab.recordings.ask.fleet import HOST, labels_of, value_of
from iolab.recordings.ask.language.fields import MAPPED
from iolab.recordings.store.base.intervals import join
from iolab.recordings.store.base.lock import LOCK, has_writer
from iolab.recordings.store.read.folder import Folder
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import source_of

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
from ..base.store import Store, ends_of
from .parameters import Words, recording_of

FILE = "status.json"
_LARGEST = 1 << 20
SILENT = 5
"""Seconds without a change from which on a recorder is called silent: it writes every second."""


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


def silence(directory: Path, *, now: float | None = None) -> int:
    """Whole seconds since something was written there; 0 for less than `SILENT`."""
    moment = time.time() if now is None else now
    newest = 0.0
    for path in (directory / FILE, directory / LOCK, *(directory / "hot").glob("*")):
        try:
            newest = max(newest, path.stat().st_mtime)
        except OSError:
            continue
    seconds = int(moment - newest) if newest else 0
    return seconds if seconds >= SILENT else 0


def run_facts(results: Path | None) -> dict[str, dict[str, Any]]:
    """By run: `variant`, `cell` (factors with their levels), `verdict` and `reasons` (of what is not
    OK). Nothing of runs that are not read yet, or of results that can't be read: their problem is
    stated where they are listed."""
    if results is None:
        return {}
    # slow to load
    from iolab.studies.results.open.cache import evidence_key

    try:
        return _facts_of_runs(results, evidence_key(results))
    except (IolabError, OSError):
        return {}


@lru_cache(maxsize=8)
def _facts_of_runs(path: Path, key: str) -> dict[str, dict[str, Any]]:
    """Of results with this key of their evidence."""
    from iolab.studies.results.open.results import Results

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
    fleets = list(store.fleet_names())
    # of a fleet all hosts are shown first
    names = [*fleets, *store.names] if store.is_fleet else [*store.names, *fleets]
    return Recordings(recordings=[facts_of(store, name) for name in names])


def facts_of(store: Store, name: str) -> RecordingFacts:
    """One of them."""
    trace = store.is_trace(name)
    try:
        if name not in store.names:
            return facts_of_hosts(store, name)
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
    facts, span = recording.facts, ends_of(recording)
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
    """Whether it is being recorded: its last session has no end, and its writer is there, however
    long that has been silent (a writer that was killed left no end)."""
    recording = store.recording(name)
    return recording is not None and _is_live(recording.facts.sessions, store.path(name))


def _is_live(sessions: Sequence[Mapping[str, Any]], directory: Path) -> bool:
    return bool(sessions) and sessions[-1].get("until_ns") is None and has_writer(directory)


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
            for available_statistic in _available(store, name)
        ],
    )


def _available(store: Store, name: str) -> list[Available]:
    opened = store.open_asked(name)
    if not isinstance(opened, Folder):
        return available(opened, store.summary(name).has if store.is_trace(name) else None)
    fields = (HOST, *labels_of(opened.recordings))
    return available_of_hosts([available(item) for item in opened.recordings], fields)


def _kind(field: str) -> Literal["stack", "heat"]:
    return "heat" if field in MAPPED else "stack"


def marks(store: Store, words: Words) -> Marks:
    """Named spans of a recording; a trace has none."""
    name = recording_of(store, words)
    opened = store.open_asked(name)
    if isinstance(opened, Folder):
        return marks_of_hosts(store, name)
    recording = None if isinstance(opened, Trace) else opened
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
    opened = store.open_asked(name)
    if isinstance(opened, Folder):
        return losses_of_hosts(store, name)
    recording = None if isinstance(opened, Trace) else opened
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


def facts_of_hosts(store: Store, name: str) -> RecordingFacts:
    """What all hosts together have."""
    members = [facts_of(store, member) for member in store.members(name)]
    readable = [facts for facts in members if not facts.problem]
    if not readable:
        store.open_asked(name)  # it says why
    hosts: dict[str, list[str]] = {}
    events: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    for facts in readable:
        recording = store.recording(facts.name)
        host = facts.host if recording is None else value_of(recording, HOST)
        hosts.setdefault(host, []).append(facts.name)
        events.update(facts.events)
        samples.update(facts.samples)
    firsts, lasts, from_events = (
        [value for facts in readable if (value := getattr(facts, field)) is not None]
        for field in ("first_ns", "last_ns", "events_from_ns")
    )
    return RecordingFacts(
        name=name,
        kind="hosts",
        host="",
        clock=readable[0].clock,
        live=any(facts.live for facts in readable),
        first_ns=min(firsts, default=None),
        last_ns=max(lasts, default=None),
        events=dict(events),
        events_from_ns=min(from_events, default=None),
        samples=dict(samples),
        problem="",
        hosts=hosts,
    )


def status_of_name(store: Store, name: str) -> dict[str, Any]:
    """What the recorder of a recording says, or those of all hosts together."""
    if store.is_trace(name):
        return {}
    members = store.members(name)
    if members == [name]:
        return status_of(store.path(name))
    statuses = {member: status for member in members if (status := status_of(store.path(member)))}
    if not statuses:
        return {}
    lost: Counter[str] = Counter()
    suspended: dict[str, Any] = {}
    for member, status in statuses.items():
        lost.update(counts(status, "lost"))
        if isinstance(status.get("suspended"), dict):
            suspended |= {f"{member} {key}": why for key, why in status["suspended"].items()}
    states = [str(status.get("state", "")) for status in statuses.values()]
    sizes = [status.get("bytes") for status in statuses.values()]
    return {
        # one host that records is enough
        "state": "recording" if "recording" in states else states[0],
        "bytes": sum(size for size in sizes if isinstance(size, int)),
        "lost": dict(lost),
        "suspended": suspended,
    }


def _of_each_host(store: Store, name: str) -> list[tuple[str, str]]:
    """(host, recording) of all hosts."""
    hosts = facts_of_hosts(store, name).hosts
    return [(host, recording) for host, names in hosts.items() for recording in names]


def marks_of_hosts(store: Store, name: str) -> Marks:
    """The marks of all hosts, each with its host."""
    lines: list[Mark] = []
    omitted = 0
    for host, recording in _of_each_host(store, name):
        of_host = marks(store, {"recording": recording})
        omitted += of_host.left
        lines += [
            mark.model_copy(update={"label": f"{host}: {mark.label}"}) for mark in of_host.marks
        ]
    lines.sort(key=lambda mark: mark.from_ns)
    omitted += max(0, len(lines) - MOST_LINES)
    return Marks(recording=name, left=omitted, marks=lines[-MOST_LINES:])


def losses_of_hosts(store: Store, name: str) -> Losses:
    """The losses of all hosts, each with its host. A gap is common to all hosts."""
    parts = [
        (host, losses(store, {"recording": recording}))
        for host, recording in _of_each_host(store, name)
    ]
    totals: Counter[str] = Counter()
    for _, part in parts:
        totals.update(part.totals)
    lines = [
        loss.model_copy(update={"words": f"{host}: {loss.words}" if loss.words else host})
        for host, part in parts
        for loss in part.losses
    ]
    lines.sort(key=lambda loss: loss.from_ns or 0)
    recorded = join((first, until) for _, part in parts for first, until in part.recorded)
    gaps = [(before[1], after[0]) for before, after in pairwise(recorded)]
    return Losses(
        recording=name,
        totals=dict(totals),
        gaps=gaps[-MOST_LINES:],
        recorded=recorded[-MOST_LINES:],
        left=sum(part.left for _, part in parts) + max(0, len(lines) - MOST_LINES),
        losses=lines[-MOST_LINES:],
    )
