# SPDX-License-Identifier: Apache-2.0
"""Where builds of programs are: a directory of this machine, or of a host that is reached by ssh.

`KEY/` has `prefix` (where the commands install), the output of each command, and `build.json`, which
is written last: a directory without it is deleted and built again.

Which program a load runs is read from /proc while it runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any, Protocol, cast

from iolab.base.errors import RunError
from iolab.base.files import write_atomically
from iolab.hosts.base.host import Completed, Host, Process, text_or_none
from iolab.hosts.facts.program_identity import file_identity, program_identity
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.rigs.host_directory import HostDirectory
from iolab.hosts.rigs.source_tree import file_digests
from iolab.hosts.ssh.host import SshHost

_MOST = 16
"""Different programs of one name that are recorded."""
_WHOLE_LOOKS = 8
"""First looks that look at all descendants: a load may have a thousand, and starts them at once."""
_SCRIPT_WORDS = 3
"""Words of a command line among which an interpreter has its script."""


class ProgramWatch:
    """Records the path and identity of each program of a name in the tree of a load's process.

    A program that is interpreted counts by its script. The process itself counts where none of its
    tree has the name. Files are opened while the processes run, and read later.
    """

    def __init__(self, name: str, file: str | None = None) -> None:
        """`file`: what the load is started with. It counts, with `"seen": "before the start"`, if it
        has the name and the load ended before it was looked at."""
        self._name, self._file = name, file
        self._files: dict[tuple[str, int, int], BufferedIOBase] = {}
        self._others: dict[tuple[str, int, int], BufferedIOBase] = {}
        self._known: list[int] = []
        self._looks = 0

    def look(self, pid: int) -> None:
        """Look at the processes of a load once."""
        self._looks += 1
        is_whole = self._looks <= _WHOLE_LOOKS or not self._files
        for process in _tree(pid) if is_whole else [pid, *self._known]:
            path = self._program_of(process)
            if path and len(self._files) < _MOST and _open(path, process, self._files):
                self._known.append(process)
        if not self._files and not self._others:
            _open(f"/proc/{pid}/exe", pid, self._others)

    def programs(self) -> dict[str, dict[str, str]]:
        """The name to path and identity of the program; a further program of the name has its path
        as key. Empty for unknown programs. Closes the files."""
        identities: dict[str, dict[str, str]] = {}
        for (path, _, _), file in (self._files or self._others).items():
            with contextlib.suppress(OSError):
                identity = file_identity(file)
                identities.setdefault(str(identity), {"path": path, **identity})
        if not identities and self._file is not None and _is_named(self._file, self._name):
            with contextlib.suppress(OSError):
                path = str(Path(self._file).resolve())
                identity = {"path": path, **program_identity(path), "seen": "before the start"}
                identities[path] = identity
        for file in (*self._files.values(), *self._others.values()):
            file.close()
        return {
            self._name if number == 0 else f"{self._name} ({identity['path']})": identity
            for number, identity in enumerate(identities.values())
        }

    def _program_of(self, pid: int) -> str | None:
        """The file of the process if it has the name: its executable, else its script."""
        if _is_named(_exe(pid), self._name):
            return f"/proc/{pid}/exe"
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:_SCRIPT_WORDS]
        except OSError:
            return None
        paths = [os.fsdecode(word) for word in words]
        return next(
            (path for path in paths if path[:1] == "/" and _is_named(path, self._name)), None
        )


def _open(path: str, pid: int, files: dict[tuple[str, int, int], BufferedIOBase]) -> bool:
    """Open a program that is not among the files yet; whether it was opened."""
    try:
        status = Path(path).stat()
        name = _exe(pid) if path.startswith("/proc/") else path
        key = (name, status.st_dev, status.st_ino)
        if key in files or not name or not stat.S_ISREG(status.st_mode):
            return False
        files[key] = Path(path).open("rb")  # noqa: SIM115 (read and closed by `programs`)
    except OSError:
        return False
    return True


def _exe(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _is_named(path: str, name: str) -> bool:
    return path.removesuffix(" (deleted)").rpartition("/")[2] == name


def _tree(pid: int) -> list[int]:
    """A process and its descendants."""
    tree = [pid]
    for process in tree:
        try:
            for thread in Path(f"/proc/{process}/task").iterdir():
                tree += map(int, (thread / "children").read_text("ascii").split())
        except (OSError, ValueError):
            continue
    return tree


SCHEMA = 1
RECORD_FILE = "build.json"
FRESH = "fresh-"
"""Beginning of the names of directories with sources, followed by the process id of their iolab."""
_VARIABLES = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "RUSTFLAGS")
_LOOK = 0.2
"""Seconds between looks at a lock."""


class Watch(Protocol):
    """Records which program a load runs."""

    def look(self, pid: int) -> None:
        """Look at the processes of a load once."""

    def programs(self) -> dict[str, dict[str, str]]:
        """Name to path and identity of the programs that ran."""


class BuildPlace(Protocol):
    """Where builds are. `key` identifies the content of a build."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of the environment that compilers read."""

    def name(self, key: str) -> str:
        """The directory of a build, for messages."""

    def prefix(self, key: str) -> Path:
        """Where its commands install."""

    def source(self, key: str) -> Path:
        """Where its commands run."""

    def lock(self, key: str, wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold the lock of a build; `wait` is called while another process has it."""

    def read(self, key: str) -> dict[str, Any] | None:
        """The record of a build; None where it is missing or damaged, or its programs changed."""

    def begin(self, key: str, fresh: Path) -> None:
        """Replace an older build by the sources."""

    def start(self, key: str, number: int, command: Sequence[str]) -> tuple[Process, Path]:
        """Start the command of a number in the sources; also the file of its errors."""

    def programs(self, key: str) -> dict[str, dict[str, str]]:
        """Identity of each program that is installed, by file name."""

    def finish(self, key: str, record: Mapping[str, Any]) -> None:
        """Write the record, and delete the sources."""

    def host(self, prefix: Path) -> Host:
        """The host, with the programs of a build first in PATH."""

    def path(self, prefix: Path) -> str:
        """PATH with the programs of a build first."""


class LocalPlace:
    """`iolab/builds` in the cache directory of the user; of root under sudo."""

    def __init__(self, host: LocalHost) -> None:
        self._host = host
        base = os.environ.get("XDG_CACHE_HOME", "")
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache"
        if base.startswith("/") and "SUDO_UID" not in os.environ:
            home = Path(base)
        self.home = home / "iolab" / "builds"

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of the environment that compilers read."""
        return {key: os.environ[key] for key in _VARIABLES if os.environ.get(key)}

    def name(self, key: str) -> str:
        """The directory of a build."""
        return str(self.home / key)

    def prefix(self, key: str) -> Path:
        """Where its commands install."""
        return self.home / key / "prefix"

    def source(self, key: str) -> Path:
        """Where its commands run."""
        return self.home / key / "source"

    @contextlib.contextmanager
    def lock(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of a build."""
        file = os.open(self.home / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    wait()
                    time.sleep(_LOOK)
            yield
        finally:
            os.close(file)

    def read(self, key: str) -> dict[str, Any] | None:
        """The record of a build."""
        try:
            text = (self.home / key / RECORD_FILE).read_text("utf-8")
            return _record(text, lambda: self.programs(key))
        except (OSError, ValueError):
            return None

    def begin(self, key: str, fresh: Path) -> None:
        """Have the sources there."""
        shutil.rmtree(self.home / key, ignore_errors=True)
        (self.prefix(key) / "bin").mkdir(parents=True)
        fresh.rename(self.source(key))

    def start(self, key: str, number: int, command: Sequence[str]) -> tuple[Process, Path]:
        """Start a command in the sources."""
        place = self.home / key
        errors = place / f"{number}.err"
        process = self._host.start(
            command,
            cwd=self.source(key),
            stdout=place / f"{number}.out",
            stderr=errors,
            environment={"PREFIX": str(self.prefix(key))},
        )
        return process, errors

    def programs(self, key: str) -> dict[str, dict[str, str]]:
        """Identity of each program that is installed."""
        programs = {}
        for path in sorted((self.prefix(key) / "bin").iterdir()):
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o111:
                programs[path.name] = program_identity(path)
        return programs

    def finish(self, key: str, record: Mapping[str, Any]) -> None:
        """Write the record, and delete the sources."""
        shutil.rmtree(self.source(key), ignore_errors=True)
        write_atomically(self.home / key / RECORD_FILE, json.dumps(record, indent=1) + "\n")

    def host(self, prefix: Path) -> Host:
        """This machine, with the programs of a build first in PATH."""
        return self._host.with_path(str(prefix / "bin"))

    def path(self, prefix: Path) -> str:
        """PATH with the programs of a build first."""
        return f"{prefix / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

    def delete_leftovers(self) -> None:
        """Delete the sources that a killed iolab left."""
        for path in self.home.glob(f"{FRESH}*"):
            pid = path.name.removeprefix(FRESH).partition("-")[0]
            if pid.isdecimal() and not Path("/proc", pid).exists():
                shutil.rmtree(path, ignore_errors=True)


class HostPlace:
    """`.programs` in the directory of builds of a host, see `rigs.host_builds`."""

    def __init__(self, host: SshHost) -> None:
        self._host, self._directory = host, HostDirectory(host)
        self._lock: Process | None = None
        self._scratch = Path()

    @property
    def variables(self) -> Mapping[str, str]:
        """Those of this machine do not apply there."""
        return {}

    def name(self, key: str) -> str:
        """The directory of a build."""
        return f"{self._host.name}:{self._place(key)}"

    def prefix(self, key: str) -> Path:
        """Where its commands install."""
        return Path(self._place(key), "prefix")

    def source(self, key: str) -> Path:
        """Where its commands run."""
        return Path(self._place(key), "source")

    @contextlib.contextmanager
    def lock(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of all builds of the host. RunError while another iolab has it."""
        self._directory.prepare()
        with tempfile.TemporaryDirectory(prefix="iolab-build-") as directory:
            self._scratch = Path(directory)
            with self._directory.lock(self._scratch) as self._lock:
                try:
                    yield
                finally:
                    self._keep_output(key)

    def read(self, key: str) -> dict[str, Any] | None:
        """The record of a build."""
        text = text_or_none(self._host, f"{self._place(key)}/{RECORD_FILE}") or ""
        try:
            return _record(text, lambda: self.programs(key))
        except (OSError, ValueError):
            return None

    def begin(self, key: str, fresh: Path) -> None:
        """Send the sources."""
        assert self._lock is not None
        script = 'rm -rf -- "$2" && mkdir -p "$2/source" "$2/prefix/bin"'
        self._directory.run(script, "the build can't begin", self._place(key))
        names = list(file_digests(fresh))
        self._directory.send(fresh, names, str(self.source(key)), self._lock, is_new=True)

    def start(self, key: str, number: int, command: Sequence[str]) -> tuple[Process, Path]:
        """Start a command in the sources."""
        errors = self._scratch / f"{number}.err"
        process = self._host.start(
            ["sh", "-c", 'cd "$0" && exec "$@"', str(self.source(key)), *command],
            cwd=self._scratch,
            stdout=self._scratch / f"{number}.out",
            stderr=errors,
            environment={"PREFIX": str(self.prefix(key))},
        )
        return process, errors

    def programs(self, key: str) -> dict[str, dict[str, str]]:
        """Identity of each program that is installed."""
        place = f"{self.prefix(key)}/bin"
        find = ["find", place, "-maxdepth", "1", "-type", "f", "-perm", "/111", "-printf", "%f\\0"]
        names = sorted(name for name in self._host.run(find).stdout.split("\0") if name)
        return {name: _remote_identity(self._host, f"{place}/{name}") for name in names}

    def finish(self, key: str, record: Mapping[str, Any]) -> None:
        """Write the record, and delete the sources."""
        self._directory.run('rm -rf -- "$2"', "can't be finished", str(self.source(key)))
        self._directory.put(f"{self._place(key)}/{RECORD_FILE}", json.dumps(record, indent=1))

    def host(self, prefix: Path) -> Host:
        """The host, with the programs of a build first in PATH."""
        return cast(Host, HostWithPath(self._host, str(prefix / "bin")))

    def path(self, prefix: Path) -> str:
        """PATH with the programs of a build first."""
        path = self._host.run(["sh", "-c", 'echo "$PATH"']).stdout.strip()
        return f"{prefix / 'bin'}:{path}"

    def _keep_output(self, key: str) -> None:
        """Copy the output of the commands to the host."""
        for path in self._scratch.glob("[0-9]*.*"):
            with contextlib.suppress(OSError):  # a full disk, or a lost connection
                text = path.read_text("utf-8", "replace")
                self._directory.put(f"{self._place(key)}/{path.name}", text)

    def _place(self, key: str) -> str:
        return f"{self._directory.path}/.programs/{key}"


class HostWithPath:
    """A host that is reached by ssh, with a directory first in PATH for all that is started."""

    def __init__(self, host: SshHost, directory: str) -> None:
        self._host, self._directory = host, directory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def which(self, program: str) -> str | None:
        """Full path of a program, or None."""
        path = self.run(["sh", "-c", 'command -v -- "$0"', program]).stdout.strip()
        return path if path.startswith("/") else None

    def run(self, command: Sequence[str], *, timeout: float = 30.0) -> Completed:
        """Run a short command to its end."""
        return self._host.run(self._words(command), timeout=timeout)

    def start(self, command: Sequence[str], **options: Any) -> Process:
        """Start a command, see `hosts.base.Host`."""
        return self._host.start(self._words(command), **options)

    def _words(self, command: Sequence[str]) -> list[str]:
        script = 'PATH="$0:$PATH"; export PATH; exec "$@"'
        return ["sh", "-c", script, self._directory, *command]


class HostWatch:
    """The program of a host that a load is started with. Its processes are not looked at."""

    def __init__(self, host: SshHost, name: str, file: str | None) -> None:
        self._host, self._name, self._file = host, name, file

    def look(self, pid: int) -> None:
        """Nothing."""

    def programs(self) -> dict[str, dict[str, str]]:
        """The program that PATH named when the load was started; empty if it can't be read."""
        if self._file is None:
            return {}
        try:
            path = self._host.resolve(self._file)
            identity = _remote_identity(self._host, path)
        except (OSError, RunError):
            return {}
        return {self._name: {"path": path, **identity, "seen": "before the start"}}


def watch_program(host: Host, name: str, file: str | None) -> Watch:
    """What records which program a load on a host runs. `file`: that it is started with."""
    if isinstance(host, HostWithPath):
        return HostWatch(host._host, name, file)
    return HostWatch(host, name, file) if isinstance(host, SshHost) else ProgramWatch(name, file)


def _remote_identity(host: SshHost, path: str) -> dict[str, str]:
    """Identity of a program on a host. Raises OSError."""
    return file_identity(BytesIO(host.call_files("read", path=path, allow=60)[1]))


def _record(
    text: str, programs: Callable[[], Mapping[str, Mapping[str, str]]]
) -> dict[str, Any] | None:
    """A record by its text, None where it is of another version, or where its programs changed.
    Raises OSError, or ValueError for a damaged text."""
    record = json.loads(text)
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        return None
    return record if record.get("programs") == programs() else None
