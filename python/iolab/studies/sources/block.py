# SPDX-License-Identifier: Apache-2.0
"""Every request to the target's block devices, recorded: `block.log` in the run, the events in
the study's recording."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from iolab.hosts.base.options import Options

from .counters import CounterOptions
from .recorded import RecordedSource


class BlockOptions(CounterOptions):
    """`[sources.block]`."""

    devices: Annotated[
        list[str],
        Field(
            default_factory=list,
            description='devices to record, such as ["sdb"]; default: those behind the target',
        ),
    ]


class BlockSource(RecordedSource):
    """Every request to the target's block devices: latency, queueing, offset, size, who. Needs
    root."""

    name: ClassVar[str] = "block"
    options: ClassVar[type[Options]] = BlockOptions
