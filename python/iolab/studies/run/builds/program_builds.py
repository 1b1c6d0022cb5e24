# SPDX-License-Identifier: Apache-2.0
"""Builds of programs under test, `[builds]` of a study.

Each content is compiled once, in a directory of its own, which comes first in PATH for its runs. The
key of a directory is a digest of sources, commands, compilers and variables that compilers read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.errors import RunError
from iolab.base.untrusted_text import visible
from iolab.hosts.base.host import Host, need
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.rigs.build import first_error
from iolab.hosts.rigs.source_tree import (
    BuildRequest,
    apply_patch,
    explain_failure,
    fetch_sources,
    file_digests,
    parse_request,
    patch_digests,
    tree_digest,
)
from iolab.hosts.ssh.host import SshHost

from ...plan.builds import BuildTable
from ...plan.cells.cells import Cell
from ...plan.commands import Command
from ...plan.file.load import Study
from ..load.launch import last_line
from .build_places import FRESH, SCHEMA, BuildPlace, HostPlace, LocalPlace

_PREFIX = "{prefix}"
_COMPILERS = ("cc", "c++", "clang", "rustc", "go")
_LOOK, _REPORT = 0.2, 30.0
"""Seconds between looks at interrupts, and between messages of a command that runs long."""
_VERSION_LIMIT = 10.0
"""Seconds within which a program prints its version."""


@dataclass(frozen=True)
class ProgramBuild:
    """A build that was made.

    Attributes:
        name: in the study. prefix: where it is installed. record: what it was made of: digest,
        revision, patches, commands, compilers, version, and `programs`, file name to identity.
    """

    name: str
    prefix: Path
    record: Mapping[str, Any]

    @property
    def programs(self) -> Mapping[str, Mapping[str, str]]:
        """Identity of each program in `bin`, by file name."""
        programs: Mapping[str, Mapping[str, str]] = self.record["programs"]
        return programs


@dataclass(frozen=True)
class ProgramUse:
    """The program of a run.

    Attributes:
        program: its file name.
        host: starts the load, with the build first in PATH.
        file: what the first word of the load's command is in this PATH.
        environment: variables for hooks and actions.
        build: None for the program of the host.
    """

    program: str
    host: Host
    file: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    build: ProgramBuild | None = None

    def evidence(self, programs: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """For `run.json`: the requested build, its program, and the programs that ran."""
        build = self.build
        if build is None:
            return {"asked": None, "programs": dict(programs)}
        record = {key: value for key, value in build.record.items() if key != "programs"}
        return {
            "asked": build.name,
            "programs": dict(programs),
            "expected": {self.program: dict(build.programs[self.program])},
            "record": record,
        }


class ProgramBuilds:
    """The builds of a study, on its host."""

    def __init__(self, study: Study, host: Host, notice: Callable[[str], None]) -> None:
        self._study, self._host, self._notice = study, host, notice
        names = dict.fromkeys(cell.build for cell in study.cells if cell.build is not None)
        self._tables = {name: study.builds[name] for name in names}
        self._made: dict[str, ProgramBuild] = {}
        self._build_place: BuildPlace | None = None

    @property
    def are_made(self) -> bool:
        """Whether all builds that cells use exist."""
        return self._made.keys() == self._tables.keys()

    @property
    def digests(self) -> dict[str, str]:
        """`build NAME` to the key of the content of each build."""
        return {f"build {name}": build.prefix.parent.name for name, build in self._made.items()}

    @property
    def sources(self) -> dict[str, str]:
        """Name to the sources of each build that cells use."""
        return {name: table.sources for name, table in self._tables.items()}

    def check(self) -> None:
        """RunError where a build can't be made, as far as that is known without making it."""
        for name, table in self._tables.items():
            with _clear_errors(name):
                self._place()
                self._need_programs(self._request(name, table), table)

    def make(self, stopping: Callable[[], bool]) -> None:
        """Make the builds that do not exist yet.

        Raises RunError where one can't be made, UsageError for sources that do not exist, and
        KeyboardInterrupt once `stopping` returns True.
        """
        for name, table in self._tables.items():
            with _clear_errors(name):
                self._made[name] = self._make(name, table, stopping)

    def host(self, cell: Cell) -> Host:
        """The host of the cell's load, with its build first in PATH."""
        build = None if cell.build is None else self._made.get(cell.build)
        return self._host if build is None else self._place().host(build.prefix)

    def environment(self, cell: Cell) -> dict[str, str]:
        """Variables for hooks and actions of the cell's runs; empty for a cell without a build."""
        build = None if cell.build is None else self._made.get(cell.build)
        if build is None:
            return {}
        return {
            "PATH": self._place().path(build.prefix),
            "IOLAB_BUILD": build.name,
            "IOLAB_PREFIX": str(build.prefix),
        }

    def variant_environment(self, variant: str) -> dict[str, str]:
        """Variables for commands around a variant, if all its cells use one build."""
        cells = [cell for cell in self._study.cells if cell.variant == variant]
        is_single = len({cell.build for cell in cells}) == 1
        return self.environment(cells[0]) if is_single else {}

    def use(self, cell: Cell, program: str) -> ProgramUse | None:
        """The program of the cell's runs; None for a load on client hosts.

        `program`: first word of the load's command. RunError where the build does not have it.
        """
        if cell.load is not None:
            return None
        name = Path(program).name
        if cell.build is None:
            return ProgramUse(name, self._host, self._host.which(program))
        build = self._made[cell.build]
        file_name = self._tables[cell.build].program
        wanted_program = file_name or name
        if wanted_program not in build.programs and file_name is None and len(build.programs) == 1:
            wanted_program = next(iter(build.programs))
        if wanted_program not in build.programs:
            names = ", ".join(build.programs) or "nothing"
            raise RunError(
                f"has no program '{wanted_program}' in its bin, which has {names}",
                where=f"build {build.name}",
                hint=f"install it into {_PREFIX}/bin, or name the program: builds.{build.name}.program",
            )
        host = self.host(cell)
        return ProgramUse(wanted_program, host, host.which(program), self.environment(cell), build)

    def _place(self) -> BuildPlace:
        if self._build_place is None:
            if isinstance(self._host, LocalHost):
                self._build_place = LocalPlace(self._host)
            elif isinstance(self._host, SshHost):
                self._build_place = HostPlace(self._host)
            else:
                raise RunError(f"host '{self._host.name}' makes no builds", where="builds")
        return self._build_place

    def _request(self, name: str, table: BuildTable) -> BuildRequest:
        return parse_request(f"{name}={table.sources}", self._study.directory)

    def _need_programs(self, request: BuildRequest, table: BuildTable) -> None:
        base, local = Path(request.base), LocalHost()  # sources are fetched locally
        if request.revision:
            need(local, "git", "git")
        elif base.is_file():
            need(local, "tar", "tar")
        if request.patches:
            need(local, "patch", "patch")
        for command in table.commands:
            program = command.arguments[0]
            if "/" not in program and self._host.which(program) is None:
                raise RunError(f"needs '{visible(program)}', which is not installed")

    def _make(self, name: str, table: BuildTable, stopping: Callable[[], bool]) -> ProgramBuild:
        place, begin = self._place(), time.monotonic()
        request = self._request(name, table)
        self._need_programs(request, table)
        with self._sources_directory(place) as directory:
            fresh = Path(directory, "source")
            fresh.mkdir()
            revision = fetch_sources(request, fresh)
            for patch in request.patches:
                apply_patch(patch, fresh)
            facts = {
                "digest": _content_digest(fresh),
                "commands": [list(command.arguments) for command in table.commands],
                "compilers": _compilers(self._host),
                "variables": dict(place.variables),
            }
            key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
            with place.lock(key, self._waiting(name, stopping)):
                record = place.read(key)
                if record is None:
                    place.begin(key, fresh)
                    self._compile(name, table, key, stopping)
                    programs = place.programs(key)
                    if not programs:
                        raise RunError(
                            "installed no program into its bin",
                            hint=f"install it by a command: [['install', '-t', '{_PREFIX}/bin', 'PROGRAM']]",
                        )
                    seconds = round(time.monotonic() - begin, 1)
                    record = {"schema": SCHEMA, **facts, "programs": programs, "seconds": seconds}
                    place.finish(key, record)
                    self._notice(
                        f"build {name}: compiled in {seconds} s; output in {place.name(key)}"
                    )
        sources = {
            "sources": request.sources,
            "revision": revision,
            "patches": patch_digests(request.patches),
        }
        version = self._version(table, place.prefix(key))
        return ProgramBuild(name, place.prefix(key), {**record, **sources, "version": version})

    @staticmethod
    def _sources_directory(place: BuildPlace) -> tempfile.TemporaryDirectory[str]:
        """For the sources: on the file system of the builds, if they are on this machine."""
        home = None
        if isinstance(place, LocalPlace):
            home = place.home
            home.mkdir(parents=True, exist_ok=True)
            place.delete_leftovers()
        return tempfile.TemporaryDirectory(dir=home, prefix=f"{FRESH}{os.getpid()}-")

    def _waiting(self, name: str, stopping: Callable[[], bool]) -> Callable[[], None]:
        """What to do while another process makes the same build: say so once."""
        notices = [f"build {name}: waiting for another iolab that makes the same build"]

        def wait() -> None:
            if notices:
                self._notice(notices.pop())
            _stop(stopping)

        return wait

    def _compile(
        self, name: str, table: BuildTable, key: str, stopping: Callable[[], bool]
    ) -> None:
        """Run the commands in the source tree. Their output goes to `N.out` and `N.err`."""
        place, begin = self._place(), time.monotonic()
        for number, command in enumerate(table.commands, 1):
            _stop(stopping)
            text = visible(command.text)
            self._notice(f"build {name}: command {number} of {len(table.commands)}: {text[:200]}")
            arguments = _arguments(command, place.prefix(key))
            process, errors = place.start(key, number, arguments)
            reported = time.monotonic()
            try:
                while (code := process.wait(_LOOK)) is None:
                    now = time.monotonic()
                    _stop(stopping)
                    if now - begin > table.timeout:
                        raise RunError(
                            f"'{text[:80]}' was ended: the build took more than {table.timeout:g} s",
                            hint=f"set builds.{name}.timeout; its output is in {place.name(key)}",
                        )
                    if now - reported > _REPORT:
                        reported = now
                        self._notice(f"build {name}: still compiling ({now - begin:.0f} s)")
            except BaseException:
                process.end()
                raise
            if code:
                output = errors.read_text("utf-8", "replace")
                reason = first_error(output.replace(f"{place.source(key)}/", ""))
                raise RunError(
                    f"'{text[:80]}' failed with exit code {code}"
                    + (f": {visible(reason)}" if reason else visible(last_line(errors))),
                    hint=f"its output is in {place.name(key)}",
                )

    def _version(self, table: BuildTable, prefix: Path) -> str:
        """The first line that the command for the version prints."""
        if table.version is None:
            return ""
        host = self._place().host(prefix)
        done = host.run(_arguments(table.version, prefix), timeout=_VERSION_LIMIT)
        lines = (done.stdout or done.stderr).strip().splitlines()
        if done.exit_code or not lines:
            raise RunError(
                f"'{visible(table.version.text)[:80]}' printed no version (exit code {done.exit_code})"
            )
        return visible(lines[0][:200])


def _arguments(command: Command, prefix: Path) -> list[str]:
    """The command with the prefix filled in; in a text for the shell, quoted."""
    is_text = command.arguments == ("sh", "-c", command.text)
    word = shlex.quote(str(prefix)) if is_text else str(prefix)
    return [argument.replace(_PREFIX, word) for argument in command.arguments]


def _content_digest(tree: Path) -> str:
    """Digest of the files of a tree, with the executable ones marked."""
    files = {
        name: f"{digest} x" if os.access(tree / name, os.X_OK) else digest
        for name, digest in file_digests(tree).items()
    }
    if not files:
        raise RunError("its sources have no file")
    return tree_digest(files)


def _compilers(host: Host) -> dict[str, str]:
    """Compiler to the first line of its version, of those that the host has."""
    versions = {}
    for compiler in dict.fromkeys([*_COMPILERS, os.environ.get("CC", "cc").partition(" ")[0]]):
        if host.which(compiler) is not None:
            flag = "version" if compiler == "go" else "--version"
            lines = host.run([compiler, flag], timeout=_VERSION_LIMIT).stdout.splitlines()
            versions[compiler] = lines[0] if lines else ""
    return versions


def _stop(stopping: Callable[[], bool]) -> None:
    if stopping():
        raise KeyboardInterrupt


@contextlib.contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Name the build in what is raised."""
    where = f"build {name}"
    try:
        yield
    except RunError as error:
        message = error.message if error.where is None else f"{error.where}: {error.message}"
        raise RunError(message, where=where, hint=error.hint) from None
    except OSError as error:
        raise explain_failure(error, where) from None
