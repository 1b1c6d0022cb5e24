# SPDX-License-Identifier: Apache-2.0
"""Sealed segments: writing one from hot data, and the contents of each, without opening it where a
line has them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ... import __version__
from ...files import map_regular
from ..base.checked_files import Part, digest, known_damage
from ..base.layout import (
    KINDS,
    SEGMENTS,
    FileStatus,
    Kind,
    hot_file,
    joined_map_file,
    map_file,
    replacing,
    sealed_file,
    sealed_numbers,
    sealed_statuses,
    telling,
)
from ..ledger import CRC, Contents, Numbered, NumberedLedger, append_line

if TYPE_CHECKING:
    import pyarrow as pa

MAP_NAMES = ("io.latency", "io.offset", "io.size")


@dataclass(frozen=True)
class Segment:
    """A part of a recording, of one file of events.

    Attributes:
        number: its place in the order of writing. path: its Parquet file, or Arrow stream where
        kind is "hot". first_ns, last_ns: span of its events. sources: events (I/Os) of each source.
        facts: what is stored of a sealed one: rows, sources, names, distinct, other, offset_width,
        bytes, label.
    """

    number: int
    path: Path
    kind: Literal["sealed", "hot"]
    first_ns: int
    last_ns: int
    sources: Mapping[str, int]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> Part:
        """The file of a sealed one as it should be."""
        return Part(self.path, self.facts.get("bytes"), self.facts.get("crc32"))


@dataclass(frozen=True)
class SealedFile:
    """A sealed file of events or samples.

    Attributes:
        number: of the segment. line: of `segments.jsonl`, empty where there is none. facts: what it
        has. A damaged one has `damaged` in its facts, and in `lost` what its line says that it
        held. `bytes` is the size of the file, `crc32` the checksum it should have (None: unknown).
    """

    number: int
    path: Path
    line: Mapping[str, Any]
    facts: Mapping[str, Any]

    @cached_property
    def segment(self) -> Segment | None:
        """The segment; None where the file is damaged."""
        facts = self.facts
        if facts["first_ns"] is None:
            return None
        sources = {source: int(counts["events"]) for source, counts in facts["sources"].items()}
        return Segment(
            self.number, self.path, "sealed", facts["first_ns"], facts["last_ns"], sources, facts
        )

    @cached_property
    def maps(self) -> Sequence[Part]:
        """Default maps of a file of events, as `maps_of_line`."""
        return maps_of_line(self.path.parent.parent, self.line, self.number)


def write_segment(
    directory: Path,
    number: int,
    events: Sequence[pa.RecordBatch],
    samples: Sequence[pa.RecordBatch],
    losses: Mapping[str, int],
    label: str | None = None,
) -> dict[str, Any]:
    """Seal batches under a number: default maps, then events, then samples; each is there as a
    whole or not at all.

    Returns the facts. ResultsError where it can't be written, a full disk above all; what was there
    remains.
    """
    facts: dict[str, Any] = {}
    with telling(directory, "seal a segment"):
        if any(batch.num_rows for batch in events):
            about = _about_samples(directory, number, samples)
            facts = _write_events(directory, number, events, losses, label, about)
        if any(batch.num_rows for batch in samples):
            has_events = bool(facts) or sealed_file(directory, number, "events").exists()
            facts["samples"] = _write_samples(directory, number, samples, has_events)
        if facts:
            note_segment(directory, number, facts)
    return facts


def _write_events(
    directory: Path,
    number: int,
    batches: Sequence[pa.RecordBatch],
    losses: Mapping[str, int],
    label: str | None,
    samples: Mapping[str, Any] | None,
) -> dict[str, Any]:
    from ..base.schema import EVENTS
    from .sealing import Maps, Tally, write_parquet

    maps, tally = Maps(_largest_offset(batches)), Tally()

    def facts() -> dict[str, Any]:
        facts_of_events = {
            "schema": 1,
            "iolab": __version__,
            "number": number,
            **tally.facts(),
            "offset_width": maps.width,
            "label": label,
            "samples": samples,
        }
        for source, counts in facts_of_events["sources"].items():
            counts["losses"] = losses.get(source, 0)
        return facts_of_events

    def parts() -> Iterator[tuple[str, pa.Table]]:
        for source, part in _count_parts(batches, tally):
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


def _about_samples(
    directory: Path, number: int, batches: Sequence[pa.RecordBatch]
) -> dict[str, Any] | None:
    """What the samples of a segment are, for its events to say; None where it has none."""
    from .sealing import Tally

    path = sealed_file(directory, number, "samples")
    if path.exists():
        about = own_facts(path)
    elif any(batch.num_rows for batch in batches):
        tally = Tally()
        for _ in _count_parts(batches, tally):
            pass
        about = tally.facts()
    else:
        return None
    return {name: about[name] for name in ("rows", "first_ns", "last_ns", "sources")}


def _write_samples(
    directory: Path, number: int, batches: Sequence[pa.RecordBatch], has_events: bool
) -> dict[str, Any]:
    from ..base.schema import SAMPLES
    from .sealing import Tally, write_parquet

    tally = Tally()

    def facts() -> dict[str, Any]:
        facts_of_samples = tally.facts()
        return {
            "schema": 1,
            "number": number,
            "has_events": has_events,
            **{name: facts_of_samples[name] for name in ("rows", "first_ns", "last_ns", "sources")},
        }

    with replacing(sealed_file(directory, number, "samples")) as path:
        write_parquet(path, SAMPLES, _count_parts(batches, tally), facts)
    return facts()


def _count_parts(batches: Sequence[pa.RecordBatch], tally: Any) -> Iterator[tuple[str, pa.Table]]:
    from .sealing import by_source, stretches

    for table in stretches(batches):
        for source, part in by_source(table):
            tally.take(source, part)
            yield source, part


def _largest_offset(batches: Sequence[pa.RecordBatch]) -> int:
    import pyarrow.compute as pc

    return max((pc.max(batch.column("offset_bytes")).as_py() or 0 for batch in batches), default=0)


def note_segment(directory: Path, number: int, facts: Mapping[str, Any]) -> None:
    """Append what a segment holds, with size and checksum of each of its files, to
    `segments.jsonl`: it spares opening them, and shows when one is damaged or missing."""
    sizes: dict[str, int | None] = dict.fromkeys(KINDS)
    digests: dict[str, str] = {}
    for name, path in _files_of(directory, number):
        with suppress(FileNotFoundError):
            sizes[name], digests[name] = digest(path)
    facts = {name: value for name, value in facts.items() if (name, value) != ("samples", None)}
    append_line(
        directory / SEGMENTS, {**facts, "number": number, "bytes": sizes, "digests": digests}
    )


def note_unlisted(directory: Path, number: int) -> None:
    """Append what the files of a segment hold where a kill came before its line."""
    line = noted_segments(directory).get(number, {})
    paths = {
        kind: sealed_file(directory, number, kind)
        for kind in KINDS
        if sealed_file(directory, number, kind).exists()
    }
    if all((line.get("bytes") or {}).get(kind) for kind in paths):
        return
    facts = {kind: own_facts(path) for kind, path in paths.items()}
    if any("damaged" in fact for fact in facts.values()):
        return
    with telling(directory / SEGMENTS, "add a line"):
        note_segment(
            directory,
            number,
            {
                **facts.get("events", {}),
                **({"samples": facts["samples"]} if "samples" in facts else {}),
            },
        )


def note_dropped(directory: Path, number: int) -> None:
    """Append that a segment goes, before its files do: it is not missing then."""
    append_line(directory / SEGMENTS, {"number": number, "dropped": True})


def _files_of(directory: Path, number: int) -> Iterator[tuple[str, Path]]:
    """Name in the line and path of each file that a segment may have."""
    yield from ((kind, sealed_file(directory, number, kind)) for kind in KINDS)
    yield from ((name, map_file(directory, number, name)) for name in MAP_NAMES)


def first_of(line: Mapping[str, Any], number: int) -> int:
    """The first of the segments of which a line with a number has the joined maps; its own number
    where it has none."""
    first = line.get("joined")
    return first if isinstance(first, int) and 0 < first < number else number


def step_name(name: str, step_s: int) -> str:
    return name if step_s == 1 else f"{name}/{step_s}s"


def part_of(
    directory: Path, line: Mapping[str, Any], number: int, name: str, step_s: int = 1
) -> Part:
    """A file of a segment as its line has it.

    Args:
        name: "events", "samples", or that of a default map. step_s: length (s) of the columns of a
        joined map.
    """
    kind = _KIND_OF.get(name)
    first = first_of(line, number)
    if kind is not None:
        path = sealed_file(directory, number, kind)
    elif first < number:
        path = joined_map_file(directory, first, number, name, step_s)
    else:
        path = map_file(directory, number, name)
    sizes, digests, key = line.get("bytes"), line.get("digests"), step_name(name, step_s)
    size = sizes.get(key) if isinstance(sizes, dict) else None
    crc = digests.get(key) if isinstance(digests, dict) else None
    return Part(
        path, size if isinstance(size, int) else None, crc if isinstance(crc, str) else None
    )


def maps_of_line(directory: Path, line: Mapping[str, Any], number: int) -> Sequence[Part]:
    """Default maps that a segment has according to its line, lost ones included."""
    parts = ((name, part_of(directory, line, number, name)) for name in MAP_NAMES)
    return [part for name, part in parts if part.crc32 is not None or name in line.get("lost", ())]


_KIND_OF: Mapping[str, Kind] = {kind: kind for kind in KINDS}


def noted_segments(directory: Path) -> Mapping[int, Mapping[str, Any]]:
    """The lines of `segments.jsonl`, by number; the last line of a number holds. A line that was
    changed since is left out."""
    return read_list(directory).content.lines


def read_list(directory: Path) -> Contents[Numbered]:
    """`segments.jsonl` now, with lines as `noted_segments`."""
    return _LEDGER.read(directory / SEGMENTS)


def _number(line: dict[str, Any]) -> int | None:
    number = line.get("number")
    # each had a checksum from the first version on
    return number if isinstance(number, int) and line.pop(CRC, None) is not None else None


_LEDGER = NumberedLedger(_number, first_of)
"""One question asks several times, and after months there are a hundred thousand lines."""


def sealed_facts(
    directory: Path, kind: Kind, after: int = 0, known: Collection[int] = ()
) -> Iterator[tuple[int, Path, Mapping[str, Any]]]:
    """(number, file, facts) of sealed segments of events or samples with numbers beyond `after`,
    ascending, without those `known`; see `SealedFile`."""
    statuses, _ = sealed_statuses(directory / kind, after)
    statuses = {number: status for number, status in statuses.items() if number not in known}
    for file in sealed_files(directory, kind, statuses, noted_segments(directory)):
        yield file.number, file.path, file.facts


def sealed_files(
    directory: Path,
    kind: Kind,
    statuses: Mapping[int, FileStatus],
    lines: Mapping[int, Mapping[str, Any]],
    cache: dict[int, SealedFile] | None = None,
) -> Iterator[SealedFile]:
    """Sealed segments of events or samples by their files' statuses.

    The facts come from the segment's line, or from the file where there is none. `cache`: files by
    number as an earlier call returned them; it is updated.
    """
    cache = {} if cache is None else cache
    for number in cache.keys() - statuses.keys():
        cache.pop(number, None)
    for number in sorted(statuses):
        size = statuses[number][1]
        line, file = lines.get(number, _NO_LINE), cache.get(number)
        path = sealed_file(directory, number, kind) if file is None else file.path
        if (
            file is None
            or file.line is not line
            or file.facts["bytes"] != size
            or known_damage(path)
        ):
            file = SealedFile(
                number, path, line, _facts_of(directory, kind, number, path, line, size)
            )
            if "crc32" in file.facts:
                cache[number] = file
            else:
                cache.pop(number, None)
        yield file


def _facts_of(
    directory: Path,
    kind: Kind,
    number: int,
    path: Path,
    line: Mapping[str, Any],
    size: int,
) -> dict[str, Any]:
    """Facts of a sealed file, see `SealedFile`."""
    listed, part = (
        line if kind == "events" else line.get("samples", {}),
        part_of(directory, line, number, kind),
    )
    has_facts = isinstance(listed, dict) and isinstance(listed.get("sources"), dict)
    words = known_damage(path)
    if not words and part.crc32 is not None and part.bytes != size:
        words = f"it has {size} bytes, {part.bytes} were written"
    if not words and has_facts and part.bytes == size:
        return {**listed, "bytes": size, "crc32": part.crc32}
    facts = {**UNKNOWN, "damaged": words} if words else own_facts(path)
    return {**facts, "lost": listed if has_facts else {}, "bytes": size}


def unlisted_files(
    directory: Path,
    after: int,
    lines: Mapping[int, Mapping[str, Any]] | None = None,
    numbers: Mapping[Kind, Iterable[int]] | None = None,
) -> list[Path]:
    """Sealed files that no line lists, where lines list others; none of a segment that is just
    being sealed. `lines`: of `segments.jsonl`, `numbers`: of sealed files, where they were read
    already."""
    lines = noted_segments(directory) if lines is None else lines
    if not any("digests" in line for line in lines.values()):
        return []
    files = [
        (number, kind)
        for kind in KINDS
        for number in (sealed_numbers(directory / kind) if numbers is None else numbers[kind])
        if number > after
        and not _is_listed(lines, number, kind)
        and not any(hot_file(directory, number, other).exists() for other in KINDS)
    ]
    if not files:
        return []
    # one may have been sealed meanwhile
    lines = noted_segments(directory)
    return [
        path
        for number, kind in files
        if not _is_listed(lines, number, kind)
        and (path := sealed_file(directory, number, kind)).exists()
    ]


def _is_listed(lines: Mapping[int, Mapping[str, Any]], number: int, kind: Kind) -> bool:
    sizes = lines.get(number, {}).get("bytes")
    return isinstance(sizes, dict) and isinstance(sizes.get(kind), int)


_NO_LINE: Mapping[str, Any] = {}
UNKNOWN: Mapping[str, Any] = {"sources": {}, "rows": 0, "first_ns": None, "last_ns": None}
"""Facts of a damaged or lost file of which nothing but its number is known."""


def own_facts(path: Path) -> dict[str, Any]:
    """What a sealed file says of itself; `damaged` says why where it can't be read."""
    import pyarrow as pa

    try:
        facts = stated_facts(path)
        if isinstance(facts.get("sources"), dict):
            return facts
        words = "says nothing of what it holds"
    except (OSError, pa.ArrowException, ValueError) as error:
        words = (str(error) or type(error).__name__).split("\n")[0]
    return {**UNKNOWN, "damaged": words}


def stated_facts(path: Path) -> dict[str, Any]:
    """The facts in the metadata of a Parquet file of a segment. OSError, ArrowException or
    ValueError where it can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(pa.BufferReader(map_regular(path))).metadata or {}
    facts = json.loads(metadata.get(b"iolab", b""))
    return facts if isinstance(facts, dict) else {}
