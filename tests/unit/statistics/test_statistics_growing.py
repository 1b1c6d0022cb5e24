# SPDX-License-Identifier: Apache-2.0
"""Sums that are remembered of a recording that grows: the answers are those of a scan of all events."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from iolab.base.errors import IolabError
from iolab.output.server.base.store import Store
from iolab.output.server.live.stream import Window
from iolab.output.server.queries.answers import ask
from iolab.recordings.ask.engine import cells
from iolab.recordings.ask.query import query
from iolab.recordings.ask.tiers import event_sums
from iolab.recordings.ask.tiers import events as events_tier
from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

STATISTICS = (
    {"statistic": "io.ops"},
    {"statistic": "io.ops[op]", "top": "2"},
    {"statistic": "io.bytes[process]"},
    {"statistic": "io.ops[op=read][file]", "top": "3"},
    {"statistic": "io.ops[pid>1][file]"},
    {"statistic": "io.ops[latency]", "drawn": "percentiles"},
    {"statistic": "io.ops[process=fio][latency]", "drawn": "true"},
    {"statistic": "io.ops[size]"},
    {"statistic": "io.ops[queue]"},
    {"statistic": "io.ops[offset]", "drawn": "true", "lines": "false"},
    {"statistic": "io.bytes[device=sda][offset]"},
    {"statistic": "io.time[offset]"},
)
WINDOWS = (Window(12 * SECOND, SECOND), Window(4 * SECOND, SECOND // 10))

Step = tuple[Any, ...]
"""What happens to a recording between two questions, and its arguments."""

steps = some.lists(
    some.one_of(
        some.tuples(
            some.just("append"), some.integers(1, 40), some.integers(0, 9), some.integers(-4, 3)
        ),
        some.tuples(
            some.just("append"), some.integers(1, 40), some.integers(0, 9), some.integers(-4, 3)
        ),
        some.tuples(some.just("seal")),
        some.tuples(some.just("tick"), some.integers(0, 4)),
        some.tuples(some.just("loss"), some.integers(-6, 2), some.integers(1, 3)),
        some.tuples(some.just("restart"), some.integers(-9, 20)),
        some.tuples(some.just("damage"), some.integers(0, 3)),
        some.tuples(some.just("offsets"), some.integers(0, 62)),
    ),
    min_size=2,
    max_size=9,
)


def begun_at(time_ns: int) -> Begun:
    """A beginning at a time, which all clocks show."""
    return Begun(time_ns, time_ns, time_ns)


class Growing:
    """A recording that grows step by step. now_ns: the time that its events have reached."""

    def __init__(self, directory: Path, most_bytes: int | None) -> None:
        self.path = directory / "recording"
        self.now_ns = START
        self._sources: dict[str, Any] = {"block": {}}
        retention = {"bytes": most_bytes, "age_s": None}
        facts = Facts("here", "realtime", {"kind": "record"}, self._sources, retention)
        self._writer = RecordingWriter.begin(self.path, facts, begun=begun_at(START))

    def do(self, name: str, *arguments: int) -> None:
        """Make a step."""
        getattr(self, f"_{name}")(*arguments)

    def _append(self, rows: int, seed: int, shift_s: int) -> None:
        start_ns = max(START, self.now_ns + shift_s * SECOND + seed * SECOND // 7)
        batch = events(
            rows, seed, start_ns=start_ns, per_s=20, backwards=start_ns > START + 9 * SECOND
        )
        self._writer.append_events(batch)
        self.now_ns = max(self.now_ns, start_ns + rows * SECOND // 20)

    def _offsets(self, power: int) -> None:
        batch = events(6, power, start_ns=self.now_ns, per_s=20)
        place = batch.schema.get_field_index("offset_bytes")
        column = pa.array([(1 << power) + number for number in range(6)], pa.uint64())
        self._writer.append_events(batch.set_column(place, batch.schema.field(place), column))

    def _seal(self) -> None:
        self._writer.seal()

    def _tick(self, passed_s: int) -> None:
        self.now_ns += passed_s * SECOND + 12345
        self._writer.tick(self.now_ns)

    def _loss(self, shift_s: int, length_s: int) -> None:
        from_ns = self.now_ns + shift_s * SECOND
        self._writer.loss("overrun", "block", from_ns, from_ns + length_s * SECOND, 17)

    def _restart(self, passed_s: int) -> None:
        self._writer.tick(self.now_ns)
        self._writer.close()
        # a clock may be set back meanwhile
        self.now_ns = max(START, self.now_ns + passed_s * SECOND)
        begun = begun_at(self.now_ns)
        self._writer = RecordingWriter.reopen(self.path, sources=self._sources, begun=begun)

    def _damage(self, place: int) -> None:
        files = sorted((self.path / "events").glob("*.parquet"))
        if place < len(files):
            content = bytearray(files[place].read_bytes())
            content[len(content) // 2] ^= 0xFF
            files[place].write_bytes(content)

    def close(self) -> None:
        """Let the recording go."""
        self._writer.close()


def words_of(
    store: Store, statistics: Sequence[dict[str, str]], window: Window, cut_ns: int
) -> Iterator[dict[str, str]]:
    """Parameters of questions about the latest time, in whole columns and others."""
    latest_ns = store.newest(store.names[0])
    for statistic in statistics:
        yield {**statistic, **window.words(latest_ns)}
        from_ns = max(0, latest_ns - 5 * SECOND - cut_ns)
        yield {
            **statistic,
            "interval": "1s",
            "from": str(from_ns),
            "to": str(max(from_ns + 1, latest_ns - cut_ns)),
        }


def answer_of(store: Store, words: dict[str, str]) -> Any:
    try:
        return json.loads(ask(store, words).model_dump_json(by_alias=True))
    except IolabError as error:
        return error.message


def compare(store: Store, questions: Iterator[dict[str, str]], patch: pytest.MonkeyPatch) -> None:
    """Whether a service that has answered before answers as one that begins."""
    path = store.path(store.names[0])
    for words in questions:
        remembered = answer_of(store, words)
        with patch.context() as forgetful:
            forgetful.setattr(events_tier, "sums_of", lambda *_: None)
            assert remembered == answer_of(Store([path]), words), words


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    steps=steps,
    statistics=some.lists(
        some.sampled_from(STATISTICS),
        min_size=2,
        max_size=3,
        unique_by=lambda words: words["statistic"],
    ),
    window=some.sampled_from(WINDOWS),
    cut_ns=some.sampled_from((0, 1, SECOND // 2, 777_777_777)),
    most_bytes=some.sampled_from((None, None, 20_000)),
    most_cells=some.sampled_from((4_000_000, 1)),
)
def test_remembered_sums_give_the_answers_of_a_scan(
    steps: Sequence[Step],
    statistics: Sequence[dict[str, str]],
    window: Window,
    cut_ns: int,
    most_bytes: int | None,
    most_cells: int,
) -> None:
    patch = pytest.MonkeyPatch()
    with tempfile.TemporaryDirectory() as directory, patch.context():
        patch.setattr(event_sums, "MOST_BLOCKS", 2)
        patch.setattr(cells, "MOST_CELLS", most_cells)
        growing = Growing(Path(directory), most_bytes)
        try:
            growing.do("append", 5, 1, 0)
            store = Store([growing.path])
            compare(store, words_of(store, statistics, window, cut_ns), patch)
            for step in steps:
                growing.do(*step)
                compare(store, words_of(store, statistics, window, cut_ns), patch)
        finally:
            growing.close()
            patch.undo()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    grown = Growing(tmp_path, None)
    yield grown
    grown.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(sealed segments, I/Os that are not sealed) of each scan."""
    scans: list[tuple[int, int]] = []

    def watch(name: str) -> None:
        read: Callable[..., Any] = getattr(events_tier, name)

        def watched(*arguments: Any) -> Any:
            window = arguments[-1]
            rows = window.unsealed_rows()
            scans.append((len(window.segments()), 0 if rows is None else len(rows)))
            return read(*arguments)

        monkeypatch.setattr(events_tier, name, watched)

    watch("_read_numbers")
    watch("_read_cells")
    return scans


@pytest.mark.parametrize(
    "name", ["io.bytes[process]", "io.ops[queue]", "io.ops[process=fio][offset]"]
)
def test_only_what_was_appended_is_read(
    name: str, growing: Growing, reads: list[tuple[int, int]]
) -> None:
    recording = Recording(growing.path)

    def read() -> list[tuple[int, int]]:
        reads.clear()
        query(recording, name, interval_ns=SECOND)
        return sorted(set(reads))

    growing.do("append", 30, 1, 0)
    growing.do("seal")
    growing.do("append", 7, 2, 0)
    assert read() == [], "a question that is asked once is answered by one scan"
    growing.do("append", 6, 3, 0)
    assert set(read()) <= {(1, 0), (0, 13)}
    growing.do("append", 5, 4, 0)
    if "offset" in name:
        read()
        growing.do("append", 5, 4, 0)
    assert read() == [(0, 5)]
    growing.do("seal")
    assert read() == [(1, 0)], "a sealed segment is read once"
    growing.do("append", 4, 5, 0)
    assert read() == [(0, 4)]
    growing.do("tick", 1)
    assert read() == []


def test_too_many_sums_are_not_remembered(
    growing: Growing, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sums, "MOST_ROWS", 20)
    recording, counts = Recording(growing.path), []
    for number in range(4):
        growing.do("append", 30, number, 0)
        reads.clear()
        answer = query(recording, "io.ops[file]", interval_ns=SECOND)
        assert not hasattr(answer, "total") or answer.total > 0
        counts.append(len(reads))
    assert counts == [0, 1, 0, 0]


def test_sums_of_few_questions_are_remembered(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sums, "MOST_QUESTIONS", 3)
    recording = Recording(growing.path)
    for number in range(3):
        growing.do("append", 10, number, 0)
        for interval_ns in (SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND):
            query(recording, "io.ops[process]", interval_ns=interval_ns)
    assert len(event_sums._remembered) == 3
