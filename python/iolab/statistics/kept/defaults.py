# SPDX-License-Identifier: Apache-2.0
"""What is kept of a recording from its start unless something else is asked for: few statistics,
and cheap ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ..language.intervals import SECOND
from .definitions import Definition, Definitions, read_definitions
from .manage import checked, means
from .recovery import change_definitions

OF_SOURCE = {
    "block": ("io.ops[op]", "io.bytes[op]", "io.ops[latency]"),
    "syscall": ("file.ops[op]", "file.bytes[op]", "file.ops[latency]"),
    "nfs": ("nfs.ops[op]", "nfs.bytes[op]", "nfs.ops[latency]"),
    "counters": ("io.utilization[device]", "cpu.utilization[mode]"),
}
"""By the source that is recorded."""
COUNTED = ("io.ops[op]", "io.bytes[op]")
"""Of counters where no events of devices are recorded."""


def defaults(sources: Collection[str]) -> list[str]:
    """Statistics for what is recorded, by name."""
    found = [name for source in sources for name in OF_SOURCE.get(source, ())]
    if "counters" in sources and "block" not in sources:
        found += COUNTED
    return found


def begin(
    directory: Path, sources: Collection[str], asked: Sequence[str] | None, now_ns: int
) -> Definitions | None:
    """What is kept from now on: `asked`, beside what was kept there before; the defaults where that
    is None and nothing was ever kept.

    None where nothing is. ResultsError where it can't be written.
    """
    if asked is None and read_definitions(directory) is not None:
        return read_definitions(directory)
    names = defaults(sources) if asked is None else list(asked)
    if not names:
        return read_definitions(directory)

    def how(before: Definitions) -> Definitions:
        after = before
        for name in names:
            statistic = checked(name)
            if not any(means(held, statistic) for held in after.statistics):
                after = after.with_(
                    Definition(str(statistic), now_ns, since_ns=now_ns // SECOND * SECOND)
                )
        return after

    return change_definitions(directory, how)
