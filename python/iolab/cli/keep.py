"""`iolab keep`: statistics of a recording whose answers outlive the events they were made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from .options import PATH, format_option, say

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Rows = Sequence[dict[str, Any]]

_SECOND = 10**9


def _directory(function: Decorated) -> Decorated:
    """The recording's directory."""
    return click.argument("directory", metavar="DIR", type=PATH)(function)


def _statistics(*, required: bool) -> Callable[[Decorated], Decorated]:
    """Names of statistics."""
    words = "STATISTIC..." if required else "[STATISTIC...]"
    return click.argument("statistics", metavar=words, nargs=-1, required=required)


@click.group("keep")
def command() -> None:
    """Keep statistics of a recording beyond their events: by the second for 7 days, the minute for 14, the hour for 90.

    What iolab query and the browser ask is answered from them where the events are gone. It works on a recording that is being made
    and on one at rest. iolab record keeps a few from the start. docs/guides/keeping.md has more.
    """


@command.command("list")
@_directory
@format_option("text", "json")
def list_(directory: Path, style: str) -> None:
    """What is kept: since when, how large, what it costs, how far back each tier goes."""
    from ..statistics.kept.manage import listed

    _show(listed(directory), style)


@command.command()
@_directory
@_statistics(required=True)
@click.option("--backfill", is_flag=True, help="Make it of the events that are still there as well.")
@click.option("--source", metavar="NAME", help="What it is made of: block, syscall, diskstats... Default: what a query would take.")
@format_option("text", "json")
def add(directory: Path, statistics: tuple[str, ...], backfill: bool, source: str | None, style: str) -> None:
    """Keep statistics from now on: names as iolab query takes them, such as 'io.ops[process=db][latency]'."""
    from ..statistics.kept.manage import add as added

    _changed(added(directory, statistics, backfill=backfill, source=source), style)


@command.command()
@_directory
@_statistics(required=False)
@format_option("text", "json")
def pause(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Keep no more of them until they are resumed; without a name, of all. The time between shows as a gap."""
    from ..statistics.kept.manage import pause as paused

    _changed(paused(directory, statistics), style)


@command.command()
@_directory
@_statistics(required=False)
@format_option("text", "json")
def resume(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Go on with what was paused, or suspended by the budget; without a name, with all."""
    from ..statistics.kept.manage import resume as resumed

    _changed(resumed(directory, statistics), style)


@command.command()
@_directory
@_statistics(required=False)
@click.option("--before", metavar="WHEN", required=True, help="-30d (before the end) or 2026-03-01T12:00:05 (UTC).")
@click.option("--tier", type=click.Choice(["1s", "1m", "1h"]), default="1h", show_default=True,
              help="The longest sums that go; shorter ones go with them.")
@format_option("text", "json")
def prune(directory: Path, statistics: tuple[str, ...], before: str, tier: str, style: str) -> None:
    """Let go of what was kept before a moment; without a name, of all statistics. The events stay as they are.

    With --tier 1s or 1m, the hour that is not over goes once it is: its longer sums are made of the shorter ones.
    """
    from ..errors import UsageError
    from ..statistics.kept.manage import listed
    from ..statistics.kept.manage import prune as pruned
    from ..statistics.times import parse_moment

    ends = [(row["since_ns"], row["until_ns"]) for row in listed(directory) if row["until_ns"] is not None]
    if not ends:
        raise UsageError("nothing was kept yet", where=directory)
    moment = parse_moment(before, min(first for first, _ in ends), max(until for _, until in ends) - 1)
    rows = pruned(directory, statistics, before_ns=moment, tier=tier)
    _changed(rows, style)
    if tier != "1h" and any(each["first_ns"] is not None and each["first_ns"] < moment - 60 * _SECOND
                            for row in rows if row["state"] != "pending" for each in row["tiers"] if each["tier"] == tier):
        say("note: of the hour that is not over what is kept by the second stays until its minutes and hours are made of it")


@command.command()
@_directory
@_statistics(required=True)
@format_option("text", "json")
def drop(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Keep them no more, and remove what was kept of them."""
    from ..statistics.kept.manage import drop as dropped

    _changed(dropped(directory, statistics), style)


def _changed(rows: Rows, style: str) -> None:
    if any(row["state"] == "pending" for row in rows):
        say("note: the recorder has not taken it up yet; iolab keep list tells")
    _show(rows, style)


def _show(rows: Rows, style: str) -> None:
    if style == "json":
        click.echo(json.dumps({"schema": 1, "kind": "kept", "statistics": list(rows)}, indent=1, ensure_ascii=False))
        return
    if not rows:
        say("nothing is kept; iolab keep add DIR STATISTIC begins")
        return
    table = [("statistic", "state", "since", "size", "CPU", "rows", "1s", "1m", "1h"), *map(_line, rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    for line in table:
        click.echo("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())
    for row in rows:
        if row["why"]:
            click.echo(f"{row['statistic']}: {row['why']}")
        for first, until in row["gaps"]:
            click.echo(f"{row['statistic']}: not kept from {_when(first)} to {_when(until) if until is not None else 'now'}")


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    from ..units import format_quantity

    return (row["statistic"], row["state"], "-" if row["since_ns"] is None else _when(row["since_ns"]),
            format_quantity(row["bytes"], "B", 3), format_quantity(row["cpu_ns"] / 1e9, "s", 3), str(row["rows"]),
            *(_length(tier) for tier in row["tiers"]))


def _length(tier: dict[str, Any]) -> str:
    """How far back a tier goes."""
    if tier["first_ns"] is None:
        return "-"
    seconds = (tier["until_ns"] - tier["first_ns"]) // _SECOND
    for length, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {word}"
    return f"{seconds} s"


def _when(ns: int) -> str:
    # a trace's own clock counts from its start
    return f"{ns / 1e9:g} s" if ns < 10**17 else f"{datetime.fromtimestamp(ns // _SECOND, UTC):%Y-%m-%dT%H:%M:%S}Z"
