# SPDX-License-Identifier: Apache-2.0
"""Processes that read disks by io_uring, libaio or mapped files are named where files are asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from iolab import _core
from iolab.recordings.ask.answers.answers import Answer
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START

MIB = 1 << 20
COMMANDS = {"backup": "backup --all", "db": "db", "ls": "ls /", "kworker/1:1": ""}


def recorded(place: Path, rows: list[tuple[str, str, int]]) -> Recording:
    """A recording of (source, process, bytes), one a second."""
    with RecordingWriter.create(
        place,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        live=False,
        sources={source: {} for source, _, _ in rows},
    ) as writer:
        for number, (process, command) in enumerate(COMMANDS.items()):
            writer.process(number, process, command, START)
        batch = [
            {
                "source": source,
                "time_ns": START + at * SECOND,
                "op": "read",
                "count": 1,
                "process": process,
                "size_bytes": size,
                "latency_ns": 1000,
                "latency_bucket": _core.grid_index(1000, 6),
            }
            for at, (source, process, size) in enumerate(rows)
        ]
        writer.append_events(pa.RecordBatch.from_pylist(batch, EVENTS))
    return Recording(place)


ROWS = [
    ("block", "backup", 8 * MIB),
    ("block", "db", 8 * MIB),
    ("syscall", "db", 8 * MIB),
    ("block", "kworker/1:1", 8 * MIB),
    ("block", "ls", 4096),
]


def notes(answer: Answer) -> list[str]:
    words = answer.assumptions if isinstance(answer, HeatCounts) else answer.notes
    return [note for note in words if "io_uring" in note]


@pytest.mark.parametrize(
    "name", ["file.ops", "file.bytes[op]", "file.ops[latency]", "file.bytes[process=backup]"]
)
def test_a_program_without_file_operations_is_named(tmp_path: Path, name: str) -> None:
    [note] = notes(query(recorded(tmp_path / "r", ROWS), name))
    assert "backup (read 8.00 MiB)" in note
    for other in ("db", "ls", "kworker"):
        assert f"{other} (" not in note


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("io.bytes[process]", ROWS),
        ("file.ops[process=db]", ROWS),
        ("file.ops", [row for row in ROWS if row[0] == "syscall"]),
        ("file.ops", [*ROWS, ("syscall", "backup", MIB)]),
    ],
)
def test_no_note_without_reason(
    tmp_path: Path, name: str, rows: list[tuple[str, str, int]]
) -> None:
    assert notes(query(recorded(tmp_path / "r", rows), name)) == []


def test_calls_that_do_not_explain_it(tmp_path: Path) -> None:
    rows = [*ROWS, ("syscall", "backup", 4096)]
    assert notes(query(recorded(tmp_path / "r", rows), "file.ops[process=backup]")) != []


def test_only_the_time_that_is_asked_counts(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "r", ROWS)
    assert notes(query(recording, "file.ops", from_ns=START + SECOND)) == []
    assert notes(query(recording, "file.ops", until_ns=START + SECOND)) != []
