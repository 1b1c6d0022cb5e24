# SPDX-License-Identifier: Apache-2.0
"""Responses that are remembered: until what they depend on changes, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.base.errors import UsageError
from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.app import ResponseCache, application
from iolab.output.server.queries import answers
from iolab.recordings.ask.kept.files.definitions import State
from iolab.recordings.ask.kept.files.paths import STATE
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events
from support.service import TOKEN, recorded

OVER = {
    "recording": "rec",
    "statistic": "io.ops",
    "from": str(START),
    "to": str(START + 3 * SECOND),
}
OPEN = {"recording": "rec", "statistic": "io.ops"}


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
        self.cache = ResponseCache(**bounds)

    def __call__(self, words: dict[str, str]) -> bytes:
        def compute() -> tuple[bytes, str]:
            self.times += 1
            return answers.ask(self.store, words).model_dump_json().encode(), "application/json"

        return self.cache.answer(self.store, "query", words, compute)[0]


def grow(writer: RecordingWriter) -> None:
    writer.append_events(events(100, 99, start_ns=START + 8 * SECOND, per_s=100))


def test_a_question_is_computed_once_until_the_recording_changes(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    first = asked(OPEN)
    assert asked(OPEN) == first
    assert asked.times == 1
    grow(writer)
    assert asked(OPEN) != first
    writer.close()
    asked(OPEN)
    asked(OPEN)
    assert asked.times == 3


def test_a_moment_before_the_end_is_another_one_after_growth(
    writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    words = {**OPEN, "from": "-6s"}
    first = asked(words)
    grow(writer)
    assert asked(words) != first


def test_threads_share_one_recording_and_its_responses(writer: RecordingWriter, path: Path) -> None:
    asked = Asked(path)
    with ThreadPoolExecutor(4) as pool:
        responses = set(pool.map(asked, [OPEN] * 16))
    assert len(responses) == 1
    recording = asked.store.recording("rec")
    assert recording is not None
    assert len({recording.catalogue().version for _ in range(3)}) == 1


@pytest.mark.parametrize("change", ["seal", "loss", "late", "kept"])
def test_a_question_is_computed_again_when_the_recording_changes(
    change: str, writer: RecordingWriter, path: Path
) -> None:
    asked = Asked(path)
    asked(OVER)
    if change == "seal":
        writer.seal()
    elif change == "late":
        writer.append_events(events(50, 7, start_ns=START + SECOND, per_s=100))
    elif change == "kept":
        (path / STATE).parent.mkdir(exist_ok=True)
        State().write(path)
    else:
        writer.loss("overrun", "block", START, START + SECOND, 5)
    asked(OVER)
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
