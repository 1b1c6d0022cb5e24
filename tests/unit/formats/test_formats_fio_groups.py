# SPDX-License-Identifier: Apache-2.0
"""Which jobs of a fio result ran together, and which one after another."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iolab.formats.fio.groups import FioGroup, groups_of
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.terse import FioTerse
from support.fio_files import job, output


def entry(
    name: str,
    group: int,
    *,
    elapsed: int = 0,
    start: float | None = None,
    host: str = "",
    runtime: float = 10.0,
    **options: str,
) -> dict[str, Any]:
    made = {
        **job(name=name, group=group, runtime=runtime),
        "job options": options,
        "elapsed": elapsed,
    }
    if start is not None:
        made["job_start"] = round(1e12 + start * 1000)
    return {**made, "hostname": host} if host else made


def groups(*entries: dict[str, Any], **options: Any) -> tuple[FioGroup, ...]:
    return groups_of(FioJson().read(output(*entries, **options).encode(), "fio.json"))


def named(found: tuple[FioGroup, ...]) -> list[tuple[str, int]]:
    return [(group.name, len(group.jobs)) for group in found]


def test_jobs_of_one_group_ran_together() -> None:
    found = groups(*[entry("job", 0) for _ in range(4)], bs="4k")
    assert named(found) == [("job", 4)]
    assert found[0].options == {"bs": "4k"}
    assert found[0].assumptions == ()
    assert named(groups(entry("reader", 0), entry("writer", 0))) == [("reader+writer", 2)]
    assert named(groups(*[entry(f"job{number}", 0) for number in range(9)])) == [("job0+8 more", 9)]


def test_an_empty_result_has_no_group() -> None:
    assert groups() == ()


def test_groups_ran_one_after_another_and_the_file_says_so() -> None:
    assert groups(entry("a", 0), entry("b", 1, stonewall="1"))[0].assumptions == ()
    by_time = groups(
        entry("a", 0, elapsed=31),
        entry("b", 1, elapsed=31),
        entry("b", 1, elapsed=31),
        entry("c", 2, elapsed=31),
    )
    assert named(by_time) == [("a", 1), ("b", 2), ("c", 1)]
    assert [group.index for group in by_time] == [0, 1, 2]
    assert by_time[0].assumptions == ()


def test_groups_without_any_word_on_the_order_are_apart_by_assumption() -> None:
    entries = [entry("a", 0), entry("b", 1)]
    for each in entries:
        del each["elapsed"]
    found = groups(*entries)
    assert named(found) == [("a", 1), ("b", 1)]
    assert "one after another" in found[0].assumptions[0]


def test_groups_that_fio_had_no_time_for_one_after_another_ran_together() -> None:
    found = groups(entry("readers", 0, elapsed=11), entry("writers", 1, elapsed=11))
    assert named(found) == [("readers+writers", 2)]
    assert "fio ran for 11 s" in found[0].assumptions[0]
    assert "need 20 s" in found[0].assumptions[0]


def test_runs_too_short_to_tell_by_elapsed_are_apart_by_assumption() -> None:
    found = groups(entry("a", 0, elapsed=3, runtime=1.0), entry("b", 1, elapsed=3, runtime=1.0))
    assert named(found) == [("a", 1), ("b", 1)]
    assert found[0].assumptions


def test_start_times_decide() -> None:
    together = groups(entry("readers", 0, start=0), entry("writers", 1, start=0.02))
    assert named(together) == [("readers+writers", 2)]
    apart = groups(
        entry("a", 0, start=0),
        entry("b", 1, start=10.01),
        entry("c", 1, start=10.02, ramp_time="2"),
    )
    assert named(apart) == [("a", 1), ("b+c", 2)]
    assert [group.assumptions for group in apart] == [(), ()]
    second = 10**18 + 10**10
    assert apart[0].window == (10**18, second)
    assert apart[1].window == (second + 10**7, second + 2 * 10**7 + 12 * 10**9)


def test_a_job_that_waits_for_another_of_its_group_is_apart() -> None:
    assert named(groups(entry("a", 0), entry("b", 0, wait_for="a"), entry("c", 0))) == [
        ("a+c", 2),
        ("b", 1),
    ]
    assert named(groups(entry("a", 0), entry("b", 0, startdelay="10"))) == [("a", 1), ("b", 1)]
    assert named(groups(entry("a", 0), entry("b", 0, startdelay="5"))) == [("a+b", 2)]


def test_a_delay_counts_from_fio_s_own_start() -> None:
    """Of three sections with startdelay=3 in [global] only the first is late."""
    found = groups(
        *[entry(name, number, elapsed=34, startdelay="3") for number, name in enumerate("abc")]
    )
    assert named(found) == [("a", 1), ("b", 1), ("c", 1)]
    assert found[0].assumptions == ()


def test_a_job_without_io_stays_in_its_group() -> None:
    dead = entry("b", 0, runtime=0.0)
    assert named(groups(entry("a", 0), dead, entry("c", 1, stonewall="1"))) == [
        ("a+b", 2),
        ("c", 1),
    ]
    at_once = groups(
        entry("b", 0, start=0, runtime=0.0),
        entry("a", 0, start=0.02, runtime=0.01),
        entry("a", 0, start=0.04, runtime=0.01),
    )
    assert named(at_once) == [("b+a", 3)]
    assert named(groups(entry("a", 0, runtime=0.0), entry("c", 1, stonewall="1"))) == [
        ("a", 1),
        ("c", 1),
    ]


def test_clients_have_equal_numbers_for_the_same_group() -> None:
    found = groups(
        entry("a", 0, host="x"),
        entry("b", 1, host="x", stonewall="1"),
        entry("a", 0, host="y"),
        entry("b", 1, host="y", stonewall="1"),
    )
    assert [(group.name, [job.hostname for job in group.jobs]) for group in found] == [
        ("a", ["x", "y"]),
        ("b", ["x", "y"]),
    ]


def test_equal_names_are_numbered() -> None:
    found = groups(entry("a", 0), entry("a", 1, stonewall="1"), entry("a-1", 2, stonewall="1"))
    assert [group.name for group in found] == ["a-2", "a-3", "a-1"]


def test_terse_lines_have_groups() -> None:
    data = (Path(__file__).parents[2] / "data" / "formats").glob("**/*terse*")
    texts = [path.read_bytes() for path in data if path.is_file()]
    assert texts
    for text in texts:
        assert groups_of(FioTerse().read(text, "terse"))


def test_a_file_of_an_old_fio_by_its_numbers() -> None:
    old = {
        "fio version": "fio-2.1.4",
        "jobs": [
            {
                "jobname": name,
                "groupid": number,
                "error": 0,
                "usr_cpu": 1.0,
                "sys_cpu": 1.0,
                "read": {"io_bytes": 1000, "bw": 100, "iops": 100, "runtime": 10000},
            }
            for number, name in enumerate(("one", "two"))
        ],
    }
    found = groups_of(FioJson().read(json.dumps(old).encode(), "old.json"))
    assert named(found) == [("one", 1), ("two", 1)]
    assert found[0].assumptions


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("stonewall", [("a", 2), ("b", 1)]),
        ("new_group", [("a+b", 3)]),
        ("wait_for=a", [("a", 2), ("b", 1)]),
        ("startdelay=2", [("a", 2), ("b", 1)]),
        ("stonewall\nstartdelay=1", [("a", 2), ("b", 1)]),
    ],
)
def test_against_fio_itself(tmp_path: Path, second: str, expected: list[tuple[str, int]]) -> None:
    (tmp_path / "jobs.fio").write_text(
        "[global]\nioengine=null\nrw=read\nsize=1g\nruntime=2\ntime_based\n"
        f"[a]\nnumjobs=2\n[b]\n{second}\n"
    )
    done = subprocess.run(
        ["fio", "--output-format=json", "jobs.fio"], cwd=tmp_path, capture_output=True, check=True
    )
    assert named(groups_of(FioJson().read(done.stdout, "fio.json"))) == expected
