# SPDX-License-Identifier: Apache-2.0
"""Further kernels of a rig: Debian's packages, or kernels compiled from a source tree.

`<rig>/kernels/NAME/root` has the kernel, its initial RAM disk, its modules and its headers. It is
replaced only by a complete one. The modules go into the image; the kernel and its RAM disk are
read by qemu.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import RunError, UsageError

from ..kinds.rig import KERNEL_FILE, KERNELS, OWN_KERNEL, kernel_names
from .build import Builder, delete_leftovers
from .recipe import Rig
from .source_tree import (
    BUILD_NAME,
    BuildRequest,
    apply_patch,
    fetch_sources,
    parse_request,
    update_tree,
)

SCHEMA = 1
_FRESH, _NEW = "fresh-", ".new-"
_MAKEFILES = ("Kbuild", "Kconfig", "Makefile")
"""Files at the top of every source tree of Linux."""
_PACKAGE = re.compile(r"(linux-image-[a-z0-9.+-]+)(?:/([a-z0-9-]+))?")


@dataclass(frozen=True)
class KernelRequest:
    """A kernel to install, or the name of an existing one.

    Attributes:
        package, suite: of Debian; the suite is empty for the candidate of apt.
        tree: the sources to compile it from. None for a package, or for an existing kernel.
    """

    name: str
    package: str = ""
    suite: str = ""
    tree: BuildRequest | None = None

    @property
    def is_new(self) -> bool:
        """Whether it has sources, so that it is to be installed."""
        return bool(self.package) or self.tree is not None

    @property
    def sources(self) -> str:
        """As it is written after `NAME=`."""
        if self.tree is not None:
            return self.tree.sources
        return self.package + (f"/{self.suite}" if self.suite else "")


@dataclass(frozen=True)
class KernelRecord:
    """An installed kernel: `kernel.json`.

    Attributes:
        sources: as requested. release: as `uname -r` prints it. digest: of the sources of a tree;
        empty for a package. seconds: how long the installation took.
    """

    name: str
    sources: str
    release: str
    digest: str = ""
    seconds: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": SCHEMA, **asdict(self)}


def parse_kernel(text: str) -> KernelRequest:
    """`NAME=PACKAGE[/SUITE]`, `NAME=DIRECTORY[@REVISION][+PATCH...]`, `NAME=TARBALL`, or `NAME` of an
    existing kernel. UsageError for anything else."""
    name, equals, sources = text.partition("=")
    if not BUILD_NAME.fullmatch(name) or (equals and not sources):
        raise UsageError(
            f"'{text}' is not a kernel",
            where="--kernel",
            hint="write NAME=PACKAGE, NAME=PACKAGE/SUITE or NAME=DIRECTORY",
        )
    if name == OWN_KERNEL and equals:
        raise UsageError(
            f"'{name}' is the kernel of the recipe", where="--kernel", hint="use another name"
        )
    if not equals:
        return KernelRequest(name)
    if match := _PACKAGE.fullmatch(sources):
        return KernelRequest(name, match[1], match[2] or "")
    if "/" not in sources and not Path(sources).exists():
        raise UsageError(
            f"'{sources}' is neither a package of a kernel nor a source tree",
            where="--kernel",
            hint="packages are called linux-image-...",
        )
    return KernelRequest(name, tree=parse_request(text))


def kernel_records(home: Path) -> Iterator[KernelRecord]:
    """The complete kernels of a rig, by name, without the recipe's own."""
    for name in kernel_names(home):
        try:
            data = json.loads((home / KERNELS / name / "root" / KERNEL_FILE).read_text("utf-8"))
            data.pop("schema", None)
            yield KernelRecord(**data)
        except (OSError, ValueError, TypeError):
            continue  # of another version of iolab: installing it again replaces it


def find_kernel(home: Path, name: str) -> KernelRecord:
    """An installed kernel; UsageError if it does not exist."""
    kernels = {record.name: record for record in kernel_records(home)}
    if name not in kernels:
        raise UsageError(
            f"the rig '{home.name}' has no kernel '{name}'",
            hint=f"it has: {', '.join([OWN_KERNEL, *kernels])}; "
            f"'iolab rig build {home.name} --kernel {name}=PACKAGE' adds it",
        )
    return kernels[name]


def delete_kernel(home: Path, name: str) -> None:
    """Delete a kernel; UsageError if it does not exist. The image has its modules until it is built
    again."""
    find_kernel(home, name)
    shutil.rmtree(home / KERNELS / name)


class KernelMaker:
    """Installs kernels of a rig with complete stages. `notify` is called with each step."""

    def __init__(self, rig: Rig, builder: Builder, notify: Callable[[str], None]) -> None:
        if rig.recipe.kernels is None:
            raise UsageError("has no [kernels]: no kernel can be added to it", where=rig.name)
        self._rig, self._recipe, self._builder = rig, rig.recipe.kernels, builder
        self._notify, self._home = notify, builder.home / KERNELS

    def make(self, request: KernelRequest) -> KernelRecord:
        """Install a kernel. RunError for an unknown package, a tree that does not compile, a full
        disk, or a kernel that the rig has already. An earlier kernel of packages remains then."""
        begin = time.monotonic()
        place = self._home / request.name
        with self._builder.lock():
            place.mkdir(parents=True, exist_ok=True)
            (place / "build.log").write_text("", "utf-8")
            try:
                record = (
                    self._unpack(request, place)
                    if request.tree is None
                    else self._compile(request, request.tree, place)
                )
            except OSError as error:
                raise RunError(
                    f"the kernel '{request.name}' can't be installed: {error.strerror or error}",
                    where=error.filename or place,
                ) from None
            record = KernelRecord(
                **{**asdict(record), "seconds": round(time.monotonic() - begin, 1)}
            )
            text = json.dumps(record.as_data(), indent=1) + "\n"
            (place / "root" / KERNEL_FILE).write_text(text, "utf-8")
        return record

    def _unpack(self, request: KernelRequest, place: Path) -> KernelRecord:
        """A kernel from packages. It is unpacked next to the old one."""
        self._notify(f"{request.name}: packages")
        delete_leftovers(self._home, _NEW)
        with tempfile.TemporaryDirectory(dir=self._home, prefix=_NEW) as directory:
            fresh = Path(directory)
            self._builder.open_packages()
            try:
                words = [request.package, *([request.suite] if request.suite else [])]
                self._run(request.name, words, fresh, place)
            finally:
                self._builder.close_packages()
            record = self._record(request, fresh)
            shutil.rmtree(place / "root", ignore_errors=True)
            (fresh / "root").rename(place / "root")
        return record

    def _compile(self, request: KernelRequest, tree: BuildRequest, place: Path) -> KernelRecord:
        """A kernel from a source tree. Its objects remain, so that only changed files are compiled
        the next time."""
        self._notify(f"{request.name}: sources")
        delete_leftovers(place, _FRESH)
        source = place / "root/usr/src/linux"
        source.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=_FRESH) as directory:
            fetch_sources(tree, Path(directory))
            for patch in tree.patches:
                apply_patch(patch, Path(directory))
            for name in _MAKEFILES:
                if not (Path(directory) / name).is_file():
                    raise UsageError(
                        f"is not a source tree of Linux: it has no {name}", where=tree.base
                    )
            configuration = Path(tree.base) / ".config"  # which git ignores
            if configuration.is_file() and not tree.revision:
                shutil.copy(configuration, Path(directory) / ".config")
            digest = update_tree(Path(directory), source, place / "files.json")
        (place / "root" / KERNEL_FILE).unlink(missing_ok=True)
        self._notify(f"{request.name}: compiling")
        self._run(request.name, [], place, place)
        record = self._record(request, place)
        return KernelRecord(record.name, record.sources, record.release, digest)

    def _run(self, name: str, words: list[str], directory: Path, place: Path) -> None:
        inside = self._builder.tree / "rig"
        inside.mkdir(exist_ok=True)
        script = self._recipe.run
        shutil.copy(self._rig.directory / script[0], inside / script[0])
        cache = self._builder.home / "ccache"
        cache.mkdir(exist_ok=True)
        self._builder.inside(
            ["sh", f"/rig/{script[0]}", *script[1:], *words],
            f"the kernel '{name}'",
            {directory: "/build", cache: "/build/ccache"},
            place / "build.log",
        )

    def _record(self, request: KernelRequest, directory: Path) -> KernelRecord:
        release = (directory / "release").read_text("utf-8").strip()
        own = [path.name for path in (self._builder.tree / "usr/lib/modules").glob("*")]
        names = [OWN_KERNEL] if release in own else []
        names += [
            record.name
            for record in kernel_records(self._builder.home)
            if record.release == release and record.name != request.name
        ]
        if names:
            raise RunError(
                f"{request.sources} is {release}, which the rig has as the kernel '{names[0]}'",
                where=request.name,
                hint=f"use the name '{names[0]}', or another package or suite",
            )
        return KernelRecord(request.name, request.sources, release)
