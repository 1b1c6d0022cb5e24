"""`iolab catalog`: what there is to name: metrics, units, formats, gates, targets, workloads, sources, hosts."""

from __future__ import annotations

import json
from typing import Any

import click

from .options import format_option

KINDS = ("metrics", "units", "formats", "gates", "hosts", "targets", "workloads", "sources", "renderers")


@click.command("catalog")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@format_option("text", "json")
def command(kind: str | None, style: str) -> None:
    """List what a study, an import or a comparison can name. Without KIND, the kinds."""
    if kind is None:
        rows: list[dict[str, Any]] = [{"name": name} for name in KINDS]
    elif kind == "metrics":
        rows = _metrics()
    elif kind == "units":
        rows = _units()
    else:
        rows = _plugins(kind.removesuffix("s"))
    if style == "json":
        click.echo(json.dumps({"schema": 1, "kind": "catalog", "of": kind, "entries": rows}, indent=1, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"{row['name']:{width}}  {'  '.join(str(value) for key, value in row.items() if key != 'name' and value)}".rstrip())


def _metrics() -> list[dict[str, Any]]:
    from ..metrics import fixed, of

    patterns = ["write.iops", "write.bw", "write.ios", "write.bytes", "write.lat.mean", "write.lat.min", "write.lat.max",
                "write.lat.stddev", "write.clat.mean", "write.slat.mean", "write.clat.p99", "write.clat.p99.9"]
    metrics = [of(name) for name in patterns] + fixed()
    return [{"name": metric.name, "title": metric.title, "unit": f"[{metric.unit or 'number'}]",
             "better": f"{metric.better} is better" if metric.better else ""} for metric in metrics]


def _units() -> list[dict[str, Any]]:
    from ..units import UNITS

    return [{"name": symbol, "dimension": unit.dimension} for symbol, unit in UNITS.items() if symbol]


def _plugins(kind: str) -> list[dict[str, Any]]:
    from ..registry import load, names

    return [{"name": name, "about": (load(kind, name).__doc__ or "").strip().splitlines()[0]} for name in names(kind)]
