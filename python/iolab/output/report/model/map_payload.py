# SPDX-License-Identifier: Apache-2.0
"""What the report's page is given of the runs' heat maps: read when the reader comes to them."""

from __future__ import annotations

from typing import Literal

from iolab.base.documents import Model
from iolab.recordings.heatmap.wire import HeatMapGroup, ThemeColours

Seen = Literal["fio", "block", "zfs"]


class RunMap(Model):
    """A map of a group: of which run (its place in `Payload.runs.ids`), and who saw the I/Os: fio,
    the block layer, or OpenZFS at its vdevs."""

    run: int
    variant: str
    repetition: int
    seen: Seen


class CellMaps(Model):
    """Maps of one y and one cell, of all variants and repetitions on the same axes; `of` is
    parallel to `group.maps`."""

    of: list[RunMap]
    group: HeatMapGroup


class MapCell(Model):
    """A combination of factor levels with its maps."""

    title: str
    maps: list[CellMaps]


class Maps(Model):
    """The maps of all runs that have some, by cell; `notes` say what was left out."""

    light: ThemeColours
    dark: ThemeColours
    cells: list[MapCell]
    notes: list[str]
