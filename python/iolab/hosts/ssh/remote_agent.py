# SPDX-License-Identifier: Apache-2.0
"""What runs on the far side of an ssh connection: it does there what `local.LocalHost` does here,
request by request.

Its text goes over the connection together with `orphans` and `kmsg` and is run by the far side's
own Python (3.9 or newer, the standard library alone); nothing is installed there. A request is a
line of JSON, followed by as many raw bytes as its `bytes` says; so is an answer: `{"ok": ...}`,
`{"os": [errno, path]}` for an OSError, `{"hung": words}` for a command that waits in the kernel, or
`{"wrong": words}`.

Where the connection ends, or nothing is heard for a minute while a program runs, whatever was
started is ended: SIGTERM, then SIGKILL. Whoever kills this itself ends its programs too
(PR_SET_PDEATHSIG). What may hang in the kernel (a file system that is frozen) is done by other
processes, and waited for within bounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..base.kmsg import Kmsg
from ..base.orphans import end_group, end_marked, members, start_ticks

LEASE = 60.0
"""Seconds without a word from the other side after which running programs are ended: it asks at
least every second while one runs."""
GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL for programs without an owner."""
KILLED = 3.0
"""Seconds within which a command that gets SIGKILL ends, unless it waits in the kernel."""
ANSWER = 30.0
"""Seconds within which a file system makes a directory, however busy it is."""
REMOVE = 600.0
"""Seconds that removing a tree may take."""
_LOOK = 0.02
_PR_SET_PDEATHSIG = 1  # prctl(2)


class Hung(Exception):
    """A command waits in the kernel and can't be ended."""


class Gone(Exception):
    """The other side has hung up."""


class FarEnd:
    """Answers requests that come from one descriptor on another."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._buffer = b""
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._passing: dict[str, str] = {}
        self._log: Kmsg | None = None
        # A descriptor that becomes readable whenever a child ends, on every Python and kernel.
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def serve(self) -> None:
        """Answer until the other side hangs up; then end what it started."""
        try:
            while True:
                request = json.loads(self._line())
                data = self._take(int(request.get("bytes", 0)))
                self._answer(request, data)
        except (Gone, OSError, ValueError):
            pass
        finally:
            self._end_all()

    def _answer(self, request: dict[str, Any], data: bytes) -> None:
        payload = b""
        try:
            method: Callable[..., Any] = getattr(self, "do_" + request["do"])
            result = method(data, **request["with"]) if data else method(**request["with"])
            if isinstance(result, bytes):
                payload, result = result, None
            answer: dict[str, Any] = {"ok": result}
        except OSError as error:
            answer = {
                "os": [
                    error.errno or 0,
                    error.filename if isinstance(error.filename, str) else None,
                ],
                "wrong": str(error),
            }
        except Hung as error:
            answer = {"hung": str(error)}
        except (ValueError, subprocess.SubprocessError) as error:
            answer = {"wrong": str(error)}
        if payload:
            answer["bytes"] = len(payload)
        self._send(json.dumps(answer).encode() + b"\n" + payload)

    # what is asked

    def do_hello(self) -> dict[str, Any]:
        """Who and what this is."""
        return {
            "pid": os.getpid(),
            "uid": os.getuid(),
            "python": ".".join(map(str, sys.version_info[:3])),
            "node": os.uname().nodename,
            "machine": os.uname().machine,
            "builds": _builds(),
        }

    def do_clock(self) -> int:
        """Nanoseconds since 1970-01-01 UTC by this machine."""
        return time.time_ns()

    def do_which(self, program: str) -> str | None:
        """Full path of a program."""
        return shutil.which(program, path=_path())

    def do_run(
        self,
        data: bytes = b"",
        *,
        command: list[str],
        timeout: float,
        carried: list[int] | None = None,
    ) -> dict[str, Any]:
        """Run a command to its end. `carried`: places in it that mean files in memory, with
        content `data`."""
        file = -1
        if carried:
            file = os.memfd_create("carried")
            _write_all(file, data)
            command = [
                f"/proc/{os.getpid()}/fd/{file}" if place in carried else word
                for place, word in enumerate(command)
            ]
        try:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment({}),
                preexec_fn=_begin(os.getpid()),
            )
            try:
                out, err = popen.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                _kill(popen.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    popen.communicate(timeout=KILLED)
                if popen.poll() is None:
                    for pipe in (popen.stdout, popen.stderr):
                        if pipe is not None:
                            pipe.close()
                return {"late": True, "hung": popen.returncode is None}
            return {
                "exit_code": _exit_code(popen.returncode),
                "stdout": out.decode("utf-8", "replace"),
                "stderr": err.decode("utf-8", "replace"),
            }
        finally:
            if file >= 0:
                os.close(file)

    def do_start(
        self, *, command: list[str], cwd: str, stdout: str, stderr: str, environment: dict[str, str]
    ) -> dict[str, Any]:
        """Start a command in a process group of its own."""
        with Path(stdout).open("wb") as out, Path(stderr).open("wb") as err:
            popen = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=_environment(environment),
                preexec_fn=_begin(os.getpid()),
            )
        self._children[popen.pid] = popen
        return {"pid": popen.pid, "started": start_ticks(popen.pid)}

    def do_wait(self, *, pid: int, seconds: float) -> int | None:
        """Its exit code once it ended, None while it runs after `seconds`."""
        popen = self._children.get(pid)
        if popen is None:
            raise ValueError(f"no process {pid} was started here")
        deadline = time.monotonic() + seconds
        while popen.poll() is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            ready, _, _ = select.select([self._source, self._woken], [], [], remaining)
            self._drain()
            if self._source in ready:
                self._fill()  # nothing is asked while an answer is due: only a hang-up comes here
        return _exit_code(popen.returncode)

    def do_end(self, *, pid: int, grace: float, first: int, patience: float) -> int | None:
        """End a whole group: by `first`, then SIGKILL for whatever is left after `grace` seconds.
        None where something of it is there `patience` seconds later."""
        popen = self._children.get(pid)
        if popen is None:
            raise ValueError(f"no process {pid} was started here")
        if popen.poll() is None:
            _kill(pid, first)
            with contextlib.suppress(subprocess.TimeoutExpired):
                popen.wait(grace)
            if popen.poll() is None:
                _kill(pid, signal.SIGKILL)
        limit = time.monotonic() + patience
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(patience)
        _kill(pid, signal.SIGKILL)  # members that outlived the leader keep the group's id taken
        while members(pid):
            if time.monotonic() >= limit:
                return None
            time.sleep(_LOOK)
        return _exit_code(popen.wait())

    def do_end_leftover(self, *, pid: int, started: int, mark: str, grace: float) -> list[int]:
        """See `orphans.end_group`."""
        return end_group(pid, started, mark, grace)

    def do_end_marked(self, *, marks: list[str], grace: float) -> list[int]:
        """See `orphans.end_marked`."""
        return end_marked(marks, grace)

    def do_log_open(self) -> bool:
        """Whether the kernel's messages can be read from now on."""
        self.do_log_close()
        try:
            self._log = Kmsg()
        except OSError:
            return False
        return True

    def do_log_new(self) -> list[str]:
        """Messages since the last look."""
        return [] if self._log is None else self._log.new()

    def do_log_close(self) -> None:
        """Close the kernel's messages."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def do_read(self, *, path: str) -> bytes:
        """A file's content."""
        return Path(path).read_bytes()

    def do_list(self, *, path: str) -> list[str]:
        """Names in a directory."""
        return sorted(entry.name for entry in Path(path).iterdir())

    def do_resolve(self, *, path: str) -> str:
        """Without symbolic links."""
        return str(Path(path).resolve())

    def do_is_directory(self, *, path: str) -> bool:
        """Whether it is one."""
        return os.path.isdir(path)  # noqa: PTH112 - as LocalHost: what can't be looked at is none

    def do_free(self, *, path: str) -> int:
        """Bytes free for ordinary users."""
        statistics = os.statvfs(path)
        return statistics.f_bavail * statistics.f_frsize

    def do_make(self, *, path: str) -> None:
        """Make one directory."""
        if not self._succeeds(["mkdir", "--", path], ANSWER):
            Path(path).mkdir()  # for its error

    def do_make_own(self, *, base: str, path: str, passing: bool) -> None:
        """Make a directory below `base` with all that leads to it; `base` itself must be ours alone
        (it may lie where all may write).

        A `passing` directory is removed with its content when the connection ends.
        """
        root = Path(base)
        with contextlib.suppress(FileExistsError):
            root.mkdir(mode=0o700)
        status = root.lstat()
        if status.st_uid != os.getuid() or not os.path.isdir(base) or root.is_symlink():  # noqa: PTH112
            raise PermissionError(1, "belongs to somebody else", base)
        Path(path).mkdir(parents=True, exist_ok=True)
        if passing:
            self._passing[path] = base

    def do_make_scratch(self, *, parent: str, prefix: str) -> str:
        """Make a directory of a new name."""
        return tempfile.mkdtemp(prefix=prefix, dir=parent)

    def do_remove(self, *, path: str) -> None:
        """Remove a tree; nothing happens where it does not exist."""
        self._passing.pop(path, None)
        if not Path(path).is_symlink() and self._succeeds(["rm", "-rf", "--", path], REMOVE):
            return
        if os.path.lexists(path):
            shutil.rmtree(path)

    def do_prune(self, *, base: str, path: str) -> None:
        """Remove `path` where it is empty, then what leads to it, up to and with `base`."""
        place = Path(path)
        while place == Path(base) or Path(base) in place.parents:
            try:
                place.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                return
            place = place.parent

    def do_keep_program(self, data: bytes, *, base: str, name: str, digest: str) -> str:
        """Write a program whole, where it goes with the connection; those of connections that ended
        without a word go now."""
        programs = Path(base) / "programs"
        self.do_make_own(base=base, path=str(programs), passing=False)
        for entry in programs.iterdir():
            pid, _, ticks = entry.name.partition("-")
            if pid.isdecimal() and str(start_ticks(int(pid))) != ticks:
                shutil.rmtree(entry, ignore_errors=True)
        place = programs / f"{os.getpid()}-{start_ticks(os.getpid())}"
        self.do_make_own(base=base, path=str(place), passing=True)
        path = place / name
        if os.statvfs(place).f_flag & os.ST_NOEXEC:
            raise ValueError(
                f"programs can't be run below {base}: its file system is mounted noexec"
            )
        path.unlink(missing_ok=True)
        self.do_put(data, path=str(path), mode=0o700)
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ValueError("other bytes arrived than were sent")
        return str(path)

    def do_put(self, data: bytes = b"", *, path: str, mode: int) -> list[int]:
        """Write a file whole; its size and modification time."""
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            _write_all(file, data)
            status = os.fstat(file)
        finally:
            os.close(file)
        return [status.st_size, status.st_mtime_ns]

    def do_survey(self, *, path: str) -> list[list[Any]]:
        """Every regular file below a directory: path from there, size, modification time."""
        entries: list[list[Any]] = []
        for root, _, names in os.walk(path):
            for name in names:
                place = os.path.join(root, name)  # noqa: PTH118
                info = os.lstat(place)
                if (info.st_mode & 0o170000) == 0o100000:
                    entries.append([os.path.relpath(place, path), info.st_size, info.st_mtime_ns])
        return sorted(entries)

    def do_get(self, *, path: str, offset: int, size: int) -> bytes:
        """Part of a file."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def _succeeds(self, command: list[str], timeout: float) -> bool:
        try:
            result = self.do_run(command=command, timeout=timeout)
        except OSError:
            return False
        if result.get("hung"):
            raise Hung(f"'{command[0]}' did not end within {timeout:g} s: it waits in the kernel")
        return result.get("exit_code") == 0

    # the two ends of the connection

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            self._fill(
                LEASE if any(popen.poll() is None for popen in self._children.values()) else None
            )
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill(LEASE)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _fill(self, patience: float | None = None) -> None:
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            ready, _, _ = select.select(
                [self._source, self._woken],
                [],
                [],
                None if deadline is None else max(0.0, deadline - time.monotonic()),
            )
            self._drain()
            if self._source in ready:
                break
            if deadline is not None and time.monotonic() >= deadline:
                raise Gone
        data = os.read(self._source, 1 << 20)
        if not data:
            raise Gone
        self._buffer += data

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._woken, 512):
                pass

    def _send(self, data: bytes) -> None:
        _write_all(self._sink, data)

    def _end_all(self) -> None:
        running = [popen for popen in self._children.values() if popen.poll() is None]
        for popen in running:
            _kill(popen.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        for popen in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                popen.wait(max(0.0, deadline - time.monotonic()))
        for pid in self._children:
            _kill(pid, signal.SIGKILL)
        for path, base in self._passing.items():
            shutil.rmtree(path, ignore_errors=True)
            self.do_prune(base=base, path=path)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _builds() -> str:
    """Where builds of OpenZFS are on this host, see `rigs.host_builds`."""
    return os.environ.get("IOLAB_BUILDS") or "/opt/iolab/builds"


def _is_safe(directory: str) -> bool:
    """Whether only root and this user can write to a directory, so that its programs may be run."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid in (0, os.getuid())
        and not status.st_mode & 0o022
    )


def _path() -> str:
    """Programs of builds first; and those of administrators, which a login over ssh often does not
    have in its PATH."""
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    parts = path.split(":")
    builds = _builds()
    return ":".join(
        [
            *([f"{builds}/.bin"] if _is_safe(builds) and _is_safe(f"{builds}/.bin") else []),
            *parts,
            *(place for place in ("/usr/local/sbin", "/usr/sbin", "/sbin") if place not in parts),
        ]
    )


def _environment(extra: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PATH": _path(), "LC_ALL": "C", **extra}


def _kill(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _begin(parent: int) -> Callable[[], None]:
    """What a child does before it becomes the program: lead a group, and ask for SIGTERM when this
    dies."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):  # a Python of few modules
        prctl = None

    def begin() -> None:
        os.setpgid(0, 0)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
            if os.getppid() != parent:  # died in between
                os._exit(1)

    return begin


def main() -> None:
    """Serve on standard input and output, which programs started here don't inherit."""
    sink = os.dup(1)
    os.set_inheritable(sink, False)
    os.dup2(2, 1)
    FarEnd(0, sink).serve()
