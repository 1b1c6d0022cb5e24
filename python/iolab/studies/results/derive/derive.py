# SPDX-License-Identifier: Apache-2.0
"""From evidence to numbers: the only road. Files of one run in, observations, verdict, series and
histograms out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from iolab.base import registry
from iolab.base.errors import FormatError
from iolab.base.verdict import Verdict
from iolab.formats.core.tables import DeviceSamples, DeviceTable, FioLogTable, FioOutput, HostTable
from iolab.formats.detect import detect
from iolab.formats.fio.groups import window_of
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import join_processes

from ..evidence.clients import client_files, client_of, clients_of
from ..evidence.files import (
    OWN_FILES,
    PASSES,
    PLAN_FILE,
    holds_numbers,
    measured_files,
    missing_files,
    read_environment,
    read_file,
    read_io_log,
)
from ..evidence.model import Derived, Observation, RunPlan
from ..facts import device_choice, device_metrics, host_metrics, target_metrics
from ..facts.load_series import load_series
from ..facts.run_facts import DamagedFile, Monitor, RunFacts
from ..facts.series import count, cut, device_series
from ..gates.base import judge
from ..gates.stall import moved_series, stalls
from . import fio_metrics
from .clients import ClientTables
from .sections import Section, entries_of, find_section, own_logs, processes_of
from .steps import pool_run

MOST_PASSES = 1000
"""The largest number of passes of a study."""
RESULT = "fio.json"
"""Name of the result of a pass."""
_RESULTS = ("fio-json", "fio-terse")
"""Formats of the load's own numbers; all other files are auxiliary."""
_FINEST = "diskstats.log"
"""The kernel's own counters are finer than what iostat prints of them: this file wins where both
know a device."""


_FIO_LOG = re.compile(r"_(bw|iops|lat|clat|slat)(?:\.\d+)?\.log$")


@dataclass
class _Read:
    """Tables of a run's files, by kind, and the files that failed."""

    fio: FioOutput | None = None
    fio_file: str = ""
    processes: dict[str, FioOutput] = field(default_factory=dict)
    of_clients: ClientTables = field(default_factory=ClientTables)
    devices: dict[str, DeviceSamples] = field(default_factory=dict)
    device_files: dict[str, str] = field(default_factory=dict)
    host: dict[str, HostTable] = field(default_factory=dict)
    host_files: dict[str, str] = field(default_factory=dict)
    watched: list[tuple[str, str, DeviceSamples | HostTable]] = field(default_factory=list)
    monitor_files: list[str] = field(default_factory=list)
    logs: dict[str, FioLogTable] = field(default_factory=dict)
    damaged: list[DamagedFile] = field(default_factory=list)
    altered: list[DamagedFile] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)


def derive(
    run_dir: Path,
    plan: RunPlan,
    *,
    reference: Mapping[str, str] | None = None,
    outputs: Mapping[str, FioOutput] | None = None,
    builds: Sequence[Mapping[str, Any]] = (),
) -> Derived:
    """Everything that a run's evidence says.

    Args:
        run_dir: the run's directory; every file in it is tried by content.
        plan: its `run.json`.
        reference: environment of the first run on the same host, to which this one's is held.
        builds: `build` of `target.json` or `run.json` of a run of each build that the study requests.
        outputs: fio results that were read already, by the SHA-256 of their bytes: such a file is
        checked, and not read a second time.

    A damaged file costs this run (INVALID, with the reason), never more; nothing here raises for
    bad evidence.
    """
    read = _read_all(run_dir, plan, outputs or {})
    _fill_intervals(read, plan)
    section = Section() if read.fio is None else find_section(read.fio, plan)
    entries: tuple[int, ...] = ()
    if read.fio is not None and section.own is not None:
        entries = entries_of(read.fio, section.own)
        plan = _keep_section(read, section, plan)
    elif section.problem:
        read.damaged.append(DamagedFile(read.fio_file, section.problem))
        read.fio = None
    apart = (
        tuple(group.name for group in section.groups)
        if section.own is None and len(section.groups) > 1
        else ()
    )
    every = {name: cut(samples, plan.window) for name, samples in read.devices.items()}
    choice = device_choice.choose(every, plan)
    devices = choice.counted
    read.assumptions += choice.notes
    series = device_series(devices, plan.window, every)
    scale, assumed = latency_scale(plan, read.fio, read.logs)
    read.assumptions += [assumed] if assumed is not None else []
    series.update(load_series(read.logs, plan.window, latency_scale=scale))
    host = {kind: cut(table, plan.window) for kind, table in read.host.items()}
    series.update(host_metrics.host_series(host, plan.window))
    recorded = read_environment(run_dir, plan.files)
    environment = {
        **({} if read.fio is None or read.fio.version is None else {"fio": read.fio.version}),
        **recorded.get("fingerprint", {}),
    }
    pooled = (
        pool_run(read.fio.jobs, plan)
        if read.fio is not None and read.fio.jobs and not apart
        else None
    )
    pass_seconds = _pass_seconds(run_dir, plan, read)
    facts = RunFacts(
        plan=plan,
        fio=read.fio,
        fio_file=read.fio_file,
        pooled=pooled,
        sections=apart,
        entries=entries,
        processes=len(read.processes),
        is_over_time=isinstance(plan.extra.get("steps"), list),
        devices=devices,
        monitor_files=tuple(read.monitor_files),
        monitors=_monitors(read, plan),
        host_busy=host_metrics.mean_busy(host),
        series=series,
        damaged=tuple(read.damaged),
        environment=environment,
        reference=reference or {},
        host=_host_numbers(recorded),
        target=target_metrics.read_target(run_dir, plan.files),
        builds=builds,
        io_log=read_io_log(run_dir, plan.files),
        altered=tuple(read.altered),
        clients=read.of_clients.clients,
        pass_seconds=pass_seconds,
    )
    verdict = Verdict.of(judge(facts))
    observations = [
        *fio_metrics.observations(facts),
        *device_metrics.observations(devices, read.device_files, every),
        *_stall(facts, read),
        *host_metrics.observations(host, read.host_files),
        *target_metrics.observations(facts),
    ]
    return Derived(
        tuple(observations),
        verdict,
        tuple(series.values()),
        tuple(fio_metrics.histograms(facts)),
        tuple(dict.fromkeys(read.assumptions)),
        environment,
        facts.options,
        _window(read.fio, section, plan),
        str(recorded.get("facts", {}).get("boot_id") or ""),
    )


def _pass_seconds(run_dir: Path, plan: RunPlan, read: _Read) -> tuple[float, ...]:
    """How long each pass of reading before the last one took; a damaged one is noted in `read`."""
    count = plan.extra.get(PASSES, 1)
    if not isinstance(count, int) or plan.status != "finished":
        return ()
    seconds = []
    for number in range(1, min(count, MOST_PASSES)):
        file = f"{PASSES}/{number:03}/{RESULT}"
        try:
            output = FioJson().read(read_file(run_dir, file, plan.files), file)
        except FormatError as error:
            read.damaged.append(DamagedFile(file, error.message))
            continue
        times = [job.directions["read"].runtime for job in output.jobs if "read" in job.directions]
        if not times:
            read.damaged.append(DamagedFile(file, "has no reads"))
            continue
        seconds.append(max(times))
    return tuple(seconds)


def _window(fio: FioOutput | None, section: Section, plan: RunPlan) -> tuple[int, int] | None:
    """When the load ran, in realtime nanoseconds: by the plan, else by the times in fio's
    result."""
    if plan.window is not None or fio is None:
        return plan.window
    window = section.own.window if section.is_part and section.own is not None else None
    if window is None and section.groups and fio.jobs:
        window = window_of(fio, section.groups)
    return window if window is not None or fio.end_ns is None else (fio.end_ns, fio.end_ns)


def _read_all(run_dir: Path, plan: RunPlan, outputs: Mapping[str, FioOutput]) -> _Read:
    read = _Read()
    missing = missing_files(run_dir, plan.files)
    for own in sorted(OWN_FILES & (plan.files or {}).keys() - set(missing)):
        try:
            read_file(run_dir, own, plan.files)
        except FormatError as error:
            _note_altered(read, own, error.message)
    for missing_name in missing:
        _note_altered(read, missing_name, "it is missing")
    try:
        clients = read.of_clients.clients = clients_of(plan)
    except FormatError as error:
        clients = ()
        read.damaged.append(DamagedFile(PLAN_FILE, error.message))
    files = [path.name for path in measured_files(run_dir)]
    for file in chain(files, *(client_files(run_dir, client.name) for client in clients)):
        try:
            data = read_file(run_dir, file, plan.files)
        except FormatError as error:
            _note_altered(
                read,
                file,
                error.message,
                is_evidence=plan.files is None or file in plan.files,
            )
            continue
        if not data and _may_be_empty(file, plan):
            read.assumptions.append(f"{file} is empty: nothing was expected in it")
            continue
        output = outputs.get(plan.files[file].sha256) if plan.files is not None else None
        if output is not None:
            _take(read, file, output, plan)
            continue
        name = detect(data, file)
        # a run made here has its result as JSON; normal output is that of laying out or preparing files
        if name is None or (name == "fio-text" and plan.status != "imported"):
            continue
        try:
            table = registry.load("format", name)().read(data, file)
        except FormatError as error:
            if _is_of_others(file, plan):
                read.assumptions.append(f"{file} is left out: {error.message}")
            else:
                is_auxiliary = name not in _RESULTS
                read.damaged.append(DamagedFile(file, error.message, is_auxiliary))
            continue
        _take(read, file, table, plan)
    processes = processes_of(plan)
    if parts := [file for file in processes if file in read.processes]:
        read.fio = join_processes([read.processes[file] for file in parts])
        read.fio_file = parts[0]
        read.assumptions += read.fio.assumptions
    if clients:
        read.fio, missing_results = read.of_clients.join(read.damaged)
        read.fio_file = next(iter(read.of_clients.files.values()), "")
        read.damaged += missing_results if plan.status == "finished" else []
        read.assumptions += read.of_clients.assumptions
        read.assumptions += () if read.fio is None else read.fio.assumptions
    return read


def _is_of_others(file: str, plan: RunPlan) -> bool:
    """Whether a file is only next to the result of an imported run, which isn't worth less where
    that file can't be read."""
    source = plan.extra.get("imported_from")
    return (
        plan.status == "imported"
        and isinstance(source, str)
        and file != PurePosixPath(source).name
        and file not in processes_of(plan)
    )


def _note_altered(read: _Read, file: str, reason: str, *, is_evidence: bool = True) -> None:
    """A file that is another than the run left is not read. Where numbers may have come from it,
    the run has none that count."""
    (read.damaged if is_evidence and holds_numbers(file) else read.altered).append(
        DamagedFile(file, reason)
    )


def _may_be_empty(file: str, plan: RunPlan) -> bool:
    """A log of submissions by an engine that submits nothing, or any log over time of a load that
    may end within a second."""
    match = _FIO_LOG.search(file)
    return match is not None and (match[1] == "slat" or plan.extra.get("time_based") is False)


def _take(read: _Read, file: str, table: Any, plan: RunPlan) -> None:
    client = client_of(file)
    if client is not None:
        read.of_clients.take(client, file, table, read.logs)
    elif isinstance(table, FioOutput) and file in processes_of(plan):
        read.processes[file] = table
    elif isinstance(table, FioOutput):
        if read.fio is None:
            read.fio, read.fio_file = table, file
        else:
            read.assumptions.append(f"{file} is left out: {read.fio_file} is the run's result")
            return
        read.assumptions += table.assumptions
    elif isinstance(table, DeviceTable):
        if not table.devices:
            read.assumptions += [f"{file}: {text}" for text in table.assumptions]
            return
        read.monitor_files.append(file)
        read.assumptions += table.assumptions
        _note_damage(read, file, table)
        for name, samples in table.devices.items():
            read.watched.append((file, name, samples))
            if read.device_files.get(name) != _FINEST:
                read.devices[name] = samples
                read.device_files[name] = file
    elif isinstance(table, HostTable):
        read.monitor_files.append(file)
        _note_damage(read, file, table)
        read.watched.append((file, table.kind, table))
        read.host[table.kind] = table
        read.host_files[table.kind] = file
    elif isinstance(table, FioLogTable):
        read.logs[file] = table


def _keep_section(read: _Read, section: Section, plan: RunPlan) -> RunPlan:
    """Leave in `read` what is the chosen section's; returns the plan with the section's own window,
    None where it isn't known.

    What was sampled without a clock, or while the running section is unknown, is not an
    observation.
    """
    assert read.fio is not None
    assert section.own is not None
    if not section.is_part:
        return plan
    window = section.own.window
    own, unknown = own_logs(read.logs, read.fio, section)
    if unknown:
        read.assumptions.append(
            f"{_files(unknown)} left out: of which section of {read.fio_file} isn't known"
        )
    read.logs = {file: read.logs[file] for file in own}
    read.fio = replace(
        read.fio,
        jobs=section.own.jobs,
        all_clients=None,
        end_ns=None if window is None else window[1],
    )
    read.assumptions += section.own.assumptions
    loose = {file for file, _, samples in read.watched if window is None or samples.time_ns is None}
    if loose:
        read.assumptions.append(
            f"{_files(sorted(loose))} left out: when section '{section.own.name}' ran isn't known"
        )
        read.watched = [device for device in read.watched if device[0] not in loose]
        read.devices = {
            name: samples
            for name, samples in read.devices.items()
            if read.device_files[name] not in loose
        }
        read.host = {
            kind: table for kind, table in read.host.items() if read.host_files[kind] not in loose
        }
    return replace(plan, window=window)


def _files(names: Sequence[str]) -> str:
    return (
        f"{names[0]} is" if len(names) == 1 else f"{names[0]} and {len(names) - 1} more files are"
    )


def _fill_intervals(read: _Read, plan: RunPlan) -> None:
    """Give the devices of files without time stamps the time between reports; those of runs made
    here have the source's own."""
    if plan.extra.get("sources"):
        return
    lengths = device_choice.load_lengths(read.fio)
    for place, (file, name, samples) in enumerate(read.watched):
        if isinstance(samples, DeviceSamples) and not samples.has_interval:
            filled, words = device_choice.with_interval(samples, lengths)
            read.watched[place] = (file, name, filled)
            if read.devices.get(name) is samples:
                read.devices[name] = filled
            read.assumptions.append(words)


def _note_damage(read: _Read, file: str, table: DeviceTable | HostTable) -> None:
    if table.damaged:
        line, reason = table.damaged[0]
        reason = f"line {line}: {reason} ({len(table.damaged)} such lines); the rest counts"
        read.damaged.append(DamagedFile(file, reason, is_auxiliary=True))


def _monitors(read: _Read, plan: RunPlan) -> tuple[Monitor, ...]:
    """What each monitor's file holds inside the window."""
    made_here = bool(plan.extra.get("sources"))
    return tuple(
        Monitor(
            file,
            what,
            count(samples, plan.window),
            None
            if isinstance(samples, DeviceSamples) and not samples.has_interval and not made_here
            else samples.interval,
        )
        for file, what, samples in read.watched
    )


def _stall(facts: RunFacts, read: _Read) -> list[Observation]:
    """`stall.seconds`: seconds in stalls of the series that the gate looks at; absent where nothing
    was watched."""
    moved = moved_series(facts)
    if moved is None or not len(moved[0].values) or not (moved[0].values > 0).any():
        return []
    seconds = sum((length for _, length in stalls(moved[0])), 0.0)
    file = next(
        iter(read.device_files.values() if moved[0].name.startswith("device.") else read.logs), ""
    )
    return [Observation("stall.seconds", seconds, "s", file, moved[0].name)]


def _host_numbers(environment: Mapping[str, Any]) -> dict[str, float]:
    facts = environment.get("facts", {})
    return {
        name: float(facts[name])
        for name in ("memory_bytes", "cpus")
        if isinstance(facts.get(name), int | float)
    }


# The unit of fio's latency logs: microseconds up to fio 2.21, nanoseconds since 2.99; a log itself
# doesn't say.

UNIT = "log_latency_unit"
"""Key of a plan's `extra` that gives the unit: `us` or `ns`."""

UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6}

_LATENCY = re.compile(r"_(?:lat|clat|slat)(?:\.\d+)?\.log$")
_VERSION = re.compile(r"fio[- ](\d+)\.(\d+)")
_NO_NANOSECONDS = 150.0
"""Values with a lower median are not nanoseconds: no system call is that fast."""


def latency_scale(
    plan: RunPlan, fio: FioOutput | None, logs: Mapping[str, FioLogTable]
) -> tuple[float, str | None]:
    """Seconds per unit of a run's latency logs, and what had to be assumed for it.

    Known from the plan, else from the version of fio in its result or the result's own fields, else
    from columns that only fio since
    3.19 writes. What the logs' values can't be decides next; without all of that they are taken as
    nanoseconds, and that is said.
    """
    stated_scale = UNITS.get(str(plan.extra.get(UNIT, "")))
    scale = stated_scale if stated_scale is not None else _of_result(fio)
    tables = [table for file, table in logs.items() if _LATENCY.search(file) and len(table.value)]
    if scale is not None or not tables:
        return scale or 1e-9, None
    if any(table.has_priority for table in tables):
        return 1e-9, None
    if _median(tables) < _NO_NANOSECONDS:
        return (
            1e-6,
            "latency logs are taken as us, as fio before 3.0 wrote them: their values are too small for ns",
        )
    return 1e-9, (
        "latency logs are taken as ns, as fio writes them since 3.0: nothing says which version wrote these "
        "(before 3.0: us, import with --log-unit us)"
    )


def _of_result(fio: FioOutput | None) -> float | None:
    if fio is None:
        return None
    version = _VERSION.match(fio.version or "")
    if version is not None:
        return 1e-9 if (int(version[1]), int(version[2])) >= (2, 99) else 1e-6
    directions = (direction for job in fio.jobs for direction in job.directions.values())
    latency = next(
        (latency for direction in directions for latency in direction.latencies.values()), None
    )
    # terse output is in microseconds whatever the version; in JSON a name without _ns is of fio
    # before 2.99
    return 1e-9 if latency is not None and latency.source_field.endswith("_ns") else None


def _median(tables: Iterable[FioLogTable]) -> float:
    return float(np.median(np.concatenate([table.value for table in tables])))
