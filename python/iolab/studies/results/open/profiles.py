# SPDX-License-Identifier: Apache-2.0
"""Profiles of runs: from the folded stacks that lie with the evidence to values. The only road from
them to numbers.

Runs that a study makes for profiles lie under `profiles/`, apart from the measured ones; imported
trees may have stacks among their files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from iolab.base.errors import FormatError
from iolab.formats.detect import read
from iolab.formats.profiles.stacks import KERNEL, StackTable

from ..evidence.files import (
    known_plan,
    profile_directories,
    read_document,
    read_file,
    run_directories,
)
from ..evidence.model import Factors, RunPlan
from .multi_host import parts_of

STACKS_FILE = "profile.folded"
FACTS_FILE = "profile.json"
SCHEMA = 1

_FOREIGN = re.compile(r"(?:^|[^a-z])(?:folded|stacks|perf\.?-?script)(?:$|[^a-z])")
"""What names of other people's files with stacks have in them."""

_IDLE_PROCESS = re.compile(r"swapper(?:/\d+)?")
_IDLE = re.compile(
    r"(?:[a-z_]*_)?(?:default_idle(?:_call)?|safe_halt|halt|idle_enter|cpu_idle|cpuidle_enter(?:_state)?|do_idle|poll_idle"
    r"|intel_idle[a-z_]*|mwait_idle[a-z_]*|mwait|cpu_startup_entry|cpu_do_idle|cpuidle_idle_call|idle_call)(?:\.[a-z]+\.\d+)?"
)
"""Innermost functions of a CPU that has nothing to do; an interrupt on top of them is work."""


@dataclass(frozen=True)
class Profile:
    """What the CPUs of a host did during one run, by samples.

    Attributes:
        run: name of the run, `<host>/<name>` where results are of several; variant, factors, host:
        as of any run. stacks: folded stack to samples, see `formats.stacks`.
        frequency: requested samples per second and CPU; seconds: how long; cpus: of the host; each
        None where unknown. event: what was sampled; tool: perf's version; commands: argument lists
        that made it, in order. lost: chunks of samples that perf lost; damaged: samples that
        couldn't be read. evidence: the run's directory; file: in it, with the stacks.
    """

    run: str
    variant: str
    factors: Factors
    stacks: Mapping[str, int]
    frequency: int | None = None
    seconds: float | None = None
    cpus: int | None = None
    event: str = ""
    tool: str = ""
    host: str = "local"
    commands: tuple[tuple[str, ...], ...] = ()
    lost: int = 0
    damaged: int = 0
    evidence: Path = field(default_factory=Path)
    file: str = STACKS_FILE

    @cached_property
    def samples(self) -> int:
        """All of them."""
        return sum(self.stacks.values())

    @cached_property
    def busy(self) -> Mapping[str, int]:
        """The stacks of CPUs that had something to do."""
        return {stack: count for stack, count in self.stacks.items() if not is_idle(stack)}

    @cached_property
    def busy_samples(self) -> int:
        """Samples of CPUs that had something to do."""
        return sum(self.busy.values())

    @cached_property
    def kernel_samples(self) -> int:
        """Samples of CPUs that had something to do, in the kernel."""
        return sum(count for stack, count in self.busy.items() if stack.endswith(KERNEL))

    @property
    def possible(self) -> int | None:
        """Samples that all CPUs would have given at that frequency; None where that isn't known."""
        if self.frequency is None or self.seconds is None or self.cpus is None:
            return None
        return round(self.frequency * self.seconds * self.cpus)


def is_idle(stack: str) -> bool:
    """Whether a CPU had nothing to do: the kernel's own idle process, in one of the functions that
    wait."""
    process, _, rest = stack.partition(";")
    leaf = rest.rpartition(";")[2].removesuffix(KERNEL)
    return _IDLE_PROCESS.fullmatch(process) is not None and _IDLE.fullmatch(leaf) is not None


def read_profiles(path: Path) -> tuple[list[Profile], list[str]]:
    """The profiles of a results directory in order of their runs, and in words what was to be one
    and can't be read or never came to be."""
    profiles: list[Profile] = []
    notes: list[str] = []
    parts = parts_of(path)
    for part in parts:
        prefix = f"{part.name}/" if part != path else ""
        for run_dir in profile_directories(part):
            _take(run_dir, STACKS_FILE, prefix, profiles, notes)
        for run_dir in run_directories(part):
            for file in _foreign(run_dir):
                _take(run_dir, file, prefix, profiles, notes)
    return profiles, notes


def _foreign(run_dir: Path) -> Iterator[str]:
    """Files of an imported run that hold stacks by their names; those made here have none."""
    yield from sorted(
        file.name
        for file in run_dir.iterdir()
        if _FOREIGN.search(file.name.lower()) and file.suffix not in (".svg", ".gz")
    )


def _take(run_dir: Path, file: str, prefix: str, found: list[Profile], notes: list[str]) -> None:
    plan, problem = known_plan(run_dir)
    name = f"{prefix}{plan.run}"
    if problem is not None or plan.status not in ("finished", "imported"):
        why = plan.extra.get("failure") or plan.status if problem is None else problem.message
        notes.append(f"run {name}, made for a profile, has none: {why}")
        return
    try:
        table = _table(run_dir, file, plan)
    except FormatError as error:
        notes.append(f"run {name} has no profile that can be read: {error}")
        return
    if table is not None:
        notes += _altered_facts(run_dir, name, plan)
        found.append(_profile(name, plan, run_dir, file, table))


def _altered_facts(run_dir: Path, name: str, plan: RunPlan) -> list[str]:
    """Why nothing is known of how a profile was made, where that was recorded."""
    if FACTS_FILE in (plan.files or ()):
        try:
            read_file(run_dir, FACTS_FILE, plan.files)
        except FormatError as error:
            return [
                f"run {name}: {FACTS_FILE} is not as the run left it: {error.message}; how its profile was made is not known"
            ]
    return []


def _table(run_dir: Path, file: str, plan: RunPlan) -> StackTable | None:
    """The stacks of a file; None where it holds something else."""
    table: Any = read(read_file(run_dir, file, plan.files), str(run_dir / file))[1]
    return table if isinstance(table, StackTable) else None


def _profile(name: str, plan: RunPlan, run_dir: Path, file: str, table: StackTable) -> Profile:
    facts = read_document(run_dir, FACTS_FILE, plan.files)

    def number(key: str) -> Any:
        value = facts.get(key)
        return (
            value
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            else None
        )

    commands = facts.get("commands")
    return Profile(
        name,
        plan.variant,
        plan.factors,
        table.stacks,
        number("frequency"),
        number("seconds"),
        number("cpus"),
        str(facts.get("event") or table.event),
        str(facts.get("tool", "")),
        plan.host,
        tuple(tuple(map(str, command)) for command in commands)
        if isinstance(commands, list)
        else (),
        int(number("lost") or 0),
        int(number("damaged") or 0) + table.damaged,
        run_dir,
        file,
    )
