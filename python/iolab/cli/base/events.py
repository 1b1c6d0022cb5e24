# SPDX-License-Identifier: Apache-2.0
"""Events that the paths of commands name: traces, recordings, and the recordings of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.recordings.store.base.conditions import Where
    from iolab.recordings.store.read.recording import Recording
    from iolab.recordings.store.read.trace import Trace

    from .archives import HostConditions


def open_path(
    path: Path, kind: str | None = None, columns: str | None = None, where: Where | None = None
) -> Trace | Recording:
    """A trace, a recording, or the one recording of a results directory. Errors as `open_events`
    has them."""
    from iolab.recordings.store.read.folder import recording_of_results
    from iolab.recordings.store.read.recording import open_events

    place = recording_of_results(path) or path
    return open_events(place, format=kind, columns=columns, where=where)


def open_all(
    paths: Sequence[Path],
    kind: str | None,
    columns: str | None,
    where: Where,
    hosts: HostConditions,
) -> list[Trace | Recording]:
    """What paths name, in their order: an archive or a folder is its recordings, of hosts that meet
    the conditions. UsageError where hosts are named and no path has several."""
    from iolab.base.errors import UsageError

    from .archives import is_fleet, open_hosts, refuse_engine
    from .output import say

    opened: list[Trace | Recording] = []
    for path in paths:
        if not is_fleet(path):
            if hosts:
                raise UsageError(
                    "only an archive or a folder of recordings has hosts",
                    where=path,
                    hint="leave host=NAME out",
                )
            refuse_engine(path)
            opened.append(open_path(path, kind, columns, where))
            continue
        fleet = open_hosts(path, hosts)
        for note in fleet.notes:
            say(f"note: {note}")
        opened += fleet.recordings
    return opened


def name_of(path: Path) -> str:
    """A short name for what a path names."""
    return "standard input" if str(path) == "-" else path.name or path.resolve().name or str(path)
