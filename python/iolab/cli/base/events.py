# SPDX-License-Identifier: Apache-2.0
"""Events that the paths of commands name: traces, recordings, and the recordings of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...recording.base.conditions import Where
    from ...recording.read.recording import Recording
    from ...recording.read.trace import Trace
    from .archives import HostConditions


def open_path(
    path: Path, kind: str | None = None, columns: str | None = None, where: Where | None = None
) -> Trace | Recording:
    """A trace, a recording, or the one recording of a results directory. Errors as `open_events`
    has them."""
    from ...errors import UsageError
    from ...recording.base.layout import is_recording
    from ...recording.read.recording import open_events

    inner = path / "recordings"
    if inner.is_dir() and not is_recording(path):
        hosts = sorted(path_inside for path_inside in inner.iterdir() if is_recording(path_inside))
        if len(hosts) > 1:
            raise UsageError(
                f"holds the recordings of {len(hosts)} hosts",
                where=path,
                hint=f"name one of {', '.join(map(str, hosts))}",
            )
        path = hosts[0] if hosts else path
    return open_events(path, format=kind, columns=columns, where=where)


def open_all(
    paths: Sequence[Path],
    kind: str | None,
    columns: str | None,
    where: Where,
    hosts: HostConditions,
) -> list[Trace | Recording]:
    """What paths name, in their order: a path of an archive is its recordings with events, of hosts
    that meet the conditions. UsageError where hosts are named and no archive is."""
    from ...errors import UsageError
    from .archives import archive_url, open_hosts, refuse_engine

    opened: list[Trace | Recording] = []
    for path in paths:
        url = archive_url(path)
        if url is None:
            if hosts:
                raise UsageError(
                    "only an archive has hosts", where=path, hint="leave host=NAME out"
                )
            refuse_engine(path)
            opened.append(open_path(path, kind, columns, where))
            continue
        opened += open_hosts(url, hosts)
    return opened


def name_of(path: Path) -> str:
    """A short name for what a path names."""
    return "standard input" if str(path) == "-" else path.name or path.resolve().name or str(path)
