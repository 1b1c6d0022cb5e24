# SPDX-License-Identifier: Apache-2.0
"""A study of builds: builds of OpenZFS on a machine of a rig, or builds of a program here.

`ab.json` in the directory has the request and the builds that were made, so that each stage can be
interrupted and resumed:

1. `build`: compile the builds and put them into the image of the rig;
2. `start`: start the machine, or use it where it is up;
3. `measure`: run the study, with a variant for each build;
4. `stop`: delete the machine.

Builds of a program (`[builds]` of the study) are made and measured on this machine in stage 3.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ResultsError, UsageError
from ...files import read_regular, write_atomically
from ...hosts.kinds.rig import RigHost, RigOptions, machines, rig_home
from ...rigs.builds import BuildRecord, build_rig, records
from ...rigs.machine import down, up
from ...rigs.qemu import Disks, MachineOptions
from ...rigs.recipe import find_rig
from ...rigs.source_tree import parse_request
from ...study.adapt import Changes, flatten
from ...study.file.load import Study, load_study
from ...study.file.rig_tables import RigTable
from ..progress import ProgressListener
from ..study import How, run_study

FILE, RESULTS = "ab.json", "results"
SCHEMA = 1


@dataclass(frozen=True)
class AbRequest:
    """What to compare.

    Attributes:
        study: the study file.
        rig, machine: the recipe, and the name of the machine that is started; empty for builds of a
        program.
        builds: `NAME=SOURCES` each; the first is the baseline.
        changes: of the study, without the builds.
    """

    study: Path
    rig: str
    machine: str
    builds: tuple[str, ...]
    changes: Changes

    @property
    def is_here(self) -> bool:
        """Whether the builds are of a program, and measured on this machine."""
        return not self.machine

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
        )

    def arguments(self) -> list[str]:
        """As arguments of `iolab ab`."""
        builds = [part for text in self.builds for part in ("--build", text)]
        rig = [] if self.rig in ("", "openzfs") else ["--rig", self.rig]
        return ["--study", str(self.study), *rig, *builds, *self.changes.arguments()]


def machine_name(study: Path, builds: tuple[str, ...]) -> str:
    """The name of the machine for a study and its builds."""
    digest = hashlib.sha256(repr((str(study.absolute()), builds)).encode()).hexdigest()
    return f"ab-{digest[:8]}"


def ab_study(request: AbRequest) -> tuple[Study, Changes]:
    """The study with a variant for each build, on the machine that the study describes, or here.

    Raises UsageError for fewer than two builds or, on a rig, a target that is not a pool, StudyError
    for an invalid study.
    """
    if len(request.builds) < 2:
        raise UsageError(
            "a comparison needs two builds",
            where="--build",
            hint="such as --build old=2.3 --build new=2.3+fix.patch",
        )
    if request.is_here:
        changes = replace(request.changes, builds=request.builds)
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
        except FileNotFoundError:
            raise ResultsError(
                "holds no comparison of builds", where=directory, hint="begin one without --resume"
            ) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ResultsError(f"can't be read: {error}", where=path) from None
        return ab

    def build(self) -> None:
        """Make the builds that are missing in the rig."""
        rig = find_rig(self.request.rig)
        existing = {record.name: record for record in records(rig_home(rig.name))}
        if self.records and all(
            (other := existing.get(record.name)) and other.digest == record.digest
            for record in self.records
        ):
            build_rig(rig, (), self._said)
            return
        builds: list[BuildRecord] = []
        build_rig(
            rig, [parse_request(text) for text in self.request.builds], self._said, builds.append
        )
        self.records = tuple(builds)
        self._write()

    def start(self, table: RigTable) -> RigHost:
        """The machine, started where it is not up."""
        name = self.request.machine
        if not any(state.running for state in machines() if state.name == name):
            self._said(f"{name}: starting")
            disks = Disks(
                table.disks,
                table.disk_size,
                table.disk_iops,
                table.disk_mbps * 1_000_000 if table.disk_mbps else None,
                table.fast_disks,
            )
            rig = find_rig(self.request.rig)
            memory = table.memory or rig.recipe.default_memory
            up(rig.name, [name], MachineOptions(disks, memory, table.cpus), self._said)
        return RigHost(RigOptions(name=name))

    def measure(
        self, changes: Changes, host: RigHost | None, listener: ProgressListener, *, trusted: bool
    ) -> None:
        """Run what is missing of the study. The disks of a machine of a rig may be overwritten: it
        was made for this comparison. `host`: None for this machine."""
        run_study(
            self.request.study,
            self.results,
            how=How(changes=changes, resume=True, destructive=host is not None, force=host is not None, trusted=trusted), listener=listener, host=host,
        )

    def stop(self) -> None:
        """Delete the machine where it exists."""
        if any(state.name == self.request.machine for state in machines()):
            down(self.request.machine)

    def _write(self) -> None:
        data = {
            "schema": SCHEMA,
            "request": self.request.as_data(),
            "records": [record.as_data() for record in self.records],
        }
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.directory / FILE, text)
