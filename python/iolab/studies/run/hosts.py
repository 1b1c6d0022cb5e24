# SPDX-License-Identifier: Apache-2.0
"""A study on several hosts in parallel: a loop for each, in its own thread; a failure of one does
not stop the others."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from iolab.base.errors import IolabError, UsageError
from iolab.hosts.base.host import Host

from ..results.evidence.lock import check_free
from ..results.evidence.manifest import FILE as MANIFEST_FILE
from ..results.open.multi_host import FILE as HOSTS_FILE
from ..results.open.multi_host import Hosts, read_hosts, write_hosts
from .progress import ProgressListener
from .resuming.interrupts import Interrupts, SameInterrupts
from .study import How, refuse_other, run_study

_LOOK = 0.2
"""Seconds between looks whether all are done; signals are handled in between."""


def run_on_hosts(
    path: Path,
    output: Path,
    hosts: Mapping[str, Host],
    listeners: Mapping[str, ProgressListener],
    how: How,
    interrupts: Interrupts | None = None,
) -> dict[str, IolabError]:
    """Do a study on every host, each in `output/<host>`, a whole results directory with its own
    lock, journal and manifest.

    Args:
        hosts: by the name of its directory; listeners: one for each.
        interrupts: heard by all; its own unless given.

    Returns what ended the study on a host before it could be done, by host; none for those where
    its listener has an outcome. Raises UsageError where the directory holds something else, and
    whatever is a fault of iolab itself, once all have ended.
    """
    _begin(path, output, hosts, how)
    ends: dict[str, BaseException] = {}

    def work(name: str, host: Host, stops: Interrupts) -> None:
        try:
            run_study(
                path,
                output / name,
                how,
                listener=listeners[name],
                host=host,
                clock=getattr(host, "clock", None),
                interrupts=SameInterrupts(stops),
            )
        except BaseException as error:  # reported after all have ended
            ends[name] = error

    def said() -> None:
        for listener in listeners.values():
            listener.notice("stopping after this run; press Ctrl-C again to stop now")

    with interrupts or Interrupts(said) as stops:
        threads = [
            threading.Thread(target=work, args=(name, host, stops), name=name)
            for name, host in hosts.items()
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(_LOOK)
    for error in ends.values():
        if not isinstance(error, IolabError):
            raise error
    return {name: error for name, error in ends.items() if isinstance(error, IolabError)}


def _begin(path: Path, output: Path, hosts: Mapping[str, Host], how: How) -> None:
    refuse_other(output)
    if (output / MANIFEST_FILE).exists():
        raise UsageError(
            "holds results of one host",
            where=output,
            hint="choose another directory with -o for several",
        )
    existing = read_hosts(output) if output.is_dir() else None
    if existing is not None and not how.resume:
        for name in existing.words:
            check_free(output / name)
        raise UsageError(
            "holds results already",
            where=output,
            hint="continue them with --resume, choose another directory with -o, or remove it first",
        )
    words = {
        **(existing.words if existing is not None else {}),
        **{name: str(getattr(host, "words", name)) for name, host in hosts.items()},
    }
    output.mkdir(parents=True, exist_ok=True)
    flags = ["--destructive"] if how.destructive else []
    write_hosts(
        output,
        Hosts(
            words,
            [
                "iolab",
                "run",
                str(path),
                "-o",
                str(output),
                *how.changes.arguments(),
                *flags,
                *(part for word in words.values() for part in ("--host", word)),
            ],
        ),
    )


def forget_if_unused(output: Path) -> None:
    """Take back a directory in which no host left anything."""
    if {entry.name for entry in output.iterdir()} <= {HOSTS_FILE}:
        (output / HOSTS_FILE).unlink(missing_ok=True)
        output.rmdir()
