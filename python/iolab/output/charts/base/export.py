# SPDX-License-Identifier: Apache-2.0
"""Charts as files: SVG or PNG, each with its numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from iolab.base.errors import IolabError, UsageError

from ..flame import FlameChart
from .model import Chart

FORMATS = ("svg", "png")


def export(
    charts: Iterable[Chart | FlameChart],
    directory: Path | str,
    format: Literal["svg", "png"] = "svg",
) -> list[Path]:
    """Write each chart as `<name>.<format>` and `<name>.csv`; returns every path written, in order.

    Charts of the same name are distinguished by a number. Raises UsageError for an unknown format
    or where a file has the directory's name, IolabError where it cannot be written.
    """
    if format not in FORMATS:
        raise UsageError(
            f"unknown chart format '{format}'", hint=f"there are: {', '.join(FORMATS)}"
        )
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(
            "is a file, not a directory", where=place, hint="name a directory for the charts"
        ) from None
    except OSError as error:
        raise IolabError(f"can't be made: {error.strerror}", where=place) from None
    written: list[Path] = []
    paths: set[str] = set()
    for chart in charts:
        name, number = chart.name, 1
        while name in paths:
            number += 1
            name = f"{chart.name}-{number}"
        paths.add(name)
        picture = chart.svg().encode() if format == "svg" else chart.png()
        for path, content in (
            (place / f"{name}.{format}", picture),
            (place / f"{name}.csv", chart.to_csv().encode()),
        ):
            try:
                path.write_bytes(content)
            except OSError as error:
                raise IolabError(f"can't be written: {error.strerror}", where=path) from None
            written.append(path)
    return written
