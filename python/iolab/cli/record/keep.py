# SPDX-License-Identifier: Apache-2.0
"""`iolab keep`: statistics of a recording that are stored longer than its events."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from ..base.completion import complete_statistics
from ..base.options import PATH, format_option, limit_of, seconds_of
from ..base.output import on_terminal, say, tell, tell_json
from .words import lasting

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Rows = Sequence[dict[str, Any]]

_SECOND = 10**9

_ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "since": lambda row: math.inf if row["since_ns"] is None else row["since_ns"],
    "size": lambda row: -row["bytes"],
    "cpu": lambda row: -row["cpu_ns"],
    "name": lambda row: row["statistic"],
}


def _directory(function: Decorated) -> Decorated:
    """The recording's directory."""
    return click.argument("directory", metavar="DIR", type=PATH)(function)


def _statistics(*, required: bool) -> Callable[[Decorated], Decorated]:
    """Names of statistics."""
    words = "STATISTIC..." if required else "[STATISTIC...]"
    return click.argument(
        "statistics", metavar=words, nargs=-1, required=required, shell_complete=complete_statistics
    )


@click.group("keep")
def command() -> None:
    """Keep statistics of a recording longer than its events: per second for 7 days, per minute for
    14, per hour for 90 by default.

    iolab query and the browser read them where the events were deleted. It works on a recording
    that is still written and on a complete one. iolab record keeps a few from the start.
    """


@command.command("list")
@_directory
@click.option(
    "--sort",
    type=click.Choice(tuple(_ORDERS)),
    help="The oldest, the largest, the costliest first, or by name. Default: as they were added.",
)
@format_option("text", "json")
def list_(directory: Path, sort: str | None, style: str) -> None:
    """List the kept statistics: since when, size, cost, and the time range of each resolution."""
    from iolab.recordings.ask.kept.manage import list_kept

    rows = list_kept(directory)
    _show(rows if sort is None else sorted(rows, key=_ORDERS[sort]), style)


@command.command()
@_directory
@_statistics(required=True)
@click.option(
    "--backfill", is_flag=True, help="Also compute it from the events that were recorded before."
)
@click.option(
    "--source",
    metavar="NAME",
    help="Source: block, syscall, diskstats... Default: the source that a query uses.",
)
@format_option("text", "json")
def add(
    directory: Path, statistics: tuple[str, ...], backfill: bool, source: str | None, style: str
) -> None:
    """Keep statistics from now on, named as in iolab query, such as 'io.ops[process=db][latency]'."""
    from iolab.recordings.ask.kept.manage import add as added

    _print_change(added(directory, statistics, backfill=backfill, source=source), style)


@command.command()
@_directory
@_statistics(required=False)
@format_option("text", "json")
def pause(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Pause statistics until they are resumed; without a name, all of them. The time between is a
    gap."""
    from iolab.recordings.ask.kept.manage import pause as paused

    _print_change(paused(directory, statistics), style)


@command.command()
@_directory
@_statistics(required=False)
@format_option("text", "json")
def resume(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Resume statistics that were paused, or suspended by the budget; without a name, all of them."""
    from iolab.recordings.ask.kept.manage import resume as resumed

    _print_change(resumed(directory, statistics), style)


@command.command()
@_directory
@_statistics(required=False)
@click.option(
    "--before",
    metavar="WHEN",
    required=True,
    help="-30d (before the end) or 2026-03-01T12:00:05 (UTC).",
)
@click.option(
    "--tier",
    type=click.Choice(["1s", "1m", "1h"]),
    default="1h",
    show_default=True,
    help="The longest interval to delete; shorter ones are deleted too.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Delete without asking. Required if stdin or stderr is not a terminal.",
)
@format_option("text", "json")
def prune(
    directory: Path, statistics: tuple[str, ...], before: str, tier: str, yes: bool, style: str
) -> None:
    """Delete the data of kept statistics before a time; without a name, of all statistics. Events
    are not deleted.

    It prints what would be deleted, and asks. With --tier 1s or 1m, the current hour is deleted when
    it is over, since its longer sums are computed from the shorter ones.
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.kept.manage import list_kept, to_prune
    from iolab.recordings.ask.kept.manage import prune as pruned
    from iolab.recordings.ask.language.quantities import is_after_start, parse_moment

    if is_after_start(before):
        raise UsageError(
            f"'{before}' counts from the start of what was kept",
            where="--before",
            hint=f"write -{before.strip()} (before the end) or a moment such as 2026-03-01T12:00:05",
        )

    ends = [
        (row["since_ns"], row["until_ns"])
        for row in list_kept(directory)
        if row["until_ns"] is not None
    ]
    if not ends:
        raise UsageError("nothing was kept yet", where=directory)
    moment = parse_moment(
        before, min(first for first, _ in ends), max(until for _, until in ends) - 1
    )
    _agree(to_prune(directory, statistics, before_ns=moment, tier=tier), moment, yes)
    rows = pruned(directory, statistics, before_ns=moment, tier=tier)
    _print_change(rows, style)
    if tier != "1h" and any(
        tier_row["first_ns"] is not None and tier_row["first_ns"] < moment - 60 * _SECOND
        for row in rows
        if row["state"] != "pending"
        for tier_row in row["tiers"]
        if tier_row["tier"] == tier
    ):
        say(
            "note: of the hour that is not over what is kept by the second stays until its minutes and hours are made of it"
        )


def _agree(deleted: Sequence[tuple[str, str, int, int]], moment: int, yes: bool) -> None:
    """Print what will be deleted, and ask unless `yes`.

    Raises Abort if the answer is no, UsageError if stdin or stderr is not a terminal.
    """
    from iolab.base.errors import UsageError

    if not deleted:
        say(f"nothing was kept before {_when(moment)}")
        return
    say(f"{'deletes' if yes else 'would delete'} what was kept before {_when(moment)}:")
    for name in dict.fromkeys(row[0] for row in deleted):
        spans = (
            f"{lasting(max(0, until - first) // _SECOND)} by {tier}"
            for statistic, tier, first, until in deleted
            if statistic == name
        )
        say(f"  {name}: {', '.join(spans)}")
    if yes:
        return
    if not (sys.stdin.isatty() and on_terminal()):
        raise UsageError(
            "nothing was deleted: stdin or stderr is not a terminal",
            where="keep prune",
            hint="--yes deletes without asking",
        )
    if not click.confirm("Delete it?", err=True):
        raise click.Abort


@command.command()
@_directory
@_statistics(required=True)
@format_option("text", "json")
def drop(directory: Path, statistics: tuple[str, ...], style: str) -> None:
    """Stop keeping statistics, and delete their data."""
    from iolab.recordings.ask.kept.manage import drop as dropped

    _print_change(dropped(directory, statistics), style)


@command.command()
@_directory
@click.option(
    "--bytes",
    "size",
    metavar="SIZE",
    help="All kept statistics together may take so much, such as 2g; 'none' for no limit.",
)
@click.option(
    "--cpu",
    "share",
    metavar="PERCENT",
    help="Of all CPU time, over a minute, such as 5%; 'none' for no limit.",
)
@click.option(
    "--for",
    "ages",
    metavar="TIER=TIME",
    multiple=True,
    help="How long sums by the second, minute, hour stay: 1s=7d, 1m=14d, 1h=90d; repeatable.",
)
@format_option("text", "json")
def limits(
    directory: Path, size: str | None, share: str | None, ages: tuple[str, ...], style: str
) -> None:
    """Show the limits of size and age of kept statistics; with options, change them.

    Data older than a tier is deleted. Beyond a limit, statistics are suspended one after another
    until iolab keep resume.
    """
    from iolab.recordings.ask.kept.manage import Wanted, limit, list_kept
    from iolab.recordings.ask.kept.manage import limits as held

    changes: Wanted = {}
    if size is not None:
        changes["bytes"] = None if size == "none" else limit_of(size, "--bytes")
    if share is not None:
        changes["cpu_share"] = None if share == "none" else _share(share)
    if ages:
        changes["retention"] = dict(_age(words) for words in ages)
    state = limit(directory, changes) if changes else held(directory)
    if style == "json":
        tell_json({"schema": 1, "kind": "keep-limits", **state})
        return
    _show_limits(state)
    if state["pending"]:
        say("note: the recorder has not taken it up yet")
    if changes and any(row["state"] == "suspended" for row in list_kept(directory)):
        say(
            f"note: suspended statistics stay suspended: iolab keep resume {directory} resumes them"
        )


def _share(text: str) -> float:
    from iolab.base.errors import UsageError
    from iolab.base.units import parse_quantity

    try:
        return parse_quantity(text if text.strip().endswith("%") else f"{text}%", "share")
    except UsageError as error:
        raise UsageError(
            error.message, where="--cpu", hint="a share of all CPU time, such as 5%, or none"
        ) from None


def _age(words: str) -> tuple[str, int]:
    tier, _, age = words.partition("=")
    return tier.strip(), round(seconds_of(age, "--for"))


def _show_limits(found: dict[str, Any]) -> None:
    from iolab.base.units import format_number, format_quantity

    size, share = found["bytes"], found["cpu_share"]
    used = format_quantity(found["used_bytes"], "B", 3)
    lines = [
        ("size", f"{used} of {'any size' if size is None else format_quantity(size, 'B', 3)}"),
        (
            "CPU",
            "any"
            if share is None
            else f"{format_number(share * 100, 3)} % of all CPU time, over a minute",
        ),
        *((tier, lasting(seconds)) for tier, seconds in found["retention"].items()),
    ]
    for name, words in lines:
        tell(f"{name:4}  {words}")


def _print_change(rows: Rows, style: str) -> None:
    if any(row["state"] == "pending" for row in rows):
        say("note: the recorder has not applied it yet; iolab keep list shows when it has")
    _show(rows, style)


def _show(rows: Rows, style: str) -> None:
    if style == "json":
        tell_json({"schema": 1, "kind": "kept", "statistics": list(rows)})
        return
    if not rows:
        say("nothing is kept; iolab keep add DIR STATISTIC begins")
        return
    table = [
        ("statistic", "state", "since", "size", "CPU", "rows", "1s", "1m", "1h"),
        *map(_line, rows),
    ]
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    for line in table:
        tell(
            "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        )
    for row in rows:
        if row["why"]:
            tell(f"{row['statistic']}: {row['why']}")
        for first, until in row["gaps"]:
            tell(
                f"{row['statistic']}: not kept from {_when(first)} to {_when(until) if until is not None else 'now'}"
            )


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    from iolab.base.units import format_quantity

    return (
        row["statistic"],
        row["state"],
        "-" if row["since_ns"] is None else _when(row["since_ns"]),
        format_quantity(row["bytes"], "B", 3),
        format_quantity(row["cpu_ns"] / 1e9, "s", 3),
        str(row["rows"]),
        *(_length(tier) for tier in row["tiers"]),
    )


def _length(tier: dict[str, Any]) -> str:
    """How far back a tier goes."""
    if tier["first_ns"] is None:
        return "-"
    return lasting((tier["until_ns"] - tier["first_ns"]) // _SECOND)


def _when(ns: int) -> str:
    # a trace's own clock counts from its start
    return (
        f"{ns / 1e9:g} s"
        if ns < 10**17
        else f"{datetime.fromtimestamp(ns // _SECOND, UTC):%Y-%m-%dT%H:%M:%S}Z"
    )
