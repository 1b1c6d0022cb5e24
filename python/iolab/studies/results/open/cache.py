# SPDX-License-Identifier: Apache-2.0
"""`observations.parquet`: what was derived, kept so that the next command needn't read every file
again.

A cache and nothing more: keyed by iolab's version and by name, size and time of every file of
evidence, thrown away and made again whenever the key differs or a byte of it is not as
`caches.json` has it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from pathlib import Path
from typing import Any

from iolab import __version__
from iolab.base import registry
from iolab.base.files import EVIDENCE, is_foreign, read_regular, write_atomically
from iolab.base.integrity import FileDigest, with_own_digest
from iolab.base.untrusted_text import parse_json
from iolab.base.verdict import Verdict

from ..evidence.files import PROFILES, RUNS, known_plan, read_document, run_directories
from ..evidence.model import NO_PLAN, Observation, Run

FILE = "observations.parquet"
LIST = "caches.json"
"""Key of the caches, and the digest of each; itself checked by its own."""
_RUNS = b"iolab.runs"


_DERIVING = ("base/stats", "formats", "studies/results")
"""Directories of the package with the code that derives."""


def code_key(groups: Iterable[str]) -> str:
    """A digest of iolab's version and plugins, and of the code of some directories of the package, by
    name, size and time: a change of a reader under development is seen at once."""
    digest = hashlib.sha256("\n".join([__version__, *registry.third_parties()]).encode())
    package = Path(__file__).parents[3]
    for group in groups:
        # Python writes compiled code while a command runs
        _add_files(digest, package / group, without="__pycache__")
    return digest.hexdigest()


def evidence_key(directory: Path) -> str:
    """A digest of iolab's version, code and plugins, and of every file below `runs/` and
    `profiles/`, by name, size and time."""
    digest = hashlib.sha256(code_key(_DERIVING).encode())
    for place in (directory / RUNS, directory / PROFILES):
        _add_files(digest, place)
    return digest.hexdigest()


def _add_files(digest: Any, place: Path, without: str = "") -> None:
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name != without)
        digest.update(os.fsencode(f"{os.path.basename(folder)}/\n"))  # noqa: PTH119 - a run that was killed at its start has no file
        for name in sorted(names):
            with contextlib.suppress(
                FileNotFoundError
            ):  # a linked file may have gone: its run will say so
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - thousands of files, and Path is slow
                line = f"{os.path.basename(folder)}/{name} {status.st_size} {status.st_mtime_ns}\n"  # noqa: PTH119
                digest.update(os.fsencode(line))


def table_of(runs: Sequence[Run]) -> Any:
    """Observations as a `pyarrow.Table`, one row each: run, variant, factors, repetition, block,
    verdict, metric, value...

    Factor columns are named `factor.<name>`; a factor with levels of several types becomes text.
    """
    import pyarrow as pa

    counts = [len(run.observations) for run in runs]

    def of_runs(values: Iterable[Any], kind: Any = None) -> Any:
        return pa.array(list(chain.from_iterable(map(repeat, values, counts))), kind)

    columns: dict[str, Any] = {
        "run": of_runs([run.id for run in runs], pa.string()),
        "variant": of_runs([run.variant for run in runs], pa.string()),
    }
    for name in dict.fromkeys(name for run in runs for name in run.factors):
        levels = [run.factors.get(name) for run in runs]
        kinds = {
            type(level)
            for level, count in zip(levels, counts, strict=True)
            if level is not None and count
        }
        texts = [None if level is None else str(level) for level in levels]
        columns[f"factor.{name}"] = of_runs(levels if len(kinds) == 1 else texts)
    columns |= {
        "repetition": of_runs([run.plan.repetition for run in runs], pa.int32()),
        "block": of_runs([run.plan.block for run in runs], pa.int32()),
        "verdict": of_runs([run.verdict.level.value for run in runs], pa.string()),
    }
    names = (
        "metric",
        "value",
        "unit",
        "source_file",
        "source_field",
        "source_value",
        "source_unit",
    )
    rows = map(attrgetter(*names), chain.from_iterable(run.observations.values() for run in runs))
    for name, values in zip(names, list(zip(*rows, strict=True)) or [()] * len(names), strict=True):
        columns[name] = pa.array(
            values, pa.float64() if name in ("value", "source_value") else pa.string()
        )
    return pa.table(columns)


def notes_and_table(runs: Sequence[Run]) -> Any:
    """The table of observations, with what else is known of each run in its metadata."""
    notes = [
        {
            "run": run.id,
            "verdict": run.verdict.as_json(),
            "environment": dict(run.environment),
            "assumptions": list(run.assumptions),
            "options": dict(run.options),
            "window": run.window,
            "boot": run.boot,
        }
        for run in runs
    ]
    return table_of(runs).replace_schema_metadata({_RUNS: json.dumps(notes)})


def write_caches(directory: Path, tables: Mapping[str, Any], key: str) -> None:
    """Write tables by file name, and the list of their digests last; or quietly don't where the
    directory can't be written.

    Nothing is written into a directory of another user: a cache is never needed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if is_foreign(directory):
        return
    with contextlib.suppress(OSError):
        listed = {}
        for name, table in tables.items():
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
            content = sink.getvalue().to_pybytes()
            write_atomically(directory / name, content, durable=False)
            listed[name] = str(FileDigest.of(content))
        document = json.dumps(
            {"schema": 2, "kind": "caches", "key": key, "files": listed}, indent=1
        )
        write_atomically(directory / LIST, with_own_digest(document), durable=False)


def cached_table(directory: Path, name: str, key: str) -> Any:
    """A table that `write_caches` wrote under that key, byte by byte; else None."""
    if not os.path.lexists(directory / name):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    listed_key, listed = listed_caches(directory)
    try:
        if listed_key != key:
            return None
        content = read_regular(directory / name, limit=EVIDENCE)
        if FileDigest.of(content) != listed.get(name):
            return None
        # by this thread alone: a thread of Arrow's pools that is alive when the process exits can
        # abort it (std::terminate)
        with pq.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
            return file.read(use_threads=False)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return None


def listed_caches(directory: Path) -> tuple[str | None, dict[str, FileDigest]]:
    """The key of the caches and the digest of each by file name; None and none where there is no
    such list, or a damaged one."""
    document = read_document(directory, LIST)
    try:
        return document["key"], {
            name: FileDigest.parse(text) for name, text in document["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, {}


def read_cache(directory: Path, key: str) -> list[Run] | None:
    """The runs of a cache with that key; None where it, or any other that was made with it, is not
    as it was written."""
    table = cached_table(directory, FILE, key)
    if table is None or not all(
        _is_whole(directory / name, digest) for name, digest in listed_caches(directory)[1].items()
    ):
        return None
    run_dirs = {path.name: path for path in run_directories(directory)}
    try:
        return _runs(table, parse_json(table.schema.metadata[_RUNS]), run_dirs)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_whole(path: Path, digest: FileDigest) -> bool:
    try:
        return FileDigest.of(read_regular(path, limit=EVIDENCE)) == digest
    except OSError:
        return False


def _runs(table: Any, notes: Any, run_dirs: Mapping[str, Path]) -> list[Run] | None:
    """None where the evidence has other runs, or a run with a plan that cannot be read any more."""
    names = (
        "run",
        "metric",
        "value",
        "unit",
        "source_file",
        "source_field",
        "source_value",
        "source_unit",
    )
    by_run: dict[str, dict[str, Observation]] = {}
    for run, *values in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        by_run.setdefault(run, {})[values[0]] = Observation(*values)
    if [data["run"] for data in notes] != list(run_dirs):
        return None
    runs = []
    for data in notes:
        run_dir = run_dirs[data["run"]]
        plan, problem = known_plan(run_dir)
        if (problem is None) == any(
            reason["code"] == NO_PLAN for reason in data["verdict"]["reasons"]
        ):
            return None
        runs.append(
            Run(
                plan,
                run_dir,
                by_run.get(data["run"], {}),
                Verdict.from_json(data["verdict"]),
                data["environment"],
                tuple(data["assumptions"]),
                data["options"],
                None if data["window"] is None else (data["window"][0], data["window"][1]),
                data["boot"],
            )
        )
    return runs
