# SPDX-License-Identifier: Apache-2.0
"""What is odd: injected faults are named first, with numbers that queries give; quiet time is quiet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import UsageError
from iolab.cli.main import run
from iolab.cli.query.odd import _lines
from iolab.output.server.base.models import Odd
from iolab.output.server.base.store import Store
from iolab.output.server.queries.drill import odd as answer_odd
from iolab.recordings.ask import odd_words
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.odd_series import Subject
from iolab.recordings.ask.odd_words import Numbers, Statement, statements, subject_words
from iolab.recordings.ask.oddities import Change, Oddities, Oddity, oddities
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.ask.tiers.trace_tier import bounds
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import Trace
from support.statistics_data import Event, recording_of, trace_of

pytestmark = pytest.mark.slow

SECOND = 10**9
SECONDS = 24
RATE = 250
START = 1_700_000_000 * SECOND
BEGIN = 16
"""Seconds after which a fault begins."""

Fault = Callable[[Event], Event | None]


def events_with(fault: Fault | None, seed: int = 1) -> list[Event]:
    """Three devices, two processes, noise in everything; the fault changes I/Os from `BEGIN` on."""
    random = np.random.default_rng(seed)
    made = []
    for moment in np.sort(random.uniform(0, SECONDS, RATE * SECONDS)).tolist():
        device = f"sd{'abc'[int(random.integers(3))]}"
        process = "db" if random.random() < 0.6 else "web"
        event = Event(
            time=int(moment * SECOND),
            latency=int(200e3 * np.exp(random.normal(0, 0.4))),
            offset=int(random.integers(0, 2**18)) * 4096,
            size=int(random.choice([4096, 8192])),
            op="read" if random.random() < 0.6 else "write",
            device=device,
            process=process,
            file=f"/{process}/{int(random.integers(2))}",
        )
        changed = fault(event) if fault and moment >= BEGIN else event
        if changed is not None:
            made.append(changed)
    return made


def ask(place: Path, fault: Fault | None, seed: int = 1) -> tuple[Recording, Oddities]:
    trace = trace_of(events_with(fault, seed), place / "t.csv")
    recording = recording_of(trace, place / "rec", parts=2)
    return recording, oddities(recording, ends=bounds(trace))


def changed(event: Event, **values: object) -> Event:
    return replace(event, **values)  # type: ignore[arg-type]


def slow(event: Event) -> Event:
    if event.device != "sdb":
        return event
    assert event.latency is not None
    return changed(event, latency=event.latency + 50_000_000)


def slow_pair(event: Event) -> Event:
    if event.device == "sda":
        return event
    assert event.latency is not None
    return changed(event, latency=event.latency + 50_000_000)


def new_process(event: Event) -> Event:
    if event.offset is not None and event.offset % (5 * 4096) == 0:
        return changed(event, process="backup", file="/backup")
    return event


def large(event: Event) -> Event:
    return changed(event, size=131072) if event.process == "web" else event


def hot(event: Event) -> Event:
    return changed(event, offset=(event.offset or 0) % 2**20) if event.device == "sdc" else event


def stopped(event: Event) -> Event | None:
    return None if event.process == "web" else event


def slower(event: Event) -> Event:
    return changed(event, latency=8 * (event.latency or 0))


@pytest.mark.parametrize(
    ("fault", "field", "values", "quantity", "alone"),
    [
        (slow, "device", {"sdb"}, "latency", True),
        (slow_pair, "device", {"sdb", "sdc"}, "latency", True),
        (new_process, "process", {"backup"}, "rate", None),
        (large, "process", {"web"}, "size", True),
        (hot, "device", {"sdc"}, "offset", None),
        (stopped, "process", {"web"}, "rate", None),
        (slower, "", set(), "latency", False),
    ],
)
def test_a_fault_is_named_first(
    tmp_path: Path, fault: Fault, field: str, values: set[str], quantity: str, alone: bool | None
) -> None:
    _, found = ask(tmp_path, fault)
    first = found.oddities[0]
    assert (first.subject.field, set(first.subject.values)) == (field, values)
    assert quantity in [change.quantity for change in first.changes[:2]]
    assert first.lasting
    assert abs(first.from_ns - BEGIN * SECOND) < SECOND / 2
    assert found.quiet[1] <= first.from_ns
    if alone is not None:
        assert first.changes[0].alone is alone


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_odd_in_quiet_time(tmp_path: Path, seed: int) -> None:
    _, found = ask(tmp_path, None, seed)
    assert found.oddities == ()
    assert found.compared > 30


@pytest.fixture
def slow_disk(tmp_path: Path) -> tuple[Recording, list[Statement], Oddities]:
    recording, found = ask(tmp_path, slow)
    return recording, statements(recording, found), found


def test_numbers_are_those_of_queries(
    slow_disk: tuple[Recording, list[Statement], Oddities],
) -> None:
    recording, stated, found = slow_disk
    oddity = stated[0].oddity
    change, numbers = oddity.changes[0], stated[0].numbers[0]
    assert str(change.statistic) == "io.ops[device=sdb][latency]"
    for span, median in (
        (found.quiet, numbers.before[0]),
        ((oddity.from_ns, oddity.until_ns), numbers.since[0]),
    ):
        answer = query(recording, change.statistic, from_ns=span[0], until_ns=span[1])
        assert isinstance(answer, HeatCounts)
        index, count = answer.by_index()
        place = int(np.searchsorted(np.cumsum(count), np.ceil(count.sum() / 2)))
        assert median == answer.grid.bounds(int(index[place]), int(index[place]))[1] - 1
    assert numbers.low is not None
    assert numbers.high is not None
    assert numbers.low < 50e6 < numbers.high
    assert stated[0].sentence.startswith("sdb alone: median latency ")
    assert ", since 16." in stated[0].sentence or ", since 15.9" in stated[0].sentence


def test_rates_are_those_of_queries(tmp_path: Path) -> None:
    recording, found = ask(tmp_path, stopped)
    stated = statements(recording, found)[0]
    place = [change.quantity for change in stated.oddity.changes].index("rate")
    answer = query(
        recording, "io.ops[process=web]", from_ns=found.quiet[0], until_ns=found.quiet[1]
    )
    assert isinstance(answer, Series)
    assert stated.numbers[place].before == pytest.approx((answer.mean,))
    assert stated.numbers[place].since[0] == pytest.approx(0, abs=2)


def test_each_finding_has_the_time_and_numbers_of_its_subject(tmp_path: Path) -> None:
    """A new process reads much for two seconds, and a larger one stops later."""

    def fault(event: Event) -> Event | None:
        second = event.time / SECOND
        if 17 <= second < 19 and event.offset is not None and event.offset % (4 * 4096) == 0:
            return changed(event, process="scan", file="/scan")
        return None if event.process == "db" and second >= 21 else event

    recording, found = ask(tmp_path, fault)
    stated = {subject_words(item.oddity.subject): item for item in statements(recording, found)}
    assert {"process scan", "process db"} <= stated.keys()
    for process, begin, until, odd_rate in (("scan", 17, 19, RATE / 4), ("db", 21, SECONDS, 0)):
        item = stated[f"process {process}"]
        assert item.oddity.from_ns == pytest.approx(begin * SECOND, abs=SECOND / 2)
        assert item.oddity.until_ns == pytest.approx(until * SECOND, abs=SECOND / 2)
        place = [change.quantity for change in item.oddity.changes].index("rate")
        change, numbers = item.oddity.changes[place], item.numbers[place]
        assert numbers.since[0] == pytest.approx(odd_rate, abs=0.25 * RATE / 4)
        assert (change.octaves > 0) == (numbers.since > numbers.before)


@pytest.mark.parametrize(
    ("before", "since", "unit", "quantity", "statistic", "words"),
    [
        ((208.0e9, 208.1e9), (208.05e9, 208.2e9), "B", "offset", "io.ops[offset]", "193.7 GiB to 193.8 GiB → 193.8 GiB to 193.9 GiB"),
        ((42.0,), (0.0,), "1/s", "rate", "io.ops[process]", "42 I/Os/s → 0 I/Os/s"),
        ((9000.2,), (9000.4,), "1/s", "rate", "io.ops[process]", "9000.2 I/Os/s → 9000.4 I/Os/s"),
        ((0.025,), (0.00005,), "", "queue", "file.ops[latency]", "file calls in flight 0.025 → below 0.001"),
        ((), (4095.0,), "ns", "tail", "nfs.ops[latency]", "p99 of latency of nfs calls none → 4.09 µs"),
    ],
)  # fmt: skip
def test_changes_in_words(
    before: tuple[float, ...],
    since: tuple[float, ...],
    unit: str,
    quantity: str,
    statistic: str,
    words: str,
) -> None:
    change = Change(quantity, parse(statistic), 1.0, 0.0, 1.0, 1.0, True)
    shares = odd_words._MOST if quantity == "offset" else ()
    numbers = Numbers(before, since, unit, shares=shares)
    title = "offset (p5 to p95) " if quantity == "offset" else ""
    assert odd_words._change_words(change, numbers) == title + words


@pytest.mark.parametrize(
    ("from_ns", "until_ns", "words"),
    [
        (5 * SECOND, 7 * SECOND, "5.0 s to 7.0 s"),
        (5 * SECOND, 5 * SECOND + 40 * 10**6, "5.000 s to 5.040 s"),
        (START + 10**8, START + 10**8 + 2000, "22:13:20.100000 to 22:13:20.100002"),
    ],
)
def test_begin_and_end_differ_as_printed(from_ns: int, until_ns: int, words: str) -> None:
    oddity = Oddity(Subject("", ()), (), from_ns, until_ns, lasting=False)
    assert odd_words._when(oddity) == words


def test_a_quiet_time_is_chosen(tmp_path: Path) -> None:
    recording, _ = ask(tmp_path, slow)
    ends = (0, SECONDS * SECOND)
    found = oddities(
        recording,
        looked_at=(14 * SECOND, None),
        against=(0, 10 * SECOND),
        ends=ends,
    )
    assert found.quiet == (0, 10 * SECOND)
    assert found.oddities[0].subject.values == ("sdb",)
    # before the fault began nothing is odd
    calm = oddities(recording, looked_at=(12 * SECOND, 15 * SECOND), ends=ends)
    assert calm.oddities == ()


@pytest.mark.parametrize(
    ("looked_at", "against"),
    [
        ((10 * SECOND, 10 * SECOND), None),
        ((10 * SECOND, None), (5 * SECOND, 5 * SECOND)),
        ((10 * SECOND, None), (5 * SECOND, 12 * SECOND)),
        ((0, 10), None),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, looked_at: tuple[int, int | None], against: tuple[int, int] | None
) -> None:
    recording, _ = ask(tmp_path, None)
    with pytest.raises(UsageError):
        oddities(recording, looked_at=looked_at, against=against, ends=(0, SECONDS * SECOND))


def test_a_trace_is_searched_like_its_recording(tmp_path: Path) -> None:
    _, found = ask(tmp_path, slow)
    trace = Trace(tmp_path / "t.csv", format="csv")
    other = oddities(trace, ends=bounds(trace))
    assert [each.subject for each in other.oddities] == [each.subject for each in found.oddities]


def test_the_command_prints_the_sentence_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path, slow)
    assert run(["odd", str(tmp_path / "rec")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("1. sdb alone: median latency ")
    assert run(["odd", str(tmp_path / "rec"), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"]) == (1, "odd")
    first = data["oddities"][0]
    assert (first["field"], first["values"], first["alone"]) == ("device", ["sdb"], True)
    assert f"1. {first['sentence']}" == lines[1]


@pytest.mark.parametrize(
    "options",
    [
        ["--against", "5s"],
        ["--against", "..5s"],
        ["--from", "5s", "--to", "5s"],
        ["--from", "10s", "--against", "5s..12s"],
        ["--from", "yesterday"],
    ],
)
def test_the_command_refuses_mistakes_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    ask(tmp_path, None)
    assert run(["odd", str(tmp_path / "rec"), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_the_service_gives_the_same(tmp_path: Path) -> None:
    recording, found = ask(tmp_path, slow)
    stated = statements(recording, found)
    store = Store([tmp_path / "rec"])
    answer = answer_odd(store, {})
    assert isinstance(answer, Odd)
    assert [each.sentence for each in answer.oddities] == [each.sentence for each in stated]
    with pytest.raises(UsageError):
        answer_odd(store, {"against_from": "0"})


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("", (), "all I/Os"),
        ("device", ("sda", "sdb"), "sda and sdb"),
        ("file", ("/a",), "file /a"),
        ("file", ("/a", "/b", "/c"), "files /a, /b and /c"),
        ("process", ("db", "fio"), "processes db and fio"),
    ],
)
def test_subjects_are_singular_or_plural(field: str, values: tuple[str, ...], words: str) -> None:
    assert subject_words(Subject(field, values)) == words


@pytest.mark.parametrize(
    ("quantity", "statistic", "has_share"),
    [("value", "cpu.utilization", False), ("rate", "io.ops[device]", True)],
)
def test_a_counter_has_no_share_of_the_ios(quantity: str, statistic: str, has_share: bool) -> None:
    subject = Subject("device", ("sda",))
    change = Change(quantity, parse(statistic), 2.0, 0.0001, 0.51, 1.0, False)
    oddity = Oddity(subject, (change,), 0, 10**9, False)
    answer = Oddities((oddity,), (0, 1), (0, 2), 10**9, 1)
    lines = _lines("rec", answer, [Statement(oddity, (), "it changed")])
    assert ("51 % of the I/Os" in lines[-1]) == has_share


def test_own_processes_are_left_out_and_counted(tmp_path: Path) -> None:
    def own_burst(event: Event) -> Event:
        is_moved = event.offset is not None and event.offset % (3 * 4096) == 0
        return changed(event, process="iolab", file="/rec") if is_moved else event

    trace = trace_of(events_with(own_burst), tmp_path / "t.csv")
    recording = recording_of(trace, tmp_path / "rec", parts=2)
    for is_own_included in (False, True):
        result = oddities(recording, ends=bounds(trace), is_own_included=is_own_included)
        processes = {
            value
            for oddity in result.oddities
            if oddity.subject.field == "process"
            for value in oddity.subject.values
        }
        assert ("iolab" in processes) == is_own_included
        assert any("own processes" in note for note in result.notes) != is_own_included
