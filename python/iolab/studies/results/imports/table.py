# SPDX-License-Identifier: Apache-2.0
"""Importing a published table: each cell becomes a run without evidence of its own, and stays
UNJUDGED."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path

from iolab import __version__
from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.base.units import parse_fio_size
from iolab.base.verdict import Reason, Verdict
from iolab.formats.core.published_table import PublishedTable, PublishedValue, read_published_table

from ..evidence.files import Files, read_file
from ..evidence.manifest import TABLES, Manifest, write_manifest
from ..evidence.model import Observation, Run, RunPlan
from ..gates.littles_law import concurrency_reason
from .runs import CONCURRENCY
from .tree import refuse_taken


def import_table(
    source: Path, output: Path, *, baseline: str | None = None, reproduce: list[str] | None = None
) -> int:
    """Make a results directory from a CSV of published numbers; returns how many cells it has."""
    table = _read(source)
    refuse_taken(output)
    variants = list(dict.fromkeys(value.variant for value in table.values))
    if baseline is not None and baseline not in variants:
        raise UsageError(
            f"there is no variant '{baseline}'",
            where=source,
            hint=f"variants are {', '.join(variants)}",
        )
    (output / TABLES).mkdir(parents=True)
    shutil.copyfile(source, output / TABLES / source.name)
    write_manifest(
        output,
        Manifest(
            name=output.name,
            description=table.about,
            origin="table",
            created_ns=time.time_ns(),
            iolab=__version__,
            baseline=baseline or variants[0],
            variants=variants,
            factors=list(table.factors),
            source=source.name,
            reproduce=reproduce or [],
        ),
    )
    return len(_cells(table))


def published_runs(directory: Path, files: Files = None) -> list[Run]:
    """The cells of every table of a results directory, as runs in order of appearance.

    `files`: the manifest's digests. ResultsError where a table is not as it was imported,
    FormatError where it is none.
    """
    runs: list[Run] = []
    tables = [
        path.relative_to(directory).as_posix()
        for path in sorted((directory / TABLES).glob("*.csv"))
    ]
    for name in dict.fromkeys(
        [*tables, *(name for name in files or () if name.startswith(f"{TABLES}/"))]
    ):
        try:
            data = read_file(directory, name, files)
        except FormatError as error:
            raise ResultsError(
                f"is not as it was imported: {error.message}",
                where=directory / name,
                hint="put it back from a copy, or import the table again",
            ) from None
        runs += _runs(
            read_published_table(data, str(directory / name)), directory / name, name, len(runs)
        )
    return runs


def table_runs(path: Path) -> tuple[str, list[Run]]:
    """What a CSV of published numbers says of itself, and its cells as runs, without importing it.

    UsageError, FormatError where it can't be read.
    """
    table = _read(path)
    return table.about, _runs(table, path, path.name, 0)


def _read(source: Path) -> PublishedTable:
    try:
        data = source.read_bytes()
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", where=source) from None
    return read_published_table(data, str(source))


def _runs(table: PublishedTable, path: Path, file: str, before: int) -> list[Run]:
    return [
        _run(before + number, values, path, file) for number, values in enumerate(_cells(table), 1)
    ]


def _cells(table: PublishedTable) -> list[list[PublishedValue]]:
    cells: dict[tuple[object, ...], list[PublishedValue]] = {}
    for value in table.values:
        cells.setdefault((value.variant, *value.factors.values(), value.repetition), []).append(
            value
        )
    return list(cells.values())


def _run(number: int, values: list[PublishedValue], path: Path, file: str) -> Run:
    first = values[0]
    digest = hashlib.sha256(
        repr((first.variant, first.factors, first.repetition)).encode()
    ).hexdigest()[:8]
    jobs = next(
        (first.factors[key] for key in CONCURRENCY if isinstance(first.factors.get(key), int)), None
    )
    plan = RunPlan(
        run=f"{number:04d}-{digest}",
        variant=first.variant,
        factors=first.factors,
        repetition=first.repetition,
        block=first.repetition,
        status="published",
        host="published",
        jobs=jobs,
    )
    observations = {
        value.metric: Observation(
            value.metric,
            value.value,
            value.base_unit,
            file,
            f"line {value.line}",
            value.printed_value,
            value.printed_unit,
        )
        for value in values
    }
    notes = list[Reason]()
    occupancy = _in_flight(plan, observations)
    if occupancy is not None and plan.jobs:
        ratio = occupancy[0] / plan.jobs
        observations["littles_law"] = Observation(
            "littles_law", ratio, "", file, "rate x mean latency / jobs"
        )
        reason = concurrency_reason(occupancy[0], plan.jobs, occupancy[1], None)
        notes += [] if reason is None else [reason]
    return Run(plan, path, observations, Verdict.of(notes, judged=False))


def _in_flight(plan: RunPlan, observations: dict[str, Observation]) -> tuple[float, float] | None:
    """(I/Os in flight by Little's law, mean latency in seconds) of a cell's printed values, or
    None."""
    for operation in ("read", "write", "mixed"):
        latency, rate = (
            observations.get(f"{operation}.lat.mean"),
            observations.get(f"{operation}.iops"),
        )
        throughput, block = observations.get(f"{operation}.bw"), plan.factors.get("bs")
        if latency is None:
            continue
        if rate is not None:
            return rate.value * latency.value, latency.value
        if throughput is not None and block is not None:
            try:
                size = parse_fio_size(block)
            except UsageError:
                continue
            return throughput.value / size * latency.value, latency.value
    return None
