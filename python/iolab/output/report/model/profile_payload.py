# SPDX-License-Identifier: Apache-2.0
"""What the report's page is given of profiles: read when the reader comes to them."""

from __future__ import annotations

from iolab.base.documents import Model


class ProfileParts(Model):
    """A tree of functions in columns, parents before their children, siblings in the order in which
    they are drawn.

    `names` are all names once, `name` places in it; `parent` is -1 for a process; `kernel` is 1 for
    functions of the kernel.
    """

    names: list[str]
    name: list[int]
    parent: list[int]
    kernel: list[int]


class ProfileInfo(Model):
    """A profile of a cell: of each part its `samples` and its share of the `busy` ones."""

    run: str
    variant: str
    baseline: bool
    sampled: str
    spent: str
    remarks: list[str]
    busy: int
    samples: list[int]
    shares: list[float]


class ProfileFunction(Model):
    """A function by its own samples: shares before and after, and the difference, in words."""

    name: str
    kernel: bool
    before: str
    after: str
    change: str
    more: bool


class ProfileChange(Model):
    """What differs between two profiles of a cell (places in its list): of each part the difference
    of shares, and the functions that differ most."""

    before: int
    after: int
    changes: list[float]
    functions: list[ProfileFunction]


class ProfileCell(Model):
    """Profiles of one cell on one tree, the baseline's first."""

    title: str
    parts: ProfileParts
    profiles: list[ProfileInfo]
    changes: list[ProfileChange]


class Profiles(Model):
    """Profiles of all cells that have some; `notes` say what is missing, `method` how they came
    about."""

    cells: list[ProfileCell]
    notes: list[str]
    method: list[str]
