# SPDX-License-Identifier: Apache-2.0
"""The cover of the report: a matrix of changes for each quantity, with one sentence about it."""

from __future__ import annotations

from typing import Literal

from iolab.base.documents import Model

from .statements import LevelName, Sentence

Certainty = Literal["significant", "insignificant", "untested", "value", "none"]


class CoverSide(Model):
    """The value of one arm in one cell, in the unit of its matrix, with its interval."""

    arm: str
    value: float | None
    low: float | None
    high: float | None


class CoverCell(Model):
    """A cell of a matrix.

    `change` is the change in `CoverMatrix.unit`, unrounded, and null where there is none. `shade`
    is -5 (much worse, or much less) to 5 (much better, or much more), or 0 to 5 for plain values. `has_direction`: more or less is better.
    `detail` has the values of both arms with their unit, empty where there is one.
    `cell` names the combination of factor levels as heat maps and profiles do. `facts` are names
    and texts for the details. `quantity` names what the values of `sides` are, with their unit. `runs` are places in `Payload.runs.ids`.
    """

    text: str
    detail: str
    change: float | None
    shade: int
    has_direction: bool
    certainty: Certainty
    level: LevelName
    metric: str
    title: str
    cell: str
    facts: list[tuple[str, str]]
    sides: list[CoverSide]
    quantity: str
    runs: list[int]


class CoverMatrix(Model):
    """Cells by row and column; null where nothing was measured. `row_title` and `column_title` name
    the factors of the heads."""

    title: str
    row_title: str
    column_title: str
    rows: list[str]
    columns: list[str]
    cells: list[list[CoverCell | None]]


class CoverCard(Model):
    """The matrices about one quantity, or about all of them (`sentences` has one for each, and
    `has_details`: cells show the values of both arms).

    `note` states what is not drawn and how shades are to be read where they differ from the legend.
    """

    title: str
    unit: str
    is_open: bool
    has_details: bool
    sentences: list[Sentence]
    note: str
    matrices: list[CoverMatrix]


class CoverStep(Model):
    """A step of the legend: a shade and the changes that it covers."""

    shade: int
    text: str


class ObstacleReason(Model):
    """A gate that made runs INVALID: `count` of them, the words of the first, the first runs and
    how many more, and what to do."""

    code: str
    count: str
    text: str
    runs: list[str]
    more: int
    remedy: str


class Obstacle(Model):
    """Why nothing, or one variant, can't be compared; `reasons` are the most frequent ones."""

    text: str
    reasons: list[ObstacleReason]
    remedy: str


class Cover(Model):
    """What the page shows first. `title` names the arms, `obstacles` say what can't be compared,
    `cautions` are what a reader must know before the numbers."""

    title: str
    obstacles: list[Obstacle]
    cautions: list[Sentence]
    cards: list[CoverCard]
    legend: list[CoverStep]
    legend_note: str
