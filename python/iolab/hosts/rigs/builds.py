# SPDX-License-Identifier: Apache-2.0
"""Builds of the user's own in a rig: sources from a tree, a git revision, a tarball or a build of
the recipe, with patches on top.

`<rig>/builds/NAME/` keeps the sources with their objects, so that building again compiles what has
changed, and `root`, which goes into the image. `root` is replaced only by a build that is whole.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from iolab.base.errors import RunError, UsageError
from iolab.base.untrusted_text import visible

from ..kinds.rig import KERNELS, rig_home
from .build import BUILD_FILE, OWN_BUILDS, Builder, Done, delete_leftovers
from .kernels import KernelMaker, KernelRecord, KernelRequest, find_kernel
from .recipe import Rig
from .source_tree import (
    BUILD_NAME,
    BuildRequest,
    apply_patch,
    explain_failure,
    fetch_sources,
    patch_digests,
    split_sources,
    update_tree,
)

SCHEMA = 1
_FRESH, _FETCH = "fresh-", "fetch-"
_USERLAND = ("cmd/", "lib/", "contrib/", "udev/", "etc/")
"""Directories of OpenZFS of which a build with a package's userland has nothing: a patch to them
would have no effect."""


@dataclass(frozen=True)
class KernelModules:
    """The modules of a build for a further kernel.

    Attributes:
        release: of the kernel. modules: name to srcversion and build-id.
    """

    release: str
    modules: dict[str, list[str]]


@dataclass(frozen=True)
class BuildRecord:
    """What a build was made of: `build.json`.

    Attributes:
        sources: as requested. digest: of all compiled files, so that builds with equal digests have
        the same sources. revision: the full name of git, empty if the sources are from no commit.
        patches: name to digest. userland: the build that it comes from, empty if it was built too.
        version, kernel, compiler, configure: of the build. modules: name to
        srcversion and build-id; programs: name to build-id. seconds: what the last building took.
        kernels: further kernels that it has modules for, by name.
    """

    name: str
    sources: str
    digest: str
    revision: str
    patches: dict[str, str]
    userland: str
    version: str
    kernel: str = ""
    compiler: str = ""
    configure: str = ""
    modules: dict[str, list[str]] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    kernels: dict[str, KernelModules] = field(default_factory=dict)

    def __post_init__(self) -> None:
        modules = {
            name: KernelModules(**value) if isinstance(value, dict) else value
            for name, value in self.kernels.items()
        }
        object.__setattr__(self, "kernels", modules)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": SCHEMA, **asdict(self)}


def records(home: Path) -> Iterator[BuildRecord]:
    """The builds of a rig that are whole, by name."""
    for path in sorted((home / OWN_BUILDS).glob(f"*/root/{BUILD_FILE}")):
        with contextlib.suppress(OSError):
            record = parse_record(path.read_text("utf-8", "replace"))
            if record is not None:
                yield record


def parse_record(text: str) -> BuildRecord | None:
    """A record by the text of its `build.json`. None where it is damaged, or of another version of
    iolab: a new build of that name replaces it."""
    try:
        data = json.loads(text)
        data.pop("schema", None)
        return TypeAdapter(BuildRecord).validate_python(data)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def delete_build(home: Path, name: str) -> None:
    """Delete a build with its sources; UsageError if it does not exist. The image contains it
    until it is rebuilt."""
    place = home / OWN_BUILDS / name
    if not BUILD_NAME.fullmatch(name) or not place.is_dir():
        names = ", ".join(record.name for record in records(home))
        raise no_build(name, names)
    shutil.rmtree(place)


def no_build(name: str, names: str) -> UsageError:
    """The error for a build that does not exist. `names`: the existing ones."""
    return UsageError(
        f"there is no build '{visible(name)}'",
        hint=f"there are: {names}" if names else "'iolab rig build --build' makes one",
    )


def build_rig(
    rig: Rig,
    requests: Sequence[BuildRequest],
    said: Callable[[str], None],
    built: Callable[[BuildRecord], None] = lambda _: None,
    kernels: Sequence[KernelRequest] = (),
    installed: Callable[[KernelRecord], None] = lambda _: None,
) -> list[Done]:
    """Build the missing stages of a rig, install kernels, and build what the user requests, for the
    recipe's kernel and for `kernels`; put all of it into the image.

    `installed` is called with each kernel, `built` with each build. Returns the stages of the rig. Raises RunError
    where a stage, a kernel or a build fails; the next call continues there.
    """
    stages = Builder(rig, said).build()
    for kernel in kernels:
        if kernel.is_new:
            installed(KernelMaker(rig, Builder(rig, said), said).make(kernel))
        else:
            find_kernel(rig_home(rig.name), kernel.name)
    names = [kernel.name for kernel in kernels]
    for request in requests:
        built(BuildMaker(rig, Builder(rig, said), said, names).make(request))
    if requests or kernels:
        stages = [stage for stage in stages if stage.seconds is not None and stage.name != "image"]
        stages += Builder(rig, said).build()[-1:]
    return stages


class BuildMaker:
    """Makes the user's builds in a rig with complete stages. `said` is called with each step.

    `kernels`: names of further kernels that the modules are compiled for.
    """

    def __init__(
        self,
        rig: Rig,
        builder: Builder,
        said: Callable[[str], None],
        kernels: Sequence[str] = (),
    ) -> None:
        if rig.recipe.builds is None:
            raise UsageError("has no [builds]: nothing can be built in it", where=rig.name)
        self._rig, self._recipe, self._builder, self._said = rig, rig.recipe.builds, builder, said
        self._kernels = [find_kernel(builder.home, name) for name in kernels]
        self._home = builder.home / OWN_BUILDS
        self._of_recipe = builder.tree / self._recipe.directory.lstrip("/")

    def userland(self, base: str) -> Path | None:
        """The directory with the userland of a build of the recipe; None for any other base."""
        place = self._of_recipe / base
        is_known = "/" not in base and (place / "version").is_file()
        return place if is_known and not (place / BUILD_FILE).exists() else None

    def fetch(self, request: BuildRequest, fresh: Path) -> str:
        """The patched sources into an empty directory; the git revision they are of, empty where
        they are of none."""
        is_known = self.userland(request.base) is not None
        revision = self._fetch(request, fresh, is_known)
        for patch in request.patches:
            apply_patch(patch, fresh, _present_parts(patch, fresh) if is_known else None)
        return revision

    def make(self, request: BuildRequest) -> BuildRecord:
        """Build what has changed. RunError where a patch doesn't apply or the tree doesn't compile:
        an older build of the name stays."""
        begin = time.monotonic()
        place = self._home / request.name
        place.mkdir(parents=True, exist_ok=True)
        with self._builder.lock():
            is_known = self.userland(request.base) is not None
            if self.userland(request.name) is not None:
                raise UsageError(
                    f"'{request.name}' is a build of the rig itself", hint="take another name"
                )
            self._said(f"{request.name}: sources")
            (place / "build.log").write_text("", "utf-8")
            delete_leftovers(place, _FRESH)
            try:
                with tempfile.TemporaryDirectory(dir=place, prefix=_FRESH) as directory:
                    fresh = Path(directory)
                    revision = self.fetch(request, fresh)
                    digest = ""
                    for kernel in (None, *self._kernels):
                        source, manifest = _object_names(kernel)
                        self._begin_with_objects_of(request, place, kernel)
                        digest = update_tree(fresh, place / source, place / manifest)
                words = [request.name, *([request.base] if is_known else [])]
                for kernel in (None, *self._kernels):
                    what = f"{request.name}: compiling"
                    self._said(f"{what} for the kernel '{kernel.name}'" if kernel else what)
                    self._run(self._recipe.run, words, place, kernel)
                new = place / "new"
                record = record_of(
                    request,
                    (place / "facts").read_text("utf-8"),
                    self._kernels,
                    digest=digest,
                    revision=revision,
                    userland=request.base if is_known else "",
                    version=(new / "version").read_text("utf-8").strip(),
                    seconds=round(time.monotonic() - begin, 1),
                )
                (new / BUILD_FILE).write_text(
                    json.dumps(record.as_data(), indent=1) + "\n", "utf-8"
                )
            except OSError as error:
                raise explain_failure(error, request.name) from None
            shutil.rmtree(place / "old", ignore_errors=True)
            if (place / "root").exists():
                (place / "root").rename(place / "old")
            new.rename(place / "root")
            shutil.rmtree(place / "old", ignore_errors=True)
        return record

    def _run(
        self,
        script: Sequence[str],
        words: Sequence[str],
        place: Path,
        kernel: KernelRecord | None = None,
    ) -> None:
        """Run a script of the recipe, with the directory of a build at /build; a further kernel is
        at /build/kernel, with sources of its own."""
        inside = self._builder.tree / "rig"
        inside.mkdir(exist_ok=True)
        shutil.copy(self._rig.directory / script[0], inside / script[0])
        cache = self._home.parent / "ccache"
        cache.mkdir(exist_ok=True)
        what = f"the build '{place.name}'"
        mounts = {place: "/build", cache: "/build/ccache"}
        if kernel is not None:
            what += f" for the kernel '{kernel.name}' ({kernel.release})"
            mounts[self._builder.home / KERNELS / kernel.name / "root"] = "/build/kernel"
            mounts[place / _object_names(kernel)[0]] = "/build/source"
        self._builder.inside(
            ["sh", f"/rig/{script[0]}", *script[1:], *words], what, mounts, place / "build.log"
        )

    def _fetch(self, request: BuildRequest, fresh: Path, is_known: bool) -> str:
        """The sources into an empty directory; the git revision they are of, empty where they are
        of none."""
        if is_known:
            shutil.copytree(
                self._fetch_base(request.base), fresh, symlinks=True, dirs_exist_ok=True
            )
            return ""
        if not Path(request.base).exists():
            names = ", ".join(
                sorted(
                    path.parent.name
                    for path in self._of_recipe.glob("*/version")
                    if not (path.parent / BUILD_FILE).exists()
                )
            )
            raise UsageError(
                "is neither a directory, a tarball nor a build of the rig",
                where=request.base,
                hint=f"the rig has: {names}" if names else None,
            )
        return fetch_sources(request, fresh)

    def _fetch_base(self, base: str) -> Path:
        """The sources of a build of the recipe, fetched once."""
        place = (
            self._home.parent
            / "fetched"
            / f"{base}-{(self._of_recipe / base / 'version').read_text('utf-8').strip()}"
        )
        if not place.exists():
            delete_leftovers(self._home.parent, _FETCH)
            with tempfile.TemporaryDirectory(dir=self._home.parent, prefix=_FETCH) as directory:
                inside = self._builder.tree / "rig"
                inside.mkdir(exist_ok=True)
                shutil.copy(
                    self._rig.directory / self._recipe.fetch[0], inside / self._recipe.fetch[0]
                )
                self._builder.open_packages()
                try:
                    self._builder.inside(
                        ["sh", f"/rig/{self._recipe.fetch[0]}", *self._recipe.fetch[1:], base],
                        f"the sources of {base}",
                        {Path(directory): "/build"},
                    )
                finally:
                    self._builder.close_packages()
                place.parent.mkdir(exist_ok=True)
                Path(directory, "fetched").rename(place)
        return place

    def _begin_with_objects_of(
        self, request: BuildRequest, place: Path, kernel: KernelRecord | None
    ) -> None:
        """A new build of a base that another was made of begins with a copy of its objects: only
        what differs is compiled."""
        source, manifest = _object_names(kernel)
        if (place / source).exists():
            return
        for record in records(self._home.parent):
            other = self._home / record.name
            if (
                split_sources(record.sources)[0].partition("@")[0] == request.base
                and (other / manifest).exists()
            ):
                self._said(f"{request.name}: begins with the objects of {record.name}")
                new = place / f"{source}.new"
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(other / source, new, symlinks=True)
                shutil.copy(other / manifest, place / manifest)
                new.rename(place / source)
                return


def record_of(
    request: BuildRequest, facts_text: str, kernels: Sequence[KernelRecord] = (), **known: Any
) -> BuildRecord:
    """The record of a build that was made. `facts_text`: what the script of the recipe wrote;
    `known`: further attributes."""
    facts: dict[str, str] = {}
    modules: dict[str, dict[str, list[str]]] = {}
    programs: dict[str, str] = {}
    release = ""
    for line in facts_text.splitlines():
        key, _, rest = line.partition(" ")
        if key == "kernel":
            release = rest
            facts.setdefault(key, rest)
        elif key == "module":
            name, *identity = rest.split(" ")
            modules.setdefault(release, {})[name] = identity
        elif key == "program":
            name, _, programs[rest.partition(" ")[0]] = rest.partition(" ")
        else:
            facts[key] = rest
    return BuildRecord(
        name=request.name,
        sources=request.sources,
        patches=patch_digests(request.patches),
        kernel=facts.get("kernel", ""),
        compiler=facts.get("compiler", ""),
        configure=facts.get("configure", ""),
        modules=modules.get(facts.get("kernel", ""), {}),
        programs=programs,
        kernels={
            kernel.name: KernelModules(kernel.release, modules.get(kernel.release, {}))
            for kernel in kernels
        },
        **known,
    )


def _object_names(kernel: KernelRecord | None) -> tuple[str, str]:
    """Names of the directory of sources with objects for a kernel, and of the list of its files."""
    suffix = "" if kernel is None else f".{kernel.name}"
    return f"source{suffix}", f"files{suffix}.json"


def _present_parts(patch: Path, tree: Path) -> str:
    """The parts of a patch for files that a package's sources have, and for new files of modules.
    RunError for a part that changes the userland."""
    text = patch.read_text("utf-8", "surrogateescape")
    present: list[str] = []
    mark = "diff --git " if "\ndiff --git " in f"\n{text}" else "--- "
    for part in re.split(rf"(?m)^(?={re.escape(mark)})", text):
        names = re.findall(r"^(?:---|\+\+\+) [^/\s]+/([^\t\n]+)", part, re.MULTILINE)
        if any(name.startswith(_USERLAND) for name in names):
            raise RunError(
                f"changes {names[-1]}, but the userland of this build comes from Debian's packages",
                where=patch,
                hint="build from a source tree: NAME=DIRECTORY+PATCH",
            )
        is_new = "\n--- /dev/null" in part and names[-1].startswith(
            ("module/", "include/", "config/")
        )
        if not names or is_new or any((tree / name).exists() for name in names):
            present.append(part)
    return "".join(present)
