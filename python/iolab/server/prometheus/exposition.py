# SPDX-License-Identifier: Apache-2.0
"""Families of metrics as values, in Prometheus' text format (version 0.0.4), and as its protobuf
messages (io.prometheus.client.MetricFamily), each with its length before it."""

from __future__ import annotations

import re
import struct
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
        are also exported as a native histogram. count, sum: over all.
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
            f"# HELP {family.name} {_escape(family.about, quotes=False)}",
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
        "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"
        if labels
        else ""
    )


def _escape(words: str, *, quotes: bool = True) -> str:
    escaped = words.replace("\\", r"\\").replace("\n", r"\n")
    return re.sub('"', r'\\"', escaped) if quotes else escaped


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(float(value))


MEDIA_TYPE = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)
SCHEMA = 0
"""Of native histograms: bucket i holds 2^(i-1) < value <= 2^i."""

_KINDS = {"counter": 0, "gauge": 1, "histogram": 4}
_VALUE = {"counter": 3, "gauge": 2}


def encode(families: Iterable[Family]) -> bytes:
    """The whole answer to a scrape."""
    return b"".join(_varint(len(family)) + family for family in map(_family, families))


def _family(family: Family) -> bytes:
    metrics = b"".join(_bytes(4, _metric(family.kind, sample)) for sample in family.samples)
    return (
        _bytes(1, family.name.encode())
        + _bytes(2, family.about.encode())
        + _encode_whole(3, _KINDS[family.kind])
        + metrics
    )


def _metric(kind: str, sample: Sample) -> bytes:
    labels = b"".join(
        _bytes(1, _bytes(1, name.encode()) + _bytes(2, value.encode()))
        for name, value in sample.labels
    )
    if isinstance(sample.value, Histogram):
        return labels + _bytes(7, _histogram(sample.value))
    return labels + _bytes(_VALUE[kind], _double(1, sample.value))


def _histogram(held: Histogram) -> bytes:
    classic = b"".join(
        _bytes(3, _encode_whole(1, count) + _double(2, bound)) for bound, count in held.cumulative()
    )
    parts = _encode_whole(1, held.count) + _double(2, held.sum) + classic
    if not held.native:
        return parts
    spans, deltas, past, before = b"", b"", 0, 0
    zero = held.octaves.get(-1, 0)
    octaves = sorted(octave for octave, count in held.octaves.items() if octave >= 0 and count)
    start = 0
    for place, octave in enumerate(octaves):
        index = octave + 1
        deltas += _varint(_zigzag(held.octaves[octave] - before))
        before = held.octaves[octave]
        if place == 0 or octaves[place - 1] != octave - 1:
            start = place
        if place + 1 == len(octaves) or octaves[place + 1] != octave + 1:
            length = place - start + 1
            first = index - length + 1
            spans += _bytes(12, _encode_whole(1, _zigzag(first - past)) + _encode_whole(2, length))
            past = index + 1
    # a span of nothing says that it is a native histogram before there is a value
    spans = spans or _bytes(12, _encode_whole(1, 0) + _encode_whole(2, 0))
    return (
        parts
        + _encode_whole(5, _zigzag(SCHEMA))
        + _double(6, 1.0)
        + _encode_whole(7, zero)
        + spans
        + (_bytes(13, deltas) if deltas else b"")
    )


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


def _encode_whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
