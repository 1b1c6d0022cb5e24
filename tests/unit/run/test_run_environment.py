# SPDX-License-Identifier: Apache-2.0
"""On what a study ran: what is recorded of a machine, and what the kernel says meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed
from iolab.hosts.base.kmsg import line_of
from iolab.hosts.facts.block_devices import block_device_facts, block_devices, settings
from iolab.hosts.facts.host_facts import host_facts, storage_controllers, temperatures
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_environment, read_plan, run_directories
from support.acting import Listener, study_text

Do = Callable[..., Path]

PCI_IDS = """# comment
144d  Samsung Electronics Co Ltd
\ta808  NVMe SSD Controller SM981/PM981/PM983
\t\t144d a801  SSD 970 PRO
\ta80a  NVMe SSD Controller PM9A1
8086  Intel Corporation
\ta382  SATA Controller [AHCI mode]
C 01  Mass storage controller
\ta808  not a device
"""


def controller(
    host: FakeHost, address: str, code: str, vendor: str, device: str, **more: str
) -> None:
    for name, text in {
        "class": code,
        "vendor": f"0x{vendor}",
        "device": f"0x{device}",
        **more,
    }.items():
        host.files[f"/sys/bus/pci/devices/{address}/{name}"] = text + "\n"


def test_storage_controllers_are_named_where_a_list_of_names_is_there(host: FakeHost) -> None:
    controller(host, "0000:00:1f.2", "0x010601", "8086", "a382", numa_node="0")
    controller(
        host,
        "0000:01:00.0",
        "0x010802",
        "144d",
        "a808",
        current_link_speed="8.0 GT/s PCIe",
        current_link_width="4",
        numa_node="-1",
    )
    controller(host, "0000:02:00.0", "0x030000", "10de", "1234")  # a graphics card
    host.links["/sys/bus/pci/devices/0000:01:00.0/driver"] = "/sys/bus/pci/drivers/nvme"
    host.links["/sys/bus/pci/devices/0000:00:1f.2/driver"] = (
        "/sys/devices/pci0000:00/0000:00:1f.2/driver"  # there is none: not a link
    )
    bare = storage_controllers(host)
    assert [(one["kind"], one["name"]) for one in bare] == [
        ("SATA", "8086:a382"),
        ("NVMe", "144d:a808"),
    ]
    host.files["/usr/share/misc/pci.ids"] = PCI_IDS
    ahci, nvme = storage_controllers(host)
    assert ahci == {
        "address": "0000:00:1f.2",
        "kind": "SATA",
        "ids": "8086:a382",
        "numa_node": "0",
        "name": "Intel Corporation SATA Controller [AHCI mode]",
    }
    assert nvme == {
        "address": "0000:01:00.0",
        "kind": "NVMe",
        "ids": "144d:a808",
        "driver": "nvme",
        "current_link_width": "4",
        "current_link_speed": "8.0 GT/s PCIe",
        "name": "Samsung Electronics Co Ltd NVMe SSD Controller SM981/PM981/PM983",
    }


def test_a_device_missing_from_the_list_keeps_its_vendor_and_its_number(host: FakeHost) -> None:
    controller(host, "0000:01:00.0", "0x010802", "144d", "ffff")
    controller(host, "0000:02:00.0", "0x010802", "abcd", "a808")
    host.files["/usr/share/misc/pci.ids"] = PCI_IDS
    assert [one["name"] for one in storage_controllers(host)] == [
        "Samsung Electronics Co Ltd ffff",
        "abcd:a808",
    ]


def test_block_devices_are_told_with_firmware_and_queue(host: FakeHost) -> None:
    for path, text in {
        "device/model": "Fast  Disk ",
        "device/firmware_rev": "1.2",
        "device/serial": "S1",
        "queue/write_cache": "write back",
        "queue/nr_requests": "1023",
        "size": "2000",
        "queue/scheduler": "[none] mq-deadline",
        "device/queue_depth": "32",
        "queue/logical_block_size": "512",
        "queue/physical_block_size": "4096",
        "queue/rotational": "0",
        "queue/read_ahead_kb": "128",
        "queue/nomerges": "odd",
    }.items():
        host.files[f"/sys/class/block/nvme0n1/{path}"] = text + "\n"
    host.files["/sys/class/block/loop0/size"] = "0\n"
    host.directories |= {"/sys/block/nvme0n1", "/sys/block/loop0", "/sys/block/ram0"}
    assert block_devices(host) == {
        "nvme0n1": {
            "model": "Fast Disk",
            "firmware": "1.2",
            "serial": "S1",
            "write_cache": "write back",
            "queue_requests": 1023,
            "scheduler": "none",
            "size_bytes": 1_024_000,
            "queue_depth": 32,
            "logical_block_bytes": 512,
            "physical_block_bytes": 4096,
            "rotational": 0,
            "read_ahead_bytes": 131_072,
        }
    }
    assert settings(block_device_facts(host, "nvme0n1"), "nvme0n1") == {
        "model:nvme0n1": "Fast Disk",
        "firmware:nvme0n1": "1.2",
        "scheduler:nvme0n1": "none",
        "write_cache:nvme0n1": "write back",
        "queue_requests:nvme0n1": "1023",
    }


def made_up_disk(sysfs: Path, name: str, *bays: tuple[str, str, str, str]) -> None:
    """A SCSI disk with links to components of enclosures: (enclosure, its id, component, slot)."""
    scsi_device = sysfs / "devices" / name
    scsi_device.mkdir(parents=True)
    block = sysfs / "class/block" / name
    block.mkdir(parents=True)
    (block / "device").symlink_to(scsi_device)
    (scsi_device / "model").write_text("Disk\n")
    for enclosure, number, component, slot in bays:
        place = sysfs / "devices/ses" / enclosure / component
        place.mkdir(parents=True, exist_ok=True)
        (place.parent / "id").write_text(number)
        (place / "slot").write_text(slot)
        link = scsi_device / f"enclosure_device:{component}"
        if not link.is_symlink():
            link.symlink_to(place)


@pytest.mark.parametrize(
    ("bays", "expected"),
    [
        ([("6:0:0:0", "0x500304801f2b3c3f\n", "Slot 01", "1\n")], ("0x500304801f2b3c3f", "1")),
        # without an id or a number the names of the directories count
        ([("6:0:0:0", "\n", "Bay  A\x1b", "")], ("6:0:0:0", "Bay A\x1b")),
        # two paths to a bay, and two bays
        ([("6:0:0:0", "0x5", "Slot 01", "1"), ("7:0:0:0", "0x5", "Slot 1", "1")], ("0x5", "1")),
        ([("6:0:0:0", "0x5", "Slot 01", "1"), ("7:0:0:0", "0x6", "Slot 1", "1")], None),
        ([], None),
    ],
)
def test_a_disk_has_its_enclosure_and_slot(
    bays: list[tuple[str, str, str, str]], expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    made_up_disk(tmp_path, "sda", *bays)
    facts = block_device_facts(LocalHost(), "sda", str(tmp_path))
    slot = {} if expected is None else {"enclosure": expected[0], "enclosure_slot": expected[1]}
    assert facts == {"model": "Disk", **slot}


def test_a_disk_that_left_its_enclosure_has_none(tmp_path: Path) -> None:
    made_up_disk(tmp_path, "sda")
    for name in ("enclosure_device", "enclosure_device:Slot 02", "enclosure_devices:Slot 03"):
        (tmp_path / "devices/sda" / name).symlink_to(tmp_path / "removed" / name)
    assert block_device_facts(LocalHost(), "sda", str(tmp_path)) == {"model": "Disk"}


def test_governor_turbo_nodes_and_warmth(host: FakeHost) -> None:
    host.files |= {
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/node/node0/cpulist": "0-1\n",
        "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       1024 kB\n",
        "/sys/class/thermal/thermal_zone0/temp": "41500\n",
        "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
        "/sys/class/thermal/cooling_device0/temp": "1\n",
    }
    found = host_facts(host)
    assert (found.fingerprint["governor"], found.fingerprint["turbo"]) == (
        "performance, powersave",
        "off",
    )
    assert found.facts["numa_nodes"] == {"node0": {"cpus": "0-1", "memory_bytes": 1_048_576}}
    assert temperatures(host) == {"thermal_zone0 x86_pkg_temp": 41.5}


def test_a_machine_that_tells_nothing_is_still_a_machine() -> None:
    from iolab.base.clock import FakeClock

    bare = FakeHost(FakeClock())
    assert host_facts(bare).fingerprint == {}
    assert (storage_controllers(bare), block_devices(bare), temperatures(bare)) == ([], {}, {})


def test_this_machine_has_a_kernel_a_cpu_and_memory() -> None:
    found = host_facts(LocalHost())
    assert found.facts["cpus"] >= 1
    assert found.facts["memory_bytes"] > 1 << 20
    assert {"kernel", "cpu", "memory"} <= set(found.fingerprint)
    json.dumps(found.facts)


def test_how_warm_it_was_stands_with_each_run(do: Do, host: FakeHost) -> None:
    host.files["/sys/class/thermal/thermal_zone0/temp"] = "38000\n"
    run = next(run_directories(do()))
    assert read_environment(run)["facts"]["temperatures_celsius"] == {"thermal_zone0": 38.0}


def test_what_the_kernel_says_during_a_load_stays_with_its_run(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    work = host.programs["fio"].work
    assert work is not None
    assert host.messages is not None
    messages = host.messages

    def noisy(command: Sequence[str], directory: Path) -> None:
        work(command, directory)
        if directory.name.startswith("0002"):
            messages.extend(
                [
                    "info  [    1.000000] nothing special",
                    "err   [    1.500000] I/O error, dev sda, sector 8",
                ]
            )
        if directory.name.startswith("0003"):
            messages.append("info  [    2.000000] nothing special")

    host.programs["fio"].work = noisy
    removed = host.remove_tree

    def unmounting(path: str) -> None:
        messages.append("info  [    3.000000] said between the runs")
        removed(path)

    host.remove_tree = unmounting  # type: ignore[method-assign]
    runs = list(run_directories(do()))
    assert (runs[1] / "dmesg.txt").read_text().splitlines() == [
        "info  [    1.000000] nothing special",
        "err   [    1.500000] I/O error, dev sda, sector 8",
    ]
    assert [run.name[:4] for run in runs if (run / "dmesg.txt").exists()] == ["0002", "0003"]
    assert heard.notes == [
        f"run {runs[1].name}: the kernel says: err   [    1.500000] I/O error, dev sda, sector 8 "
        "(dmesg.txt has all 2 lines)"
    ]
    assert not derive(runs[1], read_plan(runs[1])).verdict.has("damaged")


def test_a_kernel_log_that_may_not_be_read_is_done_without(
    do: Do, host: FakeHost, heard: Listener
) -> None:
    host.messages = None
    out = do()
    assert not list(out.rglob("dmesg.txt"))
    assert not heard.notes


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (
            b"4,339,4033860585,-;hrtimer: took 3 ns\n SUBSYSTEM=x\n",
            "warn  [ 4033.860585] hrtimer: took 3 ns",
        ),
        (b"30,5,7,-,caller=T1;from user; space\n", "info  [    0.000007] from user; space"),
        (b"no record\n", "no record"),
    ],
)
def test_kernel_records_become_lines(record: bytes, line: str) -> None:
    assert line_of(record) == line


@given(st.binary(max_size=80))
def test_any_bytes_from_the_kernel_become_a_line(record: bytes) -> None:
    assert "\n" not in line_of(record)


def test_revisions_stand_in_the_fingerprint(study: Path, do: Do, host: FakeHost) -> None:
    study.write_text(
        study_text().replace("repetitions = 2", 'repetitions = 2\nrevisions = {zfs = "/src/zfs"}')
    )
    host.programs["sh"] = FakeProgram(
        output=lambda command: Completed(tuple(command), 0, "tag-3-gabc-dirty\n", "")
    )
    out = do()
    whole = read_environment(out)
    assert whole["fingerprint"]["revision:zfs"] == "tag-3-gabc-dirty"
    assert whole["facts"]["revisions"] == {"zfs": "tag-3-gabc-dirty"}


def test_a_revision_that_is_none_is_told_before_the_first_run(
    study: Path, do: Do, host: FakeHost, tmp_path: Path
) -> None:
    study.write_text(
        study_text().replace("repetitions = 2", 'repetitions = 2\nrevisions = {zfs = "/src/zfs"}')
    )
    host.programs["sh"] = FakeProgram(
        output=lambda command: Completed(tuple(command), 128, "", "fatal: not a git repository\n")
    )
    with pytest.raises(
        RunError, match="revision of 'zfs' cannot be determined: fatal: not a git repository"
    ):
        do()
    assert not (tmp_path / "out").exists()


def test_disks_that_all_targets_share_are_in_the_fingerprint(
    study: Path, do: Do, host: FakeHost
) -> None:
    study.write_text(study_text() + '[variants.elsewhere]\ntarget.path = "/data"\n')
    host.directories.add("/data")
    fingerprint = read_environment(do())["fingerprint"]
    assert fingerprint["scheduler:sda"] == "mq-deadline"
    assert "filesystem" not in fingerprint


def test_loop_devices_are_facts_but_no_fingerprint(do: Do, host: FakeHost) -> None:
    host.links = {link.replace("sda", "loop3"): path for link, path in host.links.items()}
    host.links["/sys/dev/block/8:1"] = "/sys/devices/pci/block/loop3"
    host.links["/sys/class/block/loop3"] = "/sys/devices/pci/block/loop3"
    host.files |= {
        "/sys/devices/pci/block/loop3/queue/scheduler": "[none]\n",
        "/proc/diskstats": "7 3 loop3 1 2 3 4 5 6 7 8 9 10 11\n",
    }
    whole = read_environment(do())
    assert "loop3" in whole["facts"]["devices"]
    assert not [key for key in whole["fingerprint"] if "loop" in key]
