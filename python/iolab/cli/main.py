"""`iolab`: the command line. The only place that prints and exits.

Data goes to stdout, words to stderr. Exit codes: 0 done; 1 something failed; 2 the command line or what it names is
wrong; 3 a file or results directory can't be used; 4 the study file is wrong; 5 a run failed; 130 interrupted. A reader that closes the
pipe early (head, less) is no failure: 0.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import select
import sys
from collections.abc import Iterator
from typing import Any

import click

from .output import hush, say, tell

COMMANDS = {
    "run": ("run", "make", "Do a study: every cell of it, block by block, with what watches it."),
    "record": ("record", "make", "Record every I/O from the kernel: by device, file and process."),
    "live": ("live", "make", "Record, and show it in a browser while it comes."),
    "import": ("importing", "make", "Import a tree of fio and iostat files, or a published table."),
    "show": ("show", "look", "Show what is in it: runs, verdicts with their reasons, metrics, environment."),
    "compare": ("compare", "look", "Compare every variant with the baseline, with intervals and tests."),
    "report": ("report", "look", "Write the report as one HTML file, or its charts as files."),
    "heatmap": ("heatmap", "look", "Draw latency, offset or size over time: in the terminal, as picture or page."),
    "query": ("query", "look", "Ask a trace or recording for a statistic: a number over time, by whom, or a map."),
    "view": ("view", "look", "Show recordings and traces in a browser, and to programs."),
    "keep": ("keep", "tend", "Keep statistics of a recording beyond their events: list, add, pause, drop, limits..."),
    "verify": ("verify", "tend", "Check that every file of results or a recording is what was written; repair what can be derived."),
    "rig": ("rig", "tend", "Build, start and end throw-away machines to measure on."),
    "doctor": ("doctor", "tend", "Say what this machine can do, and what was left on it."),
    "catalog": ("catalog", "tend", "List what can be named: metrics, units, formats, gates, targets..."),
}
"""Command to its module in `cli`, the heading it stands under, and what it does, so that `--help` loads no command."""

HEADINGS = {"make": "Make", "look": "Look (PATH is what run or import made; show and heatmap take traces of I/O)", "tend": "Tend"}


class _PipeClosedError(Exception):
    """A pipe was closed by its reader. No OSError: click would end the program on it with an exit code of its own."""


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeClosedError from error


class _Commands(click.Group):
    """Loads a command's module when it is named, so that `--help` costs nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f".{COMMANDS[name][0]}", __package__)
        command: click.Command = module.command
        return command

    def make_context(self, *words: Any, **more: Any) -> click.Context:
        with _telling():
            return super().make_context(*words, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _telling():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, title in HEADINGS.items():
            rows = [(name, does) for name, (_, place, does) in COMMANDS.items() if place == heading]
            with formatter.section(title):
                formatter.write_dl(rows)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from .. import __version__

        tell(f"iolab {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
             epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 unusable file, 4 wrong study, 5 failed run, 130 interrupted.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def group(debug: bool) -> None:
    """A storage performance laboratory: A/B studies of real storage under real load, judged, compared and reported."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    # a command makes many objects that live until its end and few cycles: a collection each 700 objects costs up to 15 % of a report
    gc.set_threshold(100_000)
    sys.exit(run(sys.argv[1:] if args is None else args))


def run(args: list[str]) -> int:
    """Run the command line; returns the exit code. An error becomes a line on stderr, or more of a study, unless `--debug` is given."""
    from ..errors import IolabError, StudyError

    debug = "--debug" in args
    try:
        result: Any = group.main(args=[arg for arg in args if arg != "--debug"], prog_name="iolab", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        _flush()
        return code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        where = f"{error.ctx.command_path}: " if isinstance(error, click.UsageError) and error.ctx else ""
        say(*f"iolab: {where}{error.format_message()} (see --help)".replace("iolab: iolab ", "iolab ").split("\n"))
        return 2
    except (KeyboardInterrupt, click.Abort):
        say("iolab: interrupted")
        return 130
    except (_PipeClosedError, BrokenPipeError) as error:
        if not _reader_gone():
            # it was another pipe than the one that we print to
            raise (error.__cause__ or error) from None
        return 0
    except IolabError as error:
        if debug:
            raise
        words = f"iolab: {error}"
        say(*(words.split("\n") if isinstance(error, StudyError) else [words]))
        return error.exit_code
    except OSError as error:
        if debug or error.filename is None:
            raise
        say(f"iolab: {error.filename}: {error.strerror}")
        return 1


def _flush() -> None:
    """What is still held back is written here, not by the interpreter as it ends; a reader that is gone doesn't change the exit code."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_gone()


def _reader_gone() -> bool:
    """Whether who read what is printed (head, less) has seen enough. Nothing is left to say to it then, and that is no failure.
    Where nobody reads the words to stderr either, they are for nobody, but that tells nothing of what was to be done."""
    gone = [stream for stream in (sys.stdout, sys.stderr) if stream is not None and _hung_up(stream.fileno())]
    for stream in gone:
        hush(stream.fileno())
    return sys.stdout in gone


def _hung_up(descriptor: int) -> bool:
    watch = select.poll()
    watch.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
