# SPDX-License-Identifier: Apache-2.0
"""`iolab keep` on a recording at rest, and on one that is being made by `iolab record` with a probe
that runs anywhere."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.golden import Golden
from support.recordings import SECOND, START, events, samples
from support.waiting import PATIENCE, recorded_events, until

FRAMES = Path(__file__).parents[1] / "support/frames.py"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(3):
            writer.append_events(
                events(200, number, start_ns=START + number * 10 * SECOND, per_s=20)
            )
            writer.append_samples(samples(20, start_ns=START + number * 10 * SECOND))
            writer.seal()
    return path


def listed(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["keep", "list", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["kind"]) == (1, "kept")
    return {row["statistic"]: row for row in found["statistics"]}


def test_on_a_recording_at_rest(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keep", "list", str(place)]) == 0
    assert "nothing is kept" in capsys.readouterr().err
    assert (
        run(
            [
                "keep",
                "add",
                str(place),
                "io.ops[process=fio][latency]",
                "io.bytes[device]",
                "--backfill",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "io.ops[process=fio][latency]  kept   2023-11-14T22:13:20Z" in out
    rows = listed(place, capsys)
    assert [row["segments"] for row in rows.values()] == [3, 3]
    assert {row["source"] for row in rows.values()} == {"block"}
    assert {row["kind"] for row in rows.values()} == {"heat", "stack"}
    assert run(["keep", "pause", str(place), "io.bytes[device]"]) == 0
    assert "io.bytes[device]: not kept from" in capsys.readouterr().out
    assert {name: row["state"] for name, row in listed(place, capsys).items()} == {
        "io.ops[process=fio][latency]": "kept",
        "io.bytes[device]": "paused",
    }
    assert run(["keep", "resume", str(place)]) == 0
    assert {row["state"] for row in listed(place, capsys).values()} == {"kept"}
    assert run(["keep", "prune", str(place), "--before", "-15s"]) == 2
    told = capsys.readouterr().err
    assert "would delete what was kept before 2023-11-14T22:13:" in told
    assert "io.bytes[device]: " in told
    assert "nothing was deleted: stdin or stderr is not a terminal; --yes" in told
    assert listed(place, capsys)["io.bytes[device]"]["tiers"][0]["first_ns"] == START
    assert run(["keep", "prune", str(place), "--before", "-15s", "--yes"]) == 0
    capsys.readouterr()
    assert listed(place, capsys)["io.bytes[device]"]["tiers"][0]["first_ns"] >= START + 14 * SECOND
    assert run(["keep", "drop", str(place), "io.bytes[device]"]) == 0
    assert list(listed(place, capsys)) == ["io.ops[process=fio][latency]"]


def test_a_list_has_the_order_that_is_asked_for(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["io.ops[latency]", "io.bytes[device]", "io.ops"]
    assert run(["keep", "add", str(place), *names, "--backfill"]) == 0
    rows = listed(place, capsys)
    assert list(rows) == names
    for order, expected in (
        ("name", sorted(names)),
        ("size", sorted(names, key=lambda name: -rows[name]["bytes"])),
        ("cpu", sorted(names, key=lambda name: -rows[name]["cpu_ns"])),
        ("since", names),
    ):
        assert run(["keep", "list", str(place), "--sort", order, "--format", "json"]) == 0
        assert [
            row["statistic"] for row in json.loads(capsys.readouterr().out)["statistics"]
        ] == expected


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("1d", "write -1d (before the end)"),
        ("30", "counts from the start"),
        ("2126-03-01T12:00:05", "is in the future"),
        ("-1x", "not a moment"),
    ],
)
def test_a_forgotten_sign_deletes_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], before: str, says: str
) -> None:
    assert run(["keep", "add", str(place), "io.ops", "--backfill"]) == 0
    rows = listed(place, capsys)
    assert run(["keep", "prune", str(place), "--before", before, "--yes"]) == 2
    assert says in capsys.readouterr().err
    assert listed(place, capsys) == rows


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_asks(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    assert run(["keep", "add", str(place), "io.ops", "--backfill"]) == 0
    rows = listed(place, capsys)
    monkeypatch.setattr("iolab.cli.record.keep.on_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    assert run(["keep", "prune", str(place), "--before", "-15s"]) == (0 if answer == "y" else 130)
    assert "Delete it?" in capsys.readouterr().err
    assert (listed(place, capsys) == rows) is (answer == "n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["limits", "{}", "--bytes", "10"], 2),
        (["add", "{}", "io.opps"], 2),
        (["add", "{}", "io.ops", "io.ops"], 2),
        (["drop", "{}", "io.ops"], 2),
        (["drop", "{}"], 2),
        (["list", "{}/nothing"], 3),
        (["prune", "{}", "--before", "-1h"], 2),
        (["pause", "{}", "io.ops[latency]"], 2),
        (["add", "{}", "io.ops[latency]", "--format", "csv"], 2),
    ],
)
def test_what_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, golden: Golden
) -> None:
    assert run(["keep", *(word.format(place) for word in words)]) == code
    told = capsys.readouterr()
    golden("cli/keep-refused", f"$ iolab keep {' '.join(words)}\n{told.err}")
    assert "Traceback" not in told.err


@pytest.fixture
def recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Path, subprocess.Popen[str]]]]:
    """Begin a recording of what a made-up probe tells."""
    if os.geteuid() != 0:
        pytest.skip("recording block needs root")
    begun: list[subprocess.Popen[str]] = []

    def begin(*more: str, **script: Any) -> tuple[Path, subprocess.Popen[str]]:
        probe = tmp_path / "probe"
        probe.write_text(
            f"#!/bin/sh\nexec {sys.executable} {FRAMES} '{json.dumps({'rate': 200, **script})}' \"$@\"\n"
        )
        probe.chmod(0o755)
        for name in ("SUDO_UID", "SUDO_GID"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("IOLAB_PROBE", str(probe))
        path = tmp_path / "live"
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "iolab.cli",
                "record",
                "block",
                "--quiet",
                "-o",
                str(path),
                *more,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(child)
        until(lambda: (path / "control").exists(), "the recorder")
        return path, child

    yield begin
    for child in begun:
        if child.poll() is None:
            child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()


def more_events(path: Path) -> None:
    """Wait for a second's worth of events."""
    recorded_events(
        path, sum(sum(segment.sources.values()) for segment in Recording(path).segments()) + 200
    )


def cut(path: Path) -> None:
    from iolab.recordings.record.control import say

    more_events(path)
    say(path, {"word": "cut"}, timeout=PATIENCE)


@pytest.mark.slow
def test_on_a_recording_that_is_being_made(
    recording: Callable[..., tuple[Path, subprocess.Popen[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, child = recording()
    rows = listed(path, capsys)
    assert list(rows) == ["io.ops[op]", "io.bytes[op]", "io.ops[latency]"], (
        "few are kept from the start"
    )
    assert run(["keep", "add", str(path), "io.ops[process]"]) == 0
    until(
        lambda: listed(path, capsys)["io.ops[process]"]["state"] != "pending", "the keeper to begin"
    )
    cut(path)
    until(
        lambda: all(row["segments"] for row in listed(path, capsys).values()),
        "the segment to be kept",
    )
    rows = listed(path, capsys)
    assert rows["io.ops[latency]"]["source"] == "block"
    assert rows["io.ops[process]"]["since_ns"] >= rows["io.ops[op]"]["since_ns"]
    assert run(["keep", "drop", str(path), "io.bytes[op]"]) == 0
    until(lambda: not list(path.glob("histograms/1s/io.bytes*")), "what was dropped to go")
    child.send_signal(signal.SIGINT)
    assert child.wait(PATIENCE) == 0
    # all that was recorded is kept, and nothing twice
    rows = listed(path, capsys)
    assert sum(each["rows"] for each in rows["io.ops[op]"]["tiers"]) > 0
    from iolab.recordings.ask.kept.files import tables
    from iolab.recordings.ask.kept.files.paths import TIERS, files, folder_name

    kept = [
        tables.read(each.path).table for each in files(path, TIERS[0], folder_name("io.ops[op]"))
    ]
    recorded = sum(sum(segment.sources.values()) for segment in Recording(path).segments())
    assert sum(sum(table["amount"].to_pylist()) for table in kept) == recorded > 0


@pytest.mark.slow
def test_none_is_kept_where_none_is_wanted(
    recording: Callable[..., tuple[Path, subprocess.Popen[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, child = recording("--statistic", "none")
    assert listed(path, capsys) == {}
    assert run(["keep", "add", str(path), "io.ops"]) == 0
    until(lambda: listed(path, capsys)["io.ops"]["state"] == "waiting", "the keeper to wait")
    more_events(path)
    child.send_signal(signal.SIGINT)
    assert child.wait(PATIENCE) == 0
    assert listed(path, capsys)["io.ops"]["segments"] == 1


@pytest.mark.slow
def test_a_recorder_that_is_killed_loses_nothing_that_was_sealed(
    recording: Callable[..., tuple[Path, subprocess.Popen[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, child = recording("--statistic", "io.ops[op]")
    cut(path)
    more_events(path)
    child.kill()
    child.wait()
    path, child = recording("--duration", "2s")
    assert child.wait(PATIENCE) == 0
    from iolab.recordings.ask.kept.files import tables
    from iolab.recordings.ask.kept.files.paths import TIERS, files, folder_name

    kept = [
        tables.read(each.path).table for each in files(path, TIERS[0], folder_name("io.ops[op]"))
    ]
    recorded = sum(sum(segment.sources.values()) for segment in Recording(path).segments())
    assert sum(sum(table["amount"].to_pylist()) for table in kept) == recorded > 0
    assert len(Recording(path).gaps()) == 1
