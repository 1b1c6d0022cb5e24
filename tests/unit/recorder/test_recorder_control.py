# SPDX-License-Identifier: Apache-2.0
"""Speaking to a recorder: words, answers, who is heard, and what a bad peer can't do."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from iolab.base.clock import FakeClock, SystemClock
from iolab.base.errors import ResultsError, RunError
from iolab.recordings.record.control import Client, Control, say
from iolab.recordings.record.recorder import wait_readable
from iolab.recordings.record.settings import Settings
from support.recorder import Bench, FakeSink


class Served:
    """A control that echoes, in a thread of its own."""

    def __init__(self, directory: Path) -> None:
        self.control = Control(directory)
        self.heard: list[dict[str, Any]] = []
        self._over = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over:
            wait_readable(self.control.files(), 0.05)
            self.control.serve(self._obey)

    def _obey(self, request: dict[str, Any], client: Client) -> None:
        self.heard.append(request)
        client.answer({"ok": True, "echo": request})

    def close(self) -> None:
        self._over = True
        self._thread.join()
        self.control.close()


@pytest.fixture
def served(tmp_path: Path) -> Any:
    one = Served(tmp_path)
    yield one
    one.close()


def connected(directory: Path) -> socket.socket:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(str(directory / "control"))
    channel.settimeout(5)
    return channel


def test_a_word_is_answered(served: Served, tmp_path: Path) -> None:
    assert say(tmp_path, {"word": "status", "n": 1})["echo"] == {"word": "status", "n": 1}


def test_only_its_user_may_connect(served: Served, tmp_path: Path) -> None:
    mode = (tmp_path / "control").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_stranger_is_hung_up_on_even_where_the_file_is_open_to_all(
    served: Served, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    (tmp_path / "control").chmod(0o666)
    for directory in (tmp_path, *tmp_path.parents[:3]):
        directory.chmod(directory.stat().st_mode | 0o055)
    code = (
        "import os, socket, sys; os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3); "
        "c = socket.socket(socket.AF_UNIX); c.settimeout(5); c.connect(sys.argv[1]); "
        "c.sendall(b'{\"word\": \"stop\"}\\n'); sys.exit(c.recv(10) != b'')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "control")],
        cwd="/",
        check=False,
        capture_output=True,
    )
    assert (
        done.returncode == 0 or b"ConnectionReset" in done.stderr or b"BrokenPipe" in done.stderr
    ), done.stderr
    assert served.heard == []


def test_lines_in_pieces_and_several_at_once(served: Served, tmp_path: Path) -> None:
    with connected(tmp_path) as channel:
        for part in (b'{"wo', b'rd": "a"}\n{"word"', b': "b"}\n'):
            channel.sendall(part)
        data = b""
        while data.count(b"\n") < 2:
            data += channel.recv(4096)
    assert [json.loads(line)["echo"]["word"] for line in data.splitlines()] == ["a", "b"]


@pytest.mark.parametrize("line", [b"noise\n", b"[1]\n", b"\xff\xfe\n", b"[" * 5000 + b"\n"])
def test_what_is_no_request_is_answered_and_harms_nobody(
    line: bytes, served: Served, tmp_path: Path
) -> None:
    with connected(tmp_path) as channel:
        channel.sendall(line)
        assert json.loads(channel.recv(4096))["ok"] is False
    assert say(tmp_path, {"word": "status"})["ok"]


def test_a_line_without_end_is_hung_up_on(served: Served, tmp_path: Path) -> None:
    with connected(tmp_path) as channel:
        with pytest.raises(OSError):
            channel.sendall(b"x" * (100 << 16))
        assert say(tmp_path, {"word": "status"})["ok"]


def test_peers_that_are_idle_or_too_many_keep_nobody_out(served: Served, tmp_path: Path) -> None:
    idle = [connected(tmp_path) for _ in range(40)]
    for channel in idle:
        channel.close()
    assert say(tmp_path, {"word": "status"})["ok"]


def test_peers_that_hung_up_before_they_were_heard_make_room(tmp_path: Path) -> None:
    control, heard = Control(tmp_path), list[dict[str, Any]]()
    for channel in [connected(tmp_path) for _ in range(16)]:
        channel.close()
    with connected(tmp_path) as channel:
        channel.sendall(b'{"word": "status"}\n')
        control.serve(lambda request, client: heard.append(request))
    control.close()
    assert heard == [{"word": "status"}]


def test_a_deep_directory_is_no_hindrance(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-long-name-of-a-directory"] * 8)
    deep.mkdir(parents=True)
    served = Served(deep)
    try:
        assert len(str(deep)) > 108
        assert say(deep, {"word": "status"})["ok"]
    finally:
        served.close()
    assert not (deep / "control").exists()


def test_a_socket_left_by_a_kill_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "control"))
    left.close()
    with pytest.raises(RunError, match="no recorder listens"):
        say(tmp_path, {"word": "status"})
    served = Served(tmp_path)
    assert say(tmp_path, {"word": "status"})["ok"]
    served.close()


def test_without_a_recorder_it_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no recorder listens"):
        say(tmp_path, {"word": "status"})


def conversation(
    tmp_path: Path,
    *requests: dict[str, Any],
    into: FakeSink | None = None,
) -> tuple[list[dict[str, Any]], FakeSink, FakeClock]:
    """What a recorder on a fake clock answers to words that come in its third second."""
    bench = Bench(
        tmp_path,
        Settings(sources=("block",), duration=8.0),
        sink=into or FakeSink(),
        requests=[(2.5, request) for request in requests],
    )
    bench.run()
    return bench.control.answers, bench.sink, bench.clock


def test_a_cut_is_answered_once_everything_before_it_is_sealed(tmp_path: Path) -> None:
    [answer], sink, _ = conversation(tmp_path, {"word": "cut", "label": "here"})
    assert answer["ok"]
    assert answer["sealed"] == 1
    assert 3.0 <= answer["at"] <= 3.5
    assert answer["until_ns"] - answer["from_ns"] >= 2_500_000_000
    [mark] = sink.marks
    assert mark["label"] == "here"
    assert mark["from_ns"] == mark["until_ns"]
    assert sink.seals == 1


def test_a_mark_is_kept_as_given(tmp_path: Path) -> None:
    [answer], sink, _ = conversation(
        tmp_path,
        {
            "word": "mark",
            "label": "r1",
            "from_ns": 5,
            "until_ns": None,
            "kind": "run",
            "link": "runs/r1",
            "facts": {"a": 1},
        },
    )
    assert answer | {"at": 0} == {"at": 0, "sealed": 0, "ok": True, "from_ns": 5, "until_ns": None}
    assert sink.marks == [
        {
            "label": "r1",
            "from_ns": 5,
            "until_ns": None,
            "kind": "run",
            "link": "runs/r1",
            "facts": {"a": 1},
        }
    ]


def test_what_the_disk_refuses_is_answered_and_recording_goes_on(tmp_path: Path) -> None:
    class Refusing(FakeSink):
        def seal(self) -> None:
            raise ResultsError("can't seal a segment: Too many open files")

        def mark(self, *_: Any, **__: Any) -> None:
            raise ResultsError("can't add a line: Too many open files")

    answers, sink, clock = conversation(
        tmp_path, {"word": "mark", "label": "x", "from_ns": 1}, {"word": "cut"}, into=Refusing()
    )
    assert [(answer["ok"], answer["error"]) for answer in answers] == [
        (False, "can't add a line: Too many open files"),
        (False, "can't seal a segment: Too many open files"),
    ]
    assert sink.rows == 80
    assert clock.monotonic() >= 8


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), 1e300, -1, 2**63, 10**25, True, "1", [], {}, 1.5]
)
@pytest.mark.parametrize("field", ["from_ns", "until_ns"])
def test_a_time_that_is_none_is_answered(field: str, value: Any, tmp_path: Path) -> None:
    answers, sink, clock = conversation(
        tmp_path, {"word": "mark", "label": "x", "from_ns": 1, "until_ns": 2, field: value}
    )
    assert answers[0]["error"] == f"not understood: {field} is not a time in nanoseconds"
    assert (sink.marks, sink.rows) == ([], 80)
    assert clock.monotonic() >= 8


def test_stop_ends_it(tmp_path: Path) -> None:
    [answer], sink, clock = conversation(tmp_path, {"word": "stop"})
    assert answer["ok"]
    assert sink.closed
    assert clock.monotonic() < 4


def test_status_has_the_counts(tmp_path: Path) -> None:
    [answer], _, _ = conversation(tmp_path, {"word": "status"})
    assert answer["events"] == {"block": 20}
    assert answer["now_ns"] - answer["from_ns"] == round(answer["at"] * 1e9)
    assert answer["ahead_ns"] == 0
    assert answer["state"] == "recording"


def test_what_another_recording_holds_is_taken_in(tmp_path: Path) -> None:
    [answer], sink, _ = conversation(
        tmp_path,
        {"word": "take", "path": "/made/beside", "label": "r1", "from_ns": 5, "until_ns": 9},
    )
    assert answer | {"at": 0} == {"at": 0, "sealed": 0, "ok": True, "segments": 1}
    assert sink.taken == [(Path("/made/beside"), "r1", 5, 9)]


@pytest.mark.parametrize(
    "request_",
    [
        {"word": "format"},
        {},
        {"word": "mark"},
        {"word": "mark", "label": "x", "from_ns": "soon"},
        {"word": "mark", "label": "x", "from_ns": 1, "facts": 5},
        {"word": None},
        {"word": "take"},
        {"word": "take", "label": "x", "from_ns": 1, "until_ns": 2},
        {"word": "take", "label": "x", "from_ns": 1, "path": "/a"},
        {"word": "take", "label": "x", "from_ns": 1, "until_ns": 2, "path": "a"},
        {"word": "take", "label": "x", "from_ns": 1, "until_ns": 2, "path": "/a\0"},
    ],
)
def test_words_that_mean_nothing_are_answered(request_: dict[str, Any], tmp_path: Path) -> None:
    [answer], sink, _ = conversation(tmp_path, request_)
    assert answer["ok"] is False
    assert answer["error"]
    assert sink.marks == []


def test_the_real_clock_works_too(tmp_path: Path) -> None:
    assert SystemClock().monotonic() > 0
    with pytest.raises(RunError):
        Control(tmp_path / "absent")
