# SPDX-License-Identifier: Apache-2.0
"""Push a recording into an archive while it grows. A process of its own pushes: neither a store
that is away nor the memory of a push disturbs the recorder."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from iolab.base.errors import ResultsError

from ..archive.upload.progress import FILE, Progress, read_progress
from ..store.write.writer import RecordingWriter
from .sinks.intake import Sink
from .status import Status

EVERY_S = 10
"""Seconds between two attempts to push."""
LOOK_S = 1.0
RESTART_S = 10.0
REPEAT_S = 3600.0
"""Seconds until the notice on a store that remains away is repeated."""
USAGE = 2
"""Exit code of a command line that can't work: it is not started again."""


class PushProcess:
    """`iolab archive push --every` of a recording.

    Attributes:
        message: the last line that it wrote to standard error.
    """

    def __init__(self, command: Sequence[str], now: Callable[[], float] = time.monotonic) -> None:
        self._command, self._now = list(command), now
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0
        self._rest = b""
        self.message = ""

    @classmethod
    def of(cls, directory: Path, url: str, labels: Sequence[str] = ()) -> PushProcess:
        """The process for a recording and an archive. labels: of the host, `NAME=VALUE`."""
        words = ["archive", "push", str(directory), url, "--every", f"{EVERY_S}s", "--until-closed"]
        words += [f"--label={label}" for label in labels]
        return cls([sys.executable, "-P", "-m", "iolab", *words])

    def keep_running(self) -> str | None:
        """Start it where it does not run. Returns why it ended, once, where it did."""
        if self._process is None:
            if self._now() >= self._start_at:
                self._start()
            return None
        self._read()
        code = self._process.poll()
        if code is None:
            return None
        self._read()
        self._close()
        self._start_at = float("inf") if code == USAGE else self._now() + RESTART_S
        return self.message or f"the push ended with code {code}"

    def finish(self) -> str | None:
        """Let it push the remaining segments, and wait for it. Returns why it failed, None where it did not.
        KeyboardInterrupt ends it."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.close()
            while process.poll() is None:
                self._read()
                time.sleep(0.05)
            self._read()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            code = process.poll()
            self._close()
        return None if code == 0 else self.message or f"the push ended with code {code}"

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            # Ctrl-C at a terminal is for the recorder
            process_group=0,
        )
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)

    def _read(self) -> None:
        process = self._process
        if process is None or process.stderr is None:
            return
        with contextlib.suppress(OSError):
            while data := process.stderr.read():
                self._rest = (self._rest + data)[-4096:]
        lines = [line.strip() for line in self._rest.decode("utf-8", "replace").splitlines()]
        self.message = next((line for line in reversed(lines) if line), self.message)

    def _close(self) -> None:
        process, self._process, self._rest = self._process, None, b""
        for pipe in (process.stdin, process.stderr) if process is not None else ():
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class ArchivingSink(Sink):
    """The sink of a recording that is pushed while it grows. The writer learns which
    segments are archived, and the user when the archive can't be reached."""

    def __init__(
        self,
        sink: Sink,
        writer: RecordingWriter,
        process: PushProcess,
        status: Status,
        notice: Callable[[str], None],
        *,
        drops_archived: bool,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`drops_archived`: whether segments are deleted here once they are archived."""
        super().__init__(sink)
        self._writer, self._process, self._status = writer, process, status
        self._notice, self._drops, self._now = notice, drops_archived, now
        self._looked = float("-inf")
        self._file = self._identity()
        self._said_at = float("-inf")
        self._fails = False
        self._deleted = 0
        writer.note_archived(0, drops=False)

    def tick(self, now_ns: int) -> None:
        """See `Sink`; has the archive looked at once a second."""
        if self._now() - self._looked >= LOOK_S:
            self._looked = self._now()
            self._look(now_ns)
        self._sink.tick(now_ns)

    def _look(self, now_ns: int) -> None:
        ended = self._process.keep_running()
        if ended is not None:
            self._notice(f"the archive is not pushed: {ended}")
        identity = self._identity()
        if identity != self._file:
            # a file of an earlier push says nothing of this archive now
            self._file = identity
            progress = read_progress(self._writer.directory)
            if progress is not None:
                self._take(progress, now_ns)
        elif self._status.archive:
            self._status.archive["behind_s"] += LOOK_S if self._status.archive["rows"] else 0

    def _take(self, progress: Progress, now_ns: int) -> None:
        self._status.archive = {
            "archive": progress.archive,
            "rows": progress.rows,
            "bytes": progress.bytes,
            "behind_s": round(progress.behind_s(now_ns), 1),
            "pushed_ns": progress.pushed_ns,
            "error": progress.error,
        }
        if not progress.error:
            self._writer.note_archived(progress.through, drops=self._drops)
        if progress.deleted > self._deleted:
            self._notice(
                f"{progress.deleted - self._deleted} segments were deleted before they were archived"
                " (--keep)"
            )
        self._deleted = max(self._deleted, progress.deleted)
        if progress.error and (not self._fails or self._now() - self._said_at >= REPEAT_S):
            self._said_at = self._now()
            self._notice(
                f"{progress.error}; {progress.rows:,} rows are kept here and pushed again"
                f" every {EVERY_S} s"
            )
        elif self._fails and not progress.error:
            self._notice("the archive is reached again")
        self._fails = bool(progress.error)

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = (self._writer.directory / FILE).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns


def finish(directory: Path, url: str, process: PushProcess) -> None:
    """Push the remaining segments of a recording that ended. ResultsError where something is not archived."""
    error = process.finish()
    progress = read_progress(directory)
    if error is None:
        return
    rows = "" if progress is None else f"{progress.rows:,} rows are not archived: "
    raise ResultsError(
        f"{rows}{error.removeprefix('iolab: ')}",
        where=directory,
        hint=f"iolab archive push {directory} {url} continues",
    )
