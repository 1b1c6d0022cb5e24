# SPDX-License-Identifier: Apache-2.0
"""Statements about results, which several parts of the page have."""

from __future__ import annotations

from typing import Literal

from iolab.base.documents import Model

LevelName = Literal["OK", "UNJUDGED", "SUSPECT", "INVALID"]
Tone = Literal["better", "worse", "plain", "caution"]


class Sentence(Model):
    """One statement of the summary. `section` is the section that it is about. `under`: it
    continues the one before. `code` names what it states, for other parts of the report."""

    text: str
    tone: Tone = "plain"
    section: str | None = None
    under: bool = False
    code: str = ""
