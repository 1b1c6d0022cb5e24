# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes /metrics, as text and as protobuf with native histograms: what its API
then says is what was recorded."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.output.server.base.store import Store
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events
from support.service import TOKEN, serving
from support.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

NAMES = [
    "io.ops",
    "io.ops[op=write]",
    "io.bytes[process]",
    "io.ops[latency]",
    "io.ops[op=read][latency]",
    "io.ops[size]",
]
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: iolab
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.fixture
def program() -> str:
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("there is no prometheus (apt-get install prometheus)")
    return found


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordingWriter]:
    """A recording that is not over."""
    with RecordingWriter.create(
        tmp_path / 'quoted "r\\',
        host="here",
        clock="realtime",
        origin={"kind": "import"},
        live=False,
    ) as writer:
        writer.append_events(events(2000, 1))
        writer.seal()
        writer.loss("overrun", "block", START, START + SECOND, 17)
        yield writer


class Prometheus:
    """Asked through its HTTP API: of now, or once `at` is set of that moment, so that a later
    scrape that a busy machine misses changes nothing."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.at: str | None = None

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Series of an expression, each with `metric` and `value` or `histogram`."""
        moment = {} if self.at is None else {"time": self.at}
        url = f"{self._address}/api/v1/query?{urllib.parse.urlencode({'query': expression, **moment})}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            found = json.loads(answer.read())
        assert found["status"] == "success", found
        assert found["data"]["resultType"] == "vector"
        result: list[dict[str, Any]] = found["data"]["result"]
        return result

    def number(self, expression: str) -> float | None:
        """The only value of an expression, None where there is none yet."""
        found = self.ask(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    @property
    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def scraping(program: str, place: Path, target: str, *features: str) -> Iterator[Prometheus]:
    """A Prometheus that scrapes a target each second, with all that it writes below a directory."""
    place.mkdir()
    (place / "token").write_text(TOKEN)
    (place / "prometheus.yml").write_text(
        CONFIGURATION.format(token=place / "token", target=target)
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        program,
        f"--config.file={place}/prometheus.yml",
        f"--storage.tsdb.path={place}/data",
        f"--web.listen-address={own}",
        "--log.level=warn",
        *(f"--enable-feature={feature}" for feature in features),
    ]
    with (place / "log").open("w") as log:
        process = subprocess.Popen(
            words, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            asked = Prometheus(f"http://{own}")
            until(lambda: asked.is_ready or process.poll() is not None, "Prometheus")
            assert process.poll() is None, (place / "log").read_text()
            yield asked
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def taken_in(found: Prometheus, writer: RecordingWriter) -> None:
    """Wait until Prometheus has all that was recorded, and ask it of that scrape from then on."""
    answer = query(Recording(writer.directory), "io.ops")
    assert isinstance(answer, Series)
    found.at = None
    scraped = f"timestamp(iolab_operations_total{{statistic='io.ops'}} == {answer.total})"

    def moment() -> str | None:
        each = found.ask(scraped)
        return str(each[0]["value"][1]) if each else None

    found.at = until(moment, "a scrape of all that was recorded")


def octaves(writer: RecordingWriter, name: str) -> dict[int, int]:
    """I/Os by octave of a map: k holds the whole numbers from 2^k up to 2^(k+1)."""
    answer = query(Recording(writer.directory), name)
    assert isinstance(answer, HeatCounts)
    index, count = answer.by_index()
    found: dict[int, int] = {}
    for each, many in zip(index.tolist(), count.tolist(), strict=True):
        octave = int(answer.grid.bounds(each, each)[0]).bit_length() - 1
        found[octave] = found.get(octave, 0) + int(many)
    return found


def spent(op: str | None) -> int:
    """ns that the I/Os of the first events took together, those of one operation where it is named."""
    first = events(2000, 1)
    rows = zip(
        *(first.column(each).to_pylist() for each in ("latency_ns", "count", "op")), strict=True
    )
    return sum(
        latency * count
        for latency, count, name in rows
        if latency is not None and op in (None, name)
    )


def counters_agree(found: Prometheus, writer: RecordingWriter) -> None:
    recording = Recording(writer.directory)
    for name in ("io.ops", "io.ops[op=write]"):
        answer = query(recording, name)
        assert isinstance(answer, Series)
        [series] = found.ask(f"iolab_operations_total{{statistic='{name}'}}")
        assert float(series["value"][1]) == answer.total > 0
        assert series["metric"]["recording"] == 'quoted "r\\'
    stack = query(recording, "io.bytes[process]")
    assert isinstance(stack, Stack)
    told = {
        each["metric"]["process"]: float(each["value"][1])
        for each in found.ask("iolab_bytes_total")
    }
    assert told == {
        key: total for key, total in zip(stack.keys, stack.totals, strict=True) if total
    }
    assert found.number("iolab_lost_total{kind='overrun'}") == 17
    assert found.number("iolab_last_event_timestamp_seconds") == pytest.approx(
        (recording.span() or (0, 0))[1] / 1e9, abs=1e-6
    )


def classic_agree(found: Prometheus, writer: RecordingWriter, metric: str, name: str) -> None:
    """Every classic bucket holds exactly the I/Os up to its bound."""
    held = octaves(writer, name)
    buckets = found.ask(f"{metric}_bucket{{statistic='{name}'}}")
    assert len(buckets) > 10
    for each in buckets:
        bound = float(each["metric"]["le"])
        expected = sum(
            count
            for octave, count in held.items()
            if bound == math.inf or 2 ** (octave + 1) - 1 <= bound
        )
        assert float(each["value"][1]) == expected, bound
    assert found.number(f"{metric}_count{{statistic='{name}'}}") == sum(held.values()) > 0


def test_text_with_classic_buckets(program: str, writer: RecordingWriter, tmp_path: Path) -> None:
    with (
        serving(Store([writer.directory]), metrics=NAMES) as served,
        scraping(
            program, tmp_path / "prometheus", urllib.parse.urlsplit(served.url).netloc
        ) as found,
    ):
        taken_in(found, writer)
        counters_agree(found, writer)
        for metric, name in (
            ("iolab_latency_nanoseconds", "io.ops[latency]"),
            ("iolab_latency_nanoseconds", "io.ops[op=read][latency]"),
            ("iolab_size_bytes", "io.ops[size]"),
        ):
            classic_agree(found, writer, metric, name)
        # its own quantile lies within the octave that has ours
        quantile = found.number(
            "histogram_quantile(0.5, iolab_latency_nanoseconds_bucket{statistic='io.ops[latency]'})"
        )
        held = octaves(writer, "io.ops[latency]")
        middle = np.searchsorted(
            np.cumsum([held[each] for each in sorted(held)]), sum(held.values()) / 2
        )
        octave = sorted(held)[int(middle)]
        assert quantile is not None
        assert 2**octave - 1 <= quantile <= 2 ** (octave + 1) - 1
        # what comes later is counted on, once
        writer.append_events(events(500, 2, start_ns=START + 1000 * SECOND))
        taken_in(found, writer)
        counters_agree(found, writer)
        classic_agree(found, writer, "iolab_latency_nanoseconds", "io.ops[latency]")
        assert found.number("resets(iolab_operations_total{statistic='io.ops'}[1h])") == 0


def test_protobuf_with_native_histograms(
    program: str, writer: RecordingWriter, tmp_path: Path
) -> None:
    with (
        serving(Store([writer.directory]), metrics=NAMES) as served,
        scraping(
            program,
            tmp_path / "prometheus",
            urllib.parse.urlsplit(served.url).netloc,
            "native-histograms",
        ) as found,
    ):
        taken_in(found, writer)
        counters_agree(found, writer)
        for name in ("io.ops[latency]", "io.ops[op=read][latency]"):
            [series] = found.ask(f"iolab_latency_nanoseconds{{statistic='{name}'}}")
            _, histogram = series["histogram"]
            held = octaves(writer, name)
            assert int(histogram["count"]) == sum(held.values()) > 0
            # a latency of n ns has lasted from n up to n + 1: octave k is what lies above 2^k, up
            # to 2^(k+1)
            told = {
                (float(low), float(high)): int(count)
                for _, low, high, count in histogram["buckets"]
            }
            assert told == {
                (2.0**each, 2.0 ** (each + 1)): count for each, count in held.items() if count
            }
            assert float(histogram["sum"]) == pytest.approx(
                spent("read" if "read" in name else None), rel=0.01
            )
        assert found.ask("iolab_latency_nanoseconds_bucket") == [], "as native ones alone"
        classic_agree(found, writer, "iolab_size_bytes", "io.ops[size]")
        writer.append_events(events(500, 2, start_ns=START + 1000 * SECOND))
        taken_in(found, writer)
        [series] = found.ask("iolab_latency_nanoseconds{statistic='io.ops[latency]'}")
        assert int(series["histogram"][1]["count"]) == sum(
            octaves(writer, "io.ops[latency]").values()
        )
        count = found.number(
            "histogram_count(iolab_latency_nanoseconds{statistic='io.ops[latency]'})"
        )
        assert count == int(series["histogram"][1]["count"])


def test_without_the_token_nothing_is_told(
    program: str, writer: RecordingWriter, tmp_path: Path
) -> None:
    with serving(Store([writer.directory]), metrics=NAMES) as served:
        place = tmp_path / "prometheus"
        with scraping(program, place, urllib.parse.urlsplit(served.url).netloc) as found:
            taken_in(found, writer)
            assert found.number("up") == 1
            found.at = None
            (place / "token").write_text("another-token-of-twenty-letters")
            until(lambda: found.number("up") == 0, "a scrape to be refused")
