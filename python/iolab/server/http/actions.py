# SPDX-License-Identifier: Apache-2.0
"""What can be changed through the service: worksheets, alerts, what is kept. Each path with its
document and the function that does it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ...documents import Model
from ..alerts.alert import RESERVED, Alert, AlertLog, AlertPreview, Alerts, PreviewRequest
from ..alerts.alert_log import LogFile
from ..alerts.commands import Commands
from ..alerts.watch import MOST, Watch
from ..base import worksheet
from ..base.json_store import NAMES, JsonStore, folder
from ..base.models import Marks
from ..base.start_models import CellRuns, HistoryAnswer, Start
from ..base.store import Store
from ..base.worksheet import SavedWorksheets, Sharing, Worksheet
from ..queries.parameters import RECORDING, Parameter, Words
from ..reports import share
from ..reports.studies import FILE as STUDIES_FILE
from ..reports.studies import StudyIndex
from . import kept_api, marks_api
from .kept_api import KeepAdd, KeepChange, KeepLimits, KeepPrune, Kept
from .marks_api import MarkAdd, MarkRemove
from .start_api import CELL, HISTORY, METRICS, StartPage

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
        lambda state, words, _: kept_api.list_kept(state.store, words),
        (RECORDING,),
        model=Kept,
    ),
    _keep("add", "Keep a statistic.", KeepAdd, kept_api.add),
    _keep("pause", "Pause a kept statistic.", KeepChange, kept_api.pause),
    _keep("resume", "Resume a kept statistic.", KeepChange, kept_api.resume),
    _keep("prune", "Remove what is kept from before a moment.", KeepPrune, kept_api.prune),
    _keep(
        "limits",
        "Limit what all kept statistics take together, and for how long they stay.",
        KeepLimits,
        kept_api.limit,
    ),
    _keep(
        "drop",
        "Keep a statistic no more, and remove what was kept of it.",
        KeepChange,
        kept_api.drop,
    ),
    Action(
        "POST",
        "/marks/add",
        "Mark a span of time; all viewers of the recording see it.",
        lambda state, words, change: marks_api.add(state.store, change),
        body=MarkAdd,
        model=Marks,
    ),
    Action(
        "POST",
        "/marks/remove",
        "Remove a mark that a user set.",
        lambda state, words, change: marks_api.remove(state.store, change),
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
