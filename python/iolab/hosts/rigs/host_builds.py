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
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from iolab.base.errors import RunError, UsageError
from iolab.base.untrusted_text import visible

from ..base.host import Process, text_or_none
from ..ssh.host import SshHost
from .build import BUILD_FILE, Builder, first_error, last_words
from .builds import BuildMaker, BuildRecord, no_build, parse_record, record_of
from .host_directory import WAIT, HostDirectory
from .recipe import Rig
from .source_tree import BUILD_NAME, BuildRequest, explain_failure, file_digests, tree_digest

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
_REPORT = 30.0
"""Seconds between messages of a long compilation."""

_BEGIN = "\n".join(
    (
        'if [ -e "$1/$2" ] && [ ! -f "$1/$2/build.json" ]; then',
        '  echo "$1/$2 is not a build of iolab" >&2',
        "  exit 1",
        "fi",
        'mkdir -p "$1/.work/$2/source"',
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
        'cd "$1/$2" 2>/dev/null || exit 0',
        "for file in */build.json; do",
        '  if [ -f "$file" ]; then echo "${file%/build.json} $(tr \'\\n\' \' \' < "$file")"; fi',
        "done",
    )
)
_DELETE = "\n".join(
    (
        'cd "$1" 2>/dev/null || exit 3',
        '[ -f "$2/build.json" ] || [ -d ".work/$2" ] || [ -d ".programs/$2" ] || exit 3',
        'if [ "$(.bin/openzfs-use --loaded 2>/dev/null)" = "$(pwd -P)/$2" ]; then exit 4; fi',
        "whole=",
        'if [ -f "$2/build.json" ]; then whole=./$2; fi',
        'flock -n -E 75 .work/lock rm -rf -- $whole ".work/$2" ".programs/$2" || exit',
        "for file in */build.json .work/*/ .programs/*/; do",
        '  if [ -e "$file" ]; then exit 0; fi',
        "done",
        "rm -rf .bin .work .programs .loaded .loaded.identity",
        "cd /",
        'rmdir "$1" && rmdir "$(dirname "$1")" 2>/dev/null || true',
    )
)


class HostBuilds:
    """The builds of a host."""

    def __init__(self, host: SshHost) -> None:
        self._host, self._directory = host, HostDirectory(host)

    def records(self) -> list[BuildRecord]:
        """The complete builds of OpenZFS, by name."""
        record_list = []
        for name, text in self._texts(""):
            record = parse_record(text)
            if record is not None and record.name == name and BUILD_NAME.fullmatch(name):
                record_list.append(record)
        return record_list

    def programs(self) -> dict[str, list[str]]:
        """Complete builds of programs, `[builds]` of studies: key to names of the programs."""
        builds: dict[str, list[str]] = {}
        for key, text in self._texts(".programs"):
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                builds[key] = sorted(map(str, json.loads(text)["programs"]))
        return builds

    def _texts(self, directory: str) -> list[tuple[str, str]]:
        """Name and `build.json` of each build in a directory."""
        command = ["sh", "-c", _LIST, "sh", self._directory.path, directory]
        parts = [line.partition(" ") for line in self._host.run(command).stdout.splitlines()]
        return [(name, text) for name, _, text in parts]

    def delete(self, name: str) -> None:
        """Delete a build with its sources, and with the last build everything of iolab's.

        Raises UsageError for a build that does not exist, RunError for a loaded build, or while builds
        are made.
        """
        if not BUILD_NAME.fullmatch(name):
            raise no_build(name, self._names())
        exit_code, reason = self._directory.try_script(_DELETE, name)
        if exit_code == 3:
            raise no_build(name, self._names())
        if exit_code == 4:
            switch = f"{self._directory.path}/.bin/openzfs-use"
            raise RunError(
                f"the build '{name}' is loaded",
                where=self._host.name,
                hint=f"export its pools there, then unload it: {switch} --none",
            )
        if exit_code:
            raise RunError(f"the build '{name}' can't be deleted: {reason}", where=self._host.name)

    def _names(self) -> str:
        return ", ".join([*(record.name for record in self.records()), *self.programs()])


class HostBuildMaker:
    """Makes builds on a host, with the scripts of a rig. `notify` is called with each step.

    Sources are fetched and patched here. The host gets the files that changed since its last build of
    the name, compiles them for the kernel that it runs, and keeps the objects. A build of the recipe,
    such as 2.3, has its modules compiled there, and gets its userland from the rig of this machine.
    """

    def __init__(self, rig: Rig, host: SshHost, notify: Callable[[str], None]) -> None:
        if rig.recipe.builds is None:
            raise UsageError("has no [builds]: nothing can be built with it", where=rig.name)
        self._rig, self._recipe, self._host, self._notify = rig, rig.recipe.builds, host, notify
        self._directory = HostDirectory(host)
        self._builder = Builder(rig, notify)
        self._local = BuildMaker(rig, self._builder, notify)

    def make(self, request: BuildRequest) -> BuildRecord:
        """Build what has changed. An older build of the name stays until the new one is complete.

        Raises UsageError for sources that do not exist. Raises RunError for a patch that does not
        apply, a tree that does not compile, missing programs, a full disk, a lost connection, and
        while another iolab makes builds there.
        """
        begin, name = time.monotonic(), request.name
        userland = self._local.userland(request.base)
        if userland is None and not Path(request.base).exists():
            raise UsageError(
                "is neither a directory, a tarball nor a build of the rig of this machine",
                where=visible(request.base),
                hint=f"name a source tree; 'sudo iolab rig build {self._rig.name}' makes the builds of "
                "the rig, such as 2.3",
            )
        kernel = self._check()
        try:
            with tempfile.TemporaryDirectory(prefix="iolab-build-") as directory:
                fresh, scripts = Path(directory, "source"), Path(directory, "scripts")
                fresh.mkdir()
                scripts.mkdir()
                self._notify(f"{name}: sources")
                with self._builder.lock() if userland else contextlib.nullcontext():
                    revision = self._local.fetch(request, fresh)
                self._prepare(name)
                with self._directory.lock(scripts) as lock:
                    digest = self._send(fresh, name, lock)
                    if userland is not None:
                        self._send_userland(userland, name, lock)
                    self._notify(f"{name}: compiling on {self._host.name}")
                    words = [name, *([] if userland is None else [request.base])]
                    self._compile(words, kernel, scripts)
                    work = self._work(name)
                    record = record_of(
                        request,
                        self._host.read_text(f"{work}/facts"),
                        digest=digest,
                        revision=revision,
                        userland="" if userland is None else request.base,
                        version=self._host.read_text(f"{work}/new/version").strip(),
                        seconds=round(time.monotonic() - begin, 1),
                    )
                    text = json.dumps(record.as_data(), indent=1)
                    self._directory.put(f"{work}/new/{BUILD_FILE}", text)
                    self._directory.run(_INSTALL, "can't be installed", name)
        except OSError as error:
            raise explain_failure(error, name) from None
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
        self._directory.prepare()
        self._directory.run(_BEGIN, f"'{name}' can't be built", name)
        for program in self._recipe.programs:
            text = (self._rig.directory / program).read_text("utf-8")
            self._directory.put(f"{self._directory.path}/.bin/{program}", text, 0o755)

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
            self._directory.delete(deleted, source, lock)
        changed = [file for file in now if before.get(file) != now[file]]
        if changed:
            self._notify(f"{name}: sending {len(changed)} of {len(now)} files")
            # the first time, files keep their times, which rules of autotools compare
            self._directory.send(fresh, changed, source, lock, is_new=not before)
        self._directory.put(manifest, json.dumps(now))
        return tree_digest(now)

    def _send_userland(self, userland: Path, name: str, lock: Process) -> None:
        """Copy the programs and libraries of a build of the rig; the kernel's modules are made
        there."""
        target = f"{self._work(name)}/base"
        self._host.remove_tree(target)
        self._host.make_directory(target)
        files = [file for file in file_digests(userland) if not file.startswith("lib/modules/")]
        self._directory.send(userland, files, target, lock, is_new=True)

    def _compile(self, words: Sequence[str], kernel: str, scripts: Path) -> None:
        """Run the script of the recipe with the name of the build and, if it has one, of the build
        with its userland."""
        name = words[0]
        script, work = self._recipe.run[0], self._work(name)
        shutil.copy(self._rig.directory / script, scripts / script)
        output = scripts / "output"
        begin = reported = time.monotonic()
        process = self._host.start(
            ["sh", script, *self._recipe.run[1:], *words],
            cwd=scripts,
            stdout=output,
            stderr=scripts / "errors",
            environment={
                "BUILD_DIRECTORY": work,
                "BUILD_PROGRAMS": f"{self._directory.path}/.bin",
                "BUILD_BASE": f"{work}/base",
                "BUILD_KERNEL": kernel,
                "BUILD_CACHE": f"{self._directory.path}/.work/.cache",
            },
        )
        try:
            while (code := process.wait(WAIT)) is None:
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
            self._directory.put(f"{work}/build.log", text)
        if code:
            reason = first_error(text.replace(f"{work}/source/", "")) or last_words(text)
            raise RunError(
                f"the build '{name}' failed: {visible(reason)}",
                where=f"{self._host.name}:{work}/build.log",
                hint="the same command continues where it stopped",
            )

    def _work(self, name: str) -> str:
        return f"{self._directory.path}/.work/{name}"


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
