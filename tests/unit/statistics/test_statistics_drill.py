# SPDX-License-Identifier: Apache-2.0
"""Drill-down without limit, and paths as a tree whose sums add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iolab.base.errors import UsageError
from iolab.recordings.ask import drill
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.drill import Branch, branches, hierarchy
from iolab.recordings.ask.language.catalogue import CATALOGUE
from iolab.recordings.ask.language.fields import QUANTIZED
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import Between, parse
from iolab.recordings.store.base.counts import HeatCounts
from support.statistics_data import Event, recording_of, trace_of

MS = 10**6


def test_a_value_becomes_a_condition() -> None:
    asked = parse("io.ops[op=write][process]")
    assert str(drill.narrow(asked, "a,b")) == 'io.ops[op=write][process="a,b"]'
    assert str(drill.narrow(parse("io.ops[latency]"), "10ms..1s")) == "io.ops[latency=10ms..1s]"
    assert (
        str(drill.narrow(parse("io.ops[latency]"), Between(10 * MS, None)))
        == "io.ops[latency=10ms..]"
    )
    assert str(drill.narrow(parse("io.ops[pid]"), "77")) == "io.ops[pid=77]"


@pytest.mark.parametrize(
    ("statistic", "value", "says"),
    [
        ("io.utilization[utilization]", "5", "can't be narrowed"),
        ("io.ops", "x", "there is none"),
        ("io.ops[op]", "wirte", "there is no op 'wirte'"),
        ("io.ops[latency]", "fast", "latency: 'fast' is not a time"),
        ("cpu.utilization[mode]", "x", "there is no mode 'x'"),
    ],
)
def test_what_is_no_value(statistic: str, value: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        drill.narrow(parse(statistic), value)
    assert says in error.value.message


def test_a_range_of_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="a range is not a value of op"):
        drill.narrow(parse("io.ops[op]"), Between(1, 2))


def test_every_statistic_drills_down_to_an_end() -> None:
    """From each breakdown to the next until nothing but maps is left; names are read again at every
    step."""
    for entry in CATALOGUE.values():
        asked = parse(entry.name)
        fields = [name for name in entry.breakdowns if name not in (*QUANTIZED, "utilization")]
        for field in fields:
            words = entry.words(field)
            step = replace(asked, breakdown=field)
            asked = parse(str(drill.narrow(step, words[0] if words else "7")))
        # conditions that a name implies may come on top
        assert {condition.field for condition in asked.filters} >= set(fields)


def test_three_levels_deep_the_sums_are_parts(tmp_path: Path) -> None:
    held = [
        Event(
            at * MS,
            (at % 4) * MS,
            op="write" if at % 3 else "read",
            process=f"p{at % 5}",
            file=f"/d/{at % 2}",
        )
        for at in range(300)
    ]
    recording = recording_of(trace_of(held, tmp_path / "t.csv"), tmp_path / "r", parts=3)
    asked = parse("io.ops[op]")
    chosen = {"op": "write", "process": "p3", "latency": "2ms..4ms", "file": "/d/1"}
    total = len(held)
    for field, value in chosen.items():
        step = replace(asked, breakdown=field)
        answer = query(recording, step, columns=10)
        assert isinstance(answer, Stack | HeatCounts)
        assert (answer.events if isinstance(answer, HeatCounts) else answer.total) == total
        asked = drill.narrow(step, value)
        narrowed = query(recording, asked, columns=10)
        assert isinstance(narrowed, Series)
        if isinstance(answer, Stack):
            assert narrowed.total == answer.totals[answer.keys.index(value)]
        total = narrowed.total
    assert (
        total
        == sum(
            each.op == "write"
            and each.process == "p3"
            and each.latency is not None
            and each.latency >= 2 * MS
            and each.file == "/d/1"
            for each in held
        )
        > 0
    )


def test_paths_are_a_tree(tmp_path: Path) -> None:
    held = [
        Event(at, file=name)
        for at, name in enumerate(["/a/b/x"] * 5 + ["/a/b/y"] * 3 + ["/a/z"] * 2 + [None, "/a/b"])
    ]
    trace = trace_of(held, tmp_path / "t.csv")
    for opened in (trace, recording_of(trace, tmp_path / "r")):
        found = hierarchy(opened, "io.ops")
        assert (found.total, found.unnamed, str(found.statistic)) == (12, 1, "io.ops[file]")
        [top] = found.root.children
        assert (top.name, top.total, [each.name for each in top.children]) == ("a", 11, ["b", "z"])
        assert (top.children[0].total, top.children[0].own) == (9, 1)
        few = (
            hierarchy(opened, "io.ops[process=fio][file]", least=0.25).root.children[0].children[0]
        )
        assert ([each.name for each in few.children], few.others, few.left) == (["x", "y"], 0, 0)
        few = hierarchy(opened, "io.ops", least=0.3).root.children[0].children[0]
        assert ([each.name for each in few.children], few.others, few.left) == (["x"], 3, 1)
        data = json.loads(json.dumps(drill.tree_as_data(found, depth=1)))
        assert (data["root"]["children"][0]["others"], data["root"]["children"][0]["left"]) == (
            11,
            2,
        )


def test_what_has_no_paths(tmp_path: Path) -> None:
    trace = trace_of([Event(1)], tmp_path / "t.csv")
    for name in ("io.ops[process]", "app.ops[job]"):
        with pytest.raises(UsageError, match="has no paths"):
            hierarchy(trace, name)


def test_a_path_of_thousands_of_parts() -> None:
    deep = branches([("/".join(["x"] * 5000), 7)])
    assert deep.total == 7
    assert drill.tree_as_data(drill.Tree(parse("io.ops[file]"), 7, 0, deep))["root"]["total"] == 7


names = some.lists(some.sampled_from(["a", "b", "c", "..", ""]), max_size=5).map("/".join)


@given(some.dictionaries(names, some.integers(0, 1000), max_size=20), some.integers(0, 300))
def test_sums_of_a_tree_add_up(sums: dict[str, int], least: int) -> None:
    def check(branch: Branch) -> None:
        assert branch.total == branch.own + branch.others + sum(
            each.total for each in branch.children
        )
        assert all(each.total >= least for each in branch.children)
        for each in branch.children:
            check(each)

    found = branches(sums.items(), least)
    assert found.total == sum(sums.values())
    check(found)
