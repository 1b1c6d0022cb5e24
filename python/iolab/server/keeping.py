"""Kept statistics as the page manages them: which there are, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from ..errors import UsageError
from ..statistics.kept import manage
from .asking import Words, recording_of
from .models import Model, Whole
from .sheet import Moment, Text
from .store import Store

WORK_S = 5.0
"""Seconds for which a request makes what is to be kept of a recording at rest; what is left then is told as pending."""


class KeptTier(Model):
    """What is kept in columns of one length, and for how long; times in ns on the recording's clock, null where there is nothing."""

    tier: str
    interval_s: int
    keep_s: int | None
    first_ns: int | None
    until_ns: int | None
    files: int
    bytes: int
    rows: int


class KeptFacts(Model):
    """A kept statistic. state: "pending" until the recorder has taken it up, "waiting" for something that it could be made of (`why`),
    "suspended" by the budget. cpu_ns: what keeping it has cost so far. gaps: times in which it was paused or suspended, the last
    without an end while that lasts."""

    statistic: str
    state: Literal["kept", "pending", "waiting", "paused", "suspended"]
    why: str
    source: str | None
    kind: Literal["heat", "stack", "series"]
    since_ns: int | None
    until_ns: int | None
    bytes: int
    cpu_ns: int
    rows: int
    segments: int
    tiers: list[KeptTier]
    gaps: list[tuple[int, int | None]]


class Kept(Whole):
    """Statistics that are kept of a recording; none of a trace."""

    recording: str
    kept: list[KeptFacts]


class _Change(Model):
    recording: Text
    statistic: Text


class KeepAdd(_Change):
    """Keep a statistic from now on, with `backfill` also from the events that are still there."""

    backfill: bool


class KeepChange(_Change):
    """Pause, resume or drop a kept statistic; dropped is what was kept of it as well."""


class KeepPrune(_Change):
    """Remove what is kept of a statistic from before a moment, ns on the recording's clock."""

    before_ns: Moment


KEEPING: dict[str, type[Model]] = {each.__name__: each for each in (Kept, KeepAdd, KeepChange, KeepPrune)}
"""What managing kept statistics needs, by name."""


def kept(store: Store, words: Words) -> Kept:
    """The kept statistics of a recording."""
    name = recording_of(store, words)
    return _answer(name, [] if store.recording(name) is None else manage.listed(store.path(name)))


def add(store: Store, change: KeepAdd) -> Kept:
    """Keep another one."""
    return _changed(store, change, lambda path, names: manage.add(path, names, backfill=change.backfill, work_s=WORK_S))


def pause(store: Store, change: KeepChange) -> Kept:
    """Pause one."""
    return _changed(store, change, lambda path, names: manage.pause(path, names, work_s=WORK_S))


def resume(store: Store, change: KeepChange) -> Kept:
    """Go on with one."""
    return _changed(store, change, lambda path, names: manage.resume(path, names, work_s=WORK_S))


def drop(store: Store, change: KeepChange) -> Kept:
    """Remove one with all that was kept of it."""
    return _changed(store, change, lambda path, names: manage.drop(path, names, work_s=WORK_S))


def prune(store: Store, change: KeepPrune) -> Kept:
    """Remove what is older."""
    return _changed(store, change, lambda path, names: manage.prune(path, names, before_ns=change.before_ns, work_s=WORK_S))


def _changed(store: Store, change: _Change, act: Callable[[Path, list[str]], list[dict[str, Any]]]) -> Kept:
    if not change.statistic:
        raise UsageError("which statistic is not said", where="statistic", hint="such as io.ops[latency]")
    if store.recording(change.recording) is None:
        raise UsageError("of a trace nothing is kept", where=change.recording, hint="iolab import makes a recording of it")
    return _answer(change.recording, act(store.path(change.recording), [change.statistic]))


def _answer(name: str, rows: list[dict[str, Any]]) -> Kept:
    return Kept.model_validate({"recording": name, "kept": rows})
