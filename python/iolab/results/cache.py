"""`observations.parquet`: what was derived, kept so that the next command needn't read every file again.

A cache and nothing more: keyed by iolab's version and by name, size and time of every file of evidence, thrown away and
made again whenever the key differs or the file is damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__, registry
from ..texts import parsed
from ..verdict import Verdict
from .evidence import PROFILES, RUNS, known_plan
from .model import Observation, Run

FILE = "observations.parquet"
_KEY = b"iolab.key"
_RUNS = b"iolab.runs"


_DERIVING = ("formats", "results", "stats")
"""Groups of the package whose code decides what is derived."""


def evidence_key(directory: Path) -> str:
    """A digest of iolab's version, code and plugins, and of every file below `runs/` and `profiles/`, by name, size and time.

    The code counts as well as the version, so that a change of a reader or gate under development is seen at once.
    """
    digest = hashlib.sha256("\n".join([__version__, *registry.third_parties()]).encode())
    package = Path(__file__).parent.parent
    for place in (*(package / group for group in _DERIVING), directory / RUNS, directory / PROFILES):
        for folder, folders, names in os.walk(place):
            folders.sort()
            digest.update(f"{os.path.basename(folder)}/\n".encode())  # noqa: PTH119 - a run that was killed at its start has no file
            for name in sorted(names):
                with contextlib.suppress(FileNotFoundError):  # a linked file may have gone: its run will say so
                    status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - thousands of files, and Path is slow
                    digest.update(f"{os.path.basename(folder)}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())  # noqa: PTH119
    return digest.hexdigest()


def table_of(runs: Sequence[Run]) -> Any:
    """Observations as a `pyarrow.Table`, one row each: run, variant, factors, repetition, block, verdict, metric, value...

    Factor columns are named `factor.<name>`; a factor with levels of several types becomes text.
    """
    import pyarrow as pa

    rows = [(run, observation) for run in runs for observation in run.observations.values()]
    columns: dict[str, Any] = {
        "run": pa.array([run.id for run, _ in rows], pa.string()),
        "variant": pa.array([run.variant for run, _ in rows], pa.string()),
    }
    for name in dict.fromkeys(name for run in runs for name in run.factors):
        levels = [run.factors.get(name) for run, _ in rows]
        kinds = {type(level) for level in levels if level is not None}
        texts = [None if level is None else str(level) for level in levels]
        columns[f"factor.{name}"] = pa.array(levels if len(kinds) == 1 else texts)
    columns |= {
        "repetition": pa.array([run.plan.repetition for run, _ in rows], pa.int32()),
        "block": pa.array([run.plan.block for run, _ in rows], pa.int32()),
        "verdict": pa.array([run.verdict.level.value for run, _ in rows], pa.string()),
    }
    for name in ("metric", "value", "unit", "source_file", "source_field", "source_value", "source_unit"):
        kind = pa.float64() if name in ("value", "source_value") else pa.string()
        columns[name] = pa.array([getattr(observation, name) for _, observation in rows], kind)
    return pa.table(columns)


def write_cache(directory: Path, runs: Sequence[Run], key: str) -> None:
    """Write it, or quietly don't where the directory can't be written: a cache is never needed."""
    notes = [{"run": run.id, "verdict": run.verdict.as_json(), "environment": dict(run.environment),
              "assumptions": list(run.assumptions), "options": dict(run.options)} for run in runs]
    table = table_of(runs).replace_schema_metadata({_KEY: key, _RUNS: json.dumps(notes)})
    write_quietly(directory / FILE, table)


def write_quietly(path: Path, table: Any) -> None:
    """Write a table as a whole, or leave no trace where that can't be done, as on a file system that is read-only."""
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, temporary, compression="zstd")
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


def read_cache(directory: Path, key: str) -> list[Run] | None:
    """The runs of a cache with that key, or None."""
    path = directory / FILE
    if not path.exists():
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        metadata = table.schema.metadata or {}
        if metadata.get(_KEY, b"").decode() != key:
            return None
        notes = parsed(metadata[_RUNS])
    except (OSError, pa.ArrowInvalid, ValueError, KeyError):
        return None
    names = ("run", "metric", "value", "unit", "source_file", "source_field", "source_value", "source_unit")
    by_run: dict[str, dict[str, Observation]] = {}
    for run, *values in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        by_run.setdefault(run, {})[values[0]] = Observation(*values)
    found = []
    for data in notes:
        run_dir = directory / RUNS / data["run"]
        found.append(Run(known_plan(run_dir)[0], run_dir, by_run.get(data["run"], {}), Verdict.from_json(data["verdict"]),
                         data["environment"], tuple(data["assumptions"]), data["options"]))
    return found
