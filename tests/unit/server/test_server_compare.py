# SPDX-License-Identifier: Apache-2.0
"""Numbers over two ranges of time beside each other, percentiles over time, and when nothing was
recorded: each against sums by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab import _core
from iolab.base.clock import FakeClock
from iolab.base.errors import UsageError
from iolab.output.server.base.models import DrawnMap, PercentilesAnswer
from iolab.output.server.base.store import Store
from iolab.output.server.queries import answers
from iolab.output.server.queries import comparison as served_changes
from iolab.output.server.queries.answers import ask, ask_binary
from iolab.output.server.queries.comparison import Changes, Difference, changes, compare
from iolab.output.server.queries.listing import losses
from iolab.recordings.heatmap import wire
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest
from iolab.recordings.store.write.writer import RecordingWriter
from support.narrow import present
from support.recordings import SECOND, START, events

REC = {"recording": "rec", "interval": "1s"}
RANGES = {"from": "4s", "to": "7s", "other_from": "1s", "other_to": "4s"}


def asked(store: Store, words: dict[str, str]) -> Any:
    return ask(store, words)


def same(found: list[Any], expected: list[Any]) -> None:
    np.testing.assert_allclose(
        [math.nan if each is None else each for each in found],
        [math.nan if each is None else each for each in expected],
        rtol=1e-9,
    )


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Ten seconds, twenty of nothing, ten seconds again, with twice as many I/Os."""
    path = tmp_path_factory.mktemp("torn") / "r"
    clock = FakeClock(START)
    with RecordingWriter.create(
        path, host="h", clock="realtime", origin={"kind": "record"}, system=clock
    ) as writer:
        for second in range(10):
            writer.append_events(events(100, second, start_ns=START + second * SECOND, per_s=100))
        clock.sleep(10)
    clock.sleep(20)
    with RecordingWriter.reopen(path, system=clock) as writer:
        for second in range(30, 40):
            writer.append_events(events(200, second, start_ns=START + second * SECOND, per_s=200))
        clock.sleep(10)
    return Store([path])


@pytest.mark.parametrize(
    "statistic", ["io.ops", "io.bytes[op=write]", "io.ops[op]", "io.bytes[process]"]
)
def test_changes_are_of_the_values_of_both_ranges(statistic: str, store: Store) -> None:
    found = compare(store, {**REC, **RANGES, "statistic": statistic})
    assert isinstance(found, Changes)
    assert (found.columns, found.from_ns - found.other_from_ns, found.until_ns - found.from_ns) == (
        3,
        3 * SECOND,
        3 * SECOND,
    )
    one, other = (
        asked(store, {**REC, "statistic": statistic, "from": str(first), "to": str(until)})
        for first, until in (
            (found.from_ns, found.until_ns),
            (found.other_from_ns, found.other_until_ns),
        )
    )
    assert found.whole.mean == pytest.approx(one.mean)
    assert found.whole.other_mean == pytest.approx(other.mean)
    assert found.whole.change == pytest.approx(one.mean - other.mean)
    assert found.whole.ratio == pytest.approx(one.mean / other.mean)
    if "[op]" in statistic or "[process]" in statistic:
        before, after = ({each.key: each for each in answer.keys} for answer in (other, one))
        assert {each.key for each in found.keys} == before.keys() | after.keys()
        for each in found.keys:
            assert each.change == pytest.approx(after[each.key].mean - before[each.key].mean)
            same(each.values, after[each.key].values)
            same(each.other_values, before[each.key].values)
        sizes = [abs(each.change or 0) for each in found.keys]
        assert sizes == sorted(sizes, reverse=True)
        same(
            found.whole.values,
            [
                sum(map(present, values))
                for values in zip(*(each.values for each in found.keys), strict=True)
            ],
        )
    else:
        assert found.keys == []
        same(found.whole.values, one.values)
        same(found.whole.other_values, other.values)


def test_a_key_that_was_not_there_did_nothing(store: Store) -> None:
    # dd's first write lies at 0 s, its next at 10 ms
    words = {
        "recording": "t.csv",
        "statistic": "io.ops[op]",
        "interval": "5ms",
        "from": "10ms",
        "to": "15ms",
        "other_from": "15ms",
        "other_to": "20ms",
    }
    found = changes(store, words)
    write = next(each for each in found.keys if each.key == "write")
    assert (write.mean, write.other_mean, write.change, write.ratio) == (200, 0, 200, None)
    assert (write.values, write.other_values) == ([200], [0])


def test_what_was_not_recorded_is_null(torn: Store) -> None:
    found = changes(
        torn,
        {
            "statistic": "io.ops[op]",
            "interval": "1s",
            "from": "25s",
            "to": "35s",
            "other_from": str(START - 2 * SECOND),
            "other_to": str(START + 8 * SECOND),
        },
    )
    assert [value is None for value in found.whole.values] == [True] * 5 + [False] * 5
    assert [value is None for value in found.whole.other_values] == [True] * 2 + [False] * 8
    assert (found.covered_ns, found.other_covered_ns) == (5 * SECOND, 8 * SECOND)
    for each in found.keys:
        assert [value is None for value in each.values] == [True] * 5 + [False] * 5
    # the second half did twice as much a second, whatever was recorded of it
    assert found.whole.ratio == pytest.approx(2, rel=0.2)


def test_beyond_the_ends_of_a_trace_nothing_is_known(store: Store) -> None:
    found = changes(
        store,
        {
            "recording": "t.csv",
            "statistic": "io.ops",
            "interval": "1s",
            "from": "3s",
            "to": "7s",
            "other_from": "0s",
            "other_to": "4s",
        },
    )
    assert [value is None for value in found.whole.values] == [False, False, True, True]
    assert None not in found.whole.other_values


@pytest.mark.parametrize("kind", ["trace", "imported"])
def test_means_are_over_what_lies_between_the_ends(kind: str, tmp_path: Path) -> None:
    """A hundred a second for sixty seconds, of which nobody knows when it was recorded."""
    lines = "".join(f"{10 * at},100,512,{'read' if at % 2 else 'write'}\n" for at in range(6000))
    (tmp_path / "t.csv").write_text("time:ms,latency:us,size:bytes,op\n" + lines)
    opened: Path = tmp_path / "t.csv"
    if kind == "imported":
        ingest(Trace(opened), tmp_path / "rec")
        opened = tmp_path / "rec"
    store = Store([opened])
    words = {
        "interval": "10s",
        "from": str(20 * SECOND),
        "to": str(50 * SECOND),
        "other_from": str(50 * SECOND),
        "other_to": str(80 * SECOND),
    }
    last = 10 * SECOND - 10_000_000 + 1
    for statistic, rate in (("io.ops", 100), ("io.bytes", 51200), ("io.ops[op]", 100)):
        found = changes(store, {**words, "statistic": statistic})
        assert (found.covered_ns, found.other_covered_ns) == (30 * SECOND, last)
        assert found.whole.mean == rate
        assert found.whole.other_mean == pytest.approx(rate, rel=0.01)
        assert found.whole.values == [rate] * 3
        assert found.whole.other_values == [rate, None, None]
        for each in found.keys:
            assert each.mean == rate / 2
            assert each.other_mean == pytest.approx(rate / 2, rel=0.01)
    drawn = compare(store, {**words, "statistic": "io.ops[latency]"})
    assert isinstance(drawn, Difference)
    assert (drawn.covered_ns, drawn.other_covered_ns, drawn.gaps) == (30 * SECOND, last, [(1, 3)])
    assert drawn.cells.values == []
    nothing = compare(
        store,
        {
            **words,
            "statistic": "io.ops[op]",
            "other_from": str(70 * SECOND),
            "other_to": str(100 * SECOND),
        },
    )
    assert isinstance(nothing, Changes)
    assert (nothing.other_covered_ns, nothing.whole.other_mean, nothing.whole.other_values) == (
        0,
        None,
        [None] * 3,
    )
    assert [(each.other_mean, each.other_values) for each in nothing.keys] == [
        (None, [None] * 3)
    ] * 2


def test_keys_that_are_left_out_are_not_written_down(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    one = served_changes._change

    def change(key: str, *rows: Any) -> Any:
        written.append(key)
        return one(key, *rows)

    monkeypatch.setattr(served_changes, "_change", change)
    found = changes(store, {**REC, **RANGES, "statistic": "io.ops[file]", "top": "3"})
    assert found.left > 3
    assert sorted(written) == sorted(["", *(each.key for each in found.keys)])
    written.clear()
    monkeypatch.setattr(answers, "MOST_NUMBERS", 10)
    with pytest.raises(UsageError, match="numbers"):
        changes(store, {**REC, **RANGES, "statistic": "io.ops[file]", "top": "3"})
    assert written == []


def test_maps_of_very_many_cells_are_compared_on_coarser_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {**REC, **RANGES, "statistic": "io.ops[latency]"}
    fine = compare(store, words)
    monkeypatch.setattr(wire, "CELLS", 100)
    coarse = compare(store, words)
    assert isinstance(fine, Difference)
    assert isinstance(coarse, Difference)
    assert fine.group is not None
    assert coarse.group is not None
    assert len(coarse.group.bounds) < len(fine.group.bounds)
    assert sum(coarse.cells.values) == pytest.approx(sum(fine.cells.values))
    cells = [
        sum(len(part.cells.counts) for part in group.maps) for group in (fine.group, coarse.group)
    ]
    # what limits an answer is the number of its cells, not of those that were read
    monkeypatch.setattr(answers, "MOST_NUMBERS", 4 * cells[1])
    assert cells[0] > cells[1]
    compare(store, words)
    monkeypatch.setattr(answers, "MOST_NUMBERS", 4 * cells[1] - 1)
    with pytest.raises(UsageError, match="numbers"):
        compare(store, words)


def test_keys_beyond_those_asked_for_are_counted(store: Store) -> None:
    every = changes(store, {**REC, **RANGES, "statistic": "io.ops[file]"})
    some = changes(store, {**REC, **RANGES, "statistic": "io.ops[file]", "top": "3"})
    assert some.keys == every.keys[:3]
    assert (some.left, every.left) == (len(every.keys) - 3, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"other_to": "9s"}, "differ in length"),
        ({"from": "7s"}, "empty"),
        ({"interval": "whole"}, "no interval"),
        ({"interval": "1ns"}, "columns"),
        ({"statistic": "io.opps"}, "opps"),
    ],
)
def test_changes_that_can_not_be_asked(words: dict[str, str], said: str, store: Store) -> None:
    with pytest.raises(UsageError, match=said):
        compare(store, {**REC, **RANGES, "statistic": "io.ops", **words})


def test_a_map_is_still_compared_as_a_map(store: Store) -> None:
    assert isinstance(compare(store, {**REC, **RANGES, "statistic": "io.ops[latency]"}), Difference)


def bucket_end(value: int) -> int:
    """The largest value of the grid's bucket that holds it."""
    return _core.grid_bounds(_core.grid_index(value, 6), 6)[1]


def test_percentiles_are_those_of_the_events(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    latency = {
        second: [(37 * row % 1000 + 1) * 1000 * (second + 1) for row in range(1000)]
        for second in (0, 1, 3)
    }
    path.write_text(
        "time:ns,latency:ns,offset:bytes,size:bytes,op\n"
        + "".join(
            f"{second * SECOND + row},{value},0,4096,read\n"
            for second, values in latency.items()
            for row, value in enumerate(values)
        )
    )
    store = Store([path])
    words = {"statistic": "io.ops[latency]", "interval": "1s", "drawn": "percentiles"}
    found = ask(store, words)
    assert isinstance(found, PercentilesAnswer)
    assert ask_binary(store, words) == found
    assert (found.kind, found.unit, found.events) == ("percentiles", "ns", 3000)
    lines = {each.key: each for each in found.keys}
    assert list(lines) == ["p50", "p90", "p99", "p99.9", "max", "mean"]
    everything = sorted(value for values in latency.values() for value in values)
    for name, share in (
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ):
        expected = [
            bucket_end(sorted(latency[second])[math.ceil(share * 1000) - 1])
            if second in latency
            else None
            for second in range(4)
        ]
        assert lines[name].values == expected
        assert lines[name].mean == bucket_end(everything[math.ceil(share * 3000) - 1])
    assert lines["mean"].mean == pytest.approx(np.mean(everything), rel=0.02)
    assert not any("maximum" in note for note in found.notes)
    fine = ask(store, {**words, "interval": "500ns", "from": "0", "to": "1us"})
    assert isinstance(fine, PercentilesAnswer)
    # 1000 I/Os of a second lie within 1000 ns: two columns of 500
    assert "p99.9 is the maximum in 2 of 2 columns: they have fewer than 1000 I/Os" in fine.notes
    assert not any(note.startswith("p99 ") for note in fine.notes)
    whole = ask(store, {**words, "interval": "whole"})
    assert isinstance(whole, PercentilesAnswer)
    assert [each.values for each in whole.keys] == [[each.mean] for each in found.keys]


def test_of_a_few_late_ios_only_the_maximum_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [(second * SECOND + row, 1000 * (row + 1)) for second in range(30) for row in range(50)]
    rows += [(30 * SECOND, 900_000), (30 * SECOND + 1, 1_000_000)]
    path.write_text(
        "time:ns,latency:ns,offset:bytes,size:bytes,op\n"
        + "".join(f"{time},{latency},0,4096,read\n" for time, latency in rows)
    )
    words = {"statistic": "io.ops[latency]", "interval": "1s", "drawn": "percentiles"}
    found = ask(Store([path]), words)
    assert isinstance(found, PercentilesAnswer)
    ends = {each.key: (each.values[0], each.values[-1]) for each in found.keys}
    assert {key for key, (_, last) in ends.items() if last is not None} == {"max"}
    assert ends["max"][1] == bucket_end(1_000_000)
    assert None not in [first for first, _ in ends.values()]
    assert any("last column has 2 I/Os" in note for note in found.notes)
    assert not any("first column" in note for note in found.notes)


def test_percentiles_say_for_which_time_they_answer(tmp_path: Path) -> None:
    """Reads in two seconds of seven that are asked for: the other five are answered as well."""
    path = tmp_path / "t.csv"
    path.write_text(
        "time:ns,latency:ns,offset:bytes,size:bytes,op\n"
        + "".join(
            f"{second * SECOND},{1000 * second + 1000},0,4096,{'read' if second in (6, 7) else 'write'}\n"
            for second in range(11)
        )
    )
    ingest([Trace(path)], tmp_path / "r")
    store = Store([tmp_path / "r"])
    for condition, columns in (("[op=read]", 2), ("[latency>=1h]", 0)):
        words = {
            "statistic": f"io.ops{condition}[latency]",
            "interval": "1s",
            "from": "2s",
            "to": "9s",
        }
        found, drawn = (ask(store, {**words, "drawn": how}) for how in ("percentiles", "true"))
        assert isinstance(found, PercentilesAnswer)
        assert isinstance(drawn, DrawnMap)
        assert found.window is not None
        assert found.window == drawn.window
        assert [len(each.values) for each in found.keys] == [columns] * 6
        assert [found.t0_ns + each * SECOND for each in found.window] == [2 * SECOND, 9 * SECOND]


def test_percentiles_of_nothing_and_of_offsets(store: Store) -> None:
    found = ask(
        store,
        {"recording": "rec", "statistic": "io.ops[latency>=1h][latency]", "drawn": "percentiles"},
    )
    assert isinstance(found, PercentilesAnswer)
    assert [(each.mean, each.values) for each in found.keys] == [(None, [])] * 6
    with pytest.raises(UsageError, match="addresses"):
        ask(store, {"recording": "rec", "statistic": "io.ops[offset]", "drawn": "percentiles"})
    series = ask(store, {"recording": "rec", "statistic": "io.ops", "drawn": "percentiles"})
    assert series == ask(store, {"recording": "rec", "statistic": "io.ops"})


def test_a_map_says_when_nothing_was_recorded_though_it_holds_nothing(torn: Store) -> None:
    words = {"interval": "1s", "drawn": "true", "from": "5s", "to": "35s"}
    gaps = []
    for statistic in ("io.ops[latency]", "io.ops[latency>=1h][latency]"):
        found = ask(torn, {**words, "statistic": statistic})
        assert isinstance(found, DrawnMap)
        gaps = found.gaps
        assert [
            (found.t0_ns + first * SECOND, found.t0_ns + past * SECOND)
            for first, past in found.gaps
        ] == [(START + 10 * SECOND, START + 30 * SECOND)]
    lines = ask(torn, {**words, "statistic": "io.ops[latency]", "drawn": "percentiles"})
    assert isinstance(lines, PercentilesAnswer)
    assert lines.gaps == gaps


def test_when_it_was_recorded(torn: Store, store: Store) -> None:
    found = losses(torn, {})
    assert found.recorded == [
        (START, START + 10 * SECOND),
        (START + 30 * SECOND, START + 40 * SECOND),
    ]
    assert found.gaps == [(START + 10 * SECOND, START + 30 * SECOND)]
    assert losses(store, {"recording": "t.csv"}).recorded == []
