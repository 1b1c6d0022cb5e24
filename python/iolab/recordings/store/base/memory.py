# SPDX-License-Identifier: Apache-2.0
"""Memory of a process that records. Freed memory is used for the next batch; the kernel would clear
it again. After a segment is sealed, it is returned.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import pyarrow as pa

POOL, POOL_CHOICE = "jemalloc", "ARROW_DEFAULT_MEMORY_POOL"
"""Arrow's memory pool of a recorder, and the environment variable by which a user chooses another
one."""

DECAY_MS = 10_000
"""For how long freed memory of the pool may stay with the process."""

MMAP_THRESHOLD, TRIM_THRESHOLD = 32 << 20, 512 << 20
"""Bytes from which glibc maps a block of its own (its largest value), and of free memory at the end
of the heap that it keeps. NumPy's arrays of a sealed segment are up to 8 MiB."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Numbers of mallopt(3)."""


def keep_freed_memory() -> None:
    """Let Arrow and glibc keep freed memory. Without effect where this build of Arrow has no
    `POOL`, where the C library is another one, or where the user chose by environment variables."""
    if POOL_CHOICE not in os.environ and POOL in pa.supported_memory_backends():
        pa.jemalloc_set_decay_ms(DECAY_MS)
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    mallopt = _glibc("mallopt")
    for name, number, size in (
        ("MALLOC_MMAP_THRESHOLD_", _M_MMAP_THRESHOLD, MMAP_THRESHOLD),
        ("MALLOC_TRIM_THRESHOLD_", _M_TRIM_THRESHOLD, TRIM_THRESHOLD),
    ):
        if mallopt is not None and name not in os.environ:
            mallopt(number, size)


def return_freed_memory() -> None:
    """Return free memory of Arrow and glibc to the kernel."""
    pa.default_memory_pool().release_unused()
    trim = _glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it has none of this name."""
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function
