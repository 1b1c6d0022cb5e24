# SPDX-License-Identifier: Apache-2.0
"""A load on several client hosts at once: they start together, and a failure of any ends all.

The files of each client are in `clients/<name>/` of the run's directory, as those of a load on one
host are in the directory itself.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, Offset, Place, Process
from iolab.hosts.kinds.parse import host_named

from ...plan.cells.cells import Cell
from ...results.evidence.clients import ClientRun
from ...results.evidence.files import CLIENTS
from ...targets.commands import interpreter
from ...workloads.base import Job, Load, StartTime, Workload
from ..progress import Status
from .launch import STDERR_FILE, last_line, start_job
from .waiting import ClientWaits, KernelWait

LEAD = 2.0
"""Seconds from when clients are given their programs to the common start, at least."""
_LEAD_EACH = 0.1
"""Seconds on top for each client."""
_LEAD_JOB = 0.03
"""Seconds on top for each job of a client, which starts a Python to wait."""
_ROUND_TRIPS = 20
"""Round trips that giving a program to a host takes, at most."""
_TRIES = 4
_MARGIN = 0.2
"""Seconds before the start by which every client must have its program."""
_PATIENCE = 60.0


@dataclass(frozen=True)
class Client:
    """A client host. `word`: what names the host on a command line."""

    name: str
    word: str
    host: Host


class Clients:
    """The client hosts of a study. Each host is connected to at the first request."""

    def __init__(
        self, cells: Sequence[Cell], open_host: Callable[[str], Host] = host_named
    ) -> None:
        self._clients: dict[tuple[str, str], Client] = {}
        for cell in cells:
            named = {} if cell.load is None else cell.load.taking_part()
            for name, word in named.items():
                if (name, word) not in self._clients:
                    self._clients[name, word] = Client(name, word, open_host(word))

    def all(self) -> tuple[Client, ...]:
        """Every client of any cell."""
        return tuple(self._clients.values())

    def of(self, cell: Cell) -> tuple[Client, ...]:
        """Those that put load on the target in a run of the cell; none where the load runs on the
        target's host."""
        if cell.load is None:
            return ()
        return tuple(self._clients[pair] for pair in cell.load.taking_part().items())

    def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            close = getattr(client.host, "close", None)
            if close is not None:
                with contextlib.suppress(RunError, OSError):
                    close()


def load_of_all(load: Load, clients: int) -> Load:
    """The load that so many clients make together, each with the same job."""
    facts = dict(load.facts)
    if "concurrency" in facts:
        facts["concurrency"] = facts["concurrency"] * clients
    return replace(
        load,
        jobs=load.jobs * clients,
        offered_iops=None if load.offered_iops is None else load.offered_iops * clients,
        space_bytes=load.space_bytes * clients,
        layout_bytes=None if load.layout_bytes is None else load.layout_bytes * clients,
        layout_first=True,  # clients lay out files at different speeds, and then start together
        facts=facts,
    )


@contextlib.contextmanager
def of_client(name: str) -> Iterator[None]:
    """Name the client, or the build, in what is raised; nothing for an empty name."""
    try:
        yield
    except RunError as error:
        if not name:
            raise
        where = name if name.startswith("build ") else f"client {name}"
        raise RunError(error.message, where=where, hint=error.hint) from None


def check_cells(
    cells: Sequence[Cell], clients: Clients, workload: Callable[[Cell], Workload]
) -> None:
    """RunError for a load that clients cannot put on a target together, and for a client that lacks
    the path."""
    checked: set[tuple[str, str]] = set()
    for cell in cells:
        if cell.load is None:
            continue
        facts = workload(cell).load().facts
        refused = next((name for name in ("log_ios", "steps") if facts.get(name)), None)
        if refused or not getattr(workload(cell), "waits", False):
            what = f"workload.{refused}" if refused else f"a load of kind '{cell.workload_kind}'"
            raise RunError(
                f"{what} is of one host, and [load] names client hosts",
                where=cell.label(),
                hint="leave one of them out",
            )
        path = cell.load.path
        for client in clients.of(cell) if path is not None else ():
            if (client.name, str(path)) not in checked:
                checked.add((client.name, str(path)))
                _check_path(client, str(path))


def _check_path(client: Client, path: str) -> None:
    with of_client(client.name):
        try:
            is_there = client.host.is_directory(path)
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror or error}") from None
        if not is_there:
            raise RunError(
                f"{path} is not a directory there",
                hint="mount the target's directory there, see that its user may read it, or name another load.path",
            )


def path_on_clients(place: str, export: str | None, path: str | None) -> str:
    """Where clients see a directory of the server.

    `export` is the directory of the server that they see at `path`. RunError if `place` is not in
    it.
    """
    if path is None:
        return place
    below = None if export is None else posixpath.relpath(place, export)
    if below is None or below.startswith(".."):
        raise RunError(
            f"clients cannot see {place}: it is not in {export or 'any directory that load.export names'}",
            where="load.path",
            hint="set load.export to the directory of the server that is mounted at load.path",
        )
    return posixpath.join(path, below)


@contextlib.contextmanager
def client_places(
    clients: Sequence[Client],
    path: str,
    server: Host,
    on_server: str,
    notice: Callable[[str], None],
) -> Iterator[dict[str, Place]]:
    """A directory for each client in the run's directory, made and later removed by that client.

    Args:
        path: the run's directory as the clients see it; on_server: as the server does.

    RunError if a client does not see the directory, or cannot write to it.
    """
    places: dict[str, Place] = {}
    try:
        for client in clients:
            places[client.name] = Place(f"{path}/{client.name}")
            _make_place(client, path, server, on_server)
        yield places
    finally:
        for client in clients:
            if client.name in places:
                try:
                    client.host.remove_tree(places[client.name].path)
                except (RunError, OSError) as error:
                    notice(f"client {client.name}: its files are left to the server: {error}")


def _make_place(client: Client, path: str, server: Host, on_server: str) -> None:
    where = f"client {client.name}"
    try:
        if not client.host.is_directory(path):
            raise RunError(
                f"does not see the target: {path} is missing there",
                where=where,
                hint=f"mount the server's directory there, so that {on_server} of the server is {path}",
            )
        try:
            client.host.make_directory(f"{path}/{client.name}")
        except PermissionError:
            # The server made the run's directory as another user than the client's.
            server.run(["chmod", "1777", on_server])
            client.host.make_directory(f"{path}/{client.name}")
    except OSError as error:
        raise RunError(
            f"cannot write to {path}: {error.strerror or error}",
            where=where,
            hint="let the client's user write there (NFS maps root to another user: no_root_squash)",
        ) from None


@dataclass
class _Member:
    """The load's process on one client. `exit_code` is None while it runs, or if it was lost;
    `is_ended`: iolab ended it, for the reason."""

    client: Client
    directory: Path
    errors: Path
    process: Process
    offset: Offset
    exit_code: int | None = None
    is_over: bool = False
    is_ended: bool = False
    reason: str = ""

    def look(self, seconds: float) -> None:
        """Wait at most so long for its end."""
        try:
            code = self.process.wait(seconds)
        except RunError as error:
            self.is_over, self.reason = True, error.message
            return
        if code is not None:
            self.exit_code, self.is_over = code, True

    @property
    def has_failed(self) -> bool:
        """Whether it failed, was lost, or was ended before its time."""
        return self.is_over and (self.exit_code != 0 or bool(self.reason))

    @property
    def failure(self) -> str:
        """Why it failed."""
        if self.reason:
            return self.reason
        if self.exit_code is None:
            return "did not end"
        return f"exit code {self.exit_code}{last_line(self.errors)}"


class ClientProcesses:
    """The processes of a load on all clients, as one. It ends when the last one does. When one
    fails, the others are ended at once.

    It has no process id of its own: `started` is None.
    """

    pid = -1
    started: int | None = None

    def __init__(self, members: Sequence[_Member], clock: Clock) -> None:
        self._members, self._clock = members, clock

    def wait(self, seconds: float) -> int | None:
        """Wait at most so long; the exit code once all have ended: 0, or the first failed one's."""
        deadline = self._clock.monotonic() + seconds
        while True:
            running = [member for member in self._members if not member.is_over]
            for place, member in enumerate(running):
                remaining = max(0.0, deadline - self._clock.monotonic())
                member.look(remaining / (len(running) - place))
                if member.has_failed:
                    self._end_others(member)
                    break
            if all(member.is_over for member in self._members):
                return self._exit_code()
            if self._clock.monotonic() >= deadline:
                return None

    def end(
        self, grace: float = 5.0, first: Signals = SIGTERM, patience: float = 30.0
    ) -> int | None:
        """End all of them. None if something waits in the kernel."""
        running = [member for member in self._members if not member.is_over]
        codes = _end_all(running, grace, first, patience)
        for member, code in zip(running, codes, strict=True):
            member.exit_code, member.is_over, member.is_ended = code, code is not None, True
            member.reason = member.reason or "ended by iolab"
        return self._exit_code() if all(member.is_over for member in self._members) else None

    def _end_others(self, cause: _Member) -> None:
        running = [member for member in self._members if not member.is_over]
        for member in running:
            member.is_ended = True
            member.reason = f"ended because client {cause.client.name} failed"
        for member, code in zip(running, _end_all(running, 5.0, SIGTERM, 30.0), strict=True):
            member.exit_code, member.is_over = code, True

    def _exit_code(self) -> int:
        failed = [member for member in self._members if member.has_failed]
        failed.sort(key=lambda member: member.is_ended)
        return failed[0].exit_code or 1 if failed else 0


def _end_all(
    members: Sequence[_Member], grace: float, first: Signals, patience: float
) -> list[int | None]:
    """End members at the same time: each takes its grace."""

    def end(member: _Member) -> int | None:
        try:
            return member.process.end(grace, first, patience)
        except RunError as error:  # its host ends it when the connection is lost
            member.reason = member.reason or error.message
            return 1

    if not members:
        return []
    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(end, members))


@dataclass
class ClientLaunch:
    """A load on all clients. With `concurrent_jobs` every one begins its I/O at the same time, which
    each gets by its own clock.

    Attributes:
        job: the job of a client by its name, with its start time; None to start at once.
        server: the host with the clock of the run's times. concurrent_jobs: jobs of each client
        that wait for the start; 0 for a load that need not start together.
    """

    clients: Sequence[Client]
    job: Callable[[str, StartTime | None], Job]
    server: Host
    clock: Clock
    concurrent_jobs: int = 0
    begins: float | None = None
    _members: list[_Member] = field(default_factory=list)
    _server_offset: Offset | None = None

    @property
    def limit(self) -> float:
        """Seconds after which a client's job hangs, with what a start takes."""
        return max(self.job(client.name, None).limit for client in self.clients) + _PATIENCE

    def start(
        self, directory: Path, prefix: str, environment: Mapping[str, str]
    ) -> ClientProcesses:
        """Start the job on every client. RunError if not all can have it in time."""
        self._server_offset = self.server.clock_offset()
        offsets = {client.name: self._offset(client) for client in self.clients}
        trips = sum(offset.round_trip_ns for offset in offsets.values()) / 1e9
        lead = LEAD + _LEAD_EACH * len(self.clients) + _LEAD_JOB * self.concurrent_jobs
        lead += _ROUND_TRIPS * trips
        for _ in range(_TRIES):
            self._members = []
            processes = ClientProcesses(self._members, self.clock)
            begin = self.clock.monotonic() + lead if self.concurrent_jobs else None
            try:
                for client in self.clients:
                    self._start_on(client, directory, prefix, environment, offsets, begin)
            except BaseException:
                processes.end()
                raise
            if begin is None or begin - self.clock.monotonic() >= _MARGIN:
                self.begins = begin
                return processes
            processes.end()
            lead *= 3
        raise RunError(
            f"{len(self.clients)} clients cannot be started together: giving them their programs took more than {lead / 3:.1f} s",
            hint="see whether a client is overloaded, or its connection is slow",
        )

    def facts(self) -> Mapping[str, Any]:
        """The processes on the clients."""
        return {
            "clients": [
                {
                    "client": member.client.name,
                    "pid": member.process.pid,
                    "pid_started_ticks": member.process.started,
                }
                for member in self._members
            ]
        }

    def kernel_wait(self, process: Process) -> ClientWaits:
        """Of the processes on all clients."""
        return ClientWaits(
            {
                member.client.name: KernelWait(member.client.host, member.process.pid)
                for member in self._members
            }
        )

    def outcome(self, exit_code: int | None) -> tuple[Status, str]:
        """The first client that iolab did not end, with its exit code and last words."""
        failed = [member for member in self._members if member.has_failed]
        causes = [member for member in failed if not member.is_ended]
        for member in causes or failed:
            return "failed", f"client {member.client.name}: {member.failure}"
        return "finished", ""

    def runs(self, window: Callable[[Path], tuple[int, int] | None]) -> tuple[ClientRun, ...]:
        """What became of each client, with its window by the server's clock.

        `window` reads the measured window by the client's clock from its files. Every clock is
        measured again, since a change in between would shift what it stamped.
        """
        return tuple(self._run(member, window) for member in self._members)

    def _run(self, member: _Member, window: Callable[[Path], tuple[int, int] | None]) -> ClientRun:
        before, after = self._to_server(member.offset), self._to_server(member.offset)
        try:
            self._server_offset = self.server.clock_offset()
            after = self._to_server(member.client.host.clock_offset())
        except RunError:
            pass  # it is lost, and so is the run
        measured = window(member.directory)
        offset = (before[0] + after[0]) // 2
        failed = member.has_failed or not member.is_over
        return ClientRun(
            name=member.client.name,
            host=member.client.word,
            status="ended" if member.is_ended else "failed" if failed else "finished",
            reason=member.failure if failed else "",
            exit_code=member.exit_code,
            window=None if measured is None else (measured[0] - offset, measured[1] - offset),
            clock_offset_ns=offset,
            clock_uncertainty_ns=max(before[1], after[1]) + abs(after[0] - before[0]) // 2,
            clock_change_ns=after[0] - before[0],
        )

    def _to_server(self, offset: Offset) -> tuple[int, int]:
        """A client's clock minus the server's, and its uncertainty, nanoseconds."""
        server = self._server_offset
        assert server is not None
        return (
            offset.nanoseconds - server.nanoseconds,
            offset.uncertainty_ns + server.uncertainty_ns,
        )

    def _offset(self, client: Client) -> Offset:
        with of_client(client.name):
            return client.host.clock_offset()

    def _start_on(
        self,
        client: Client,
        directory: Path,
        prefix: str,
        environment: Mapping[str, str],
        offsets: Mapping[str, Offset],
        begin: float | None,
    ) -> None:
        own = directory / CLIENTS / client.name
        own.mkdir(parents=True, exist_ok=True)
        offset, start = offsets[client.name], None
        with of_client(client.name):
            if begin is not None:
                python = interpreter(client.host)
                if python is None:
                    raise RunError("has no Python, which waits for the common start")
                start = StartTime(self._realtime_ns(begin) + offset.nanoseconds, python)
            job = self.job(client.name, start)
            process = start_job(client.host, job, own, prefix, environment)
        errors = own / f"{prefix}{STDERR_FILE}"
        self._members.append(_Member(client, own, errors, process, offset))

    def _realtime_ns(self, monotonic: float) -> int:
        """This machine's time of day at a monotonic second. `clock` has that of the server."""
        server = self._server_offset
        assert server is not None
        remaining = monotonic - self.clock.monotonic()
        return self.clock.realtime_ns() - server.nanoseconds + round(remaining * 1e9)
