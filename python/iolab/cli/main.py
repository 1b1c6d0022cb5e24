# SPDX-License-Identifier: Apache-2.0
"""`iolab`: the command line. The only package that prints and exits.

Data goes to stdout, messages to stderr. `EXIT_CODES` lists the exit codes. A reader that closes the
pipe early (head, less) is not an error: 0.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Any

import click

from .base.output import hush, say, tell
from .examples import add_examples

COMMANDS = {
    "run": ("study.command", "make", "Run a study: every cell in every block, with its monitors."),
    "ab": ("study.ab", "make", "Build versions of OpenZFS, run a study on them, and report."),
    "record": (
        "record.command",
        "make",
        "Record every I/O in the kernel, with device, file and process.",
    ),
    "live": ("record.live", "make", "Record I/O and show it live in a browser."),
    "import": (
        "results.importing",
        "make",
        "Import fio and iostat files, a published table, or traces.",
    ),
    "show": (
        "results.show",
        "look",
        "Summarize results, a recording or a trace: runs, verdicts, metrics, I/Os.",
    ),
    "compare": (
        "results.compare",
        "look",
        "Compare every variant with the baseline, with intervals and tests.",
    ),
    "check": (
        "results.check",
        "look",
        "Check changes against rules, for CI: each passes, fails or is inconclusive.",
    ),
    "history": (
        "results.history",
        "look",
        "Follow results over time: add them, and see since when values changed.",
    ),
    "report": (
        "results.report",
        "look",
        "Write the report as one HTML file, or its charts as files.",
    ),
    "heatmap": ("query.heatmap", "look", "Draw a heat map of latency, offset or size over time."),
    "query": (
        "query.command",
        "look",
        "Query a statistic of a recording or trace, over time and by key.",
    ),
    "who": (
        "query.who",
        "look",
        "Find which processes, files, devices and clients slow I/Os belong to.",
    ),
    "ios": ("query.ios", "look", "List single I/Os of a recording, such as the slowest ones."),
    "odd": ("query.odd", "look", "Find what differs most from the minutes before, and since when."),
    "view": ("results.view", "look", "Serve recordings and traces to a browser and to programs."),
    "keep": ("record.keep", "tend", "Keep statistics of a recording longer than its events."),
    "verify": (
        "results.verify",
        "tend",
        "Check the files of results or a recording for damage; rebuild what can be derived.",
    ),
    "archive": (
        "archive.command",
        "tend",
        "Push recordings into Iceberg tables, and fetch from them.",
    ),
    "rig": (
        "study.rig",
        "tend",
        "Build, start and stop disposable virtual machines to measure on.",
    ),
    "doctor": (
        "doctor",
        "tend",
        "Check what this machine can do, and what killed processes left on it.",
    ),
    "completion": ("base.completion", "tend", "Print the completion script of bash, zsh or fish."),
    "catalog": (
        "catalog",
        "tend",
        "List documents, terms (glossary), metrics, statistics, units, formats, gates...",
    ),
}
"""Command to its module in `cli`, its heading, and its summary, so that `--help` loads no command."""

HEADINGS = {"make": "Measure", "look": "Analyze", "tend": "Maintain"}

EXIT_CODES = {
    0: "done",
    1: "failed",
    2: "wrong usage",
    3: "unusable file",
    4: "wrong study",
    5: "failed run",
    6: "failed rule",
    7: "inconclusive rule",
    130: "interrupted",
}


class _PipeClosedError(Exception):
    """A pipe was closed by its reader. No OSError: click would end the program on it with an exit
    code of its own."""


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
        add_examples(command, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from None

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
        from .base.installation import describe

        tell(describe())
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version, the commit and the build of the probe.",
)
def group(debug: bool) -> None:
    """A storage performance laboratory: A/B studies of real storage under real load, judged,
    compared and reported."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    # a command makes many objects that live until its end and few cycles: a collection each 700
    # objects costs up to 15 % of a report
    gc.set_threshold(100_000)
    sys.exit(run(sys.argv[1:] if args is None else args))


def run(args: list[str]) -> int:
    """Run the command line; returns the exit code. An error becomes a line on stderr, or more of a
    study, unless `--debug` is given."""
    from iolab.base.errors import IolabError, StudyError

    debug = "--debug" in args
    try:
        result: Any = group.main(
            args=[arg for arg in args if arg != "--debug"], prog_name="iolab", standalone_mode=False
        )
        code = result if isinstance(result, int) else 0
        _flush()
        return code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        tell(*error.message.split("\n"))
        return 0
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        where = context.command_path if context else "iolab"
        say(*f"{where}: {error.format_message()} (see --help)".split("\n"))
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
        from .base.path_kind import suggest

        words = f"iolab: {suggest(args, error) or error}"
        say(*(words.split("\n") if isinstance(error, StudyError) else [words]))
        return error.exit_code
    except OSError as error:
        if debug or error.errno is None:
            raise
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        say(f"iolab: {place}{error.strerror}")
        return 1


def _flush() -> None:
    """Write buffered output here, not when the interpreter ends. A closed pipe does not change the
    exit code."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_gone()


def _reader_gone() -> bool:
    """Whether the reader of stdout (head, less) closed its pipe, which is not a failure.

    A closed stdout or stderr is replaced by /dev/null. A closed stderr alone says nothing about the
    command.
    """
    closed = [
        stream
        for stream in (sys.stdout, sys.stderr)
        if stream is not None and _hung_up(stream.fileno())
    ]
    for stream in closed:
        hush(stream.fileno())
    return sys.stdout in closed


def _hung_up(descriptor: int) -> bool:
    watch = select.poll()
    watch.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
