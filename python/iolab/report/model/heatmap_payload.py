"""What the page of heat maps is given: counts, bounds, finished lines and colours. The page joins cells and picks colours."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from .payload import Model

Numbers: TypeAlias = Annotated[list[int], Field(json_schema_extra={"tsType": "ArrayLike<number>"})]
"""Whole numbers that the page may hold as an array of one type, as it gets them in binary."""


class SparseCounts(Model):
    """Counts by column: those of column c are `rows[k]`, `counts[k]` for k from `starts[c]` to `starts[c + 1]`."""

    starts: Numbers
    rows: Numbers
    counts: Numbers


class PartCounts(Model):
    """The counts of one value of a dimension, such as op = read."""

    name: str
    cells: SparseCounts


class DimensionParts(Model):
    """A dimension and what its values did; together they are the map."""

    name: str
    parts: list[PartCounts]


class LossesOfKind(Model):
    """What was lost of a kind: records that were dropped, those that could not be read, or starts and completions without their other
    half. `count`: how many in all, as far as anybody knows; `columns`: (column, how many), ascending, 0 where nobody knows."""

    kind: Literal["lost", "damaged", "unpaired"]
    count: int
    columns: list[tuple[int, int]]


class OverlayLevel(Model):
    """Percentiles and mean where `joined` columns are one: a row of values for each of the group's `lines`, null where nothing was."""

    joined: int
    values: list[list[float | None]]


class HeatMapCounts(Model):
    """One map. `gaps` are spans of columns without any I/O where some was due, `unrecorded` those in which nothing was recorded; `lost`
    is what was lost in these columns, by kind; `begins` says when, where that is known."""

    label: str
    begins: str
    columns: int
    events: int
    cells: SparseCounts
    gaps: list[tuple[int, int]]
    unrecorded: list[tuple[int, int]]
    lost: list[LossesOfKind]
    overlays: list[OverlayLevel]
    dimensions: list[DimensionParts]
    notes: list[str]


class HeatMapGroup(Model):
    """Maps of one y on common axes: `bounds` are the rows' bounds in `unit`, one more than rows; `low`..`high` is shown at first.

    `least` is where a logarithmic axis begins; `crops` are (share left above, where the map then ends). `lines` name the overlays;
    of two maps the page shows the difference, second minus first, where `difference` says so.
    """

    y: Literal["latency", "offset", "size", "queue", "utilization"]
    title: str
    unit: Literal["ns", "B", ""]
    weight: Literal["count", "time", "bytes"]
    interval_ns: float
    columns: int
    bounds: list[float]
    y_scale: Literal["log", "linear"]
    color: Literal["rank", "log", "linear"]
    low: float
    high: float
    least: float
    crops: list[tuple[float, float]]
    lines: list[str]
    show_lines: bool
    difference: bool
    maps: list[HeatMapCounts]


class ThemeColours(Model):
    """Colours for canvases; palettes are `rrggbb` after each other, from few to many, or far fewer to far more."""

    background: str
    text: str
    faint: str
    grid: str
    hatch: str
    palette: str
    signed: str
    lines: list[str]
    lost: str


class HeatMapPage(Model):
    """The page's document."""

    generator: str
    title: str
    conditions: list[str]
    notes: list[str]
    light: ThemeColours
    dark: ThemeColours
    groups: list[HeatMapGroup]
