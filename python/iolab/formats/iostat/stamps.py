# SPDX-License-Identifier: Apache-2.0
"""Time stamps that iostat prints between reports (-t, -T), in the styles of its versions and
locales."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)\s*([AP]M)?", re.IGNORECASE)
_EPOCH = re.compile(r"\d{9,10}")
_DAY = 86400
_LATEST = (2**63 - 1) // 1_000_000_000


def is_stamp(line: str) -> bool:
    """Whether a line between two reports is a time stamp: a clock with its date, or seconds since
    the epoch (-T u)."""
    text = line.strip()
    if _EPOCH.fullmatch(text):
        return True
    return _CLOCK.search(text) is not None and len(text.split()) <= 7


def interval_of(stamps: Sequence[str]) -> float | None:
    """Seconds between reports: the median step of the stamps' clocks; None where they have none."""
    clocks = [seconds for stamp in stamps if (seconds := _seconds(stamp)) is not None]
    steps = [step for before, after in pairwise(clocks) if (step := (after - before) % _DAY) > 0]
    return float(median(steps)) if steps else None


def epoch_ns(stamp: str) -> int | None:
    """Realtime of a stamp that says its zone (S_TIME_FORMAT=ISO, -T u).

    None for all others: local time of a place that the file doesn't name, or a time beyond 64 bits.
    """
    text = stamp.strip()
    if _EPOCH.fullmatch(text):
        return int(text) * 1_000_000_000
    try:
        time = datetime.fromisoformat(text)
        seconds = round(time.timestamp())
        return None if time.tzinfo is None or abs(seconds) > _LATEST else seconds * 1_000_000_000
    except (ValueError, OverflowError, OSError):
        return None


def _seconds(stamp: str) -> float | None:
    text = stamp.strip()
    if _EPOCH.fullmatch(text):
        return float(text)
    match = _CLOCK.search(text)
    if match is None:
        return None
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4].upper() == "PM" else 0)
    return hour * 3600.0 + int(match[2]) * 60 + int(match[3])
