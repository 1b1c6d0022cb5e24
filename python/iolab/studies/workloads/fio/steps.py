# SPDX-License-Identifier: Apache-2.0
"""A load that rises within one run: sections of a job file that begin one step after another.

More jobs (ascending `numjobs`) and more devices are added to those that run; whatever else changes,
a step is a section of its own that takes over from the one before it on the same files, within a
tenth of a second (fio looks at start delays as often).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from iolab.hosts.base.options import OptionProblem

from ..compressibility import DECIDED, data_options
from .fields import SHORTEST_STEP, StepOptions
from .jobfile import Section
from .names import KNOWN, RESERVED
from .options import Scalar, problems

DEVICES = "devices"
_SHARED_FILES = "iolab.$jobnum.$filenum"
"""Name of a job's file that is the same in every section."""


@dataclass(frozen=True)
class Step:
    """One step: seconds [start, end] of the measured window, and the level that holds in it."""

    number: int
    level: Scalar
    start: float
    end: float


@dataclass(frozen=True)
class Stepped:
    """Sections of a rising load, in the order of their steps; see `fio_sections.Resolved`."""

    sections: tuple[Section, ...]
    steps: tuple[Step, ...]
    apart: bool
    problems: list[OptionProblem] = field(default_factory=list)


def plan_steps(asked: StepOptions, sections: Sequence[Section], runtime: float | None) -> Stepped:
    """One section, raised step by step; problems are keyed as in the workload's table."""
    problem_list = _problems(asked, sections, runtime)
    every = runtime / len(asked.levels) if runtime is not None else asked.every
    if every is not None and every < SHORTEST_STEP - 1e-9:
        problem_list.append(
            OptionProblem(
                ("steps", "every"),
                f"each step would last {every:g} s",
                f"at least {SHORTEST_STEP:g} s: {SHORTEST_STEP * len(asked.levels):g} s for {len(asked.levels)} steps",
            )
        )
    if problem_list or every is None:
        return Stepped(tuple(sections), (), False, problem_list)
    steps = tuple(
        Step(number, level, (number - 1) * every, number * every)
        for number, level in enumerate(asked.levels, 1)
    )
    base = sections[0]
    adds = asked.factor in ("numjobs", DEVICES) and _ascending(asked.levels)
    sections_of_steps = []
    before = 0
    for step in steps:
        options: dict[str, Scalar] = dict(base.options)
        if adds and asked.factor == "numjobs":
            options["numjobs"], before = int(step.level) - before, int(step.level)
        elif asked.factor == "compressibility":
            options.update(data_options(float(step.level)))
        elif asked.factor != DEVICES:
            options[asked.factor] = step.level
        if not adds and not {"filename", "filename_format"} & options.keys():
            options["filename_format"] = _SHARED_FILES
        sections_of_steps.append(Section(f"step{step.number}", options))
        problem_list += [
            OptionProblem(
                ("steps", "levels"),
                f"{step.level}: {problem.key[0]} {problem.wrong}",
                problem.allowed,
            )
            for problem in problems(options)
            if problem.key[0] not in base.options
        ]
    return Stepped(tuple(sections_of_steps), steps, not adds, list(dict.fromkeys(problem_list)))


def add_times(
    sections: Sequence[Section], steps: Sequence[Step], *, apart: bool, ramp: float
) -> list[Section]:
    """The sections with when they begin and how long they run: the first, and its ramp, at once;
    the others after it."""
    timed_sections = []
    for section, step in zip(sections, steps, strict=True):
        own: dict[str, Scalar] = {
            "runtime": duration((step.end if apart else steps[-1].end) - step.start)
        }
        if step.number > 1:
            own.update({"startdelay": duration(ramp + step.start), "new_group": 1})
        elif ramp:
            own["ramp_time"] = duration(ramp)
        timed_sections.append(replace(section, options={**own, **section.options}))
    return timed_sections


def shares(
    sections: Sequence[Section], levels: Sequence[Scalar], devices: Sequence[str]
) -> list[tuple[str, ...]] | None:
    """Of steps over devices, the devices that each section adds; None where there are fewer than
    the highest level."""
    counts = [int(level) for level in levels]
    if max(counts) > len(devices):
        return None
    return [
        tuple(devices[before:count]) for before, count in zip([0, *counts], counts, strict=False)
    ][: len(sections)]


def as_data(steps: Sequence[Step], factor: str, *, apart: bool) -> list[dict[str, Any]]:
    """For `run.json`: what `results.steps` reads."""
    return [
        {
            "number": step.number,
            "levels": {factor: step.level},
            "start": step.start,
            "end": step.end,
            "sections": [f"step{step.number}"]
            if apart
            else [f"step{number}" for number in range(1, step.number + 1)],
        }
        for step in steps
    ]


def _problems(
    asked: StepOptions, sections: Sequence[Section], runtime: float | None
) -> list[OptionProblem]:
    factor, levels = asked.factor, asked.levels
    problem_list = []
    if len(sections) != 1:
        problem_list.append(
            OptionProblem(
                ("steps",),
                f"the job file has {len(sections)} sections",
                'choose one with section = "..."',
            )
        )
    if runtime is None and asked.every is None:
        problem_list.append(
            OptionProblem(
                ("steps", "every"), "is missing", 'length of a step, such as every = "10s"'
            )
        )
    if factor in RESERVED or (factor not in KNOWN and factor not in (DEVICES, "compressibility")):
        problem_list.append(
            OptionProblem(
                ("steps", "factor"),
                f"'{factor}' can't be raised",
                "numjobs, devices, rate_iops, iodepth, bs, ...",
            )
        )
    fixed_options: Mapping[str, tuple[str, ...]] = {
        "compressibility": DECIDED,
        DEVICES: ("filename",),
    }
    for section in sections:
        problem_list += [
            OptionProblem(
                ("options", name),
                "is set as well as raised by workload.steps",
                "leave one of them out",
            )
            for name in fixed_options.get(factor, (factor,))
            if name in section.options
        ]
    counted = factor in ("numjobs", DEVICES)
    if counted and not all(type(level) is int and level > 0 for level in levels):
        problem_list.append(
            OptionProblem(
                ("steps", "levels"),
                f"{levels} are not numbers of {'jobs' if factor == 'numjobs' else 'devices'}",
                "whole numbers from 1",
            )
        )
    elif factor == DEVICES and not _ascending(levels):
        problem_list.append(
            OptionProblem(
                ("steps", "levels"), f"{levels} don't ascend", "devices are added, never taken away"
            )
        )
    if factor == "compressibility" and not all(
        isinstance(level, int | float) and 0 <= level <= 100 for level in levels
    ):
        problem_list.append(
            OptionProblem(("steps", "levels"), f"{levels} are not shares", "per cent, 0 to 100")
        )
    return problem_list


def _ascending(levels: Sequence[Scalar]) -> bool:
    numbers = [level for level in levels if isinstance(level, int | float)]
    return len(numbers) == len(levels) and all(
        before < after for before, after in pairwise(numbers)
    )


def duration(seconds: float) -> str:
    """A duration in the largest of fio's units that holds it exactly."""
    micros = round(seconds * 1e6)
    for unit, scale in (("s", 1_000_000), ("ms", 1000)):
        if micros % scale == 0:
            return f"{micros // scale}{unit}"
    return f"{micros}us"
