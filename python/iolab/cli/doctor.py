# SPDX-License-Identifier: Apache-2.0
"""`iolab doctor`: what this machine can do, what is missing, and what dead processes of iolab left
on it."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolab.base.errors import sudo_command
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, text_or_none

from .base.options import format_option
from .base.output import say, tell, tell_json

if TYPE_CHECKING:
    from iolab.hosts.base.host import Host

_SYS_BLOCK = Path("/sys/block")


@click.command("doctor")
@click.option(
    "--clean",
    "cleans",
    is_flag=True,
    help="Remove tracefs instances of killed recorders and loop devices of killed studies. Needs root.",
)
@format_option("text", "json")
def command(cleans: bool, style: str) -> int:
    """Check what this machine can measure and record, and what killed iolab processes left on it,
    each with its remedy.

    Changes nothing without --clean. Exit code 1 if something could not be removed.
    """
    from iolab.base.errors import IolabError
    from iolab.hosts.kinds.local import LocalHost
    from iolab.recordings.record.probe.program import check as asked
    from iolab.recordings.record.probe.program import clean, instances_of, probe_path

    host, said, wrong = LocalHost(), {}, ""
    removed: list[str] = []
    kept: list[str] = []
    try:
        probe = str(probe_path())
        if cleans:
            removed, kept = clean(host, probe)
        said = asked(host, probe)
    except IolabError as error:
        wrong = str(error)
    loops_removed, loops_left = _clean_loops(host) if cleans else ([], [])
    loops = _loops()
    results = checks(host)
    results[2:2] = [_probe(said, wrong), *_sources(said)]
    instances = instances_of(said)
    leftovers = [
        {
            "kind": "tracefs-instance",
            "name": name,
            "removable": name not in kept,
            "remedy": "another process has it open: end that"
            if name in kept
            else sudo_command("doctor", "--clean"),
        }
        for name in instances.dead
    ] + [loop.as_data() for loop in loops if not loop.used_by]
    if style == "json":
        tell_json(
            {
                "schema": 1,
                "kind": "doctor",
                "checks": results,
                "leftovers": leftovers,
                "removed": [*removed, *loops_removed],
                "recording": list(instances.alive),
            }
        )
    else:
        tell(*(_line(result) for result in results))
        lines = [
            f"left over  {leftover['kind']} {leftover['name']}: {leftover['remedy']}"
            for leftover in leftovers
        ] or ["left over  nothing"]
        lines += [
            f"in use     tracefs instance {name}, of a probe that records"
            for name in instances.alive
        ]
        lines += [
            f"in use     loop-device {loop.node} on {loop.file}: {loop.used_by}"
            for loop in loops
            if loop.used_by
        ]
        lines += [f"removed    tracefs instance {name}" for name in removed] + [
            f"removed    loop-device {name}" for name in loops_removed
        ]
        tell(*lines)
    if cleans and (instances.dead or wrong or loops_left):
        why = "; ".join(filter(None, (wrong, *loops_left)))
        say("iolab doctor: not all could be removed" + (f": {why}" if why else ""))
        return 1
    return 0


def _line(check: Mapping[str, Any]) -> str:
    remedy = f"; {check['remedy']}" if check["remedy"] else ""
    return f"{'ok' if check['ok'] else 'missing':9}  {check['name']}: {check['found']}{remedy}"


def _probe(said: Mapping[str, Any], wrong: str) -> dict[str, Any]:
    if not said:
        return check("probe", False, wrong, "run 'make setup'")
    return check(
        "probe",
        True,
        f"{said.get('probe')}, Linux {said.get('kernel')}, {'as root' if said.get('root') else 'not as root'}",
    )


def _sources(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    sources = said.get("sources")
    for name, facts in (sources if isinstance(sources, dict) else {}).items():
        words = "; ".join(map(str, facts.get("words", ())))
        remedy = "" if said.get("root") else sudo_command("record")
        rows.append(
            check(
                f"record {name}", bool(facts.get("available")), words or "can be recorded", remedy
            )
        )
    return rows


@dataclass(frozen=True)
class _Loop:
    """A loop device of which the file is in a directory with iolab's mark.

    Attributes:
        results: the results directory that recorded this directory, if it belongs to this user.
        used_by: why the device is in use, empty if it is a leftover.
    """

    node: str
    file: Path
    results: Path | None
    used_by: str = ""

    def as_data(self) -> dict[str, Any]:
        """A leftover as plain data."""
        return {
            "kind": "loop-device",
            "name": f"{self.node} on {self.file}",
            "removable": self.results is not None,
            "remedy": sudo_command("doctor", "--clean")
            if self.results is not None
            else "where no study runs: iolab run --resume, which removes what a killed one made",
        }


def _loops() -> list[_Loop]:
    from iolab.base.errors import ResultsError
    from iolab.studies.results.evidence.lock import check_free
    from iolab.studies.targets.made import IMAGES, MARK

    loops = []
    for place in sorted(_SYS_BLOCK.glob("loop*/loop/backing_file")):
        try:
            file = Path(
                place.read_text(errors="surrogateescape").rstrip("\n").removesuffix(" (deleted)")
            )
            if not file.name.startswith(IMAGES) or not any(file.parent.glob(f"{MARK}*")):
                continue
            results = _results_of(file)
        except OSError:
            continue
        used_by = ""
        try:
            if results is not None:
                check_free(results)
        except ResultsError as error:
            used_by = str(error)
        loops.append(_Loop(place.parts[3], file, results, used_by))
    return loops


def _results_of(file: Path) -> Path | None:
    """The results directory that has a file's directory on record, and a lock by which it is known
    whether its study runs. A record of another user is none: root removes nothing at its word."""
    from iolab.studies.results.evidence.lock import FILE as LOCK_FILE
    from iolab.studies.targets.made import SUFFIX

    for results in file.parents[1:]:
        scratch = results / file.relative_to(results).parts[0]
        record = results / (scratch.name + SUFFIX)
        if (
            record.is_file()
            and not record.is_symlink()
            and record.stat().st_uid == os.geteuid()
            and (results / LOCK_FILE).is_file()
        ):
            return results
    return None


def _clean_loops(host: Host) -> tuple[list[str], list[str]]:
    """Remove what killed studies left, as --resume does first: each by its mark.

    Returns the removed devices, and a message for each that could not be removed.
    """
    from iolab.base.errors import IolabError
    from iolab.studies.results.evidence.lock import lock
    from iolab.studies.targets.made import clean_leftovers

    before = [loop for loop in _loops() if loop.results is not None and not loop.used_by]
    failures: list[str] = []
    for results in dict.fromkeys(loop.results for loop in before if loop.results is not None):
        try:
            with lock(results):  # a study that begins meanwhile keeps what it makes
                failures += clean_leftovers(host, results)
        except (IolabError, OSError) as error:
            failures.append(str(error))
    remaining = {(loop.node, loop.file) for loop in _loops()}
    return [
        f"{loop.node} on {loop.file}" for loop in before if (loop.node, loop.file) not in remaining
    ], failures


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
    from iolab.hosts.kinds.rig import cache_home
    from iolab.hosts.rigs.qemu import PROGRAM, remembered_accelerator

    if host.which(PROGRAM) is None:
        return check(
            "qemu", False, "not found", "apt install qemu-system-x86 debootstrap: only for rigs"
        )
    rigs = [path.parent.name for path in sorted(cache_home().glob("*/accelerator"))]
    probed = {name: result for name in rigs if (result := remembered_accelerator(name))}
    emulated = [name for name, result in probed.items() if result == "tcg"]
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        state_text = "without KVM: rigs emulate their CPUs, which is slow"
    elif emulated:
        state_text = (
            f"/dev/kvm exists, but the kernel of {', '.join(emulated)} does not boot with it: "
            "its CPUs are emulated, which is slow"
        )
    elif probed:
        state_text = f"with KVM ({', '.join(probed)})"
    else:
        state_text = "/dev/kvm exists; the first 'iolab rig up' tests whether a rig boots with it"
    return check("qemu", True, f"{PROGRAM}, {state_text}")


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
    from iolab.studies.run.load.tracing import active_tracing

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
