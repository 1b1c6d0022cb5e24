# SPDX-License-Identifier: Apache-2.0
"""A results directory's `manifest.json`: what it is, where it came from and how to make it
again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iolab.base.errors import ResultsError
from iolab.base.files import EVIDENCE, read_regular, write_atomically
from iolab.base.integrity import FileDigest, has_own_digest, with_own_digest
from iolab.base.untrusted_text import parse_json

SCHEMA = 2
"""From 2 on a manifest has a digest of itself, and of the files that it covers."""
FILE = "manifest.json"
STUDY_FILE = "study.toml"
TABLES = "tables"
"""Where tables of published numbers lie."""


class Manifest(BaseModel):
    """`manifest.json` of a results directory."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = Field(
        SCHEMA, description="version of this layout; a newer one is refused, not guessed at"
    )
    kind: Literal["results"] = "results"
    name: str = Field(description="name of the study")
    description: str = ""
    origin: Literal["run", "tree", "table"] = Field(
        description="run here, imported files, or published numbers"
    )
    created_ns: int = Field(description="realtime of creation, nanoseconds")
    iolab: str = Field(description="version of iolab that wrote it")
    baseline: str | None = Field(None, description="the arm that the others are compared with")
    variants: list[str] = Field(default_factory=list, description="arms, in the study's order")
    factors: list[str] = Field(
        default_factory=list, description="what was swept, in the study's order"
    )
    study: dict[str, Any] | None = Field(None, description="the study with every default filled in")
    source: str | None = Field(None, description="what was imported")
    layout: str | list[str] | None = Field(
        None, description="how the imported tree's paths were read; several are tried in turn"
    )
    imported: dict[str, Any] | None = Field(
        None, description="what became of every file of an imported tree: counts, examples, notes"
    )
    host: str | None = Field(None, description="name of the host that the study was begun on")
    reproduce: list[str] = Field(
        default_factory=list, description="command that makes these results again, as arguments"
    )
    runs: list[str] | None = Field(
        None, description="names of the runs that an import made; null otherwise"
    )
    files: dict[str, FileDigest] | None = Field(
        None,
        description="size and SHA-256 of the study's text and of tables of published numbers, by path below the results; null in "
        "manifests of older versions",
    )
    sha256: str | None = Field(
        None,
        exclude=True,
        description="of the text before this field; null in manifests of older versions",
    )


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write it whole or not at all, with the digests of the files that are there already."""
    present_files = [
        path
        for path in (directory / STUDY_FILE, *sorted((directory / TABLES).glob("*")))
        if path.is_file()
    ]
    files = {
        path.relative_to(directory).as_posix(): FileDigest.of(read_regular(path, limit=EVIDENCE))
        for path in present_files
    }
    document = manifest.model_copy(
        update={"schema_version": SCHEMA, "files": files}
    ).model_dump_json(indent=2)
    write_atomically(directory / FILE, with_own_digest(document))


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a results directory; ResultsError where it is none, damaged or of a newer
    iolab."""
    path = directory / FILE
    try:
        content = read_regular(path)
        data = parse_json(content)
    except FileNotFoundError:
        raise ResultsError(
            "not a results directory (it has no manifest.json)",
            where=directory,
            hint="iolab run and iolab import make one",
        ) from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    except ValueError as error:
        raise ResultsError(f"can't be read: {error}", where=path) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise ResultsError(
            f"written by a newer iolab (schema {version}, this one reads {SCHEMA})",
            where=path,
            hint="open it with that version",
        )
    has_digest = has_own_digest(content)
    if has_digest is False or (has_digest is None and isinstance(version, int) and version > 1):
        raise ResultsError(
            "is damaged: its content is not what its digest is of",
            where=path,
            hint="put it back from a copy",
        )
    if isinstance(data, dict):
        data.pop("sha256", None)
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise ResultsError(f"{place}: {first['msg']}", where=path) from None
