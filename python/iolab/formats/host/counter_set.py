# SPDX-License-Identifier: Apache-2.0
"""Counter sets: all that iolab knows of one group of counters, in one class.

A counter set names the lines that are read, how a line is parsed, the columns that readings yield,
and the metrics that columns become. The source that polls it (`sources.counters`), the reader of
its log, the metrics registry, observations and series are all made from it, so that a new one is
one file and a line in `registry.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from iolab.base.metrics import Metric

from ..core.tables import Floats, HostTable
from .counters_log import Reading, detect_log, read_log
from .host_columns import Column, host_table

_SUMMARIES: Mapping[str, Callable[[Floats], float]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
}


@dataclass(frozen=True)
class Measured:
    """A metric that a column yields.

    Attributes:
        metric: what it is called, its unit and direction.
        column: the column of the table that it comes from.
        summary: how the readings of a window become one value; None for a metric that is only
        drawn, or that `summaries` makes. is_drawn: whether the column is shown per second as a
        series of the metric's name.
    """

    metric: Metric
    column: str
    summary: Literal["mean", "min", "max"] | None = "mean"
    is_drawn: bool = False


@dataclass(frozen=True)
class Summary:
    """One value of a metric over the table's readings; `field` and `source_unit` say where it came
    from."""

    metric: str
    value: float
    unit: str
    field: str
    source_unit: str = ""


@dataclass(frozen=True)
class Curve:
    """A metric over time. `time_ns`: realtime of each value, shape (n,), or None for the table's
    own times."""

    metric: str
    unit: str
    values: Floats
    time_ns: NDArray[np.int64] | None = None


class Files(Protocol):
    """What a counter set needs of a host: its files."""

    def read_text(self, path: str) -> str:
        """The file's text; OSError where it can't be read."""

    def is_directory(self, path: str) -> bool:
        """Whether it is a directory."""


class HostLog:
    """A log of a host's readings: `# iolab <name> 1`, read as a `HostTable` by `read`, with the
    metrics that its columns yield."""

    name: ClassVar[str]
    metrics: ClassVar[Sequence[Measured]] = ()

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes at the first line; None while that is not whole."""
        return detect_log(self.name, head)

    def summaries(self, table: HostTable) -> Iterator[Summary]:
        """A value of each metric that the table's readings know something of."""
        for item in self.metrics:
            values = finite_values(table.columns.get(item.column))
            if item.summary is not None and len(values):
                field, unit = table.source_fields[item.column]
                value = float(_SUMMARIES[item.summary](values))
                yield Summary(
                    item.metric.name, value, item.metric.unit, f"{item.summary} of {field}", unit
                )

    def curves(self, table: HostTable) -> Iterator[Curve]:
        """A curve of each metric that is drawn."""
        for field in self.metrics:
            if field.is_drawn and field.column in table.columns:
                yield Curve(
                    field.metric.name, table.units[field.column], table.columns[field.column]
                )


class CounterSet(HostLog, ABC):
    """Counters that the kernel keeps in text files."""

    line: ClassVar[str]
    """What a line of it is, for messages: "a line of /proc/stat"."""
    example: ClassVar[Mapping[str, str]] = {}
    """Files by path, as a kernel writes them: for contract tests."""

    @abstractmethod
    def lines(self, files: Files) -> list[str]:
        """The lines of one reading, as the kernel wrote them, each with its line end. Raises
        OSError where the kernel has none."""

    @abstractmethod
    def parse(self, line: str) -> tuple[str, list[int]] | None:
        """A line's name and numbers; None for a line that is none of the set's."""

    @abstractmethod
    def columns(self, readings: Sequence[Reading]) -> Sequence[Column]:
        """What the readings yield: a value per interval between two of them."""

    def read(self, data: bytes, where: str) -> HostTable:
        """One value per interval between two readings; FormatError as `counters_log.read_log` says."""
        readings, damaged = read_log(self.name, data, where, self.parse, self.line)
        return host_table(self.name, readings, self.columns(readings), damaged)

    def unfit(self, files: Files) -> str | None:
        """Why there is nothing to read on this host, in words; None where there is."""
        try:
            return None if self.lines(files) else "the kernel lists nothing for it"
        except OSError as error:
            return f"{error.filename or 'its file'} can't be read: {error.strerror or error}"

    def counts(self, lines: Sequence[str]) -> Mapping[str, float]:
        """What `live` needs of a reading, by a name of its own; ValueError or LookupError for odd
        lines."""
        return {}

    def live(
        self, passed: float, before: Mapping[str, float], now: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Metrics for whoever watches the run, from two readings `passed` seconds apart, base
        units."""
        return {}


def finite_values(values: Floats | None) -> Floats:
    """The finite values; empty where there are none."""
    return np.empty(0) if values is None else values[np.isfinite(values)]
