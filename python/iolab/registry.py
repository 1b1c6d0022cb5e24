"""The one door to everything that can be plugged in: targets, workloads, sources, hosts, formats, gates, renderers.

Built-ins are declared in code (as import paths, so that `--help` loads none of them); third parties come by entry
point, group `iolab.<kind>`, scanned only when a name is unknown or the kind is listed.
"""

from __future__ import annotations

import difflib
import importlib
from importlib import metadata
from typing import Any

from .errors import UsageError

BUILT_IN: dict[str, dict[str, str]] = {
    "format": {
        "fio-json": "iolab.formats.fio_json:FioJson",
        "fio-terse": "iolab.formats.fio_terse:FioTerse",
        "fio-log": "iolab.formats.fio_log:FioLog",
        "iostat-json": "iolab.formats.iostat_json:IostatJson",
        "iostat-text": "iolab.formats.iostat_text:IostatText",
        "iostat-illumos": "iolab.formats.iostat_illumos:IostatIllumos",
        "diskstats": "iolab.formats.diskstats:DiskstatsLog",
        "cpu": "iolab.formats.cpu_log:CpuLog",
        "memory": "iolab.formats.memory_log:MemoryLog",
        "vmstat": "iolab.formats.vmstat_log:VmstatLog",
        "pressure": "iolab.formats.pressure_log:PressureLog",
        "arcstats": "iolab.formats.kstat_log:ArcstatsLog",
        "zil": "iolab.formats.kstat_log:ZilLog",
        "dmu_tx": "iolab.formats.kstat_log:DmuTxLog",
        "dmu_tx_assign": "iolab.formats.dmu_tx_assign_log:DmuTxAssignLog",
        "txgs": "iolab.formats.txgs_log:TxgsLog",
        "objset": "iolab.formats.objset_log:ObjsetLog",
        "zpool-iostat": "iolab.formats.zpool_iostat_log:ZpoolIostatLog",
        "zpool-latency": "iolab.formats.zpool_histogram_log:ZpoolLatencyLog",
        "zpool-sizes": "iolab.formats.zpool_histogram_log:ZpoolSizesLog",
        "block": "iolab.formats.recorder_log:BlockLog",
        "syscall": "iolab.formats.recorder_log:SyscallLog",
        "counters": "iolab.formats.recorder_log:CountersLog",
        "perf-script": "iolab.formats.perf_script:PerfScript",
        "folded": "iolab.formats.folded:Folded",
    },
    "gate": {
        "evidence": "iolab.results.gates.evidence:EvidenceGate",
        "errors": "iolab.results.gates.errors:ErrorsGate",
        "job-count": "iolab.results.gates.job_count:JobCountGate",
        "runtime": "iolab.results.gates.runtime:RuntimeGate",
        "monitor-alive": "iolab.results.gates.monitor_alive:MonitorAliveGate",
        "littles-law": "iolab.results.gates.littles_law:LittlesLawGate",
        "stall": "iolab.results.gates.stall:StallGate",
        "cpu-bound": "iolab.results.gates.cpu_bound:CpuBoundGate",
        "slow-device": "iolab.results.gates.slow_device:SlowDeviceGate",
        "steady": "iolab.results.gates.steady:SteadyGate",
        "offered-rate": "iolab.results.gates.offered_rate:OfferedRateGate",
        "compression": "iolab.results.gates.compression:CompressionGate",
        "working-set": "iolab.results.gates.working_set:WorkingSetGate",
        "io-log": "iolab.results.gates.io_log:IoLogGate",
        "environment": "iolab.results.gates.environment:EnvironmentGate",
    },
    "host": {
        "local": "iolab.hosts.local:LocalHost",
        "ssh": "iolab.hosts.ssh:SshHost",
        "rig": "iolab.hosts.rig:RigHost",
    },
    "target": {
        "directory": "iolab.targets.directory:DirectoryTarget",
        "filesystem": "iolab.targets.filesystem:FilesystemTarget",
        "device": "iolab.targets.device:DeviceTarget",
        "zpool": "iolab.targets.zpool:ZpoolTarget",
    },
    "workload": {
        "fio": "iolab.workloads.fio:FioWorkload",
        "files": "iolab.workloads.files:FilesWorkload",
        "picture": "iolab.workloads.picture:PictureWorkload",
    },
    "source": {
        "diskstats": "iolab.sources.diskstats:DiskstatsSource",
        "cpu": "iolab.sources.cpu:CpuSource",
        "memory": "iolab.sources.memory:MemorySource",
        "vmstat": "iolab.sources.vmstat:VmstatSource",
        "pressure": "iolab.sources.pressure:PressureSource",
        "iostat": "iolab.sources.iostat:IostatSource",
        "arcstats": "iolab.sources.kstats:ArcstatsSource",
        "zil": "iolab.sources.kstats:ZilSource",
        "dmu_tx": "iolab.sources.kstats:DmuTxSource",
        "dmu_tx_assign": "iolab.sources.pool_kstats:DmuTxAssignSource",
        "txgs": "iolab.sources.pool_kstats:TxgsSource",
        "objset": "iolab.sources.pool_kstats:ObjsetSource",
        "zpool-iostat": "iolab.sources.zpool_iostat:ZpoolIostatSource",
        "zpool-latency": "iolab.sources.zpool_iostat:ZpoolLatencySource",
        "zpool-sizes": "iolab.sources.zpool_iostat:ZpoolSizesSource",
        "block": "iolab.sources.block:BlockSource",
        "syscall": "iolab.sources.syscall:SyscallSource",
        "counters": "iolab.sources.recorded_counters:RecordedCounters",
    },
    "renderer": {
        "text": "iolab.compare.render.text:TextRenderer",
        "csv": "iolab.compare.render.csv:CsvRenderer",
        "json": "iolab.compare.render.json:JsonRenderer",
        "markdown": "iolab.compare.render.markdown:MarkdownRenderer",
        "benchstat": "iolab.compare.render.benchstat:BenchstatRenderer",
    },
}
"""Kind, then name, to `module:class`. Order matters where members are tried in turn (formats, gates)."""


def kinds() -> list[str]:
    """What can be plugged in."""
    return list(BUILT_IN)


def names(kind: str) -> list[str]:
    """Names of a kind: the built-ins in their order, then third parties' by name."""
    third_party = sorted(point.name for point in _entry_points(kind))
    return [*BUILT_IN[kind], *(name for name in third_party if name not in BUILT_IN[kind])]


def load(kind: str, name: str) -> Any:
    """The class of that kind and name.

    Raises UsageError naming what is near and what there is.
    """
    path = BUILT_IN[kind].get(name)
    if path is not None:
        module, _, attribute = path.partition(":")
        return getattr(importlib.import_module(module), attribute)
    for point in _entry_points(kind):
        if point.name == name:
            return point.load()
    known = names(kind)
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(f"unknown {kind} '{name}'", hint=f"{guess}there are: {', '.join(known)}")


def load_all(kind: str) -> list[Any]:
    """Every built-in class of a kind, in order. Third parties' are found by name or when listed."""
    return [load(kind, name) for name in BUILT_IN[kind]]


def _entry_points(kind: str) -> list[metadata.EntryPoint]:
    return list(metadata.entry_points(group=f"iolab.{kind}"))
