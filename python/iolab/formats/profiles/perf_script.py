# SPDX-License-Identifier: Apache-2.0
"""The text of `perf script`: a line for each sample, its stack from the innermost frame below it,
an empty line behind.

    fio  9567 cpu-clock:ppp:
            ffffffff821ef691 do_syscall_64 ([kernel.kallsyms])
                      938c8 [unknown] (/usr/bin/fio)

Further columns of a sample's line (CPU, time, period) may be present or not. Kernels' frames are
known by where they are from, or by an address in the upper half. A frame without a name is called
by its file, `[fio]`, and such frames that follow each other are one: without frame pointers perf
finds addresses there that are none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from iolab.base.errors import FormatError

from ..core.text import decode, looks_binary
from .stacks import KERNEL, StackTable

_SAMPLE = re.compile(
    r"(\S.*?)\s+-?\d+(?:/-?\d+)?(?:\s+\[\d+\])?(?:\s+(\d{1,12}\.\d{1,9}):)?(?:\s+\d+)?\s+([A-Za-z][^\s]*?):\s*",
    re.ASCII,
)
_FRAME = re.compile(r"\s+([0-9a-f]{1,16})\s+(.+?)(?:\s+\((.*)\))?\s*", re.ASCII)
_OFFSET = re.compile(r"\+0x[0-9a-f]+$", re.ASCII)
_KERNEL_FILE = re.compile(
    r"\[(?:guest\.)?kernel\.[^\]]*\][a-z._]*|\[[a-z0-9_]+\]|.*/vmlinux[^/]*|.*\.ko(?:\.[a-z0-9]+)?",
    re.ASCII,
)
_NO_KERNEL = {"[unknown]", "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[uprobes]"}
_UNNAMED = "[unknown]"
_KERNEL_HALF = re.compile(r"ffff[0-9a-f]{12}")


class PerfScript:
    """Samples with their stacks, folded."""

    name = "perf-script"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes where a line of a sample is followed by a frame."""
        if looks_binary(head):
            return False
        lines = [
            line
            for line in head.decode("utf-8", "replace").split("\n")[:400]
            if not line.startswith("#")
        ]
        return any(
            _SAMPLE.fullmatch(line) and _FRAME.fullmatch(below) for line, below in pairwise(lines)
        )

    def read(self, data: bytes, where: str) -> StackTable:
        """All samples that can be read; FormatError where none can."""
        return fold(
            decode(data, where, when_empty="perf took no sample").removesuffix("\n").split("\n"),
            where,
        )


def fold(lines: Iterable[str], where: str) -> StackTable:
    """Stacks of lines that come one by one, so that a long text need not be in memory; FormatError
    where there is no sample.

    A line that is neither sample nor frame invalidates its sample. A last sample without the
    empty line behind it was cut.
    """
    folding = _Folding()
    for number, line in enumerate(lines, 1):
        folding.take(number, line.rstrip("\r\n"))
    if folding.within:
        folding.lose(folding.number, "the text ends within a sample")
    if not folding.stacks:
        raise FormatError("has no sample of perf with a stack", where=where)
    return StackTable(
        dict(folding.stacks), folding.event, folding.seconds, folding.damaged, folding.first
    )


class _Folding:
    """The sample that is being read, and those before it."""

    def __init__(self) -> None:
        self.stacks: Counter[str] = Counter()
        self.event = ""
        self.damaged, self.number = 0, 0
        self.first: tuple[int, str] | None = None
        self.within, self._lost = False, False
        self._process = ""
        self._time: float | None = None
        self._times: tuple[float, float] | None = None
        self._frames: list[str] = []

    def take(self, number: int, line: str) -> None:
        """The next line."""
        self.number = number
        if not line.strip():
            self._end()
        elif line.startswith("#"):
            return
        elif not line[0].isspace() and (match := _SAMPLE.fullmatch(line)) is not None:
            if self.within:
                self.lose(number, "a sample begins within another")
            self.within, self._lost = True, False
            self._process, self._frames = match[1].replace(";", ":"), []
            self.event = self.event or match[3]
            self._time = None if match[2] is None else float(match[2])
        elif self.within and (match := _FRAME.fullmatch(line)) is not None:
            name = _name(match[1], match[2], match[3] or "")
            if not (self._frames and self._frames[-1] == name and name.startswith("[")):
                self._frames.append(name)
        elif not self._lost:
            self.lose(number, f"'{line.strip()[:60]}' is neither a sample nor a frame")

    @property
    def seconds(self) -> float | None:
        """From the first sample to the last."""
        return None if self._times is None else self._times[1] - self._times[0]

    def lose(self, number: int, reason: str) -> None:
        """Count the sample as damaged; the rest of it is passed over."""
        self.damaged += 1
        self.first = self.first or (number, reason)
        self.within, self._lost = False, True

    def _end(self) -> None:
        if self.within:
            self.stacks[";".join([self._process, *reversed(self._frames)])] += 1
            if self._time is not None:
                first, last = self._times or (self._time, self._time)
                self._times = min(first, self._time), max(last, self._time)
        self.within, self._lost = False, False


def _name(address: str, symbol: str, file: str) -> str:
    name = _OFFSET.sub("", symbol).replace(";", ":")
    in_kernel = (
        file not in _NO_KERNEL and _KERNEL_FILE.fullmatch(file) is not None
    ) or _KERNEL_HALF.fullmatch(address) is not None
    if name == _UNNAMED and file and file not in _NO_KERNEL:
        name = f"[{file.strip('[]').rpartition('/')[2]}]".replace(";", ":")
    return name + KERNEL if in_kernel else name
