# SPDX-License-Identifier: Apache-2.0
"""What the service that a page shows answers, as numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Cells:
    """A heat map as the service tells it: the beginning of each cell's column and the middle of its
    values, with its I/Os.

    Attributes:
        time_ns: i64[n]; value: f64[n], in ns or bytes; count: i64[n].
        interval_ns: length of a column.
    """

    time_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    count: npt.NDArray[np.int64]
    interval_ns: int

    def within(self, from_ns: int, until_ns: int) -> Cells:
        """Only the columns that lie in a span."""
        return self._of((self.time_ns >= from_ns) & (self.time_ns + self.interval_ns <= until_ns))

    def between(self, low: float, high: float) -> Cells:
        """Only the cells with values in a range."""
        return self._of((self.value >= low) & (self.value < high))

    def _of(self, kept: npt.NDArray[np.bool_]) -> Cells:
        return Cells(self.time_ns[kept], self.value[kept], self.count[kept], self.interval_ns)

    def parts(self, *events: int) -> list[Cells]:
        """The columns of loads that followed each other, of which is known how many I/Os each made.
        Columns in which one ends and the next begins, and those beside them, are left out."""
        order = np.argsort(self.time_ns, kind="stable")
        columns, first = np.unique(self.time_ns[order], return_index=True)
        before = np.concatenate([[0], np.cumsum(np.add.reduceat(self.count[order], first))])
        ends = np.cumsum(events)
        found = []
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            whole = columns[(before[:-1] >= begin) & (before[1:] <= end)][1:-1]
            found.append(self.within(int(whole[0]), int(whole[-1]) + self.interval_ns))
        return found

    @property
    def events(self) -> int:
        return int(self.count.sum())

    def quantile(self, share: float) -> float:
        """The value that this share of the I/Os do not exceed."""
        order = np.argsort(self.value)
        place = np.searchsorted(np.cumsum(self.count[order]), share * self.events)
        return float(self.value[order][place])


def _home(page: Any) -> str:
    home = urlsplit(page.url)
    return f"{home.scheme}://{home.netloc}"


def answer(page: Any, statistic: str, **words: object) -> dict[str, Any]:
    """What the service answers, as the page asks it."""
    response = page.request.get(
        f"{_home(page)}/api/v1/query", params={"statistic": statistic, **words}
    )
    found: dict[str, Any] = json.loads(response.body())
    assert response.ok, found
    return found


def cells(page: Any, statistic: str, **words: object) -> Cells:
    """A heat map that the service answers."""
    found = answer(page, statistic, **words)
    assert found["kind"] == "heat"
    low, high = np.array(found["low"], np.float64), np.array(found["high"], np.float64)
    time = int(found["t0_ns"]) + np.array(found["column"], np.int64) * int(found["interval_ns"])
    return Cells(
        time, (low + high) / 2, np.array(found["count"], np.int64), int(found["interval_ns"])
    )


def lines(
    page: Any, statistic: str, **words: object
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.float64]]]:
    """A series (under "") or a stack by key, each value per second, nan where nothing was recorded;
    with the beginnings of its columns."""
    found = answer(page, statistic, **words)
    keys = (
        {each["key"]: each["values"] for each in found["keys"]}
        if found["kind"] == "stack"
        else {"": found["values"]}
    )
    values = {
        key: np.array([np.nan if each is None else each for each in numbers])
        for key, numbers in keys.items()
    }
    columns = len(next(iter(values.values())))
    return int(found["t0_ns"]) + np.arange(columns, dtype=np.int64) * int(
        found["interval_ns"]
    ), values


def span(page: Any) -> tuple[int, int]:
    """Beginning and end of what was recorded, in ns."""
    [found] = json.loads(page.request.get(f"{_home(page)}/api/v1/recordings").body())["recordings"]
    return int(found["first_ns"]), int(found["last_ns"]) + 1
