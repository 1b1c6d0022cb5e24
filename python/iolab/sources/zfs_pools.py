"""Where OpenZFS keeps its counters, and which pools a source watches."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from ..hosts.base import Host
from .counters import CounterOptions

KSTATS = "/proc/spl/kstat/zfs"
_OURS = "iolab-"
"""How the names of pools begin that targets make."""


class PoolOptions(CounterOptions):
    """What every source of a pool lets a study choose."""

    pool: str = Field("", description="pool to watch; default: those that iolab made, else every imported one")


def not_loaded(host: Host) -> str | None:
    """Why there is nothing of OpenZFS to read, in words; None where its modules are loaded. Pools may come later."""
    return None if host.is_directory(KSTATS) else f"OpenZFS is not loaded: there is no {KSTATS}"


def watched(host: Host, pool: str) -> Sequence[str]:
    """Names of the pools to watch, sorted; OSError where none of them is imported."""
    found = [name for name in host.list_directory(KSTATS) if (name == pool or not pool) and host.is_directory(f"{KSTATS}/{name}")]
    chosen = [name for name in found if name.startswith(_OURS)] or found
    if not chosen:
        raise FileNotFoundError(2, "no such pool is imported" if pool else "no pool is imported", f"{KSTATS}/{pool}".rstrip("/"))
    return chosen
