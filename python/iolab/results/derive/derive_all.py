"""Deriving many runs: each by itself, so side by side where the machine has the processors and it is safe to fork."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from ..evidence.model import Derived, RunPlan
from .derive import derive

Item: TypeAlias = tuple[Path, RunPlan]

FEWEST = 48
"""Fewer runs than this are done sooner than processes start."""

_PARTS = 12
"""Runs that a process takes at a time."""


def derive_all(items: Sequence[Item]) -> Iterator[Derived]:
    """What the evidence of each run says, in the order of `items`.

    The first run on a host is the one to whose environment the others on it are held. Imported files do not name their host: there it is
    the first run of the same variant, and a difference between variants is a remark of the comparison.
    """
    references: dict[tuple[str, str], Mapping[str, str]] = {}
    first: dict[int, Derived] = {}
    for place, (run_dir, plan) in enumerate(items):
        if _origin(plan) not in references:
            first[place] = derive(run_dir, plan)
            references[_origin(plan)] = dict(first[place].environment)
    rest = [(run_dir, plan, references[_origin(plan)]) for place, (run_dir, plan) in enumerate(items) if place not in first]
    derived = _side_by_side(rest) if len(rest) >= FEWEST and _may_fork() else map(_derive, rest)
    for place in range(len(items)):
        yield first[place] if place in first else next(derived)


def _origin(plan: RunPlan) -> tuple[str, str]:
    """What runs have in common whose environment must be one."""
    return plan.host, plan.variant if plan.status == "imported" else ""


def _derive(item: tuple[Path, RunPlan, Mapping[str, str]]) -> Derived:
    run_dir, plan, reference = item
    return derive(run_dir, plan, reference=reference)


def _side_by_side(items: Sequence[tuple[Path, RunPlan, Mapping[str, str]]]) -> Iterator[Derived]:
    done = 0
    pool = ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork"), initializer=_leave_ctrl_c_to_parent)
    try:
        for derived in pool.map(_derive, items, chunksize=_PARTS):
            yield derived
            done += 1
    except BrokenProcessPool:
        # a process was killed from outside (memory): nothing is lost, the rest is done here
        yield from map(_derive, items[done:])
    finally:
        pool.shutdown(cancel_futures=True)


def _may_fork() -> bool:
    """A copy of a process inherits locks but not the threads that would release them; pyarrow keeps threads."""
    return (os.cpu_count() or 1) > 1 and threading.active_count() == 1 and not {"pyarrow", "duckdb"} & set(sys.modules)


def _leave_ctrl_c_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
