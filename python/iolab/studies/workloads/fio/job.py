# SPDX-License-Identifier: Apache-2.0
"""The job file of one run: a workload's sections with what depends on the place and what iolab
needs to measure them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from iolab.base.errors import RunError
from iolab.hosts.base.host import Place

from ..base import StartTime
from .ios import log_options
from .jobfile import Section
from .options import LAYOUT_BLOCK, SMALL_BLOCK, Scalar, largest_block, switched_on, synchronous
from .sections import Resolved
from .sizes import in_bytes
from .steps import add_times, duration, shares

JOB_FILE = "job.fio"
OUTPUT_FILE = "fio.json"
LAYOUT_FILE = "layout.fio"
LAYOUT_OUTPUT = "layout.txt"
LOG_PREFIX = "fio"
"""Logs are `fio_bw.log` and `fio_iops.log`; of a section of several `fio-<its name>_bw.log`."""
SHORTEST_LOGGED = 2.0
"""Seconds below which a run has no per-second logs: fio often ends before it has written a job's
last second."""
_NO_LATENCY = ("disable_lat", "disable_clat", "gtod_reduce")
"""Options that leave a log of latencies empty."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
STEP_LOG_MSEC = 250
"""A rising load is logged more finely, so that little of a step is lost at its borders."""


def job_sections(
    resolved: Resolved,
    place: Place,
    *,
    rising: str = "",
    logs: bool = True,
    create_only: bool = False,
) -> list[Section]:
    """All sections, complete; RunError where the job doesn't fit the place.

    Args:
        rising: `devices` where each section adds devices of the place. create_only: lay files out
        and end.
    """
    sections = list(resolved.sections)
    if resolved.steps and not create_only:
        sections = add_times(sections, resolved.steps, apart=resolved.apart, ramp=resolved.ramp)
    places = _places(resolved, place, rising)
    result: list[Section] = []
    for section, own in zip(sections, places, strict=True):
        options = {**own, **_length(resolved), **section.options}
        if create_only:
            options = {**_in_large_blocks(options), "create_only": 1}
        if logs and (resolved.log_ios or resolved.runtime >= SHORTEST_LOGGED):
            options = {
                **options,
                **_logs(resolved, section, several=len(sections) > 1),
                **section.options,
            }
        if len(sections) > 1:
            options = {"new_group": 1, **options} if result else options
        if place.kind == "device":
            options = {**options, **own}
        if not resolved.job_file:
            options = in_bytes(options)
        result.append(replace(section, options=options))
    return result


def starting_at(sections: Sequence[Section], start: StartTime) -> list[Section]:
    """Sections with jobs that wait until a time once they are ready to do I/O.

    fio runs `exec_prerun` once a job has its memory and files, right before it starts its clock
    (backend.c, thread_main). The text has no semicolon, which would begin a comment. RunError if the
    name of a section is no plain word: fio makes a shell's file name of it.
    """
    odd = [section.name for section in sections if not _PLAIN_NAME.fullmatch(section.name)]
    if odd:
        raise RunError(
            f"section '{odd[0]}' of the job file cannot start together with that of other clients",
            hint="name it with letters, digits, '.', '_' and '-' only",
        )
    seconds = f"({start.time_ns}-__import__('time').time_ns())/1e9"
    wait = f"{start.python} -ISc \"__import__('time').sleep(max(0,{seconds}))\""
    return [
        replace(section, options={**section.options, "exec_prerun": wait}) for section in sections
    ]


def _in_large_blocks(options: dict[str, Scalar]) -> dict[str, Scalar]:
    """Options by which files are written out in larger blocks than a load of small ones has."""
    if largest_block(options) >= SMALL_BLOCK:
        return options
    size, block = str(in_bytes(options).get("size", "")), LAYOUT_BLOCK
    if size.isdecimal() and 0 < int(size) < LAYOUT_BLOCK:
        # fio refuses a block that is larger than the file
        block = int(size) - int(size) % SMALL_BLOCK or int(size)
    return {
        **{
            name: value
            for name, value in options.items()
            if name not in ("bs", "ba", "bsrange", "bssplit")
        },
        "bs": block,
    }


def _length(resolved: Resolved) -> dict[str, Scalar]:
    own: dict[str, Scalar] = {"runtime": duration(resolved.runtime)}
    if resolved.time_based:
        own["time_based"] = 1
    own["group_reporting"] = 1
    if resolved.ramp and not resolved.steps:
        own["ramp_time"] = duration(resolved.ramp)
    return own


def _logs(resolved: Resolved, section: Section, *, several: bool) -> dict[str, Scalar]:
    """One file per kind over all jobs of the section, stamped with the wall clock; with `log_ios`,
    one per job of every I/O."""
    prefix = (
        f"{LOG_PREFIX}-{''.join(char if char.isalnum() else '-' for char in section.name)}"
        if several
        else LOG_PREFIX
    )
    if resolved.log_ios:
        return log_options(section, prefix)
    own: dict[str, Scalar] = {
        "write_bw_log": prefix,
        "write_iops_log": prefix,
        "log_unix_epoch": 1,
        "per_job_logs": 0,
        "log_avg_msec": STEP_LOG_MSEC if resolved.steps else 1000,
    }
    if not any(switched_on(section.options, name) for name in _NO_LATENCY):
        own["write_lat_log"] = prefix
        if synchronous(section.options):
            own["disable_slat"] = 1  # such engines submit nothing, and the log of it would be empty
    return own


def _places(resolved: Resolved, place: Place, rising: str) -> list[dict[str, Scalar]]:
    """Where each section works. A bare colon separates directories, so one in a name gets a
    backslash."""
    count = len(resolved.sections)
    if place.kind == "device":
        if rising:
            return [{"filename": ":".join(share)} for share in _device_shares(resolved, place)]
        return [{"filename": place.path}] * count
    if rising:
        raise RunError(
            "workload.steps raises devices, and the target is a directory",
            hint="use a target of kind 'device'",
        )
    for section in resolved.sections:
        if str(section.options.get("size", "")).endswith("%"):
            raise RunError(
                f"size={section.options['size']} is a share of a device, and the target is a directory",
                hint='write a size in bytes, such as size = "1g"',
            )
    return [{"directory": place.path.replace("\\", "\\\\").replace(":", "\\:")}] * count


def _device_shares(resolved: Resolved, place: Place) -> Sequence[tuple[str, ...]]:
    devices = place.path.split(":")
    shares_of_devices = shares(resolved.sections, [step.level for step in resolved.steps], devices)
    if shares_of_devices is None:
        highest = max(int(step.level) for step in resolved.steps)
        raise RunError(
            f"workload.steps goes up to {highest} devices, the target has {len(devices)}",
            hint="give the target more devices, or leave the highest levels out",
        )
    return shares_of_devices
