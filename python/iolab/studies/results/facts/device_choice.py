# SPDX-License-Identifier: Apache-2.0
"""Which of the devices in a run's files its sums hold, and the time between readings that a file
doesn't say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iolab.formats.core.device_names import PATH, choose_devices, is_multipath
from iolab.formats.core.tables import DeviceSamples, FioOutput

from ..evidence.model import RunPlan

_NEAR = 0.15
"""How far the run's length over the number of reports may be from whole seconds, as a share of
them."""

_SAME = 0.02
"""How far the bytes of paths may be from those of their multipath devices, as a share. iostat
rounds, and requests under way at the ends count on one side only."""

_LISTED = 8
"""Devices that words name before they count the rest."""


@dataclass(frozen=True)
class Devices:
    """Devices of a run: those that sums hold, and the words for what was left out."""

    counted: Mapping[str, DeviceSamples]
    notes: tuple[str, ...] = ()


def choose(devices: Mapping[str, DeviceSamples], plan: RunPlan) -> Devices:
    """The devices that the sums of a run hold: those that its plan names (the target's, or what an
    import was given). Else those that `formats.device_names` counts by their names.

    Where devices of multipath tools moved the same bytes as all disks, the disks are their paths.
    The devices count instead, each of which is busy once.
    """
    requested = [str(name) for name in plan.extra.get("devices") or ()]
    named = {name: devices[name] for name in devices if name in requested}
    if not devices or (requested and len(named) == len(devices)):
        return Devices(devices)
    if named:
        missing = [name for name in requested if name not in devices]
        return Devices(
            named,
            (
                _words(
                    list(named), [name for name in devices if name not in named], "not requested"
                ),
                *((f"no file contains {_few(missing)}",) if missing else ()),
            ),
        )
    if requested and plan.status == "imported":
        return Devices(
            {},
            (
                f"no file contains {_few(requested)}: there {'are' if len(devices) > 1 else 'is'} {_few(list(devices))}",
            ),
        )
    idle = [name for name, samples in devices.items() if _moved(samples) == (0.0, 0.0)]
    choice = choose_devices(devices, are_kernel_names=False, idle=idle)
    counted = {name: devices[name] for name in choice.counted}
    left_out = choice.left_out
    multipath = {name: devices[name] for name in devices if is_multipath(name)}
    if multipath and not multipath.keys() & counted.keys() and _move_alike(multipath, counted):
        left_out = {**choice.left_out, **dict.fromkeys(counted, PATH)}
        left_out = {name: why for name, why in left_out.items() if name not in multipath}
        counted = multipath
    reasons = dict.fromkeys(left_out.values())
    return Devices(
        counted,
        tuple(
            _words(
                list(counted),
                [name for name, why in left_out.items() if why == reason],
                reason,
            )
            for reason in reasons
        ),
    )


def _moved(samples: DeviceSamples) -> tuple[float, float]:
    """Bytes per second read and written, mean over the samples; 0 where unknown."""
    means = samples.means
    return means.get("read.bw", 0.0), means.get("write.bw", 0.0)


def _move_alike(first: Mapping[str, DeviceSamples], second: Mapping[str, DeviceSamples]) -> bool:
    """Whether two sets of devices read and wrote the same bytes, and some at all."""
    sums = [
        tuple(map(sum, zip(*map(_moved, devices.values()), strict=True)))
        for devices in (first, second)
    ]
    return sum(sums[0]) > 0 and all(
        abs(one - other) <= _SAME * max(one, other) for one, other in zip(*sums, strict=True)
    )


def with_interval(samples: DeviceSamples, lengths: Sequence[float]) -> tuple[DeviceSamples, str]:
    """The samples with the time between them, where their file doesn't say it, and words for what
    was made of that.

    The time is the whole seconds in which a monitor of all of the load would have made as many;
    `lengths` are what the load may have taken. Where no whole number fits, the samples are as they
    were.
    """
    reports = max((len(values) for values in samples.columns.values()), default=0)
    for apart in (seconds / reports for seconds in lengths if reports):
        samples_per_interval = max(1, round(apart))
        if abs(apart - samples_per_interval) <= _NEAR * samples_per_interval:
            words = f"{samples_per_interval} s between reports without time stamps, as their number and the load's length tell"
            return replace(samples, interval=float(samples_per_interval)), words
    return (
        samples,
        "the time between reports without time stamps is unknown: series take 1 s, and the number of expected samples is not judged",
    )


def load_lengths(fio: FioOutput | None) -> tuple[float, ...]:
    """Seconds that fio's jobs took, those of its groups one after another: with their ramp, and
    without."""
    if fio is None:
        return ()
    with_ramp: dict[int | None, float] = {}
    without: dict[int | None, float] = {}
    for job in fio.jobs:
        runtime = max((direction.runtime for direction in job.directions.values()), default=0.0)
        without[job.group] = max(without.get(job.group, 0.0), runtime)
        with_ramp[job.group] = max(with_ramp.get(job.group, 0.0), job.elapsed or runtime)
    return sum(with_ramp.values()), sum(without.values())


def _words(counted: Sequence[str], left_out: Sequence[str], why: str) -> str:
    return f"sums over devices hold {_few(counted)}, and leave out {_few(left_out)}: {why}"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return f"{', '.join(names[:_LISTED])} and {more} more" if more > 0 else ", ".join(names)
