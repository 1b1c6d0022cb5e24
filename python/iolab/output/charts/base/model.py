# SPDX-License-Identifier: Apache-2.0
"""A chart as a value: a Vega-Lite specification, the numbers that it draws, and words for what its
marks mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .drawing import SCHEMA_URL, Spec
from .picture import to_png, to_svg
from .theme import LIGHT, Config

MIME_TYPE = "application/vnd.vegalite.v6+json"
"""Under which notebooks take a Vega-Lite specification of this major version."""

Row = Mapping[str, object]


@dataclass(frozen=True)
class Chart:
    """A picture that does not depend on who draws it.

    Attributes:
        name: slug for files and anchors, such as `write-iops-over-numjobs`.
        title: heading in words.
        spec: Vega-Lite 6, its data inline, without colours of its own (`theme` has them).
        columns, rows: the numbers drawn, in base units and unrounded, with readable labels; what
        `to_csv` writes. caption: what the marks mean and what was left out, in whole sentences.
    """

    name: str
    title: str
    spec: dict[str, Any] = field(repr=False)
    columns: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    caption: str = ""

    def with_config(self, config: Config = LIGHT) -> dict[str, Any]:
        """The specification with a configuration in it, ready for any Vega-Lite renderer."""
        return {**self.spec, "config": config}

    def svg(self, config: Config = LIGHT) -> str:
        """The chart as an SVG document, title and description inside. Needs no browser and no
        network."""
        return to_svg(self.with_config(config), self.title, self.caption)

    def png(self, scale: float = 2, config: Config = LIGHT) -> bytes:
        """The chart as a PNG file of `scale` pixels per unit, its title in the metadata."""
        return to_png(self.with_config(config), self.title, self.caption, scale)

    def to_csv(self) -> str:
        """The numbers drawn as CSV (RFC 4180, lines ended by LF): base units, unrounded; an absent
        value is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(
            ["" if row.get(name) is None else row[name] for name in self.columns]
            for row in self.rows
        )
        return text.getvalue()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """For notebooks: the specification, and a picture for those that can't draw it."""
        return {
            MIME_TYPE: self.with_config(),
            "image/svg+xml": self.svg(),
            "text/plain": f"{self.title}\n{self.caption}",
        }


def specify(
    drawing: Spec, data: Mapping[str, Sequence[Row]], *, title: str, marks: Iterable[str] = ()
) -> Spec:
    """The specification of a drawing under a title; `marks` say what its marks mean and are
    shown below the title.

    The drawing names its data sets and `data` holds them. Appearance belongs to whoever shows the
    chart.
    """
    heading: Spec = {"text": title}
    if lines := wrap(marks):
        heading["subtitle"] = lines
    return {
        "$schema": SCHEMA_URL,
        "title": heading,
        **drawing,
        "datasets": {name: list(rows) for name, rows in data.items()},
    }


def wrap(phrases: Iterable[str], width: int = 105) -> list[str]:
    """Phrases in lines of at most `width` letters, joined by dots; no phrase is torn unless longer
    than a line."""
    lines: list[str] = []
    for phrase in phrases:
        if lines and len(lines[-1]) + len(phrase) + 3 <= width:
            lines[-1] += f" · {phrase}"
        else:
            lines.append(phrase)
    return lines


def slug(*words: object) -> str:
    """Words as a name for files: lower-case letters, digits and hyphens."""
    text = "-".join(str(word) for word in words if word not in ("", None)).lower()
    clean = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in text)
    return "-".join(part for part in clean.split("-") if part) or "chart"
