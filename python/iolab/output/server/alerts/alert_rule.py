# SPDX-License-Identifier: Apache-2.0
"""What an alert makes of a statistic's values, second by second: a pure function of its state and of
what came, at the times of day at which it counts."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import Literal

from iolab.base.errors import UsageError
from iolab.recordings.heatmap.ticks import quantity

from .alert import Alert

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SETS = {"all": frozenset(range(7)), "weekdays": frozenset(range(5)), "weekends": frozenset({5, 6})}
_FORM = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})(?: ([a-z,-]+))?")


@dataclass(frozen=True)
class Hours:
    """Minutes of a day from `first` up to, not including, `until`, on days of the week (Monday is
    0). Where `until` is not after `first` they last into the next day, which need not be one of the
    days."""

    first: int
    until: int
    days: frozenset[int]

    def hold(self, moment: datetime.datetime) -> bool:
        """Whether a moment, in the time that is meant, is within."""
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if self.first < self.until:
            return day in self.days and self.first <= minute < self.until
        return (day in self.days and minute >= self.first) or (
            (day - 1) % 7 in self.days and minute < self.until
        )


def parse_hours(text: str) -> Hours | None:
    """The hours of a text; None of an empty one: always. UsageError where it is none."""
    words = " ".join(text.lower().split())
    if not words:
        return None
    match = _FORM.fullmatch(words)
    if match is None:
        raise UsageError(f"'{text}' is not a time of day", hint="such as 08:00-18:00 mon-fri")
    first, until = (int(match[place]) * 60 + int(match[place + 1]) for place in (1, 3))
    # an end of 24:00 is the day's
    if int(match[2]) > 59 or int(match[4]) > 59 or first >= 24 * 60 or until > 24 * 60:
        raise UsageError(f"'{text}' is not a time of day", hint="hours go from 00:00 to 24:00")
    return Hours(first, until, _days(match[5] or "all", text))


def _days(words: str, text: str) -> frozenset[int]:
    days: set[int] = set()
    for word in words.split(","):
        begin, dash, end = word.partition("-")
        if word in _SETS:
            days |= _SETS[word]
        elif begin in DAYS and (not dash or end in DAYS):
            first, last = DAYS.index(begin), DAYS.index(end or begin)
            days |= {(first + place) % 7 for place in range((last - first) % 7 + 1)}
        else:
            raise UsageError(
                f"'{word}' is not a day, in '{text}'",
                hint=f"there are {', '.join(DAYS)}, {', '.join(_SETS)}; mon-fri, sat,sun",
            )
    return frozenset(days)


State = Literal["clear", "pending", "raised", "quiet", "unknown"]
Event = Literal["raised", "again", "clear"]

SECOND = 10**9
MINUTE = 60 * SECOND


@dataclass(frozen=True)
class Reading:
    """A column of time with its value, None where nothing was recorded. during: whether the alert
    counts at that time of day."""

    from_ns: int
    until_ns: int
    value: float | None
    during: bool = True


@dataclass(frozen=True)
class Standing:
    """The state of an alert.

    Attributes:
        state: since `since_ns`. turned_ns: since when values are within the limit again while it is
        raised, or None. said_ns: time of the last message while raised. value: the latest known
        value.
    """

    state: State = "unknown"
    since_ns: int = 0
    turned_ns: int | None = None
    said_ns: int = 0
    value: float | None = None


def beyond(alert: Alert, value: float) -> bool:
    """Whether a value exceeds the limit, or falls below it."""
    return (
        value > alert.exceeds if alert.exceeds is not None else value < (alert.falls_below or 0.0)
    )


def step(alert: Alert, before: Standing, reading: Reading) -> tuple[Standing, Event | None]:
    """The state after another column, and the message.

    It is raised once values were beyond the limit for `for_seconds` without a break, and clear once
    they were not for as long. A second of which nothing was recorded breaks what is pending, and
    changes nothing else.
    """
    if not reading.during:
        kept = before if before.state == "quiet" else Standing("quiet", reading.from_ns)
        return replace(kept, value=reading.value if reading.value is not None else kept.value), None
    if reading.value is None:
        if before.state == "pending":
            return Standing("clear", reading.from_ns, value=before.value), None
        return replace(before, turned_ns=None), None
    now = replace(before, value=reading.value)
    if now.state == "raised":
        return _step_raised(alert, now, reading)
    if not beyond(alert, reading.value):
        return (
            now if now.state == "clear" else Standing("clear", reading.from_ns, value=reading.value)
        ), None
    if now.state != "pending":
        now = Standing("pending", reading.from_ns, value=reading.value)
    if reading.until_ns - now.since_ns >= alert.for_seconds * SECOND:
        return replace(
            now, state="raised", since_ns=reading.until_ns, said_ns=reading.until_ns
        ), "raised"
    return now, None


def _step_raised(alert: Alert, now: Standing, reading: Reading) -> tuple[Standing, Event | None]:
    assert reading.value is not None
    if not beyond(alert, reading.value):
        turned = now.turned_ns if now.turned_ns is not None else reading.from_ns
        if reading.until_ns - turned >= alert.for_seconds * SECOND:
            return Standing("clear", reading.until_ns, value=reading.value), "clear"
        return replace(now, turned_ns=turned), None
    now = replace(now, turned_ns=None)
    if alert.repost_minutes and reading.until_ns - now.said_ns >= alert.repost_minutes * MINUTE:
        return replace(now, said_ns=reading.until_ns), "again"
    return now, None


def sentence(alert: Alert, unit: str = "") -> str:
    """The alert in words. unit: of the limit, "ns" or "B", where it is of a map."""
    limit = alert.exceeds if alert.exceeds is not None else alert.falls_below or 0.0
    # of a map the limit is a time or a size
    words = quantity(limit, unit) if alert.percentile else f"{limit:g}"
    what = f"{'exceeds' if alert.exceeds is not None else 'falls below'} {words}"
    of = f"{alert.percentile} of {alert.statistic}" if alert.percentile else alert.statistic
    parts = [f"{of} {what} for at least {alert.for_seconds} s"]
    if alert.only_during.strip():
        parts.append(f"only during {alert.only_during.strip()}")
    if alert.repost_minutes:
        parts.append(f"said again every {alert.repost_minutes} min")
    if alert.also_when_clear:
        parts.append("also when clear")
    does = [
        f"runs {action.name}"
        if action.do == "command"
        else f"keeps {action.statistic} for {action.minutes} min"
        for action in alert.actions
        if action.do != "log"
    ]
    return ", ".join(parts) + (f"; {' and '.join(does)}" if does else "")
