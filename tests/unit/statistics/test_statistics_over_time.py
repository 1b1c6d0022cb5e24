# SPDX-License-Identifier: Apache-2.0
"""Series and stacks: rates of what was recorded, gaps and losses in their columns, keys that add
up, and words for what can't be asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.engine import cells
from iolab.recordings.ask.engine.engine import Engine
from iolab.recordings.ask.engine.windows import field_of
from iolab.recordings.ask.execute import _unknown_part
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Question
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import events as events_of
from support.recordings import unsealed
from support.statistics_data import Event, recording_of, trace_of

SECOND = 10**9
START = 1_700_000_000 * SECOND


def table(held: list[Event], folder: Path, source: str = "block") -> pa.RecordBatch:
    """Events as a batch."""
    made = recording_of(
        trace_of(held, folder / "made.csv"),
        folder / f"made-{source}-{len(held)}",
        source=source,
        hot=True,
    )
    return unsealed(made).combine_chunks().to_batches()[0]


def live(
    folder: Path, *, retention: dict[str, int | None] | None = None, clock: FakeClock | None = None
) -> RecordingWriter:
    return RecordingWriter.create(
        folder,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        retention=retention,
        system=clock or FakeClock(START),
    )


def both(held: list[Event], folder: Path) -> list[Trace | Recording]:
    trace = trace_of(held, folder / "t.csv")
    return [trace, recording_of(trace, folder / "r", parts=2, hot=True, source="csv")]


def test_rates_and_totals(tmp_path: Path) -> None:
    held = [
        Event(START + place * SECOND // 100, size=4096, op="write" if place % 4 else "read")
        for place in range(1000)
    ]
    for events in both(held, tmp_path):
        found = query(events, "io.ops", interval_ns=SECOND)
        assert isinstance(found, Series)
        assert (found.total, found.unit, found.t0_ns, found.source) == (1000, "1/s", START, "csv")
        np.testing.assert_allclose(found.values, 100)
        moved = query(events, "io.bytes[op=write]", interval_ns=2 * SECOND)
        assert isinstance(moved, Series)
        assert (moved.total, moved.unit) == (750 * 4096, "B/s")
        np.testing.assert_allclose(moved.values, 75 * 4096)


def test_keys_add_up_and_what_is_unknown_can_be_asked_for(tmp_path: Path) -> None:
    names = [None, "fio", "dd", "fio"]
    held = [
        Event(START + place, process=names[place % 4], size=None if place % 10 == 0 else 512)
        for place in range(1000)
    ]
    for events in both(held, tmp_path):
        found = query(events, "io.ops[process]")
        assert isinstance(found, Stack)
        assert dict(zip(found.keys, found.totals, strict=True)) == {
            "fio": 500,
            "dd": 250,
            "unknown": 250,
        }
        assert found.keys[0] == "fio"
        assert query(events, "io.ops[process=unknown]").total == 250
        assert query(events, "io.ops[process=unknown,dd]").total == 500
        assert query(events, "io.ops[process!=fio]").total == 500, "what isn't known isn't fio"
        assert query(events, "io.ops[process!=fio,unknown]").total == 250
        assert query(events, "io.ops[process=fio][process!=fio]").total == 0
        moved = query(events, "io.bytes")
        assert moved.total == 900 * 512
        assert "100 I/Os without a size add nothing" in moved.notes  # type: ignore[union-attr]


def test_words_of_users_are_values_never_sql(tmp_path: Path) -> None:
    name = "x' OR 1=1 --"
    held = [Event(START + place, process=name if place < 3 else "fio") for place in range(10)]
    for events in both(held, tmp_path):
        assert query(events, f'io.ops[process="{name}"]').total == 3
        assert query(events, 'io.ops[process="\'); DROP VIEW events; --"]').total == 0


@pytest.mark.parametrize(
    "name",
    [
        "io.ops[latency>=1ms]",
        "io.ops[latency!=1ms..2ms]",
        "io.ops[size<=4KiB]",
        "io.ops[offset>8KiB]",
        "io.ops[size=512,4KiB..8KiB]",
        "io.ops[latency<0]",
    ],
)
def test_numbers_are_compared(tmp_path: Path, name: str) -> None:
    held = [
        Event(
            START + place,
            latency=None if place == 7 else place * 100_000,
            size=512 * place,
            offset=4096 * place,
        )
        for place in range(40)
    ]
    meets = {
        "io.ops[latency>=1ms]": lambda e: e.latency is not None and e.latency >= 1_000_000,
        "io.ops[latency!=1ms..2ms]": lambda e: (
            e.latency is None or not 1_000_000 <= e.latency < 2_000_000
        ),
        "io.ops[size<=4KiB]": lambda e: e.size <= 4096,
        "io.ops[offset>8KiB]": lambda e: e.offset > 8192,
        "io.ops[size=512,4KiB..8KiB]": lambda e: e.size == 512 or 4096 <= e.size < 8192,
        "io.ops[latency<0]": lambda e: False,
    }
    for events in both(held, tmp_path):
        assert query(events, name).total == sum(map(meets[name], held)), name
        counted = query(events, f"{name}[latency]")
        assert counted.events + counted.without_y == sum(map(meets[name], held))  # type: ignore[union-attr]


def test_many_keys_are_summed_beyond_the_largest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "MOST_CELLS", 0)
    held = [
        Event(START + place, process=f"p{place % 50:02}" if place % 3 else "big")
        for place in range(3000)
    ]
    for events in both(held, tmp_path):
        found = query(events, "io.ops[process]")
        assert isinstance(found, Stack)
        assert (len(found.keys), found.keys[0], found.rest_keys, found.total) == (
            16,
            "big",
            35,
            3000,
        )
        assert found.rest is not None
        assert found.rest_total == 3000 - sum(found.totals) > 0


def test_a_hundred_thousand_keys(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "time:us,process\n" + "".join(f"{place},p{place}\n" for place in range(100_000))
    )
    found = query(Trace(path), "io.ops[process]", columns=100)
    assert isinstance(found, Stack)
    assert found.total == 100_000
    assert len(found.keys) + found.rest_keys == 100_000


def test_gaps_and_losses_stand_in_their_columns(tmp_path: Path) -> None:
    clock = FakeClock(START)
    held = [Event(START + place * SECOND // 10) for place in range(100)]
    late = [Event(START + 30 * SECOND + place * SECOND // 10) for place in range(100)]
    with live(tmp_path / "r", clock=clock) as writer:
        writer.append_events(table(held, tmp_path))
        writer.loss("overrun", "block", START + 3 * SECOND, START + 5 * SECOND, 100)
        writer.loss("overrun", "block", START + 7 * SECOND, START + 7 * SECOND, None)
        clock.sleep(10)
    clock.sleep(20)
    with RecordingWriter.reopen(tmp_path / "r", system=clock) as writer:
        writer.append_events(table(late[1:], tmp_path))
        clock.sleep(10)
    recording = Recording(tmp_path / "r")
    found = query(recording, "io.ops", interval_ns=SECOND)
    assert isinstance(found, Series)
    assert len(found.values) == 40
    assert np.isnan(found.values[10:30]).all(), "nothing was recorded, which is not zero"
    assert not np.isnan(found.values[:10]).any()
    assert not np.isnan(found.values[30:]).any()
    assert found.covered_ns == 20 * SECOND
    assert found.lost == ((3, 50), (4, 50), (7, 0))
    drawn = heat(recording, "latency", Question(interval_ns=SECOND))
    assert (drawn.gaps, drawn.lost_by_column, drawn.lost) == (
        ((10, 30),),
        ((3, 50), (4, 50), (7, 0)),
        100,
    )
    later = heat(
        recording, "latency", Question(span=(START + 5 * SECOND, None), interval_ns=SECOND)
    )
    assert (later.gaps, later.lost_by_column, later.lost) == (((5, 25),), ((2, 0),), 0)
    before = query(
        recording,
        "io.ops",
        interval_ns=SECOND,
        from_ns=START - 3 * SECOND,
        until_ns=START + 2 * SECOND,
    )
    assert np.isnan(before.values[:3]).all()  # type: ignore[union-attr]
    np.testing.assert_array_equal(before.values[3:], 10)  # type: ignore[union-attr]


def test_what_retention_removed_lives_on_in_maps(tmp_path: Path) -> None:
    clock = FakeClock(START)
    with live(tmp_path / "r", retention={"age_s": 15}, clock=clock) as writer:
        for part in range(4):
            made = tmp_path / str(part)
            made.mkdir()
            writer.append_events(
                table(
                    [
                        Event(START + (10 * part + place) * SECOND, process="fio")
                        for place in range(10)
                    ],
                    made,
                )
            )
            clock.sleep(10)
            writer.seal()
            writer.tick(clock.realtime_ns())
    recording = Recording(tmp_path / "r")
    assert recording.facts.dropped_through >= 2, "the test means to drop"
    kept = sum(sum(segment.sources.values()) for segment in recording.segments())
    whole = heat(recording, "latency", Question(interval_ns=SECOND))
    assert (whole.events, whole.gaps) == (40, ())
    assert query(recording, "io.ops", interval_ns=SECOND).total == 40
    some = query(recording, "io.ops[process]", interval_ns=SECOND)
    assert isinstance(some, Stack)
    assert some.total == kept < 40
    assert any("no longer kept" in note for note in some.notes)


def test_a_gap_of_which_only_maps_remain_is_no_rest(tmp_path: Path) -> None:
    """Twice ten seconds with twenty between in which nothing recorded; then quiet seconds, and ten
    whose events are there."""
    clock = FakeClock(START)
    for begin in (0, 30):
        clock.sleep(begin - (clock.realtime_ns() - START) / SECOND)
        made = tmp_path / f"at{begin}"
        made.mkdir()
        held = [Event(START + (begin + place) * SECOND) for place in range(10)]
        with (
            RecordingWriter.reopen(tmp_path / "r", system=clock)
            if begin
            else live(tmp_path / "r", clock=clock)
        ) as writer:
            writer.append_events(table(held, made))
            clock.sleep(10)
            if begin:
                writer.seal()
                clock.sleep(5)
                writer.append_events(
                    table([Event(START + (45 + place) * SECOND) for place in range(10)], tmp_path)
                )
                clock.sleep(10)
                writer.seal()
                writer.facts.retention["age_s"] = 11
                writer.tick(clock.realtime_ns())
    recording = Recording(tmp_path / "r")
    assert recording.facts.dropped_through == 2, "the test means to drop"
    found = query(recording, "io.ops", interval_ns=SECOND)
    assert isinstance(found, Series)
    assert found.total == 30
    missing = np.isnan(found.values)
    assert missing[10:30].all(), "nothing was recorded, which is not zero"
    assert not missing[:10].any()
    assert not missing[30:].any()
    np.testing.assert_array_equal(found.values[40:45], 0)
    assert found.covered_ns == 35 * SECOND
    assert heat(recording, "latency", Question(interval_ns=SECOND)).gaps == ((10, 30),)


def test_the_source_is_chosen_and_told(tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}, live=False
    ) as writer:
        for source, many in (("block", 10), ("syscall", 20), ("fio", 30)):
            writer.append_events(
                table([Event(START + place) for place in range(many)], tmp_path, source)
            )
            writer.seal()
    recording = Recording(tmp_path / "r")
    totals = {name: query(recording, name).total for name in ("io.ops", "file.ops", "app.ops")}
    assert totals == {"io.ops": 10, "file.ops": 20, "app.ops": 30}
    answer = query(recording, "io.ops")
    assert isinstance(answer, Series)
    assert answer.notes == ("block events; source fio or syscall has the others",)
    assert query(recording, "io.ops", source="fio").total == 30
    assert heat(recording, "latency", Question(source="syscall")).events == 20
    with pytest.raises(UsageError, match="holds no events of 'zfs'; there are block, fio, syscall"):
        query(recording, "io.ops", source="zfs")


def test_what_a_trace_is_of(tmp_path: Path) -> None:
    log = tmp_path / "job_lat.1.log"
    log.write_text("".join(f"{place}, 100000, 0, 4096, 0, 0\n" for place in range(100)))
    assert query(Trace(log), "app.ops[op]").total == 100
    assert query(Trace(log), "io.ops").source == "fio"  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="holds no events of syscall"):
        query(Trace(log), "file.ops[process]")
    with pytest.raises(UsageError, match="does not tell the time in the queue"):
        query(Trace(log), "io.ops[queue]")


def test_time_in_the_queue_is_drawn(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    held = [Event(START + place * 1000) for place in range(5000)]
    batch = table(held, tmp_path)
    queue = pa.array(
        [
            None if place % 5 == 0 else int(value)
            for place, value in enumerate(chance.lognormal(8, 2, 5000))
        ],
        pa.uint64(),
    )
    columns = [queue if field.name == "queue_ns" else batch.column(field.name) for field in EVENTS]
    with RecordingWriter.create(
        tmp_path / "r", host="", clock="trace", origin={"kind": "import"}, live=False
    ) as writer:
        writer.append_events(pa.RecordBatch.from_arrays(columns, schema=EVENTS))
    found = heat(Recording(tmp_path / "r"), "queue", Question(interval_ns=SECOND, high=100_000))
    values = [value for value in queue.to_pylist() if value is not None]
    inside = [value for value in values if value < 100_000]
    assert (found.events, found.without_y, found.outside) == (
        len(inside),
        1000,
        len(values) - len(inside),
    )
    from iolab import _core

    expected: dict[int, int] = {}
    for value in inside:
        index = _core.grid_index(value, 6)
        expected[index] = expected.get(index, 0) + 1
    assert dict(zip(found.index.tolist(), found.count.tolist(), strict=True)) == expected
    assert query(Recording(tmp_path / "r"), "io.ops[queue]").y == "queue"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ({"interval_ns": 1}, "columns"),
        ({"interval_ns": 0}, "at least 1 ns"),
        ({"from_ns": START + 10, "until_ns": START + 10}, "span of time is empty"),
        ({"from_ns": START + 10**12}, "span of time is empty"),
    ],
)
def test_what_can_not_be_asked(tmp_path: Path, rest: dict[str, Any], words: str) -> None:
    held = [Event(START + place * SECOND) for place in range(10)]
    for events in both(held, tmp_path):
        with pytest.raises(IolabError, match=words):
            query(events, "io.ops", **rest)
    with pytest.raises(UsageError, match="no map of 'colour'"):
        heat(events, "colour")
    with pytest.raises(UsageError, match="range of values is empty"):
        heat(events, "latency", Question(low=5, high=5))


def test_damage_is_told(tmp_path: Path) -> None:
    recording = recording_of(
        trace_of([Event(START + place) for place in range(100)], tmp_path / "t.csv"), tmp_path / "r"
    )
    segment = recording.segments()[0].path
    data = bytearray(segment.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    segment.write_bytes(data)
    lost = query(Recording(recording.path), "io.ops[process]")
    assert any("its checksum is not that of what was written" in note for note in lost.notes)  # type: ignore[union-attr]
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 30)
    with pytest.raises(FormatError, match="noise"):
        query(Trace(tmp_path / "noise"), "io.ops[op]")
    cut = tmp_path / "cut.csv"
    cut.write_text("time:us,latency:us,op\n1,2,read\nrubbish\n5,6,wri")
    found = query(Trace(cut), "io.ops[op]")
    assert any("damaged" in note for note in found.notes)  # type: ignore[union-attr]


def test_an_empty_recording(tmp_path: Path) -> None:
    with live(tmp_path / "r"):
        pass
    with pytest.raises(FormatError, match="holds no events"):
        query(Recording(tmp_path / "r"), "io.ops")
    with pytest.raises(UsageError, match="holds no events of syscall"):
        query(Recording(tmp_path / "r"), "file.ops")


def test_the_engine_stays_within_its_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.recordings.ask.engine import engine as module

    monkeypatch.chdir(tmp_path)
    with Engine(tmp_path) as engine:
        settings = engine.ask("SELECT name, value FROM duckdb_settings()")
        held = dict(zip(settings["name"], settings["value"], strict=True))
        assert (held["autoinstall_known_extensions"], held["autoload_known_extensions"]) == (
            "false",
            "false",
        )
        assert held["temp_directory"] == ""
        with pytest.raises(FormatError, match=r"configuration has been locked|locked"):
            engine.ask("SET memory_limit = '100GB'")
    monkeypatch.setattr(module, "MEMORY", "20MB")
    monkeypatch.setattr(module, "DATABASES", module.Databases())
    with (
        Engine(tmp_path) as engine,
        pytest.raises(IolabError, match="needs more than 20MB of memory; ask for less time"),
    ):
        engine.ask(
            "SELECT count(*) AS n FROM (SELECT DISTINCT hash(range) AS v FROM range(3000000))"
        )
    assert not any(tmp_path.iterdir()), "nothing is spilled or kept"


@pytest.mark.slow
def test_memory_stays_flat_over_a_stream(tmp_path: Path) -> None:
    """In a process of its own: memory that other tests free is used again."""
    code = """
import resource, sys
from pathlib import Path
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.ask.query import query

path = Path(sys.argv[1])
peaks = []
for first, past in ((0, 400_000), (400_000, 1_200_000)):
    with path.open("a") as file:
        if not first:
            file.write("time:us,latency:us,op,process\\n")
        for start in range(first, past, 1000):
            numbers = range(start, start + 1000)
            file.write("".join(f"{n},{n % 977},read,p{n % 7}\\n" for n in numbers))
    assert query(Trace(path), "io.ops[process]", columns=10).total == past
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] - peaks[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "t.csv"], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < 50_000, "three times the events, no more memory"


def test_a_share_of_calls_on_files_without_a_name_is_said_with_the_answer(tmp_path: Path) -> None:
    """Where the graph is: names of files that are not known are no detail of the losses."""
    batch = events_of(1000, source="syscall")
    place = batch.schema.get_field_index("file")
    for lacking, note in (
        (120, ("unknown file: 12 % of calls",)),
        (0, ()),
        (5, ("unknown file: 0.5 % of calls",)),
    ):
        names = pa.array([None if row < lacking else "/a" for row in range(1000)]).cast(
            batch.schema.field("file").type
        )
        counts = pa.array([1] * 1000, pa.uint64())
        one = batch.set_column(place, "file", names).set_column(
            batch.schema.get_field_index("count"), batch.schema.field("count"), counts
        )
        with RecordingWriter.create(
            tmp_path / str(lacking), host="", clock="realtime", origin={"kind": "record"}
        ) as writer:
            writer.append_events(one.cast(EVENTS))
        found = query(Recording(tmp_path / str(lacking)), "file.ops[file]")
        assert isinstance(found, Stack)
        assert tuple(each for each in found.notes if "unknown" in each) == note


def test_a_tiny_unknown_share_has_no_exponent() -> None:
    keys, amount = np.array([0, 1], dtype=object), np.array([3, 10**9])
    keys[0], keys[1] = field_of("file").missing, "/a"
    assert _unknown_part("file", "bytes", keys, amount) == (
        "unknown file: less than 0.001 % of bytes",
    )
