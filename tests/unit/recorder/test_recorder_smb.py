# SPDX-License-Identifier: Apache-2.0
"""Share and user of Samba's system calls: from the output of smbstatus and testparm, also where it
is damaged, foreign, late or missing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.record.sinks.host_shell import HostShell
from iolab.recordings.record.sinks.smb import (
    DENIED,
    FAILED,
    FOREIGN,
    LATE,
    LONGEST,
    MISSING,
    NO_SHELL,
    SCRIPT,
    SHARES_FAILED,
    SHARES_LATE,
    SHARES_MISSING,
    SILENT,
    Sessions,
    SmbSink,
    parse_answer,
)
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.waiting import PATIENCE

SECOND = 10**9
SHARES = """# Global parameters
[global]
	smb ports = 445

[homes]
	browseable = No

[data]
	path = /srv/link
	real = /srv/data

[twin]
	path = /srv/data

[inner]
	path = /srv/data/inner

[of user]
	path = /home/%U/files
"""


def session(pid: object, user: str, host: str) -> dict[str, Any]:
    return {"server_id": {"pid": pid}, "username": user, "hostname": host}


def tree(pid: object, share: str) -> dict[str, Any]:
    return {"server_id": {"pid": pid}, "service": share}


STATUS: dict[str, Any] = {
    "sessions": {
        "1": session("7", "alice", "ipv4:10.0.0.7:50000"),
        "2": session("8", "bob", "ipv6:::ffff:10.0.0.8:50000"),
        "3": session("9", "bob", "ipv4:10.0.0.9:50000"),
        "4": session("9", "carol", "ipv4:10.0.0.9:50000"),
    },
    "tcons": {
        "1": tree("7", "data"),
        "2": tree("7", "IPC$"),
        "3": tree("8", "bob"),
        "4": tree("9", "data"),
        "5": tree("9", "twin"),
    },
    "open_files": {
        "/home/bob/mail": {
            "service_path": "/home/bob",
            "filename": "mail",
            "opens": {"8/1": {"server_id": {"pid": "8"}}},
        }
    },
}


def answered(status: str | None = None, shares: str = SHARES, config: str = "") -> str:
    status = f"=status\n{json.dumps(STATUS) if status is None else status}\n"
    return f"=config {config}\n{status}\n=shares\n{shares}"


def learned(*texts: str) -> Sessions:
    sessions = Sessions()
    for text in texts:
        sessions.learn(parse_answer(text))
    return sessions


@pytest.mark.parametrize(
    ("pid", "client", "file", "share", "user"),
    [
        (7, "10.0.0.7", "/srv/data/a", "data", "alice"),
        # the longest path counts, and a path ends at a slash
        (7, "10.0.0.7", "/srv/data/inner/a", "inner", "alice"),
        (7, "10.0.0.7", "/srv/data/inner-not/a", "data", "alice"),
        (7, "10.0.0.7", "/srv/database", None, "alice"),
        (7, "10.0.0.7", "/var/lib/samba/x.tdb", None, "alice"),
        # the number belongs to a process with another client now
        (7, "10.0.0.6", "/srv/data/inner/a", "inner", None),
        (7, "10.0.0.6", "/srv/data/a", None, None),
        # a home's path is known from an open file; a path with a variable
        (8, "10.0.0.8", "/home/bob/mail", "bob", "bob"),
        (8, "10.0.0.8", "/home/zoe/files/x", "of user", "bob"),
        # two users, and two shares of this path
        (9, "10.0.0.9", "/srv/data/a", None, None),
        (1, "", "/srv/data/inner/a", "inner", None),
        (1, "", "", None, None),
    ],
)
def test_share_by_path_and_user_by_process(
    pid: int, client: str, file: str, share: str | None, user: str | None
) -> None:
    sessions = learned(answered())
    assert (sessions.share(pid, client, file), sessions.user(pid, client)) == (share, user)


def test_a_server_without_open_files_lists_none() -> None:
    status = {"sessions": STATUS["sessions"]}
    answer = parse_answer(answered(json.dumps(status)))
    assert (answer.trouble, sorted(answer.connections)) == (None, [7, 8, 9])


def test_a_process_that_ended_is_known_for_one_more_answer() -> None:
    none = json.dumps({"sessions": {}, "tcons": {}, "open_files": {}})
    assert learned(answered(), answered(none)).user(7, "10.0.0.7") == "alice"
    assert learned(answered(), answered(none), answered(none)).user(7, "10.0.0.7") is None
    # another server's answer says nothing about this one
    other = answered(none, "", "/etc/other.conf")
    both = learned(answered(), other, other)
    assert (both.user(7, "10.0.0.7"), both.share(7, "10.0.0.7", "/srv/data/a")) == ("alice", "data")


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (f"=config \n=missing\n=shares\n{SHARES}", MISSING),
        (f"=config \n=denied\n=shares\n{SHARES}", DENIED),
        (answered("smbstatus: unknown option --json"), FOREIGN),
        (answered('{"timestamp": "now", "version": "4.17.12"}'), FOREIGN),
        (answered('{"sessions": [], "tcons": {}, "open_files": {}}'), FOREIGN),
        (answered(json.dumps(STATUS)[:-40]), FOREIGN),
        (answered(json.dumps(STATUS | {"tcons": {"1": {"service": "x"}}})), FOREIGN),
        (answered("[" * 100_000), FOREIGN),
        (answered(json.dumps(STATUS).replace('"7"', "Infinity")), FOREIGN),
        (answered(json.dumps(STATUS).replace('"7"', "9" * 5000)), FOREIGN),
        (answered("usage\n=exit 1"), FAILED % "1"),
        (answered("\n=exit 126"), FAILED % "126"),
        (answered("\n=exit 124"), LATE),
        # what was printed before the end may be a part
        (answered(json.dumps(STATUS) + "\n=exit 137"), LATE),
        ("", FOREIGN),
    ],
)
def test_what_smbstatus_does_not_say(text: str, trouble: str) -> None:
    answer = parse_answer(text)
    assert (answer.trouble, answer.connections) == (trouble, {})
    sessions = Sessions()
    sessions.learn(answer)
    # shares need testparm alone
    assert sessions.share(7, "10.0.0.7", "/srv/data/inner/a") == ("inner" if text else None)


@pytest.mark.parametrize(
    ("shares", "trouble"),
    [
        ("", SHARES_MISSING),
        ("=shares 0\n", None),
        ("=shares 1\nLoad smb config files\n", SHARES_FAILED % "1"),
        ("=shares 124\n", SHARES_LATE),
        # a warning changes nothing
        (f"=shares 1\n{SHARES}", None),
    ],
)
def test_what_testparm_does_not_say(shares: str, trouble: str | None) -> None:
    answer = parse_answer(f"=config \n=status\n{json.dumps(STATUS)}\n=exit 0\n{shares}")
    assert (answer.trouble, answer.share_trouble) == (None, trouble)
    # an open file has its share without testparm
    assert ("bob", "/home/bob") in answer.paths


HOSTILE = ["\udcff\ud800", "\x1b[2J\r", "=end", "\x00", "a\n=exit 1", "<script>", "x" * 5000, ""]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_stored_and_end_nothing(name: str, tmp_path: Path) -> None:
    status = {
        "sessions": {"1": session("7", name, "ipv4:10.0.0.7:1")},
        "tcons": {"1": tree("7", name)},
        "open_files": {"1": {"service_path": "/srv", "opens": {"1": {"server_id": {"pid": "7"}}}}},
    }
    made, target, notes, clock = sink(lambda: printing(answered(json.dumps(status), "")))

    def tried() -> bool:
        clock.now += 1
        made.append_events(batch(call(7, "10.0.0.7", "/srv/a")))
        return target.rows[-1]["device"] is not None

    until_said(tried)
    made.close()
    last = target.rows[-1]
    assert last["job"] == last["device"]
    assert len(last["device"].encode()) <= 4 * 256
    assert notes == []


def test_a_path_with_many_variables_takes_no_time() -> None:
    name = "-" * 250
    paths = [f"/srv/{'%U' * 60}", f"/srv/{'%U-' * 60}x"]
    shares = "".join(f"[s{at}]\n\tpath = {path}\n" for at, path in enumerate(paths))
    sessions = learned(answered(shares=shares))
    begin = time.process_time()
    assert sessions.share(7, "", f"/srv/{name}/y") == "s0"
    assert time.process_time() - begin < 1


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=6),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(
                [
                    "sessions",
                    "tcons",
                    "open_files",
                    "server_id",
                    "pid",
                    "username",
                    "service",
                    "opens",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, some.lists(some.sampled_from([*SHARES.split("\n"), "=status", "[x", "\tpath = /("])))
def test_any_output_is_read(status: object, lines: list[str]) -> None:
    sessions = learned(answered(json.dumps(status), "\n".join(lines)))
    sessions.share(7, "10.0.0.7", "/srv/data/a")
    sessions.user(7, "10.0.0.7")


class Target:
    """Keeps batches."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append_events(self, batch: pa.RecordBatch) -> None:
        assert batch.schema == EVENTS
        batch.validate(full=True)
        self.rows += batch.to_pylist()

    def tick(self, now_ns: int) -> None:
        return

    def close(self) -> None:
        return


def call(
    pid: int, client: str | None, file: str | None, process: str = "smbd", at: int = 0
) -> dict[str, Any]:
    return {
        "source": "syscall", "time_ns": at, "op": "write", "count": 1, "size_bytes": 100,
        "process": process, "pid": pid, "client": client, "file": file,
    }  # fmt: skip


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), EVENTS)


def printing(text: str) -> list[str]:
    """A shell that answers each line with a text."""
    return ["sh", "-c", 'while read -r pid; do printf "%s\\n=end\\n" "$0"; done', text]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Time passes as it does, and where it is set ahead."""
        return self.now + time.monotonic()


def sink(begin: Callable[[], Sequence[str]]) -> tuple[SmbSink, Target, list[str], Clock]:
    target, notes, clock = Target(), list[str](), Clock()
    return SmbSink(target, begin, notes.append, clock), target, notes, clock  # type: ignore[arg-type]


def until_said(tried: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not tried():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_calls_get_share_and_user_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.recordings.record.sinks.smb._WAIT_S", PATIENCE)
    made, target, notes, _ = sink(lambda: printing(answered()))
    other = call(5, None, "/srv/data/inner/a", "fio")
    made.append_events(batch(other))
    assert made._shell is None, "no shell where there is no Samba"
    rows = [
        call(7, "10.0.0.7", "/srv/data/a"),
        other,
        call(8, "10.0.0.8", None),
        call(7, "10.0.0.7", "/srv/data/inner/b"),
        call(3, None, "/run/samba/locking.tdb"),
    ]
    made.append_events(batch(*rows))
    made.close()
    assert [(row["job"], row["device"]) for row in target.rows] == [
        (None, None),
        ("data", "alice"),
        (None, None),
        (None, "bob"),
        ("inner", "alice"),
        (None, None),
    ]
    expected = batch(other, *rows).to_pylist()
    given = [row | {"job": None, "device": None} for row in target.rows]
    assert given == expected
    assert notes == []


def test_a_server_that_runs_has_its_shares_from_the_first_call() -> None:
    lines = 'while read -r line; do [ "$line" != any ] || printf "%s\\n=end\\n" "$0"; done'
    early = answered().replace("=status", "=denied")
    made, target, notes, _ = sink(lambda: ["sh", "-c", lines, early])
    made.prepare()

    def tried() -> bool:
        made.tick(0)
        return made._asked_at is None

    until_said(tried)
    made.append_events(batch(call(7, "10.0.0.7", "/srv/data/inner/b")))
    made.close()
    # a connection that ends before smbstatus answers has a share, and no user
    assert [(row["job"], row["device"]) for row in target.rows] == [("inner", None)]
    assert notes == []


def test_no_shell_remains_where_no_server_runs() -> None:
    made, _, notes, _ = sink(lambda: ["sh", "-c", "while read -r line; do echo =end; done"])
    made.prepare()

    def tried() -> bool:
        made.tick(0)
        return made._shell is None

    until_said(tried)
    made.close()
    assert notes == []


def test_questions_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()
    monkeypatch.setattr(HostShell, "send", lambda _, line: sent.append(line))
    monkeypatch.setattr(HostShell, "read", lambda *_: f"{answered()}\n=end\n".encode())
    made, _, _, clock = sink(lambda: ["cat"])
    known, unknown = call(7, "10.0.0.7", "/x"), call(6, "10.0.0.6", "/x")
    for _ in range(5):
        made.append_events(batch(known))
    assert sent == ["7"]
    counts = []
    for _ in range(120):
        clock.now += 1
        made.append_events(batch(known, unknown))
        counts.append(len(sent))
    # 1, 2, 4, 8, 16, then 30 seconds apart
    assert [counts[at] for at in (0, 5, 119)] == [2, 4, 9]
    made.close()


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (printing("=config \n=missing\n=shares 0"), MISSING),
        (printing("=config \n=denied\n=shares 0"), DENIED),
        (printing("?\n=shares 0"), FOREIGN),
        (["true"], SILENT),
        (["sh", "-c", "read -r pid; exit 3"], SILENT),
        (["sleep", "1000"], SILENT),
    ],
)
def test_each_trouble_is_said_once_and_events_stay(begin: list[str], said: str) -> None:
    made, target, notes, clock = sink(lambda: begin)

    def tried() -> bool:
        clock.now += 10
        made.append_events(batch(call(7, "10.0.0.7", "/srv/data/a")))
        return len(target.rows) > 20 and bool(notes)

    until_said(tried)
    made.close()
    assert notes == [said]
    assert {row["device"] for row in target.rows} == {None}


def test_a_shell_that_cannot_be_started_loses_nothing() -> None:
    made, target, notes, _ = sink(lambda: ["/nonexistent/shell"])
    made.append_events(batch(call(7, "10.0.0.7", "/srv/data/a")))
    made.close()
    assert len(target.rows) == 1
    assert notes == [NO_SHELL % "No such file or directory"]


def test_output_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostShell, "read", lambda *_: b"x" * (LONGEST // 4))
    made, target, notes, _ = sink(lambda: ["cat"])
    made.append_events(batch(call(7, "10.0.0.7", "/srv/data/a")))
    made.close()
    assert (len(target.rows), made._text, notes) == (1, b"", [FOREIGN])


def tool(place: Path, name: str, text: str) -> None:
    (place / name).write_text(f"#!/bin/sh\n{text}\n")
    (place / name).chmod(0o755)


def servers() -> Iterator[str]:
    """Processes of Samba on this machine."""
    for process in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if process.read_text() == "smbd\n":
                yield process.parent.name


def script_answer(place: Path, pid: int | str) -> str:
    """What the script prints for a process, with the tools of a directory before all others."""
    return subprocess.run(
        ["sh", "-c", SCRIPT],
        input=f"{pid}\n",
        env={"PATH": f"{place}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout


def test_the_script_answers_by_the_tools_of_the_host(tmp_path: Path) -> None:
    tool(tmp_path, "smbstatus", f"echo '{json.dumps(STATUS)}'")
    link = tmp_path / "link"
    link.symlink_to("/srv")
    tool(
        tmp_path,
        "testparm",
        f"printf '[data]\\n\\tpath = {link}\\n[my]\\n\\tpath = /h/%%U\\n'; echo no >&2",
    )
    text = script_answer(tmp_path, os.getpid())
    assert text.endswith("\n=end\n")
    answer = parse_answer(text.removesuffix("\n=end\n"))
    assert answer.config == ""
    assert set(answer.paths) >= {("data", str(link)), ("data", "/srv"), ("my", "/h/%U")}
    if os.geteuid() == 0:
        assert (answer.trouble, sorted(answer.connections)) == (None, [7, 8, 9])
        tool(tmp_path, "id", "echo 1000")
    assert (
        parse_answer(script_answer(tmp_path, os.getpid()).removesuffix("\n=end\n")).trouble
        == DENIED
    )


@pytest.mark.parametrize(
    ("smbstatus", "testparm", "expected"),
    [
        ("exit 1", "exit 1", (FAILED % "1", SHARES_FAILED % "1")),
        ("kill -9 $$", "echo; exit 3", (LATE, SHARES_FAILED % "3")),
        ("exec sleep 100", "exec sleep 100", (LATE, SHARES_LATE)),
        ("trap : TERM; while :; do sleep 1; done", "echo", (LATE, None)),
    ],
)
def test_the_script_ends_tools_that_hang(
    smbstatus: str, testparm: str, expected: tuple[str, str | None], tmp_path: Path
) -> None:
    tool(tmp_path, "smbstatus", smbstatus)
    tool(tmp_path, "testparm", testparm)
    tool(tmp_path, "id", "echo 0")
    # 10 seconds are too long for a test
    tool(tmp_path, "timeout", 'shift 3; exec /usr/bin/timeout -k 0.1 0.1 "$@"')
    answer = parse_answer(script_answer(tmp_path, os.getpid()).removesuffix("\n=end\n"))
    assert (answer.trouble, answer.share_trouble) == expected


@pytest.mark.parametrize("program", ["/bin/sh", "copy"])
def test_only_a_server_that_root_started_chooses_the_configuration(
    program: str, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    tool(tools, "smbstatus", 'echo "$*" >>"${0%/*}/calls"')
    tool(tools, "testparm", 'echo "$*" >>"${0%/*}/calls"')
    if program == "copy":
        program = str(tmp_path / "smbd")
        shutil.copy("/bin/sh", program)
    server = subprocess.Popen(
        ["smbd", "-c", "read line; exit", "smbd", "-s", "/etc/other.conf"],
        executable=program,
        stdin=subprocess.PIPE,
    )
    try:
        # by its command line it is a server with a configuration of its own
        until_said(lambda: b"/etc/other.conf" in Path(f"/proc/{server.pid}/cmdline").read_bytes())
        is_server = program != "/bin/sh" and os.geteuid() == 0
        if is_server:
            # found by its name; where another server runs, that may be the one
            text = script_answer(tools, "any")
            assert text.endswith("\n=end\n")
            assert parse_answer(text).config or len(list(servers())) > 1
        expected = "/etc/other.conf" if is_server else ""
        assert parse_answer(script_answer(tools, server.pid)).config == expected
        assert ("/etc/other.conf" in (tools / "calls").read_text()) == is_server
    finally:
        server.communicate(b"x", timeout=PATIENCE)


def test_statistics_of_samba_are_calls_of_its_processes(tmp_path: Path) -> None:
    rows = [
        call(7, "10.0.0.7", "/srv/data/a", at=0) | {"job": "data", "device": "alice"},
        call(8, "10.0.0.8", "/srv/data/b", at=SECOND) | {"job": "data", "device": "bob"},
        call(8, "10.0.0.8", "/run/x.tdb", at=2 * SECOND),
        call(5, None, "/srv/data/a", "fio", at=3 * SECOND),
    ]
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        live=False,
        sources={"syscall": {}},
    ) as writer:
        writer.append_events(batch(*rows))
    recording = Recording(tmp_path / "r")

    def totals(name: str) -> dict[str, float] | float:
        found = query(recording, name, from_ns=0, until_ns=4 * SECOND)
        if isinstance(found, Series):
            return found.total
        assert isinstance(found, Stack)
        return {key: total for key, total in zip(found.keys, found.totals, strict=True) if total}

    assert totals("file.ops") == 4
    assert totals("smb.ops") == 3
    assert totals("smb.bytes") == 300
    assert totals("smb.ops[share!=unknown]") == 2
    assert totals("smb.ops[client]") == {"10.0.0.7": 1, "10.0.0.8": 2}
    assert totals("smb.ops[user]") == {"alice": 1, "bob": 1, "unknown": 1}
    assert totals("smb.bytes[user=bob][share]") == {"data": 100}
    assert totals("smb.ops[share=data][file]") == {"/srv/data/a": 1, "/srv/data/b": 1}
    # what is unknown has a reason, also where it is all
    for name, share in (("[user]", "33.3"), ("[user=unknown][user]", "100")):
        [note] = query(recording, f"smb.ops{name}").notes  # type: ignore[union-attr]
        assert note.startswith(f"unknown user: {share} % of calls, of connections that smbstatus")
    assert query(recording, "smb.ops[share=data][share]").notes == ()  # type: ignore[union-attr]


def test_the_implied_condition_is_not_in_the_name() -> None:
    for text in ("smb.ops", "smb.ops[share=data][client]", "smb.bytes[latency>=1ms][file]"):
        statistic = parse(text)
        assert str(statistic) == text
        assert parse(str(statistic)) == statistic
        assert statistic.filters[0].field == "process"
    assert str(parse("smb.ops[process=smbd][op]")) == "smb.ops[op]"
