# SPDX-License-Identifier: Apache-2.0
"""Builds of OpenZFS on a host that is reached by ssh. All of it is below one directory there,
`/opt/iolab/builds`; nothing else of the host is changed.

`NAME/` is a build, with `build.json`. `.work/NAME/` has its sources with their objects and the output
of the last compilation. `.bin/` has the programs that select a build, and links to them by the names
of OpenZFS's programs; iolab has it first in PATH there.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from ..errors import RunError, UsageError
from ..hosts.base.host import Process, text_or_none
from ..hosts.ssh.host import SshHost
from ..untrusted_text import visible
from .build import BUILD_FILE, first_error, last_words
from .builds import BuildRecord, no_build, parse_record, record_of
from .recipe import Rig
from .source_tree import (
    BUILD_NAME,
    BuildRequest,
    apply_patch,
    fetch_sources,
    file_digests,
    tree_digest,
)

_DIRECTORY = re.compile(r"(/[A-Za-z0-9._-]+)+")
_NEEDED = {
    "make": "make",
    "gcc": "gcc",
    "strip": "binutils",
    "readelf": "binutils",
    "depmod": "kmod",
    "modinfo": "kmod",
    "tar": "tar",
    "flock": "util-linux",
    "xargs": "findutils",
}
"""Program to its package."""
_WAIT, _REPORT = 0.2, 30.0
"""Seconds between looks at a process, and between messages of a long compilation."""
_SHORT = 600.0
"""Seconds for moving and deleting a build."""
_LOCKED = 75

_PREPARE = "\n".join(
    (
        "umask 022",
        'mkdir -p "$1" || exit',
        'if [ ! -d "$1/.work" ] && [ -n "$(ls -A "$1")" ]; then echo "$1 has files of other programs" >&2; exit 1; fi',
        'if [ -e "$1/$2" ] && [ ! -f "$1/$2/build.json" ]; then echo "$1/$2 is not a build of iolab" >&2; exit 1; fi',
        'mkdir -p "$1/.work/$2/source" "$1/.bin"',
    )
)
_INSTALL = "\n".join(
    (
        "set -e",
        'cd "$1"',
        'rm -rf ".work/$2/old"',
        'if [ -d "$2" ]; then mv "$2" ".work/$2/old"; fi',
        'mv ".work/$2/new" "$2"',
        'if [ "$(readlink .loaded)" = "$(pwd -P)/$2" ]; then rm -f .loaded .loaded.identity; fi',
        'rm -rf ".work/$2/old"',
    )
)
_LIST = "\n".join(
    (
        'cd "$1" 2>/dev/null || exit 0',
        "for file in */build.json; do",
        '  if [ -f "$file" ]; then echo "${file%/build.json} $(tr \'\\n\' \' \' < "$file")"; fi',
        "done",
    )
)
_DELETE = "\n".join(
    (
        'cd "$1" 2>/dev/null || exit 3',
        '[ -f "$2/build.json" ] || [ -d ".work/$2" ] || exit 3',
        'if [ "$(.bin/openzfs-use --loaded 2>/dev/null)" = "$(pwd -P)/$2" ]; then exit 4; fi',
        "whole=",
        'if [ -f "$2/build.json" ]; then whole=./$2; fi',
        'flock -n -E 75 .work/lock rm -rf -- $whole ".work/$2" || exit',
        "for file in */build.json .work/*/; do",
        '  if [ -e "$file" ]; then exit 0; fi',
        "done",
        "rm -rf .bin .work .loaded .loaded.identity",
        "cd /",
        'rmdir "$1" && rmdir "$(dirname "$1")" 2>/dev/null || true',
    )
)


class HostBuilds:
    """The builds of a host."""

    def __init__(self, host: SshHost) -> None:
        self._host = host
        self.directory = str(host.far["builds"])
        if not _DIRECTORY.fullmatch(self.directory):
            raise RunError(
                f"'{visible(self.directory)}' is not a directory for builds",
                where=host.name,
                hint="correct IOLAB_BUILDS in the environment there",
            )

    def records(self) -> list[BuildRecord]:
        """The complete builds, by name."""
        listing = self._host.run(["sh", "-c", _LIST, "sh", self.directory]).stdout
        record_list = []
        for line in listing.splitlines():
            name, _, text = line.partition(" ")
            record = parse_record(text)
            if record is not None and record.name == name and BUILD_NAME.fullmatch(name):
                record_list.append(record)
        return record_list

    def delete(self, name: str) -> None:
        """Delete a build with its sources, and with the last build everything of iolab's.

        Raises UsageError for a build that does not exist, RunError for a loaded build, or while builds
        are made.
        """
        if not BUILD_NAME.fullmatch(name):
            raise no_build(name, self._names())
        completed = self._host.run(
            ["sh", "-c", _DELETE, "sh", self.directory, name], timeout=_SHORT
        )
        if completed.exit_code == 3:
            raise no_build(name, self._names())
        if completed.exit_code == 4:
            raise RunError(
                f"the build '{name}' is loaded",
                where=self._host.name,
                hint=f"export its pools there, then unload it: {self.directory}/.bin/openzfs-use --none",
            )
        if completed.exit_code == _LOCKED:
            raise _lock_error(self._host)
        if completed.exit_code:
            raise RunError(
                f"the build '{name}' can't be deleted: {visible(last_words(completed.stderr))}",
                where=self._host.name,
            )

    def _names(self) -> str:
        return ", ".join(record.name for record in self.records())


class HostBuildMaker:
    """Makes builds on a host, with the scripts of a rig. `notify` is called with each step.

    Sources are fetched and patched here. The host gets the files that changed since its last build of
    the name, compiles them for the kernel that it runs, and keeps the objects.
    """

    def __init__(self, rig: Rig, host: SshHost, notify: Callable[[str], None]) -> None:
        if rig.recipe.builds is None:
            raise UsageError("has no [builds]: nothing can be built with it", where=rig.name)
        self._rig, self._recipe, self._host, self._notify = rig, rig.recipe.builds, host, notify
        self._directory = HostBuilds(host).directory

    def make(self, request: BuildRequest) -> BuildRecord:
        """Build what has changed. An older build of the name stays until the new one is complete.

        Raises UsageError for sources that do not exist. Raises RunError for a patch that does not
        apply, a tree that does not compile, missing programs, a full disk, a lost connection, and
        while another iolab makes builds there.
        """
        begin, name = time.monotonic(), request.name
        if not Path(request.base).exists():
            raise UsageError(
                "is neither a directory nor a tarball",
                where=visible(request.base),
                hint="builds of the recipe, such as 2.3, are in rigs only: name a source tree",
            )
        kernel = self._check()
        try:
            with tempfile.TemporaryDirectory(prefix="iolab-build-") as directory:
                fresh, scripts = Path(directory, "source"), Path(directory, "scripts")
                fresh.mkdir()
                scripts.mkdir()
                self._notify(f"{name}: sources")
                revision = fetch_sources(request, fresh)
                for patch in request.patches:
                    apply_patch(patch, fresh)
                self._prepare(name)
                with self._hold_lock(scripts) as lock:
                    digest = self._send(fresh, name, lock)
                    self._notify(f"{name}: compiling on {self._host.name}")
                    self._compile(name, kernel, scripts)
                    work = self._work(name)
                    record = record_of(
                        request,
                        self._host.read_text(f"{work}/facts"),
                        digest=digest,
                        revision=revision,
                        userland="",
                        version=self._host.read_text(f"{work}/new/version").strip(),
                        seconds=round(time.monotonic() - begin, 1),
                    )
                    self._put(f"{work}/new/{BUILD_FILE}", json.dumps(record.as_data(), indent=1))
                    self._do(_INSTALL, name, "can't be installed")
        except shutil.Error as error:  # of copying a tree: a list of failures
            raise RunError(f"can't be built: {error.args[0][0][2]}", where=name) from None
        except OSError as error:
            raise RunError(f"can't be built: {error.strerror or error}", where=name) from None
        return record

    def _check(self) -> str:
        """The release of the kernel that runs. RunError without the programs or headers to build
        modules for it."""
        kernel = self._host.run(["uname", "-r"]).stdout.strip()
        missing = {
            program: package
            for program, package in _NEEDED.items()
            if self._host.which(program) is None
        }
        if not self._host.is_directory(f"/lib/modules/{kernel}/build"):
            missing["the headers of its kernel"] = f"linux-headers-{kernel}"
        if missing:
            packages = " ".join(sorted(set(missing.values())))
            raise RunError(
                f"does not have {', '.join(missing)}, which OpenZFS is built with",
                where=self._host.name,
                hint=f"install them: apt install {packages} (Debian, Ubuntu)",
            )
        return kernel

    def _prepare(self, name: str) -> None:
        self._do(
            _PREPARE,
            name,
            f"{self._directory} can't be used",
            hint=f"connect as root, or give the directory to the user: sudo install -d -o USER {self._directory}",
        )
        for program in self._recipe.programs:
            text = (self._rig.directory / program).read_text("utf-8")
            self._put(f"{self._directory}/.bin/{program}", text, 0o755)

    @contextlib.contextmanager
    def _hold_lock(self, scripts: Path) -> Iterator[Process]:
        """A process that has the lock of the host's builds; the host ends it if the connection is
        lost."""
        file = f"{self._directory}/.work/lock"
        process = self._host.start(
            ["flock", "-n", "-E", str(_LOCKED), file, "sleep", "infinity"],
            cwd=scripts,
            stdout=scripts / "lock.out",
            stderr=scripts / "lock.err",
        )
        try:
            code = process.wait(2 * _WAIT)
            if code == _LOCKED:
                raise _lock_error(self._host)
            if code is not None:
                reason = last_words((scripts / "lock.err").read_text("utf-8", "replace"))
                raise RunError(f"{file} can't be locked: {visible(reason)}", where=self._host.name)
            yield process
        finally:
            with contextlib.suppress(RunError):
                process.end()

    def _send(self, fresh: Path, name: str, lock: Process) -> str:
        """Make the sources on the host those of `fresh`; the digest of all files.

        Files that did not change keep their time, so that make does not compile them again. Objects
        stay.
        """
        source, manifest = f"{self._work(name)}/source", f"{self._work(name)}/files.json"
        now = file_digests(fresh)
        before = _digests(text_or_none(self._host, manifest))
        if not before:  # objects of unknown sources
            self._host.remove_tree(source)
            self._host.make_directory(source)
        deleted = [file for file in sorted(set(before) - set(now)) if _is_below(file)]
        if deleted:
            self._pipe(
                ["sh", "-c", 'cd "$1" && xargs -0 rm -f --', "sh", source], deleted, None, lock
            )
        changed = [file for file in now if before.get(file) != now[file]]
        # The first time, files keep their times, which rules of autotools compare.
        is_first = [] if before else ["--preserve-permissions"]
        touch = ["-m"] if before else []
        if changed:
            self._notify(f"{name}: sending {len(changed)} of {len(now)} files")
            unpack = ["tar", "-x", "-f", "-", "-C", source, "--no-same-owner", *touch, *is_first]
            self._pipe(unpack, changed, fresh, lock)
        self._put(manifest, json.dumps(now))
        return tree_digest(now)

    def _pipe(self, command: list[str], names: list[str], tree: Path | None, lock: Process) -> None:
        """Run a command on the host. Its input: the names, or an archive of these files of a
        tree."""
        with tempfile.TemporaryFile() as listing, tempfile.TemporaryFile() as errors:
            listing.write(
                b"".join(file.encode("utf-8", "surrogateescape") + b"\0" for file in names)
            )
            listing.seek(0)
            pack = None
            if tree is not None:
                words = ["tar", "-c", "-f", "-", "-C", str(tree), "--no-recursion"]
                pack = subprocess.Popen(
                    [*words, "--null", "--verbatim-files-from", "-T", "-"],
                    stdin=listing,
                    stdout=subprocess.PIPE,
                )
            remote = subprocess.Popen(
                self._host.session(*command),
                stdin=listing if pack is None else pack.stdout,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            try:
                if pack is not None and pack.stdout is not None:
                    pack.stdout.close()
                while remote.poll() is None:
                    lock.wait(_WAIT)  # the host counts as lost if it is silent for a minute
                packed = 0 if pack is None else pack.wait()
            finally:
                for process in (remote, pack):
                    if process is not None and process.poll() is None:
                        process.kill()
                        process.wait()
            if remote.returncode or packed:
                errors.seek(0)
                text = errors.read().decode("utf-8", "replace")
                raise RunError(
                    f"the sources can't be sent: {visible(first_error(text) or last_words(text))}",
                    where=self._host.name,
                )

    def _compile(self, name: str, kernel: str, scripts: Path) -> None:
        script, work = self._recipe.run[0], self._work(name)
        shutil.copy(self._rig.directory / script, scripts / script)
        output = scripts / "output"
        begin = reported = time.monotonic()
        process = self._host.start(
            ["sh", script, *self._recipe.run[1:], name],
            cwd=scripts,
            stdout=output,
            stderr=scripts / "errors",
            environment={
                "BUILD_DIRECTORY": work,
                "BUILD_PROGRAMS": f"{self._directory}/.bin",
                "BUILD_KERNEL": kernel,
                "BUILD_CACHE": f"{self._directory}/.work/.cache",
            },
        )
        try:
            while (code := process.wait(_WAIT)) is None:
                now = time.monotonic()
                if now - reported > _REPORT:
                    reported = now
                    self._notify(f"{name}: still compiling ({now - begin:.0f} s)")
        except BaseException:
            with contextlib.suppress(RunError):
                process.end()
            raise
        text = "".join(path.read_text("utf-8", "replace") for path in (output, scripts / "errors"))
        with contextlib.suppress(OSError):  # of a full disk
            self._put(f"{work}/build.log", text)
        if code:
            reason = first_error(text.replace(f"{work}/source/", "")) or last_words(text)
            raise RunError(
                f"the build '{name}' failed: {visible(reason)}",
                where=f"{self._host.name}:{work}/build.log",
                hint="the same command continues where it stopped",
            )

    def _do(self, script: str, name: str, failure: str, hint: str | None = None) -> None:
        completed = self._host.run(
            ["sh", "-c", script, "sh", self._directory, name], timeout=_SHORT
        )
        if completed.exit_code:
            raise RunError(
                f"{failure}: {visible(last_words(completed.stderr))}",
                where=self._host.name,
                hint=hint,
            )

    def _put(self, path: str, text: str, mode: int = 0o644) -> None:
        data = text.encode("utf-8", "surrogateescape")
        self._host.call_files("put", data, path=path, mode=mode)

    def _work(self, name: str) -> str:
        return f"{self._directory}/.work/{name}"


def _digests(text: str | None) -> dict[str, str]:
    """File to digest, by the text of a list that `_send` wrote; empty if it is damaged."""
    try:
        digests = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    is_list = isinstance(digests, dict) and all(
        isinstance(value, str) for value in digests.values()
    )
    return digests if is_list else {}


def _is_below(file: str) -> bool:
    """Whether a relative path stays in its directory."""
    path = PurePosixPath(file)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _lock_error(host: SshHost) -> RunError:
    return RunError(
        "another iolab makes or deletes builds there", where=host.name, hint="wait for it"
    )
