# SPDX-License-Identifier: Apache-2.0
"""How far a recording reaches: as long as it is recorded though no I/O comes, and back to what is
kept of events that are gone."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.output.server.alerts.alert import Alert
from iolab.output.server.alerts.watch import LogFile, Watch
from iolab.output.server.base.json_store import JsonStore
from iolab.output.server.base.store import Store
from iolab.output.server.base.thread_pool import Workers
from iolab.output.server.live.stream import Streams, Window, tick_of
from iolab.output.server.prometheus.metrics import Exporter, Histogram
from iolab.output.server.queries.answers import ask
from iolab.output.server.queries.drill import extremes
from iolab.output.server.queries.listing import recordings, statistics
from iolab.recordings.ask.available import available
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.base.metadata import Begun, read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.retention import Retention
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events, samples

DAY = 24 * 3600 * SECOND


@pytest.fixture
def stalled(tmp_path: Path) -> Iterator[RecordingWriter]:
    """Five seconds of I/O, after which nothing more is done; its writer tells the time when it is
    asked to."""
    writer = RecordingWriter.create(
        tmp_path / "live",
        host="h",
        clock="realtime",
        origin={"kind": "record"},
        system=FakeClock(START),
    )
    writer.append_events(events(2000, start_ns=START, per_s=400))
    writer.tick(START + 5 * SECOND)
    yield writer
    writer.close()


def test_what_is_followed_goes_back_with_a_recording_that_is_begun_again(tmp_path: Path) -> None:
    place, back = tmp_path / "live", START - 60 * SECOND
    with RecordingWriter.create(
        place, host="h", clock="realtime", origin={"kind": "record"}, system=FakeClock(START)
    ) as writer:
        writer.append_events(events(2000, start_ns=START, per_s=400))
        writer.tick(START + 5 * SECOND)
    store = Store([place])
    last = store.ends("live")[1]
    assert tick_of(store, "live").now_ns == tick_of(store, "live").last_ns == last
    with RecordingWriter.reopen(
        place, system=FakeClock(back), begun=Begun(back, 0, back)
    ) as writer:
        for second in (1, 2, 3):
            writer.append_events(events(7, second, start_ns=back + (second - 1) * SECOND, per_s=7))
            writer.tick(back + second * SECOND)
            told = tick_of(store, "live")
            assert (told.first_ns, told.last_ns, told.now_ns) == (
                back,
                last,
                back + second * SECOND - 1,
            )
        recent = ask(
            store, {"statistic": "io.ops", **Window(2 * SECOND, SECOND).words(told.now_ns)}
        )
        assert [value > 0 for value in recent.values] == [True, True]  # type: ignore[attr-defined]
        writer.tick(START + 7 * SECOND)
        told = tick_of(store, "live")
        assert told.now_ns == told.last_ns == START + 7 * SECOND, "it has caught up"
    assert tick_of(store, "live").now_ns == tick_of(store, "live").last_ns


def test_it_goes_on_while_no_io_comes(stalled: RecordingWriter, tmp_path: Path) -> None:
    store = Store([tmp_path / "live"])
    for second in range(5, 30):
        stalled.tick(START + second * SECOND)
        assert store.ends("live") == (START, START + second * SECOND)
    assert recordings(store, {}).recordings[0].last_ns == START + 29 * SECOND
    [last] = [
        family.samples[0].value
        for family in Exporter(store, ["io.ops"]).families()
        if "last_event" in family.name
    ]
    assert last == pytest.approx(START / 1e9 + 5, abs=0.1), "an event is one"
    recent = ask(store, {"statistic": "io.ops", "from": "-10s"})
    assert set(recent.values) == {0}  # type: ignore[attr-defined]
    stalled.append_samples(samples(50, start_ns=START))
    assert store.ends("live")[1] == START + 49 * SECOND


@pytest.mark.parametrize(
    "held", ["", "4711\n\n", "4711\n12\n", "\0" * 40, "4711\n" + "9" * 19 + "x\n", "é\n" * 30]
)
def test_a_lock_that_tells_nothing_is_no_word_of_a_writer(
    stalled: RecordingWriter, tmp_path: Path, held: str
) -> None:
    """Its time of change is that of a copy, perhaps."""
    store = Store([tmp_path / "live"])
    (tmp_path / "live/lock").write_text(held)
    os.utime(tmp_path / "live/lock", ns=(START + 9 * SECOND,) * 2)
    assert store.ends("live")[1] < START + 5 * SECOND
    (tmp_path / "live/lock").unlink()
    assert store.ends("live")[1] < START + 5 * SECOND


@pytest.mark.parametrize(
    ("changed", "until"), [(9, 9), (4000, 5)], ids=["by its writer", "by a copy"]
)
def test_an_older_writer_tells_by_the_time_of_change(
    stalled: RecordingWriter, tmp_path: Path, changed: int, until: int
) -> None:
    stalled._lock.close()
    (tmp_path / "live/lock").write_text("4711\n")
    # nor did it sign anything
    facts = json.loads((tmp_path / "live/recording.json").read_text())
    del facts["crc32"]
    (tmp_path / "live/recording.json").write_text(json.dumps(facts))
    os.utime(tmp_path / "live/lock", ns=(START + changed * SECOND,) * 2)
    assert round(Store([tmp_path / "live"]).ends("live")[1] / SECOND) == START / SECOND + until
    if changed == 9:
        # it was killed: who goes on says the same
        RecordingWriter.reopen(tmp_path / "live", system=FakeClock(START + 60 * SECOND)).close()
        assert read_facts(tmp_path / "live").sessions[0]["until_ns"] == START + 9 * SECOND


def test_an_alert_is_raised_where_io_stands_still(stalled: RecordingWriter, tmp_path: Path) -> None:
    watch = Watch(
        Store([tmp_path / "live"]),
        JsonStore(tmp_path / "alerts", Alert, "alert", 3),
        LogFile(tmp_path / "log"),
    )
    watch.put(
        "idle",
        Alert.model_validate(
            {
                "name": "idle",
                "recording": "",
                "statistic": "io.ops",
                "exceeds": None,
                "falls_below": 50,
                "for_seconds": 10,
                "only_during": "",
                "repost_minutes": 0,
                "also_when_clear": True,
                "actions": [],
            }
        ),
    )
    for second in range(5, 20):
        stalled.tick(START + second * SECOND)
        watch.look()
    assert [line.event for line in watch.log.latest().lines] == ["raised"]


def test_the_stream_goes_on_where_io_stands_still(stalled: RecordingWriter, tmp_path: Path) -> None:
    pool = Workers()
    streams = Streams(Store([tmp_path / "live"]), pool, lambda: False, period=0.01)

    async def heard() -> list[int]:
        found: list[int] = []
        second = 6
        async for text in streams.events("live", ["io.ops"], Window(3 * SECOND, SECOND), {}):
            name, data = text.strip().split("\n")
            if name == "event: tick":
                stalled.tick(START + second * SECOND)
                second += 1
            else:
                found.append(json.loads(data.removeprefix("data: "))["until_ns"])
            if len(found) == 3:
                break
        return found

    found = asyncio.run(asyncio.wait_for(heard(), 20))
    pool.close()
    assert found == sorted(set(found))
    assert len(found) == 3


@pytest.fixture(scope="module")
def aged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of a few seconds each day, of which only the last has events; the days before are
    kept."""
    base = tmp_path_factory.mktemp("aged")
    clock = FakeClock(START)
    with RecordingWriter.create(
        base / "whole", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for day in range(31):
            writer.append_events(
                events(
                    500,
                    day,
                    start_ns=START + day * DAY,
                    per_s=100,
                    source="syscall" if day < 30 else "block",
                )
            )
            writer.seal()
            clock.sleep(DAY // SECOND)
    manage.add(base / "whole", ["file.ops", "file.ops[op]"], backfill=True)
    shutil.copytree(base / "whole", base / "aged")
    facts = read_facts(base / "aged")
    facts.retention["bytes"] = max((base / "aged/events").glob("*.parquet")).stat().st_size
    assert Retention(base / "aged").apply(facts, START) == 30
    return base / "aged"


@pytest.mark.slow
def test_it_reaches_back_to_what_is_kept(aged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store([aged])
    assert Recording(aged).span() != store.ends("aged")
    assert store.ends("aged")[0] // SECOND * SECOND == START
    facts = recordings(store, {}).recordings[0]
    assert facts.first_ns == store.ends("aged")[0]
    words = {"statistic": "file.ops", "from": "-20d", "to": "-10d", "interval": "1d"}
    service = ask(store, words).model_dump(by_alias=True)
    assert (
        run(
            [
                "query",
                str(aged),
                "file.ops",
                "--from",
                "-20d",
                "--to",
                "-10d",
                "--interval",
                "1d",
                "--format",
                "json",
            ]
        )
        == 0
    )
    assert service == json.loads(capsys.readouterr().out)
    assert service["total"] > 0
    # columns are chosen for the month that is kept, not for the seconds that have events
    found = extremes(store, {"statistic": "file.ops", "count": "1"})
    assert found.moments[0].from_ns < START + 29 * DAY


def test_metrics_are_of_events_alone(tmp_path: Path) -> None:
    clock = FakeClock(START)
    name = "io.ops[process=fio][latency]"
    with RecordingWriter.create(
        tmp_path / "rec", host="here", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for part in range(3):
            writer.append_events(events(500, part, start_ns=START + part * 5 * SECOND, per_s=100))
            writer.seal()
            clock.sleep(5)
    manage.add(tmp_path / "rec", [name], backfill=True)
    facts = read_facts(tmp_path / "rec")
    facts.retention["bytes"] = 1 + max((tmp_path / "rec/events").glob("*.parquet")).stat().st_size
    assert Retention(tmp_path / "rec").apply(facts, START) == 2
    opened = Recording(tmp_path / "rec")
    kept, left = query(opened, name), query(opened, name, kept=False)
    assert isinstance(kept, HeatCounts)
    assert isinstance(left, HeatCounts)
    [family] = [
        each
        for each in Exporter(Store([tmp_path / "rec"]), [name]).families()
        if each.kind == "histogram"
    ]
    value = family.samples[0].value
    assert isinstance(value, Histogram)
    assert kept.total > value.count == left.total > 0


@pytest.mark.slow
def test_what_is_kept_is_available_though_its_source_is_gone(aged: Path) -> None:
    found = {each.name: each for each in statistics(Store([aged]), {}).statistics}
    assert (found["file.ops"].available, found["file.ops"].source, found["file.ops"].counted) == (
        True,
        "syscall",
        False,
    )
    assert [each.field for each in found["file.ops"].breakdowns] == ["op"]
    assert not found["file.bytes"].available
    (aged / "histograms/keep.json").rename(aged / "histograms/away")
    try:
        (aged / "histograms/keep.json").write_text("{")
        assert not next(
            each for each in available(Recording(aged)) if each.entry.name == "file.ops"
        ).source
    finally:
        (aged / "histograms/away").rename(aged / "histograms/keep.json")
