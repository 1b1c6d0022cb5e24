# SPDX-License-Identifier: Apache-2.0
"""`iolab.open`: results, recordings and traces in a notebook or script, with the same numbers and
charts as the command line."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from .base.errors import UsageError
from .base.untrusted_text import html_table, visible
from .studies.compare.several import Match, Several
from .studies.results.evidence.files import PLAN_FILE, RUNS
from .studies.results.evidence.journal import FILE as JOURNAL
from .studies.results.evidence.manifest import FILE
from .studies.results.open.cache import LIST as CACHES
from .studies.results.open.results import Progress, Results

if TYPE_CHECKING:
    from .notebook import MapWidget
    from .output.charts.book import ChartBook
    from .recordings.ask.answers.answers import Answer
    from .recordings.store.base.counts import HeatCounts, Weight
    from .recordings.store.read.recording import Recording
    from .recordings.store.read.trace import Trace
    from .studies.compare.axes import Where
    from .studies.compare.model import Comparison, Warning
    from .studies.results.evidence.model import Run

Names = str | Sequence[str] | None
Moment = str | int | None
"""A moment as the command line takes it (`30s`, `-10m`, `2026-03-01T12:00:05`), or in ns on the
events' own clock."""


class _Shown:
    """Comparison, charts and a table of runs for opened results."""

    path: Path
    runs: list[Run]
    baseline: Any
    notes: tuple[Warning, ...]

    def __repr__(self) -> str:
        levels = Counter(str(run.verdict.level.value) for run in self.runs)
        counts = ", ".join(f"{count} {level}" for level, count in levels.items())
        return visible(
            f"<Results {self.path.name}: {len(self.runs)} runs{f' ({counts})' if counts else ''}, variants "
            f"{', '.join(dict.fromkeys(run.variant for run in self.runs))}>"
        )

    def _repr_html_(self) -> str:
        factors = list(dict.fromkeys(name for run in self.runs for name in run.factors))
        rows = [
            (
                run.id,
                run.variant,
                *(str(run.factors.get(name, "")) for name in factors),
                str(run.plan.repetition),
                run.verdict.level.value,
                "; ".join(reason.text for reason in run.verdict.reasons),
            )
            for run in self.runs
        ]
        return html_table(
            repr(self).strip("<>"),
            ("run", "variant", *factors, "repetition", "verdict", "reasons"),
            rows,
        )

    def compare(
        self,
        metric: str,
        *,
        baseline: str | None = None,
        rows: Names = None,
        cols: Names = None,
        tables: Names = None,
        ignore: Names = None,
        where: Mapping[str, object] | None = None,
        unit: str | None = None,
    ) -> Comparison:
        """Compare every variant with the baseline; see `compare.compare.compare`. `where` is `{"media":
        "hdd"}` or lists of levels."""
        from .studies.compare.axes import Layout
        from .studies.compare.compare import compare

        return compare(
            self.runs,
            metric,
            baseline=baseline or self.baseline,
            layout=Layout(
                rows=_as_list(rows),
                cols=_as_list(cols),
                tables=_as_list(tables),
                ignore=_as_list(ignore) or (),
            ),
            where=_conditions(where),
            shown_unit=unit,
            notes=self.notes,
        )

    @cached_property
    def chart(self) -> ChartBook:
        """Charts of these results, one method each."""
        from .output.charts.book import ChartBook

        return ChartBook(cast("Any", self))


class Opened(_Shown, Results):
    """Results that can compare and draw themselves."""

    @property
    def notes(self) -> tuple[Warning, ...]:  # type: ignore[override]
        """What is missing or damaged, as `remarks.study_notes` has it, and whether the number of
        blocks depends on the results."""
        from .studies.compare.remarks import study_notes
        from .studies.compare.rules.sequential import sequential_notes

        return (
            *study_notes(self.runs, self.standing, self.manifest.imported),
            *sequential_notes(self.path, self.manifest),
        )


class OpenedSeveral(_Shown, Several):
    """Several results directories as arms, that can compare and draw themselves."""


class Events:
    """The I/Os of a recording or trace, to be asked."""

    def __init__(self, held: Trace | Recording) -> None:
        self.path, self._held = held.path, held

    def __repr__(self) -> str:
        name, rows = self._facts()
        return visible(
            f"<{name} {self.path.name}: {', '.join(f'{field} {value}' for field, value in rows)}>"
        )

    def _repr_html_(self) -> str:
        name, rows = self._facts()
        return html_table(f"{name} {self.path.name}", ("", ""), rows)

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        from .recordings.store.read.trace import Trace

        if isinstance(self._held, Trace):
            summary = self._held.summary()
            return "Trace", [
                ("format", summary.format),
                ("I/Os", str(summary.events)),
                ("fields", " ".join(summary.has)),
            ]
        events: Counter[str] = Counter()
        for segment in self._held.segments():
            events.update(segment.sources)
        return "Recording", [
            ("host", self._held.facts.host),
            *((f"{source} I/Os", str(count)) for source, count in events.items()),
        ]

    def heatmap(
        self,
        y: str = "latency",
        *,
        where: Names = None,
        from_: Moment = None,
        to: Moment = None,
        interval: str | int | None = None,
        columns: int = 2000,
        weight: Weight = "count",
        source: str | None = None,
    ) -> Map:
        """Counts over time and latency, offset, size, or (of recordings) queue, which draw
        themselves in a notebook.

        `where` is what `--where` takes: "op=write,device=sda", or a list of such. `interval` is a
        length like "1s", or ns.
        """
        from .recordings.ask.query import heat
        from .recordings.ask.question import Question
        from .recordings.store.base.conditions import parse_where

        from_ns, until_ns = self._span(from_, to)
        counts = heat(
            self._held,
            y,
            Question(
                span=(from_ns, until_ns),
                interval_ns=_length(interval),
                columns=columns,
                weight=weight,
                source=source,
            ),
            where=parse_where(_as_list(where) or []),
        )
        return Map(self.path.name, counts)

    def explore(
        self,
        y: str = "latency",
        *,
        where: Names = None,
        from_: Moment = None,
        to: Moment = None,
        interval: str | int | None = None,
        columns: int = 1000,
        source: str | None = None,
    ) -> MapWidget:
        """The map of `heatmap` as a widget: drag to mark a part, Shift+drag to pan, and ask `who()`
        or `crop()` about the part in Python.

        UsageError where `anywidget` is not installed.
        """
        try:
            from .notebook import MapWidget
        except ImportError as error:
            raise UsageError(
                "widgets need the package anywidget",
                where="explore",
                hint="install iolab[notebook], or use heatmap()",
            ) from error
        from .recordings.ask.attribution import Rectangle, Who, who
        from .recordings.ask.drill import dimensions_of
        from .recordings.ask.engine.windows import filters_of
        from .recordings.ask.query import heat
        from .recordings.ask.question import Question
        from .recordings.heatmap.figure import Named
        from .recordings.store.base.conditions import parse_where
        from .recordings.store.read.trace import Trace, dimensions

        conditions = parse_where(_as_list(where) or [])
        span = self._span(from_, to)

        def read(
            events: Trace | Recording, more: Where, *, interval_ns: int | None = None
        ) -> HeatCounts:
            return heat(
                events,
                y,
                Question(
                    span=span,
                    interval_ns=interval_ns or _length(interval),
                    columns=columns,
                    source=source,
                ),
                where={**conditions, **more},
            )

        counts = read(self._held, {})

        def part(events: Trace | Recording, more: Where) -> HeatCounts:
            return read(events, more, interval_ns=counts.interval_ns)

        fields = (
            dimensions([self._held], counts, part, conditions)[0]
            if isinstance(self._held, Trace)
            else dimensions_of([self._held], counts, part, conditions)[0]
        )

        def who_is(rectangle: Rectangle) -> Who:
            return who(
                self._held, y, rectangle, filters=filters_of(conditions), around=span, source=source
            )

        def crop(rectangle: Rectangle) -> Map:
            cropped = heat(
                self._held,
                y,
                Question(
                    span=(rectangle.from_ns, rectangle.until_ns),
                    low=rectangle.low,
                    high=rectangle.high,
                    columns=columns,
                    source=source,
                ),
                where=conditions,
            )
            return Map(self.path.name, cropped)

        framed = counts.with_all_columns()
        return MapWidget(
            Named(self.path.name, framed, tuple(fields)),
            Map(self.path.name, counts).svg,
            who_is,
            crop,
        )

    def query(
        self,
        statistic: str,
        *,
        from_: Moment = None,
        to: Moment = None,
        interval: str | int | None = None,
        columns: int = 400,
        source: str | None = None,
    ) -> Answer:
        """The answer to a statistic such as "io.ops[op=write][process]": a Series, a Stack, or the
        counts of a heat map."""
        from .recordings.ask.query import query

        from_ns, until_ns = self._span(from_, to)
        return query(
            self._held,
            statistic,
            from_ns=from_ns,
            until_ns=until_ns,
            interval_ns=_length(interval),
            columns=columns,
            source=source,
        )

    def _span(self, start: Moment, end: Moment) -> tuple[int | None, int | None]:
        from .recordings.ask.kept.recorded import span_of
        from .recordings.ask.language.quantities import parse_moment
        from .recordings.ask.tiers.trace_tier import bounds
        from .recordings.store.read.trace import Trace

        if not isinstance(start, str) and not isinstance(end, str):
            return start, end
        first, last = (
            bounds(self._held) if isinstance(self._held, Trace) else span_of(self._held) or (0, 0)
        )
        from_ns, until_ns = (
            parse_moment(moment, first, last) if isinstance(moment, str) else moment
            for moment in (start, end)
        )
        return from_ns, until_ns


class Map:
    """A heat map. `counts` has its numbers (`recording.counts.HeatCounts`); a notebook shows it as
    a picture."""

    def __init__(self, label: str, counts: HeatCounts) -> None:
        self.label, self.counts = label, counts

    def __repr__(self) -> str:
        return visible(f"<Map {self.label}: {self.counts!r}>")

    def svg(self, *, percentiles: bool = False, dark: bool = False) -> str:
        """The map as an SVG document."""
        from .recordings.heatmap.figure import Named, panels
        from .recordings.heatmap.model import View
        from .recordings.heatmap.svg import LAYOUT, svg
        from .recordings.heatmap.theme import DARK, LIGHT

        view = View("linear" if self.counts.y == "offset" else "log")
        return svg(
            panels(
                [Named(self.label, self.counts.with_all_columns())],
                view,
                LAYOUT,
                percentiles=percentiles,
            ),
            f"I/O of {self.label}",
            DARK if dark else LIGHT,
        )

    def _repr_svg_(self) -> str:
        return self.svg()


@overload
def open(path: str | Path, *, progress: Progress | None = None) -> Opened | Events: ...


@overload
def open(
    path: str | Path,
    other: str | Path,
    /,
    *others: str | Path,
    arms: Mapping[str, str | Path | Sequence[str | Path]] | None = None,
    match: Match | None = None,
    progress: Progress | None = None,
) -> Opened | OpenedSeveral: ...


def open(
    path: str | Path,
    *others: str | Path,
    arms: Mapping[str, str | Path | Sequence[str | Path]] | None = None,
    match: Match | None = None,
    progress: Progress | None = None,
) -> Opened | OpenedSeveral | Events:
    """Open a results directory, several of them as arms, a recording, a trace of I/O, or one or
    several fio results, each a variant.

    Args:
        arms: of several results directories: name of an arm to its directory, or to several that
        repeat it; default each directory is an arm of its own name. match: "variant" compares each
        variant of a study with the variant of the same name.

    Raises ResultsError or FormatError for an existing path that is none of these, UsageError for a
    missing one.
    """
    from .recordings.store.base.layout import is_recording
    from .recordings.store.read.recording import open_events
    from .recordings.store.read.trace import Trace

    place = Path(path)
    if others and any(is_results(Path(other)) for other in (path, *others)):
        places = [place, *map(Path, others)]
        return OpenedSeveral(places, _names(arms or {}), match=match, progress=progress)
    if arms or match:
        raise UsageError(
            "arms and match are for several results directories",
            where="open",
            hint="give two or more",
        )
    if others:
        return open_results(place, *others, progress=progress)
    if is_recording(place):
        return Events(open_events(place))
    if place.is_file() and place.name != FILE and Trace(place).detect() is not None:
        return Events(open_events(place))
    return open_results(place, progress=progress)


def _names(arms: Mapping[str, str | Path | Sequence[str | Path]]) -> list[tuple[str, str]]:
    return [
        (arm, str(place))
        for arm, places in arms.items()
        for place in ([places] if isinstance(places, str | Path) else places)
    ]


def open_results(
    path: str | Path,
    *others: str | Path,
    arms: Sequence[tuple[str, str | Path]] = (),
    progress: Progress | None = None,
) -> Opened:
    """Open a results directory, or fio results: files, and folders of them.

    Each file is a variant named after it, or a repetition of one: before1.json and before2.json are
    of the variant before. A folder that is given among others is a variant. `arms` has the variant
    of every path instead. Errors as `open` has them.

    For fio results, derived files are in a temporary directory until the process ends.
    """
    places = [Path(place_path) for place_path in (path, *others)]
    for place in places:
        if not place.exists():
            raise UsageError("no such file or directory", where=place)
    if len(places) == 1 and not arms:
        place = places[0]
        if place.is_file() and place.name == FILE:
            place = place.parent
        if is_results(place) or any(map(is_results, place.glob("*/"))):
            return Opened(place, progress=progress)
    for place in places:
        if (place / "history.json").is_file() and not is_results(place):
            path_word = shlex.quote(str(place))
            raise UsageError(
                "a history of results, not results",
                where=place,
                hint=f"iolab view {path_word} shows it in a browser, "
                f"iolab history show --history {path_word} here",
            )
    folder = next((place for place in places if is_results(place)), None)
    if folder is not None:
        raise UsageError(
            "only fio results, or only results directories, can be opened together",
            where=folder,
            hint="give directories, or files that fio wrote",
        )
    return _open_files(places, [arm for arm, _ in arms], progress)


def is_results(place: Path) -> bool:
    """Whether a path is a directory of results, not a folder with files that fio wrote. A directory that
    lost its manifest is recognized by its journal, caches or runs: their fio files are not a result
    of their own."""
    marks = (FILE, "hosts.json", JOURNAL, CACHES)
    return place.is_dir() and (
        any((place / name).exists() for name in marks) or any((place / RUNS).glob(f"*/{PLAN_FILE}"))
    )


def _open_files(places: Sequence[Path], names: Sequence[str], progress: Progress | None) -> Opened:
    """fio results, imported into a directory that goes with the process."""
    import atexit
    import shutil
    import tempfile

    from .studies.results.imports.tree import fio_files, import_files, import_tree

    directory = Path(tempfile.mkdtemp(prefix="iolab-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    output = directory / (places[0].stem or "results")
    if len(places) == 1 and places[0].is_dir() and not names:
        import_tree(places[0], None, output, link=True)
        return Opened(output, progress=progress)
    files: list[Path] = []
    arms: list[str] = []
    has_folder = any(place.is_dir() for place in places)
    for number, place in enumerate(places):
        own = fio_files(place)
        files += own
        arms += [
            names[number] if names else place.resolve().name if place.is_dir() else place.stem
        ] * len(own)
    import_files(files, output, link=True, arms=arms if names or has_folder else None)
    return Opened(output, progress=progress)


def _length(interval: str | int | None) -> int | None:
    from .recordings.ask.language.quantities import parse_duration

    return parse_duration(interval) if isinstance(interval, str) else interval


def _as_list(names: Names) -> list[str] | None:
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def _conditions(where: Mapping[str, object] | None) -> Where:
    from .studies.compare.axes import level_text

    return {
        name: [
            level_text(level)
            for level in (levels if isinstance(levels, list | tuple | set) else [levels])
        ]
        for name, levels in (where or {}).items()
    }
