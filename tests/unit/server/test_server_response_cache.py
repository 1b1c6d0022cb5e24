# SPDX-License-Identifier: Apache-2.0
"""Answers that are remembered: as long as what they depend on stays, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from iolab.errors import UsageError
from iolab.recording.base.schema import SAMPLES
from iolab.recording.write.writer import RecordingWriter
from iolab.server.base.store import Store
from iolab.server.http.access import Door
from iolab.server.http.app import application
from iolab.server.queries import queries
from iolab.server.queries.response_cache import Remembered
from iolab.statistics.kept.paths import STATE
from iolab.statistics.kept.state import State
from support.recordings import SECOND, START, events, samples
from support.service import TOKEN, recorded

OVER = {
    "recording": "rec",
    "statistic": "io.ops",
    "from": str(START),
    "to": str(START + 3 * SECOND),
}
"""A question to time of which all is sealed."""
OPEN = {"recording": "rec", "statistic": "io.ops"}
ENDS = ("to",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rec"


@pytest.fixture
def writer(path: Path) -> Iterator[RecordingWriter]:
    made = recorded(path)
    yield made
    made.close()


class Asked:
    """A service's memory, and how often it had to ask."""

    def __init__(self, path: Path, **bounds: int) -> None:
        self.store, self.times = Store([path]), 0
        self.remembered = Remembered(**bounds)

    def __call__(self, words: dict[str, str], ends: tuple[str, ...] = ENDS) -> bytes:
        def make() -> tuple[bytes, str]:
            self.times += 1
            return queries.ask(self.store, words).model_dump_json().encode(), "application/json"

        return self.remembered.answer(self.store, "query", words, ends, make)[0]

    def counted(self) -> tuple[bytes, str]:
        """An answer that nobody looks at."""
        self.times += 1
        return b"", ""


def grow(writer: RecordingWriter) -> None:
    writer.append_events(events(100, 99, start_ns=START + 8 * SECOND, per_s=100))


def test_time_that_is_over_is_asked_once_though_more_comes(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    first = asked(OVER)
    grow(writer)
    assert asked(OVER) == first
    assert asked.times == 1


def test_a_moment_before_the_end_is_another_one_by_and_by(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    words = {**OVER, "from": "-6s", "to": str(START + 4 * SECOND)}
    asked(words)
    asked(words)
    assert asked.times == 1
    grow(writer)
    asked(words)
    assert asked.times == 2


def test_what_goes_on_is_asked_each_time_and_what_is_at_rest_once(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    asked(OPEN)
    asked({**OVER, "to": str(START + 7 * SECOND)})
    asked({**OVER, "to": str(START + 7 * SECOND)})
    first = asked(OPEN)
    assert asked.times == 4
    grow(writer)
    assert asked(OPEN) != first
    writer.close()
    asked(OPEN)
    asked(OPEN)
    assert asked.times == 6


@pytest.mark.parametrize("change", ["seal", "loss"])
def test_time_that_is_over_is_asked_anew_when_the_recording_changes(
    change: str, writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    asked(OVER)
    if change == "seal":
        writer.seal()
    else:
        writer.loss("overrun", "block", START, START + SECOND, 5)
    asked(OVER)
    assert asked.times == 2


def test_what_comes_late_into_time_that_is_over_is_told(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    first = asked(OVER)
    writer.append_events(events(50, 7, start_ns=START + SECOND, per_s=100))
    assert asked(OVER) != first


def test_a_question_with_an_open_end_is_never_over(writer: RecordingWriter, path: Path) -> None:
    asked = Asked(path)
    asked(OVER, ("to", "around_to"))
    grow(writer)
    asked(OVER, ("to", "around_to"))
    assert asked.times == 2


def test_other_questions_have_other_answers(writer: RecordingWriter, path: Path) -> None:
    asked = Asked(path)
    answers = {
        asked(OVER),
        asked({**OVER, "interval": "1s"}),
        asked({**OVER, "statistic": "io.bytes"}),
        asked({**OVER, "to": str(START + 2 * SECOND)}),
    }
    assert len(answers) == asked.times == 4


def test_the_oldest_are_forgotten_beyond_a_number_of_bytes(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    size = len(asked(OVER))
    asked = Asked(path, most_bytes=2 * size + size // 2)
    spans = [{**OVER, "from": str(START + number)} for number in range(3)]
    for words in spans:
        asked(words)
    asked(spans[2])
    assert asked.times == 3
    asked(spans[0])
    assert asked.times == 4
    large = Asked(path, largest=size - 1)
    large(OVER)
    large(OVER)
    assert large.times == 2


def test_the_oldest_are_forgotten_beyond_a_number(writer: RecordingWriter, path: Path) -> None:
    asked = Asked(path, most=2)
    spans = [{**OVER, "from": str(START + number)} for number in range(3)]
    for words in (*spans, *spans[1:]):
        asked(words)
    assert asked.times == 3
    asked(spans[0])
    assert asked.times == 4


def test_counters_are_over_once_there_is_a_reading_after_the_end(
    writer: RecordingWriter, path: Path
) -> None:
    for source, every in (("diskstats", 2), ("cpu", 1)):
        readings = samples(4, source=source, start_ns=START)
        times = pa.array([START + every * number * SECOND for number in range(4)], pa.int64())
        writer.append_samples(readings.set_column(1, SAMPLES.field("time_ns"), times))
    # events and the quicker counters go on to 8 s and 3 s, the slower ones to 6 s
    writer.seal()
    asked = Asked(path)
    for until, times in ((7, 2), (4, 4), (3, 5)):
        words = {**OVER, "to": str(START + until * SECOND)}
        grow(writer)
        asked(words)
        asked(words)
        assert asked.times == times


def test_what_is_kept_is_over_once_all_of_its_last_sum_is_sealed(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    grow(writer)
    (path / STATE).parent.mkdir(exist_ok=True)
    State().write(path)
    asked(OVER)
    asked(OVER)
    assert asked.times == 2


def test_a_range_beside_another_ends_with_its_last_column(
    writer: RecordingWriter, path: Path
) -> None:
    asked, ends = Asked(path), ("to", "other_to")
    words = {
        **OVER,
        "to": str(START + 2 * SECOND),
        "other_from": str(START),
        "other_to": str(START + 2 * SECOND),
    }
    for interval, times in (("1s", 1), ("10s", 3)):
        for _ in range(2):
            asked.remembered.answer(
                asked.store, "difference", {**words, "interval": interval}, ends, asked.counted
            )
        assert asked.times == times


def test_what_is_refused_is_refused_each_time(writer: RecordingWriter, path: Path) -> None:
    asked = Asked(path)
    for words in ({**OVER, "from": "yesterday"}, {**OVER, "statistic": "io.opps"}):
        for _ in range(2):
            with pytest.raises(UsageError):
                asked(words)


def test_a_trace_is_asked_anew_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = "time:ms,latency:us,size:bytes,op\n" + "".join(
        f"{at},100,512,read\n" for at in range(100)
    )
    path.write_text(lines)
    asked = Asked(path)
    words = {"recording": "t.csv", "statistic": "io.ops", "from": "0", "to": str(SECOND)}
    first = asked(words)
    assert asked(words) == first
    assert asked.times == 1
    path.write_text(lines + "50,100,512,read\n")
    assert asked(words) != first


def test_over_the_wire_answers_differ_by_their_form(writer: RecordingWriter, path: Path) -> None:
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    with TestClient(application(Store([path]), door), base_url="http://127.0.0.1:8750") as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        words = {**OVER, "statistic": "io.ops[latency]", "drawn": "true"}

        def get(accept: str) -> Any:
            return client.get("/api/v1/query", params=words, headers={"accept": accept})

        for _ in range(2):
            plain, binary = get("application/json"), get("application/vnd.iolab.heat")
            assert plain.json()["kind"] == "map"
            assert binary.content[:4] == b"ioHm"
            assert plain.headers["vary"] == "Accept, Accept-Encoding"
