# SPDX-License-Identifier: Apache-2.0
"""A worksheet as data: what an address and a saved worksheet hold, what is shared of it, and the list
of saved ones. The page's types are made from these."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from iolab.base.documents import Model
from iolab.base.errors import FormatError

from .json_store import JsonStore
from .models import VersionedModel
from .store import NotServed

MOST_GRAPHS = 64
MOST_HIGHLIGHTS = 1000
MOST_QUESTIONS = 256
MOST_COLOURS = 120
COLOURS = 12
"""Colours of names on the page."""
CROPS = (0, 0.0001, 0.001, 0.01, 0.05)

Text = Annotated[str, StringConstraints(max_length=4096)]
Moment = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Place = Annotated[int, Field(ge=0, lt=COLOURS)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(pattern=r"^(?:[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63})?$")]
"""Of a worksheet; empty before it has one."""


def _crop(value: float) -> float:
    if value not in CROPS:
        raise ValueError(f"a share above a map is one of {', '.join(str(crop) for crop in CROPS)}")
    return value


class Span(Model):
    """A part of time in ns on the recording's clock; `until`, which is later than `from`, is itself
    left out."""

    model_config = ConfigDict(
        extra="forbid", json_schema_serialization_defaults_required=True, populate_by_name=True
    )

    from_: Moment = Field(alias="from")
    until: Moment

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.from_ >= self.until:
            raise ValueError("a span of time begins before it ends")
        return self


class Live(Model):
    """So many seconds up to now."""

    live: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Rows(Model):
    """A range of values, in the unit of a map."""

    low: Number
    high: Number


class GraphSpec(Model):
    """A graph as plain data.

    painter: "" leaves it to the answer: a heat map, areas of what adds up, lines of all else;
    "line" is one number where the statistic is a map, "percentiles" its percentiles over time.
    scale (of the vertical axis): "" leaves it to the answer. by: of heat maps the field with the
    values that the left panel lists, or "". source: of the numbers, where several answer; "" is the
    default. rows: vertical zoom. overlays: percentiles and mean over a heat map.
    width: columns of the page; height: of the plot, in CSS pixels. synced: whether it shows the
    worksheet's time, otherwise its own `span`.
    """

    id: Annotated[str, StringConstraints(max_length=64)]
    statistic: Text
    source: Text
    painter: Literal["", "line", "stack", "heat", "percentiles"]
    by: Text
    highlights: Annotated[list[Text], Field(max_length=MOST_HIGHLIGHTS)]
    mode: Literal["highlight", "isolate", "exclude", "rainbow"]
    colour: Literal["rank", "log", "linear"]
    crop: Annotated[float, AfterValidator(_crop), Field(json_schema_extra={"enum": list(CROPS)})]
    scale: Literal["", "log", "linear"]
    rows: Rows | None
    overlays: bool
    panel: Literal["average", "second"]
    hierarchy: Literal["", "tree", "icicle"]
    width: Literal[1, 2]
    height: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
    synced: bool
    span: Span | None


class Worksheet(Model):
    """Graphs over a time: so many seconds up to now, or a part that stays. compare: the part of
    time that this one is compared with. colours: places among the page's colours of names that do
    not have their own, as "device=sda"; two names cannot share one."""

    model_config = ConfigDict(
        extra="forbid", json_schema_serialization_defaults_required=True, populate_by_name=True
    )

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    recording: Text
    time: Live | Span
    compare: Span | None
    colours: dict[str, Place] = Field(default_factory=dict, max_length=MOST_COLOURS)
    graphs: Annotated[list[GraphSpec], Field(max_length=MOST_GRAPHS)]


class SavedFacts(Model):
    """A saved worksheet; changed_ns counts from 1970. `problem`: why it can't be opened, else
    empty."""

    name: str
    recording: str
    graphs: int
    changed_ns: int
    problem: str


class SavedWorksheets(VersionedModel):
    """Worksheets that are saved, by name."""

    worksheets: list[SavedFacts]


class Sharing(Model):
    """What is to be shared: a worksheet, and the questions that it answers, each as path and
    query below the API."""

    worksheet: Worksheet
    questions: Annotated[
        list[Annotated[str, StringConstraints(max_length=32 * 1024)]],
        Field(max_length=MOST_QUESTIONS),
    ]


def list_saved(documents: JsonStore[Worksheet]) -> SavedWorksheets:
    """What is saved, by name; what can't be read is listed with its problem."""
    facts = []
    for name in documents.names():
        try:
            worksheet, changed = documents.read(name)
            facts.append(
                SavedFacts(
                    name=name,
                    recording=worksheet.recording,
                    graphs=len(worksheet.graphs),
                    changed_ns=changed,
                    problem="",
                )
            )
        except NotServed:
            continue  # removed meanwhile
        except FormatError as error:
            facts.append(
                SavedFacts(name=name, recording="", graphs=0, changed_ns=0, problem=error.message)
            )
    return SavedWorksheets(worksheets=facts)
