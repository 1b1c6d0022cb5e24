# SPDX-License-Identifier: Apache-2.0
"""How a load is started: on the host of the target, or on client hosts (`clients.ClientLaunch`)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iolab.base.files import write_atomically
from iolab.hosts.base.host import Host, Process

from ...workloads.base import Job
from ..progress import Status
from .waiting import KernelWait, Wait

COMMAND_FILE = "command.txt"
STDOUT_FILE = "stdout.txt"
STDERR_FILE = "stderr.txt"


class Launch(Protocol):
    """A load that is ready to be started, once.

    Attributes:
        limit: seconds after which the load hangs and is ended. begins: monotonic second at which
        the load's own programs begin, known after `start`; None: as soon as they are started.
    """

    begins: float | None

    @property
    def limit(self) -> float:
        """See the class."""

    def start(self, directory: Path, prefix: str, environment: Mapping[str, str]) -> Process:
        """Start it. Its files and output go to `directory`, those of output after `prefix`.

        RunError if it cannot be started, OSError if the files cannot be written.
        """

    def facts(self) -> Mapping[str, Any]:
        """What the journal says of the start, besides the process."""

    def kernel_wait(self, process: Process) -> Wait:
        """Watches whether the load waits in the kernel."""

    def outcome(self, exit_code: int | None) -> tuple[Status, str]:
        """Status and reason of a load that iolab did not end."""


class HostLaunch:
    """A load of one program, on one host."""

    def __init__(self, host: Host, job: Job, environment: Mapping[str, str] | None = None) -> None:
        """`environment`: variables of the load, besides those of `start`."""
        self._host, self._job, self._environment = host, job, environment or {}
        self.begins: float | None = None
        self._errors = Path(STDERR_FILE)

    @property
    def limit(self) -> float:
        """The job's."""
        return self._job.limit

    def start(self, directory: Path, prefix: str, environment: Mapping[str, str]) -> Process:
        """Write the job's files, then start its command."""
        self._errors = directory / f"{prefix}{STDERR_FILE}"
        return start_job(
            self._host, self._job, directory, prefix, {**self._environment, **environment}
        )

    def facts(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def kernel_wait(self, process: Process) -> Wait:
        """Of the process and its children."""
        return KernelWait(self._host, process.pid)

    def outcome(self, exit_code: int | None) -> tuple[Status, str]:
        """By the exit code, with the last line of standard error."""
        return (
            ("failed", f"exit code {exit_code}{last_line(self._errors)}")
            if exit_code
            else ("finished", "")
        )


def start_job(
    host: Host,
    job: Job,
    directory: Path,
    prefix: str,
    environment: Mapping[str, str],
) -> Process:
    """Write a job's files into `directory` and start its command there. RunError, OSError."""
    for name, text in job.files.items():
        write_atomically(directory / name, text, durable=False)
    write_atomically(
        directory / f"{prefix}{COMMAND_FILE}", shlex.join(job.command) + "\n", durable=False
    )
    return host.start(
        job.command,
        cwd=directory if job.directory is None else Path(job.directory),
        stdout=(directory / f"{prefix}{STDOUT_FILE}").absolute(),
        stderr=(directory / f"{prefix}{STDERR_FILE}").absolute(),
        environment=environment,
        folders=job.folders,
    )


def last_line(path: Path) -> str:
    """`: ` and the last line of a file, for a message; empty if there is none."""
    lines: Sequence[str] = ()
    try:
        lines = [line.strip() for line in path.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    last = next((line for line in reversed(lines) if line), "")
    return f": {last[:200]}" if last else ""
