# SPDX-License-Identifier: Apache-2.0
"""No sound run of fio is INVALID or SUSPECT: engines and options in combination, run by fio."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iolab.base.verdict import Level, Reason
from iolab.formats.fio.groups import groups_of
from iolab.formats.fio.json_output import FioJson
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.model import Derived, RunPlan
from iolab.studies.run.study import run_study
from support.acting import Listener, study_text
from support.depth import depth
from support.fio_matrix import combinations, run_fio

pytestmark = pytest.mark.fio

_ALL = tuple(combinations())
_SEVERAL = 4
"""Loads at a time: most of them wait."""


def verdicts(data: bytes, place: Path, jobs: int | None = None) -> list[Derived]:
    """Each group of a result, judged as an imported run, or as one whose plan has so many jobs."""
    place.mkdir(exist_ok=True)
    (place / "fio.json").write_bytes(data)
    groups = groups_of(FioJson().read(data, "fio.json"))
    results = []
    for group in groups:
        part = {"section": {"index": group.index, "name": group.name}} if len(groups) > 1 else {}
        if jobs is not None and not part:
            time_based = {"time_based": False}
            plan = RunPlan(
                "r", "a", {}, status="finished", jobs=jobs, exit_code=0, extra=time_based
            )
        else:
            plan = RunPlan("r", "a", {}, status="imported", extra=part)
        results.append(derive(place, plan))
    return results


def is_true(reason: Reason, data: bytes, host_busy: float = 0.0) -> bool:
    """Whether numbers prove a SUSPECT: fio's own, or the share of time of the host's CPUs. A CPU
    was saturated, or the load overran."""
    jobs = json.loads(data[data.index(b"{\n") :])["jobs"]
    if reason.code == "cpu-bound":
        return host_busy >= 0.9 or any(job["usr_cpu"] + job["sys_cpu"] >= 85 for job in jobs)
    if reason.code == "runtime":
        overrun = 1050 * reason.data["asked_seconds"] + 1000
        return any(
            job[direction]["runtime"] > overrun for job in jobs for direction in ("read", "write")
        )
    return False


def test_the_table_is_long_and_has_no_row_twice() -> None:
    assert len(_ALL) == len(set(_ALL)) >= 300


def test_sound_loads_are_neither_invalid_nor_suspect(fio: str, tmp_path: Path) -> None:
    """Rows that fio refuses on this machine are counted, and are few."""
    step = depth(6, 1)
    rows = [row for number, row in enumerate(_ALL) if number % step == 0]
    with ThreadPoolExecutor(_SEVERAL) as threads:
        outputs = list(
            threads.map(lambda place: run_fio(rows[place], tmp_path / str(place)), range(len(rows)))
        )
    counts: Counter[str] = Counter()
    false: list[str] = []
    for row, data in zip(rows, outputs, strict=True):
        if data is None:
            counts["refused"] += 1
            continue
        for result in verdicts(data, tmp_path / "judged"):
            counts[result.verdict.level.name] += 1
            false += [
                f"{' // '.join(row)}: {reason.text}"
                for reason in result.verdict.reasons
                if reason.level is not Level.OK and not is_true(reason, data)
            ]
    assert not false, "\n".join(false)
    assert counts["refused"] <= 0.1 * len(rows)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--ioengine=libaio --iodepth=16 --rw=randwrite --direct=1 --fsync=1", "littles-law"),
        ("--ioengine=psync --rw=randread --number_ios=300 --runtime=20", "runtime"),
        ("--ioengine=psync --rw=randread --size=50% --filesize=8m --runtime=20", "runtime"),
    ],
)
def test_a_planned_run_is_judged_alike_and_a_wrong_one_is_still_found(
    fio: str, tmp_path: Path, options: str, code: str
) -> None:
    bound = "" if "runtime" in options else " --runtime=1 --time_based"
    data = run_fio((options + bound,), tmp_path / "load")
    assert data is not None
    for result in verdicts(data, tmp_path / "judged", jobs=1):
        levels = {reason.code: reason.level for reason in result.verdict.reasons}
        assert levels.get(code, Level.OK) is Level.OK
    document = json.loads(data)
    for job in document["jobs"]:
        for direction in ("read", "write"):
            part = job[direction]
            if code == "littles-law":  # latencies in another unit
                part["lat_ns"]["mean"] *= 1000
            else:  # stopped half way
                for name in ("total_ios", "io_bytes", "io_kbytes"):
                    part[name] //= 2
    for result in verdicts(json.dumps(document).encode(), tmp_path / "judged", jobs=1):
        levels = {reason.code: reason.level for reason in result.verdict.reasons}
        assert levels[code] is Level.INVALID


_NATIVE = (
    "ioengine=libaio iodepth=16 fsync=1",
    "ioengine=libaio iodepth=1 fdatasync=4",
    "ioengine=io_uring iodepth=8 iodepth_low=2",
    "ioengine=libaio iodepth=16 iodepth_batch=8 iodepth_batch_complete_min=8",
    "ioengine=posixaio iodepth=4 fsync=8",
    "ioengine=libaio iodepth=4 thinktime=2ms",
    "ioengine=psync rate=1m",
    "ioengine=pvsync2 bssplit=4k/50:64k/50",
    "ioengine=libaio iodepth=16 latency_target=20ms latency_window=200ms latency_percentile=95",
    "ioengine=psync number_ios=300",
    "ioengine=libaio iodepth=8 gtod_reduce=1",
    "ioengine=io_uring iodepth=8 sync_file_range=write:8",
)


def test_runs_of_a_study_are_neither_invalid_nor_suspect(fio: str, tmp_path: Path) -> None:
    """A variant for each set of options, two jobs each."""
    text = study_text(repetitions=1).partition("[variants.plain]")[0]
    text = text.replace("numjobs = [1, 4]", "numjobs = [2]").replace('"2s"', '"1s"')
    text = text.replace('ramp = "500ms"', "").replace('"1m"', '"8m"')
    for number, options in enumerate(_NATIVE[:: depth(2, 1)]):
        text += f"[variants.v{number}]\n"
        for option in options.split():
            name, _, value = option.partition("=")
            text += f'workload.options.{name} = "{value}"\n'
    study = tmp_path / "study.toml"
    study.write_text(text, "utf-8")
    out = run_study(study, tmp_path / "out", listener=Listener())
    runs = list(run_directories(out))
    assert len(runs) == len(_NATIVE[:: depth(2, 1)])
    for run in runs:
        plan = read_plan(run)
        data = (run / "fio.json").read_bytes()
        result = derive(run, plan)
        busy = [each.value for each in result.observations if each.metric == "host.cpu.busy"]
        false = [
            reason.text
            for reason in result.verdict.reasons
            if reason.level is not Level.OK and not is_true(reason, data, *busy)
        ]
        assert not false, (plan.variant, false)
