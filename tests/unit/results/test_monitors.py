# SPDX-License-Identifier: Apache-2.0
"""What the sources saw: cut to the window, summed up as metrics, held to the samples due, and asked
for bottlenecks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from iolab.base import metrics
from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from support.fio_files import iostat, job, output, write_run

BEGIN = 1_700_000_000_000_000_000
SECOND = 10**9
PLAN = RunPlan(
    run="0001-aaaaaaaa",
    variant="master",
    factors={"numjobs": 4},
    jobs=4,
    runtime=10.0,
    exit_code=0,
    window=(BEGIN, BEGIN + 10 * SECOND),
)


def log(kind: str, readings: list[str], first: float = -2.0) -> str:
    """Readings a second apart, the first so many seconds after the window's start."""
    return f"# iolab {kind} 1\n" + "".join(
        f"@ {BEGIN + round((first + k) * SECOND)} {round((100 + k) * SECOND)}\n{text}"
        for k, text in enumerate(readings)
    )


def cpu(busy: float, seconds: int = 15, first: float = -2.0) -> str:
    """Two CPUs that are busy for that share inside the window, and idle before and after it."""
    ticks = idle = 0.0
    readings = []
    for k in range(seconds):
        readings.append(f"cpu  {round(ticks)} 0 0 {round(idle)} 0 0 0 0 0 0\nctxt {1000 * k}\n")
        inside = 0 <= first + k < 10
        ticks, idle = (
            ticks + (200 * busy if inside else 0),
            idle + (200 * (1 - busy) if inside else 200),
        )
    return log("cpu", readings, first)


def memory(dirty_kib: list[int]) -> str:
    return log(
        "memory",
        [
            f"MemTotal: 9000 kB\nMemAvailable: {20000 - one} kB\nCached: 500 kB\nDirty: {one} kB\n"
            for one in dirty_kib
        ],
    )


def derived(tmp_path: Path, text: str, plan: RunPlan = PLAN, **files: str) -> Derived:
    write_run(tmp_path, text, plan=plan, **files)
    return derive(tmp_path, plan)


def found(result: Derived) -> dict[str, Level]:
    return {reason.code: reason.level for reason in result.verdict.reasons}


def observed(result: Derived) -> dict[str, float]:
    return {observation.metric: observation.value for observation in result.observations}


def test_the_hosts_counters_are_cut_to_the_window_and_summed_up(tmp_path: Path) -> None:
    dirty = [0, 0, 0, *range(100, 1100, 100), 9000, 9000]
    result = derived(tmp_path, output(job()), cpu_log=cpu(0.5), memory_log=memory(dirty))
    values = observed(result)
    assert values["host.cpu.busy"] == pytest.approx(0.5)
    assert values["host.context_switches"] == pytest.approx(1000)
    assert values["host.memory.dirty"] == pytest.approx(550 * 1024)
    assert values["host.memory.dirty.max"] == 1000 * 1024
    assert values["host.memory.available"] == 19000 * 1024
    series = {one.name: one for one in result.series}
    assert series["host.memory.dirty"].time.tolist() == pytest.approx(list(range(1, 11)))
    assert series["host.cpu.busy"].values.tolist() == pytest.approx([0.5] * 10)
    assert found(result) == {}


def test_every_metric_of_the_host_is_in_the_registry(tmp_path: Path) -> None:
    pressure = log(
        "pressure",
        [
            f"{kind} {share} total={k}\n"
            for k in range(15)
            for kind in ("io",)
            for share in ("some",)
        ],
    )
    vmstat = log(
        "vmstat",
        [
            f"nr_dirtied {k}\nnr_written {k}\nallocstall {k}\npswpin 0\npswpout 0\npgmajfault {k}\n"
            for k in range(15)
        ],
    )
    result = derived(
        tmp_path,
        output(job()),
        cpu_log=cpu(0.5),
        memory_log=memory([1] * 15),
        vmstat_log=vmstat,
        pressure_log=pressure,
    )
    names = [
        observation for observation in result.observations if observation.metric.startswith("host.")
    ]
    assert len(names) >= 14
    for observation in names:
        metric = metrics.find(observation.metric)
        assert metric is not None, observation.metric
        assert metric.unit == observation.unit, observation.metric
    assert all(
        metrics.find(one.name) is not None for one in result.series if one.name.startswith("host.")
    )


@pytest.mark.parametrize(
    ("busy", "expected"),
    [(0.70, {}), (0.89, {"cpu-busy": Level.OK}), (0.95, {"cpu-bound": Level.SUSPECT})],
)
def test_the_hosts_cpus_tell_whether_it_was_cpu_bound(
    tmp_path: Path, busy: float, expected: dict[str, Level]
) -> None:
    # fio by itself used 4 x 48 % of 2 CPUs, which would be too much: what was watched knows better
    text = output(job(cpu=48.0))
    (tmp_path / "environment.json").write_text('{"fingerprint": {}, "facts": {"cpus": 2}}')
    assert found(derived(tmp_path, text, cpu_log=cpu(busy))) == expected


def test_what_fio_says_of_cpu_is_not_asked_of_a_run_shorter_than_a_second(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text('{"fingerprint": {}, "facts": {"cpus": 2}}')
    for seconds, expected in ((0.02, False), (2.0, True)):
        plan = dataclasses.replace(PLAN, runtime=None)
        text = output(job(runtime=seconds, cpu=300.0))
        write_run(tmp_path, text, plan=plan)
        assert ("cpu-bound" in found(derive(tmp_path, plan))) is expected


def test_time_outside_io_of_a_busy_host_is_only_a_note(tmp_path: Path) -> None:
    text = output(job(latency_ns=0.9e6))
    assert (
        found(derived(tmp_path / "idle", text, cpu_log=cpu(0.2)))["time-outside-io"]
        is Level.SUSPECT
    )
    assert found(derived(tmp_path / "busy", text, cpu_log=cpu(0.97)))["time-outside-io"] is Level.OK


def test_a_source_that_died_is_named_though_others_live(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, extra={"sources": ["cpu", "memory"]})
    result = derived(tmp_path, output(job()), plan, cpu_log=cpu(0.5), memory_log=memory([1] * 8))
    assert found(result) == {"monitor-dead": Level.INVALID}
    assert result.verdict.reasons[0].text == "the monitor memory has 5 of 10 samples"


def test_a_source_that_left_nothing_is_named_though_others_live(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, extra={"sources": ["cpu", "memory", "iostat"]})
    result = derived(tmp_path, output(job()), plan, cpu_log=cpu(0.5))
    assert found(result) == {"monitor-missing": Level.INVALID}
    assert result.verdict.reasons[0].text == "the monitors memory, iostat left nothing"


def test_an_iostat_that_was_killed_makes_the_run_invalid_and_says_why(tmp_path: Path) -> None:
    rows = ",".join(
        f'{{"timestamp": "2023-11-14T22:13:{20 + k}+0000", "disk": [{{"disk_device": "sda", "w/s": 1.0, "util": 5.0}}]}}'
        for k in range(5)
    )
    plan = dataclasses.replace(
        PLAN,
        extra={
            "sources": ["iostat"],
            "readings": {
                "iostat": {
                    "taken": 5,
                    "lost": 5,
                    "trouble": "ended by itself within 5 s, exit code 137",
                }
            },
        },
    )
    result = derived(
        tmp_path, output(job()), plan, iostat_json='{"sysstat": {"hosts": [{"statistics": [' + rows
    )
    reasons = {reason.code: reason for reason in result.verdict.reasons}
    assert reasons["monitor-dead"].level is Level.INVALID
    assert reasons["monitor-dead"].text == (
        "the monitor of sda has 4 of 10 samples: iostat ended by itself within 5 s, exit code 137"
    )


def test_the_kernels_own_counters_win_over_iostats_of_the_same_device(tmp_path: Path) -> None:
    lines = log(
        "diskstats",
        [f"   8 0 sda 0 0 0 0 {100 * k} 0 {1600 * k} 50 0 {700 * k} 70\n" for k in range(15)],
    )
    rows = ",".join(
        f'{{"timestamp": "2023-11-14T22:13:{19 + k}+0000", "disk": [{{"disk_device": "sda", "w/s": 1.0, "util": 5.0}}]}}'
        for k in range(13)
    )
    result = derived(
        tmp_path,
        output(job()),
        diskstats_log=lines,
        iostat_json='{"sysstat": {"hosts": [{"statistics": [' + rows + "]}]}}",
    )
    assert observed(result)["device.util"] == pytest.approx(0.7)
    assert observed(result)["device.write.iops"] == pytest.approx(100)


def test_each_of_several_devices_is_observed_by_itself(tmp_path: Path) -> None:
    files = {
        f"iostat__{name}_txt": iostat([(800.0 * k, 10.0 * k)] * 10, name)
        for k, name in enumerate(("sdb", "sdc", "sdd"), 1)
    }
    plan = dataclasses.replace(PLAN, window=None)
    values = observed(derived(tmp_path, output(job()), plan, **files))
    assert [values[f"device.util[{name}]"] for name in ("sdb", "sdc", "sdd")] == pytest.approx(
        [0.1, 0.2, 0.3]
    )
    assert values["device.write.bw[sdd]"] == pytest.approx(2400 * 1024)
    assert values["device.await[sdb]"] == pytest.approx(5e-3)
    assert "device.read.bw[sdb]" not in values  # nobody read
    metric = metrics.of("device.util[sdd]")
    assert (metric.title, metric.unit, metric.headline) == ("device utilization, sdd", "1", False)


def test_a_single_device_has_no_metrics_of_its_own_besides(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, window=None)
    values = observed(
        derived(tmp_path, output(job()), plan, iostat__sdb_txt=iostat([(800.0, 10.0)] * 10))
    )
    assert not any("[" in name for name in values)
