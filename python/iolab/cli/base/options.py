# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and how results are opened by them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.shell_completion import CompletionItem

from .output import on_terminal, redraw, say

if TYPE_CHECKING:
    from iolab.api import Opened, OpenedSeveral

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)


def group_options(**kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of a command that it gets as objects: of a parameter's name, the dataclass
    `module:Class` below `iolab`, with a field for each option. The class is imported when the
    command runs."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **values: Any) -> Any:
            for name, kind in kinds.items():
                module, _, class_name = kind.partition(":")
                group = getattr(importlib.import_module(f"iolab.{module}"), class_name)
                names = [field.name for field in dataclasses.fields(group) if field.name in values]
                values[name] = group(**{name: values.pop(name) for name in names})
            return function(*arguments, **values)

        return call

    return decorate


@dataclass(frozen=True)
class Span:
    """`--from` and `--to`, as written."""

    start: str | None = None
    end: str | None = None


def span_options(function: Decorated) -> Decorated:
    """`--from` and `--to`."""
    function = click.option(
        "--to", "end", metavar="WHEN", help="End of the time range, exclusive; written as --from."
    )(function)
    return click.option(
        "--from",
        "start",
        metavar="WHEN",
        help="30s (after the start), -10m (before the end) or 2026-03-01T12:00:05 (UTC).",
    )(function)


columns_option = click.option(
    "--columns",
    metavar="FIELDS",
    help="What the columns of a table hold: 'time:us,latency:ns,offset:bytes,-,op'.",
)


class ShippedPath(click.Path):
    """A path; if it does not exist, the file of that name in this installation:
    `studies/quickstart.toml`. `pattern` selects the names that a shell completes."""

    def __init__(self, pattern: str) -> None:
        super().__init__(path_type=Path)
        self._pattern = pattern

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if os.path.lexists(path):
            return path
        from .installation import find_shipped

        return find_shipped(path) or path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Files of the directory; if none matches, files of this installation."""
        from .installation import find_shipped

        files = super().shell_complete(ctx, param, incomplete)
        directory, beginning = os.path.split(incomplete)
        suffix = "" if incomplete else Path(self._pattern).suffix
        with contextlib.suppress(OSError):
            if any(
                path.name.startswith(beginning) and path.name.endswith(suffix)
                for path in Path(directory or ".").iterdir()
            ):
                return files
        base = find_shipped(Path(self._pattern).parent)
        paths = sorted(base.glob(Path(self._pattern).name)) if base else []
        names = [str(Path(self._pattern).with_name(path.name)) for path in paths]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)] or files


STUDY_PATH = ShippedPath("studies/*.toml")
TABLE_PATH = ShippedPath("studies/published/*.csv")


def several_options(function: Decorated) -> Decorated:
    """`--as` and `--match`: how several results directories are arms."""
    function = click.option(
        "--match",
        type=click.Choice(["variant"]),
        help="Of several results, compare each variant with the variant of the same name. Default "
        "where a study has several variants.",
    )(function)
    return click.option(
        "--as",
        "names",
        multiple=True,
        metavar="ARM=RESULTS[,ARM=RESULTS]",
        help="Names of the arms of several results. Results of the same name repeat an arm. Default: "
        "the names of the directories.",
    )(function)


def output_option(help_text: str, *, required: bool = True) -> Callable[[Decorated], Decorated]:
    """`-o`, `--output`."""
    return click.option("-o", "--output", type=PATH, required=required, help=help_text)


def format_option(*names: str) -> Callable[[Decorated], Decorated]:
    """`--format`, the first name being the default."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(names),
        default=names[0],
        show_default=True,
        help="How to write it; csv and json are unrounded.",
    )


def names_option(function: Decorated) -> Decorated:
    """`--names`: the user's table of names for addresses."""

    def use(context: click.Context, option: click.Parameter, path: Path | None) -> None:
        if path is not None:
            from iolab.recordings.ask.aliases import VARIABLE, host_names

            os.environ[VARIABLE] = str(path)
            host_names.cache_clear()
            host_names()

    return click.option(
        "--names",
        type=PATH,
        expose_value=False,
        callback=use,
        metavar="FILE",
        help="Names of clients, peers and servers: lines ADDRESS=NAME or as in /etc/hosts, which is read as well.",
    )(function)


def open_results(*paths: Path) -> Opened:
    """Open results, or fio results of which each is a variant, with a bar on stderr while evidence
    is read. `-` is a fio result on standard input."""
    from iolab.api import open_results as opened

    return opened(*map(from_standard_input, paths), progress=draw_bar)


def from_standard_input(path: Path) -> Path:
    """The path; of `-`, a file with what standard input has, which goes with the process.

    UsageError where standard input has nothing.
    """
    if str(path) != "-":
        return path
    from iolab.base.errors import UsageError

    if sys.stdin.isatty():
        say("paste what fio printed, then press Enter and Ctrl-D")
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise UsageError("standard input is empty", where="-", hint="fio JOB | iolab show -")
    import atexit
    import shutil
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="iolab-stdin-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    place = directory / "stdin"
    place.write_bytes(data)
    return place


@dataclass(frozen=True)
class Arms:
    """Results, and what `several_options` says of them."""

    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    match: Literal["variant"] | None = None

    def open(self) -> Opened | OpenedSeveral:
        """Several results directories as arms, or what `open_results` takes; UsageError where
        `--match` is given for the latter, and for a name without results."""
        from iolab.api import OpenedSeveral, is_results
        from iolab.api import open_results as opened
        from iolab.base.errors import UsageError
        from iolab.studies.compare.several import parse_names

        names = parse_names(self.names)
        named = [(arm, path) for arm, text in names for path in _expand(text)]
        if named and not self.paths and not any(is_results(path) for _, path in named):
            paths = [path for _, path in named]
            return opened(*paths, arms=named, progress=draw_bar)
        paths = list(self.paths) or [path for _, path in named]
        if not paths:
            raise UsageError("no results are given", hint="name them, such as before/ after/")
        if len(paths) > 1 and any(is_results(path) for path in paths):
            return OpenedSeveral(paths, names, match=self.match, progress=draw_bar)
        if self.names or self.match:
            raise UsageError(
                "names and matches the arms of several results directories",
                where="--as" if self.names else "--match",
                hint="give two or more, or fio results by --as alone: --as before='b*.json'",
            )
        return open_results(*paths)


def _expand(text: str) -> list[Path]:
    """Paths that are meant by the name of an arm; a pattern that no shell expanded is one of files."""
    path = Path(text)
    if os.path.lexists(path):
        return [path]
    anchor = Path(path.anchor)
    return sorted(anchor.glob(str(path.relative_to(anchor)))) or [path]


def draw_bar(done: int, total: int) -> None:
    """A one-line count, on terminals only."""
    if on_terminal():
        redraw("" if done == total else f"reading evidence: {done} of {total} runs")


def command_line() -> list[str]:
    """The command as typed, to be recorded: `iolab` and its arguments."""
    return ["iolab", *sys.argv[1:]]


def seconds_of(text: str, flag: str) -> float:
    """A length of time as users write it, s; UsageError names the flag."""
    from iolab.base.errors import UsageError
    from iolab.base.units import parse_fio_time

    try:
        seconds = parse_fio_time(text)
    except UsageError as error:
        raise UsageError(error.message, where=flag, hint=error.hint) from None
    if seconds <= 0:
        raise UsageError(f"'{text}' is not a time", where=flag)
    return seconds


def limit_of(text: str, flag: str) -> int:
    """A size up to which something is kept, and beyond which it is deleted; UsageError names the
    flag, also where a unit was forgotten."""
    from iolab.base.errors import UsageError
    from iolab.recordings.store.write.writer import SEAL_BYTES

    size = bytes_of(text, flag)
    if text.strip().isdigit() and size < SEAL_BYTES:
        raise UsageError(
            f"'{text}' is {size} bytes, less than a single segment",
            where=flag,
            hint=f"write a unit, such as {text.strip()}g",
        )
    return size


def bytes_of(text: str, flag: str) -> int:
    """A size as users write it; UsageError names the flag."""
    from iolab.base.errors import UsageError
    from iolab.base.units import parse_fio_size

    try:
        return parse_fio_size(text)
    except UsageError as error:
        raise UsageError(error.message, where=flag, hint=error.hint) from None
