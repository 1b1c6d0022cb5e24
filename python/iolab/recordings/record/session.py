# SPDX-License-Identifier: Apache-2.0
"""A whole recording: the writer with the keeper of statistics, the loop and the control socket joined
in one directory."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import os
import pkgutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock, SystemClock
from iolab.base.errors import IolabError, UsageError
from iolab.base.files import make_folders, remove

from .. import ask, record, store
from ..ask import kept
from ..ask.kept.manage import begin
from ..ask.kept.writer import Keeper
from ..store.base.layout import is_recording, keep_private, telling
from ..store.base.lock import LOCK
from ..store.base.memory import keep_freed_memory
from ..store.base.metadata import Facts, periods_of
from ..store.write.writer import RecordingWriter
from . import archiving
from .command import Command
from .control import NAME as CONTROL_FILE
from .control import Control
from .probe.launch import Launcher
from .recorder import Heard, Outcome, Parts, Recorder, wait_readable
from .recording_clock import begun_by
from .settings import SOURCES, Retention, Settings
from .sinks.disks import DiskPlaces, DiskSink
from .sinks.intake import Sink
from .sinks.smb import SmbSink
from .sinks.zpool import PoolSink
from .status import FILE as STATUS_FILE

KEEPER_NICENESS = 10
"""Of the thread: what is measured, and what is recorded, goes before it."""
LAST_S = 20.0
"""Seconds that it has at the end for what is not kept yet; the rest is made by the next writer."""


class KeepingSink(Sink):
    """The writer of a recording with a thread that works once a second: it keeps statistics, and
    joins old maps.
    `close` is called once."""

    def __init__(self, writer: RecordingWriter, notice: Callable[[str], None]) -> None:
        """`notice` receives what a user should know, by the thread that calls `tick`."""
        super().__init__(writer)
        self._writer, self._notice = writer, notice
        self._words: deque[str] = deque()
        self._said: set[str] = set()
        self._ending = False
        self._until = float("inf")
        self._nudge = threading.Event()
        self._keeper = Keeper(
            writer.directory,
            noticed=self._words.append,
            cpus=os.cpu_count() or 1,
            going=lambda: time.monotonic() < self._until,
        )
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._thread.start()

    def tick(self, now_ns: int) -> None:
        """See `RecordingWriter.tick`; has the keeper look."""
        try:
            self._writer.tick(now_ns)
        finally:
            self._nudge.set()
            self._tell()

    def close(self) -> None:
        """Seal, keep what is not kept yet, and close."""
        with contextlib.suppress(IolabError):
            # where it fails, closing says so
            self._writer.seal()
        self._until = time.monotonic() + LAST_S
        self._ending = True
        self._nudge.set()
        self._thread.join()
        self._tell()
        self._writer.close()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(
                os.PRIO_PROCESS,
                threading.get_native_id(),
                min(19, os.getpriority(os.PRIO_PROCESS, 0) + KEEPER_NICENESS),
            )
        while not self._ending:
            self._nudge.wait()
            self._nudge.clear()
            self._look()
        # what was sealed while it looked
        self._look()

    def _look(self) -> None:
        try:
            self._keeper.look()
        except IolabError as error:
            self._words.append(f"statistics are not kept: {error}")
        except Exception as error:
            # a fault here must not go unheard, nor end what records
            self._words.append(f"statistics are not kept: {type(error).__name__}: {error}")
        try:
            self._writer.map_joiner.join(lambda: not self._ending)
        except IolabError as error:
            self._words.append(f"old maps are not joined: {error}")
        except Exception as error:
            self._words.append(f"old maps are not joined: {type(error).__name__}: {error}")

    def _tell(self) -> None:
        """Each once: what can't be done now can't be done a second later either."""
        while self._words:
            words = self._words.popleft()
            if words not in self._said:
                self._said.add(words)
                self._notice(words)


NICENESS = 5
"""Added to the recorder's own niceness: what is measured goes before it. The probe keeps its own,
for it must not come late."""


def preload(*more: str) -> None:
    """Load everything that recording needs, and `more` modules: once root is given up, what only
    root may read can't be loaded any more."""
    codecs.lookup("ascii")
    for name in ("duckdb", "pyarrow.compute", "pyarrow.ipc", "pyarrow.parquet", *more):
        importlib.import_module(name)
    for package in (record, store, ask, kept):
        # of these two, the sub-packages too
        find = pkgutil.walk_packages if package in (record, kept) else pkgutil.iter_modules
        for module in find(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def check_directory(directory: Path) -> None:
    """UsageError where a recording can be neither made nor continued."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(
            "is a file, not a directory", where=directory, hint="choose another directory with -o"
        )
    if (
        directory.is_dir()
        and not is_recording(directory)
        and any(entry.name != LOCK for entry in directory.iterdir())
    ):
        raise UsageError(
            "is not empty and holds no recording",
            where=directory,
            hint="choose another directory with -o",
        )


def open_writer(
    directory: Path,
    hello: Mapping[str, Any],
    retention: Retention,
    origin: Mapping[str, Any],
    clock: Clock,
    *,
    is_shared: bool = False,
) -> RecordingWriter:
    """The writer: of a new recording, or of the existing one. `clock`: that of the
    machine that is recorded. is_shared: whether other users may read it, as far as the umask lets
    them."""
    if directory.is_dir() and not is_shared:
        keep_private(directory)
    limits = {
        "bytes": retention.bytes,
        "age_s": None if retention.age_s is None else round(retention.age_s),
    }
    sources, begun = dict(hello.get("sources", {})), begun_by(hello)
    if is_recording(directory):
        for name in (CONTROL_FILE, STATUS_FILE):
            remove(directory / name)
        absent = [name for name in SOURCES if name not in sources]
        return RecordingWriter.reopen(
            directory,
            sources=sources,
            absent=absent,
            retention=limits,
            live=True,
            begun=begun,
            system=clock,
        )
    if is_shared:
        with telling(directory, "make a recording here"):
            make_folders(directory)
    facts = Facts(str(hello.get("hostname", "")), "realtime", dict(origin), sources, limits)
    return RecordingWriter.begin(directory, facts, live=True, begun=begun, system=clock)


def note_connection(writer: RecordingWriter, connection: Mapping[str, Any]) -> None:
    """What `recording.json` says of a host elsewhere: how it is reached, and by how much its clock
    is ahead in this session."""
    writer.note_origin(
        "connection",
        {"host": connection["host"], **connection["connection"]},
        {key: connection[key] for key in ("clock_offset_ns", "clock_offset_uncertainty_ns")},
    )


def kept_beside(writer: RecordingWriter, settings: Settings, notice: Callable[[str], None]) -> Sink:
    """The writer with the keeper of statistics, and what is to be kept from the start."""
    try:
        begin(
            writer.directory,
            settings.sources,
            settings.statistics,
            writer.facts.sessions[-1]["from_ns"] or 0,
        )
    except IolabError as error:
        notice(f"statistics are not kept: {error}")
    return KeepingSink(writer, notice)


@dataclass(frozen=True)
class Preparation:
    """What a session records, ready to begin.

    Attributes:
        origin: of the recording, besides `kind`, as in `recording.json`.
        clock: the time of day of another machine that is recorded; None for this one.
        connection: how that machine is reached now.
        pools: see `PoolSink`; None without pools.
        samba: see `SmbSink`; None without system calls.
        disks: see `DiskSink`; None without disks.
    """

    settings: Settings
    launcher: Launcher
    origin: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock | None = None
    connection: Callable[[], Mapping[str, Any]] | None = None
    pools: Callable[[], Sequence[str]] | None = None
    samba: Callable[[], Sequence[str]] | None = None
    disks: Callable[[], Sequence[str]] | None = None


class Session:
    """One recording to be made. `stop` may be called from a signal handler once it is made."""

    def __init__(
        self,
        preparation: Preparation,
        directory: Path,
        heard: Heard,
        *,
        command: Sequence[str] = (),
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: see `open_writer`; names of files and command lines are private
        otherwise.
        """
        settings, connection = preparation.settings, preparation.connection
        clock = preparation.clock or SystemClock()
        self._settings, self._heard = settings, heard
        self._writer: RecordingWriter | None = None
        self._preparation, self._is_shared = preparation, is_shared
        self._push = (
            None
            if settings.archive is None
            else archiving.PushProcess.of(directory, settings.archive, settings.labels)
        )
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        facts = {
            "kind": "record",
            **preparation.origin,
            **({"command": list(command)} if command else {}),
        }
        self._recorder = Recorder(
            settings,
            Parts(
                launcher=preparation.launcher,
                clock=clock,
                heard=heard,
                directory=directory,
                wait=wait_readable,
                cpu_ns=time.process_time_ns,
                open_sink=lambda hello: self._open(
                    open_writer(
                        directory, hello, settings.retention, facts, clock, is_shared=is_shared
                    )
                ),
                control=lambda: Control(directory),
                command=Command(command, self._umask) if command else None,
                settled=lambda: os.nice(NICENESS),
                cpus=os.cpu_count() or 1,
                far=connection is not None,
                restarted=self._renew,
            ),
        )

    def stop(self, *, now: bool = False) -> None:
        """See `Recorder.stop`."""
        self._recorder.stop(now=now)

    def run(self) -> Outcome:
        """Record."""
        keep_freed_memory()
        if self._is_shared:
            return self._recorder.run()
        os.umask(0o077)
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        try:
            return self._recorder.run()
        finally:
            os.umask(self._umask)
            # what follows in this process is not recording; only root can do this
            with contextlib.suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, 0, niceness)

    def finish_archive(self) -> None:
        """Push the remaining segments of a recording that ended; nothing without an archive. ResultsError
        where something is not archived: the recording has it. KeyboardInterrupt leaves the rest to
        a later push."""
        if self._push is not None and self._writer is not None and self._settings.archive:
            archiving.finish(self._writer.directory, self._settings.archive, self._push)

    def _open(self, writer: RecordingWriter) -> Sink:
        self._writer = writer
        self._note()
        sink = kept_beside(writer, self._settings, self._heard.notice)
        if (pools := self._preparation.pools) is not None:
            sink = PoolSink(sink, pools, writer.describe, self._recorder.own_ns)
        if (disks := self._preparation.disks) is not None:
            begin_ns = writer.facts.sessions[-1]["from_ns"] or 0
            places = DiskPlaces(periods_of(writer.facts.origin), begin_ns)
            sink = DiskSink(sink, disks, places, writer.note_origin)
        if (samba := self._preparation.samba) is not None:
            smb_sink = SmbSink(sink, samba, self._heard.notice)
            smb_sink.prepare()
            sink = smb_sink
        if self._push is not None:
            sink = archiving.ArchivingSink(
                sink,
                writer,
                self._push,
                self._recorder.status,
                self._heard.notice,
                drops_archived=self._settings.drops_archived,
            )
        return sink

    def _renew(self, hello: Mapping[str, Any]) -> None:
        if self._writer is not None:
            self._writer.renew(begun_by(hello))
        self._note()

    def _note(self) -> None:
        connection = self._preparation.connection
        if self._writer is not None and connection is not None:
            note_connection(self._writer, connection())
