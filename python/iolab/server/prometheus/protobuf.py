# SPDX-License-Identifier: Apache-2.0
"""Families of metrics as Prometheus' protobuf messages (io.prometheus.client.MetricFamily), each
with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from .prometheus_text import Family, Histogram, Sample

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
        + _whole(3, _KINDS[family.kind])
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
        _bytes(3, _whole(1, count) + _double(2, bound)) for bound, count in held.cumulative()
    )
    parts = _whole(1, held.count) + _double(2, held.sum) + classic
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
            spans += _bytes(12, _whole(1, _zigzag(first - past)) + _whole(2, length))
            past = index + 1
    # a span of nothing says that it is a native histogram before there is a value
    spans = spans or _bytes(12, _whole(1, 0) + _whole(2, 0))
    return (
        parts
        + _whole(5, _zigzag(SCHEMA))
        + _double(6, 1.0)
        + _whole(7, zero)
        + spans
        + (_bytes(13, deltas) if deltas else b"")
    )


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _zigzag(value: int) -> int:
    return 2 * value if value >= 0 else -2 * value - 1


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
