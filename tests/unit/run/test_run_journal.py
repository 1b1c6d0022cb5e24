# SPDX-License-Identifier: Apache-2.0
"""The journal keeps its events, whatever a crash does to its last line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.clock import FakeClock
from iolab.base.errors import ResultsError
from iolab.studies.results.evidence.journal import FILE, read_journal
from iolab.studies.run.resuming.journal import Journal


def test_events_come_back_in_order_with_their_time(tmp_path: Path) -> None:
    clock = FakeClock(start_ns=5)
    journal = Journal(tmp_path, clock)
    journal.write("opened", runs=1)
    clock.sleep(1)
    journal.write_all([("planned", {"run": "0001-ab"}), ("started", {"run": "0001-ab", "pid": 7})])
    events, damaged = read_journal(tmp_path)
    assert events == [
        {"event": "opened", "time_ns": 5, "runs": 1},
        {"event": "planned", "time_ns": 1_000_000_005, "run": "0001-ab"},
        {"event": "started", "time_ns": 1_000_000_005, "run": "0001-ab", "pid": 7},
    ]
    assert damaged == []


def test_every_write_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(tmp_path, FakeClock())
    journal.write("opened")
    journal.write_all([("planned", {}), ("planned", {})])
    assert len(synced) == 2


def test_unknown_events_are_a_mistake_of_the_programs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="begun"):
        Journal(tmp_path, FakeClock()).write("begun")


def test_no_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no journal"):
        read_journal(tmp_path)
    (tmp_path / FILE).mkdir()
    with pytest.raises(ResultsError, match="can't be read"):
        read_journal(tmp_path)


@given(st.data())
def test_a_cut_anywhere_costs_the_line_it_is_in_and_no_later_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    journal = Journal(directory, FakeClock())
    journal.write_all([("finished", {"run": f"{number:04d}"}) for number in range(5)])
    whole = (directory / FILE).read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    (directory / FILE).write_bytes(whole[:cut])
    journal.write("closed")
    events, damaged = read_journal(directory)
    complete = whole[:cut].count(b"\n") + (whole[cut : cut + 1] == b"\n")
    assert [event.get("run") for event in events] == [
        *(f"{number:04d}" for number in range(complete)),
        None,
    ]
    assert len(damaged) <= 1


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"[1]\n", b"null\n", b'{"event": "nonsense"}\n', b"{\n"]
)
def test_damaged_lines_are_counted(tmp_path: Path, line: bytes) -> None:
    Journal(tmp_path, FakeClock()).write("opened")
    with (tmp_path / FILE).open("ab") as file:
        file.write(line)
    events, damaged = read_journal(tmp_path)
    assert (len(events), damaged) == (1, [2])
