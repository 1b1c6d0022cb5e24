"""A results directory's `manifest.json`: what it is, where it came from and how to make it again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import ResultsError
from ..texts import parsed

SCHEMA = 1
FILE = "manifest.json"


class Manifest(BaseModel):
    """`manifest.json` of a results directory."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = Field(SCHEMA, description="version of this layout; a newer one is refused, not guessed at")
    kind: Literal["results"] = "results"
    name: str = Field(description="name of the study")
    description: str = ""
    origin: Literal["run", "tree", "table"] = Field(description="run here, imported files, or published numbers")
    created_ns: int = Field(description="realtime of creation, nanoseconds")
    iolab: str = Field(description="version of iolab that wrote it")
    baseline: str | None = Field(None, description="the arm that the others are compared with")
    variants: list[str] = Field(default_factory=list, description="arms, in the study's order")
    factors: list[str] = Field(default_factory=list, description="what was swept, in the study's order")
    study: dict[str, Any] | None = Field(None, description="the study with every default filled in")
    source: str | None = Field(None, description="what was imported")
    layout: str | None = Field(None, description="how the imported tree's paths were read")
    host: str | None = Field(None, description="name of the host that the study was begun on")
    reproduce: list[str] = Field(default_factory=list, description="command that makes these results again, as arguments")


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write it whole or not at all."""
    write_atomically(directory / FILE, manifest.model_dump_json(indent=2) + "\n")


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a results directory; ResultsError where it is none, damaged or of a newer iolab."""
    path = directory / FILE
    try:
        data = parsed(path.read_bytes())
    except FileNotFoundError:
        raise ResultsError("not a results directory (it has no manifest.json)", where=directory,
                           hint="iolab run and iolab import make one") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"can't be read: {error}", where=path) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise ResultsError(f"written by a newer iolab (schema {version}, this one reads {SCHEMA})", where=path,
                           hint="open it with that version")
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise ResultsError(f"{place}: {first['msg']}", where=path) from None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by a finished one: temporary file, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
