# SPDX-License-Identifier: Apache-2.0
"""/metrics for Prometheus: chosen statistics, counted on from scrape to scrape, so that each costs
what is new since the last.

Families of metrics are written in Prometheus' text format (version 0.0.4), and as its protobuf
messages (io.prometheus.client.MetricFamily), each with its length before it.
"""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from iolab.base.errors import IolabError, UsageError
from iolab.recordings.archive.upload.progress import read_progress
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.available import availability, sources_of
from iolab.recordings.ask.language.fields import QUANTIZED
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import Statistic, parse
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.grids import LogLinear

from ..base.store import Store
from ..base.thread_pool import Workers
from ..queries.listing import is_live

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


LAG = 5 * 10**9
"""Of a recording that grows, events of the last so many ns wait for the next scrape: they still
come in out of order."""
MOST_KEYS = 200
"""Keys of a breakdown that are exported separately, the first that appear; later ones are added up as
`(others)`."""
OTHERS = "(others)"

_TIME, _SIZE = range(9, 37), range(8, 25)

NAMES = {
    "ops": ("iolab_operations_total", "I/Os of a statistic since the recording began."),
    "bytes": ("iolab_bytes_total", "Bytes of a statistic since the recording began."),
    "latency": (
        "iolab_latency_nanoseconds",
        "Latency of I/Os; the sum takes each at the middle of its bucket, within 0.8 %.",
    ),
    "queue": (
        "iolab_queue_nanoseconds",
        "Time of I/Os in the queue; the sum takes each at the middle of its bucket, within 0.8 %.",
    ),
    "size": (
        "iolab_size_bytes",
        "Size of I/Os; the sum takes each at its bucket's low end: exact for powers of two, else within 1.6 %.",
    ),
}


@dataclass
class _Counted:
    """A statistic of a recording, counted up to a moment."""

    recording: str
    statistic: Statistic
    until_ns: int | None = None
    totals: dict[str, int] = field(default_factory=dict)
    histogram: Histogram | None = None


class Exporter:
    """Counts for /metrics. UsageError for a statistic that makes no metric."""

    def __init__(self, store: Store, statistics: Sequence[str]) -> None:
        self._store = store
        self._lock = threading.Lock()
        parsed = list(dict.fromkeys(map(_parse_metric, statistics)))
        self._counted = [_Counted(name, statistic) for name in store.names for statistic in parsed]

    def families(self) -> list[Family]:
        """Everything, up to now. A statistic that a recording can't answer is left out, until it
        can."""
        with self._lock:
            samples: dict[str, list[Sample]] = {}
            # one moment for all of a recording: what is divided by each other is of the same I/Os
            moments: dict[str, tuple[int, int]] = {}
            for counted in self._counted:
                try:
                    if counted.recording not in moments:
                        moments[counted.recording] = self._settled_span(counted.recording)
                    self._count(counted, *moments[counted.recording])
                except IolabError:
                    continue
                name = (
                    counted.statistic.breakdown
                    if counted.histogram is not None
                    else counted.statistic.entry.measure
                )
                samples.setdefault(str(name), []).extend(_samples(counted))
            families = [
                Family(
                    *NAMES[name],
                    "histogram" if name in ("latency", "queue", "size") else "counter",
                    samples[name],
                )
                for name in NAMES
                if name in samples
            ]
            return [*families, *self._of_recordings()]

    def _settled_span(self, recording: str) -> tuple[int, int]:
        """Where a recording begins, and up to where nothing more comes."""
        first, last = self._store.ends(recording)
        return first, last + 1 - (LAG if is_live(self._store, recording) else 0)

    def _count(self, counted: _Counted, first: int, until: int) -> None:
        """Add what came between `first`, or when it was counted last, and `until`."""
        opened = self._store.open(counted.recording)
        # counters of the kernel are told better by who reads them directly
        if availability(counted.statistic.entry, *sources_of(opened)).counted:
            return
        since = counted.until_ns
        if until <= (first if since is None else since):
            return
        # what is kept has wider buckets and whole seconds: parts of it would not add up
        answer = query(
            opened, counted.statistic, from_ns=since, until_ns=until, columns=1, kept=False
        )
        if isinstance(answer, HeatCounts):
            counted.histogram = counted.histogram or Histogram(
                _SIZE if answer.y == "size" else _TIME, native=answer.y != "size"
            )
            _add(counted.histogram, answer)
        elif isinstance(answer, Stack):
            for key, total in [
                *zip(answer.keys, answer.totals, strict=True),
                (OTHERS, answer.rest_total),
            ]:
                if key not in counted.totals and len(counted.totals) >= MOST_KEYS:
                    key = OTHERS
                if total or key in counted.totals:
                    counted.totals[key] = counted.totals.get(key, 0) + total
        else:
            counted.totals[""] = counted.totals.get("", 0) + answer.total
        counted.until_ns = until

    def _of_recordings(self) -> list[Family]:
        """How far each recording is, what it lost, and what its archive lacks."""
        ends, lost = [], []
        rows_behind, seconds_behind = [], []
        for name in self._store.names:
            try:
                recording = self._store.recording(name)
                if recording is None:
                    continue
                ends.append(Sample((("recording", name),), (recording.span() or (0, 0))[1] / 1e9))
                kinds: dict[str, int] = {}
                progress = read_progress(recording.path)
                if progress is not None:
                    labels = (("recording", name),)
                    rows_behind.append(Sample(labels, float(progress.rows)))
                    seconds_behind.append(Sample(labels, progress.behind_s(time.time_ns())))
                for loss in recording.losses():
                    kinds[loss["kind"]] = kinds.get(loss["kind"], 0) + (loss["count"] or 0)
            except IolabError:
                continue
            lost += [
                Sample((("recording", name), ("kind", kind)), float(count))
                for kind, count in sorted(kinds.items())
            ]
        return [
            Family(
                "iolab_last_event_timestamp_seconds", "Time of the latest event.", "gauge", ends
            ),
            Family(
                "iolab_lost_total",
                "Losses noted in the recording, by kind, where their number is known.",
                "counter",
                lost,
            ),
            *_of_archives(rows_behind, seconds_behind),
        ]


def _of_archives(rows: Sequence[Sample], seconds: Sequence[Sample]) -> list[Family]:
    if not rows:
        return []
    return [
        Family(
            "iolab_archive_behind_rows",
            "Rows of the recording that its archive lacks, at the last attempt to push.",
            "gauge",
            list(rows),
        ),
        Family(
            "iolab_archive_behind_seconds",
            "Age of the first row that the archive lacks.",
            "gauge",
            list(seconds),
        ),
    ]


def _parse_metric(name: str) -> Statistic:
    statistic = parse(name)
    measure, breakdown = statistic.entry.measure, statistic.breakdown
    mapped = breakdown in QUANTIZED and (measure != "ops" or breakdown == "offset")
    if mapped or measure not in ("ops", "bytes") or not statistic.entry.sources:
        raise UsageError(
            f"{statistic} makes no metric",
            where="--metric",
            hint="those of I/Os do: latency, queue and size of ops make histograms, other breakdowns but offset counters",
        )
    return statistic


def _add(histogram: Histogram, counts: HeatCounts) -> None:
    if not isinstance(counts.grid, LogLinear) or not len(counts.count):
        return
    index, count = counts.by_index()
    bounds = [counts.grid.bounds(index_value, index_value) for index_value in index.tolist()]
    octaves = np.array([int(low).bit_length() - 1 for low, _ in bounds])
    for octave in np.unique(octaves).tolist():
        histogram.octaves[octave] = histogram.octaves.get(octave, 0) + int(
            count[octaves == octave].sum()
        )
    middle = [low if counts.y == "size" else (low + high - 1) / 2 for low, high in bounds]
    histogram.count += int(count.sum())
    histogram.sum += float(np.dot(middle, count))


def _samples(each: _Counted) -> list[Sample]:
    labels: Labels = (("recording", each.recording), ("statistic", str(each.statistic)))
    if each.histogram is not None:
        return [Sample(labels, each.histogram)]
    breakdown = each.statistic.breakdown
    return [
        Sample((*labels, (breakdown, key)) if breakdown else labels, float(total))
        for key, total in each.totals.items()
    ]


def endpoint(exporter: Exporter, pool: Workers) -> Callable[[Request], Any]:
    """/metrics in the form that the scraper likes best."""

    async def answer(request: Request) -> Response:
        binary = prefers_protobuf(request.headers.get("accept", ""))
        content = await pool.run(
            lambda: encode(exporter.families()) if binary else text(exporter.families())
        )
        return Response(
            content,
            headers={"content-type": MEDIA_TYPE if binary else TEXT, "vary": "Accept"},
        )

    return answer


def prefers_protobuf(accept: str) -> bool:
    """Whether an `Accept` puts delimited protobuf before text."""
    best = {"protobuf": 0.0, "text": 0.0}
    for part in accept.split(","):
        kind, *parameters = [word.strip().lower() for word in part.split(";")]
        words = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        try:
            weight = float(words.get("q", "1"))
        except ValueError:
            continue
        if kind == "application/vnd.google.protobuf" and words.get("encoding") == "delimited":
            best["protobuf"] = max(best["protobuf"], weight)
        elif kind in ("text/plain", "text/*", "*/*", "application/openmetrics-text"):
            best["text"] = max(best["text"], weight)
    return best["protobuf"] > best["text"]
