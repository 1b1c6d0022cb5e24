# SPDX-License-Identifier: Apache-2.0
"""What a workload is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from iolab.hosts.base.host import Host, Place
from iolab.hosts.base.options import Options

from ..results.evidence.marks import Mark


@dataclass(frozen=True)
class Load:
    """What a workload will do, as far as gates and estimates must know it.

    Attributes:
        jobs: concurrent jobs; depth: I/Os in flight per job as the engine does them.
        runtime, ramp: seconds; the ramp comes before the measured window.
        offered_iops: rate over all jobs of an open loop, 1/s; None for a closed one.
        space_bytes: room it may take on the target.
        options: its options as plain data, for the gates that ask how the load was made.
        writes: whether it may write to its place; a block device is given without leave only to a
        load that doesn't, and such a
            load must be kept from writing by its tool as well (fio's `--readonly`).
        facts: further plain data for `run.json`: `time_based`, `concurrency` (I/Os in flight over
        all jobs, mean over the window),
            `sections` (of the job, where several), `steps` (of a load that rises; see
            `results.steps`), `files` (how many are read or written completely, which ends the run:
            `runtime` is only the longest that it may last), `notes`.
        layout_bytes: what is written out before the window, for estimates of time; None for all of
        `space_bytes`. layout_first: whether `Workload.layout` shall run before the load in any
        case, as the load itself would take too long for it.
    """

    jobs: int
    depth: int
    runtime: float
    ramp: float
    offered_iops: float | None
    space_bytes: int
    options: Mapping[str, Any] = field(default_factory=dict)
    writes: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    layout_bytes: int | None = None
    layout_first: bool = False


@dataclass(frozen=True)
class Job:
    """What a run executes.

    Attributes:
        command: argument list, started in the run's evidence directory.
        files: name to text, written there first. main: the file among them that is "the exact job".
        limit: seconds after which it hangs and is ended. folders: made there beforehand, for what
        its tool leaves. directory: where the command is started; None for the evidence directory.
    """

    command: tuple[str, ...]
    files: Mapping[str, str]
    main: str
    limit: float
    folders: tuple[str, ...] = ()
    directory: str | None = None


@dataclass(frozen=True)
class StartTime:
    """When a load shall begin its I/O, all else having been done before.

    Attributes:
        time_ns: realtime nanoseconds of the load's host. python: path of a Python there, to wait.
    """

    time_ns: int
    python: str


class Workload(Protocol):
    """Something that drives a target.

    Attributes:
        waits: whether `job` takes a start time, so that several hosts can do the load together.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]]
    waits: ClassVar[bool]

    def __init__(self, options: Options) -> None: ...

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """Where in the workload's table a factor goes that no `{}` mentions; None where it means
        nothing to it."""

    @classmethod
    def factors(cls) -> Collection[str]:
        """Every factor that has such a place, to be guessed at where one has none."""

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """Programs it needs, name to version; RunError, with the way to get it, where one is
        missing."""

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Try the jobs (a name for messages to each) without doing I/O; RunError names the job that
        is refused."""

    def load(self) -> Load:
        """What it will do."""

    def job(self, place: Place, start: StartTime | None = None) -> Job:
        """The command and its files, for one run at a place of the target: a directory, or a block
        device. With `start`, which only a workload that `waits` gets, its I/O begins then."""

    def layout(self, place: Place) -> Job | None:
        """A job that makes the files that `job` will read, without measuring; None where there is
        nothing to lay out.

        Run first, to its end, where the target's cache shall be cold (`Target.cold`), which
        `Target.chill` sees to then, and where `Load.layout_first` asks for it; then `job`.
        """

    def marks(self, window: tuple[int, int]) -> tuple[Mark, ...]:
        """Events within a run, such as the steps of a load that rises; for
        `marks.jsonl`."""

    def notes(self) -> tuple[str, ...]:
        """What a user should know about the job, such as options that were left out of it and
        why."""

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """Realtime nanoseconds [t0, t1] of the measured window by what the run left, None where it
        is unknown."""
