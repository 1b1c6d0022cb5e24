# SPDX-License-Identifier: Apache-2.0
"""Sums over the devices of whole-system iostat: each I/O counts once."""

from __future__ import annotations

import dataclasses
import tarfile
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.cli.main import run
from iolab.formats.iostat.text_output import IostatText
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from iolab.studies.results.facts.device_choice import choose
from iolab.studies.results.open.results import Results
from support.fio_files import job, output, reports, write_run

PLAN = RunPlan(
    run="0001-aaaaaaaa",
    variant="master",
    factors={},
    jobs=4,
    runtime=10.0,
    exit_code=0,
    status="imported",
)
STACK = ("sda", "sda1", "sda2", "dm-0", "loop0", "zram0")


def derived(place: Path, text: str, *devices: str) -> Derived:
    plan = dataclasses.replace(PLAN, extra={"devices": list(devices)} if devices else {})
    write_run(place, output(job()), plan=plan, iostat_txt=text)
    return derive(place, plan)


def values(result: Derived) -> dict[str, float]:
    return {
        each.metric: each.value for each in result.observations if each.metric.startswith("device.")
    }


def multipath(**writes: float) -> str:
    """Ten reports after the one since boot; a device that writes is 40 % busy."""
    report = "Device  r/s  w/s  rkB/s  wkB/s  await  aqu-sz  %util\n" + "".join(
        f"{name} 0.00 {rate:.2f} 0.00 {8 * rate:.2f} {rate and 1:.2f} 0.50 {40 if rate else 0:.2f}\n"
        for name, rate in writes.items()
    )
    return "\n".join(f"01/02/24 10:00:{second:02}\n{report}" for second in range(11)) + "\n"


@pytest.mark.parametrize(
    ("rates", "iops", "util"),
    [
        ({"nvme0c0n1": 100, "nvme0n1": 100}, 100, 0.4),
        ({"nvme0c0n1": 100, "nvme0n1": 0}, 100, 0.4),
        ({"nvme0c0n1": 60, "nvme0c1n1": 40, "nvme0n1": 100}, 100, 0.4),
        ({"sda": 100, "sdb": 0, "mpatha": 100}, 100, 0.4),
        ({"sda": 50, "sdb": 50, "sdc": 30, "sdd": 0, "mpatha": 100, "mpathb": 30}, 130, 0.4),
        ({"sda": 100, "sdb": 50, "mpatha": 100}, 150, 0.4),  # sdb is no path
        ({"sda": 100, "sdb": 100, "dm-0": 200}, 200, 0.4),  # a stripe
    ],
)
def test_several_paths_to_a_disk_count_once(
    tmp_path: Path, rates: dict[str, float], iops: float, util: float
) -> None:
    means = values(derived(tmp_path, multipath(**rates)))
    assert means["device.write.iops"] == pytest.approx(iops)
    assert means["device.write.bw"] == pytest.approx(iops * 8 * 1024)
    assert means["device.util"] == pytest.approx(util)


def test_a_stack_is_counted_once_and_each_device_is_there(tmp_path: Path) -> None:
    result = derived(tmp_path, reports(11, *STACK, seconds=1))
    found = values(result)
    assert found["device.write.iops"] == pytest.approx(100)
    assert found["device.write.bw"] == pytest.approx(100 * 8 * 1024)
    assert {f"device.util[{name}]" for name in STACK} <= found.keys()
    assert next(one for one in result.series if one.name == "device.bw").values == pytest.approx(
        [100 * 8 * 1024] * 10
    )
    assert any(one.name == "device.write.bw[dm-0]" for one in result.series)
    assert (
        "sums over devices hold sda, and leave out sda1, sda2: partitions of a disk that is listed"
        in result.assumptions
    )
    assert (
        "sums over devices hold sda, and leave out dm-0, loop0: made of other devices"
        in result.assumptions
    )
    assert result.verdict.level is Level.OK


def test_devices_that_are_named_count_whatever_they_are(tmp_path: Path) -> None:
    one = derived(tmp_path / "a", reports(11, *STACK, seconds=1), "dm-0")
    assert values(one)["device.write.iops"] == pytest.approx(100)
    two = derived(tmp_path / "b", reports(11, *STACK, seconds=1), "dm-0", "loop0", "sdz")
    assert values(two)["device.write.iops"] == pytest.approx(200)
    assert "no file contains sdz" in two.assumptions
    none = derived(tmp_path / "c", reports(11, *STACK, seconds=1), "sdz")
    assert values(none) == {}
    assert any(
        text.startswith("no file contains sdz: there are sda, sda1") for text in none.assumptions
    )


def test_a_device_alone_counts(tmp_path: Path) -> None:
    result = derived(tmp_path, reports(11, "dm-0", seconds=1))
    assert values(result)["device.write.iops"] == pytest.approx(100)
    assert not any("sums over" in text for text in result.assumptions)


def test_partitions_are_no_peers_of_a_slow_device(tmp_path: Path) -> None:
    text = reports(11, *(f"sda{part}" for part in range(1, 6)), "sda", seconds=1)
    text = text.replace(
        "sda     0.00 100.00  0.00 800.00  1.00", "sda     0.00 100.00  0.00 800.00  9.00"
    )
    assert not derived(tmp_path, text).verdict.has("slow-device")


def test_a_file_that_tells_of_no_device_costs_nothing(tmp_path: Path) -> None:
    cpu = (
        "Linux 5.10.0 (box) \t01/02/24 \t_x86_64_\t(8 CPU)\n\n"
        + "avg-cpu:  %user %idle\n           1.00   99.00\n\n" * 3
    )
    result = derived(tmp_path, cpu)
    write_run(tmp_path / "without", output(job()), plan=PLAN)
    assert (result.verdict, result.verdict.level) == (
        derive(tmp_path / "without", PLAN).verdict,
        Level.OK,
    )
    assert any(
        text.startswith("iostat.txt: left out") and "iostat -c" in text
        for text in result.assumptions
    )


def test_an_import_keeps_the_devices_that_were_named(tmp_path: Path) -> None:
    write_run(
        tmp_path / "tree" / "arm-one", output(job()), iostat_txt=reports(11, *STACK, seconds=1)
    )
    words = [
        "--layout",
        "arm-{variant}",
        "--device",
        "dm-0",
        "--device",
        "loop0",
        "-o",
        str(tmp_path / "out"),
    ]
    assert run(["import", str(tmp_path / "tree"), *words]) == 0
    [found] = Results(tmp_path / "out").runs
    assert found.plan.extra["devices"] == ["dm-0", "loop0"]
    assert found.value("device.write.iops") == pytest.approx(200)


def test_real_whole_system_iostat_is_counted_once(foreign_archive: Path) -> None:
    means = {
        "iostat-0.txt": {"sda", "sdb", "sdc"},
        "iostat-1.txt": {"sda"},
        "iostat-2.txt": {"sda", "sdb", "sdc", "sdd", "sde"},
        "iostat-3.txt": {"sda", "sdb", "sdc", "sdd", "sde"},
    }
    with tarfile.open(foreign_archive) as archive:
        files = {
            Path(one.name).name: one
            for one in archive
            if "iostat-stacked-devices" in one.name and one.isfile()
        }
        assert files.keys() == means.keys()
        for name, member in files.items():
            content = archive.extractfile(member)
            assert content is not None
            table = IostatText().read(content.read(), name)
            chosen = choose(table.devices, PLAN)
            assert set(chosen.counted) == means[name]
            assert len(chosen.notes) >= 1
            writes = sum(
                float(samples.columns["write.iops"].mean()) for samples in chosen.counted.values()
            )
            every = sum(
                float(samples.columns["write.iops"].mean()) for samples in table.devices.values()
            )
            assert writes < every
            if name == "iostat-1.txt":
                assert (writes, every) == pytest.approx((34.22, 215.73), abs=0.01)


def test_devices_of_a_trace_or_table_are_not_chosen_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("time_us,latency_us\n1,2\n")
    for words in ([str(tmp_path / "x.csv")], ["--table", str(tmp_path / "x.csv")]):
        assert run(["import", *words, "--device", "sda", "-o", str(tmp_path / "out")]) == 2
        assert "--device chooses among the devices of iostat files" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
