# SPDX-License-Identifier: Apache-2.0
"""What a source is to the runner: something that is polled while a run lasts and leaves a file in
its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from iolab.base.clock import Clock
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Options


class Source(Protocol):
    """Reads something once in a while. Polled by the runner's own loop: no threads, and a fake
    clock tests it.

    Attributes:
        readings: how many were taken; lost: how many were expected and not taken (the loop came too
        late, a read failed). trouble: what befell it that a reader of the verdict should know, in
        words; empty where it lived.

    Its file in the run's directory is `<name>.log`, or begins with its name and a dot: by that the
    gates know its source.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]]
    readings: int
    lost: int
    trouble: str

    def __init__(self, options: Options, host: Host, clock: Clock, devices: Sequence[str]) -> None:
        """`devices`: kernel names of the target's block devices, maybe none."""

    def unfit(self) -> str | None:
        """Why this source has nothing to read here, in words; None where it has."""

    def start(self, run_dir: Path) -> None:
        """Open the file in the run's directory and take the first reading."""

    def due(self) -> float:
        """Monotonic second of the next reading."""

    def poll(self) -> None:
        """Take a reading if its time has come."""

    def latest(self) -> Mapping[str, float]:
        """The newest reading for whoever watches, such as `device.iops` and `device.bw`, base
        units; empty before the second."""

    def stop(self) -> None:
        """Take the last reading and close the file. Safe to call twice, and after a failed
        start."""
