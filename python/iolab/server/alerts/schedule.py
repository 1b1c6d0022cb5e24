# SPDX-License-Identifier: Apache-2.0
"""Times of day at which an alert counts: `08:00-18:00 mon-fri`, `22:00-06:00 all`."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from ...errors import UsageError

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
        """Whether a moment, in the time that is meant, lies within."""
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
    found = _FORM.fullmatch(words)
    if found is None:
        raise UsageError(f"'{text}' is not a time of day", hint="such as 08:00-18:00 mon-fri")
    first, until = (int(found[place]) * 60 + int(found[place + 1]) for place in (1, 3))
    # an end of 24:00 is the day's
    if int(found[2]) > 59 or int(found[4]) > 59 or first >= 24 * 60 or until > 24 * 60:
        raise UsageError(f"'{text}' is not a time of day", hint="hours go from 00:00 to 24:00")
    return Hours(first, until, _days(found[5] or "all", text))


def _days(words: str, text: str) -> frozenset[int]:
    found: set[int] = set()
    for word in words.split(","):
        begin, dash, end = word.partition("-")
        if word in _SETS:
            found |= _SETS[word]
        elif begin in DAYS and (not dash or end in DAYS):
            first, last = DAYS.index(begin), DAYS.index(end or begin)
            found |= {(first + place) % 7 for place in range((last - first) % 7 + 1)}
        else:
            raise UsageError(
                f"'{word}' is not a day, in '{text}'",
                hint=f"there are {', '.join(DAYS)}, {', '.join(_SETS)}; mon-fri, sat,sun",
            )
    return frozenset(found)
