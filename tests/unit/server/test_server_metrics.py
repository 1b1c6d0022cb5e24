# SPDX-License-Identifier: Apache-2.0
"""/metrics against counts by hand: as text, as protobuf, and while a recording grows."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.app import application
from iolab.output.server.prometheus import metrics
from iolab.output.server.prometheus.metrics import (
    Exporter,
    Family,
    Histogram,
    Sample,
    prefers_protobuf,
    text,
)
from iolab.recordings.ask.query import query
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

SCRAPER = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.5"
LINE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")


def parsed(body: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for line in body.splitlines():
        if not line.startswith("#"):
            name, labels, value = LINE.match(line).groups()  # type: ignore[union-attr]
            found[name, tuple(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels or ""))] = float(
                value
            )
    return found


def fields(data: bytes) -> list[tuple[int, Any]]:
    """(number, value) of a protobuf message; bytes stay bytes."""
    found: list[tuple[int, Any]] = []
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        elif key & 7 == 1:
            found.append((key >> 3, struct.unpack_from("<d", data, place)[0]))
            place += 8
        else:
            length = varint()
            found.append((key >> 3, data[place : place + length]))
            place += length
    return found


def families(data: bytes) -> dict[str, list[bytes]]:
    """Metrics by name of family of delimited messages."""
    # each length before a message is what a field of bytes has before its content
    found: dict[str, list[bytes]] = {}
    place = 0
    while place < len(data):
        length = shift = 0
        while True:
            byte = data[place]
            place += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        message = fields(data[place : place + length])
        place += length
        found[dict(message)[1].decode()] = [value for number, value in message if number == 4]
    return found


def zigzag(value: int) -> int:
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def packed(data: bytes) -> list[int]:
    return [
        value
        for _, value in fields(
            b"".join(
                b"\x08" + part for part in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data, re.DOTALL)
            )
        )
    ]


def native(histogram: bytes) -> dict[int, int]:
    """Counts by index of a native histogram, by the rules of its spans."""
    message = fields(histogram)
    found, index, count = {}, 0, 0
    deltas = iter(
        [zigzag(each) for number, value in message if number == 13 for each in packed(value)]
    )
    for number, value in message:
        if number == 12:
            span = dict(fields(value))
            index += zigzag(span[1])
            for _ in range(span[2]):
                count += next(deltas)
                found[index] = count
                index += 1
    assert next(deltas, None) is None
    return found


@given(st.dictionaries(st.integers(-1, 63), st.integers(1, 2**40), max_size=20))
def test_native_histograms_hold_every_octave(octaves: dict[int, int]) -> None:
    histogram = Histogram(range(9, 37), True, dict(octaves), sum(octaves.values()), 1.5)
    [metric] = families(
        metrics.encode([Family("x", "y", "histogram", [Sample((("a", "ü"),), histogram)])])
    )["x"]
    message = fields(dict(fields(metric))[7])
    held = dict(message)
    assert (held[1], held[2], held[5], held[6], held[7]) == (
        sum(octaves.values()),
        1.5,
        0,
        1.0,
        octaves.get(-1, 0),
    )
    # octave k is from 2^k up to 2^(k+1): index k + 1 of schema 0
    assert {index: count for index, count in native(dict(fields(metric))[7]).items() if count} == {
        octave + 1: count for octave, count in octaves.items() if octave >= 0
    }
    classic = [tuple(dict(fields(value)).values()) for number, value in message if number == 3]
    assert classic == [(count, bound) for bound, count in histogram.cumulative()]


def client_of(store: Store, *statistics: str) -> TestClient:
    return TestClient(
        application(store, Door(["127.0.0.1"], 1, token="t" * 20), Exporter(store, statistics)),
        base_url="http://127.0.0.1:1",
        headers={"authorization": f"Bearer {'t' * 20}"},
    )


def test_text_and_protobuf_say_the_same(store: Store, client: TestClient) -> None:
    asking = client_of(
        store,
        "io.ops[latency]",
        "io.ops[op]",
        "io.bytes",
        "io.ops[size]",
        "io.ops[queue]",
        "file.ops",
    )
    answer = asking.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = parsed(answer.text)
    rec = (("recording", "rec"), ("statistic", "io.ops[latency]"))
    plain = client.get(
        "/api/v1/query", params={"recording": "rec", "statistic": "io.ops[latency]"}
    ).json()
    cells = list(zip(plain["low"], plain["high"], plain["count"], strict=True))
    for octave in range(9, 37):
        labels = (*rec, ("le", repr(float(2 ** (octave + 1) - 1))))
        # no bucket of the grid lies across a bound
        assert found["iolab_latency_nanoseconds_bucket", labels] == sum(
            n for _, high, n in cells if high <= 2 ** (octave + 1)
        )
    assert found["iolab_latency_nanoseconds_bucket", (*rec, ("le", "+Inf"))] == plain["events"]
    assert found["iolab_latency_nanoseconds_count", rec] == plain["events"]
    exact = client.get(
        "/api/v1/query", params={"recording": "rec", "statistic": "io.bytes"}
    ).json()["total"]
    assert found["iolab_bytes_total", (("recording", "rec"), ("statistic", "io.bytes"))] == exact
    assert found[
        "iolab_size_bytes_sum", (("recording", "rec"), ("statistic", "io.ops[size]"))
    ] == pytest.approx(exact, rel=0.016)
    assert (
        found[
            "iolab_operations_total",
            (("recording", "t.csv"), ("statistic", "io.ops[op]"), ("op", "write")),
        ]
        == 500
    )
    assert found["iolab_lost_total", (("recording", "rec"), ("kind", "overrun"))] == 17
    assert not any("file.ops" in str(labels) for _, labels in found)

    binary = asking.get("/metrics", headers={"accept": SCRAPER})
    assert binary.headers["content-type"].startswith("application/vnd.google.protobuf")
    held = families(binary.content)
    metric = next(dict(fields(each))[7] for each in held["iolab_latency_nanoseconds"])
    assert sum(native(metric).values()) + dict(fields(metric))[7] == plain["events"]
    # a size that is a power of two would belong to the bucket below: no native histogram is told of
    # sizes
    assert all(
        not any(number == 5 for number, _ in fields(dict(fields(each))[7]))
        for each in held["iolab_size_bytes"]
    )


@pytest.mark.slow
def test_a_growing_recording_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "is_live", lambda store, name: True)
    writer = RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    )
    exporter = Exporter(Store([tmp_path / "r"]), ["io.ops", "io.ops[latency]", "io.ops[process]"])
    batches = [events(200, each, start_ns=START + each * SECOND, per_s=200) for each in range(20)]
    seen = []
    for number, batch in enumerate(batches):
        writer.append_events(batch)
        if number % 7 == 3:
            writer.seal()
        if number % 3 == 0:
            found = parsed(text(exporter.families()).decode())
            seen.append(
                [value for (name, _), value in found.items() if name == "iolab_operations_total"]
            )
    writer.close()
    # the first line is that of all I/Os
    assert [each[0] for each in seen if each] == sorted(each[0] for each in seen if each)
    monkeypatch.setattr(metrics, "is_live", lambda store, name: False)
    found = parsed(text(exporter.families()).decode())
    every = sum(sum(batch.column("count").to_pylist()) for batch in batches)
    totals = [
        value
        for (name, labels), value in found.items()
        if name == "iolab_operations_total" and len(labels) == 2
    ]
    by_process = [
        value
        for (name, labels), value in found.items()
        if name == "iolab_operations_total" and len(labels) == 3
    ]
    assert totals == [every]
    assert sum(by_process) == every
    latency = sum(
        row["count"]
        for batch in batches
        for row in batch.to_pylist()
        if row["latency_ns"] is not None
    )
    assert (
        found[
            "iolab_latency_nanoseconds_count",
            (("recording", "r"), ("statistic", "io.ops[latency]")),
        ]
        == latency
    )


@pytest.mark.slow
def test_all_of_a_scrape_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "is_live", lambda store, name: True)
    second = 20

    def meanwhile(*args: Any, **more: Any) -> Any:
        nonlocal second
        writer.append_events(events(200, second, start_ns=START + second * SECOND, per_s=200))
        second += 1
        return query(*args, **more)

    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        for each in range(20):
            writer.append_events(events(200, each, start_ns=START + each * SECOND, per_s=200))
        exporter = Exporter(Store([tmp_path / "r"]), ["io.ops", "io.ops[op]", "io.ops[process]"])
        monkeypatch.setattr(metrics, "query", meanwhile)
        for _ in range(3):
            found = parsed(text(exporter.families()).decode())
            sums: dict[str, float] = {}
            for (name, labels), value in found.items():
                if name == "iolab_operations_total":
                    sums[labels[1][1]] = sums.get(labels[1][1], 0) + value
            assert len(sums) == 3
            assert len(set(sums.values())) == 1


def test_keys_beyond_the_most_are_added_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_KEYS", 5)
    found = parsed(text(Exporter(store, ["io.ops[file]"]).families()).decode())
    mine = {
        labels[2][1]: value
        for (name, labels), value in found.items()
        if labels[0] == ("recording", "rec") and len(labels) == 3
    }
    assert len(mine) == 6
    assert "(others)" in mine


def test_labels_with_quotes_and_line_ends() -> None:
    written = text([Family("x", "a\nb", "gauge", [Sample((("file", 'a"b\\c\nd'),), 1.0)])]).decode()
    assert written == '# HELP x a\\nb\n# TYPE x gauge\nx{file="a\\"b\\\\c\\nd"} 1.0\n'


@pytest.mark.parametrize("name", ["io.ops[offset]", "io.bytes[latency]", "io.opps", "", "io.ops["])
def test_what_makes_no_metric(name: str, store: Store) -> None:
    with pytest.raises(UsageError):
        Exporter(store, [name])


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (SCRAPER, True),
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/vnd.google.protobuf", False),
        ("application/vnd.google.protobuf;encoding=delimited;q=0.1,text/plain;q=0.5", False),
        ("application/vnd.google.protobuf;encoding=delimited", True),
        (";;;q=x,application/vnd.google.protobuf;encoding=delimited;q=abc", False),
    ],
)
def test_what_a_scraper_likes_best(accept: str, expected: bool) -> None:
    assert prefers_protobuf(accept) is expected
