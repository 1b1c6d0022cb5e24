# SPDX-License-Identifier: Apache-2.0
"""A folder of recordings asked as one: sums of the single answers, notes with their hosts, and folders
that can't be asked."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Answer, Series, Stack
from iolab.recordings.ask.answers.json_form import bounds_of
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet, who_of_fleet
from iolab.recordings.ask.query import query
from iolab.recordings.heatmap.ticks import quantity
from iolab.recordings.store.base.counts import HeatCounts, alike
from iolab.recordings.store.read.folder import has_recordings, is_folder, open_folder
from iolab.recordings.store.write.writer import RecordingWriter
from support.archives import questions, record
from support.depth import depth
from support.recordings import SECOND, START, events

HOSTS = ("db1", "<b>db2\x1b[31m", "web")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of three hosts; the last host has two, one after the other."""
    home = tmp_path_factory.mktemp("folder")
    for seed, host in enumerate(HOSTS):
        record(home / f"r{seed}", segments=2 + seed, host=host, seed=seed)
    with RecordingWriter.create(
        home / "r3", host="web", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.append_events(events(300, 9, start_ns=START + 60 * SECOND, per_s=40))
        writer.seal()
    return home


def ask(folder: Path, text: str, **asked: Any) -> Answer | dict[str, Answer]:
    return ask_fleet(open_folder(folder).recordings, FleetStatistic.parse(text), **asked)


def cells(maps: list[HeatCounts]) -> Counter[tuple[int, int]]:
    """Counts by time and bucket of maps with the same buckets."""
    sums: Counter[tuple[int, int]] = Counter()
    for counts in maps:
        for column, index, count in zip(
            counts.column.tolist(), counts.index.tolist(), counts.count.tolist(), strict=True
        ):
            sums[counts.t0_ns + column * counts.interval_ns, index] += count
    return sums


def rates(answers: list[Series]) -> dict[int, float]:
    """The sum of the rates of each column that has one."""
    sums: dict[int, float] = {}
    for answer in answers:
        for place in np.flatnonzero(~np.isnan(answer.values)).tolist():
            time_ns = answer.t0_ns + place * answer.interval_ns
            sums[time_ns] = sums.get(time_ns, 0) + float(answer.values[place])
    return sums


def totals(stacks: list[Stack]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for stack in stacks:
        sums.update(dict(zip(stack.keys, stack.totals, strict=True)))
        sums["the rest"] += stack.rest_total
    return +sums


@settings(max_examples=depth(25, 800), deadline=None)
@given(question=questions())
def test_a_folder_is_the_sum_of_its_recordings(
    folder: Path, question: tuple[str, dict[str, Any]]
) -> None:
    text, asked = question
    try:
        whole = ask(folder, text, **asked)
    except IolabError:
        whole = None
    singles = []
    for recording in open_folder(folder).recordings:
        interval = asked["interval_ns"] if whole is None else whole.interval_ns  # type: ignore[union-attr]
        try:
            singles.append(query(recording, text, **{**asked, "interval_ns": interval}))
        except IolabError:
            continue
    if whole is None:
        assert not singles
    elif isinstance(whole, HeatCounts):
        maps = [answer for answer in singles if isinstance(answer, HeatCounts)]
        assert whole.events == sum(answer.events for answer in maps)
        assert cells([whole]) == cells(alike(maps))
    elif isinstance(whole, Series):
        series = [answer for answer in singles if isinstance(answer, Series)]
        assert whole.total == sum(answer.total for answer in series)
        assert rates([whole]) == pytest.approx(rates(series))
    elif isinstance(whole, Stack):
        assert totals([whole]) == totals([item for item in singles if isinstance(item, Stack)])


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_percentiles_are_of_the_merged_histograms(folder: Path, share: float) -> None:
    merged = ask(folder, "io.ops[latency]", interval_ns=SECOND)
    assert isinstance(merged, HeatCounts)
    index, count = merged.by_index()
    place = int(index[np.searchsorted(np.cumsum(count), np.ceil(share * count.sum()))])
    low, past = bounds_of(merged)[place]
    below = above = every = 0
    for recording in open_folder(folder).recordings:
        counts = query(recording, "io.ops[latency]", interval_ns=SECOND)
        assert isinstance(counts, HeatCounts)
        every += counts.total
        below += query(recording, f"io.ops[latency<{low}ns]").total
        above += query(recording, f"io.ops[latency>={past}ns]").total
    assert below < np.ceil(share * every) <= every - above


def test_hosts_are_a_breakdown_and_a_condition(folder: Path) -> None:
    stack = ask(folder, "io.ops[host]", interval_ns=SECOND)
    assert isinstance(stack, Stack)
    assert set(stack.keys) == set(HOSTS)
    alone = {
        host: sum(
            query(recording, "io.ops").total
            for recording in open_folder(folder).recordings
            if recording.facts.host == host
        )
        for host in HOSTS
    }
    assert dict(zip(stack.keys, stack.totals, strict=True)) == alone
    for host in HOSTS:
        quoted = f'"{host}"'
        answer = ask(folder, f"io.ops[host={quoted}]", interval_ns=SECOND)
        assert isinstance(answer, Series)
        assert answer.total == alone[host]
    maps = ask(folder, "io.ops[latency][host]", interval_ns=SECOND)
    assert isinstance(maps, dict)
    assert set(maps) == set(HOSTS)


def test_who_adds_up(folder: Path) -> None:
    box = Rectangle(low=10**6)
    whole = who_of_fleet(
        open_folder(folder).recordings,
        FleetStatistic.parse("io.ops[latency]"),
        "latency",
        box,
        top=9,
    )
    singles = [who(recording, "latency", box) for recording in open_folder(folder).recordings]
    assert whole.inside == sum(answer.inside for answer in singles)
    assert whole.outside == sum(answer.outside for answer in singles)
    [hosts] = [item for item in whole.dimensions if item.field == "host"]
    assert {item.value for item in hosts.values} == set(HOSTS)


def test_losses_and_gaps_are_named_with_their_host(folder: Path) -> None:
    for text in ("io.ops", "io.ops[host]", "io.ops[op]"):
        answer = ask(folder, text, interval_ns=SECOND)
        assert isinstance(answer, Series | Stack)
        lost = [note for note in answer.notes if "records lost" in note]
        assert [note.partition(":")[0] for note in sorted(lost)] == sorted(HOSTS)
        assert all("24 records lost, " in note and "without a recording" in note for note in lost)
        # what all hosts have is said once
        assert "block events; source syscall has the others" not in " ".join(lost)
    counts = ask(folder, "io.ops[latency]", interval_ns=SECOND)
    assert isinstance(counts, HeatCounts)
    assert sum("24 records lost" in note for note in counts.assumptions) == len(HOSTS)
    [single] = [ask(folder, "io.ops[host=db1]")]
    assert not any("records lost" in note for note in single.notes)  # type: ignore[union-attr]


def test_a_note_of_some_hosts_names_them(tmp_path: Path) -> None:
    folder = two(tmp_path)
    record(tmp_path / "c", host="c")
    answer = ask(folder, "io.ops", interval_ns=SECOND)
    assert isinstance(answer, Series)
    assert "c: block events; source syscall has the others" in answer.notes


def two(home: Path, **other: Any) -> Path:
    """A folder of two recordings, the second with other properties."""
    for name, facts in (("a", {}), ("b", other)):
        given: dict[str, Any] = {
            "host": name,
            "clock": "realtime",
            "origin": {"kind": "record"},
            **facts,
        }
        with RecordingWriter.create(home / name, live=False, **given) as writer:
            writer.append_events(events(100, 1, per_s=40))
            writer.seal()
    return home


def notes(folder: Path, text: str = "io.ops") -> str:
    answer = ask(folder, text)
    assert isinstance(answer, Series)
    return "\n".join(answer.notes)


def set_offset(path: Path, offset_ns: int, uncertainty_ns: int = 1000) -> None:
    facts = json.loads((path / "recording.json").read_text())
    facts["sessions"] = [
        {
            "from_ns": START,
            "until_ns": START + 10 * SECOND,
            "clock_offset_ns": offset_ns,
            "clock_offset_uncertainty_ns": uncertainty_ns,
        }
    ]
    (path / "recording.json").write_text(json.dumps(facts))


def test_clocks_of_hosts_are_noted(tmp_path: Path) -> None:
    folder = two(tmp_path)
    assert "how far these differ is not known" in notes(folder)
    assert "clock" not in notes(folder, "io.ops[host=a]")
    set_offset(folder / "a", 5_000_000)
    set_offset(folder / "b", -2_000_000_000)
    assert "b 2 s behind" in notes(folder).replace("2.00 s", "2 s")
    assert "a " not in notes(folder).partition("machine's: ")[2]
    set_offset(folder / "b", -2_000_000_000, 3_000_000_000)
    assert "clock" not in notes(folder)


def test_recordings_with_other_clocks_are_refused(tmp_path: Path) -> None:
    folder = two(tmp_path, clock="trace")
    with pytest.raises(UsageError, match="clock of their own"):
        ask(folder, "io.ops")
    assert ask(folder, "io.ops[host=a]").total == ask(folder, "io.ops[host=b]").total  # type: ignore[union-attr]


def test_two_recordings_of_a_host_that_overlap(tmp_path: Path) -> None:
    folder = two(tmp_path, host="a")
    assert "recordings of a overlap" in notes(folder)
    stack = ask(folder, "io.ops[host]")
    assert isinstance(stack, Stack)
    assert stack.keys == ["a"]


def test_a_damaged_recording_is_left_out(tmp_path: Path) -> None:
    folder = two(tmp_path)
    whole = ask(folder, "io.ops[host=b]").total  # type: ignore[union-attr]
    (folder / "a" / "recording.json").write_text("{")
    opened = open_folder(folder)
    assert [item.facts.host for item in opened.recordings] == ["b"]
    assert [note.partition(":")[0] for note in opened.notes] == ["a is left out"]
    assert ask(folder, "io.ops").total == whole  # type: ignore[union-attr]
    (folder / "b" / "recording.json").write_text("[]")
    with pytest.raises(IolabError) as error:
        open_folder(folder)
    assert "\n" not in str(error.value)


def test_a_damaged_segment_is_noted_with_its_host(tmp_path: Path) -> None:
    folder = two(tmp_path)
    (folder / "b" / "events" / "000001.parquet").write_bytes(b"PAR1")
    answer = ask(folder, "io.ops[process]")
    assert isinstance(answer, Stack)
    assert any(note.startswith("b: damaged or missing files") for note in answer.notes)
    assert answer.total == ask(folder, "io.ops[host=a]").total  # type: ignore[union-attr]


def test_folders_that_can_not_be_asked(tmp_path: Path) -> None:
    assert is_folder(tmp_path)
    assert not has_recordings(tmp_path)
    with pytest.raises(FormatError, match="without recordings"):
        open_folder(tmp_path)
    assert not is_folder(tmp_path / "absent")
    record(tmp_path / "rec")
    assert not is_folder(tmp_path / "rec")
    (tmp_path / "link").symlink_to(tmp_path / "rec")
    shutil.copytree(tmp_path / "rec", tmp_path / ".hidden")
    assert [item.path.name for item in open_folder(tmp_path).recordings] == ["rec"]


def test_results_of_hosts_are_a_folder(tmp_path: Path) -> None:
    two(tmp_path / "results" / "recordings")
    assert is_folder(tmp_path / "results")
    assert len(open_folder(tmp_path / "results").recordings) == 2
    shutil.rmtree(tmp_path / "results" / "recordings" / "b")
    # the recording of one host is asked itself
    assert not is_folder(tmp_path / "results")


def test_a_drawn_breakdown_has_a_character_for_each_column(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["query", str(folder), "io.ops[host]"]) == 0
    drawn = capsys.readouterr().out
    line = next(line for line in drawn.splitlines() if line.startswith("db1"))
    answer = ask(folder, "io.ops[host]", columns=len(line.split()[-1]))
    assert isinstance(answer, Stack)
    assert f"each column {quantity(answer.interval_ns, 'ns')}" in drawn
