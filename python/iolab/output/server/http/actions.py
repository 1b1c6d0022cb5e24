# SPDX-License-Identifier: Apache-2.0
"""What can be changed through the service: worksheets, alerts, what is kept. Each path with its
document and the function that does it.

Also marks that users set on a recording, and kept statistics as the page manages them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from iolab.base.documents import Model
from iolab.base.errors import UsageError
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files.definitions import LONGEST_S
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.user_marks import add_mark, remove_mark

from ..alerts.alert import RESERVED, Alert, AlertLog, AlertPreview, Alerts, PreviewRequest
from ..alerts.commands import Commands
from ..alerts.watch import MOST, LogFile, Watch
from ..base import worksheet
from ..base.json_store import NAMES, JsonStore, folder
from ..base.models import Marks, VersionedModel
from ..base.start_models import CellRuns, HistoryAnswer, Start
from ..base.store import Store
from ..base.worksheet import Moment, SavedWorksheets, Sharing, Text, Worksheet
from ..queries import listing
from ..queries.parameters import RECORDING, Parameter, StatisticText, Words, recording_of
from ..reports import share
from ..reports.studies import FILE as STUDIES_FILE
from ..reports.studies import StudyIndex
from .start_api import CELL, HISTORY, METRICS, StartPage

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


def add_kept(store: Store, change: KeepAdd) -> Kept:
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


LONGEST_LABEL = 200
LONGEST_NOTE = 4000

Label = Annotated[
    str,
    StringConstraints(
        pattern=r"^[^\x00-\x1f]*[^\x00-\x20][^\x00-\x1f]*$", max_length=LONGEST_LABEL
    ),
]
Time = Annotated[int, Field(ge=0, lt=2**63)]


class MarkAdd(Model):
    """Name a span of time, or a moment, where both ends are equal; ns on the recording's clock."""

    recording: Text
    label: Label
    from_ns: Time
    until_ns: Time
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)]


class MarkRemove(Model):
    """Remove a user's mark, by its label and begin."""

    recording: Text
    label: Annotated[str, StringConstraints(max_length=LONGEST_LABEL)]
    from_ns: Time


def set_mark(store: Store, change: MarkAdd) -> Marks:
    """Set a mark."""
    name, recording = _recording(store, change.recording)
    add_mark(recording, change.label, change.from_ns, change.until_ns, change.note)
    return listing.marks(store, {"recording": name})


def delete_mark(store: Store, change: MarkRemove) -> Marks:
    """Remove a mark."""
    name, recording = _recording(store, change.recording)
    remove_mark(recording, change.label, change.from_ns)
    return listing.marks(store, {"recording": name})


def _recording(store: Store, name: str) -> tuple[str, Recording]:
    """Its name and the recording."""
    name = recording_of(store, {"recording": name} if name else {})
    recording = store.recording(name)
    if recording is None:
        raise UsageError(
            "a trace has no marks", where=name, hint="iolab import makes a recording of it"
        )
    store.writable_path(name)
    return name, recording


Method = Literal["GET", "PUT", "POST", "DELETE"]


@dataclass(frozen=True)
class AppState:
    """What is served, where worksheets are saved, the watch over alerts, and the start page."""

    store: Store
    worksheets: JsonStore[Worksheet]
    watch: Watch
    start: StartPage


def state_in(
    store: Store,
    home: Path,
    log: Path,
    commands: Commands | None = None,
    cache: Path | None = None,
) -> AppState:
    """The state of a service with its documents below a directory. log: file of alert messages.
    commands: programs that alerts may run. cache: directory of the index of studies; by default
    that of the documents."""
    watch = Watch(store, JsonStore(home / "alerts", Alert, "alert", MOST), LogFile(log), commands)
    index = StudyIndex(store, (home if cache is None else cache) / STUDIES_FILE)
    worksheets = JsonStore(home / "worksheets", Worksheet, "worksheet")
    return AppState(store, worksheets, watch, StartPage(store, index))


def state_of_user(store: Store, commands: Commands | None = None) -> AppState:
    """The state of who runs this. commands: that alerts may run."""
    return state_in(
        store,
        folder(os.environ),
        folder(os.environ, "STATE", ".local/state") / "alerts.jsonl",
        commands,
        folder(os.environ, "CACHE", ".cache"),
    )


@dataclass(frozen=True)
class Action:
    """A path that needs more than what is served, or changes something.

    Attributes:
        method, path: below the API's prefix; words in braces are parameters of place "path". about:
        in one line. act: does it, given the state, the parameters and the document, None where
        there is none. parameters: that it takes. body: model of the document that it takes. model:
        of its answer, None where there is none or only `kind`. file: name under which a browser
        saves the answer.
    """

    method: Method
    path: str
    about: str
    act: Callable[[AppState, Words, Any], Model | str | None]
    parameters: tuple[Parameter, ...] = ()
    body: type[Model] | None = None
    model: type[Model] | None = None
    kind: str = "application/json"
    file: str = ""


_NAME = Parameter(
    "name",
    "Of what is saved.",
    {"type": "string", "pattern": f"^{NAMES}$"},
    required=True,
    place="path",
)
ALERT = replace(
    _NAME,
    about=f"Of an alert; '{RESERVED}' is none.",
    schema={**_NAME.schema, "not": {"const": RESERVED}},
)
"""The name of an alert in a path."""


def _keep(name: str, about: str, body: type[Model], change: Callable[[Store, Any], Kept]) -> Action:
    return Action(
        "POST",
        f"/kept/{name}",
        about,
        lambda state, words, document: change(state.store, document),
        body=body,
        model=Kept,
    )


ACTIONS = (
    Action(
        "GET",
        "/start",
        "Everything that is served: studies with their headlines, histories, recordings.",
        lambda state, words, _: state.start.start(),
        model=Start,
    ),
    Action(
        "GET",
        "/history",
        "Series of a history with their changes.",
        lambda state, words, _: state.start.history(words),
        (HISTORY, METRICS),
        model=HistoryAnswer,
    ),
    Action(
        "GET",
        "/cell-runs",
        "The runs of a cell in an entry of a history.",
        lambda state, words, _: state.start.runs(words),
        CELL,
        model=CellRuns,
    ),
    Action(
        "GET",
        "/worksheets",
        "Worksheets that are saved.",
        lambda state, words, _: worksheet.list_saved(state.worksheets),
        model=SavedWorksheets,
    ),
    Action(
        "GET",
        "/worksheets/{name}",
        "A saved worksheet.",
        lambda state, words, _: state.worksheets.read(words["name"])[0],
        (_NAME,),
        model=Worksheet,
    ),
    Action(
        "PUT",
        "/worksheets/{name}",
        "Save a worksheet.",
        lambda state, words, sheet: state.worksheets.write(words["name"], sheet),
        (_NAME,),
        Worksheet,
        Worksheet,
    ),
    Action(
        "DELETE",
        "/worksheets/{name}",
        "Delete a saved worksheet.",
        lambda state, words, _: state.worksheets.remove(words["name"]),
        (_NAME,),
    ),
    Action(
        "POST",
        "/share",
        "A worksheet as one HTML file, with the answers to these questions.",
        lambda state, words, wanted: share.share(state.store, wanted),
        body=Sharing,
        kind="text/html",
        file="worksheet.html",
    ),
    Action(
        "GET",
        "/kept",
        "Statistics that are kept of a recording.",
        lambda state, words, _: list_kept(state.store, words),
        (RECORDING,),
        model=Kept,
    ),
    _keep("add", "Keep a statistic.", KeepAdd, add_kept),
    _keep("pause", "Pause a kept statistic.", KeepChange, pause),
    _keep("resume", "Resume a kept statistic.", KeepChange, resume),
    _keep("prune", "Remove what is kept from before a moment.", KeepPrune, prune),
    _keep(
        "limits",
        "Limit what all kept statistics take together, and for how long they stay.",
        KeepLimits,
        limit,
    ),
    _keep(
        "drop",
        "Keep a statistic no more, and remove what was kept of it.",
        KeepChange,
        drop,
    ),
    Action(
        "POST",
        "/marks/add",
        "Mark a span of time; all viewers of the recording see it.",
        lambda state, words, change: set_mark(state.store, change),
        body=MarkAdd,
        model=Marks,
    ),
    Action(
        "POST",
        "/marks/remove",
        "Remove a mark that a user set.",
        lambda state, words, change: delete_mark(state.store, change),
        body=MarkRemove,
        model=Marks,
    ),
    Action(
        "GET",
        "/alerts",
        "Alerts and their states.",
        lambda state, words, _: state.watch.list_alerts(),
        model=Alerts,
    ),
    Action(
        "GET",
        "/alerts/log",
        "What was said of alerts lately.",
        lambda state, words, _: state.watch.log.latest(),
        model=AlertLog,
    ),
    Action(
        "POST",
        "/alert-preview",
        "What an alert would have said in a span of time.",
        lambda state, words, request: state.watch.preview(
            request.alert, request.from_ns, request.until_ns
        ),
        body=PreviewRequest,
        model=AlertPreview,
    ),
    Action(
        "PUT",
        "/alerts/{name}",
        "Watch for something.",
        lambda state, words, alert: state.watch.put(words["name"], alert),
        (ALERT,),
        Alert,
        Alerts,
    ),
    Action(
        "DELETE",
        "/alerts/{name}",
        "Watch for it no more.",
        lambda state, words, _: state.watch.remove(words["name"]),
        (ALERT,),
    ),
)
"""Every path except those that answer a question."""
