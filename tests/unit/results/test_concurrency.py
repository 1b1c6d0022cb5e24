# SPDX-License-Identifier: Apache-2.0
"""Little's law over results of others: valid data is never INVALID whatever is missing, a wrong
unit is where the result proves it."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from iolab.studies.results.facts.concurrency import ENTRY_MAY_BE_SEVERAL
from support.fio_files import idle, job, latency, output, write_run

PLAN = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")


@dataclass(frozen=True)
class Thread:
    """One of fio's threads as it truly ran: `depth` asked, `used` in flight on average, `seconds`
    of I/O."""

    name: str
    engine: str
    depth: int
    used: float
    seconds: float
    latency: float
    numjobs: int

    @property
    def held(self) -> int:
        return 1 if self.engine in ("psync", "mmap") else self.depth


@st.composite
def loads(draw: st.DrawFn) -> list[Thread]:
    """One or two sections that run together, each with its own engine, depth, length and speed."""
    threads = []
    for name in ("one", "two")[: draw(st.integers(1, 2))]:
        engine, depth = (
            draw(st.sampled_from(["psync", "mmap", "libaio", "io_uring"])),
            draw(st.sampled_from([1, 2, 3, 16, 32, 100, 256])),
        )
        numjobs = draw(st.integers(1, 4))
        for _ in range(numjobs):
            held = 1 if engine in ("psync", "mmap") else depth
            threads.append(
                Thread(
                    name,
                    engine,
                    depth,
                    held * draw(st.floats(0.3, 1.0)),
                    draw(st.sampled_from([60.0, 60.0, 10.0, 1.0])),
                    draw(st.sampled_from([1e-5, 2e-4, 1e-2])),
                    numjobs,
                )
            )
    return threads


def entry(threads: Sequence[Thread], *, scale: float = 1.0, **hidden: bool) -> dict[str, Any]:
    """fio's entry of threads: rates over the longest runtime, the name of the first, the options of
    the last."""
    longest = max(thread.seconds for thread in threads)
    counts = [thread.used * thread.seconds / thread.latency for thread in threads]
    waited = sum(count * thread.latency for count, thread in zip(counts, threads, strict=True))
    mean = waited / sum(counts) * 1e9 * scale
    read = {
        **idle(),
        "io_bytes": round(sum(counts)) * 4096,
        "io_kbytes": round(sum(counts)) * 4,
        "iops": sum(counts) / longest,
        "bw_bytes": 4096 * sum(counts) / longest,
        "bw": 4 * sum(counts) / longest,
        "runtime": round(longest * 1000),
        "total_ios": round(sum(counts)),
        "lat_ns": latency(mean),
    }
    last = threads[-1]
    made = {**job(name=threads[0].name), "write": idle(), "read": read}
    if not hidden.get("options"):
        made["job options"] = {"ioengine": last.engine, "iodepth": str(last.depth)}
        if not hidden.get("numjobs"):
            made["job options"]["numjobs"] = str(last.numjobs)
    if not hidden.get("job_runtime"):
        made["job_runtime"] = round(sum(thread.seconds for thread in threads) * 1000)
    if not hidden.get("latency_depth"):
        made["latency_depth"] = last.depth
    if not hidden.get("iodepth_level"):
        deepest = max(thread.held for thread in threads)
        level = max(each for each in (1, 2, 4, 8, 16, 32, 64) if each <= deepest)
        made["iodepth_level"] = {
            (">=64" if each == 64 else str(each)): 100.0 * (each == level)
            for each in (1, 2, 4, 8, 16, 32, 64)
        }
    return made


def judged(entries: Sequence[dict[str, Any]], plan: RunPlan = PLAN, clients: int = 0) -> Derived:
    text = output(*entries)
    if clients:
        document = json.loads(text)
        del document["jobs"]
        document["client_stats"] = [
            {**each, "hostname": f"host{number}"} for number in range(clients) for each in entries
        ]
        text = json.dumps(document)
    with tempfile.TemporaryDirectory() as directory:
        write_run(Path(directory), text, plan=plan)
        return derive(Path(directory), plan)


HIDDEN = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in ("options", "numjobs", "job_runtime", "latency_depth", "iodepth_level")
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    threads=loads(),
    hidden=HIDDEN,
    merged=st.booleans(),
    clients=st.sampled_from([0, 0, 2]),
    layout=st.sampled_from([{}, {"iodepth": 1}, {"numjobs": 1}, {"qd": 4, "numjobs": 2}]),
)
def test_valid_data_is_never_invalid(
    threads: list[Thread],
    hidden: dict[str, bool],
    merged: bool,
    clients: int,
    layout: dict[str, int],
) -> None:
    """Whatever of it is missing, and whatever the layout claims."""
    entries = (
        [entry(threads, **hidden)] if merged else [entry([thread], **hidden) for thread in threads]
    )
    plan = dataclasses.replace(PLAN, factors=layout)
    reasons = judged(entries, plan, clients).verdict.reasons
    assert not [reason for reason in reasons if reason.code == "littles-law"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    threads=loads(),
    merged=st.booleans(),
    hidden=st.fixed_dictionaries({"latency_depth": st.booleans(), "numjobs": st.booleans()}),
)
def test_a_wrong_unit_is_invalid_where_the_result_proves_it(
    threads: list[Thread], merged: bool, hidden: dict[str, bool]
) -> None:
    """A factor of 1000 in the latency, with job runtimes and depths in the file; depths from 64 on
    only where the options are all's."""
    threads = [thread for thread in threads if thread.name == "one"]
    entries = (
        [entry(threads, scale=1000, **hidden)]
        if merged
        else [entry([thread], scale=1000, **hidden) for thread in threads]
    )
    if merged and any(thread.held >= 64 for thread in threads) and len(threads) > 1:
        return
    reasons = judged(entries).verdict.reasons
    assert [reason.level for reason in reasons if reason.code == "littles-law"] == [Level.INVALID]


def found(derived: Derived) -> dict[str, Level]:
    return {reason.code: reason.level for reason in derived.verdict.reasons}


def test_group_reporting_of_two_sections() -> None:
    """One entry, 2 x 16 I/Os in flight, and the echo of one of them."""
    two = [Thread(name, "libaio", 16, 16, 60, 1e-3, 1) for name in ("one", "two")]
    told = judged([entry(two)])
    assert (told.verdict.level, found(told)) == (Level.OK, {})
    old = judged([entry(two, job_runtime=True)])
    assert (old.verdict.level, found(old)) == (Level.OK, {"concurrency-unknown": Level.OK})
    assert "32" in old.verdict.notes[0].text
    assert ENTRY_MAY_BE_SEVERAL in old.verdict.notes[0].text


@pytest.mark.parametrize("last", [1, 128])
def test_group_reporting_of_sections_of_unlike_depths_says_nothing_of_time_outside(
    last: int,
) -> None:
    """129 I/Os in flight, and the echo of one section: it doesn't say 256, and not 2."""
    depths = sorted((1, 128), key=lambda depth: depth == last)
    threads = [
        Thread(f"depth{depth}", "libaio", depth, 0.9995 * depth, 60, 1e-3, 1) for depth in depths
    ]
    derived = judged([entry(threads, numjobs=True)])
    assert "time-outside-io" not in found(derived)
    assert not [each for each in derived.observations if each.metric == "littles_law"]
    if last == 128:
        assert (derived.verdict.level, found(derived)) == (Level.OK, {})


def test_clients_have_jobs_each() -> None:
    """numjobs is echoed for one host; entries there are of all."""
    ten = [
        entry([Thread("one", "libaio", 32, 32, 60, 1e-3, 5)], job_runtime=True) for _ in range(5)
    ]
    derived = judged(ten, clients=2)
    assert (derived.verdict.level, found(derived)) == (Level.OK, {})
    assert next(
        each.value for each in derived.observations if each.metric == "littles_law"
    ) == pytest.approx(1.0)


def test_an_old_fio_says_its_depth_without_options() -> None:
    old = entry([Thread("one", "libaio", 16, 16, 60, 1e-3, 1)], options=True, job_runtime=True)
    assert found(judged([old])) == {}
    assert next(
        each.value for each in judged([old]).observations if each.metric == "littles_law"
    ) == pytest.approx(1.0)
    levels = entry(
        [Thread("one", "libaio", 16, 16, 60, 1e-3, 1)],
        options=True,
        job_runtime=True,
        latency_depth=True,
    )
    assert found(judged([levels])) == {"concurrency-unknown": Level.OK}
    named = judged([levels], dataclasses.replace(PLAN, factors={"iodepth": 16}))
    assert found(named) == {}
    assert next(
        each.value for each in named.observations if each.metric == "littles_law"
    ) == pytest.approx(1.0)


def test_jobs_of_different_length_don_t_share_a_mean() -> None:
    """A slow job of 60 s and a fast one of 1 s: the sum of their rates times the mean of their
    latencies says nothing."""
    threads = [
        Thread("slow", "libaio", 16, 16, 60, 16e-3, 1),
        Thread("fast", "libaio", 16, 16, 1, 1.6e-4, 1),
    ]
    entries = [entry([thread]) for thread in threads]
    for each in entries:
        each["read"]["lat_ns"]["N"] = each["read"]["total_ios"]
    assert found(judged(entries)) == {}


def test_writes_that_are_verified_afterwards_take_their_time_twice() -> None:
    both = entry([Thread("one", "libaio", 16, 16, 60, 1e-3, 1)])
    both["write"] = both["read"]
    both["job options"]["verify"] = "crc32c"
    both["job_runtime"] = 120_000
    assert found(judged([both])) == {}


@pytest.mark.parametrize(
    ("jobs", "clients", "expected"),
    [(5, 0, None), (5, 2, None), (10, 2, None), (7, 0, Level.SUSPECT), (7, 2, Level.SUSPECT)],
)
def test_a_layout_s_number_of_jobs_is_no_plan(
    jobs: int, clients: int, expected: Level | None
) -> None:
    """It may be one host's or all hosts'; where the result has another, it is worth a word, and
    takes nothing out."""
    five = [entry([Thread("one", "libaio", 32, 32, 60, 1e-3, 5)]) for _ in range(5)]
    derived = judged(five, dataclasses.replace(PLAN, jobs=jobs, factors={"numjobs": jobs}), clients)
    assert found(derived).get("job-count") == expected
    assert derived.verdict.level == (expected or Level.OK)
