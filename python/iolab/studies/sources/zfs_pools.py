# SPDX-License-Identifier: Apache-2.0
"""Which pools a source watches."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from iolab.formats.zfs.kstat_log import KSTATS
from iolab.hosts.base.host import Host

from .counters import CounterOptions

_OURS = "iolab-"
"""How the names of pools begin that targets make."""


class PoolOptions(CounterOptions):
    """What every source of a pool lets a study choose."""

    pool: str = Field(
        "", description="pool to watch; default: those that iolab made, else every imported one"
    )


def pools_to_watch(host: Host, pool: str) -> Sequence[str]:
    """Names of the pools to watch, sorted; OSError where none of them is imported."""
    names = [
        name
        for name in host.list_directory(KSTATS)
        if (name == pool or not pool) and host.is_directory(f"{KSTATS}/{name}")
    ]
    preferred = [name for name in names if name.startswith(_OURS)] or names
    if not preferred:
        raise FileNotFoundError(
            2,
            "no such pool is imported" if pool else "no pool is imported",
            f"{KSTATS}/{pool}".rstrip("/"),
        )
    return preferred
