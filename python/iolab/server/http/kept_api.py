# SPDX-License-Identifier: Apache-2.0
"""Kept statistics as the page manages them: which there are, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ...documents import Model
from ...errors import UsageError
from ...statistics.kept import manage
from ...statistics.kept.files.definitions import LONGEST_S
from ..base.models import VersionedModel
from ..base.store import Store
from ..base.worksheet import Moment, Text
from ..queries.parameters import StatisticText, Words, recording_of

WORK_S = 5.0
"""Seconds for which a request makes what is to be kept of a recording at rest; the rest is
reported as pending."""

Size = Annotated[int, Field(ge=1, lt=2**63)]
Share = Annotated[float, Field(gt=0, le=1)]
Seconds = Annotated[int, Field(ge=1, le=LONGEST_S)]
Tier = Literal["1s", "1m", "1h"]


class KeptTier(Model):
    """What is kept in columns of one length, and for how long; times in ns on the recording's
    clock, null where there is nothing."""

    tier: str
    interval_s: int
    keep_s: int | None
    first_ns: int | None
    until_ns: int | None
    files: int
    bytes: int
    rows: int


class KeptFacts(Model):
    """A kept statistic. state: "pending" until the recorder has taken it up, "waiting" for
    something that it could be made of (`why`), "suspended" by the budget. cpu_ns: what keeping it
    has cost so far. gaps: times in which it was paused or suspended, the last without an end while
    that lasts."""

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


class KeptLimits(Model):
    """What all of them may take together, null for no limit; for how many seconds each tier stays;
    what they take on disk now. pending: whether the recorder has not taken the limits up yet."""

    bytes: int | None
    cpu_share: float | None
    retention: dict[str, int]
    used_bytes: int
    pending: bool


class Kept(VersionedModel):
    """Statistics that are kept of a recording, and their limits; none of a trace."""

    recording: str
    kept: list[KeptFacts]
    limits: KeptLimits | None


class _Change(Model):
    recording: Text
    statistic: StatisticText


class KeepAdd(_Change):
    """Keep a statistic from now on, with `backfill` also from the events that are still there."""

    backfill: bool


class KeepChange(_Change):
    """Pause, resume or drop a kept statistic; dropped is what was kept of it as well."""


class KeepPrune(_Change):
    """Remove what is kept of a statistic from before a moment, ns on the recording's clock, in a
    tier and those shorter than it."""

    before_ns: Moment
    tier: Tier = "1h"


class KeepLimits(Model):
    """Limits of all that is kept of a recording: bytes on disk, share of all CPU time (0.05 is 5
    %), null for any; by tier, seconds."""

    recording: Text
    bytes: Size | None
    cpu_share: Share | None
    retention: dict[Tier, Seconds]


def list_kept(store: Store, words: Words) -> Kept:
    """The kept statistics of a recording."""
    return _answer(store, recording_of(store, words))


def add(store: Store, change: KeepAdd) -> Kept:
    """Keep another one."""
    return _change_kept(store, change, manage.add, backfill=change.backfill)


def pause(store: Store, change: KeepChange) -> Kept:
    """Pause one."""
    return _change_kept(store, change, manage.pause)


def resume(store: Store, change: KeepChange) -> Kept:
    """Continue one."""
    return _change_kept(store, change, manage.resume)


def drop(store: Store, change: KeepChange) -> Kept:
    """Remove one with all that was kept of it."""
    return _change_kept(store, change, manage.drop)


def prune(store: Store, change: KeepPrune) -> Kept:
    """Remove what is older."""
    return _change_kept(store, change, manage.prune, before_ns=change.before_ns, tier=change.tier)


def limit(store: Store, change: KeepLimits) -> Kept:
    """Change the limits of all."""
    retention = {str(tier): seconds for tier, seconds in change.retention.items()}
    manage.limit(
        _path(store, change.recording),
        {"bytes": change.bytes, "cpu_share": change.cpu_share, "retention": retention},
        work_s=WORK_S,
    )
    return _answer(store, change.recording)


def _change_kept(
    store: Store, change: _Change, act: Callable[..., list[dict[str, Any]]], **options: Any
) -> Kept:
    if not change.statistic:
        raise UsageError(
            "which statistic is not said", where="statistic", hint="such as io.ops[latency]"
        )
    rows = act(_path(store, change.recording), [change.statistic], work_s=WORK_S, **options)
    return _answer(store, change.recording, rows)


def _path(store: Store, name: str) -> Path:
    """Of a recording of which statistics can be kept."""
    if store.recording(name) is None:
        raise UsageError(
            "of a trace nothing is kept", where=name, hint="iolab import makes a recording of it"
        )
    return store.writable_path(name)


def _answer(store: Store, name: str, rows: list[dict[str, Any]] | None = None) -> Kept:
    # of all hosts together nothing is kept
    recording = store.recording(name) if name in store.names else None
    if recording is None or recording.in_archive:
        return Kept(recording=name, kept=[], limits=None)
    path = store.path(name)
    return Kept.model_validate(
        {
            "recording": name,
            "kept": manage.list_kept(path) if rows is None else rows,
            "limits": manage.limits(path),
        }
    )
