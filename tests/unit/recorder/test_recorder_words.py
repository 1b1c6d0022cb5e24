# SPDX-License-Identifier: Apache-2.0
"""A probe that says nonsense in frames that are whole: one clear error each, no traceback, and
nothing of it in the recording."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from iolab.base.clock import FakeClock
from iolab.base.errors import IolabError, RunError
from iolab.recordings.record.settings import Settings
from support import frames
from support.recorder import Bench, FakeProbe

HELLO: dict[str, Any] = {
    "probe": "0.1.0",
    "kernel": "6.12",
    "hostname": "here",
    "page_size": 4096,
    "cpus": 2,
    "monotonic_ns": 5 * 10**9,
    "realtime_ns": 17 * 10**17,
    "from_ns": 17 * 10**17,
    "sources": {"block": {"what": "requests", "words": []}},
    "words": ["a word"],
    "pid": 7,
}
WORDS: dict[str, dict[str, Any]] = {
    "tick": {
        "now_ns": 17 * 10**17 + 10**9,
        "monotonic_ns": 6 * 10**9,
        "realtime_ns": 17 * 10**17 + 10**9,
        "cpu_ns": 5,
        "rss_bytes": 4096,
        "events": {"block": 3},
        "lost": {"block": 0},
        "samples": 1,
        "backlog": 0,
    },
    "loss": {
        "source": "block",
        "kind": "overrun",
        "from_ns": 17 * 10**17,
        "until_ns": 17 * 10**17 + 5,
        "count": 3,
        "words": "no room",
    },
    "process": {"pid": 5, "process": "fio", "command": "fio x", "first_ns": 17 * 10**17},
    "note": {"words": "a note"},
    "end": {"reason": "asked", "events": {"block": 3}, "lost": {"block": 0}},
}
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**31,
    2**62,
    2**63,
    10**400,
    1.5,
    1e300,
    "",
    "x",
    "\x1b[31m\ud800",
    [],
    [1, [2]],
    {},
    {"a": None},
    {"a": [1]},
    {"block": -1},
    {"block": []},
    {"block": "x"},
    [{}],
    "9" * 5000,
]
MISSING = object()


class Said(FakeProbe):
    """Begins with a hello of a test's own, and says more of a test's own after it."""

    hello_bytes = b""
    more = b""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._out = self.hello_bytes + self.more


def frame(kind: str, data: dict[str, Any]) -> bytes:
    return frames.frame(kind, json.dumps(data).encode())


def changed(data: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    found = copy.deepcopy(data)
    if value is MISSING:
        found.pop(name, None)
    else:
        found[name] = value
    return found


def outcome_of(place: Path, hello: dict[str, Any], more: bytes = b"") -> IolabError | None:
    """What recording with such a probe fails with; None where it goes on. Anything but an error of
    iolab's own goes through."""
    clock = FakeClock()

    def probes(number: int, sources: Any) -> FakeProbe:
        made = (
            type("Given", (Said,), {"hello_bytes": frame("hello", hello), "more": more})
            if number == 0
            else FakeProbe
        )
        return made(clock, sources)  # type: ignore[no-any-return]

    bench = Bench(place, Settings(sources=("block",), duration=5.0), clock=clock, probes=probes)
    try:
        outcome = bench.run()
    except IolabError as error:
        return error
    assert all(isinstance(each[2], int) and 0 <= each[2] < 2**63 for each in bench.sink.losses)
    return outcome.failure


@pytest.mark.parametrize(
    "name", ["monotonic_ns", "realtime_ns", "from_ns", "sources", "words", "cpus", "hostname"]
)
@pytest.mark.parametrize(
    "value", [*ODD, MISSING], ids=lambda value: "missing" if value is MISSING else repr(value)[:20]
)
def test_a_greeting_with_nonsense_is_one_error_that_names_the_field(
    tmp_path: Path, name: str, value: Any
) -> None:
    error = outcome_of(tmp_path / "r", changed(HELLO, name, value))
    if error is not None:
        assert isinstance(error, RunError)
        text = str(error)
        assert "what the probe says is not understood" in text or "can't record block" in text
        assert len(text) < 400
        assert "\n" not in text


def test_a_sound_greeting_is_one(tmp_path: Path) -> None:
    assert outcome_of(tmp_path / "r", HELLO) is None
    assert (
        outcome_of(
            tmp_path / "s",
            {name: HELLO[name] for name in ("monotonic_ns", "realtime_ns", "sources")},
        )
        is None
    )


def test_the_error_says_which_field_and_what_it_should_be(tmp_path: Path) -> None:
    error = outcome_of(tmp_path / "r", changed(HELLO, "realtime_ns", [1, 2]))
    assert "hello with 'realtime_ns' that is not a time in ns: [1, 2]" in str(error)
    error = outcome_of(tmp_path / "s", changed(HELLO, "sources", MISSING))
    assert "hello without 'sources'" in str(error)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["block", "x", ""]), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.slow
@hypothesis_settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_words_in_whole_frames_end_the_probe_and_never_the_recorder(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    hello = HELLO
    if data.draw(st.booleans()):
        hello = changed(
            HELLO, data.draw(st.sampled_from(list(HELLO))), data.draw(JSON | st.just(MISSING))
        )
    more = b""
    for kind in data.draw(st.lists(st.sampled_from(list(WORDS)), max_size=3)):
        words = WORDS[kind]
        more += frame(
            kind,
            changed(
                words, data.draw(st.sampled_from(list(words))), data.draw(JSON | st.just(MISSING))
            ),
        )
    error = outcome_of(tmp_path_factory.mktemp("r") / "r", hello, more)
    assert error is None or isinstance(error, IolabError)
