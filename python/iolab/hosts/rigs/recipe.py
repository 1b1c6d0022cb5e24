# SPDX-License-Identifier: Apache-2.0
"""The recipe of a rig: its `rig.toml` and scripts."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iolab.base.errors import UsageError

from ..base.options import Size

FILE = "rig.toml"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class Stage(BaseModel):
    """A script that runs inside the system that is being made; done once, and again where it or its
    files change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=_NAME)]
    run: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="a script in the directory of rig.toml, and its arguments"),
    ]
    files: Annotated[
        tuple[str, ...],
        Field(description="further files that it takes from the directory of rig.toml"),
    ] = ()


class Builds(BaseModel):
    """How builds of the user's own are made: scripts that run inside the system, with a build's
    directory mounted at /build."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: Annotated[
        str,
        Field(pattern=r"^(/[A-Za-z0-9._-]+)+$", description="where builds are, a directory each"),
    ]
    fetch: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="puts the sources of a build of the recipe, named by its one "
            "argument, into /build/fetched",
        ),
    ]
    run: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="builds /build/source into /build/new, and writes /build/facts; its "
            "arguments are a name, and the build that supplies the userland",
        ),
    ]
    programs: Annotated[
        tuple[str, ...],
        Field(
            description="scripts that select a build; on other hosts they are in the directory .bin "
            "of the builds"
        ),
    ] = ()


class Kernels(BaseModel):
    """How further kernels are installed: a script that runs inside the system, with the kernel's
    directory mounted at /build."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="puts a kernel with modules and headers into /build/root, and its release "
            "into /build/release. Arguments: a package and its suite; none for the sources in "
            "/build/root/usr/src/linux",
        ),
    ]


class Recipe(BaseModel):
    """`rig.toml`. All packages are Debian's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=_NAME)]
    description: str = ""
    suite: Annotated[str, Field(pattern=_NAME)]
    suites: tuple[str, ...] = ()
    components: tuple[str, ...] = ("main",)
    kernel: str = "linux-image-cloud-amd64"
    packages: tuple[str, ...] = ()
    size: Size = 6 << 30
    default_memory: Size = 4 << 30
    stages: tuple[Stage, ...] = ()
    builds: Builds | None = None
    kernels: Kernels | None = None


class Rig:
    """A recipe and its directory."""

    def __init__(self, directory: Path, recipe: Recipe) -> None:
        self.directory, self.recipe, self.name = directory, recipe, recipe.name

    def files(self, stage: Stage) -> list[Path]:
        """What a stage takes along; UsageError where one is missing."""
        stage_files = [self.directory / name for name in (stage.run[0], *stage.files)]
        for path in stage_files:
            if not path.is_file():
                raise UsageError(
                    "is missing",
                    where=path,
                    hint=f"stage '{stage.name}' of {self.directory / FILE} names it",
                )
        return stage_files

    def digest(self, stage: Stage) -> str:
        """Changes with everything that a stage is made of."""
        parts = [repr(stage.run).encode(), *(path.read_bytes() for path in self.files(stage))]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def places() -> list[Path]:
    """Directories that hold rigs: `rigs/` here, in the package, and in a clone."""
    return [Path("rigs"), *(base / "rigs" for base in Path(__file__).resolve().parents)]


def find_rig(name: str) -> Rig:
    """A rig by the name of its directory below `rigs/` (here, or where iolab's sources are), or by
    the path of its directory."""
    for directory in [Path(name)] if "/" in name else [place / name for place in places()]:
        if (directory / FILE).is_file():
            return _read(directory.resolve())
    raise UsageError(
        f"there is no rig '{name}'",
        hint="a rig is a directory with a rig.toml, below rigs/ or named by its path",
    )


def _read(directory: Path) -> Rig:
    path = directory / FILE
    try:
        return Rig(directory, Recipe.model_validate(tomllib.loads(path.read_text("utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"is no TOML: {error}", where=path) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}", where=path
        ) from None
