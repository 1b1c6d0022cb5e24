# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, a line each: `fio;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k] 12`, as
stackcollapse tools write them."""

from __future__ import annotations

import re
from collections import Counter

from iolab.base.errors import FormatError

from ..core.text import decode, looks_binary
from .stacks import StackTable

_LINE = re.compile(r"([^;\s][^;]*(?:;[^;]+)*) (\d{1,15})", re.ASCII)
_ENOUGH = 20
"""Lines after which a file's head has shown what it is."""


class Folded:
    """Stacks with their counts; the counts of a stack in several lines are added."""

    name = "folded"

    def detect(self, head: bytes, file_name: str) -> bool | None:
        """Yes where most whole lines are stacks with counts and one has two frames; None before the
        first line's end."""
        if looks_binary(head):
            return False
        lines = head.decode("utf-8", "replace").split("\n")
        folded_lines = [line.strip() for line in lines[:-1] if line.strip()][:_ENOUGH]
        if not folded_lines:
            return None if len(lines) == 1 and len(head) < 65536 else False
        stacks = [line for line in folded_lines if _LINE.fullmatch(line)]
        return 2 * len(stacks) > len(folded_lines) and any(";" in line for line in stacks)

    def read(self, data: bytes, where: str) -> StackTable:
        """All lines that can be read; FormatError where none can."""
        stacks: Counter[str] = Counter()
        damaged, first = 0, None
        for number, line in enumerate(
            decode(data, where, when_empty="no stack was sampled").split("\n"), 1
        ):
            text = line.strip()
            if not text:
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                damaged += 1
                first = first or (number, f"'{text[:60]}' is not a stack with a count")
                continue
            stacks[match[1]] += int(match[2])
        if not stacks:
            raise FormatError("has no stack with a count", where=where)
        return StackTable(dict(stacks), damaged=damaged, first_damaged=first)
