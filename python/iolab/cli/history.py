# SPDX-License-Identifier: Apache-2.0
"""`iolab history`: results over time, and since when they changed."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH, format_option
from .output import on_terminal, redraw, say, tell, tell_as

DEFAULT = Path("history")
_HISTORY = click.option(
    "--history",
    "directory",
    type=PATH,
    default=DEFAULT,
    show_default=True,
    metavar="DIR",
    help="The history's directory.",
)


@click.group("history")
def command() -> None:
    """Results over time: add a results directory after each measurement, and see since when values
    changed.

    The history lists results directories, and indexes their values. Change points are searched in
    every series (a cell of a variant), with false discoveries controlled over all of them.
    """


@command.command()
@click.argument("path", metavar="RESULTS", type=PATH)
@_HISTORY
@click.option("--revision", default="", help="What was measured: a commit, a version.")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Any fact to keep; repeatable."
)
def add(path: Path, directory: Path, revision: str, tags: tuple[str, ...]) -> None:
    """Add a results directory; the history is made where there is none."""
    from ..errors import UsageError
    from ..history.store import History

    pairs = {}
    for text in tags:
        name, equals, value = (word.strip() for word in text.partition("="))
        if not equals or not name:
            raise UsageError(f"'{text}' is not NAME=VALUE", where="--tag")
        pairs[name] = value
    history = History(directory, is_new=True)
    entry = history.add(path, revision=revision, tags=pairs)
    say(f"added {path} to {directory} as {entry.number}, of {len(history.entries)} results")


@command.command("list")
@_HISTORY
@format_option("text", "json")
def list_entries(directory: Path, style: str) -> None:
    """List the results of a history in order of time."""
    from ..history.render import list_json, list_text
    from ..history.store import History

    history = History(directory)
    tell_as(style, list_json(history) if style == "json" else list_text(history))


@command.command()
@_HISTORY
@click.option(
    "--metric", "metrics", multiple=True, help="A metric; repeatable. Default: headline ones."
)
@click.option(
    "--where", multiple=True, metavar="FACTOR=LEVEL[,LEVEL]", help="Only these series; repeatable."
)
@format_option("text", "json", "csv")
def show(directory: Path, metrics: tuple[str, ...], where: tuple[str, ...], style: str) -> None:
    """Show every series with its changes: by how much, between which revisions, and what else
    changed then."""
    from ..compare.axes import parse_where
    from ..errors import ResultsError
    from ..history.changes import find_changes, selected_metrics
    from ..history.render import render
    from ..history.store import History

    history = History(directory)
    if not history.entries:
        raise ResultsError("has no results", where=directory, hint="iolab history add RESULTS")
    selected = selected_metrics(history, metrics)
    courses = find_changes(history, selected, where=parse_where(where))
    tell_as(style, render(history, courses, style))


@command.command()
@_HISTORY
def rebuild(directory: Path) -> int:
    """Rebuild the index from the results. The values of missing results stay. Exit code 1 where
    results can't be read."""
    from ..history.store import History

    history = History(directory)
    problems = history.rebuild(_draw)
    say(*problems)
    tell(f"{len(history.entries) - len(problems)} of {len(history.entries)} results read")
    return 1 if problems else 0


def _draw(count: int, total: int) -> None:
    if on_terminal():
        redraw("" if count == total else f"reading results: {count} of {total}")
