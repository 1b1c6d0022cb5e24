# SPDX-License-Identifier: Apache-2.0
"""Traces into recordings: every event of the trace, as it is, and what the trace lost beside it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab import _core
from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording, open_events
from iolab.recordings.store.read.trace import STDIN, Trace
from iolab.recordings.store.segments.columns import NameTables, events_of, samples_of
from iolab.recordings.store.write import ingest as ingesting
from iolab.recordings.store.write.ingest import ingest, ingest_into, ingest_run
from iolab.recordings.store.write.writer import RecordingWriter
from support import frames

HEAD = "time:us,latency:us,offset:bytes,size:bytes,op,device,process,file,job\n"


def fio_log(path: Path, lines: int, *, first: int = 0) -> Path:
    path.write_text(
        "".join(
            f"{first + i // 10}, {1000 + 7 * i}, {i % 2}, {4096 * (1 + i % 3)}, {4096 * i}, 0\n"
            for i in range(lines)
        )
    )
    return path


def stored(recording: Recording) -> pa.Table:
    sealed, hot = recording.snapshot()
    assert hot is None
    return (
        pa.concat_tables([pq.read_table(each.path).cast(EVENTS) for each in sealed])
        if sealed
        else EVENTS.empty_table()
    )


line = st.tuples(
    st.integers(0, 10**12),
    st.integers(0, 10**9),
    st.integers(0, 2**50),
    st.integers(0, 2**30),
    st.sampled_from(["read", "write", "trim"]),
    st.sampled_from(["", "sda", "nvme0n1"]),
    st.sampled_from(["", "fio", "päge"]),
    st.sampled_from(["", "/a", "/b c"]),
    st.sampled_from(["", "job"]),
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(lines=st.lists(line, min_size=1, max_size=60), rows=st.sampled_from([3, 10**6]))
def test_every_event_in_every_column(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[object, ...]], rows: int
) -> None:
    """Also where the trace runs backwards in time, and where segments are cut within it."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "t.csv").write_text(HEAD + "".join(",".join(map(str, each)) + "\n" for each in lines))
    trace = Trace(folder / "t.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingesting, "ROWS", rows)
        done = ingest(trace, folder / "r")
    assert done.events == trace.summary().events == len(lines)
    recording = Recording(folder / "r")
    columns = (
        "time_ns",
        "latency_ns",
        "offset_bytes",
        "size_bytes",
        "op",
        "device",
        "process",
        "file",
        "job",
    )
    got = sorted(
        tuple("" if row[name] is None else row[name] for name in columns)
        for row in stored(recording).to_pylist()
    )
    assert got == sorted((1000 * time, 1000 * latency, *rest) for time, latency, *rest in lines)  # type: ignore[operator]
    buckets = {(row["latency_ns"], row["latency_bucket"]) for row in stored(recording).to_pylist()}
    assert all(bucket == _core.grid_index(latency, 6) for latency, bucket in buckets)
    summary, facts = recording.summary(), trace.summary().facts
    assert summary.percentiles["csv"]["latency"] == facts["percentiles"]["latency"]
    assert summary.latency_by["csv"] == facts["latency_by"]["op"]
    assert summary.names["op"] == facts["ops"]
    assert (summary.first_ns, summary.last_ns) == (facts["first_ns"], facts["last_ns"])
    for name in ("device", "process", "file", "job"):
        assert summary.names.get(name, {}) == dict(facts["keys"][name])


CORPUS = sorted(
    path
    for path in (Path(__file__).parents[3] / "crates/iolab-core/tests/corpus").iterdir()
    if path.is_file()
)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_every_format_keeps_its_events(path: Path, tmp_path: Path) -> None:
    """What the summary of a trace says, its recording says; what is no trace is refused by both."""
    refusals = []
    for look in (lambda: Trace(path).summary(), lambda: ingest(Trace(path), tmp_path / "none")):
        try:
            look()
        except FormatError as error:
            refusals.append(str(error))
    if refusals:
        assert refusals[0] == refusals[1]
        assert not (tmp_path / "none").exists()
        return
    facts = Trace(path).summary().facts
    done = ingest(Trace(path), tmp_path / "r")
    assert (done.events, done.damaged, done.lost, done.unpaired) == tuple(
        facts[name] for name in ("events", "damaged", "losses", "unpaired")
    )
    summary = Recording(tmp_path / "r").summary()
    assert (summary.events, summary.damaged, summary.lost, summary.unpaired) == (
        done.events,
        done.damaged,
        done.lost,
        done.unpaired,
    )
    assert (summary.first_ns, summary.last_ns) == (facts["first_ns"], facts["last_ns"])
    assert summary.names.get("op", {}) == {op: count for op, count in facts["ops"].items() if count}
    if done.events:
        [source] = summary.sources
        assert source == ("fio" if facts["format"].startswith("fio") else facts["format"])
        assert summary.percentiles.get(source, {}) == facts["percentiles"]


def test_several_logs_into_one_recording(tmp_path: Path) -> None:
    logs = [Trace(fio_log(tmp_path / f"j_lat.{number}.log", 100 * number)) for number in (1, 2)]
    assert ingest(logs, tmp_path / "r", host="here", jobs=["job0", "job1"]).events == 300
    again = Trace(fio_log(tmp_path / "j_lat.3.log", 7))
    assert ingest(again, tmp_path / "r").events == 7
    recording = Recording(tmp_path / "r")
    assert recording.summary().names["job"] == {"job1": 200, "job0": 100}
    assert recording.summary().events == 307
    facts = recording.facts
    assert (facts.host, facts.clock, facts.sessions) == ("here", "trace", [])
    assert [Path(each["file"]).name for each in facts.origin["files"]] == [
        "j_lat.1.log",
        "j_lat.2.log",
        "j_lat.3.log",
    ]
    assert [each["events"] for each in facts.origin["files"]] == [100, 200, 7]
    assert facts.sources["fio"]["format"] == "fio-lat"
    # columns that some event has, of whichever log
    assert facts.sources["fio"]["columns"] == ["job", "latency_ns", "offset_bytes", "size_bytes"]
    assert recording.marks() == []
    assert recording.gaps() == []


def test_what_is_damaged_is_noted(tmp_path: Path) -> None:
    path = fio_log(tmp_path / "j_lat.1.log", 100)
    path.write_text(path.read_text() + "1, nonsense\n2, 3")
    done = ingest(Trace(path), tmp_path / "r")
    assert (done.events, done.damaged) == (100, Trace(path).summary().facts["damaged"])
    assert done.damaged >= 1
    [loss] = Recording(tmp_path / "r").losses()
    assert (loss["kind"], loss["source"], loss["count"]) == ("damaged", "fio", done.damaged)
    assert "j_lat.1.log" in loss["words"]


def test_compressed_filtered_and_empty(tmp_path: Path) -> None:
    plain = fio_log(tmp_path / "j_lat.1.log", 100)
    packed = tmp_path / "p_lat.1.log.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert ingest(Trace(packed, where={"op": ["write"]}), tmp_path / "r").events == 50
    assert ingest(Trace(plain, where={"size": ["1..2"]}), tmp_path / "none").events == 0
    assert Recording(tmp_path / "none").summary().events == 0
    assert Recording(tmp_path / "none").span() is None


@pytest.mark.parametrize("content", [b"", b"\0\1\2" * 1000, b"words\n"])
def test_what_is_no_trace_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    good = Trace(fio_log(tmp_path / "j_lat.1.log", 10))
    with pytest.raises(FormatError):
        ingest([good, Trace(tmp_path / "x")], tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_trace_that_fails_in_the_middle_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its disk fails; a recording that was there before keeps what it had."""
    really = _core.trace_events

    def failing(path: str, *more: object) -> Iterator[dict[str, object]]:
        stream = really(path, *more)  # type: ignore[arg-type]
        return stream if "bad" not in path else then_failing(stream)

    def then_failing(stream: Iterator[dict[str, object]]) -> Iterator[dict[str, object]]:
        yield next(stream)
        raise ValueError("reading failed: Input/output error")

    good, bad = (Trace(fio_log(tmp_path / f"{name}_lat.1.log", 20)) for name in ("good", "bad"))
    monkeypatch.setattr(_core, "trace_events", failing)
    monkeypatch.setattr(ingesting, "ROWS", 1)
    with pytest.raises(FormatError, match="Input/output error"):
        ingest(bad, tmp_path / "r")
    assert not list((tmp_path / "r").iterdir())
    ingest(good, tmp_path / "r")
    with pytest.raises(FormatError, match="Input/output error"):
        ingest([good, bad], tmp_path / "r")
    assert Recording(tmp_path / "r").summary().events == 40
    assert len(Recording(tmp_path / "r").facts.origin["files"]) == 2


def test_an_import_that_was_killed_is_not_counted_twice(tmp_path: Path) -> None:
    first, second = (
        Trace(fio_log(tmp_path / f"j_lat.{number}.log", 10 * number)) for number in (1, 2)
    )
    ingest(first, tmp_path / "r")
    with RecordingWriter.reopen(tmp_path / "r", live=False) as writer:
        ingest_into(writer, second, label="import 2")
    ingest(second, tmp_path / "r")
    assert Recording(tmp_path / "r").summary().events == 30


def test_into_a_live_recording_only_by_its_writer(tmp_path: Path) -> None:
    RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "record"}
    ).close()
    with pytest.raises(UsageError, match="of another kind"):
        ingest(Trace(fio_log(tmp_path / "j_lat.1.log", 10)), tmp_path / "r")


def test_a_run_is_cut_marked_and_taken_once(tmp_path: Path) -> None:
    logs = [
        (Trace(fio_log(tmp_path / f"j_lat.{number}.log", 20)), f"job{number}") for number in (0, 1)
    ]
    with RecordingWriter.create(
        tmp_path / "r", host="here", clock="realtime", origin={"kind": "run"}
    ) as writer:
        done = ingest_run(
            writer,
            "0001-ab",
            logs,
            shift_ns=10**18,
            link="../runs/0001-ab",
            facts={"variant": "master"},
        )
        assert done.events == 40
        with pytest.raises(UsageError, match="holds run 0001-ab already"):
            ingest_run(writer, "0001-ab", logs)
    recording = Recording(tmp_path / "r")
    [mark] = recording.marks()
    assert (mark["label"], mark["kind"], mark["link"]) == ("0001-ab", "run", "../runs/0001-ab")
    assert (mark["from_ns"], mark["until_ns"]) == (10**18, 10**18 + 10**6) == recording.span()
    assert mark["facts"] == {"variant": "master", "ingested": {"source": "fio", "events": 40}}
    assert recording.summary().names["job"] == {"job0": 20, "job1": 20}
    assert [each.facts["label"] for each in recording.segments()] == ["0001-ab"], (
        "the logs of many jobs are one segment"
    )


def test_a_run_half_taken_in_is_taken_in_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill: segments without a mark are removed before the run is ingested again; others
    stay."""
    logs = [
        (Trace(fio_log(tmp_path / f"j_lat.{number}.log", 20)), f"job{number}") for number in (0, 1)
    ]
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="realtime", origin={"kind": "run"}
    ) as writer:
        ingest_run(writer, "0001", logs[:1])
        ingest_into(writer, logs[0][0], source="fio", job="job0", label="0002")
        ingest_into(writer, logs[1][0], source="fio", job="job1")
    assert Recording(tmp_path / "r").summary().events == 60
    with RecordingWriter.reopen(tmp_path / "r") as writer:
        assert ingest_run(writer, "0002", logs).events == 40
    recording = Recording(tmp_path / "r")
    assert recording.summary().events == 80
    assert {each.number for each in recording.maps("io.offset")} == {
        each.number for each in recording.segments()
    }
    assert [each["label"] for each in recording.marks()] == ["0001", "0002"]


def test_a_shift_beyond_64_bits_is_one_line(tmp_path: Path) -> None:
    log = Trace(fio_log(tmp_path / "j_lat.1.log", 10, first=10**12))
    with (
        RecordingWriter.create(
            tmp_path / "r", host="", clock="realtime", origin={"kind": "run"}
        ) as writer,
        pytest.raises(FormatError, match="range of 64 bits"),
    ):
        ingest_into(writer, log, shift_ns=2**63 - 1, label="x")
    assert Recording(tmp_path / "r").segments() == []


def test_a_disk_that_is_full_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Trace(fio_log(tmp_path / "j_lat.1.log", 100))
    ingest(log, tmp_path / "r")

    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(ResultsError, match="No space left on device"):
            ingest(log, tmp_path / "r")
    assert Recording(tmp_path / "r").summary().events == 100


def test_open_events_finds_what_a_path_is(tmp_path: Path) -> None:
    log = fio_log(tmp_path / "j_lat.1.log", 10)
    ingest(Trace(log), tmp_path / "r")
    assert isinstance(open_events(tmp_path / "r"), Recording)
    assert isinstance(open_events(log), Trace)
    assert isinstance(open_events(STDIN), Trace)
    with pytest.raises(FormatError, match="not a recording"):
        open_events(tmp_path)
    with pytest.raises(UsageError, match="needs no format"):
        open_events(tmp_path / "r", format="csv")
    with pytest.raises(UsageError, match="no such file"):
        open_events(tmp_path / "nowhere")


def test_names_of_a_stream_go_on_over_its_batches() -> None:
    names = NameTables()

    def raw(ids: list[int], new: list[str], valid: list[int]) -> dict[str, object]:
        return {
            "rows": 2,
            "time_ns": bytes(16),
            "op": b"\0\1",
            "device": b"".join(each.to_bytes(4, "little") for each in ids),
            "device_valid": bytes(valid),
            "device_names": new,
        }

    first = events_of(raw([0, 1], ["sda", "sdb"], [1, 1]), names, "block")
    second = events_of(raw([2, 1], ["sdc"], [1, 1]), names, "block")
    third = events_of(raw([1, 0], [], [1, 0]), names, "block")
    assert [each.column("device").to_pylist() for each in (first, second, third)] == [
        ["sda", "sdb"],
        ["sdc", "sdb"],
        ["sdb", None],
    ]
    assert third.column("device").dictionary.to_pylist() == ["sdb"], (
        "only what is used is written again"
    )
    assert first.column("op").to_pylist() == _core.trace_ops()[:2]
    assert first.column("count").to_pylist() == [1, 1]
    for spoiled in (
        {"device": b"\x09\0\0\0\0\0\0\0"},
        {"time_ns": bytes(8)},
        {"op": b"\0"},
        {"device_valid": b"\1"},
        {"count": bytes(3)},
    ):
        with pytest.raises(ValueError, match=r"has no name|a column has"):
            events_of({**raw([0, 0], [], [1, 1]), **spoiled}, names, "block")


def test_a_frame_restarts_the_names_of_a_column() -> None:
    reader, tables = _core.FrameReader(), NameTables()

    def files(ids: list[int], new: list[str], *restarted: str) -> list[dict[str, str]]:
        columns = {"time_ns": [1, 2], "op": [0, 0], "device": [0, 0], "file": ids}
        devices = ["sda"] if not tables._names else []
        [frame] = reader.feed(
            frames.events("syscall", columns, {"device": devices, "file": new}, restarted)
        )
        table = events_of(frame, tables, "syscall").select(["device", "file"])
        rows: list[dict[str, str]] = table.to_pylist()
        return rows

    assert files([0, 1], ["a", "b"]) == [
        {"device": "sda", "file": "a"},
        {"device": "sda", "file": "b"},
    ]
    assert files([1, 0], ["c", "b"], "file") == [
        {"device": "sda", "file": "b"},
        {"device": "sda", "file": "c"},
    ]
    assert [row["file"] for row in files([2, 0], ["d"])] == ["d", "c"]
    with pytest.raises(ValueError, match="has no name"):
        files([1, 0], ["e"], "file")


def test_samples_of_a_frame() -> None:
    raw = {
        "rows": 2,
        "time_ns": (5).to_bytes(8, "little") * 2,
        "object": bytes(8),
        "field": b"\0\0\0\0\1\0\0\0",
        "value": (-3).to_bytes(8, "little", signed=True) * 2,
        "object_names": [""],
        "field_names": ["reads", "writes"],
    }
    assert samples_of(raw, NameTables(), "diskstats").to_pylist() == [
        {"source": "diskstats", "time_ns": 5, "object": "", "field": field, "value": -3}
        for field in ("reads", "writes")
    ]
