# SPDX-License-Identifier: Apache-2.0
"""What a study would do, and whether it could, without doing any of it.

Nothing is written. Only commands that report are started (`fio --parse-only`, `wipefs --no-act`),
and perf for a moment if profiles are requested.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.clock import SystemClock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Host
from iolab.hosts.kinds.local import LocalHost

from ..plan.cells.plan import Plan, plan_runs
from ..plan.file.load import Study
from ..targets.base import NOTHING_ALLOWED, Permissions
from ..targets.commands import refusals
from ..targets.space import existing
from .load.clients import Clients
from .plugins import Equipment


@dataclass(frozen=True)
class TargetPreview:
    """One target.

    Attributes:
        options: all of them; changed: those that differ from their defaults.
        room_bytes: what its largest run takes; destroys: what would be overwritten, in words.
    """

    kind: str
    options: Mapping[str, Any]
    changed: Mapping[str, Any]
    room_bytes: int
    destroys: tuple[str, ...]


@dataclass(frozen=True)
class Preview:
    """A study as it would be done.

    Attributes:
        plan: the runs in order, with the estimate, which does not include commands.
        problems: why the study can't be run here now, such as a missing program or too little room.
        builds: name to the sources of each build that cells use.
        no_profiles: why runs for profiles would be left out; None if there are none, or if they
        would be made.
        notes: what a user should know about loads.
    """

    study: Study
    directory: Path
    plan: Plan
    targets: tuple[TargetPreview, ...]
    problems: tuple[str, ...]
    no_profiles: str | None = None
    builds: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """As plain data: base units, the runs in order."""
        return {
            "schema": 1,
            "kind": "plan",
            "study": self.study.name,
            "directory": str(self.directory),
            "baseline": self.study.baseline,
            "variants": list(self.study.variants),
            "changes": self.study.changes.as_data(),
            "blocks": self.study.repetitions,
            "seconds": self.plan.seconds,
            "targets": [
                {
                    "kind": target.kind,
                    "options": dict(target.options),
                    "room_bytes": target.room_bytes,
                    "destroys": list(target.destroys),
                }
                for target in self.targets
            ],
            **({"builds": dict(self.builds)} if self.builds else {}),
            "commands": [{"place": place, "command": text} for place, text in self.study.consent],
            "problem": "; ".join(self.problems) or None,
            "problems": list(self.problems),
            "no_profiles": self.no_profiles,
            "notes": list(self.notes),
            "runs": [
                {
                    "number": run.number,
                    "block": run.block,
                    "variant": run.cell.variant,
                    "factors": dict(run.cell.factors),
                    "profile": run.profile,
                    "seconds": seconds,
                }
                for run, seconds in zip(self.plan.runs, self.plan.run_seconds, strict=True)
            ],
        }


def _check_place(host: Host, directory: Path) -> None:
    """RunError where the results can't be written."""
    place = existing(host, str(directory.absolute()))
    if not os.access(place, os.W_OK):
        raise RunError("can't be written to", where=place, hint="choose another directory with -o")


def preview(
    study: Study,
    directory: Path,
    host: Host | None = None,
    permissions: Permissions = NOTHING_ALLOWED,
) -> Preview:
    """Lay the study out and ask its plugins, touching nothing."""
    where = host or LocalHost()
    clients = Clients(study.cells)
    equipment = Equipment(
        study,
        where,
        SystemClock(),
        directory,
        lambda text: None,
        permissions,
        clients=clients,
    )
    try:
        problems = equipment.problems()
    finally:
        clients.close()
    if isinstance(where, LocalHost):
        problems += refusals(lambda: _check_place(where, directory))
    cells = {id(equipment.target(cell)): cell for cell in study.cells}
    targets = []
    for target in equipment.targets:
        cell = cells[id(target)]
        targets.append(
            TargetPreview(
                cell.target_kind,
                cell.target.model_dump(mode="json"),
                cell.target.model_dump(mode="json", exclude_defaults=True),
                equipment.room(target),
                target.destroys(),
            )
        )
    no_profiles = None if equipment.profiler is None else equipment.profiler.problem()
    plan = plan_runs(study, equipment.seconds, profiles=no_profiles is None)
    return Preview(
        study,
        directory,
        plan,
        tuple(targets),
        tuple(problems),
        no_profiles,
        equipment.builds.sources,
        tuple(equipment.load_notes()),
    )
