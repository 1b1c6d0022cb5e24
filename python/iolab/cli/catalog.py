# SPDX-License-Identifier: Apache-2.0
"""`iolab catalog`: documents, terms, metrics, units, formats, gates, targets, workloads, sources,
hosts."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .base.options import PATH, format_option
from .base.output import tell, tell_json

if TYPE_CHECKING:
    from iolab.recordings.ask.language.catalogue import Entry

KINDS = (
    "documents",
    "glossary",
    "statistics",
    "metrics",
    "units",
    "formats",
    "gates",
    "hosts",
    "targets",
    "workloads",
    "sources",
    "renderers",
    "studies",
)


@click.command("catalog")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.argument("path", metavar="[PATH]", type=PATH, required=False)
@format_option("text", "json")
def command(kind: str | None, path: Path | None, style: str) -> None:
    """List the names that a study, an import, a comparison or a query can contain, the terms, and
    the installed documents. Without KIND, list the kinds.

    With a PATH, `statistics` says what that recording or trace can answer; without, what could be
    recorded here.
    """
    from iolab.base.errors import UsageError

    if path is not None and kind != "statistics":
        raise UsageError(
            "a path is for statistics alone", where=path, hint="iolab catalog statistics PATH"
        )
    rows: list[dict[str, Any]]
    if kind == "statistics":
        rows = _statistics(path)
        if style == "text":
            tell(*_statistic_lines(rows))
            return
    elif kind == "glossary":
        rows = _glossary()
        if style == "text":
            tell(*_glossary_lines(rows))
            return
    elif kind is None:
        rows = [{"name": name} for name in KINDS]
    elif kind == "metrics":
        rows = metric_rows()
    elif kind == "units":
        rows = _units()
    elif kind == "documents":
        rows = _documents()
    elif kind == "studies":
        rows = _studies()
    else:
        rows = _plugins(kind.removesuffix("s"))
    if style == "json":
        tell_json({"schema": 1, "kind": "catalog", "of": kind, "entries": rows})
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        tell(
            f"{row['name']:{width}}  {'  '.join(str(value) for key, value in row.items() if key != 'name' and value)}".rstrip()
        )


def _documents() -> list[dict[str, Any]]:
    """Guides and references of this installation: name, path, title."""
    from .base.installation import find_shipped

    base = find_shipped(Path("docs"))
    if base is None:
        return []
    return [
        {
            "name": str(Path("docs") / path.relative_to(base)),
            "path": str(path),
            "about": path.read_text("utf-8").partition("\n")[0].lstrip("# "),
        }
        for path in sorted(base.rglob("*.md"))
    ]


def _studies() -> list[dict[str, Any]]:
    """Studies and published tables that came with iolab; `run` and `import --table` take their
    names anywhere."""
    from .base.installation import find_shipped

    base = find_shipped(Path("studies"))
    if base is None:
        return []
    files = sorted([*base.glob("*.toml"), *base.glob("published/*.csv")])
    return [
        {"name": str(Path("studies") / path.relative_to(base)), "about": _first_comment(path)}
        for path in files
    ]


def _first_comment(path: Path) -> str:
    """The first sentence of the comment that a file begins with."""
    lines = itertools.takewhile(
        lambda line: line.startswith("#"), path.read_text("utf-8").splitlines()
    )
    return re.split(
        r"(?<=[.?])\s", " ".join(line.lstrip("# ") for line in lines).strip(), maxsplit=1
    )[0]


def _glossary() -> list[dict[str, Any]]:
    from iolab.base.glossary import SECTIONS

    return [
        {
            "name": term.name,
            "symbol": term.symbol,
            "unit": term.unit,
            "section": section,
            "about": term.meaning,
        }
        for section, terms in SECTIONS.items()
        for term in terms
    ]


def _glossary_lines(rows: list[dict[str, Any]]) -> list[str]:
    cells = [
        (row["name"], row["symbol"], "" if row["unit"] is None else f"[{row['unit'] or 'number'}]")
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            [*(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)), row["about"]]
        )
        for line, row in zip(cells, rows, strict=True)
    ]


def _statistics(path: Path | None) -> list[dict[str, Any]]:
    from iolab.recordings.ask.language.catalogue import CATALOGUE

    if path is not None:
        from iolab.recordings.ask.available import available
        from iolab.recordings.store.read.trace import Trace

        from .base.events import open_path

        opened = open_path(path)
        has = opened.summary().has if isinstance(opened, Trace) and opened.detect() else None
        return [
            _statistic(
                available_statistic.entry,
                {
                    "answered_by": available_statistic.source or None,
                    "why_not": available_statistic.why_not or None,
                    "answered_breakdowns": list(available_statistic.breakdowns),
                    "lacking": dict(available_statistic.lacking),
                },
            )
            for available_statistic in available(opened, has)
        ]
    refusals = _refusals()
    return [_statistic(entry, _recordable(entry, refusals)) for entry in CATALOGUE.values()]


def _statistic(entry: Entry, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "about": entry.about,
        "unit": entry.unit,
        "breakdowns": list(entry.breakdowns),
        "filters": list(entry.filters),
        "events": list(entry.sources),
        "counters": entry.counter.source if entry.counter else None,
        "covers": entry.covers,
        **more,
    }


def _refusals() -> dict[str, str]:
    """Why the probe can't record a source here, "" where it can."""
    from iolab.base.errors import IolabError
    from iolab.hosts.kinds.local import LocalHost
    from iolab.recordings.record.probe.program import check_sources, probe_path

    refusals = {}
    for source in ("block", "syscall", "nfs", "counters"):
        try:
            check_sources(LocalHost(), str(probe_path()), [source])
            refusals[source] = ""
        except IolabError as error:
            refusals[source] = error.message
    return refusals


def _recordable(entry: Entry, refusals: dict[str, str]) -> dict[str, Any]:
    """`answered_by`: what would, if it were recorded here."""
    if entry.sources == ("fio",):
        return {"answered_by": "fio", "why_not": None}
    roads = [
        *((source, source) for source in entry.sources),
        *([(entry.counter.source, "counters")] if entry.counter else []),
    ]
    reasons = [
        refusals.get(source, refusals["counters"]) or _why_missing(name) for name, source in roads
    ]
    for (name, _), reason in zip(roads, reasons, strict=True):
        if not reason:
            return {"answered_by": name, "why_not": None}
    return {"answered_by": None, "why_not": reasons[0]}


def _why_missing(source: str) -> str:
    """Why this machine has nothing of a source that could be recorded, "" where it has."""
    from iolab.formats.zfs.kstat_log import not_loaded
    from iolab.hosts.kinds.local import LocalHost

    return (
        (not_loaded(LocalHost()) or "")
        if source in ("arcstats", "zil", "txgs", "zpool", "zpool-sizes")
        else ""
    )


def _statistic_lines(rows: list[dict[str, Any]]) -> list[str]:
    width = max(len(row["name"]) for row in rows)
    lines = []
    for row in rows:
        origin = " or ".join(
            [*(["events"] if row["events"] else []), *(["counters"] if row["counters"] else [])]
        )
        state = f"by {row['answered_by']}" if row["answered_by"] else f"not here: {row['why_not']}"
        breakdowns = row.get("answered_breakdowns") or row["breakdowns"]
        lines += [
            f"{row['name']:{width}}  [{row['unit'] or 'number'}] {row['about']}",
            f"{'':{width}}  from {origin}, {state}{'; by ' if breakdowns else ''}{', '.join(breakdowns)}",
        ]
        if row.get("lacking"):
            lines.append(
                f"{'':{width}}  not by {', '.join(row['lacking'])}: what was recorded does not tell them"
            )
    return lines


def metric_rows() -> list[dict[str, Any]]:
    """Metrics that every run may have: name, title, unit, which direction is better."""
    from iolab.base.metrics import catalogue, of

    patterns = [
        "write.iops",
        "write.bw",
        "write.ios",
        "write.bytes",
        "write.lat.mean",
        "write.lat.min",
        "write.lat.max",
        "write.lat.stddev",
        "write.clat.mean",
        "write.slat.mean",
        "write.clat.p99",
        "write.clat.p99.9",
    ]
    metrics = [of(name) for name in patterns] + catalogue()
    return [
        {
            "name": metric.name,
            "title": metric.title,
            "unit": f"[{metric.unit or 'number'}]",
            "better": f"{metric.better} is better" if metric.better else "",
        }
        for metric in metrics
    ]


def _units() -> list[dict[str, Any]]:
    from iolab.base.units import UNITS

    return [
        {"name": symbol, "dimension": unit.dimension} for symbol, unit in UNITS.items() if symbol
    ]


def _plugins(kind: str) -> list[dict[str, Any]]:
    from iolab.base.registry import names, summary

    return [{"name": name, "about": summary(kind, name)} for name in names(kind)]
