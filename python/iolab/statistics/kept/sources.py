# SPDX-License-Identifier: Apache-2.0
"""What a kept statistic is made of: events or counters, as a query of the recording would choose."""

from __future__ import annotations

from collections.abc import Collection

from ..language.catalogue import LAST, preference
from ..language.names import Statistic


def is_counted(statistic: Statistic, source: str) -> bool:
    """Whether a source is counters."""
    counter = statistic.entry.counter
    return counter is not None and counter.source == source


def source_of(
    statistic: Statistic, wanted: str | None, events: Collection[str], samples: Collection[str]
) -> tuple[str | None, str]:
    """(the source, None where there is none of those that could answer; then why, in words)."""
    entry, counter = statistic.entry, statistic.entry.counter
    if wanted is not None:
        found = wanted in samples if is_counted(statistic, wanted) else wanted in events
        return (wanted, "") if found else (None, f"nothing of {wanted} is recorded")
    asks = [each.field for each in statistic.filters] + (
        [statistic.breakdown] if statistic.breakdown else []
    )
    tells = (
        counter is not None
        and counter.source in samples
        and all(name in counter.breakdowns for name in asks)
    )
    near = [name for name in events if name not in LAST] if entry.sources else []
    if tells and counter is not None and not near:
        return counter.source, ""
    able = [
        name
        for name in (entry.sources if entry.only else preference(list(events), entry.sources))
        if name in events
    ]
    if entry.sources and able:
        return able[0], ""
    words = [*entry.sources, *([counter.source] if counter is not None else [])]
    return None, f"nothing of {' or '.join(words)} is recorded"
