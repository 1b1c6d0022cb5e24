# SPDX-License-Identifier: Apache-2.0
"""What is recorded on the client hosts of a study: a recording for each host, with a mark for each
run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from iolab.base.clock import SystemClock

from ...plan.cells.cells import Cell
from ...results.evidence.clients import ClientRun
from ..logs.recording import StudyRecorder, Wanted
from .clients import Clients, of_client


class ClientRecorders:
    """A recorder for each client host of which `load.sources` names anything.

    Hosts are handled at the same time, since each takes up to some seconds. A client that shares
    its host with another one shares the recording.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        clients: Clients,
        results: Path,
        environment: Mapping[str, str],
        notice: Callable[[str], None],
        recorded_hosts: Collection[str],
    ) -> None:
        """`recorded_hosts`: hosts with a recording of the study, which has these sources as well."""
        names = dict.fromkeys(
            name for cell in cells if cell.load is not None for name in cell.load.sources
        )
        self._recorders: dict[str, StudyRecorder] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._hosts: dict[str, str] = {}
        for client in clients.all() if names else ():
            host = client.host
            if host.name in recorded_hosts:
                continue
            self._hosts[client.name] = host.name
            if host.name not in self._recorders:
                self._recorders[host.name] = StudyRecorder(
                    Wanted(tuple(names), (), ()),
                    host,
                    getattr(host, "clock", None) or SystemClock(),
                    results,
                    environment,
                    partial(_notify, notice, client.name),
                )

    def check(self) -> None:
        """RunError, with the client, where a host cannot be recorded."""
        for name, recorder in self._recorders.items():
            with of_client(name):
                recorder.check()

    def start(self) -> None:
        """Begin to record on all hosts. RunError, with the client, where one cannot begin."""
        if self._recorders:
            # until the end: a recorder gets SIGTERM when the thread that started it ends
            self._pool = ThreadPoolExecutor(len(self._recorders))

        def start(name: str) -> None:
            with of_client(name):
                self._recorders[name].start(())

        self._on_all(start)

    def begin(self) -> None:
        """A run's load is about to start."""
        self._on_all(lambda name: self._recorders[name].begin())

    def end(
        self, run: str, clients: Sequence[ClientRun], facts: Mapping[str, Any]
    ) -> tuple[ClientRun, ...]:
        """A run's load ended: it is marked on all recordings. The clients with their recordings.

        The mark has the window of the first client of its host, by that host's clock.
        """
        windows: dict[str, tuple[int, int] | None] = {}
        for client in clients:
            if client.name in self._hosts:
                windows.setdefault(self._hosts[client.name], _own_window(client))
        reports = self._on_all(
            lambda name: self._recorders[name].end(run, windows.get(name), facts)
        )
        return tuple(
            replace(client, recording=reports.get(self._hosts.get(client.name, ""), {}))
            for client in clients
        )

    def stop(self) -> None:
        """End all recordings. Never raises."""
        self._on_all(lambda name: self._recorders[name].stop())
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _on_all(self, act: Callable[[str], Any]) -> dict[str, Any]:
        """Results of an action by host; what it raises first is raised."""
        if self._pool is None:
            return {}
        return dict(zip(self._recorders, self._pool.map(act, self._recorders), strict=True))


def _notify(notice: Callable[[str], None], client: str, text: str) -> None:
    notice(f"client {client}: {text}")


def _own_window(client: ClientRun) -> tuple[int, int] | None:
    """The measured window by the client's own clock."""
    if client.window is None:
        return None
    begin, end = client.window
    return begin + client.clock_offset_ns, end + client.clock_offset_ns
