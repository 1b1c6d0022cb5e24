# SPDX-License-Identifier: Apache-2.0
"""`log_ios` beside a recorder: one recording of the host, whose only writer takes in what the study
sealed; and kills meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolab import _core
from iolab.base.errors import ResultsError, RunError
from iolab.recordings.ask.kept.files.paths import TIERS, files, folder_name
from iolab.recordings.ask.kept.manage import begin
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.layout import SEGMENTS
from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.base.schema import EVENTS, SAMPLES
from iolab.recordings.store.ledger import append_line
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.verify import verify_recording
from iolab.recordings.store.write import recovery
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.evidence.files import read_io_log
from iolab.studies.run.logs.log_ios import keep_ios
from iolab.studies.workloads.base import Load
from support.fio_files import idle, job, output

if TYPE_CHECKING:
    from iolab.studies.run.logs.recording import StudyRecorder

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
"""When the recorder of these tests begins, ns."""

Event = tuple[int, int, int, int, int]
"""Milliseconds since `T0`, ns, direction, bytes, offset: as fio logs it."""


class Beside:
    """A recorder in this process: the only writer of the host's recording. `before`, `after`:
    called around what it takes in."""

    def __init__(
        self,
        directory: Path,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        begun = Begun(T0, 0, T0)
        sources: dict[str, Any] = {"block": {}, "diskstats": {}}
        self.writer = (
            RecordingWriter.reopen(directory, live=True, begun=begun)
            if directory.exists()
            else RecordingWriter.begin(
                directory,
                Facts("box", "realtime", {"kind": "record"}, sources),
                live=True,
                begun=begun,
            )
        )
        self.before, self.after = before, after
        self.is_recording = True

    def take_in(self, origin: Path, label: str, span: tuple[int, int]) -> None:
        self.before()
        try:
            self.writer.take_in(origin, label, *span)
        except ResultsError as error:  # as the control socket answers
            raise RunError(str(error)) from None
        self.after()

    def die(self) -> None:
        """What a kill leaves: nothing is sealed or ended, and the lock is free."""
        self.is_recording = False
        self.writer._lock.close()


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    place = tmp_path / "out" / "recordings"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def recorder(recordings: Path) -> Iterator[Beside]:
    beside = Beside(recordings / "box")
    yield beside
    if beside.is_recording:
        beside.writer.close()


def listed(count: int, seed: int, start_s: int) -> list[Event]:
    chance = random.Random(seed)
    return sorted(
        (
            start_s * 1000 + chance.randrange(1, 4000),
            round(10 ** chance.uniform(3, 8)),
            chance.choice([0, 1]),
            4096,
            4096 * chance.randrange(1000),
        )
        for _ in range(count)
    )


def run_of(recordings: Path, name: str, every: list[Event]) -> Path:
    """A run directory as fio leaves it."""
    run_dir = recordings.parent / "runs" / name
    (run_dir / "ios").mkdir(parents=True)
    text = "".join(
        f"{T0 // 10**6 + time}, {latency}, {op}, {size}, {offset}, 0\n"
        for time, latency, op, size, offset in every
    )
    (run_dir / "ios" / "fio_lat.1.log").write_text(text)
    entry = job(runtime=4.0)
    for direction, operation in enumerate(("read", "write")):
        own = [each for each in every if each[2] == direction]
        bins = Counter(
            _core.grid_bounds(_core.grid_index(latency, 6), 6)[0] for _, latency, *_ in own
        )
        entry[operation] = {
            **idle(),
            "total_ios": len(own),
            "io_bytes": 4096 * len(own),
            "runtime": 4000,
            "iops": len(own) / 4,
            "lat_ns": {
                "min": 1,
                "max": 10**9,
                "mean": 1e5,
                "stddev": 1.0,
                "N": len(own),
                "bins": {str(low): many for low, many in bins.items()},
            },
        }
    (run_dir / "fio.json").write_text(output(entry))
    return run_dir


def keep(
    run_dir: Path, recorder: Beside | None, start_s: int, ahead_ns: int = 0
) -> tuple[dict[str, Any], list[str]]:
    notes: list[str] = []
    load = Load(jobs=1, depth=1, runtime=4.0, ramp=0.0, offered_iops=None, space_bytes=0, facts={})
    window = (T0 + start_s * SECOND, T0 + (start_s + 4) * SECOND)
    keep_ios(
        run_dir,
        load,
        window,
        "box",
        notes.append,
        recorder=cast("StudyRecorder | None", recorder),
        ahead_ns=ahead_ns,
    )
    return read_io_log(run_dir), notes


def record(recorder: Beside, first_s: int, seconds: int) -> None:
    """Ten I/Os and one reading a second of the block layer, told until the end."""
    times = [T0 + first_s * SECOND + number * SECOND // 10 for number in range(10 * seconds)]
    count = len(times)
    columns: dict[str, list[Any]] = {
        "source": ["block"] * count,
        "time_ns": times,
        "op": ["write"] * count,
        "count": [1] * count,
        "size_bytes": [8192] * count,
        "latency_ns": [1000] * count,
        "latency_bucket": [_core.grid_index(1000, 6)] * count,
        "device": ["sda"] * count,
    }
    recorder.writer.append_events(
        pa.RecordBatch.from_arrays(
            [pa.array(columns.get(field.name, [None] * count), field.type) for field in EVENTS],
            schema=EVENTS,
        )
    )
    readings = range(first_s, first_s + seconds)
    both = [(each, field) for each in readings for field in ("pgfault", "pgmajfault")]
    held: dict[str, list[Any]] = {
        "source": ["memory"] * len(both),
        "time_ns": [T0 + each * SECOND for each, _ in both],
        "object": [""] * len(both),
        "field": [field for _, field in both],
        "value": [each for each, _ in both],
    }
    recorder.writer.append_samples(
        pa.RecordBatch.from_arrays(
            [pa.array(held[field.name], field.type) for field in SAMPLES], schema=SAMPLES
        )
    )
    recorder.writer.tick(T0 + (first_s + seconds) * SECOND)


def total(recording: Recording, statistic: str, **asked: Any) -> int:
    return query(recording, statistic, **asked).total


def fio_rows(recording: Recording) -> int:
    return sum(segment.sources.get("fio", 0) for segment in recording.segments())


def test_one_recording_holds_what_the_recorder_and_fio_saw(
    recordings: Path, recorder: Beside
) -> None:
    record(recorder, 0, 10)
    found, notes = keep(run_of(recordings, "0001-aa", listed(300, 1, 3)), recorder, 3)
    assert (notes, found["kept"], found["recording"]) == ([], None, "recordings/box")
    record(recorder, 10, 20)  # what comes after stands in order too
    found, notes = keep(run_of(recordings, "0002-aa", listed(500, 2, 20)), recorder, 20)
    assert (notes, found["label"]) == ([], "0002-aa")
    assert [each.name for each in recordings.iterdir()] == ["box"]
    assert [
        list(recordings.parent.glob(f"runs/*/{name}")) for name in ("ios", "ios/recording")
    ] == [[], []]
    for _ in range(2):
        recording = Recording(recordings / "box")
        assert (total(recording, "io.ops"), total(recording, "app.ops")) == (300, 800), (
            "never added"
        )
        assert total(recording, "io.bytes") == 300 * 8192
        assert total(recording, "io.ops", from_ns=found["from_ns"], until_ns=found["until_ns"]) < 60
        assert (
            total(recording, "app.ops", from_ns=found["from_ns"], until_ns=found["until_ns"] + 1)
            == 500
        )
        gaps = [
            (loss["from_ns"], loss["until_ns"])
            for loss in recording.losses()
            if loss["source"] == "fio"
        ]
        assert gaps[0][0] == T0
        told = {
            (each.from_ns // SECOND, each.until_ns // SECOND)
            for each in recording.unrecorded_spans()
            if each.source == "fio"
        }
        assert (T0 // SECOND, T0 // SECOND + 3) in told, (
            "between the runs fio tells nothing, which is not a zero"
        )
        assert (T0 // SECOND + 7, T0 // SECOND + 20) in told
        if recorder.is_recording:
            recorder.writer.close()
            recorder.is_recording = False
    whole = verify_recording(recordings / "box")
    assert whole.findings == ()
    assert whole.unverified == 0


def test_counters_are_kept_across_what_was_taken_in(recordings: Path, recorder: Beside) -> None:
    """Readings on both sides of a segment of a run belong together."""
    record(recorder, 0, 10)
    recorder.writer.seal()
    place = recordings / "box"
    keeper = Keeper(place)
    begin(place, ["block", "counters"], ["vm.faults", "io.ops"], T0)
    keeper.look()
    keep(run_of(recordings, "0001-aa", listed(300, 1, 3)), recorder, 3)
    keeper.look()  # the last that was looked at is the run's
    record(recorder, 10, 10)
    recorder.writer.seal()
    keeper.look()
    kept = files(place, TIERS[0], folder_name("vm.faults"))
    grown = [row for each in kept for row in pq.read_table(each.path).to_pylist()]
    assert sum(row["covered"] for row in grown) == 2 * 19, (
        "nineteen seconds of both kinds: no reading lost its partner"
    )


def test_the_log_is_shifted_to_the_recordings_time(recordings: Path, recorder: Beside) -> None:
    every = listed(300, 1, 3)
    run_dir = run_of(recordings, "0001-aa", every)
    found, notes = keep(run_dir, recorder, 3, ahead_ns=3600 * SECOND)
    assert notes == []
    recording = Recording(recordings / "box")
    assert recording.segments()[0].first_ns == T0 + 3600 * SECOND + every[0][0] * 10**6
    assert found["from_ns"] == T0 + 3603 * SECOND
    # the logs per second stay by the clock of the study
    first = int((run_dir / "fio_iops.log").read_text().split(",")[0])
    assert T0 // 10**6 + 3000 <= first <= T0 // 10**6 + 4100


class KilledError(BaseException):
    """The study dies."""


def kill() -> None:
    raise KilledError


@pytest.mark.parametrize("moment", ["before", "after", "within"])
def test_a_study_killed_at_the_take_over_leaves_nothing_twice(
    recordings: Path, recorder: Beside, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = listed(400, 1, 3)
    run_dir = run_of(recordings, "0001-aa", every)
    with monkeypatch.context() as patched:
        if moment == "within":
            patched.setattr(recovery, "append_line", lambda *_, **__: kill())
        else:
            patched.setattr(recorder, moment, kill)
        with pytest.raises(KilledError):
            keep(run_dir, recorder, 3)
    assert (run_dir / "ios" / "fio_lat.1.log").stat().st_size, (
        "the log stays until its events were read back"
    )
    run_dir.rename(recordings.parent / "aside")  # as a resumed study does
    if moment == "within":  # the recorder died with it
        recorder.die()
        recorder.writer = Beside(recordings / "box").writer
        recorder.is_recording = True
    found, notes = keep(run_of(recordings, "0001-aa", listed(500, 2, 30)), recorder, 30)
    assert (notes, found["kept"]) == ([], None)
    assert fio_rows(Recording(recordings / "box")) == 500


def test_a_recorder_killed_at_the_take_over_costs_nothing(
    recordings: Path, recorder: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a run was moved: the study writes it anew, from the log, and the next recorder goes
    on."""
    record(recorder, 0, 10)
    recorder.writer.mark("0001-aa", T0, T0 + 10 * SECOND, "run")

    def die(path: Path, line: Mapping[str, Any], *, durable: bool = False) -> None:
        if path.name != SEGMENTS:
            append_line(path, line, durable=durable)
            return
        recorder.die()
        raise RunError("the recorder hung up")

    run_dir = run_of(recordings, "0001-aa", listed(400, 1, 3))
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "append_line", die)
        found, notes = keep(run_dir, recorder, 3)
    assert (notes, found["kept"]) == ([], None)
    recording = Recording(recordings / "box")
    assert fio_rows(recording) == 400
    assert total(recording, "io.ops") == 100, "what was hot is sealed by the next writer"
    again = Beside(recordings / "box")
    found, notes = keep(run_of(recordings, "0002-aa", listed(300, 2, 30)), again, 30)
    again.writer.close()
    assert (notes, fio_rows(recording)) == ([], 700)


def test_a_full_disk_at_the_take_over_leaves_no_part(
    recordings: Path, recorder: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    run_dir = run_of(recordings, "0001-aa", listed(400, 1, 3))
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "append_line", full)
        found, notes = keep(run_dir, recorder, 3)
    assert "No space left" in found["problem"]
    assert len(notes) == 1
    assert found["kept"] == "ios"
    assert (run_dir / "ios" / "fio_lat.1.log").is_file()
    assert fio_rows(Recording(recordings / "box")) == 0
