# SPDX-License-Identifier: Apache-2.0
"""Commands of targets: run to their end, their complaints as errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed, Host

PATIENCE = 600.0
"""Seconds that writing back, unmounting or mkfs may take: large devices are slow at all three."""


def do(
    host: Host,
    command: Sequence[str],
    *,
    where: str | None = None,
    hint: str | None = None,
    timeout: float = PATIENCE,
) -> Completed:
    """Run a command; RunError with what it said where it fails."""
    done = host.run(command, timeout=timeout)
    if done.exit_code:
        raise RunError(f"'{command[0]}' failed{_words(done)}", where=where, hint=hint)
    return done


def try_command(host: Host, command: Sequence[str], *, timeout: float = PATIENCE) -> bool:
    """Whether a command could be run and succeeded."""
    try:
        return host.run(command, timeout=timeout).exit_code == 0
    except RunError:
        return False


def pause(host: Host, seconds: float = 0.1) -> None:
    """Wait a little, until a process that holds a device has released it."""
    try_command(host, ["sleep", f"{seconds:g}"])


def refusals(*checks: Callable[[], object]) -> list[str]:
    """What each of some checks refuses by a RunError, in words, once each; all of them are made."""
    reasons: dict[str, None] = {}
    for check in checks:
        try:
            check()
        except (RunError, OSError) as error:
            reasons[str(error)] = None
    return list(reasons)


def need_root(host: Host, what: str) -> None:
    """RunError where commands don't run as root."""
    answer = host.run(["id", "-u"])
    if answer.stdout.strip() != "0":
        raise RunError(
            f"{what} needs root",
            hint='call iolab with sudo, or measure in a directory (target.kind = "directory")',
        )


def interpreter(host: Host) -> str | None:
    """A Python on the host, for the few questions that no command answers; None where there is
    none."""
    import sys

    return host.which(sys.executable) or host.which("python3")


def _words(done: Completed) -> str:
    lines = [
        line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()
    ]
    return (
        f" with exit code {done.exit_code}: {'; '.join(lines[:3])[:300]}"
        if lines
        else f" with exit code {done.exit_code}"
    )
