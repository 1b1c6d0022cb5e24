# SPDX-License-Identifier: Apache-2.0
"""Checks of `iolab doctor` other than the probe: programs, rights, kernel, clock and free space,
each with its remedy."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path
from typing import Any

from ..hosts.base.host import Host, text_or_none
from ..units import format_quantity

_TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_LOCKDOWN = "/sys/kernel/security/lockdown"
_FILE_SYSTEMS = {
    "ext4": ("mkfs.ext4", "e2fsprogs"),
    "xfs": ("mkfs.xfs", "xfsprogs"),
    "btrfs": ("mkfs.btrfs", "btrfs-progs"),
}
_ROOM = 1 << 30
_FILES = 1024


def checks(host: Host) -> list[dict[str, Any]]:
    """Everything that can be looked at without changing anything: `name`, `ok`, `found`, `remedy`
    (empty where ok)."""
    return [
        _root(),
        _fio(host),
        _iostat(host),
        _perf(host),
        _file_systems(host),
        _zfs(host),
        _machines(host),
        _tracefs(host),
        _tracing(host),
        _lockdown(host),
        _clock(host),
        _room(),
        _limits(),
    ]


def check(name: str, ok: bool, found: str, remedy: str = "") -> dict[str, Any]:
    """One check."""
    return {"name": name, "ok": ok, "found": found, "remedy": "" if ok else remedy}


def _root() -> dict[str, Any]:
    return check(
        "root",
        os.geteuid() == 0,
        "root" if os.geteuid() == 0 else f"user {os.geteuid()}",
        "sudo: record, live, block devices, made file systems, rigs and cold caches need root; other studies do not",
    )


def _said(host: Host, *words: str) -> str | None:
    """The first line that a program prints, None where it is missing or fails."""
    if host.which(words[0]) is None:
        return None
    try:
        done = host.run(list(words))
    except (OSError, RuntimeError):
        return None
    return (
        (done.stdout.strip() or done.stderr.strip() or "present").splitlines()[0]
        if done.exit_code == 0
        else None
    )


def _fio(host: Host) -> dict[str, Any]:
    said = _said(host, "fio", "--version")
    version = re.match(r"fio-(\d+)\.(\d+)", said or "")
    if said is None or version is None:
        return check(
            "fio",
            False,
            said or "not found",
            "apt install fio (dnf install fio): workloads of studies need it",
        )
    return check(
        "fio", int(version[1]) >= 3, said, "a fio of version 3 or later: studies need its JSON"
    )


def _iostat(host: Host) -> dict[str, Any]:
    return check(
        "iostat",
        (said := _said(host, "iostat", "-V")) is not None,
        said or "not found",
        "apt install sysstat: only for studies with iostat among their sources",
    )


def _perf(host: Host) -> dict[str, Any]:
    said = _said(host, "perf", "--version")
    if said is None:
        return check(
            "perf",
            False,
            "not found",
            "apt install linux-perf (Debian), linux-tools-generic (Ubuntu), perf (Fedora): only for profiles",
        )
    level = (text_or_none(host, "/proc/sys/kernel/perf_event_paranoid") or "unknown").strip()
    return check(
        "perf",
        os.geteuid() == 0 or level == "-1",
        f"{said}, perf_event_paranoid {level}",
        "as root, or sysctl kernel.perf_event_paranoid=-1: only for profiles",
    )


def _file_systems(host: Host) -> dict[str, Any]:
    available = [name for name, (tool, _) in _FILE_SYSTEMS.items() if host.which(tool) is not None]
    packages = [package for name, (_, package) in _FILE_SYSTEMS.items() if name not in available]
    return check(
        "file systems",
        not packages,
        f"can make {', '.join(available) or 'none'}",
        f"apt install {' '.join(packages)}: only for studies of those file systems",
    )


def _zfs(host: Host) -> dict[str, Any]:
    loaded = (text_or_none(host, "/sys/module/zfs/version") or "").strip()
    tools = host.which("zpool") is not None
    state_text = f"module {loaded or 'not loaded'}, zpool {'found' if tools else 'not found'}"
    return check(
        "zfs",
        bool(loaded) and tools,
        state_text,
        "modprobe zfs, or measure on a rig (iolab rig): only for studies of OpenZFS",
    )


def _machines(host: Host) -> dict[str, Any]:
    program, kvm = "qemu-system-x86_64", os.access("/dev/kvm", os.R_OK | os.W_OK)
    if host.which(program) is None:
        return check(
            "qemu", False, "not found", "apt install qemu-system-x86 debootstrap: only for rigs"
        )
    return check(
        "qemu",
        True,
        f"{program}, {'with KVM' if kvm else 'without KVM: rigs emulate their CPUs, which is slow'}",
    )


def _tracefs(host: Host) -> dict[str, Any]:
    # Path.is_dir raises where a user may not search the directory above, which has mode 0700
    place = next((path for path in _TRACEFS if os.path.isdir(f"{path}/events")), None)  # noqa: PTH112
    if place:
        return check("tracefs", True, place)
    if os.geteuid() == 0:
        is_known = "tracefs" in (text_or_none(host, "/proc/filesystems") or "")
        return check(
            "tracefs",
            is_known,
            "not mounted; the probe mounts it for itself" if is_known else "not in this kernel",
            "a kernel with CONFIG_FTRACE and CONFIG_BLK_DEV_IO_TRACE: recording needs it",
        )
    return check(
        "tracefs", False, "not visible to this user", "run as root: only recording needs it"
    )


def _tracing(host: Host) -> dict[str, Any]:
    from ..run.load.tracing import active_tracing

    tracers = active_tracing(host, "")
    return check(
        "tracing",
        not tracers,
        "; ".join(tracers) or "nothing else traces the kernel, as far as this user may see",
        "end it before measuring: it costs every I/O some time",
    )


def _lockdown(host: Host) -> dict[str, Any]:
    said = text_or_none(host, _LOCKDOWN)
    mode = re.search(r"\[(\w+)\]", said or "")
    if mode is None:
        return check("lockdown", True, "none, as far as this user may see")
    return check(
        "lockdown",
        mode[1] != "confidentiality",
        mode[1],
        "the kernel refuses tracing in this mode, so nothing can be recorded: boot with lockdown=integrity",
    )


def _clock(host: Host) -> dict[str, Any]:
    source = (
        text_or_none(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource")
        or "unknown"
    ).strip()
    return check(
        "clock",
        source not in ("jiffies", "refined-jiffies", "hpet", "acpi_pm"),
        source,
        "a slow or coarse clock costs and blurs each latency: boot with clocksource=tsc where the CPU's is reliable",
    )


def _room() -> dict[str, Any]:
    try:
        status = os.statvfs(".")
    except OSError as error:
        return check("room", False, str(error), "go to a directory that can be read")
    free = status.f_bavail * status.f_frsize
    return check(
        "room",
        free >= _ROOM,
        f"{format_quantity(free, 'B')} free in {Path.cwd()}",
        "results and recordings are written below the current directory: -o takes another",
    )


def _limits() -> dict[str, Any]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    return check(
        "open files",
        soft == resource.RLIM_INFINITY or soft >= _FILES,
        f"up to {said} per process",
        f"ulimit -n {_FILES if hard == resource.RLIM_INFINITY else min(max(hard, soft), 65536)}",
    )
