# SPDX-License-Identifier: Apache-2.0
"""What readers of profiles yield: stacks that were sampled, in the folded form that flame graphs
are made from.

A stack is one line of text, `process;outermost;...;innermost`, its frames joined by semicolons; a
frame of the kernel ends in `_[k]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KERNEL = "_[k]"
"""Ending of frames of the kernel."""


@dataclass(frozen=True)
class StackTable:
    """Stacks of a profile.

    Attributes:
        stacks: folded stack to how often it was sampled.
        event: what was sampled, such as `cpu-clock:ppp`; empty where the file doesn't say.
        seconds: from the first sample to the last; None where the file has no times.
        damaged: lines or samples that couldn't be read, and the first of them: (line, what is wrong
        with it).
    """

    stacks: Mapping[str, int]
    event: str = ""
    seconds: float | None = None
    damaged: int = 0
    first_damaged: tuple[int, str] | None = None

    @property
    def samples(self) -> int:
        """Samples of all stacks together."""
        return sum(self.stacks.values())

    def to_text(self) -> str:
        """The text of a folded file, a stack a line, sorted."""
        return "".join(f"{stack} {count}\n" for stack, count in sorted(self.stacks.items()))
