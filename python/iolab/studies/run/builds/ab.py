# SPDX-License-Identifier: Apache-2.0
"""A study of builds: builds of OpenZFS on a machine of a rig or on a host that is reached by ssh, or
builds of a program here or on such a host.

`ab.json` in the directory has the request and the builds that were made, so that each stage can be
interrupted and resumed:

1. `build`: compile the builds, and put them into the image of the rig or below `/opt/iolab/builds` of
   the host;
2. `start`: start the machine of the rig, or use it where it is up;
3. `measure`: run the study, with a variant for each build;
4. `stop`: delete the machine of the rig.

Builds of a program (`[builds]` of the study) are made in stage 3, by the study.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from iolab.base.errors import ResultsError, RunError, UsageError
from iolab.base.files import read_regular, write_atomically
from iolab.hosts.base.host import text_or_none
from iolab.hosts.kinds.parse import ssh_host_named
from iolab.hosts.kinds.rig import RigHost, RigOptions, RigState, machines, rig_home
from iolab.hosts.rigs.build import BUILD_FILE
from iolab.hosts.rigs.builds import BuildRecord, build_rig, parse_record, records
from iolab.hosts.rigs.host_builds import HostBuildMaker, HostBuilds
from iolab.hosts.rigs.machine import await_machine, down, up
from iolab.hosts.rigs.qemu import Disks, MachineOptions
from iolab.hosts.rigs.recipe import Rig, find_rig
from iolab.hosts.rigs.source_tree import parse_request
from iolab.hosts.ssh.host import SshHost

from ...plan.adapt import Changes, flatten
from ...plan.file.load import Study, load_study
from ...plan.file.rig_tables import RigTable
from ...targets.base import Permissions
from ...targets.zpool.modules import directory_of
from ..progress import ProgressListener
from ..resuming.resume import begun, read_past
from ..study import How, run_study

FILE, RESULTS = "ab.json", "results"
SCHEMA = 1


@dataclass(frozen=True)
class AbRequest:
    """What to compare.

    Attributes:
        study: the study file.
        rig: the recipe with the scripts that build OpenZFS; empty for builds of a program.
        machine: the name of the machine that is started; empty if none is.
        builds: `NAME=SOURCES` each; the first is the baseline.
        changes: of the study, without the builds.
        host: the machine that is reached by ssh, as on a command line; empty without one.
    """

    study: Path
    rig: str
    machine: str
    builds: tuple[str, ...]
    changes: Changes
    host: str = ""

    @property
    def is_of_program(self) -> bool:
        """Whether the builds are of a program, not of OpenZFS."""
        return not self.rig

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the builds, in order."""
        return tuple(text.partition("=")[0] for text in self.builds)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "study": str(self.study),
            "rig": self.rig,
            "machine": self.machine,
            "builds": list(self.builds),
            "changes": self.changes.as_data(),
            "host": self.host,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> AbRequest:
        """From what `as_data` returned. Raises KeyError, TypeError or ValueError for other data."""
        return cls(
            Path(data["study"]),
            str(data["rig"]),
            str(data["machine"]),
            tuple(map(str, data["builds"])),
            Changes.from_data(data["changes"]),
            str(data.get("host", "")),
        )

    def arguments(self) -> list[str]:
        """As arguments of `iolab ab`."""
        builds = [part for text in self.builds for part in ("--build", text)]
        rig = [] if self.rig in ("", "openzfs") else ["--rig", self.rig]
        host = ["--host", self.host] if self.host else []
        return ["--study", str(self.study), *rig, *host, *builds, *self.changes.arguments()]


def machine_name(study: Path, builds: tuple[str, ...]) -> str:
    """The name of the machine for a study and its builds."""
    digest = hashlib.sha256(repr((str(study.absolute()), builds)).encode()).hexdigest()
    return f"ab-{digest[:8]}"


def machine_options(table: RigTable, rig: Rig) -> MachineOptions:
    """What a machine of a rig has by a table `[rig]`."""
    disks = Disks(
        table.disks,
        table.disk_size,
        table.disk_iops,
        table.disk_mbps * 1_000_000 if table.disk_mbps else None,
        table.fast_disks,
    )
    return MachineOptions(disks, table.memory or rig.recipe.default_memory, table.cpus)


def ab_study(request: AbRequest) -> tuple[Study, Changes]:
    """The study with a variant for each build, with the target of `[rig]` on a machine of a rig.

    Raises UsageError for fewer than two builds or, of OpenZFS, a target that is not a pool,
    StudyError for an invalid study.
    """
    if len(request.builds) < 2:
        raise UsageError(
            "a comparison needs two builds",
            where="--build",
            hint="such as --build old=2.3 --build new=2.3+fix.patch",
        )
    if not request.machine:
        builds = request.builds if request.is_of_program else request.names
        changes = replace(request.changes, builds=builds)
        return load_study(request.study, changes), changes
    plain = load_study(request.study)
    table = plain.rig or RigTable()
    changes = Changes.from_data(
        {
            **request.changes.as_data(),
            "target": {**flatten(table.target), **request.changes.target},
            "builds": request.names,
        }
    )
    return load_study(request.study, changes), changes


class Ab:
    """One comparison of builds in its directory. `said` is called with each step."""

    def __init__(self, directory: Path, request: AbRequest, said: Callable[[str], None]) -> None:
        self.directory, self.request, self._said = directory, request, said
        self.records: tuple[BuildRecord, ...] = ()
        self.machine: RigState | None = None
        """The machine of the rig that was started last."""

    @property
    def results(self) -> Path:
        """The results directory of the study."""
        return self.directory / RESULTS

    def begin(self) -> None:
        """Write the request. UsageError where the directory has another comparison."""
        if (self.directory / FILE).exists():
            raise UsageError(
                "holds a comparison of builds already",
                where=self.directory,
                hint="continue it with --resume, or choose another directory with -o",
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write()

    @classmethod
    def reopen(cls, directory: Path, said: Callable[[str], None]) -> Ab:
        """The comparison that was begun in a directory. ResultsError where there is none, or its
        file is damaged."""
        path = directory / FILE
        try:
            data = json.loads(read_regular(path))
            if data.get("schema") != SCHEMA:
                raise ValueError(f"schema {data.get('schema')} is not known")
            ab = cls(directory, AbRequest.from_data(data["request"]), said)
            ab.records = tuple(
                BuildRecord(**{key: value for key, value in record.items() if key != "schema"})
                for record in data["records"]
            )
            if (machine := data.get("machine")) is not None:
                ab.machine = RigState(**machine)
        except FileNotFoundError:
            raise ResultsError(
                "holds no comparison of builds", where=directory, hint="begin one without --resume"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"can't be read: {error}", where=path) from None
        return ab

    def connect(self) -> SshHost | None:
        """The host that is reached by ssh; None where the request has none."""
        return ssh_host_named(self.request.host) if self.request.host else None

    def build(self, host: SshHost | None) -> None:
        """Make the builds of OpenZFS that are missing on the host, or in the rig."""
        if self.request.is_of_program:
            return
        rig = find_rig(self.request.rig)
        existing = records(rig_home(rig.name)) if host is None else HostBuilds(host).records()
        before = {record.name: record for record in existing}
        requests = [parse_request(text) for text in self.request.builds]
        if self.records and all(
            record.name in before and before[record.name].digest == record.digest
            for record in self.records
        ):
            requests = []
        builds: list[BuildRecord] = []
        if host is None:
            build_rig(rig, requests, self._said, builds.append)
        else:
            maker = HostBuildMaker(rig, host, self._said)
            builds += map(maker.make, requests)
        for record in builds:
            old = before.get(record.name, record)
            if old.digest != record.digest:
                self._said(
                    f"{record.name}: replaces the build of {old.sources}; a comparison that needs "
                    "that one makes it again"
                )
        if requests:
            self.records = tuple(builds)
            self._write()

    def check_builds(self, host: RigHost | SshHost) -> None:
        """RunError where the machine has a build of other sources than those that were made for
        this comparison: another one has replaced it, or the machine is older."""
        for record in self.records:
            path = f"{directory_of(host, record.name)}/{BUILD_FILE}"
            present = parse_record(text_or_none(host, path) or "")
            if present is None or present.digest != record.digest:
                machine = self.request.machine
                first = f"'iolab rig down {machine}', then " if machine else ""
                raise RunError(
                    f"the build '{record.name}' of '{host.name}' is not of the sources of this "
                    "comparison",
                    where="ab",
                    hint=f"{first}'iolab ab --resume -o {self.directory}'; comparisons at the same "
                    "time need names of their own",
                )

    @property
    def is_measured(self) -> bool:
        """Whether all runs of the study have finished, so that only the report can be missing."""
        if not begun(self.results):
            return False
        past = read_past(self.results)
        last = past.events[-1] if past.events else {}
        return (
            last.get("event") == "closed"
            and not last.get("failed")
            and len(past.done) >= last.get("finished", 0)
        )

    @property
    def is_up(self) -> bool:
        """Whether the machine of the rig runs."""
        return self._running() is not None

    def _running(self) -> RigState | None:
        name = self.request.machine
        return next((state for state in machines() if state.name == name and state.running), None)

    def start(self, table: RigTable) -> RigHost:
        """The machine, started where it is not up."""
        name = self.request.machine
        if (state := self._running()) is None:
            self._said(f"{name}: starting")
            rig = find_rig(self.request.rig)
            (state,) = up(rig.name, [name], machine_options(table, rig), self._said)
        else:
            self._said(f"{name}: is up")
            await_machine(state)  # it may have been left while it was starting
        self.machine = state
        self._write()
        return RigHost(RigOptions(name=name))

    def measure(
        self,
        changes: Changes,
        host: RigHost | SshHost | None,
        listener: ProgressListener,
        *,
        trusted: bool,
        permissions: Permissions,
    ) -> None:
        """Run what is missing of the study. The disks of a machine of a rig may be overwritten: it
        was made for this comparison. `host`: None for this machine."""
        is_rig = bool(self.request.machine)
        run_study(
            self.request.study,
            self.results,
            How(
                changes,
                resume=True,
                destructive=is_rig or permissions.destructive,
                force=is_rig or permissions.force,
                trusted=trusted,
            ),
            listener=listener,
            host=host,
        )

    def stop(self) -> None:
        """Delete the machine of the rig where it exists."""
        if self.request.machine and any(state.name == self.request.machine for state in machines()):
            down(self.request.machine)

    def _write(self) -> None:
        data = {
            "schema": SCHEMA,
            "request": self.request.as_data(),
            "records": [record.as_data() for record in self.records],
            "machine": None if self.machine is None else asdict(self.machine),
        }
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.directory / FILE, text)
