# SPDX-License-Identifier: Apache-2.0
"""The plugins of a study, made once: each cell's workload and target, and the sources of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from iolab.base import registry
from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.base.units import format_quantity
from iolab.hosts.base.host import Host, Place
from iolab.hosts.facts.mounts import mount_of
from iolab.hosts.ssh.remote_paths import scratch_on

from ..plan.cells.cells import Cell
from ..plan.cells.plan import run_seconds
from ..plan.file.load import Study
from ..results.evidence.files import PASSES
from ..results.evidence.model import PROGRAM
from ..sources.base import Source
from ..sources.recorded import RecordedSource
from ..targets.base import NOTHING_ALLOWED, Permissions, Target
from ..targets.commands import refusals
from ..workloads.base import Load, Workload
from .builds.kernels import check_kernels
from .builds.program_builds import ProgramBuilds, ProgramUse
from .load.client_recordings import ClientRecorders
from .load.clients import LEAD, Clients, check_cells, load_of_all, of_client
from .load.profiling import Profiler
from .logs.recording import StudyRecorder, Wanted
from .resuming.process_registry import MARK

SCRATCH = "scratch"
"""Directory under the results where targets without a path of their own are made."""


class Equipment:
    """Targets and workloads of a study's cells. Cells with equal target tables share one target."""

    def __init__(
        self,
        study: Study,
        host: Host,
        clock: Clock,
        directory: Path,
        notice: Callable[[str], None],
        permissions: Permissions = NOTHING_ALLOWED,
        *,
        clients: Clients | None = None,
    ) -> None:
        """`clients`: the hosts of `[load]`; the study's by default."""
        self.builds = ProgramBuilds(study, host, notice)
        self._study, self._host, self._clock, self._directory = study, host, clock, directory
        self._notice, self._permissions, self._clients = (
            notice,
            permissions,
            clients or Clients(study.cells),
        )
        self._left_out: set[str] = set()
        recorded = Wanted.of(
            study.sources, {name: registry.load("source", name) for name in study.sources}
        )
        marked = {MARK: str(directory.absolute())}
        self.recorder = (
            None
            if recorded is None
            else StudyRecorder(recorded, host, clock, directory, marked, notice)
        )
        self.client_recorders = ClientRecorders(
            study.cells,
            self._clients,
            directory,
            marked,
            notice,
            () if recorded is None else (host.name,),
        )
        self.profiler = (
            None if study.profiling is None else Profiler(study.profiling, host, clock, directory)
        )
        self._targets: dict[str, Target] = {}
        self._workloads = {
            id(cell): cast(Workload, registry.load("workload", cell.workload_kind)(cell.workload))
            for cell in study.cells
        }
        self._target_keys = {id(cell): _target_key(cell) for cell in study.cells}
        for cell in study.cells:
            self._make_target(cell)

    @property
    def targets(self) -> list[Target]:
        """Every target once."""
        return list(self._targets.values())

    def target(self, cell: Cell) -> Target:
        """The cell's target."""
        return self._targets[self._target_keys[id(cell)]]

    def workload(self, cell: Cell) -> Workload:
        """The cell's workload."""
        return self._workloads[id(cell)]

    def load(self, cell: Cell) -> Load:
        """What a run of the cell does, by all its clients together."""
        load, clients = self.workload(cell).load(), len(self._clients.of(cell))
        return load_of_all(load, clients) if clients else load

    def sources(self, cell: Cell) -> list[Source]:
        """Fresh sources for one run of the cell, those that have something to read; why others
        haven't is said once."""
        fit = []
        for name, options in self._study.sources.items():
            source = cast(
                Source,
                registry.load("source", name)(
                    options, self._host, self._clock, self.target(cell).devices()
                ),
            )
            if isinstance(source, RecordedSource) and self.recorder is not None:
                source.attach(str(self.recorder.directory), self.recorder.keeper)
            reason = source.unfit()
            if reason is None:
                fit.append(source)
            elif name not in self._left_out:
                self._left_out.add(name)
                self._notice(f"{name} is left out: {reason}")
        return fit

    def tools(self) -> Mapping[str, str]:
        """Versions of the programs that the workloads need, all there; then have the jobs tried
        without I/O.

        RunError where that fails, or where what is to be recorded can't be.
        """
        versions = self.versions()
        if self.recorder is not None:
            self.recorder.check()
        self.client_recorders.check()
        check_cells(self._study.cells, self._clients, self.workload)
        for cell in self._study.cells if self.builds.are_made else ():
            self.program(cell)
        for name, host in self._load_hosts().items():
            for kind in self._kinds(name):
                with of_client(name):
                    registry.load("workload", kind).check(
                        host,
                        {
                            cell.label(): self.workload(cell)
                            for cell in self._cells_on(name)
                            if cell.workload_kind == kind
                        },
                    )
        return versions

    def versions(self) -> Mapping[str, str]:
        """Versions of the programs that the workloads need. Where they differ between clients, the
        version names the client."""
        hosts_of: dict[str, dict[str, list[str]]] = {}
        for name, host in self._load_hosts().items():
            for kind in self._kinds(name):
                with of_client(name):
                    tools = registry.load("workload", kind).tools(host)
                for tool, version in tools.items():
                    hosts_of.setdefault(tool, {}).setdefault(version, []).append(name)
        tools = {
            tool: next(iter(versions))
            if len(versions) == 1
            else "; ".join(
                f"{version} ({', '.join(name or self._host.name for name in on)})"
                for version, on in versions.items()
            )
            for tool, versions in hosts_of.items()
        }
        return {**tools, **self.builds.digests}

    def program(self, cell: Cell) -> ProgramUse | None:
        """The program of the cell's runs; None in a study without builds. RunError where its build
        does not have it."""
        if not self.builds.sources:
            return None
        place = Place("/", "device" if cell.target_kind == "device" else "directory")
        return self.builds.use(cell, self.workload(cell).job(place).command[0])

    def _load_hosts(self) -> dict[str, Host]:
        """Hosts that a load runs on, by client or build; that of the target under an empty name."""
        hosts = {client.name: client.host for client in self._clients.all()}
        for cell in self._study.cells:
            if not self._clients.of(cell):
                hosts.setdefault(_build_label(cell), self.builds.host(cell))
        return {name: host for name, host in hosts.items() if self._cells_on(name)}

    def _cells_on(self, name: str) -> list[Cell]:
        """Cells of a name of `_load_hosts`; of a build that is not made yet, none."""
        return [
            cell
            for cell in self._study.cells
            if name in ([client.name for client in self._clients.of(cell)] or [_build_label(cell)])
            and (cell.build is None or self.builds.are_made)
        ]

    def _kinds(self, name: str) -> list[str]:
        """Kinds of workloads that run on a host."""
        return list(dict.fromkeys(cell.workload_kind for cell in self._cells_on(name)))

    def load_notes(self) -> list[str]:
        """What a user should know about loads, each thing once."""
        return list(
            dict.fromkeys(
                note for workload in self._workloads.values() for note in workload.notes()
            )
        )

    def notes(self) -> list[str]:
        """What a user should know about opened targets and loads, each thing once."""
        of_targets = [note for target in self.targets for note in target.notes()]
        return list(dict.fromkeys([*of_targets, *self.load_notes()]))

    def room(self, target: Target) -> int:
        """Largest room that a cell of the target asks for, in bytes."""
        return max(
            self.load(cell).space_bytes for cell in self._study.cells if self.target(cell) is target
        )

    def problems(self) -> list[str]:
        """All by which a run would be refused as things are, in words: tools and jobs, each target,
        the room of all together."""
        problems = refusals(lambda: check_kernels(self._host, self._study.kernels))
        problems += refusals(self.tools)
        problems += refusals(self.builds.check)
        for target in self.targets:
            problems += target.problems(self.room(target))
        problems += refusals(self.check_images)
        return list(dict.fromkeys(problems))

    def check_images(self) -> None:
        """RunError where the loop files of all targets don't fit together into a file system; each
        has its own from the start."""
        sizes: dict[str, tuple[str, int]] = {}
        try:
            info = self._host.read_text("/proc/self/mountinfo")
        except OSError:
            return
        for place, size in filter(None, (target.images() for target in self.targets)):
            mount = mount_of(info, self._host.resolve(place))
            if mount is not None and self._host.is_directory(place):
                before = sizes.get(mount.point, (place, 0))
                sizes[mount.point] = (before[0], before[1] + size)
        for point, (place, size) in sizes.items():
            free = self._host.free_bytes(place)
            if free < size:
                raise RunError(
                    f"loop files of {len(self.targets)} targets need {format_quantity(size, 'B', 3)}, "
                    f"{format_quantity(free, 'B', 3)} is free",
                    where=point,
                    hint="lower target.loop.size, sweep fewer levels of the target, or name a roomier target.loop.directory",
                )

    def seconds(self, cell: Cell) -> float:
        """Estimated wall time of one run of the cell; a set of files takes what its bytes take. The time
        of a program is unknown, and counts as none."""
        load = self.load(cell)
        ramp = load.ramp + (LEAD if self._clients.of(cell) else 0.0)
        if "files" in load.facts or PROGRAM in load.facts:
            size = load.space_bytes * int(load.facts.get(PASSES, 1))
            return run_seconds(0.0, ramp, size + (load.layout_bytes or 0))
        return run_seconds(
            load.runtime,
            ramp,
            load.space_bytes if load.layout_bytes is None else load.layout_bytes,
        )

    def _make_target(self, cell: Cell) -> None:
        key = self._target_keys[id(cell)]
        if key not in self._targets:
            number = len(self._targets) + 1
            scratch = self._directory / (SCRATCH if number == 1 else f"{SCRATCH}-{number}")
            plugin = registry.load("target", cell.target_kind)
            writes = any(
                self.workload(other).load().writes
                for other in self._study.cells
                if self._target_keys[id(other)] == key
            )
            self._targets[key] = cast(
                Target,
                plugin(
                    cell.target,
                    self._host,
                    scratch_on(self._host, scratch),
                    self._permissions,
                    writes,
                ),
            )


def _build_label(cell: Cell) -> str:
    return "" if cell.build is None else f"build {cell.build}"


def _target_key(cell: Cell) -> str:
    return json.dumps([cell.target_kind, cell.target.model_dump(mode="json")], sort_keys=True)
