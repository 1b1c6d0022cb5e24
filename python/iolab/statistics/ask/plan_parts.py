# SPDX-License-Identifier: Apache-2.0
"""What a plan reads: files and rows in memory, with their time, rows and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import FormatError
from ...files import map_regular
from ..engine.windows import Window
from ..kept.answer import RollUps
from ..kept.tables import about
from ..language.intervals import SECOND
from ..tiers.segment_maps import MapFiles
from .plan import Part


def event_parts(window: Window) -> list[Part]:
    """Events (or samples) of a window: sealed ones, and those that are not sealed yet."""
    what = window.snap.kind
    segments = window.segments()
    found = (
        [
            _files_part(
                f"sealed {what}",
                [each.part.path for each in segments],
                [(each.first_ns, each.last_ns + 1) for each in segments],
            )
        ]
        if segments
        else []
    )
    hot = window.snap.hot_of(window.source)
    if hot is not None:
        import pyarrow.compute as pc

        ends = pc.min_max(hot["time_ns"]).as_py()
        found.append(
            Part(f"unsealed {what}", ends["min"], ends["max"] + 1, 0, hot.num_rows, hot.nbytes)
        )
    return found


def map_parts(window: Window, files: MapFiles) -> list[Part]:
    """Segment maps, and the events that no map has."""
    known = window.snap.recording.catalogue().segments.lines
    paths = [file.part.path for file in files.files]
    lines = [known[file.number] for file in files.files]
    return [
        _files_part(
            "segment maps", paths, [(line["first_ns"], line["last_ns"] + 1) for line in lines]
        ),
        *event_parts(files.rest(window)),
    ]


def roll_up_parts(found: RollUps) -> list[Part]:
    """Roll-ups by the length of their sums, and the events or samples that are not in them."""
    parts = []
    for tier in found.tiers:
        held = [
            (each.path, about(each.path))
            for other, each in found.held.files(found.tiers)
            if other is tier
        ]
        spans = [
            (path, (told.first_s * SECOND, (told.last_s + tier.seconds) * SECOND))
            for path, told in held
        ]
        spans = [
            (path, span)
            for path, span in spans
            if span[0] < found.window.until_ns and span[1] > found.window.first_ns
        ]
        if spans:
            parts.append(
                _files_part(
                    f"roll-ups of {tier.name}",
                    [path for path, _ in spans],
                    [span for _, span in spans],
                )
            )
    for window in found.remaining():
        maps = found.maps(window)
        parts += event_parts(window) if maps is None else map_parts(window, maps)
    return parts


def trace_parts(path: Path) -> list[Part]:
    """A trace, of which only the size is known before it is read; of a pipe not even that."""
    return [Part("trace", None, None, 1, None, path.stat().st_size if path.is_file() else None)]


def _files_part(name: str, paths: Sequence[Path], spans: Sequence[tuple[int, int]]) -> Part:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = sum(pq.read_metadata(pa.BufferReader(map_regular(path))).num_rows for path in paths)
        size = sum(path.stat().st_size for path in paths)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"can't be read: {error}", where=paths[0].parent) from None
    return Part(
        name,
        min(first for first, _ in spans),
        max(until for _, until in spans),
        len(paths),
        rows,
        size,
    )
