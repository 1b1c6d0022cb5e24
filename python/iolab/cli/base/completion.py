# SPDX-License-Identifier: Apache-2.0
"""`iolab completion`: the script that lets a shell complete commands, options and names, and where
those names come from."""

from __future__ import annotations

from pathlib import Path

import click

from .output import tell

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_IOLAB_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell: commands, options, and names of statistics, metrics,
    devices and rigs.

    A package installs it below share/; in an environment of Python it is loaded by the shell's
    start file.
    """
    tell(*script(shell).strip("\n").split("\n"))


def script(shell: str) -> str:
    """The script for bash (4.4 and later), zsh or fish. It asks `iolab` itself for what fits."""
    from click.shell_completion import get_completion_class

    from ..main import group

    kind = get_completion_class(shell)
    assert kind is not None
    # not by source(), which starts a bash to look at its version: a package is built where none may
    # be
    completion = kind(group, {}, "iolab", VARIABLE)
    return str(completion.source_template % completion.source_vars())


def complete_metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics; behind `@` those of the second one of a matrix."""
    from ..catalog import metric_rows

    first, at, last = incomplete.rpartition("@")
    return [f"{first}{at}{row['name']}" for row in metric_rows() if row["name"].startswith(last)]


def complete_statistics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of statistics; behind `[` the fields that one is broken down by."""
    from iolab.recordings.ask.language.catalogue import CATALOGUE

    name, bracket, field = incomplete.rpartition("[")
    if not bracket:
        return [statistic for statistic in CATALOGUE if statistic.startswith(incomplete)]
    entry = CATALOGUE.get(name.partition("[")[0])
    return [
        f"{name}[{breakdown}]"
        for breakdown in (entry.breakdowns if entry else ())
        if breakdown.startswith(field)
    ]


def complete_devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the block devices of this machine, `sda`, or `/dev/sda` where that is what was
    begun."""
    before = "/dev/" if incomplete.startswith("/") else ""
    return [
        f"{before}{path.name}"
        for path in sorted(Path("/sys/class/block").glob("*"))
        if f"{before}{path.name}".startswith(incomplete)
    ]


def complete_rigs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Rigs that can be built."""
    from iolab.hosts.rigs.recipe import FILE, places

    return sorted(
        {
            path.parent.name
            for place in places()
            for path in place.glob(f"*/{FILE}")
            if path.parent.name.startswith(incomplete)
        }
    )
