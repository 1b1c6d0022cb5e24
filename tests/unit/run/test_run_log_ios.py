# SPDX-License-Identifier: Apache-2.0
"""The log of every I/O after a run: into the recording, checked, summed per second, removed; and
what becomes of it in trouble."""

from __future__ import annotations

import fcntl
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from iolab import _core
from iolab.formats.fio.log import FioLog
from iolab.formats.fio.seconds import per_second
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.evidence.files import read_io_log, read_plan, run_directories
from iolab.studies.run.logs import log_ios
from iolab.studies.run.logs.log_ios import keep_ios
from iolab.studies.workloads.base import Load
from support.fio_files import idle, job, output

T0 = 1_700_000_000_000
"""Milliseconds since the epoch, when the runs of these tests begin."""

Event = tuple[int, int, int, int, int]
"""Milliseconds since T0, ns, direction, bytes, offset: as fio logs it."""


def load(runtime: float = 4.0, **facts: Any) -> Load:
    return Load(
        jobs=2, depth=1, runtime=runtime, ramp=0.0, offered_iops=None, space_bytes=0, facts=facts
    )


def events(count: int = 3000, seed: int = 1, start: int = 0) -> list[Event]:
    rng = random.Random(seed)
    return sorted(
        (
            start + rng.randrange(1, 4000),
            round(10 ** rng.uniform(3, 8)),
            rng.choice([0, 1]),
            rng.choice([4096, 131072]),
            4096 * rng.randrange(10_000),
        )
        for _ in range(count)
    )


def lines(listed: list[Event]) -> str:
    return "".join(
        f"{T0 + time}, {latency}, {op}, {size}, {offset}, 0\n"
        for time, latency, op, size, offset in listed
    )


def result(*listed: list[Event], off: int = 0) -> str:
    """fio.json of these events, with total latency's bins; `off` I/Os are counted that no log has."""
    every = [event for each in listed for event in each]
    entry = job(runtime=4.0)
    for direction, name in enumerate(("read", "write")):
        own = [event for event in every if event[2] == direction]
        bins = Counter(
            _core.grid_bounds(_core.grid_index(latency, 6), 6)[0] for _, latency, _, _, _ in own
        )
        count = len(own) + off
        entry[name] = {
            **idle(),
            "total_ios": count,
            "io_bytes": sum(event[3] for event in own),
            "runtime": 4000,
            "iops": count / 4,
            "lat_ns": {
                "min": 1,
                "max": 10**9,
                "mean": 1e5,
                "stddev": 1.0,
                "N": count,
                "bins": {str(low): many for low, many in bins.items()},
            },
        }
    return output(entry)


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A run directory with logs as fio leaves them: a list of events for each job, or the text of
    its log."""

    def made(
        *jobs: list[Event] | str,
        name: str = "0001-aaaaaaaa",
        fio: str | None = None,
        prefix: str = "fio",
    ) -> Path:
        run_dir = tmp_path / "out" / "runs" / name
        (run_dir / "ios").mkdir(parents=True)
        for number, each in enumerate(jobs, 1):
            text = each if isinstance(each, str) else lines(each)
            for kind in ("lat", "clat", "slat"):
                (run_dir / "ios" / f"{prefix}_{kind}.{number}.log").write_text(
                    "" if kind == "slat" else text
                )
        (run_dir / "fio.json").write_text(
            fio or result(*(each for each in jobs if isinstance(each, list)))
        )
        return run_dir

    return made


WINDOW = (T0 * 10**6, (T0 + 4000) * 10**6)


def kept(
    run_dir: Path, window: tuple[int, int] | None = WINDOW, given: Load | None = None
) -> tuple[dict[str, Any], list[str]]:
    notes: list[str] = []
    keep_ios(run_dir, given or load(), window, "box", notes.append)
    return read_io_log(run_dir), notes


def recording(run_dir: Path, name: str = "box") -> Recording:
    return Recording(run_dir.parent.parent / "recordings" / name)


def test_all_events_are_in_the_recording_and_the_logs_are_gone(make: Make) -> None:
    one, two = events(seed=1), events(seed=2)
    run_dir = make(one, two)
    found, notes = kept(run_dir)
    assert notes == []
    assert found["events"] == dict(Counter("write" if event[2] else "read" for event in one + two))
    assert found["kept"] is None
    assert not (run_dir / "ios").exists()
    recorded = recording(run_dir)
    rows = []
    for segment in recorded.segments():
        table = pq.read_table(segment.path).to_pylist()
        rows += [
            (
                row["time_ns"] // 10**6 - T0,
                row["latency_ns"],
                int(row["op"] == "write"),
                row["size_bytes"],
                row["offset_bytes"],
                row["job"],
                row["source"],
            )
            for row in table
        ]
    assert sorted(rows) == sorted(
        [(*event, "iolab.0", "fio") for event in one]
        + [(*event, "iolab.1", "fio") for event in two]
    )
    (mark,) = recorded.marks()
    assert (mark["label"], mark["kind"], mark["link"]) == (
        run_dir.name,
        "run",
        f"runs/{run_dir.name}",
    )
    assert (mark["from_ns"], mark["until_ns"]) == WINDOW


def test_the_mark_reaches_around_events_outside_the_window(make: Make) -> None:
    run_dir = make([(5, 100, 0, 4096, 0), (4000, 100, 0, 4096, 0)])
    kept(run_dir, ((T0 + 10) * 10**6, (T0 + 3990) * 10**6))
    (mark,) = recording(run_dir).marks()
    assert (mark["from_ns"], mark["until_ns"]) == ((T0 + 5) * 10**6, (T0 + 4001) * 10**6)


def test_runs_follow_each_other_in_one_recording(make: Make) -> None:
    first = make(events(100, seed=3), name="0001-aaaaaaaa")
    second = make(events(200, seed=4, start=10_000), name="0002-aaaaaaaa")
    kept(first)
    kept(second, ((T0 + 10_000) * 10**6, (T0 + 14_000) * 10**6))
    recorded = recording(first)
    assert [mark["label"] for mark in recorded.marks()] == [first.name, second.name]
    assert sum(sum(segment.sources.values()) for segment in recorded.segments()) == 300


def test_logs_per_second_are_what_a_count_of_the_events_says(make: Make) -> None:
    one, two = events(seed=5), events(seed=6)
    run_dir = make(one, two)
    kept(run_dir)
    tables = {
        kind: FioLog().read((run_dir / f"fio_{kind}.log").read_bytes(), kind)
        for kind in ("iops", "bw", "lat")
    }
    for table in tables.values():
        assert table.averaged is True
    rates, bandwidth = per_second([tables["iops"]], "iops"), per_second([tables["bw"]], "bw")
    for direction, name in enumerate(("read", "write")):
        own = np.array([event for event in one + two if event[2] == direction])
        second = (own[:, 0] - 1) // 1000
        assert rates.rates[name] == pytest.approx(np.bincount(second, minlength=4))
        assert bandwidth.rates[name] == pytest.approx(
            np.bincount(second, weights=own[:, 3], minlength=4), rel=1e-3
        )
        listed = tables["lat"].value[tables["lat"].operation == direction]
        assert listed == pytest.approx(
            [own[second == place, 1].mean() for place in range(4)], abs=1
        )


def test_a_last_window_that_is_nearly_whole_is_a_rate_all_the_same(make: Make) -> None:
    run_dir = make([(time, 1000, 0, 4096, 0) for time in range(1, 2951)])
    kept(run_dir, (T0 * 10**6, (T0 + 2950) * 10**6))
    table = FioLog().read((run_dir / "fio_iops.log").read_bytes(), "iops")
    assert table.value.tolist() == [1000, 1000, 1000]
    assert (np.round(1000 * table.time).astype(int) - T0).tolist() == [1000, 2000, 2950]


@pytest.mark.parametrize("length", [2001, 2100, 2490, 2890, 2910, 2999, 3400, 4004])
def test_seconds_add_up_whatever_the_last_one_is(make: Make, length: int) -> None:
    run_dir = make([(time, 1000, 0, 4096, 0) for time in range(1, length + 1)])
    kept(run_dir, (T0 * 10**6, (T0 + length) * 10**6))
    found = per_second([FioLog().read((run_dir / "fio_iops.log").read_bytes(), "iops")], "iops")
    assert found.rates["read"] == pytest.approx([1000] * len(found.time), rel=0.06)
    assert int(length / 1000) <= len(found.time) <= int(length / 1000 + 0.1)


def test_sections_have_their_own_logs_and_steps_finer_ones(make: Make) -> None:
    run_dir = make(events(seed=7))
    for file in list((run_dir / "ios").iterdir()):
        file.rename(file.with_name(file.name.replace("fio_", "fio-step1_")))
    (run_dir / "ios" / "fio-step2_lat.2.log").write_text(lines(events(seed=8)))
    (run_dir / "fio.json").write_text(result(events(seed=7), events(seed=8)))
    found, notes = kept(run_dir, given=load(steps=[]))
    assert notes == []
    assert found["kept"] is None
    names = {path.name for path in run_dir.iterdir() if path.name.endswith(".log")}
    assert names == {
        f"fio-step{step}_{kind}.log" for step in (1, 2) for kind in ("iops", "bw", "lat")
    }
    times = FioLog().read((run_dir / "fio-step2_iops.log").read_bytes(), "iops").time
    assert len(np.unique(np.round(1000 * times))) == 16


def test_runs_too_short_for_seconds_have_no_logs_of_them(make: Make) -> None:
    run_dir = make(events(100))
    kept(run_dir, given=load(runtime=1.0))
    assert not list(run_dir.glob("*.log"))


def test_a_run_without_such_logs_is_left_alone(tmp_path: Path) -> None:
    run_dir = tmp_path / "out" / "runs" / "0001"
    run_dir.mkdir(parents=True)
    assert kept(run_dir) == ({}, [])
    assert not (tmp_path / "out" / "recordings").exists()


def test_another_count_than_fios_keeps_the_logs_and_is_said(make: Make) -> None:
    listed = events(500)
    run_dir = make(listed, fio=result(listed, off=2))
    found, notes = kept(run_dir)
    reads = sum(event[2] == 0 for event in listed)
    assert f"{reads} reads, fio counted {reads + 2}" in found["differs"]
    assert found["kept"] == "ios"
    assert (run_dir / "ios" / "fio_lat.1.log").exists()
    assert len(notes) == 1
    assert "stays in ios/" in notes[0]


def test_a_result_without_a_job_keeps_the_logs_and_is_said(make: Make) -> None:
    listed = events(500)
    found, notes = kept(make(listed, fio=json.dumps({"fio version": "fio-3.33", "jobs": []})))
    assert "of which fio's result knows nothing" in found["differs"]
    assert found["kept"] == "ios"
    assert len(notes) == 1


def test_after_a_ramp_the_count_of_latencies_is_what_counts(make: Make) -> None:
    listed = events(500)
    document = json.loads(result(listed))
    for name in ("read", "write"):
        document["jobs"][0][name]["total_ios"] -= 3  # begun in the ramp
    found, notes = kept(make(listed, fio=json.dumps(document)))
    assert notes == []
    assert found["kept"] is None


def test_damaged_lines_are_counted_and_the_log_stays(make: Make) -> None:
    listed = events(500)
    text = lines(listed) + "1700000000999, zz"
    run_dir = make(text, fio=result(listed))
    found, _ = kept(run_dir)
    assert found["damaged"] == 1
    assert found["kept"] == "ios"
    assert sum(found["events"].values()) == 500
    (loss,) = recording(run_dir).losses()
    assert (loss["kind"], loss["count"], loss["source"]) == ("damaged", 1, "fio")


@pytest.mark.parametrize("text", ["", "\0\0\0\0 no log at all", "<html>\n" * 20])
def test_a_log_that_is_none_harms_nothing_but_itself(make: Make, text: str) -> None:
    run_dir = make(text, fio=result(events(10)))
    found, notes = kept(run_dir)
    assert found["problem"]
    assert found["kept"] == "ios"
    assert len(notes) == 1
    assert (run_dir / "ios").is_dir()


def test_a_full_disk_or_no_leave_keeps_the_logs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    run_dir = make(events(50))
    monkeypatch.setattr(log_ios, "_ingest", refuse)
    found, notes = kept(run_dir)
    assert "No space left" in found["problem"]
    assert "No space left" in notes[0]
    assert (run_dir / "ios").is_dir()


def test_where_another_process_writes_the_hosts_recording_the_log_stays(make: Make) -> None:
    first, second = (
        make(events(50), name="0001-aaaaaaaa"),
        make(events(60, start=9000), name="0002-aaaaaaaa"),
    )
    kept(first)
    with (first.parent.parent / "recordings" / "box" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found, notes = kept(second, None)
    assert "is being recorded" in found["problem"]
    assert len(notes) == 1
    assert (second / "ios" / "fio_lat.1.log").is_file()
    assert [path.name for path in (first.parent.parent / "recordings").iterdir()] == ["box"]


def test_an_attempt_killed_before_its_mark_leaves_nothing_twice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.recordings.store.write.writer import RecordingWriter

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    first = make(events(70))
    with monkeypatch.context() as patched:
        patched.setattr(RecordingWriter, "mark", die)
        with pytest.raises(Killed):
            kept(first)
    first.rename(first.parent.parent / "aside")  # as a resumed study does
    found, notes = kept(make(events(80, start=20_000)), None)
    assert notes == []
    assert found["label"] == first.name
    recorded = recording(make(events(1), name="x"))
    assert sum(sum(segment.sources.values()) for segment in recorded.segments()) == 80
    assert len(recorded.marks()) == 1


def test_an_attempt_killed_after_its_mark_gives_way_to_the_next(make: Make) -> None:
    first = make(events(70))
    kept(first)  # marked; run.json was never written
    first.rename(first.parent.parent / "aside")
    again = make(events(80, start=20_000))
    found, notes = kept(again, None)
    assert notes == []
    assert found["label"] == f"{again.name} (2)"
    recorded = recording(again)
    assert [mark["label"] for mark in recorded.marks()] == [again.name, f"{again.name} (2)"]
    assert sum(sum(segment.sources.values()) for segment in recorded.segments()) == 80


def test_the_executor_takes_the_logs_in_before_the_run_counts_as_done(
    do: Callable[..., Path], host: Any, study: Path, heard: Any
) -> None:
    seen: list[bool] = []

    def work(command: list[str], directory: Path) -> None:
        listed = events(200, seed=len(seen), start=5000 * len(seen))
        (directory / "fio.json").write_text(result(listed))
        seen.append((directory / "ios").is_dir())
        (directory / "ios" / "fio_lat.1.log").write_text(lines(listed))

    host.programs["fio"].work = work
    study.write_text(
        study.read_text("utf-8").replace('kind = "fio"', 'kind = "fio"\nlog_ios = true'), "utf-8"
    )
    out = do()
    assert seen == [True] * 8
    assert [status for _, status, _ in heard.runs] == ["finished"] * 8
    labels = [mark["label"] for mark in Recording(out / "recordings" / host.name).marks()]
    assert labels == [run_dir.name for run_dir in run_directories(out)]
    for run_dir in run_directories(out):
        assert not (run_dir / "ios").exists()
        assert read_plan(run_dir).extra["log_ios"] is True
