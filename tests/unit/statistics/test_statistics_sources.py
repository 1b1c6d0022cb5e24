# SPDX-License-Identifier: Apache-2.0
"""Which sources can answer a statistic, the one that does by itself first."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.recordings.ask.available import availability, available
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.ask.language.fields import OF_DISKS
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest
from iolab.recordings.store.write.writer import RecordingWriter
from support.kept_data import aged
from support.recordings import SECOND, START, events


@pytest.mark.parametrize(
    ("name", "events", "samples", "expected"),
    [
        ("io.ops", ["block"], ["diskstats"], ["block", "diskstats"]),
        ("io.ops", ["block"], [], ["block"]),
        ("io.ops", [], ["diskstats", "cpu"], ["diskstats"]),
        # what is far from the device answers only where nothing nearer does, but can be asked
        ("io.ops", ["fio", "syscall"], ["diskstats"], ["diskstats", "fio", "syscall"]),
        ("io.ops", ["syscall", "blktrace"], [], ["blktrace", "syscall"]),
        ("file.ops", ["block", "syscall"], ["diskstats"], ["syscall"]),
        ("cpu.utilization", ["block"], ["cpu"], ["cpu"]),
        ("cpu.utilization", ["block"], ["diskstats"], []),
        ("app.ops", ["block"], [], []),
    ],
)
def test_sources_that_can_answer(
    name: str, events: list[str], samples: list[str], expected: list[str]
) -> None:
    found = availability(CATALOGUE[name], events, samples)
    assert [each.source for each in found.sources] == expected
    assert bool(expected) is not bool(found.why_not)
    if expected:
        assert found.source == expected[0]
        assert found.counted is found.sources[0].counted


def test_counters_tell_their_own_fields_alone() -> None:
    found = availability(CATALOGUE["io.ops"], ["block"], ["diskstats"])
    block, counters = found.sources
    assert not block.counted
    assert {"latency", "process", "op"} <= set(block.fields)
    assert counters.counted
    assert set(counters.fields) == {"op", "device"}


FIELDS = {
    "block": "op device process pid thread error flags latency queue offset size",
    "syscall": "op process file mount client pid thread error flags latency offset size",
    "fio": "op job latency size",
}
"""What the probe tells of an I/O, and what a log of fio without offsets does."""


def lived(place: Path, *sources: str) -> Recording:
    """A recording of these sources by the probe, whose hello is what it says of them."""
    with RecordingWriter.create(
        place,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        live=False,
        sources={name: {"missed": 0} for name in sources},
    ) as writer:
        for name in sources:
            writer.append_events(events(30, source=name))
    return Recording(place)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("io.ops", "block"),
        ("io.bytes", "block"),
        ("file.ops", "syscall"),
        ("file.bytes", "syscall"),
    ],
)
def test_what_the_probe_does_not_tell_is_lacking_and_said(
    tmp_path: Path, name: str, source: str
) -> None:
    found = {
        each.entry.name: each for each in available(lived(tmp_path / "r", "block", "syscall"))
    }[name]
    told = FIELDS[source].split()
    assert set(found.breakdowns) == set(told)
    assert set(found.lacking) == set(CATALOGUE[name].breakdowns) - set(told)
    assert set(next(each for each in found.sources if each.source == source).fields) == set(told)
    assert all(found.lacking.values())


def test_another_statistic_that_tells_a_field_is_named(tmp_path: Path) -> None:
    found = {each.entry.name: each for each in available(lived(tmp_path / "r", "block", "syscall"))}
    assert (
        found["io.ops"].lacking["file"]
        == "block events have no file; file.ops has it, where it was recorded"
    )
    assert (
        found["io.bytes"].lacking["client"]
        == "block events have no client; nfs.ops has it, where it was recorded"
    )
    # the column of the device holds the user of Samba's calls
    assert "device" not in found["file.ops"].breakdowns


def test_counters_leave_the_rest_to_events_as_far_as_these_tell_it() -> None:
    found = availability(
        CATALOGUE["io.ops"], ["syscall"], ["diskstats"], {"syscall": ("op", "process", "file")}
    )
    assert (found.source, found.breakdowns) == ("diskstats", ("op", "device", "process", "file"))
    assert found.lacking["client"]
    assert "device" not in found.lacking


def test_a_source_that_nothing_is_said_of_may_tell_all(tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.append_events(events(30))
    found = {each.entry.name: each for each in available(Recording(tmp_path / "r"))}["io.ops"]
    assert found.breakdowns == tuple(
        name for name in CATALOGUE["io.ops"].breakdowns if name not in OF_DISKS
    )
    assert found.lacking.keys() == OF_DISKS.keys()


def test_a_trace_tells_the_columns_that_are_there(tmp_path: Path) -> None:
    trace = Trace(fio_log(tmp_path / "j_lat.1.log", 30))
    known = {each.entry.name: each for each in available(trace, trace.summary().has)}["app.ops"]
    assert set(known.breakdowns) == {"op", "latency", "size"}
    assert set(known.lacking) == {"job", "file", "error", "flags", "offset"}
    # without a look at its lines: what its format can tell
    assert set({each.entry.name: each for each in available(trace)}["app.ops"].breakdowns) == {
        "op",
        "job",
        "latency",
        "offset",
        "size",
    }
    ingest(trace, tmp_path / "r", jobs=["one"])
    kept = {each.entry.name: each for each in available(Recording(tmp_path / "r"))}["app.ops"]
    assert set(kept.breakdowns) == set(FIELDS["fio"].split())


def test_an_answer_says_that_nothing_tells_what_was_asked(tmp_path: Path) -> None:
    recording = lived(tmp_path / "r", "block", "syscall")
    client = "block events have no client; nfs.ops has it, where it was recorded"
    for statistic, says in (
        ("io.ops[client]", client),
        ("io.ops[client=x][op]", client),
        (
            "io.ops[file=x][latency]",
            "block events have no file; file.ops has it, where it was recorded",
        ),
    ):
        assert says in notes_of(query(recording, statistic, source="block"))
    assert not any("tell" in note for note in notes_of(query(recording, "file.ops[file]")))
    trace = Trace(fio_log(tmp_path / "j_lat.1.log", 30))
    assert "fio events have no file; file.ops has it, where it was recorded" in notes_of(
        query(trace, "app.ops[file]")
    )


def notes_of(answer: object) -> tuple[str, ...]:
    return answer.assumptions if isinstance(answer, HeatCounts) else answer.notes  # type: ignore[attr-defined]


def test_maps_of_removed_events_of_another_source_count_for_nothing(tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number, sources in enumerate((("block", "syscall"), ("block",))):
            for source in sources:
                writer.append_events(
                    events(300, source=source, start_ns=START + number * SECOND, per_s=300)
                )
            writer.seal()
    maps = ["io.ops[latency]", "io.ops[size]", "io.ops[offset]", "io.ops[op]"]
    before = [_counted(Recording(tmp_path / "r"), name) for name in maps]
    left = aged(tmp_path / "r", tmp_path / "aged", 1)
    assert [_counted(left, name) for name in maps] == before


def _counted(recording: Recording, name: str) -> int:
    found = query(recording, name, interval_ns=SECOND, source="block")
    return found.events + found.without_y if isinstance(found, HeatCounts) else found.total


def fio_log(path: Path, lines: int) -> Path:
    """A latency log without offsets."""
    path.write_text("".join(f"{at}, 100000, 0, 8192, 0\n" for at in range(lines)))
    return path
