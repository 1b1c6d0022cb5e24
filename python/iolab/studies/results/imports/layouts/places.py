# SPDX-License-Identifier: Apache-2.0
"""Repetitions and processes of a cell. Runs get the number that the path has for them, so that a
missing run shifts no other. Results that ran at the same time are processes of one run: a
repetition runs alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_AT_ONCE = 0.5
"""Share of the shorter of two windows by which they must overlap: runs of a script that follow each
other overlap by milliseconds at most."""


@dataclass(frozen=True)
class Place:
    """What is known of a run's place among those of its cell.

    Attributes:
        cell: what all variants of one cell share; variant: the arm; named: what `{repetition}` or
        `{block}` says, None without one; rest: the other text that distinguishes the path.
    """

    cell: Hashable
    variant: str
    named: str | None
    rest: str


def number_repetitions(places: Sequence[Place]) -> tuple[list[int], list[str]]:
    """The repetition of each run, from 1 (or the number that the path has), and notes on what had
    to be assumed.

    A name means the same repetition in every variant. Variants that share no name (dates of
    different days) are numbered separately in the order of their names, with a note: such
    pairs are by order alone.
    """
    names = [place.rest if place.named is None else place.named for place in places]
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for at, place in enumerate(places):
        groups[place.cell if place.named is None else "named"].append(at)
    numbers = [1] * len(places)
    by_order, uneven = 0, 0
    for key, members in groups.items():
        arms: dict[str, set[str]] = defaultdict(set)
        for at in members:
            arms[places[at].variant].add(names[at])
        common = sum(map(len, arms.values())) > len(set.union(*arms.values()))
        if (
            len(arms) > 1
            and not common
            and not (key != "named" and max(map(len, arms.values())) == 1)
        ):
            by_order += 1
            uneven += len({len(arm) for arm in arms.values()}) > 1
            number_of = {
                (variant, name): number
                for variant, arm in arms.items()
                for name, number in _numbers(arm).items()
            }
        elif key != "named" and max(map(len, arms.values())) == 1:
            number_of = {(variant, name): 1 for variant, arm in arms.items() for name in arm}
        else:
            every = _numbers(set.union(*arms.values()))
            number_of = {
                (variant, name): every[name] for variant, arm in arms.items() for name in arm
            }
        for at in members:
            numbers[at] = number_of[places[at].variant, names[at]]
    if _are_single_and_apart(places, numbers):
        numbers = [1] * len(places)
        by_order += 1
    _part_twins(places, numbers)
    notes = []
    if by_order:
        more = (
            "; the variants have unlike numbers of them, so that a missing one shifts those after it"
            if uneven
            else ""
        )
        notes.append(
            f"repetitions of the variants have no names in common: they are paired in the order of their names{more}"
        )
    return numbers, notes


def _are_single_and_apart(places: Sequence[Place], numbers: Sequence[int]) -> bool:
    """Whether each cell has one run of each variant, and the numbers of no two variants are equal:
    they count the files, and pair nothing."""
    cells: dict[Hashable, dict[str, int]] = defaultdict(dict)
    for place, number in zip(places, numbers, strict=True):
        if place.variant in cells[place.cell]:
            return False
        cells[place.cell][place.variant] = number
    pairs = [list(arms.values()) for arms in cells.values() if len(arms) > 1]
    apart = sum(len(set(arms)) == len(arms) for arms in pairs)
    return len(pairs) > 1 and 2 * apart > len(pairs)


def _part_twins(places: Sequence[Place], numbers: list[int]) -> None:
    """Runs of one cell and variant with the same number (several results in one named repetition)
    take the next free ones."""
    numbers_in_use: dict[tuple[Hashable, str], set[int]] = defaultdict(set)
    twins = []
    for at, place in enumerate(places):
        used = numbers_in_use[place.cell, place.variant]
        if numbers[at] in used:
            twins.append(at)
        used.add(numbers[at])
    for at in twins:
        used = numbers_in_use[places[at].cell, places[at].variant]
        numbers[at] = max(used) + 1
        used.add(numbers[at])


def _numbers(names: set[str]) -> dict[str, int]:
    """Each name's number: itself where all are whole numbers, else its place in their order (`run2`
    before `run10`)."""
    if all(re.fullmatch(r"\d{1,8}", name) for name in names) and len(
        {int(name) for name in names}
    ) == len(names):
        return {name: int(name) for name in names}
    return {name: number for number, name in enumerate(sorted(names, key=natural), 1)}


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers in a text by their value: `run2` before `run10`."""
    return [
        (0, int(part), "") if part.isdecimal() and len(part) <= 18 else (1, 0, part)
        for part in re.split(r"(\d+)", text)
    ]


def clusters(windows: Sequence[tuple[int, int] | None]) -> list[list[int]]:
    """Positions of windows that overlap, together, in the order of the first of each; an unknown
    window overlaps none."""
    order = sorted((window, place) for place, window in enumerate(windows) if window is not None)
    groups: list[list[int]] = [[place] for place, window in enumerate(windows) if window is None]
    open_: list[tuple[tuple[int, int], list[int]]] = []
    for window, place in order:
        open_ = [(other, group) for other, group in open_ if other[1] > window[0]]
        home = next((group for other, group in open_ if _overlap(other, window)), None)
        if home is None:
            home = []
            groups.append(home)
        home.append(place)
        open_.append((window, home))
    return sorted(sorted(group) for group in groups)


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    shorter = min(first[1] - first[0], second[1] - second[0])
    return min(first[1], second[1]) - max(first[0], second[0]) > _AT_ONCE * shorter
