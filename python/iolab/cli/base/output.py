# SPDX-License-Identifier: Apache-2.0
"""Output of all commands: data to stdout, messages to stderr.

Names from other people's files may contain control sequences (cursor, title, writing direction).
They are escaped on a terminal, and in JSON, text, Markdown and benchstat's format everywhere. CSV
is exact unless it is written to a terminal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from iolab.base.untrusted_text import json_text, visible, visible_json, visible_lines, writable

_READ_BY_PEOPLE = ("text", "markdown", "benchstat")
"""Formats that spell what others named wherever they go."""


def tell(*lines: str) -> None:
    """Lines to stdout, for people; whatever others named in one, it stays one."""
    click.echo("\n".join(map(visible, lines)))


def tell_as(style: str, text: str) -> None:
    """What is written in a format to stdout, its line ends with it; `csv` is exact unless a
    terminal shows it."""
    if style == "json":
        text = visible_json(text)
    elif style in _READ_BY_PEOPLE or (sys.stdout is not None and sys.stdout.isatty()):
        text = visible_lines(text)
    # click would leave out what looks like a colour
    click.echo(writable(text), nl=False, color=True)


def tell_json(data: Mapping[str, Any]) -> None:
    """A document to stdout."""
    tell_as("json", json_text(data, indent=1) + "\n")


def tell_drawn(lines: Sequence[str], *, coloured: bool | None = None) -> None:
    """A map to stdout, with the colours it was drawn in; `coloured` None leaves them out where no
    terminal shows it. Who draws it spells what others named."""
    click.echo("\n".join(lines), color=coloured)


def say(*lines: str) -> None:
    """Lines of words to stderr, as `speaking` lets them be written."""
    with speaking():
        click.echo("\n".join(map(visible, lines)), err=True)


def redraw(text: str) -> None:
    """Words to stderr, which is a terminal, over those that were drawn before."""
    with speaking():
        sys.stderr.write(f"\r\033[K{visible(text)}")
        sys.stderr.flush()


@contextlib.contextmanager
def steps(every_s: float = 5.0) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports the step that begins.

    A terminal has one line, which is redrawn. Elsewhere a line is written to stderr, at most one in
    `every_s` seconds.
    """
    on_tty = sys.stderr is not None and sys.stderr.isatty()
    last = time.monotonic()

    def begin(step: str) -> None:
        nonlocal last
        if on_tty:
            redraw(step)
        elif time.monotonic() - last >= every_s:
            last = time.monotonic()
            say(step)

    try:
        yield begin
    finally:
        if on_tty:
            redraw("")


@contextlib.contextmanager
def speaking() -> Iterator[None]:
    """Ignore errors of writing to stderr, such as a closed pipe or a full disk."""
    try:
        yield
    except OSError:
        hush(sys.stderr.fileno())


def hush(descriptor: int) -> None:
    """Discard what is buffered for a descriptor, and what is written to it from now on."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def on_terminal() -> bool:
    """Whether stderr is a terminal; it isn't where it is closed."""
    return sys.stderr is not None and sys.stderr.isatty()
