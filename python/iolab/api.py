"""`iolab.open`: results in a notebook or script, with the same numbers and charts as the command line and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ResultsError, UsageError
from .results.manifest import FILE
from .results.open import Progress, Results

if TYPE_CHECKING:
    from .charts.book import ChartBook
    from .compare.axes import Where
    from .compare.model import Comparison

Names = str | Sequence[str] | None


class Opened(Results):
    """Results that can compare and draw themselves."""

    def compare(self, metric: str, *, baseline: str | None = None, rows: Names = None, cols: Names = None, tables: Names = None,
                ignore: Names = None, where: Mapping[str, object] | None = None, unit: str | None = None) -> Comparison:
        """Every variant against the baseline; see `compare.compare.compare`. `where` is `{"media": "hdd"}` or lists of levels."""
        from .compare.compare import compare

        return compare(self.runs, metric, baseline=baseline or self.baseline, rows=_listed(rows), cols=_listed(cols),
                       tables=_listed(tables), ignore=_listed(ignore) or (), where=_conditions(where), shown_unit=unit)

    @cached_property
    def chart(self) -> ChartBook:
        """Charts of these results, one method each."""
        from .charts.book import ChartBook

        return ChartBook(self)


def open(path: str | Path, *, progress: Progress | None = None) -> Opened:
    """Open what iolab made.

    Raises ResultsError for what is there but no results directory, UsageError for what isn't there.
    """
    place = Path(path)
    if not place.exists():
        raise UsageError("no such file or directory", where=place)
    if place.is_file() and place.name == FILE:
        place = place.parent
    if place.is_file():
        raise ResultsError("is a file, not a results directory", where=place,
                           hint="iolab import makes results from a tree of fio files, or with --table from a CSV")
    return Opened(place, progress=progress)


def _listed(names: Names) -> list[str] | None:
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def _conditions(where: Mapping[str, object] | None) -> Where:
    from .compare.axes import level_text

    return {name: [level_text(level) for level in (levels if isinstance(levels, list | tuple | set) else [levels])]
            for name, levels in (where or {}).items()}
