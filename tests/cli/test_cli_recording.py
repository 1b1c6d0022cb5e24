# SPDX-License-Identifier: Apache-2.0
"""`iolab import TRACE... -o DIR` and `iolab show DIR` as a user types them, and every mistake as
one line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.store.ledger import append_line
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job_lat.1.log"
    path.write_text(
        "".join(
            f"{i // 10}, {100_000 + 10 * i}, {i % 2}, 8192, {8192 * i}, 0\n" for i in range(1000)
        )
    )
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "live"
    with RecordingWriter.create(
        path,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        sources={"block": {"what": "every disk"}},
        retention={"bytes": 10**9},
    ) as writer:
        writer.append_events(events(1000))
        writer.append_samples(samples(10))
        writer.loss("overrun", "block", START, START + SECOND, 12)
        writer.loss("gap", "", START + SECOND, START + 3 * SECOND, None)
        writer.mark("0001-ab", START, START + SECOND, "run")
        for pid in range(5):
            writer.process(pid, "fio", f"fio --name=job{pid} {'--more ' * 40}", START)
        writer.process(7, "kworker", "", START)
    return path


def done(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[str, str]:
    assert run([str(arg) for arg in args]) == 0
    out, err = capsys.readouterr()
    return out, err


def failing(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    code = run([str(arg) for arg in args])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return code, err


def test_imported_and_shown(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = done(capsys, "import", log, "-o", tmp_path / "r", "--host", "elsewhere")
    assert "imported 1 000 I/Os into" in said
    out, _ = done(capsys, "show", tmp_path / "r")
    assert "recording of elsewhere, 1 000 I/Os over 99 ms" in out
    assert "source    fio 1 000 I/Os (fio-lat)" in out
    assert "losses    none" in out
    told = json.loads(done(capsys, "show", tmp_path / "r", "--format", "json")[0])
    of_trace = json.loads(done(capsys, "show", log, "--format", "json")[0])
    assert (told["schema"], told["kind"]) == (1, "recording")
    assert told["events"] == {
        "recorded": 1000,
        "lost": 0,
        "damaged": 0,
        "unpaired": 0,
        "rows": 1000,
        "losses_of_unknown_number": 0,
    }
    assert told["percentiles"]["fio"] == of_trace["percentiles"]
    assert told["latency_by_op"]["fio"] == of_trace["latency_by"]["op"]
    assert told["ops"] == of_trace["ops"]


def test_events_of_several_sources_are_no_sum_of_ios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the block layer and fio both saw is not told as twice as many I/Os."""
    with RecordingWriter.create(
        tmp_path / "r", host="box", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for source in ("block", "fio"):
            writer.append_events(events(100, source=source))
    out, _ = done(capsys, "show", tmp_path / "r")
    assert "I/Os" not in out.splitlines()[0]
    assert re.search(r"recording of box, [\d ]+ events of 2 sources over", out)
    assert "note      an I/O that several sources saw counts for each of them below" in out
    alone, _ = done(capsys, "show", tmp_path / "r", "--format", "json")
    assert set(json.loads(alone)["sources"]) == {"block", "fio"}


def test_several_and_once_more(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "t.csv"
    other.write_text("1,2\nx,y\n3,4\n")
    done(capsys, "import", log, log, "-o", tmp_path / "r")
    _, said = done(capsys, "import", other, "--columns", "time:us,latency:us", "-o", tmp_path / "r")
    assert "imported 2 I/Os" in said
    assert "note: 1 damaged lines or records left out" in said
    told = json.loads(done(capsys, "show", tmp_path / "r", "--format", "json")[0])
    assert told["events"]["recorded"] == 2002
    assert told["events"]["damaged"] == 1
    assert {name: each["events"] for name, each in told["sources"].items()} == {
        "fio": 2000,
        "csv": 2,
    }


@pytest.mark.slow
def test_standard_input(log: Path, tmp_path: Path) -> None:
    def iolab(*args: object) -> str:
        command = [sys.executable, "-m", "iolab.cli", *map(str, args)]
        with log.open() as file:
            return subprocess.run(
                command, stdin=file, check=True, capture_output=True, text=True
            ).stdout

    iolab("import", "-", "--format", "fio-lat", "-o", tmp_path / "r")
    assert "source    fio 1 000 I/Os" in iolab("show", tmp_path / "r")


def test_events_without_a_name_are_not_losses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        sources={"block": {"what": "every disk"}},
        retention={"bytes": 10**9},
    ) as writer:
        writer.append_events(events(1000))
        writer.loss("unknown-name", "block", START, START + SECOND, 2)
    lines = done(capsys, "show", tmp_path / "r")[0].splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("losses", "unnamed"))] == [
        ["unnamed", "2"],
        ["losses", "none"],
    ]


def test_a_live_recording(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = done(capsys, "show", recording)
    for words in (
        "recording of here",
        "begins    2023-11-14 22:13:20 UTC",
        "(every disk)",
        "samples   10",
        "losses    overrun: 12",
        "gap       nothing recorded for 2 s from 2023-11-14 22:13:21 UTC",
        "mark      0001-ab (run) at 0 ns, 1 s",
        "in 1 segment, ",
        "bytes an event",
        "keeps     953.7 MiB at most",
        "latency by op",
    ):
        assert words in out, words
    told = json.loads(done(capsys, "show", recording, "--format", "json")[0])
    assert told["events"]["lost"] == 12
    assert "command   fio: fio --name=job0 --more --more" in out
    assert "command   fio: and 3 more" in out
    assert max(len(line) for line in out.splitlines() if line.startswith("command")) < 140
    assert told["commands"]["fio"][4].startswith("fio --name=job4 ")
    assert list(told["commands"]) == ["fio"]
    assert told["gaps"] == [{"from_ns": START + SECOND, "until_ns": START + 3 * SECOND}]
    assert told["samples"] == 10
    assert told["marks"][0]["label"] == "0001-ab"
    assert told["bytes_per_io"] > 0


def test_what_others_wrote_is_never_written_to_the_terminal_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Command lines and labels with control characters; more command lines than a summary holds."""
    with RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}
    ) as writer:
        writer.append_events(events(100))
        writer.process(1, "fio", "fio \x1b]0;title\x07 \x9b2J \u202e é", START)
        for pid in range(2, 101):
            writer.process(pid, "fio", f"fio --name=job{pid}", START)
        writer.mark("line\nof \x1b[2Jits own", START, START + SECOND, "run")
    out, _ = done(capsys, "show", tmp_path / "r")
    assert "command   fio: fio \\x1b]0;title\\x07 \\x9b2J \\u202e é\n" in out
    assert "command   fio: and at least 18 more\n" in out
    assert "mark      line\\nof \\x1b[2Jits own (run)" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_names_that_are_no_text(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of a pair of UTF-16, as Python has it for a byte of a file's name that is no text."""
    for line in (
        {"label": "\ud800bad", "from_ns": START, "facts": {"\udc80": ["\udcff"]}, "link": "\udc80"},
        {"label": "ok \U0001f600", "from_ns": START},
        {"label": "huge", "from_ns": 10**25},
        {"label": "half", "from_ns": 1.5},
    ):
        append_line(recording / "marks.jsonl", {"kind": "user", "until_ns": None, **line})
    out, _ = done(capsys, "show", recording)
    assert "mark      \\ud800bad (user)" in out
    assert "mark      ok \U0001f600 (user)" in out
    assert "huge" not in out
    assert "half" not in out
    told = json.loads(done(capsys, "show", recording, "--format", "json")[0])
    assert [each["label"] for each in told["marks"]] == ["0001-ab", "\\ud800bad", "ok \U0001f600"]
    assert told["marks"][1]["facts"] == {"\\udc80": ["\\udcff"]}


def test_one_that_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RecordingWriter.create(
        tmp_path / "r",
        host="",
        clock="realtime",
        origin={"kind": "record"},
        retention={"bytes": 10 << 30, "age_s": 604_800},
    ) as writer:
        assert "keeps     10 GiB and 7 d at most" in done(capsys, "show", tmp_path / "r")[0]
        assert "0 I/Os" in done(capsys, "show", tmp_path / "r")[0]
        writer.append_events(events(10))
        out, _ = done(capsys, "show", tmp_path / "r")
        assert "1 not sealed yet" in out


def test_mistakes(
    log: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 20)
    assert failing(capsys, "import", "-o", tmp_path / "r")[0] == 2
    assert failing(capsys, "import", tmp_path / "nowhere", "-o", tmp_path / "r")[0] == 2
    assert (
        "neither a fio result nor a directory"
        in failing(capsys, "import", tmp_path / "noise", "-o", tmp_path / "r")[1]
    )
    assert (
        failing(capsys, "import", tmp_path / "noise", "--format", "fio-lat", "-o", tmp_path / "r2")[
            0
        ]
        == 3
    )
    assert "of another kind" in failing(capsys, "import", log, "-o", recording)[1]
    assert (
        "one directory or archive at a time"
        in failing(capsys, "import", log, log, "--layout", "{variant}", "-o", tmp_path / "r")[1]
    )
    assert failing(capsys, "import", "-", "-", "-o", tmp_path / "r")[0] == 2
    assert not (tmp_path / "r").exists()
    newer = json.loads((recording / "recording.json").read_text()) | {"schema": 2}
    (recording / "recording.json").write_text(json.dumps(newer))
    code, words = failing(capsys, "show", recording)
    assert code == 3
    assert "has schema 2, this iolab knows up to 1" in words
