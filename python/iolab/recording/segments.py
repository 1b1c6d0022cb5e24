"""Sealed segments: writing one from what is hot, and what each holds, without opening it where a line tells."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import __version__
from .growing import Growing
from .layout import KINDS, SEGMENTS, Kind, map_file, replacing, sealed_file, sealed_numbers, telling
from .lines import append_line

if TYPE_CHECKING:
    import pyarrow as pa

MAP_NAMES = ("io.latency", "io.offset", "io.size")


@dataclass(frozen=True)
class Segment:
    """A part of a recording, of one file of events.

    Attributes:
        number: its place in the order of writing. path: its Parquet file, or Arrow stream where kind is "hot".
        first_ns, last_ns: span of its events. sources: events (I/Os) of each source.
        facts: what is stored of a sealed one: rows, sources, names, distinct, other, offset_width, bytes, label.
    """

    number: int
    path: Path
    kind: Literal["sealed", "hot"]
    first_ns: int
    last_ns: int
    sources: Mapping[str, int]
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_segment(directory: Path, number: int, events: Sequence[pa.RecordBatch], samples: Sequence[pa.RecordBatch],
                  losses: Mapping[str, int], label: str | None = None) -> dict[str, Any]:
    """Seal batches under a number: default maps, then events, then samples; each is there as a whole or not at all.

    Returns the facts. ResultsError where it can't be written, a full disk above all; what was there remains.
    """
    facts: dict[str, Any] = {}
    with telling(directory, "seal a segment"):
        if any(batch.num_rows for batch in events):
            facts = _write_events(directory, number, events, losses, label)
        if any(batch.num_rows for batch in samples):
            facts["samples"] = _write_samples(directory, number, samples)
        if facts:
            note_segment(directory, number, facts)
    return facts


def _write_events(directory: Path, number: int, batches: Sequence[pa.RecordBatch], losses: Mapping[str, int],
                  label: str | None) -> dict[str, Any]:
    from .maps import Maps
    from .schema import EVENTS
    from .sealing import Tally, write_parquet

    maps, tally = Maps(_largest_offset(batches)), Tally()

    def facts() -> dict[str, Any]:
        found = {"schema": 1, "iolab": __version__, "number": number, **tally.facts(), "offset_width": maps.width, "label": label}
        for source, each in found["sources"].items():
            each["losses"] = losses.get(source, 0)
        return found

    def parts() -> Iterator[tuple[str, pa.Table]]:
        for source, part in _counted(batches, tally):
            maps.take(source, part)
            yield source, part

    with ExitStack() as pending:
        # maps first: a map without its segment is not looked at while the hot file is there
        path = pending.enter_context(replacing(sealed_file(directory, number, "events")))
        write_parquet(path, EVENTS, parts(), facts)
        for name in MAP_NAMES:
            with replacing(map_file(directory, number, name)) as temporary:
                maps.write(temporary, name)
    return facts()


def _write_samples(directory: Path, number: int, batches: Sequence[pa.RecordBatch]) -> dict[str, Any]:
    from .schema import SAMPLES
    from .sealing import Tally, write_parquet

    tally = Tally()

    def facts() -> dict[str, Any]:
        found = tally.facts()
        return {"schema": 1, "number": number, **{name: found[name] for name in ("rows", "first_ns", "last_ns", "sources")}}

    with replacing(sealed_file(directory, number, "samples")) as path:
        write_parquet(path, SAMPLES, _counted(batches, tally), facts)
    return facts()


def _counted(batches: Sequence[pa.RecordBatch], tally: Any) -> Iterator[tuple[str, pa.Table]]:
    from .sealing import by_source, stretches

    for table in stretches(batches):
        for source, part in by_source(table):
            tally.take(source, part)
            yield source, part


def _largest_offset(batches: Sequence[pa.RecordBatch]) -> int:
    import pyarrow.compute as pc

    return max((pc.max(batch.column("offset_bytes")).as_py() or 0 for batch in batches), default=0)


def note_segment(directory: Path, number: int, facts: Mapping[str, Any]) -> None:
    """Append what a segment holds, with its files' sizes, to `segments.jsonl`, which spares opening each."""
    sizes = {kind: _size(sealed_file(directory, number, kind)) for kind in KINDS}
    line = {**facts, "number": number, "bytes": sizes}
    append_line(directory / SEGMENTS, _signed(line))


def _checksum(line: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(line, sort_keys=True).encode()):08x}"


def _signed(line: Mapping[str, Any]) -> dict[str, Any]:
    return {**line, "crc32": _checksum(line)}


def line_of(facts: Mapping[str, Any]) -> str:
    """A line of `segments.jsonl` as it is written."""
    return json.dumps(_signed(facts), separators=(",", ":"))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def noted_segments(directory: Path) -> Mapping[int, Mapping[str, Any]]:
    """What `segments.jsonl` tells, by number; the last line of a number holds. A line that was changed since is left out."""
    return _NOTED.lines(directory / SEGMENTS)


def _number(line: dict[str, Any]) -> int | None:
    number = line.get("number")
    return number if isinstance(number, int) and line.pop("crc32", "") == _checksum(line) else None


_NOTED = Growing(_number)
"""One question asks several times, and after months there are a hundred thousand lines."""


def sealed_facts(directory: Path, kind: Kind, after: int = 0, known: Collection[int] = ()) -> Iterator[tuple[int, Path, dict[str, Any]]]:
    """(number, file, facts) of sealed segments of events or samples with numbers beyond `after`, ascending, without those `known`.

    From `segments.jsonl` where its line is of this very file, else from the file; one that is damaged has `damaged` in its facts.
    """
    noted = noted_segments(directory)
    for number in sealed_numbers(directory / kind):
        if number <= after or number in known:
            continue
        path = sealed_file(directory, number, kind)
        size = _size(path)
        if size is None:
            continue
        line = noted.get(number, {})
        facts = line if kind == "events" else line.get("samples", {})
        told = line.get("bytes")
        if isinstance(told, dict) and told.get(kind) == size and isinstance(facts, dict) and isinstance(facts.get("sources"), dict):
            yield number, path, {**facts, "bytes": size}
        else:
            yield number, path, {**_own_facts(path), "bytes": size}


def _own_facts(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path).metadata or {}
        facts = json.loads(metadata.get(b"iolab", b""))
        if isinstance(facts, dict) and isinstance(facts.get("sources"), dict):
            return facts
        words = "says nothing of what it holds"
    except (OSError, pa.ArrowException, ValueError) as error:
        words = str(error).split("\n")[0]
    return {"damaged": words, "sources": {}, "rows": 0, "first_ns": None, "last_ns": None}
