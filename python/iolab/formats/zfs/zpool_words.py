# SPDX-License-Identifier: Apache-2.0
"""What the columns of `zpool iostat` are, in the order of its releases: a newer one adds at the
end."""

from __future__ import annotations

WAITS = (
    *(
        (f"{way}.{what}", way, what)
        for what in ("wait", "disk_wait", "syncq_wait", "asyncq_wait")
        for way in ("read", "write")
    ),
    ("scrub.wait", "scrub", "wait"),
    ("trim.wait", "trim", "wait"),
    ("rebuild.wait", "rebuild", "wait"),
)
"""Of -l and -w: in all, at the disk, in the queue of synchronous I/Os, of asynchronous ones; then
one column each."""

LATENCIES = tuple(name for name, _, _ in WAITS)
SIZES = tuple(
    f"{queue}.{how}"
    for queue in (
        "sync_read",
        "sync_write",
        "async_read",
        "async_write",
        "scrub",
        "trim",
        "rebuild",
    )
    for how in ("alone", "merged")
)
"""Of -r: I/Os that went by themselves, and those put together of several."""

FEWEST_LATENCIES, FEWEST_SIZES = 9, 10
"""Columns of the oldest release that has them, 0.7, which knows neither trim nor rebuild."""


class Owners:
    """Owner of a row: `pool` or the vdev's own name; with the pool's name in front where several
    pools are watched.

    A pool's name isn't part of it else, for every pool that iolab makes has another, and runs are
    compared.
    """

    def __init__(self) -> None:
        self._pools: dict[str, None] = {}
        self._pool = ""

    def add(self, pool: str) -> None:
        """A pool that is watched."""
        self._pools[pool] = None

    def of(self, name: str) -> str:
        """The owner of the row of that name; a pool's row precedes those of its vdevs."""
        if name in self._pools:
            self._pool = name
            return name if len(self._pools) > 1 else "pool"
        return f"{self._pool}/{name}" if len(self._pools) > 1 else name
