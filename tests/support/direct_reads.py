# SPDX-License-Identifier: Apache-2.0
"""Direct reads of loop devices, as the block layer issued them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .probe import TRACEFS

# Documentation/trace/events.rst; the letters are those of blk_fill_rwbs(): R read, S synchronous, M metadata, A readahead
_ISSUED = re.compile(r"block_rq_issue: \d+,\d+ RS (\d+) ")
_LOOP_MAJOR = 7


class DirectReads:
    """Direct reads of a loop device from `follow` on. Metadata and readahead, which other processes
    can cause at any time, are not counted."""

    def __init__(self, instance: Path) -> None:
        self._instance = instance
        self._event = instance / "events/block/block_rq_issue"

    def follow(self, device: str) -> None:
        """Begin to count reads of a device, such as loop3."""
        number = (_LOOP_MAJOR << 20) + int(device.removeprefix("loop"))
        (self._event / "filter").write_text(f'dev == {number} && rwbs == "RS"')
        (self._event / "enable").write_text("1")

    def bytes(self) -> int:
        """Bytes that were read; nothing is counted afterwards."""
        (self._event / "enable").write_text("0")
        lost = [path.read_text() for path in self._instance.glob("per_cpu/cpu*/stats")]
        assert all(re.search(r"^overrun: 0$", text, re.MULTILINE) for text in lost), lost
        return sum(map(int, _ISSUED.findall((self._instance / "trace").read_text())))


@contextlib.contextmanager
def direct_reads() -> Iterator[DirectReads]:
    """An instance of tracefs that counts direct reads."""
    instance = TRACEFS / "instances" / f"iolab-test-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text("16384")
        yield DirectReads(instance)
    finally:
        instance.rmdir()


def mounted_device(below: Path) -> str:
    """The loop device that is mounted below a directory."""
    for line in Path("/proc/mounts").read_text().splitlines():
        device, place = line.split()[:2]
        if device.startswith("/dev/loop") and Path(place).is_relative_to(below):
            return Path(device).name
    raise AssertionError(f"nothing is mounted below {below}")
