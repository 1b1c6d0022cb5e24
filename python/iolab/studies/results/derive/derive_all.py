# SPDX-License-Identifier: Apache-2.0
"""Deriving many runs: each alone, so in parallel where the machine has the processors and it
is safe to fork."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

from iolab.formats.core.tables import FioOutput

from ..evidence.model import PROGRAM_BUILD, SESSION, Derived, RunPlan
from ..facts.target_metrics import read_target
from ..gates.builds import same_build
from .derive import derive

Item: TypeAlias = tuple[Path, RunPlan]
_Builds: TypeAlias = tuple[Mapping[str, Any], ...]
_Item: TypeAlias = tuple[Path, RunPlan, Mapping[str, str], _Builds]

FEWEST = 48
"""Fewer runs than this are done sooner than processes start."""

_PARTS = 12
"""Runs that a process takes at a time."""


_outputs: Mapping[str, FioOutput] = {}
"""In a process of the pool: what the parent had read, inherited by fork instead of sent with every
run."""


def derive_all(
    items: Sequence[Item], outputs: Mapping[str, FioOutput] | None = None
) -> Iterator[Derived]:
    """What the evidence of each run says, in the order of `items`; `outputs` as `derive` has it.

    The environment of the first run on a host is the reference for its other runs. Imported
    files do not name their host: there it is the first run of the same variant, and a difference
    between variants is a remark of the comparison.
    """
    builds = _builds(items)
    references: dict[tuple[str, str], Mapping[str, str]] = {}
    first: dict[int, Derived] = {}
    for place, (run_dir, plan) in enumerate(items):
        if _origin(plan) not in references:
            first[place] = derive(run_dir, plan, outputs=outputs, builds=builds)
            references[_origin(plan)] = dict(first[place].environment)
    rest = [
        (run_dir, plan, references[_origin(plan)], builds)
        for place, (run_dir, plan) in enumerate(items)
        if place not in first
    ]
    derived = (
        _side_by_side(rest, outputs or {})
        if len(rest) >= FEWEST and _may_fork()
        else (_derive(item, outputs or {}) for item in rest)
    )
    for place in range(len(items)):
        yield first[place] if place in first else next(derived)


def _builds(items: Sequence[Item]) -> _Builds:
    """What was loaded or ran for each requested build: the gate of builds compares every run with
    it."""
    distinct_builds: list[Mapping[str, Any]] = []
    for run_dir, plan in items:
        if plan.status != "finished":
            continue
        target = read_target(run_dir, plan.files)
        for build in (target.get("build"), plan.extra.get(PROGRAM_BUILD)):
            if isinstance(build, Mapping) and not any(
                same_build(other, build) for other in distinct_builds
            ):
                distinct_builds.append(build)
    return tuple(distinct_builds)


def _origin(plan: RunPlan) -> tuple[str, str]:
    """Key of the runs that must have the same environment. Sessions on several boots differ by
    variant."""
    by_variant = plan.status == "imported" or SESSION in plan.extra
    return plan.host, plan.variant if by_variant else ""


def _derive(item: _Item, outputs: Mapping[str, FioOutput]) -> Derived:
    run_dir, plan, reference, builds = item
    return derive(run_dir, plan, reference=reference, outputs=outputs, builds=builds)


def _derive_in_pool(item: _Item) -> Derived:
    return _derive(item, _outputs)


def _side_by_side(items: Sequence[_Item], outputs: Mapping[str, FioOutput]) -> Iterator[Derived]:
    done = 0
    pool = ProcessPoolExecutor(
        os.cpu_count(), mp_context=get_context("fork"), initializer=_begin, initargs=(outputs,)
    )
    try:
        for derived in pool.map(_derive_in_pool, items, chunksize=_PARTS):
            yield derived
            done += 1
    except BrokenProcessPool:
        # a process was killed from outside (memory): nothing is lost, the rest is done here
        yield from (_derive(item, outputs) for item in items[done:])
    finally:
        pool.shutdown(cancel_futures=True)


def _may_fork() -> bool:
    """A copy of a process inherits locks but not the threads that would release them; pyarrow keeps
    threads."""
    return (
        (os.cpu_count() or 1) > 1
        and threading.active_count() == 1
        and not {"pyarrow", "duckdb"} & set(sys.modules)
    )


def _begin(outputs: Mapping[str, FioOutput]) -> None:
    """In each process of the pool: Ctrl-C is the parent's, and what it had read is known here as
    well."""
    global _outputs
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # looking for circles among what the parent made would copy its pages, for nothing
    _outputs = outputs
