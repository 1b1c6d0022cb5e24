# SPDX-License-Identifier: Apache-2.0
"""Alerts as data: sentences of a statistic, a limit and what then happens."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from iolab.base.documents import Model

from ..base.models import Value, VersionedModel
from ..base.worksheet import Moment, Number, Text
from ..queries.parameters import StatisticText

Given = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,63}$")]
RESERVED = "log"
"""No alert's name: the log of alerts has that path."""
MOST_ACTIONS = 8
DAY = 24 * 3600


Percentile = Literal["", "p50", "p90", "p99", "p99.9", "max"]


def _not_reserved(name: str) -> str:
    if name == RESERVED:
        raise ValueError(f"'{RESERVED}' is the path of the log of alerts: choose another name")
    return name


class Log(Model):
    """A line in the log of alerts; there is one in any case."""

    do: Literal["log"]


class Command(Model):
    """Run a command by its name; which ones there are was said when the service was started."""

    do: Literal["command"]
    name: Given


class Keep(Model):
    """Keep a statistic for so many minutes, made of what is being recorded."""

    do: Literal["record"]
    statistic: StatisticText
    minutes: Annotated[int, Field(ge=1, le=60 * 24)]


class Alert(Model):
    """A statistic exceeds or falls below a limit (one of both) for at least so many seconds.

    only_during: such as "08:00-18:00 mon-fri" or "22:00-06:00 all", in the time of the machine that
    serves; "" for always. repost_minutes: say it again after so many minutes, 0 for once.
    also_when_clear: say also when it is over. percentile: of each second of a map, such as
    io.ops[latency], in ns or bytes. "" for a number over time.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"properties": {limit: {"type": "null"}}} for limit in ("exceeds", "falls_below")
            ]
        }
    )

    name: Annotated[
        Given, AfterValidator(_not_reserved), Field(json_schema_extra={"not": {"const": RESERVED}})
    ]
    recording: Text
    statistic: StatisticText
    percentile: Percentile = ""
    exceeds: Number | None
    falls_below: Number | None
    for_seconds: Annotated[int, Field(ge=1, le=DAY)]
    only_during: Annotated[str, StringConstraints(max_length=64)]
    repost_minutes: Annotated[int, Field(ge=0, le=60 * 24 * 31)]
    also_when_clear: bool
    actions: Annotated[
        list[Annotated[Log | Command | Keep, Field(discriminator="do")]],
        Field(max_length=MOST_ACTIONS),
    ]

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if (self.exceeds is None) == (self.falls_below is None):
            raise ValueError("an alert either exceeds a limit or falls below one")
        return self


class AlertState(Model):
    """An alert with its state and the state's begin (ns since 1970): "clear", "pending" (beyond the
    limit, not yet long enough), "raised", "quiet" (not at this time of day) or "unknown" with its
    `problem`. value: the latest. sentence: the alert in words."""

    alert: Alert
    state: Literal["clear", "pending", "raised", "quiet", "unknown"]
    since_ns: int
    value: Value
    unit: str
    problem: str
    sentence: str


class Alerts(VersionedModel):
    """All alerts, by name; commands: those that actions may name."""

    alerts: list[AlertState]
    commands: list[str]


class AlertLine(Model):
    """A message about an alert, ns since 1970. at_ns: the end of the judged second, on the clock of
    the recording, or null. recording, statistic, unit: of the value. Lines of older versions have
    none of these."""

    time_ns: int
    name: str
    event: Literal["raised", "again", "clear", "problem"]
    value: Value
    words: str
    at_ns: int | None = None
    recording: str = ""
    statistic: str = ""
    unit: str = ""


class AlertLog(VersionedModel):
    """The latest lines, the oldest first; `left`: how many earlier ones are still in the log."""

    lines: list[AlertLine]
    left: int


class PreviewRequest(Model):
    """What an alert would have said from `from_ns` up to `until_ns`, ns on the recording's clock."""

    alert: Alert
    from_ns: Moment
    until_ns: Moment


class RaisedSpan(Model):
    """A span in which an alert was raised, ns on the recording's clock."""

    from_ns: int
    until_ns: int


class AlertPreview(VersionedModel):
    """Values of an alert's statistic, second by second (null without a value), and the spans in
    which it would have been raised. The time is cut to the last `MOST_PREVIEWED` seconds."""

    recording: str
    t0_ns: int
    interval_ns: int
    unit: str
    values: list[Value]
    raised: list[RaisedSpan]
    sentence: str


MOST_PREVIEWED = 3600
"""Seconds of a preview."""
