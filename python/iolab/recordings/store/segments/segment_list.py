# SPDX-License-Identifier: Apache-2.0
"""The list of segments where it is damaged or missing: which segments are lost according to the other
files of their numbers, and a new list that still names them.

Each file of a segment says which other files the segment had: a default map has the span of the
events, a file of events what the samples are, a file of samples whether there were events. A number
of which no file is left is a gap in the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from iolab.base.files import map_regular

from ..base.layout import (
    KINDS,
    MAPS,
    SEGMENTS,
    Kind,
    hot_numbers,
    map_file,
    sealed_file,
    sealed_numbers,
    telling,
)
from ..base.lock import Told
from ..base.metadata import read_facts
from ..ledger import Contents, Numbered, append_line, damages, rewrite, set_aside
from .segments import (
    MAP_NAMES,
    UNKNOWN,
    find_unlisted,
    line_of_joined,
    map_paths,
    note_segment,
    note_unlisted,
    noted_segments,
    own_facts,
    part_of,
    read_list,
    stated_facts,
    unlisted_files,
)


def is_list_whole(
    directory: Path, segments: Contents[Numbered], lock: Told, after: int, *, is_signed: bool
) -> bool:
    """Whether `segments.jsonl` has a line of every sealed segment, as far as it and the lock say.

    Args:
        segments: the list.
        after: the number up to which retention removed segments. is_signed: whether the recording
        is of a version that writes the sizes of its files into the lock.
    """
    content, least = segments.content, lock.sizes.get(SEGMENTS, 0)
    if segments.refusal or content.damaged:
        return False
    if segments.size is None:
        return not least and (bool(lock.sizes) or not is_signed)
    if segments.size < least:
        return False
    if lock.sizes or not is_signed:
        return True
    return bool(content.lines) and not unlisted_files(directory, after, content.lines)


def find_lost_files(directory: Path, after: int) -> dict[int, dict[Kind, Mapping[str, Any]]]:
    """Sealed files that are missing and that no line lists, by number and kind, with what is known
    of their content: facts as `segments.jsonl` has them.

    Where several numbers in sequence have no file at all, the first one represents all of them.
    `after`: the number up to which retention removed segments.
    """
    listed = noted_segments(directory)
    present = {kind: set(sealed_numbers(directory / kind)) for kind in KINDS}
    mapped = {name: set(sealed_numbers(directory / MAPS / name)) for name in MAP_NAMES}
    hot = {number for kind in KINDS for number in hot_numbers(directory, kind)}
    numbers = {
        number
        for number in {*listed, *hot}.union(*present.values(), *mapped.values())
        if number > after
    }
    kinds = [kind for kind in KINDS if present[kind] or (kind == "events" and any(mapped.values()))]
    lost: dict[int, dict[Kind, Mapping[str, Any]]] = {}
    previous = after
    for number in sorted(numbers):
        if number > previous + 1:
            lost[previous + 1] = dict.fromkeys(kinds, UNKNOWN)
        previous = number
        if number in listed or number in hot:
            continue
        missing: dict[Kind, Mapping[str, Any]] = {}
        maps = [map_file(directory, number, name) for name in MAP_NAMES if number in mapped[name]]
        if number not in present["events"]:
            events = _facts_of_maps(maps)
            own = own_facts(sealed_file(directory, number, "samples")) if events is None else {}
            if events is None and own.get("has_events") is not False:
                events = UNKNOWN
            if events is not None:
                missing["events"] = events
        if number not in present["samples"] and present["samples"]:
            samples = _samples_of(sealed_file(directory, number, "events"))
            if samples is not None:
                missing["samples"] = samples
        if missing:
            lost[number] = missing
    return lost


def find_unlisted_maps(directory: Path, through: int) -> list[tuple[int, Path, Mapping[str, Any]]]:
    """Segments that retention deleted, that have default maps, and that no line lists: number, a
    map, and what is known of the events. Of joined maps, with the last segment as number, `joined`
    is the first segment. `through`: the number of the last deleted segment."""
    single = [
        (number, next(iter(paths.values())), _facts_of_maps(paths.values()) or UNKNOWN)
        for number, paths in _unlisted_maps(directory, through).items()
    ]
    joined = [
        (last, paths[0], {**(_facts_of_maps(paths) or UNKNOWN), "joined": first})
        for first, last in find_unlisted(directory, read_list(directory).content, through)
        if (paths := map_paths(directory, {"joined": first}, last))
    ]
    return [*single, *joined]


def _unlisted_maps(directory: Path, through: int) -> dict[int, dict[str, Path]]:
    """Default maps of deleted segments without a line, by number and name."""
    listed = noted_segments(directory)
    mapped = {name: set(sealed_numbers(directory / MAPS / name)) for name in MAP_NAMES}
    return {
        number: {
            name: map_file(directory, number, name) for name in MAP_NAMES if number in mapped[name]
        }
        for number in sorted(set().union(*mapped.values()) - listed.keys())
        if number <= through
    }


def _facts_of_maps(paths: Iterable[Path]) -> Mapping[str, Any] | None:
    """What the first whole one of some default maps says of the events of its segment."""
    return next(filter(None, map(_map_facts, paths)), None)


def _samples_of(events: Path) -> Mapping[str, Any] | None:
    """What is known of a missing file of samples; None where the segment had none."""
    own = own_facts(events)
    if "samples" in own:
        samples = own["samples"]
        return samples if samples is None or _is_span(samples) else UNKNOWN
    # an older version does not say: at most, the samples were of the time of the events
    return {
        **UNKNOWN,
        "sources": {"": {}},
        **{name: own.get(name) for name in ("first_ns", "last_ns")},
    }


def _map_facts(path: Path) -> Mapping[str, Any] | None:
    """What a default map says of the events of its segment; None where it is damaged."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from .sealing import KEY

    try:
        table = pq.read_table(
            pa.BufferReader(map_regular(path)), page_checksum_verification=True, use_threads=False
        )
        stated = json.loads((table.schema.metadata or {}).get(KEY.encode(), b"{}")).get("events")
        if _is_span(stated):
            return {**UNKNOWN, **stated}
        rows = table.group_by("source", use_threads=False).aggregate(
            [("count", "sum"), ("second_ns", "min"), ("second_ns", "max")]
        )
        sources = {
            row["source"]: {
                "events": row["count_sum"],
                "first_ns": row["second_ns_min"],
                "last_ns": row["second_ns_max"] + 10**9 - 1,
            }
            for row in rows.to_pylist()
        }
        if not sources:
            return None
        return {
            "sources": sources,
            "rows": pc.sum(table.column("count")).as_py(),
            "first_ns": min(source["first_ns"] for source in sources.values()),
            "last_ns": max(source["last_ns"] for source in sources.values()),
        }
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_span(facts: object) -> bool:
    return (
        isinstance(facts, dict)
        and isinstance(facts.get("sources"), dict)
        and isinstance(facts.get("first_ns"), int)
        and isinstance(facts.get("last_ns"), int)
    )


def rebuild_list(directory: Path) -> None:
    """Write `segments.jsonl` again: without its damaged lines, which are kept in
    `segments.jsonl.damaged`, with lines of whole files that have none, and with lines of lost
    files, so that they stay missing. ResultsError where that can't be written."""
    place, through = directory / SEGMENTS, read_facts(directory).dropped_through
    lost = find_lost_files(directory, through)
    segments = read_list(directory)
    if segments.refusal or segments.content.damaged:
        with telling(place, "write it again"):
            set_aside(place)
            if not segments.refusal:
                rewrite(place, segments.content.lines.values())
    _note_maps(directory, through)
    sealing = {number for kind in KINDS for number in hot_numbers(directory, kind)}
    numbers = {number for kind in KINDS for number in sealed_numbers(directory / kind)}
    for number in sorted({*numbers, *lost} - sealing):
        if number <= through:
            continue
        listed = noted_segments(directory)
        files = [
            sealed_file(directory, number, kind)
            for kind in KINDS
            if sealed_file(directory, number, kind).exists()
        ]
        if number in lost:
            facts: dict[str, Any] = dict(lost[number].get("events", {}))
            for path in files:
                own = own_facts(path)
                if "damaged" not in own:
                    facts |= own if path.parent.name == "events" else {"samples": own}
            if "samples" in lost[number]:
                facts["samples"] = lost[number]["samples"]
            with telling(place, "add a line"):
                note_segment(directory, number, facts)
        elif not damages(
            [part_of(directory, listed.get(number, {}), number, path.parent.name) for path in files]
        ):
            note_unlisted(directory, number)


def _note_maps(directory: Path, through: int) -> None:
    """Add lines of default maps where retention removed the segment; `lost` names the maps that are
    missing of these."""
    for first, last in find_unlisted(directory, read_list(directory).content, through):
        files = map_paths(directory, {"joined": first}, last)
        facts = _facts_of_maps(files)
        width = _offset_width(files[MAP_NAMES.index("io.offset")])
        if facts is not None:
            with telling(directory / SEGMENTS, "add a line"):
                line = line_of_joined(directory, first, last, {**facts, "offset_width": width})
                append_line(directory / SEGMENTS, line)
    for number, paths in _unlisted_maps(directory, through).items():
        facts = _facts_of_maps(paths.values())
        if facts is None:
            continue
        line = {
            "first_ns": facts["first_ns"],
            "last_ns": facts["last_ns"],
            "offset_width": _offset_width(paths["io.offset"]) if "io.offset" in paths else None,
            "sources": {source: {} for source in facts["sources"]},
            "maps": sum(path.stat().st_size for path in paths.values()),
            "lost": [name for name in MAP_NAMES if name not in paths],
        }
        with telling(directory / SEGMENTS, "add a line"):
            note_segment(directory, number, line)


def _offset_width(path: Path) -> int | None:
    import pyarrow as pa

    try:
        width = stated_facts(path).get("width")
    except (OSError, pa.ArrowException, ValueError):
        return None
    return width if isinstance(width, int) else None
