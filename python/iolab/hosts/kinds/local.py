# SPDX-License-Identifier: Apache-2.0
"""This machine as a host."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iolab.base.errors import RunError
from iolab.base.files import open_for_writing

from ..base.host import FROZEN, SAME_CLOCK, Completed, HungError, Offset
from ..base.kmsg import Kmsg
from ..base.options import Options
from ..base.orphans import end_group, end_marked, members, start_ticks, state

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_PR_SET_PDEATHSIG = 1  # prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


_KILLED = 3.0
"""Seconds within which a command that gets SIGKILL ends, unless it waits in the kernel."""
_ANSWER = 30.0
"""Seconds within which a file system makes a directory, however busy it is."""
_REMOVE = 600.0
"""Seconds that removing a tree may take."""
_LOOK = 0.02
_STOP_LOOK, _STOP_AFTER = 0.5, 5.0
"""Seconds between looks at whether to stop, and that a command has in any case."""


def _open_output(path: Path) -> int:
    """A file for the output of a program; /dev/null, which is no regular file, for none."""
    if path == Path(os.devnull):
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    return open_for_writing(path, _NEW)


class LocalOptions(Options):
    """The local host has nothing to choose."""


class LocalHost:
    """The machine that iolab runs on."""

    name = "local"
    options = LocalOptions

    def __init__(self, options: LocalOptions | None = None) -> None:
        self._options = options or LocalOptions()
        self._first: tuple[str, ...] = ()
        self.stopping: Callable[[], bool] = lambda: False
        """Whether the user wants all to stop: a command that waits in the kernel is not waited for
        then."""

    def with_path(self, directory: str) -> LocalHost:
        """This host with a directory in front of PATH, for all that is started through it."""
        host = copy.copy(self)
        host._first = (directory, *self._first)
        return host

    def which(self, program: str) -> str | None:
        """Full path of a program, or None."""
        return shutil.which(program, path=self._environment({})["PATH"])

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The caller's environment with words and numbers in the form that readers expect."""
        environment = {"PATH": os.defpath, **os.environ, "LC_ALL": "C", **extra}
        environment["PATH"] = os.pathsep.join([*self._first, environment["PATH"]])
        return environment

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        """Run a short command to its end."""
        try:
            popen = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment({}),
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise RunError(f"'{command[0]}' can't be started: {error}", where=self.name) from None
        try:
            out, err = self._output(popen, timeout)
        except subprocess.TimeoutExpired as late_after:
            late = f"'{command[0]}' did not end within {late_after.timeout:g} s"
            if not _kill(popen):
                raise HungError(
                    f"{late}: it waits in the kernel", where=self.name, hint=FROZEN
                ) from None
            raise RunError(late, where=self.name) from None
        except BaseException:
            _kill(popen)
            raise
        return Completed(
            tuple(command),
            _exit_code(popen.returncode),
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
        )

    def _output(self, popen: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
        """What a command wrote; TimeoutExpired once its time is over, or where it waits in the
        kernel and the user wants to stop."""
        begin = time.monotonic()
        while True:
            remaining = begin + timeout - time.monotonic()
            try:
                return popen.communicate(timeout=max(0.0, min(remaining, _STOP_LOOK)))
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - begin
                if passed >= timeout:
                    raise subprocess.TimeoutExpired(popen.args, timeout) from None
                if self.stopping() and passed > _STOP_AFTER and state(popen.pid) == "D":
                    raise subprocess.TimeoutExpired(popen.args, round(passed)) from None

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdout: Path,
        stderr: Path,
        environment: Mapping[str, str] | None = None,
        folders: Sequence[str] = (),
    ) -> LocalProcess:
        """Start a command in a process group of its own, so that a Ctrl-C meant for iolab doesn't
        reach it."""
        try:
            for folder in folders:
                (cwd / folder).mkdir(exist_ok=True)
            with (
                os.fdopen(_open_output(stdout), "wb") as out,
                os.fdopen(_open_output(stderr), "wb") as err,
            ):
                popen = subprocess.Popen(
                    list(command),
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=self._environment(environment or {}),
                    process_group=0,
                    preexec_fn=_die_with(os.getpid()),
                )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise RunError(f"'{command[0]}' can't be started: {error}", where=self.name) from None
        return LocalProcess(popen)

    def clock_offset(self) -> Offset:
        """Zero: it is this machine's clock."""
        return SAME_CLOCK

    def end_leftover(self, pid: int, started: int, mark: str, grace: float = 10.0) -> list[int]:
        """End what a killed iolab left running."""
        return end_group(pid, started, mark, grace)

    def end_marked(self, marks: Sequence[str], grace: float = 10.0) -> list[int]:
        """End what a killed iolab left running without a record."""
        return end_marked(marks, grace)

    def kernel_log(self) -> Kmsg | None:
        """`/dev/kmsg`, where this user may read it."""
        try:
            return Kmsg()
        except OSError:
            return None

    def read_text(self, path: str) -> str:
        """A text file's content; bytes that are no UTF-8 are replaced."""
        return Path(path).read_text("utf-8", "replace")

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return sorted(entry.name for entry in Path(path).iterdir())

    def resolve(self, path: str) -> str:
        """The absolute path without symbolic links."""
        return str(Path(path).resolve())

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""
        return Path(path).is_dir()

    def free_bytes(self, path: str) -> int:
        """Bytes free for ordinary users: root's reserve isn't counted (statvfs(3), f_bavail)."""
        statistics = os.statvfs(path)
        return statistics.f_bavail * statistics.f_frsize

    def make_directory(self, path: str) -> None:
        """Make a directory that must not exist yet. HungError where its file system doesn't
        answer."""
        if not self._done_beside(["mkdir", "--", path], _ANSWER):
            Path(path).mkdir()  # for its error

    def make_scratch(self, parent: str, prefix: str) -> str:
        """Make a fresh directory under `parent`."""
        return tempfile.mkdtemp(prefix=prefix, dir=parent)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it. HungError where its file system doesn't
        answer."""
        if not Path(path).is_symlink() and self._done_beside(["rm", "-rf", "--", path], _REMOVE):
            return
        if Path(path).exists():
            shutil.rmtree(path)

    def _done_beside(self, command: Sequence[str], timeout: float) -> bool:
        """Whether a command succeeded. What may hang in the kernel is done by another process: one
        that hangs hears no signal."""
        try:
            return self.run(command, timeout=timeout).exit_code == 0
        except HungError:
            raise
        except RunError:
            return False


class LocalProcess:
    """A child process, watched through its pidfd: waiting costs no polling and ends the moment it
    does."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid
        self.started = start_ticks(popen.pid)
        self._poller: select.poll | None = None
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(popen.pid)
            self._poller = select.poll()
            self._poller.register(self._pidfd, select.POLLIN)
        except OSError:  # before Linux 5.3, and in some sandboxes
            self._poller = None

    def wait(self, seconds: float) -> int | None:
        """Let at most `seconds` pass; the exit code once it ended."""
        if self._popen.returncode is None:
            if self._poller is not None:
                self._poller.poll(max(seconds, 0.0) * 1000)
                self._popen.poll()
            else:
                try:
                    self._popen.wait(max(seconds, 0.0))
                except subprocess.TimeoutExpired:
                    return None
        if self._popen.returncode is None:
            return None
        self._close()
        return _exit_code(self._popen.returncode)

    def end(
        self, grace: float = 5.0, first: signal.Signals = signal.SIGTERM, patience: float = 30.0
    ) -> int | None:
        """End the whole group: by `first`, then SIGKILL for whatever is left after `grace`
        seconds."""
        if self._popen.returncode is None:
            self._signal(first)
            if self.wait(grace) is None:
                self._signal(signal.SIGKILL)
        limit = time.monotonic() + patience
        code = self.wait(patience)
        # Members that outlived the leader keep the group's id taken, so it can't name strangers
        # yet.
        self._signal(signal.SIGKILL)
        while members(self.pid):
            if time.monotonic() >= limit:
                return None
            time.sleep(_LOOK)
        return code

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd, self._poller = -1, None


def _kill(popen: subprocess.Popen[bytes]) -> bool:
    """Kill a command; whether it went."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    try:
        popen.wait(_KILLED)
    except subprocess.TimeoutExpired:
        return False
    finally:
        for pipe in (popen.stdout, popen.stderr):
            if pipe is not None:
                pipe.close()
    return True


def _exit_code(code: int) -> int:
    """Shells' convention for a death by signal, which fio's documentation and scripts use as
    well."""
    return 128 - code if code < 0 else code


def _die_with(parent: int) -> Callable[[], None]:
    """What the child does before it becomes the program: ask for SIGTERM when iolab dies, even by
    kill -9.

    SIGTERM, not SIGKILL: the death signal reaches the child alone, and fio passes SIGTERM on to the
    jobs it forked.
    """

    def ask() -> None:
        # iolab's own handler stands until the program does: it would take the signal and forget it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:  # died in between
            os._exit(1)

    return ask
