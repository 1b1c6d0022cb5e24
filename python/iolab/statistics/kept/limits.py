# SPDX-License-Identifier: Apache-2.0
"""Limits of all that is kept of a recording: how large it may be, what it may cost, for how long
each tier stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from ...errors import UsageError
from ...recording.base.metadata import read_facts
from ..language.fields import near
from .definitions import Definitions, read_definitions
from .manage import WAIT_S, changed, must_age
from .paths import TIERS
from .state import read_state
from .writer import size_of


def limits(directory: Path) -> dict[str, Any]:
    """`bytes` and `cpu_share` (None: any), `retention` (by tier, seconds), `used_bytes` on disk
    now, and `pending`: whether whoever records has not taken them up yet. Those that hold unless
    chosen where nothing was ever kept.

    ResultsError where there is no recording, or `keep.json` is damaged.
    """
    read_facts(directory)
    definitions = read_definitions(directory) or Definitions()
    state = read_state(directory)
    return {
        "bytes": definitions.bytes,
        "cpu_share": definitions.cpu_share,
        "retention": dict(definitions.retention),
        "used_bytes": sum(size_of(directory, name) for name in definitions.statistics),
        "pending": definitions.revision > (state.revision if state is not None else 0),
    }


class Wanted(TypedDict, total=False):
    """Limits to change; those that are not named stay as they are.

    `bytes`: size on disk of all kept statistics together; `cpu_share`: of all CPU time, 0.05 for 5
    %; None for any. `retention`: by tier ("1s", "1m", "1h") the seconds for which its sums stay.
    """

    bytes: int | None
    cpu_share: float | None
    retention: Mapping[str, int]


def limit(
    directory: Path, wanted: Wanted, *, wait_s: float = WAIT_S, work_s: float | None = None
) -> dict[str, Any]:
    """Change some limits; what holds then, as `limits` has it. A statistic that is suspended stays
    so until it is resumed.

    UsageError for limits that can't be, and of a recording that was imported.
    """
    must_age(directory)
    places = [tier.name for tier in TIERS]
    for tier in wanted.get("retention", {}):
        if tier not in places:
            raise UsageError(f"there is no tier '{tier}'", hint=near(tier, places))

    def how(before: Definitions) -> Definitions:
        after = replace(
            before,
            bytes=wanted.get("bytes", before.bytes),
            cpu_share=wanted.get("cpu_share", before.cpu_share),
            retention={**before.retention, **wanted.get("retention", {})},
        )
        if after.wrong:
            kept = ", ".join(f"{tier}={seconds} s" for tier, seconds in after.retention.items())
            raise UsageError(
                after.wrong,
                where=directory,
                hint=f"asked for is {kept}" if "retention" in wanted else None,
            )
        return after

    changed(directory, how, wait_s, work_s)
    return limits(directory)
