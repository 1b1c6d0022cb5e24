# SPDX-License-Identifier: Apache-2.0
"""What the report's page is given: plain values and finished texts, as pydantic models.

The page selects and lays out, it never computes: every number here is already text in its readable
unit (with the bare value where the page sorts or draws). `schema.py` turns these models into JSON
Schema and TypeScript types.

The page gets two documents. `Payload` is needed at once; `Details` (observations and per-second
series of every run) is read when a run is opened. Runs are referred to by their place in
`Payload.runs.ids`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from iolab.base.documents import Model

from .cover_payload import Cover
from .statements import LevelName as LevelName
from .statements import Sentence as Sentence
from .statements import Tone as Tone

SCHEMA = 1

ReasonLevel = Literal["NOTE", "UNJUDGED", "SUSPECT", "INVALID"]
Scalar = str | float | int | bool | None


class SummaryPart(Model):
    """Statements under one heading (a variant against the baseline, or what to know first)."""

    title: str
    sentences: list[Sentence]


class VariantInfo(Model):
    """An arm of the comparison."""

    name: str
    baseline: bool
    runs: int


class LevelCount(Model):
    """How many runs have a level of trust, and what the level means."""

    level: LevelName
    runs: int
    meaning: str


class ReasonGroup(Model):
    """Runs of which a gate said the same; `text` is the gate's words for the first of them."""

    code: str
    level: ReasonLevel
    text: str
    runs: list[int]


class TableCell(Model):
    """One place of a table.

    `text` is the number in the column's unit and `sub` its interval; `marks` are numbers of the
    table's footnotes, `runs` the runs behind the number. `level` is the worst verdict among them;
    `decided` is null where no test was made. `shade` is that of the cover's matrix.
    """

    text: str
    sub: str = ""
    tone: Tone = "plain"
    decided: bool | None = None
    shade: int = 0
    level: LevelName = "OK"
    saturated: bool = False
    marks: list[int] = Field(default_factory=list)
    runs: list[int] = Field(default_factory=list)


class TableColumn(Model):
    """A column within a group; `kind` says what its cells hold."""

    title: str
    kind: Literal["value", "change", "test", "text"]


class TableGroup(Model):
    """Columns that belong to one level of the column factors; an untitled group has no level."""

    title: str
    columns: list[TableColumn]


class TableRow(Model):
    """A level of the row factors (or a summary over the rows); one cell per column, null where
    nothing was measured."""

    title: str
    summary: bool
    cells: list[TableCell | None]


class Table(Model):
    """A comparison at one level of the table factors."""

    title: str
    row_title: str
    groups: list[TableGroup]
    rows: list[TableRow]


class Dataset(Model):
    """Rows by column. A column that never changes is a single value in `constants`."""

    length: int
    columns: dict[str, list[Any]]
    constants: dict[str, Any]


class ChartItem(Model):
    """A chart: a Vega-Lite specification with names of datasets as data; `table` names the
    dataset of its CSV."""

    name: str
    title: str
    caption: str
    spec: dict[str, Any]
    data: list[str]
    table: str
    table_columns: list[str]


class Section(Model):
    """What the page shows of one metric, or of a view over several (throughput against latency,
    percentiles)."""

    name: str
    title: str
    kind: Literal["metric", "view"]
    headline: bool
    unit: str
    better: Literal["higher", "lower"] | None
    lead: str
    notes: list[str]
    footnotes: list[str]
    tables: list[Table]
    charts: list[ChartItem]


class RunColumn(Model):
    """A column of the table of runs: bare `values` to sort by and, where they differ from them,
    `texts` to show."""

    key: str
    title: str
    unit: str
    numeric: bool
    values: list[Scalar]
    texts: list[str] | None


class RunTable(Model):
    """Every run; all lists are of one length and order."""

    ids: list[str]
    levels: list[LevelName]
    columns: list[RunColumn]


class Fact(Model):
    """A fact of the environment; several `values` where runs differ in it."""

    name: str
    values: list[str]
    runs: list[int]


class Assumption(Model):
    """Something that a reader of files had to assume, and in how many runs."""

    text: str
    runs: int


class TextBlock(Model):
    """A titled piece of verbatim text: a job, a command."""

    title: str
    text: str


class Grid(Model):
    """Plain words in rows; the first column names its row."""

    title: str
    note: str
    head: list[str]
    rows: list[list[str]]


class TargetPart(Model):
    """What was measured: what each target says of itself, then its settings, devices and
    controllers."""

    states: list[TextBlock]
    tables: list[Grid]


class SessionsPart(Model):
    """Arms that were not measured in turn, or results directories that are compared: what follows
    for the changes, and in what the arms differ."""

    title: str
    sentences: list[Sentence]
    tables: list[Grid]


class MethodPart(Model):
    """How one kind of number came about."""

    id: str
    title: str
    text: list[str]


class Payload(Model):
    """Everything that the page shows before a run is opened. `elsewhere`: metrics that were
    observed and have no section. `sessions`: null where arms were measured in turn in one
    results directory."""

    schema_version: int = SCHEMA
    generator: str
    title: str
    description: str
    origin: str
    created: str
    variants: list[VariantInfo]
    cover: Cover
    sessions: SessionsPart | None
    summary: list[SummaryPart]
    levels: list[LevelCount]
    reasons: list[ReasonGroup]
    sections: list[Section]
    elsewhere: list[str]
    datasets: dict[str, Dataset]
    themes: dict[str, dict[str, Any]]
    runs: RunTable
    target: TargetPart
    environment: list[Fact]
    assumptions: list[Assumption]
    jobs: list[TextBlock]
    reproduce: list[TextBlock]
    method: list[MethodPart]


class RunReason(Model):
    """What a gate said of a run."""

    code: str
    level: ReasonLevel
    text: str


class Link(Model):
    """A file of the evidence; `href` is relative to the report, or null where the report is
    elsewhere."""

    text: str
    href: str | None


class Line(Model):
    """One series; null where nothing is known. `device` is empty for a sum or mean over devices."""

    device: str
    time: int
    values: list[float | None]


class Strip(Model):
    """Series that share an axis: a quantity as a whole and by device, in the unit named; `note`
    says what was thinned."""

    name: str
    title: str
    unit: str
    note: str
    lines: list[Line]


class RunDetail(Model):
    """One run. `observations` are (metric, value, file, field, original value) as places in
    `Details.texts`; `spans` are stalls and `marks` what was done meanwhile, in seconds since the
    window's start."""

    reasons: list[RunReason]
    facts: list[tuple[str, str]]
    observations: list[tuple[int, int, int, int, int]]
    command: str
    job: str
    links: list[Link]
    assumptions: list[str]
    strips: list[Strip]
    spans: list[tuple[float, float]]
    marks: list[tuple[float, str]]


class Details(Model):
    """Every run, in the order of `Payload.runs.ids`. `times` are shared time bases, seconds since
    the window's start.

    `left_out` says which series are not in the report for their size; empty where all are.
    """

    texts: list[str]
    times: list[list[float]]
    runs: list[RunDetail]
    left_out: str
