# SPDX-License-Identifier: Apache-2.0
"""What a recorder works with, and what comes of it."""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..clock import Clock
from ..errors import IolabError
from .command import Recorded
from .control import Client, Control
from .intake import Sink
from .launch import Launcher
from .status import Status


class Heard(Protocol):
    """Whoever watches."""

    def begin(self, hello: Mapping[str, Any]) -> None:
        """The first probe is at work; `hello` is what it said."""
        ...

    def second(self, status: Status, events_per_s: float) -> None:
        """A second passed."""
        ...

    def notice(self, text: str) -> None:
        """Something that a user should know."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a recording ended.

    Attributes:
        reason: `duration`, `command`, `stop` (asked by a user or a word), `failure`.
        failure: why it ended before its time, None where it did not. exit_code: the command's, None
        without one. seconds: how long was recorded.
    """

    status: Status
    reason: str
    failure: IolabError | None
    exit_code: int | None
    seconds: float


@dataclass
class Parts:
    """What a recorder works with.

    Attributes:
        launcher: starts probes. open_sink: called with the first hello: the writer, made only once
        it is known that there is something
            to write. clock, wait: time; `wait(files, seconds)` returns once one of the files is
            readable, or the seconds passed.
        cpu_ns: CPU time of this process so far. control: makes the control socket; None for none.
        settled: called once the command was started. cpus: of this machine. cuts: requested and not
        done yet. far: whether the probe is on another machine. restarted: called with the hello of each
        probe after the first.
    """

    launcher: Launcher
    open_sink: Callable[[Mapping[str, Any]], Sink]
    clock: Clock
    heard: Heard
    directory: Path
    cpu_ns: Callable[[], int]
    wait: Callable[[Sequence[int], float], None]
    control: Callable[[], Control] | None = None
    command: Recorded | None = None
    settled: Callable[[], object] = lambda: None
    cpus: int = 1
    far: bool = False
    restarted: Callable[[Mapping[str, Any]], object] = lambda hello: None
    cuts: list[tuple[int, Client]] = field(default_factory=list)


def wait_readable(files: Sequence[int], seconds: float) -> None:
    """Until one of the files is readable, at most so long."""
    poller = select.poll()
    for number in files:
        poller.register(number, select.POLLIN)
    poller.poll(max(seconds, 0.0) * 1000)
