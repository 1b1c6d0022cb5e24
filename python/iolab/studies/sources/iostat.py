# SPDX-License-Identifier: Apache-2.0
"""sysstat's iostat during the run, for studies that want its own columns: `iostat.json`.

Every report is kept, the first one too, which is the mean since boot: readers know it and leave it
out. iostat's -y would spare it, but breaks the JSON of sysstat up to 12.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from signal import Signals
from typing import Annotated, ClassVar

from pydantic import Field

from iolab.base.clock import Clock
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Options

from .background_process import BackgroundProcess

FILE = "iostat.json"


class IostatOptions(Options):
    """`[sources.iostat]`."""

    interval: Annotated[
        int, Field(ge=1, description="whole seconds between reports; the gates expect one")
    ] = 1
    devices: Annotated[
        list[str],
        Field(
            default_factory=list,
            description='kernel names to watch, such as ["sdb"]; default: those behind the target',
        ),
    ]


class IostatSource(BackgroundProcess):
    """sysstat's iostat in JSON, a report a second (the one since boot counts as a reading); ended
    by SIGINT, upon which it closes its brackets."""

    name: ClassVar[str] = "iostat"
    options: ClassVar[type[Options]] = IostatOptions
    mark = re.compile(b'"timestamp"')
    ended_by = Signals.SIGINT

    def __init__(
        self, options: IostatOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options.interval, host, clock)
        self._devices = tuple(options.devices or devices)

    def unfit(self) -> str | None:
        """Without devices or without sysstat there is nothing to read."""
        if not self._devices:
            return "the target has no block devices to count for"
        if self._host.which("iostat") is None:
            return "iostat is not installed; it is part of sysstat: apt install sysstat (Debian, Ubuntu), dnf install sysstat (Fedora)"
        return None

    def start(self, run_dir: Path) -> None:
        """Start iostat; RunError where it can't be started."""
        self._begin(
            ["iostat", "-o", "JSON", "-xdt", str(self._interval), *self._devices],
            run_dir / FILE,
            {"LC_ALL": "C", "S_TIME_FORMAT": "ISO"},
        )
