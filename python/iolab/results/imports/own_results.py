# SPDX-License-Identifier: Apache-2.0
"""iolab's own results, imported: they are results already, and are taken whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import ResultsError, UsageError
from ...untrusted_text import parse_json, writable
from ..evidence.files import PLAN_FILE, RUNS
from ..evidence.manifest import FILE, Manifest, read_manifest, write_manifest
from .source import Source, put_file

_MADE_ANEW = {"observations.parquet", "series.parquet", "histograms.parquet", "lock", ".lock"}
"""Files that are derived from the evidence, or belong to a process."""


def is_own_results(source: Source) -> bool:
    """Whether the source as a whole is one results directory that can be opened, of one host or
    several."""
    paths = {file.path: file for file in source.files}
    manifest = paths.get(FILE) or paths.get("hosts.json")
    if manifest is None or not any(
        path.startswith(f"{RUNS}/") or f"/{RUNS}/" in path or path.startswith("tables/")
        for path in paths
    ):
        return False
    try:
        data: Any = parse_json(manifest.place.read_bytes()) if manifest.size < 64 << 20 else None
    except (OSError, ValueError):
        return False
    if manifest.path == "hosts.json":
        return isinstance(data, dict | list)
    return isinstance(data, dict) and data.get("kind") == "results"


def copy_own_results(
    source: Source, output: Path, name: str, how: str, *, baseline: str | None, reproduce: list[str]
) -> int:
    """Write all of its files but caches below `output`; returns how many runs it has.

    The manifest is the source's, with what it was imported from. UsageError for a baseline that it
    hasn't, ResultsError for a manifest that can't be read.
    """
    runs = 0
    for file in source.files:
        parts = file.path.split("/")
        if parts[-1] in _MADE_ANEW or file.path == "report.html":
            continue
        place = output.joinpath(*map(writable, parts))
        place.parent.mkdir(parents=True, exist_ok=True)
        put_file(
            file, place, "copy" if how == "link" and parts[-1] in (FILE, "hosts.json") else how
        )
        runs += len(parts) >= 3 and parts[-3] == RUNS and parts[-1] == PLAN_FILE
    if (output / FILE).exists():
        manifest = read_manifest(output)
        if baseline is not None and baseline not in manifest.variants:
            raise UsageError(
                f"there is no variant '{baseline}'",
                hint=f"variants are {', '.join(manifest.variants)}",
            )
        (output / FILE).unlink()
        write_manifest(
            output,
            Manifest(
                **{
                    **manifest.model_dump(),
                    "name": manifest.name or name,
                    "source": writable(source.name),
                    "baseline": baseline or manifest.baseline,
                    "reproduce": [writable(word) for word in reproduce],
                }
            ),
        )
    elif baseline is not None:
        raise ResultsError(
            "results of several hosts keep their baseline",
            where=source.name,
            hint="compare --baseline chooses another",
        )
    return runs
