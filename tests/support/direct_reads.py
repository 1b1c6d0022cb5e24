# SPDX-License-Identifier: Apache-2.0
"""Direct reads of loop devices, as the block layer issued them."""

from __future__ import annotations

import collections
import contextlib
import os
import re
from collections.abc import Iterator

from .probe import TRACEFS

# Documentation/trace/events.rst; the letters are those of blk_fill_rwbs(): R read, S synchronous, M metadata, A readahead
_ISSUED = re.compile(r"block_rq_issue: (\d+),(\d+) RS (\d+) ")
_LOOP_MAJOR = 7


@contextlib.contextmanager
def direct_reads() -> Iterator[collections.Counter[str]]:
    """Bytes by device name, filled at the end. Metadata and readahead, which other processes can
    cause at any time, are not counted."""
    instance = TRACEFS / "instances" / f"iolab-test-{os.getpid()}"
    instance.mkdir()
    counted: collections.Counter[str] = collections.Counter()
    try:
        event = instance / "events/block/block_rq_issue"
        (event / "filter").write_text(
            f"dev >= {_LOOP_MAJOR << 20} && dev < {_LOOP_MAJOR + 1 << 20}"
        )
        (instance / "buffer_size_kb").write_text("16384")
        (event / "enable").write_text("1")
        yield counted
        (event / "enable").write_text("0")
        lost = [path.read_text() for path in instance.glob("per_cpu/cpu*/stats")]
        assert all(re.search(r"^overrun: 0$", text, re.MULTILINE) for text in lost), lost
        for _, minor, size in _ISSUED.findall((instance / "trace").read_text()):
            counted[f"loop{minor}"] += int(size)
    finally:
        instance.rmdir()
