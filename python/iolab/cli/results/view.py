# SPDX-License-Identifier: Apache-2.0
"""`iolab view`: studies, histories, recordings and traces in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..base.completion import complete_statistics
from ..base.options import PATH, names_option
from ..base.output import say, tell

if TYPE_CHECKING:
    from iolab.output.server.http.serve import Listener

PORT = 8750

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def serving_options(function: Decorated) -> Decorated:
    """Options of what serves: where it listens, its token, what Prometheus gets."""
    for option in (
        names_option,
        click.option(
            "--port",
            type=int,
            help=f"Port to listen on, 0 for any that is free. Default: {PORT}, or any where it is taken.",
        ),
        click.option(
            "--listen",
            "address",
            metavar="ADDRESS",
            help="Address or name to listen on. Default: 127.0.0.1.",
        ),
        click.option(
            "--metric",
            "metrics",
            metavar="STATISTIC",
            multiple=True,
            shell_complete=complete_statistics,
            help="Export this statistic to Prometheus at /metrics; repeatable.",
        ),
        click.option(
            "--token-file",
            type=PATH,
            metavar="FILE",
            help="File that keeps the token, so that it is the same next time; created if missing.",
        ),
        click.option(
            "--alert-commands",
            type=PATH,
            metavar="FILE",
            help='Commands that alerts may run, in TOML, a line each: page = ["/usr/local/bin/page", "me"]. '
            "Without it an alert writes to the log and keeps statistics, and runs nothing.",
        ),
    ):
        function = option(function)
    return function


@click.command("view")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@serving_options
def command(
    paths: tuple[Path, ...],
    port: int | None,
    address: str | None,
    metrics: tuple[str, ...],
    token_file: Path | None,
    alert_commands: Path | None,
) -> None:
    """Show results, histories, recordings and traces in a browser, and to programs.

    PATH may also be a folder: everything in it is served, and what is added later. The start page
    lists studies with their headlines and reports, histories with their changes, and recordings. An
    archive (archive:URL) has a page of its hosts over time.

    Events are not changed; statistics that are kept of a recording can be, from the page.
    Worksheets and alerts are saved in the user's own directory.

    Prints one address with its token; Ctrl-C ends it. A recording that grows is followed.
    """
    from iolab.output.server.alerts.commands import read_commands
    from iolab.output.server.base.store import Store
    from iolab.output.server.http import page
    from iolab.output.server.http.actions import state_of_user
    from iolab.output.server.http.serve import serve

    page.check()
    state = state_of_user(Store(paths), read_commands(alert_commands))
    listener = listening(address, port, token_file)
    serve(state, listener, metrics=metrics, ready=lambda: announce(listener))


def listening(address: str | None, port: int | None, token_file: Path | None) -> Listener:
    """A socket that listens; without a requested port, any where the usual one is taken."""
    from iolab.base.errors import RunError
    from iolab.output.server.http.serve import LOCAL, listen

    token = None if token_file is None else _token(token_file)
    try:
        return listen(address or LOCAL, PORT if port is None else port, token=token)
    except RunError:
        if port is not None:
            raise
        return listen(address or LOCAL, 0, token=token)


def announce(listener: Listener) -> None:
    """The address, on standard output."""
    if listener.warning:
        say(f"warning: {listener.warning}")
    tell(listener.url)
    say("Ctrl-C ends it")


def _token(path: Path) -> str:
    """The token in a file that only the user can read."""
    import secrets

    from iolab.base.errors import UsageError
    from iolab.base.files import open_for_writing
    from iolab.output.server.alerts.commands import owners

    try:
        number = open_for_writing(path, os.O_RDWR | os.O_CREAT, mode=0o600)
        with os.fdopen(number, "r+", encoding="utf-8") as file:
            status = os.fstat(number)
            if status.st_uid not in owners():
                raise UsageError(
                    "belongs to somebody else, who may know the token",
                    where=path,
                    hint="name a file of your own",
                )
            if status.st_mode & 0o077:
                raise UsageError("others can read the token", where=path, hint=f"chmod 600 {path}")
            text = file.read(1024).strip()
            if not text:
                text = secrets.token_urlsafe(32)
                file.write(f"{text}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"holds no token: {getattr(error, 'strerror', None) or error}",
            where=path,
            hint="name a regular file of your own, or a path where one can be created",
        ) from None
    if len(text) < 20 or not all(
        letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text
    ):
        raise UsageError(
            "holds no token",
            where=path,
            hint="20 letters or more of a-z, A-Z, 0-9, - and _; or an empty file, for a new one",
        )
    return text
