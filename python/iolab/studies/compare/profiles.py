# SPDX-License-Identifier: Apache-2.0
"""Profiles of the variants of a cell side by side: one tree of functions with the samples of
each, and what differs between two.

Shares are of the samples in which a CPU had something to do, so that profiles of unequal length and
load can be compared. One profile is one capture: differences are shown, not tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from iolab.formats.profiles.stacks import KERNEL

from ..results.evidence.model import Factors
from ..results.open.profiles import Profile
from .axes import level_text

LEAST_SHARE = 0.002
"""Parts below that share in every profile are left out of the tree: a pixel or two of a screen's
width."""

MOST_FUNCTIONS = 15
"""Functions listed by how far their own shares differ."""

_NUMBERED = (re.compile(r"^(kworker|iou-wrk|iou-sqp)[/:-].*"), re.compile(r"^(.+?)/\d+$"))
_EXITED = re.compile(r":-?\d+")


@dataclass(frozen=True)
class Part:
    """A function where it was called from, or a process where it has no parent.

    Attributes:
        name: without the mark of kernels' functions; parent: place of the part that contains it,
        None for a process. kernel: whether it is the kernel's.
        samples: of each profile, in it or in what it calls. shares: of the samples of each profile
        that were busy.
    """

    name: str
    parent: int | None
    kernel: bool
    samples: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class FunctionShares:
    """A function wherever it was called from: by profile, the share in which a CPU was in it
    itself."""

    name: str
    kernel: bool
    shares: tuple[float, ...]


@dataclass(frozen=True)
class CellProfiles:
    """Profiles of one cell, those of the baseline first.

    Attributes:
        parts: parents before their children, siblings by samples, most first: the same order for
        every profile. functions: every function with samples of its own.
    """

    factors: Factors
    profiles: tuple[Profile, ...]
    parts: tuple[Part, ...]
    functions: tuple[FunctionShares, ...]

    @property
    def title(self) -> str:
        """The cell's name: its host, where results are of several, and its factor levels."""
        host = _place(self.profiles[0])
        return ", ".join(
            [
                *([host] if host else []),
                *(f"{name}={level_text(level)}" for name, level in self.factors.items()),
            ]
        )

    def differing(
        self, before: int, after: int, most: int = MOST_FUNCTIONS
    ) -> list[FunctionShares]:
        """Functions with the largest difference of their own shares between two profiles."""
        largest_changes = [
            function
            for function in self.functions
            if abs(function.shares[after] - function.shares[before]) >= LEAST_SHARE
        ]
        return sorted(
            largest_changes, key=lambda one: -abs(one.shares[after] - one.shares[before])
        )[:most]


def cells_of(
    profiles: Sequence[Profile], baseline: str | None, variants: Sequence[str]
) -> list[CellProfiles]:
    """Profiles by cell, in order of their runs; within a cell the baseline first, then the other
    variants in their order."""
    order = [name for name in [baseline, *variants] if name is not None]
    groups: dict[tuple[str, str], list[Profile]] = {}
    for profile in profiles:
        groups.setdefault((_place(profile), repr(sorted(profile.factors.items()))), []).append(
            profile
        )
    return [
        _cell(
            sorted(
                group,
                key=lambda one: order.index(one.variant) if one.variant in order else len(order),
            )
        )
        for group in groups.values()
    ]


@dataclass
class _Branch:
    samples: list[int]
    children: dict[str, _Branch] = field(default_factory=dict)


def _cell(profiles: Sequence[Profile]) -> CellProfiles:
    totals = [max(sample.busy_samples, 1) for sample in profiles]
    root = _Branch([0] * len(profiles))
    own: dict[str, list[int]] = {}
    for place, profile in enumerate(profiles):
        for stack, count in profile.busy.items():
            frames = _frames(stack)
            branch = root
            for frame in frames:
                branch = branch.children.setdefault(frame, _Branch([0] * len(profiles)))
                branch.samples[place] += count
            if len(frames) > 1:
                own.setdefault(frames[-1], [0] * len(profiles))[place] += count
    parts: list[Part] = []
    _lay(root, totals, parts)
    functions = tuple(
        FunctionShares(name.removesuffix(KERNEL), name.endswith(KERNEL), _shares(counts, totals))
        for name, counts in own.items()
    )
    return CellProfiles(profiles[0].factors, tuple(profiles), tuple(parts), functions)


def _lay(root: _Branch, totals: Sequence[int], parts: list[Part]) -> None:
    """All below a branch; a list of branches instead of recursion, as perf's stacks are 127 frames
    deep and more."""
    waiting: list[tuple[_Branch, int | None]] = [(root, None)]
    while waiting:
        above, place = waiting.pop()
        children = []
        for name, child in sorted(
            above.children.items(),
            key=lambda item: (-sum(_shares(item[1].samples, totals)), item[0]),
        ):
            shares = _shares(child.samples, totals)
            if max(shares) >= LEAST_SHARE:
                parts.append(
                    Part(
                        name.removesuffix(KERNEL),
                        place,
                        name.endswith(KERNEL),
                        tuple(child.samples),
                        shares,
                    )
                )
                children.append((child, len(parts) - 1))
        waiting += reversed(children)


def _shares(samples: Iterable[int], totals: Sequence[int]) -> tuple[float, ...]:
    return tuple(count / total for count, total in zip(samples, totals, strict=True))


def _frames(stack: str) -> list[str]:
    """Process and functions; threads of the kernel that differ by a number are one process."""
    process, *frames = stack.split(";")
    for pattern in _NUMBERED:
        process = pattern.sub(r"\1", process)
    return ["ended meanwhile" if _EXITED.fullmatch(process) else process, *frames]


def change(part: Part | FunctionShares, before: int, after: int) -> float:
    """How much more of the busy time it takes in the second profile than in the first: 0.01 is a
    point of per cent."""
    return part.shares[after] - part.shares[before]


def _place(profile: Profile) -> str:
    """The host, where results are of several."""
    return profile.run.rpartition("/")[0]
