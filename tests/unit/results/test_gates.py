# SPDX-License-Identifier: Apache-2.0
"""The gates that look at the numbers themselves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan, Series
from iolab.studies.results.gates.stall import stalls
from support.fio_files import iostat, job, output, reports, write_run

PLAN = RunPlan(
    run="0001-aaaaaaaa", variant="master", factors={"numjobs": 4}, jobs=4, runtime=10.0, exit_code=0
)


def derived(
    tmp_path: Path,
    text: str,
    plan: RunPlan = PLAN,
    environment: Mapping[str, object] | None = None,
    reference: dict[str, str] | None = None,
    **files: str,
) -> Derived:
    write_run(tmp_path, text, plan=plan, **files)
    if environment is not None:
        (tmp_path / "environment.json").write_text(json.dumps(environment))
    return derive(tmp_path, plan, reference=reference)


def found(result: Derived) -> dict[str, Level]:
    return {reason.code: reason.level for reason in result.verdict.reasons}


@pytest.mark.parametrize(
    ("latency_ns", "cpu", "expected"),
    [
        (1e6, 5.0, {}),  # L = C
        (1.02e6, 5.0, {}),  # within 3 %
        (1.04e6, 5.0, {"littles-law": Level.INVALID}),  # more in flight than jobs
        (1e9, 5.0, {"littles-law": Level.INVALID}),  # ns read as µs
        (0.9e6, 5.0, {"time-outside-io": Level.SUSPECT}),  # slow I/O, idle CPU: who waits?
        (0.9e6, 95.0, {"time-outside-io": Level.OK, "cpu-bound": Level.SUSPECT}),
    ],
)
def test_littles_law(
    tmp_path: Path, latency_ns: float, cpu: float, expected: dict[str, Level]
) -> None:
    assert found(derived(tmp_path, output(job(latency_ns=latency_ns, cpu=cpu)))) == expected


def syncing(entry: dict[str, Any], ios: int, latency_ns: float) -> dict[str, Any]:
    sync = {
        "total_ios": ios,
        "lat_ns": {"min": 1, "max": 1e9, "mean": latency_ns, "stddev": 0, "N": ios},
    }
    return {**entry, "sync": sync}


@pytest.mark.parametrize("status", ["finished", "imported"])
@pytest.mark.parametrize(
    ("sync_ns", "latency_ns", "expected"),
    [
        (15e6, 16e6, {"syncs-in-flight": Level.OK}),
        (0.4e6, 16e6, {}),  # within 3 %
        (15e6, 20e6, {"littles-law": Level.INVALID}),  # the writes alone are too many
        (0.0, 16.6e6, {"littles-law": Level.INVALID}),
    ],
)
def test_syncs_are_not_part_of_the_depth(
    tmp_path: Path, sync_ns: float, latency_ns: float, expected: dict[str, Level], status: str
) -> None:
    entry = {**syncing(job(jobs=1, iops=1000, latency_ns=latency_ns), 10_000, sync_ns)}
    entry |= {"job_runtime": 10_000, "iodepth_level": {"16": 190.0}}
    plan = dataclasses.replace(PLAN, status=status, jobs=1, factors={})
    result = derived(tmp_path, output(entry, ioengine="libaio", iodepth="16"), plan)
    assert found(result) == expected


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, Level.SUSPECT),
        ({"iodepth_low": "4"}, Level.OK),
        ({"iodepth_batch": "8"}, Level.OK),
        ({"iodepth_batch_complete_min": "0"}, Level.OK),
        ({"latency_target": "20000"}, Level.OK),
        ({"iodepth_low": "0"}, Level.SUSPECT),
    ],
)
@pytest.mark.parametrize("of_second_job", [False, True])
def test_options_that_leave_the_depth_unfilled(
    tmp_path: Path, options: dict[str, str], level: Level, of_second_job: bool
) -> None:
    jobs = [{**job(jobs=8, name=name), "job options": {}} for name in ("a", "b")]
    jobs[of_second_job]["job options"] = options
    plan = dataclasses.replace(PLAN, jobs=2, factors={})
    result = derived(tmp_path, output(*jobs, ioengine="libaio", iodepth="16"), plan)
    assert found(result)["time-outside-io"] is level


def test_time_outside_io_is_unknown_of_short_runs_and_foreign_hosts(tmp_path: Path) -> None:
    short = dataclasses.replace(PLAN, runtime=None)
    text = output(job(latency_ns=0.9e6, runtime=0.5), numjobs="4")
    assert found(derived(tmp_path / "short", text, short)) == {"time-outside-io": Level.OK}
    entry = {**job(jobs=1, iops=1000, latency_ns=0.9e6), "job_runtime": 10_000}
    text = output(entry, runtime="10", iodepth="1")
    assert found(derived(tmp_path / "foreign", text, FOREIGN)) == {"time-outside-io": Level.OK}


@pytest.mark.parametrize(
    ("pattern", "disks", "is_cached"),
    [
        ("randread", [0], True),
        ("randread", [1500, 1500], True),
        ("randread", [4500], False),
        ("randread", [39_000], False),
        ("read", [70], True),
        ("read", [100], False),  # 3 MiB each
        ("randread", [], False),
        ("randread", None, False),
        ("randread", ["many"], False),
        ("randread", 3, False),
    ],
)
def test_disks_without_the_reads_of_the_load(
    tmp_path: Path, pattern: str, disks: Any, is_cached: bool
) -> None:
    document = json.loads(output(job(jobs=1), rw=pattern))
    entry = document["jobs"][0]
    entry["read"], entry["write"] = entry["write"], entry["read"]
    if disks is not None:
        document["disk_util"] = (
            [{"name": f"sd{count}", "read_ios": count} for count in disks]
            if isinstance(disks, list)
            else disks
        )
    plan = dataclasses.replace(PLAN, jobs=1, factors={})
    result = derived(tmp_path, json.dumps(document), plan)
    assert found(result) == ({"cached-reads": Level.OK} if is_cached else {})


def test_time_outside_fast_io_is_only_a_note(tmp_path: Path) -> None:
    result = derived(tmp_path, output(job(iops=80_000, latency_ns=30_000)))
    assert (result.verdict.level, found(result)) == (Level.OK, {"time-outside-io": Level.OK})
    assert "time outside I/O: 40.0 %" in result.verdict.notes[0].text


def test_depth_counts_for_asynchronous_engines_only(tmp_path: Path) -> None:
    deep = output(job(jobs=64), ioengine="libaio", iodepth="16", numjobs="4")
    assert found(derived(tmp_path / "a", deep)) == {}
    capped = output(job(), ioengine="psync", iodepth="16", numjobs="4")
    assert found(derived(tmp_path / "b", capped)) == {}


def test_an_open_loop_is_held_to_its_rate_not_to_littles_law(tmp_path: Path) -> None:
    reached = derived(tmp_path / "a", output(job(latency_ns=1e5), rate_iops="1000", numjobs="4"))
    assert found(reached) == {}
    missed = derived(tmp_path / "b", output(job(latency_ns=1e5), rate_iops="2000", numjobs="4"))
    assert found(missed) == {"saturated": Level.OK}
    assert missed.verdict.notes[0].data == {"achieved_iops": 4000.0, "offered_iops": 8000.0}


def test_numjobs_of_the_path_serves_the_offered_rate_where_the_echo_lacks_it(
    tmp_path: Path,
) -> None:
    missed = derived(tmp_path, output(job(latency_ns=1e5), rate_iops="2000"))
    assert missed.verdict.notes[0].data["offered_iops"] == 8000.0


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([800.0] * 10, None),
        ([800.0, 0, 0] * 3 + [800.0], None),
        ([800.0] * 4 + [0.0] * 3 + [800.0] * 3, 3),
        ([0.0] * 3 + [800.0] * 2 + [0.0] * 4 + [800.0], 7),
    ],
)
def test_stalls(tmp_path: Path, rows: list[float], seconds: int | None) -> None:
    result = derived(tmp_path, output(job()), iostat__sdb_txt=iostat([(kb, 50.0) for kb in rows]))
    stall = next((reason for reason in result.verdict.reasons if reason.code == "stall"), None)
    assert (None if stall is None else (stall.level, stall.data["seconds"])) == (
        None if seconds is None else (Level.SUSPECT, seconds)
    )
    observed = {observation.metric: observation.value for observation in result.observations}
    assert observed["stall.seconds"] == (seconds or 0)


@pytest.mark.parametrize("step", [0.5, 1.0, 5.0, 10.0])
@pytest.mark.parametrize("jitter", [0.0, 0.001])
def test_a_stall_has_the_same_length_however_often_was_read(
    tmp_path: Path, step: float, jitter: float
) -> None:
    start, sectors, lines = 1_790_000_000 * 10**9, 0, ["# iolab diskstats 1"]
    for reading in range(round(120 / step) + 1):
        at = reading * step
        sectors += 0 if 40 < at <= 70 else int(1000 * step)
        moment = at + (jitter if reading % 2 else 0)
        lines += [
            f"@ {start + round(moment * 1e9)} {round((1000 + moment) * 1e9)}",
            f" 8 0 sda 0 0 0 0 {sectors} 0 {sectors * 8} 0 0 {sectors} 0",
        ]
    (tmp_path / "diskstats.log").write_text("\n".join(lines) + "\n")
    plan = dataclasses.replace(PLAN, runtime=120.0, window=(start, start + 120 * 10**9))
    result = derive(tmp_path, plan)
    assert next(
        each.value for each in result.observations if each.metric == "stall.seconds"
    ) == pytest.approx(30, abs=0.01)
    [reason] = [reason for reason in result.verdict.reasons if reason.code == "stall"]
    assert reason.text == "the target's devices moved nothing for 30 s from second 40 on"
    assert (reason.data["start_seconds"], reason.data["longest_seconds"]) == (
        pytest.approx(40, abs=0.01),
        pytest.approx(30, abs=0.01),
    )


@pytest.mark.parametrize(
    ("step", "idle", "seconds"),
    [(0.5, 5, 0), (0.5, 6, 3), (1.0, 2, 0), (1.001, 3, 3), (0.999, 3, 3), (5.0, 1, 5)],
)
def test_a_stall_lasts_three_seconds_or_more(step: float, idle: int, seconds: float) -> None:
    values = np.array([1.0] * 4 + [0.0] * idle + [1.0] * 4)
    found = stalls(Series("device.bw", "B/s", step * np.arange(1.0, len(values) + 1), values))
    assert len(found) == bool(seconds)
    for start, length in found:
        assert start == pytest.approx(4 * step)
        assert length == pytest.approx(seconds, abs=0.01)


def test_a_stall_at_the_begin_is_told_as_long_as_it_was_in_the_window(tmp_path: Path) -> None:
    """Readings half a second after whole seconds: of the first, half lies before the window."""
    start, sectors, lines = 1_790_000_000 * 10**9, 0, ["# iolab diskstats 1"]
    for reading in range(31):
        at, sectors = reading - 0.5, sectors + (0 if reading < 4 else 1000)
        lines += [
            f"@ {start + round(at * 1e9)} {round((1000 + at) * 1e9)}",
            f" 8 0 sda 0 0 0 0 {sectors} 0 {sectors * 8} 0 0 {sectors} 0",
        ]
    (tmp_path / "diskstats.log").write_text("\n".join(lines) + "\n")
    result = derive(
        tmp_path, dataclasses.replace(PLAN, runtime=30.0, window=(start, start + 30 * 10**9))
    )
    [reason] = [reason for reason in result.verdict.reasons if reason.code == "stall"]
    assert (reason.text, reason.data["seconds"]) == (
        "the target's devices moved nothing for 2.5 s from second 0 on",
        2.5,
    )


def test_a_stall_is_one_only_when_every_device_stops(tmp_path: Path) -> None:
    stopped = iostat([(800.0, 50.0)] * 3 + [(0.0, 0.0)] * 7)
    other = iostat([(800.0, 50.0)] * 10, "sdc")
    assert (
        found(derived(tmp_path, output(job()), iostat__sdb_txt=stopped, iostat__sdc_txt=other))
        == {}
    )


def test_devices_that_never_moved_did_not_stall(tmp_path: Path) -> None:
    result = derived(tmp_path, output(job()), iostat__sdb_txt=iostat([(0.0, 0.0)] * 10))
    assert found(result) == {"devices-idle": Level.OK}


def test_busy_is_the_mean_over_all_devices(tmp_path: Path) -> None:
    result = derived(
        tmp_path,
        output(job()),
        iostat__sdb_txt=iostat([(800.0, 80.0)] * 10),
        iostat__sdc_txt=iostat([(800.0, 20.0)] * 10, "sdc"),
    )
    observed = {observation.metric: observation for observation in result.observations}
    assert observed["device.util"].value == pytest.approx(0.5)
    assert observed["device.write.bw"].value == pytest.approx(1600 * 1024)


def test_a_dead_monitor(tmp_path: Path) -> None:
    result = derived(tmp_path, output(job()), iostat_txt=reports(5, "sdb", seconds=1))
    assert found(result) == {"monitor-dead": Level.INVALID}
    assert "4 of 10 samples" in result.verdict.reasons[0].text


@pytest.mark.parametrize(
    ("rows", "interval", "words"),
    [
        (10, 1, "1 s between reports"),
        (2, 6, "6 s between reports"),
        (9, 1, "1 s between reports"),
        (4, 3, "3 s between reports"),
        (40, 1, "is unknown"),
        (7, 1, "is unknown"),
    ],
)
def test_a_monitor_without_time_stamps_is_not_judged_by_their_number(
    tmp_path: Path, rows: int, interval: int, words: str
) -> None:
    result = derived(tmp_path, output(job()), iostat__sdb_txt=iostat([(800.0, 50.0)] * rows))
    assert found(result) == {}
    assert any(words in text for text in result.assumptions)
    series = next(one for one in result.series if one.name == "device.bw")
    assert series.time.tolist() == [interval * (1 + place) for place in range(rows)]


def test_a_monitor_with_time_stamps_is_held_to_its_own_interval(tmp_path: Path) -> None:
    assert found(derived(tmp_path, output(job()), iostat_txt=reports(3, "sdb", seconds=5))) == {}


def test_a_monitor_that_left_nothing(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, extra={"sources": ["diskstats"]})
    assert found(derived(tmp_path, output(job()), plan)) == {"monitor-missing": Level.INVALID}


REPORTS = reports(11, "sda", "sdb", seconds=1)
ILLUMOS = "extended device statistics\ndevice r/s w/s kr/s kw/s wait actv svc_t %w %b\n"
_SAMPLE = {"disk_device": "sda", "w/s": 100.0, "wkB/s": 800.0, "util": 40.0}
_JSON = ", ".join(json.dumps({"disk": [_SAMPLE]}) for _ in range(11))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("iostat__sdb_txt", iostat([(800.0, 50.0)] * 10).replace("800.00", "8oo.00", 1)),
        ("iostat_txt", REPORTS[:-30]),
        ("iostat_txt", REPORTS + "Device            r/s     w/s   rk"),
        ("iostat_txt", REPORTS[:200] + REPORTS[290:]),
        ("iostat_json", f'{{"sysstat": {{"hosts": [{{"statistics": [{_JSON}, {{"disk": [{{"d'),
        (
            "iostat_out",
            (ILLUMOS + "sda 0.0 99.0 0.0 800.0 0.0 0.5 1.0 0 40\n") * 9 + ILLUMOS + "sd",
        ),
    ],
)
def test_damage_of_a_monitors_file_is_a_note(tmp_path: Path, name: str, text: str) -> None:
    """Its whole readings count, of a run made here as of an imported one."""
    for status in ("finished", "imported"):
        plan = dataclasses.replace(PLAN, status=status)
        files: dict[str, Any] = {name: text}
        result = derived(tmp_path, output(job()), plan, **files)
        assert found(result)["damaged-file"] is Level.OK
        assert result.verdict.level is Level.OK
        values = {each.metric: each.value for each in result.observations}
        assert values["device.util"] == pytest.approx(0.5 if "sdb" in name else 0.4, rel=0.05)


@pytest.mark.parametrize("kind", ["diskstats", "cpu", "memory", "vmstat", "zpool-iostat"])
@pytest.mark.parametrize("text", ["# iolab {} 1\n@ 1", "# iolab {} 1\n", "# iolab {} 99\n@ 1 2\n"])
def test_a_monitors_file_that_cannot_be_read_is_a_note(
    tmp_path: Path, kind: str, text: str
) -> None:
    write_run(tmp_path, output(job()), plan=PLAN)
    (tmp_path / f"{kind}.log").write_text(text.format(kind))
    result = derive(tmp_path, PLAN)
    assert found(result).get("damaged-file", Level.OK) is Level.OK
    assert result.verdict.level is Level.OK


def test_damage_of_the_loads_own_result_costs_the_run(tmp_path: Path) -> None:
    result = derived(tmp_path, output(job())[:-100], iostat_txt=REPORTS[:-30])
    assert result.verdict.level is Level.INVALID
    result = derived(tmp_path / "none", None, iostat_txt=REPORTS[:-30])  # type: ignore[arg-type]
    assert "no-result" in found(result)


@pytest.mark.parametrize(
    ("runtime", "level"),
    [(9.9, Level.OK), (9.7, Level.INVALID), (11.4, Level.OK), (12.0, Level.SUSPECT)],
)
def test_runtime(tmp_path: Path, runtime: float, level: Level) -> None:
    assert derived(tmp_path, output(job(runtime=runtime))).verdict.level is level


def test_a_size_that_is_done_may_end_a_run(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, runtime=180.0)
    result = derived(tmp_path, output(job(), size="2m", numjobs="4"), plan)
    assert found(result) == {"ended-by-size": Level.OK}


FOREIGN = RunPlan(run="0001-aaaaaaaa", variant="master", factors={}, status="imported")


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"size": "75m"}, Level.OK),  # 9.7 s of 4000 x 8 KiB: 303 MiB by four jobs
        ({"size": "8m"}, Level.SUSPECT),  # time_based, which fio doesn't echo, and stopped
        ({"size": "8m", "loops": "10"}, Level.OK),
        ({"size": "39m", "verify": "crc32c"}, Level.OK),
        ({"size": "76m", "time_based": "1"}, Level.INVALID),
        ({"size": "1g"}, Level.INVALID),
    ],
)
def test_an_imported_run_that_ended_early(
    tmp_path: Path, options: dict[str, Any], level: Level
) -> None:
    result = derived(
        tmp_path, output(job(runtime=9.7), numjobs="4", runtime="10", **options), FOREIGN
    )
    reasons = {reason.code: reason.level for reason in result.verdict.reasons}
    assert reasons == ({"ended-by-size": Level.OK} if level is Level.OK else {"runtime": level})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # 7,000 bytes more than whole blocks
        ({"size": "317856600", "bs": "8k"}, {"ended-by-size": Level.OK}),
        ({"size": "50%"}, {"runtime": Level.OK}),  # of files of unknown size
        ({"size": "50%", "filesize": "600m"}, {"ended-by-size": Level.OK}),
        ({"size": "50%", "filesize": "800m"}, {"runtime": Level.INVALID}),
        ({"io_size": "50%", "size": "600m"}, {"ended-by-size": Level.OK}),
        ({"io_size": "50%", "size": "800m"}, {"runtime": Level.INVALID}),
        ({"size": "600m", "filesize": "600m", "offset": "50%"}, {"ended-by-size": Level.OK}),
        ({"size": "600m", "offset": "300m"}, {"runtime": Level.OK}),  # of a file of unknown size
        ({"size": "600m", "filesize": "100m-600m"}, {"runtime": Level.OK}),
        ({"number_ios": "38800"}, {"ended-by-size": Level.OK}),
        ({"number_ios": "39700"}, {"runtime": Level.INVALID}),
        ({"number_ios": "9700"}, {"runtime": Level.INVALID}),
        ({"number_ios": "9700", "loops": "4"}, {"ended-by-size": Level.OK}),
        ({"latency_target": "20000"}, {"ended-early": Level.OK}),
        ({"latency_target": "20000", "latency_run": "1"}, {"runtime": Level.INVALID}),
        ({"size": "50%", "time_based": "1"}, {"runtime": Level.INVALID}),
        ({"size": "400m"}, {"runtime": Level.INVALID}),
    ],
)
@pytest.mark.parametrize("jobs", [None, 10])
def test_an_imported_run_whose_size_was_done_is_not_invalid(
    tmp_path: Path, options: dict[str, Any], expected: dict[str, Level], jobs: int | None
) -> None:
    """Whatever the layout calls jobs."""
    moved = {**job(runtime=9.7, jobs=1), "job_runtime": 9700}
    plan = dataclasses.replace(FOREIGN, jobs=jobs)
    result = derived(tmp_path, output(moved, runtime="10", **options), plan)
    reasons = {reason.code: reason.level for reason in result.verdict.reasons}
    reasons.pop("job-count", None)
    assert reasons == expected


def test_sections_of_one_entry_have_sizes_of_their_own(tmp_path: Path) -> None:
    """The entry of a group echoes the size of one."""
    entry = {**job(runtime=9.7, jobs=2), "job_runtime": 19_400}
    result = derived(tmp_path, output(entry, runtime="10", size="200m"), FOREIGN)
    assert {reason.code: reason.level for reason in result.verdict.reasons} == {"runtime": Level.OK}
    apart = [
        {**job(runtime=9.7, jobs=1, iops=1000, name=name), "job options": {"size": size}}
        for name, size in (("one", "75m"), ("two", "75m"), ("three", "70m"))
    ]
    result = derived(tmp_path / "apart", output(*apart, runtime="10"), FOREIGN)
    assert {reason.code: reason.level for reason in result.verdict.reasons} == {
        "ended-by-size": Level.OK
    }


@pytest.mark.parametrize(
    ("size", "level"), [("75m", Level.OK), ("74m", Level.OK), ("90m", Level.INVALID)]
)
def test_one_job_that_is_done_may_end_the_others(tmp_path: Path, size: str, level: Level) -> None:
    """exitall, which fio does not echo; without a job that is done the run was ended."""
    jobs = [
        {**job(runtime=9.7, jobs=1, iops=iops, name=name), "job options": {"size": size}}
        for name, iops in (("one", 1000), ("two", 500))
    ]
    result = derived(tmp_path, output(*jobs, runtime="10"), FOREIGN)
    assert {reason.code: reason.level for reason in result.verdict.reasons} == {"runtime": level}


@pytest.mark.parametrize("steady", [{"attained": 1}, {"attained": 0}, None, 3, {"attained": "1"}])
def test_a_steady_state_may_end_a_run(tmp_path: Path, steady: object) -> None:
    entry = {**job(runtime=5.0), "steadystate": steady}
    result = derived(tmp_path, output(entry, steadystate="iops:5%"))
    assert found(result) == (
        {"steady-state": Level.OK} if steady == {"attained": 1} else {"runtime": Level.INVALID}
    )


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, Level.SUSPECT),
        ({"rate": "0"}, Level.SUSPECT),
        ({"rate": "2m"}, Level.OK),
        ({"thinktime": "1000"}, Level.OK),
    ],
)
def test_a_load_that_was_asked_to_wait_is_not_suspect(
    tmp_path: Path, options: dict[str, Any], level: Level
) -> None:
    result = derived(tmp_path, output(job(latency_ns=0.2e6), **options))
    assert found(result) == {"time-outside-io": level}
    assert all(
        f"{name}={value}" in result.verdict.reasons[0].text
        for name, value in options.items()
        if level is Level.OK
    )


@pytest.mark.parametrize(("threads", "expected"), [(1, {"job-count": Level.SUSPECT}), (4, {})])
def test_runtimes_that_fio_adds_up_prove_the_jobs_of_an_imported_run(
    tmp_path: Path, threads: int, expected: dict[str, Level]
) -> None:
    entry = {**job(jobs=threads, iops=100.0 * threads), "job_runtime": threads * 10_000}
    result = derived(
        tmp_path,
        output(entry, rate_iops="100"),
        dataclasses.replace(FOREIGN, factors={"threads": 4}, jobs=4),
    )
    assert found(result) == expected
    assert [each.value for each in result.observations if each.metric == "offered.iops"] == [
        100.0 * threads
    ]


def test_a_cpu_bound_host(tmp_path: Path) -> None:
    environment = {"fingerprint": {}, "facts": {"cpus": 2, "memory_bytes": 2**30}}
    assert found(derived(tmp_path, output(job(cpu=48.0)), environment=environment)) == {
        "cpu-bound": Level.SUSPECT
    }


def test_environment_drift(tmp_path: Path) -> None:
    environment = {"fingerprint": {"kernel": "6.1.0-18", "fio": "fio-3.33"}, "facts": {}}
    result = derived(
        tmp_path,
        output(job()),
        environment=environment,
        reference={"kernel": "6.1.0-17", "fio": "fio-3.33"},
    )
    assert found(result) == {"environment-drift": Level.SUSPECT}
    assert "kernel was '6.1.0-17'" in result.verdict.reasons[0].text


def test_compression_that_is_none(tmp_path: Path) -> None:
    echo = output(job(), buffer_compress_percentage="0")
    assert found(derived(tmp_path / "a", echo)) == {"compression": Level.OK}
    known = dataclasses.replace(PLAN, extra={"options": {"buffer_compress_percentage": 0}})
    assert found(derived(tmp_path / "b", output(job()), known)) == {"compression": Level.SUSPECT}
    refilled = dataclasses.replace(
        PLAN, extra={"options": {"buffer_compress_percentage": 0, "refill_buffers": 1}}
    )
    assert found(derived(tmp_path / "c", output(job()), refilled)) == {}


def test_reads_that_fit_in_memory(tmp_path: Path) -> None:
    entry = job()
    entry["read"], entry["write"] = entry["write"], entry["read"]
    environment = {"fingerprint": {}, "facts": {"memory_bytes": 2**34}}
    result = derived(tmp_path, output(entry, size="64m", numjobs="4"), environment=environment)
    assert found(result) == {"fits-in-memory": Level.OK}
    shared = derived(
        tmp_path / "shared",
        output(entry, size="6g", numjobs="4", filename="data"),
        environment=environment,
    )
    assert (
        next(reason for reason in shared.verdict.reasons if reason.code == "fits-in-memory").data[
            "working_set_bytes"
        ]
        == 6 * 2**30
    )
    for increment, level in (("0", Level.OK), ("6g", None), ("20%", None)):
        apart = output(entry, size="6g", numjobs="4", filename="data", offset_increment=increment)
        expected = {} if level is None else {"fits-in-memory": level}
        assert (
            found(derived(tmp_path / f"apart-{increment}", apart, environment=environment))
            == expected
        )
    assert (
        found(
            derived(
                tmp_path / "each", output(entry, size="6g", numjobs="4"), environment=environment
            )
        )
        == {}
    )


def test_a_drifting_load(tmp_path: Path) -> None:
    log = "".join(
        f"{1000 * (second + 1)}, {32000 - 2500 * second}, 1, 8192, 0\n" for second in range(10)
    )
    assert found(derived(tmp_path / "a", output(job()), fio_bw_log="")) == {}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "fio_bw.log").write_text(log)
    assert found(derived(tmp_path / "b", output(job()))) == {"not-steady": Level.SUSPECT}


def test_observations_name_their_source(tmp_path: Path) -> None:
    result = derived(tmp_path, output(job(), numjobs="4"))
    observed = {observation.metric: observation for observation in result.observations}
    latency = observed["write.lat.mean"]
    assert latency.value == pytest.approx(1e-3)
    assert latency.unit == "s"
    assert (latency.source_file, latency.source_field, latency.source_unit) == (
        "fio.json",
        "jobs[0].write.lat_ns.mean",
        "ns",
    )
    assert latency.source_value == pytest.approx(1e6)
    assert observed["littles_law"].value == pytest.approx(1.0)


def test_normal_output_of_preparing_files_is_no_result_of_a_run_made_here(tmp_path: Path) -> None:
    text = "j: (g=0): rw=write, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1\nfio-3.33\nStarting 1 process\n"
    result = derived(tmp_path, output(job()), PLAN, prepare_txt=text, layout_txt=text)
    assert result.verdict.level is Level.OK
    assert not any("prepare.txt" in reason.text for reason in result.verdict.reasons)
