# SPDX-License-Identifier: Apache-2.0
"""Heat maps of the runs with recorded I/Os, or counted by OpenZFS: latency, offset and size,
all variants of a cell on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import IolabError
from iolab.recordings.heatmap import words
from iolab.recordings.heatmap.figure import Named
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.theme import DARK, LIGHT
from iolab.recordings.heatmap.wire import colours, group_of
from iolab.recordings.store.base.counts import alike
from iolab.studies.compare.axes import level_text
from iolab.studies.results.evidence.files import read_io_log
from iolab.studies.results.evidence.model import Run

from ..model.map_payload import CellMaps, MapCell, Maps, RunMap, Seen
from ..model.source import Source
from .vdev_maps import has_log as seen_by_zfs
from .vdev_maps import vdev_maps

if TYPE_CHECKING:
    from iolab.recordings.store.base.counts import HeatCounts, Y
    from iolab.recordings.store.read.recording import Recording


@dataclass(frozen=True)
class Resolution:
    """Columns of time and buckets of offset of a map, at most; the recording has them finer."""

    columns: int
    offsets: int


FINE, COARSE = Resolution(200, 128), Resolution(100, 64)
MOST_FINE = 60
"""Runs up to which maps are fine: a fine map of offsets has up to 25 thousand cells."""

STEPS = 3
"""Buckets of latency and size are that many steps coarser than recorded: 2**3 an octave."""

MOST_CELLS = 2_000_000
"""Cells of all maps together, about one and a half bytes each in the file; beyond it later
repetitions are left out."""

MOST_RUNS = 200
"""Runs with maps: each takes about a tenth of a second."""

SEEN: dict[Seen, str] = {"fio": "fio", "block": "block layer", "zfs": "OpenZFS"}
_YS: tuple[Y, ...] = ("latency", "offset", "size")


@dataclass(frozen=True)
class Recorded:
    """A run's part of a recording: by whom its I/Os were seen, where, and when (ns since the
    epoch)."""

    place: int
    run: Run
    seen: Seen
    recording: Path
    from_ns: int
    until_ns: int

    @property
    def cell(self) -> str:
        """The cell's name: its factor levels."""
        return _cell(self.run)


def _cell(run: Run) -> str:
    return ", ".join(f"{name}={level_text(level)}" for name, level in run.factors.items())


def run_maps(results: Source) -> Maps | None:
    """The maps of all runs that have some, None where no run's I/Os were recorded. A recording that
    can't be read costs its maps, and is said."""
    notes: list[str] = []
    run_members = _read_recorded(results, notes)
    watched = [(place, run) for place, run in enumerate(results.runs) if seen_by_zfs(run)]
    if not run_members and not watched:
        return (
            Maps(light=colours(LIGHT), dark=colours(DARK), cells=[], notes=notes) if notes else None
        )
    kept = _few(run_members, notes)
    resolution = FINE if len({member.place for member in kept}) <= MOST_FINE else COARSE
    if resolution is COARSE:
        notes.append(
            f"maps have at most {COARSE.columns} columns, this file would grow too large; `iolab heatmap` draws them finer"
        )
    reader = _Reader(resolution, notes)
    cells = []
    for name in dict.fromkeys(
        [*(member.cell for member in kept), *(_cell(run) for _, run in watched)]
    ):
        members = [member for member in kept if member.cell == name]
        maps = [part for y in _YS for part in _maps(y, members, reader)] if members else []
        cells.append(
            (
                name,
                [
                    *maps,
                    *vdev_maps(
                        [(place, run) for place, run in watched if _cell(run) == name], notes
                    ),
                ],
            )
        )
    if not notes and not any(maps for _, maps in cells):
        return None
    return Maps(light=colours(LIGHT), dark=colours(DARK), cells=_within(cells, notes), notes=notes)


def _read_recorded(results: Source, notes: list[str]) -> list[Recorded]:
    """What was recorded of each run: by its own log of every I/O, and by the recorder of the
    study."""
    from iolab.recordings.store.read.recording import Recording

    marks: dict[Path, dict[str, tuple[int, int]]] = {}

    def span(path: Path, label: str) -> tuple[int, int] | None:
        if path not in marks:
            try:
                marks[path] = {
                    str(mark["label"]): (mark["from_ns"], mark["until_ns"])
                    for mark in Recording(path).marks()
                    if mark["until_ns"] is not None
                }
            except IolabError as error:
                notes.append(str(error))
                marks[path] = {}
        return marks[path].get(label)

    members = []
    for place, run in enumerate(results.runs):
        logged = read_io_log(run.evidence, run.plan.files) if run.evidence.is_dir() else {}
        own: tuple[int, int] | None = None
        if "recording" in logged:
            path = _inside(results.home(run), logged["recording"])
            own = _span_of_log(logged) or span(path, str(logged.get("label")))
            if own is not None:
                members.append(Recorded(place, run, "fio", path, *own))
        watched = run.plan.extra.get("recording")
        if isinstance(watched, dict) and "path" in watched:
            path = _inside(results.home(run), watched["path"])
            marked = span(path, str(watched.get("mark")))
            same = "recording" in logged and _inside(results.home(run), logged["recording"]) == path
            when = (
                (own if same else None)
                or _ahead(own or run.plan.window, watched.get("ahead_ns"))
                or marked
            )
            if marked is not None and when is not None:
                members.append(Recorded(place, run, "block", path, *when))
    return members


def _span_of_log(logged: Mapping[str, Any]) -> tuple[int, int] | None:
    """The span of a run's I/Os in their recording; None where an older iolab did not tell it."""
    first, until = logged.get("from_ns"), logged.get("until_ns")
    return (first, until) if isinstance(first, int) and isinstance(until, int) else None


def _ahead(window: tuple[int, int] | None, ahead_ns: object) -> tuple[int, int] | None:
    """A window by the time of a recording that was ahead of the clock of that time, which was
    set back."""
    by = ahead_ns if isinstance(ahead_ns, int) else 0
    return None if window is None else (window[0] + by, window[1] + by)


def _inside(results: Path, name: object) -> Path:
    """A recording named in the evidence; never one outside the results."""
    path = results / str(name)
    return (
        path
        if path.resolve().is_relative_to(results.resolve())
        else results / "recordings" / "outside"
    )


def _few(found: Sequence[Recorded], notes: list[str]) -> list[Recorded]:
    """At most `MOST_RUNS` runs: whole repetitions, the first ones."""
    kept = list(found)
    while (
        len({member.place for member in kept}) > MOST_RUNS
        and len({member.run.plan.repetition for member in kept}) > 1
    ):
        last = max(member.run.plan.repetition for member in kept)
        kept = [member for member in kept if member.run.plan.repetition < last]
    places = sorted({member.place for member in kept})[:MOST_RUNS]
    kept = [member for member in kept if member.place in set(places)]
    omitted = len({member.place for member in found}) - len(places)
    if omitted:
        notes.append(
            f"maps of {omitted} runs are left out, this file would grow too large; `iolab heatmap` draws them from the recording"
        )
    return kept


class _Reader:
    """Counts of recorded runs; each recording is opened once."""

    def __init__(self, resolution: Resolution, notes: list[str]) -> None:
        self.resolution, self._notes = resolution, notes
        self._open: dict[Path, Recording] = {}

    def read(self, part: Recorded, y: Y, interval_ns: int) -> HeatCounts | None:
        """Counts of one run, None where there are none or they can't be read, which is noted."""
        from iolab.recordings.ask.query import heat
        from iolab.recordings.ask.question import Question
        from iolab.recordings.store.read.recording import Recording

        try:
            recording = self._open.get(part.recording) or self._open.setdefault(
                part.recording, Recording(part.recording)
            )
            counts = heat(
                recording,
                y,
                Question(
                    span=(part.from_ns, part.until_ns),
                    interval_ns=interval_ns,
                    source=part.seen,
                    buckets=self.resolution.offsets if y == "offset" else None,
                ),
            )
        except IolabError as error:
            words = f"run {part.run.id}: {error}"
            if words not in self._notes:
                self._notes.append(words)
            return None
        return counts if len(counts.count) else None


def _maps(y: Y, members: Sequence[Recorded], reader: _Reader) -> list[CellMaps]:
    """Maps of one y and cell. Offsets of fio are in its files, those of the block layer on the
    device, so they are apart where both are not of a device."""
    apart = y == "offset" and not all(_on_device(member.run) for member in members)
    interval = nice_interval(
        max(member.until_ns - member.from_ns for member in members), reader.resolution.columns
    )
    map_cells = []
    for layers in (("fio",), ("block",)) if apart else (("fio", "block"),):
        counted = [
            (member, counts)
            for member in members
            if member.seen in layers and (counts := reader.read(member, y, interval)) is not None
        ]
        if counted:
            several = len({member.seen for member in members}) > 1
            same = alike([counts for _, counts in counted])
            maps = [
                Named(_label(member, several), counts.with_all_columns())
                for (member, _), counts in zip(counted, same, strict=True)
            ]
            group = group_of(
                View("linear" if y == "offset" else "log"),
                maps,
                percentiles=False,
                steps=0 if y == "offset" else STEPS,
                joined=2,
            )
            title = (
                f"{words.TITLES[y]}, {SEEN[counted[0][0].seen]}"
                if apart and several
                else words.TITLES[y]
            )
            map_cells.append(
                CellMaps(
                    of=[_run_map(member) for member, _ in counted],
                    group=group.model_copy(update={"title": title}),
                )
            )
    return map_cells


def _label(part: Recorded, several: bool) -> str:
    who = f", {SEEN[part.seen]}" if several else ""
    return f"{part.run.variant}{who} (run {part.run.id.partition('-')[0]})"


def _run_map(part: Recorded) -> RunMap:
    return RunMap(
        run=part.place,
        variant=part.run.variant,
        repetition=part.run.plan.repetition,
        seen=part.seen,
    )


def _on_device(run: Run) -> bool:
    place = run.plan.extra.get("place")
    return isinstance(place, dict) and place.get("kind") == "device"


def nice_interval(length_ns: int, columns: int) -> int:
    """Length of a column: 1, 2 or 5 times a power of ten that makes about `columns` of a span, at
    most a tenth more; a millisecond at least, fio's clock."""
    power = 10**6
    while True:
        for factor in (1, 2, 5):
            if factor * power * columns * 1.1 >= length_ns:
                return factor * power
        power *= 10


def _within(cells: Iterable[tuple[str, list[CellMaps]]], notes: list[str]) -> list[MapCell]:
    """Cells with maps, without the later repetitions where the file would grow too large."""
    cells_with_maps = [MapCell(title=name, maps=maps) for name, maps in cells if maps]
    every = [
        run_map.repetition for cell in cells_with_maps for part in cell.maps for run_map in part.of
    ]
    last = max(every, default=1)
    while (
        last > 1
        and sum(
            len(map_of_group.cells.counts)
            for cell in cells_with_maps
            for part in cell.maps
            for map_of_group in part.group.maps
        )
        > MOST_CELLS
    ):
        last -= 1
        cells_with_maps = [
            MapCell(
                title=cell.title,
                maps=[first for part in cell.maps if (first := _first(part, last)).of],
            )
            for cell in cells_with_maps
        ]
    omitted = sum(repetition > last for repetition in every)
    if omitted:
        notes.append(
            f"{omitted} maps of later repetitions are left out, this file would grow too large; `iolab heatmap` draws them from the "
            "recording"
        )
    return cells_with_maps


def _first(part: CellMaps, last: int) -> CellMaps:
    """Only repetitions up to `last`; the axes stay those of all."""
    kept = [place for place, run_map in enumerate(part.of) if run_map.repetition <= last]
    return CellMaps(
        of=[part.of[place] for place in kept],
        group=part.group.model_copy(update={"maps": [part.group.maps[place] for place in kept]}),
    )
