# SPDX-License-Identifier: Apache-2.0
"""The registry of plugins: targets, workloads, sources, counter sets, hosts, formats, gates,
renderers.

Built-ins are declared as import paths, so that `--help` loads none of them. Third parties' are
entry points of group `iolab.<kind>`, read only if a name is unknown or the kind is listed.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

from .errors import PluginError, UsageError

BUILT_IN: dict[str, dict[str, str]] = {
    "format": {
        "fio-json": "iolab.formats.fio.json_output:FioJson",
        "fio-terse": "iolab.formats.fio.terse:FioTerse",
        "fio-text": "iolab.formats.fio.text_output:FioText",
        "fio-log": "iolab.formats.fio.log:FioLog",
        "iostat-json": "iolab.formats.iostat.json_output:IostatJson",
        "iostat-text": "iolab.formats.iostat.text_output:IostatText",
        "iostat-illumos": "iolab.formats.iostat.illumos:IostatIllumos",
        "diskstats": "iolab.formats.host.diskstats:DiskstatsLog",
        "dmu_tx_assign": "iolab.formats.zfs.dmu_tx_assign_log:DmuTxAssignLog",
        "txgs": "iolab.formats.zfs.txgs_log:TxgsLog",
        "objset": "iolab.formats.zfs.objset_log:ObjsetLog",
        "zpool-iostat": "iolab.formats.zfs.zpool_iostat_log:ZpoolIostatLog",
        "zpool-latency": "iolab.formats.zfs.zpool_histogram_log:ZpoolLatencyLog",
        "zpool-sizes": "iolab.formats.zfs.zpool_histogram_log:ZpoolSizesLog",
        "block": "iolab.formats.host.recorder_log:BlockLog",
        "syscall": "iolab.formats.host.recorder_log:SyscallLog",
        "nfs": "iolab.formats.host.recorder_log:NfsLog",
        "counters": "iolab.formats.host.recorder_log:CountersLog",
        "perf-script": "iolab.formats.profiles.perf_script:PerfScript",
        "folded": "iolab.formats.profiles.folded:Folded",
    },
    "counter-set": {
        "cpu": "iolab.formats.host.cpu_log:CpuCounters",
        "memory": "iolab.formats.host.memory_log:MemoryCounters",
        "vmstat": "iolab.formats.host.vmstat_log:VmstatCounters",
        "pressure": "iolab.formats.host.pressure_log:PressureCounters",
        "network": "iolab.formats.host.network_log:NetworkCounters",
        "arcstats": "iolab.formats.zfs.kstat_log:ArcstatsCounters",
        "zil": "iolab.formats.zfs.kstat_log:ZilCounters",
        "dmu_tx": "iolab.formats.zfs.kstat_log:DmuTxCounters",
    },
    "gate": {
        "evidence": "iolab.studies.results.gates.evidence:EvidenceGate",
        "errors": "iolab.studies.results.gates.errors:ErrorsGate",
        "clients": "iolab.studies.results.gates.clients:ClientsGate",
        "job-count": "iolab.studies.results.gates.job_count:JobCountGate",
        "runtime": "iolab.studies.results.gates.runtime:RuntimeGate",
        "monitor-alive": "iolab.studies.results.gates.monitor_alive:MonitorAliveGate",
        "littles-law": "iolab.studies.results.gates.littles_law:LittlesLawGate",
        "stall": "iolab.studies.results.gates.stall:StallGate",
        "cpu-bound": "iolab.studies.results.gates.cpu_bound:CpuBoundGate",
        "slow-device": "iolab.studies.results.gates.slow_device:SlowDeviceGate",
        "tracing": "iolab.studies.results.gates.tracing:TracingGate",
        "steady": "iolab.studies.results.gates.steady:SteadyGate",
        "offered-rate": "iolab.studies.results.gates.offered_rate:OfferedRateGate",
        "compression": "iolab.studies.results.gates.compression:CompressionGate",
        "working-set": "iolab.studies.results.gates.working_set:WorkingSetGate",
        "io-log": "iolab.studies.results.gates.io_log:IoLogGate",
        "environment": "iolab.studies.results.gates.environment:EnvironmentGate",
        "builds": "iolab.studies.results.gates.builds:BuildsGate",
    },
    "host": {
        "local": "iolab.hosts.kinds.local:LocalHost",
        "ssh": "iolab.hosts.ssh.host:SshHost",
        "rig": "iolab.hosts.kinds.rig:RigHost",
    },
    "target": {
        "directory": "iolab.studies.targets.directory:DirectoryTarget",
        "filesystem": "iolab.studies.targets.filesystem:FilesystemTarget",
        "device": "iolab.studies.targets.device:DeviceTarget",
        "zpool": "iolab.studies.targets.zpool.target:ZpoolTarget",
    },
    "workload": {
        "fio": "iolab.studies.workloads.fio.workload:FioWorkload",
        "files": "iolab.studies.workloads.files:FilesWorkload",
        "picture": "iolab.studies.workloads.picture.workload:PictureWorkload",
        "program": "iolab.studies.workloads.program:ProgramWorkload",
    },
    "source": {
        "diskstats": "iolab.studies.sources.diskstats:DiskstatsSource",
        "iostat": "iolab.studies.sources.iostat:IostatSource",
        "dmu_tx_assign": "iolab.studies.sources.pool_kstats:DmuTxAssignSource",
        "txgs": "iolab.studies.sources.pool_kstats:TxgsSource",
        "objset": "iolab.studies.sources.pool_kstats:ObjsetSource",
        "zpool-iostat": "iolab.studies.sources.zpool_iostat:ZpoolIostatSource",
        "zpool-latency": "iolab.studies.sources.zpool_iostat:ZpoolLatencySource",
        "zpool-sizes": "iolab.studies.sources.zpool_iostat:ZpoolSizesSource",
        "block": "iolab.studies.sources.block:BlockSource",
        "syscall": "iolab.studies.sources.syscall:SyscallSource",
        "nfs": "iolab.studies.sources.nfs:NfsSource",
        "counters": "iolab.studies.sources.recorded_counters:RecordedCounters",
    },
    "renderer": {
        "text": "iolab.studies.compare.render.text:TextRenderer",
        "csv": "iolab.studies.compare.render.csv:CsvRenderer",
        "json": "iolab.studies.compare.render.json:JsonRenderer",
        "markdown": "iolab.studies.compare.render.markdown:MarkdownRenderer",
        "benchstat": "iolab.studies.compare.render.benchstat:BenchstatRenderer",
    },
}
"""Kind, then name, to `module:class`. Order matters where members are tried in turn (formats,
gates)."""

_SETS = "counter-set"
"""Each of its members is a format as well, and a source: `iolab.studies.sources.counters.source_of` makes
that of it."""


def kinds() -> list[str]:
    """Kinds of plugins."""
    return list(BUILT_IN)


def built_in(kind: str) -> list[str]:
    """Names of a kind that iolab itself brings, in their order."""
    return [*BUILT_IN[kind], *(BUILT_IN[_SETS] if kind in ("format", "source") else ())]


def names(kind: str) -> list[str]:
    """Names of a kind: built-in, then third parties'; counter sets are formats and sources too."""
    added = [
        point.name
        for group in ((kind, _SETS) if kind in ("format", "source") else (kind,))
        for point in _entry_points()[group]
    ]
    return list(dict.fromkeys([*built_in(kind), *added]))


def load(kind: str, name: str) -> Any:
    """The class of that kind and name.

    Raises UsageError with a close match and all names, PluginError if a third party's class can't be
    loaded.
    """
    path = BUILT_IN[kind].get(name)
    if path is not None:
        return _import(path)
    for point in _entry_points()[kind]:
        if point.name == name:
            return _load_entry_point(kind, point)
    if kind in ("format", "source") and name in names(_SETS):
        counter_set = load(_SETS, name)
        return (
            counter_set
            if kind == "format"
            else importlib.import_module("iolab.studies.sources.counters").source_of(counter_set)
        )
    available = names(kind)
    near = difflib.get_close_matches(name, available, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(f"unknown {kind} '{name}'", hint=f"{guess}there are: {', '.join(available)}")


@cache
def _import(path: str) -> Any:
    """The class `module:class`. Cached, since each run and file uses gates and formats."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def load_all(kind: str) -> list[Any]:
    """Every class of a kind, in the order of `names`: the built-in ones, then third parties'."""
    return [load(kind, name) for name in names(kind)]


def summary(kind: str, name: str) -> str:
    """The first paragraph of a plugin's docstring, on one line."""
    return " ".join((load(kind, name).__doc__ or "").strip().partition("\n\n")[0].split())


def third_parties() -> list[str]:
    """The plugins that installed packages add, one line each with the package's version: what is
    derived depends on them."""
    return [
        f"{kind} {point.name} {point.value} {_package(point)}"
        for kind in BUILT_IN
        for point in _entry_points()[kind]
    ]


def _load_entry_point(kind: str, point: metadata.EntryPoint) -> Any:
    try:
        plugin = point.load()
    except Exception as error:  # whatever another package raises while it is imported
        raise PluginError(
            f"the {kind} '{point.name}' of {_package(point)} can't be loaded: {type(error).__name__}: {error}",
            where=point.value,
            hint="update or uninstall that package",
        ) from error
    if getattr(plugin, "name", None) != point.name:
        raise PluginError(
            f"the {kind} '{point.name}' of {_package(point)} names itself '{getattr(plugin, 'name', None)}'",
            where=point.value,
            hint="the entry point and the class must have the same name",
        )
    return plugin


def _package(point: metadata.EntryPoint) -> str:
    return (
        f"{point.dist.name} {point.dist.version}"
        if point.dist is not None
        else "an unknown package"
    )


@cache
def _entry_points() -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    """Entry points by kind, of names that aren't built in, by name. One search for all kinds, as it
    reads every installed package."""
    points = metadata.entry_points()
    return {
        kind: tuple(
            sorted(
                (
                    point
                    for point in points.select(group=f"iolab.{kind}")
                    if point.name not in built_ins
                ),
                key=lambda point: point.name,
            )
        )
        for kind, built_ins in BUILT_IN.items()
    }
