# SPDX-License-Identifier: Apache-2.0
"""Single I/Os: lists of them, and one through the layers."""

from __future__ import annotations

from typing import Any

from ...errors import UsageError
from ...recording.read.recording import Recording
from ...statistics.ask.attribution import Rectangle
from ...statistics.ask.io_layers import RelatedIo, layers_of
from ...statistics.ask.single_ios import (
    LARGEST_PAGE,
    ORDERS,
    PAGE,
    as_data,
    io_data,
    list_ios,
)
from ..base.models import IoLayers, IoList
from ..base.store import Store
from .drill import bounds_of
from .parameters import LAST_SKIP
from .query_params import Words, needed, number, recording_of, request_of


def ios(store: Store, words: Words) -> IoList:
    """A page of the I/Os inside a rectangle; low and high bound the values of the statistic's
    map."""
    request = request_of(store, words)
    field = request.statistic.breakdown
    low, high = bounds_of(words, field) if field is not None else (None, None)
    order = words.get("order", "time")
    if order not in ORDERS:
        raise UsageError(
            f"'{order[:40]}' is no order", where="order", hint=f"there are {', '.join(ORDERS)}"
        )
    page = list_ios(
        request.opened,
        request.statistic,
        Rectangle(request.from_ns, request.until_ns, low, high),
        source=request.question.source,
        order=order,
        descending=words.get("descending") == "true",
        skip=number(words, "skip", 0, 0, LAST_SKIP),
        limit=number(words, "limit", PAGE, 1, LARGEST_PAGE),
    )
    about = {"recording": request.recording, "statistic": str(request.statistic)}
    return IoList.model_validate({**about, **as_data(page)})


def io_layers(store: Store, words: Words) -> IoLayers:
    """One I/O with the calls above it and the I/Os below it."""
    name = recording_of(store, words)
    opened = store.open(name)
    if not isinstance(opened, Recording):
        raise UsageError(
            "a trace holds one layer", where=name, hint="recordings of block and syscall hold two"
        )
    layers = layers_of(opened, needed(words, "id"))

    def as_item(item: RelatedIo) -> dict[str, Any]:
        return {
            "io": io_data(item.io),
            "match": item.match,
            "start_ns": item.io.start_ns - layers.io.start_ns,
            "end_ns": item.io.end_ns - layers.io.start_ns,
        }

    return IoLayers.model_validate(
        {
            "recording": name,
            "io": io_data(layers.io),
            "above": [as_item(item) for item in layers.above],
            "below": [as_item(item) for item in layers.below],
            "above_left": layers.above_left,
            "below_left": layers.below_left,
            "elsewhere": layers.elsewhere,
            "layers": list(layers.layers),
            "notes": list(layers.notes),
        }
    )
