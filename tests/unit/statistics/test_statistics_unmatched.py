# SPDX-License-Identifier: Apache-2.0
"""A name that did not occur is said to be none, with those that did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

SPAN: Any = {"from_ns": START, "until_ns": START + 10 * SECOND}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("unmatched") / "r"
    with RecordingWriter.create(
        path, host="", clock="realtime", origin={"kind": "record"}
    ) as writer:
        writer.append_events(events(300))
    return Recording(path)


def notes_of(answer: Any) -> str:
    notes: Sequence[str] = getattr(answer, "notes", ()) or getattr(answer, "assumptions", ())
    return "; ".join(notes)


@pytest.mark.parametrize(
    "statistic",
    [
        "io.ops[device=sdc]",
        "io.ops[device=sdc][op]",
        "io.ops[device=sdc][latency]",
        "io.bytes[device=sdc]",
    ],
)
def test_a_device_that_was_not_there(recording: Recording, statistic: str) -> None:
    said = notes_of(query(recording, statistic, **SPAN))
    assert "there was no device 'sdc' then; there were nvme0n1, sda, sdb" in said


def test_each_name_that_was_not_there_and_no_other(recording: Recording) -> None:
    said = notes_of(query(recording, "io.ops[device=sdc][process=fi0,fio]", **SPAN))
    assert "no device 'sdc'" in said
    assert "no process 'fi0'" in said
    assert "'fio'" not in said
    assert "there was no" not in notes_of(query(recording, "io.ops[device=sda]", **SPAN))
    assert "there was no" not in notes_of(
        query(recording, "io.ops[op=flush][device=sda][size>=1GiB]", **SPAN)
    )


def test_of_a_trace_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "time:us,latency:us,op,device\n"
        + "".join(f"{1000 * number},50,read,vda\n" for number in range(100))
    )
    assert "there was no device 'sda' then; there were vda" in notes_of(
        query(Trace(path), "io.ops[device=sda]")
    )


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> tuple[str, str]:
    assert run([str(each) for each in arguments]) == code
    found = capsys.readouterr()
    return found.out, found.err


def test_the_command_line_says_it_in_every_form(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "there was no device 'sdc' then; there were nvme0n1, sda, sdb"
    name = "io.ops[device=sdc]"
    assert f"note: {words}" in told(capsys, 0, "query", recording.path, name)[0]
    assert (
        words
        in json.loads(told(capsys, 0, "query", recording.path, name, "--format", "json")[0])[
            "notes"
        ][0]
    )
    out, err = told(capsys, 0, "query", recording.path, name, "--format", "csv")
    assert "there was no" not in out
    assert f"note: {words}" in err


def test_a_map_from_the_command_line(
    recording: Recording, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = "there was no device 'sdc' then; there were nvme0n1, sda, sdb"
    for output in ((), ("-o", tmp_path / "m.svg"), ("-o", tmp_path / "m.html")):
        _, err = told(capsys, 3, "heatmap", recording.path, "--where", "device=sdc", *output)
        assert words in err
        assert err.count("\n") == 1
    out, err = told(capsys, 0, "heatmap", recording.path, "--where", "device=sda")
    assert "there was no" not in out + err
