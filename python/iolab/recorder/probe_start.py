# SPDX-License-Identifier: Apache-2.0
"""When a probe began, by its first words, and whether the machine's clock was set since: its times
continue as if it had not been."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..recording.base.metadata import Begun
from ..units import UNITS, format_number


def begun_by(hello: Mapping[str, Any]) -> Begun:
    """When everything was set up, and the clocks of the probe's times. KeyError,
    ValueError or TypeError where it says neither."""
    realtime_ns = int(hello["realtime_ns"])
    return Begun(
        max(realtime_ns, int(hello.get("from_ns", realtime_ns))),
        int(hello["monotonic_ns"]),
        realtime_ns,
    )


def words_of_step(step_ns: int) -> str:
    """What befell the clock: `step_ns` as by `Begun.set_by`."""
    seconds = abs(step_ns) / 1e9
    unit = next((name for name in ("d", "h", "min") if seconds >= UNITS[name].scale), "s")
    length = f"{format_number(seconds / UNITS[unit].scale, 3)} {unit}"
    if step_ns < 0:
        return f"the clock was set back by {length}; times continue by the old clock until a new recording begins"
    return f"the clock went ahead by {length}: it was set, or the machine slept"
