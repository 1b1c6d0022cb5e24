# SPDX-License-Identifier: Apache-2.0
"""Families of metrics as values, and as Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

TEXT = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


@dataclass
class Histogram:
    """Counts by octave: octave k holds the whole numbers from 2^k up to, not including, 2^(k+1); -1
    holds zero.

    Attributes:
        bounds: octaves that a classic bucket ends with, ascending: that of k ends at 2^(k+1) - 1,
        the last whole number in it, so that cumulative counts are exact. native: whether octaves
        are also told as a native histogram. count, sum: over all.
    """

    bounds: range
    native: bool
    octaves: dict[int, int] = field(default_factory=dict)
    count: int = 0
    sum: float = 0.0

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """(upper bound, values up to it), the last bound being infinite."""
        ascending = sorted(self.octaves.items())
        for bound in self.bounds:
            yield (
                float(2 ** (bound + 1) - 1),
                sum(count for octave, count in ascending if octave <= bound),
            )
        yield float("inf"), self.count


@dataclass(frozen=True)
class Sample:
    """A value with its labels."""

    labels: Labels
    value: float | Histogram


@dataclass(frozen=True)
class Family:
    """Metrics of one name."""

    name: str
    about: str
    kind: Literal["counter", "gauge", "histogram"]
    samples: list[Sample]


def text(families: Iterable[Family]) -> bytes:
    """The answer to a scrape as text."""
    lines = []
    for family in families:
        lines += [
            f"# HELP {family.name} {_escaped(family.about, quotes=False)}",
            f"# TYPE {family.name} {family.kind}",
        ]
        for sample in family.samples:
            if not isinstance(sample.value, Histogram):
                lines.append(f"{family.name}{_labels(sample.labels)} {_number(sample.value)}")
                continue
            lines += [
                f"{family.name}_bucket{_labels((*sample.labels, ('le', _number(bound))))} {count}"
                for bound, count in sample.value.cumulative()
            ]
            lines += [
                f"{family.name}_sum{_labels(sample.labels)} {_number(sample.value.sum)}",
                f"{family.name}_count{_labels(sample.labels)} {sample.value.count}",
            ]
    return ("\n".join(lines) + "\n").encode()


def _labels(labels: Labels) -> str:
    return (
        "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"
        if labels
        else ""
    )


def _escaped(words: str, *, quotes: bool = True) -> str:
    found = words.replace("\\", r"\\").replace("\n", r"\n")
    return re.sub('"', r'\\"', found) if quotes else found


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(float(value))
