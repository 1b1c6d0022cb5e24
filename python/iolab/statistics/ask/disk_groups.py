# SPDX-License-Identifier: Apache-2.0
"""Enclosures, slots, pools and vdevs in questions about disk I/O.

No event has them: the recording says what each disk is a part of. A condition becomes the one on
these disks, and a breakdown the sums of the breakdown by device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...recording.base.metadata import periods_of, places_within
from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ..answers.answers import Floats, Stack
from ..language.fields import FIELDS
from ..language.names import Filter, Statistic
from ..language.objects import missing, objects_in_sum

DEVICE = "device"
UNKNOWN = FIELDS[DEVICE].missing
_NO_DISK = "\0"
"""The name of no device."""


@dataclass(frozen=True)
class DiskGroups:
    """What disks are a part of, in the time of a question.

    Attributes:
        by_disk: of each field the value of each disk. changed: of each field the disks of which the
        value changed in that time. It is unknown then.
    """

    by_disk: Mapping[str, Mapping[str, str]]
    changed: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls,
        events: Trace | Recording,
        fields: Iterable[str],
        span: tuple[int | None, int | None],
    ) -> DiskGroups:
        """Of fields in a span. A trace has none."""
        fields = tuple(fields)
        # most questions name none: nothing is read for these
        origin = events.facts.origin if fields and isinstance(events, Recording) else {}
        periods = list(periods_of(origin))
        within = {field: places_within(periods, field, *span) for field in fields}
        return cls(
            {field: certain for field, (certain, _) in within.items()},
            {field: changed for field, (_, changed) in within.items() if changed},
        )

    def statistic(self, asked: Statistic) -> Statistic:
        """The statistic without groups of disks."""
        breakdown = DEVICE if asked.breakdown in self.by_disk else asked.breakdown
        return replace(asked, filters=self.filters(asked.filters), breakdown=breakdown)

    def without(self, asked: Statistic) -> Statistic:
        """The statistic without conditions on groups of disks, nor a breakdown by them."""
        filters = (condition for condition in asked.filters if condition.field not in self.by_disk)
        breakdown = DEVICE if asked.breakdown in self.by_disk else asked.breakdown
        return replace(asked, filters=tuple(filters), breakdown=breakdown)

    def filters(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        """The conditions, with those on groups of disks by device."""
        return tuple(
            by_device
            for condition in filters
            for by_device in (
                [condition]
                if condition.field not in self.by_disk
                else self._by_device(condition, self.by_disk[condition.field])
            )
        )

    @staticmethod
    def _by_device(condition: Filter, value_of: Mapping[str, str]) -> list[Filter]:
        has_value = {disk for disk, value in value_of.items() if value in condition.values}
        is_equal = condition.sign == "="
        if UNKNOWN in condition.values:
            # all disks but those with another value
            disks, is_equal = value_of.keys() - has_value, not is_equal
        else:
            disks = has_value
        if not disks:
            # no disk meets the condition, or each one
            return [Filter(DEVICE, "=", (_NO_DISK,))] if is_equal else []
        return [Filter(DEVICE, "=" if is_equal else "!=", tuple(sorted(disks)))]

    def notes(self, filters: Iterable[Filter]) -> tuple[str, ...]:
        """Values that no disk has, and disks of which the value changed."""
        notes = []
        for condition in filters:
            value_of = self.by_disk.get(condition.field)
            if value_of is not None and condition.sign == "=":
                named = (str(value) for value in condition.values if value != UNKNOWN)
                notes += missing(condition.field, named, value_of.values())
        for field in self.by_disk:
            if field in self.changed:
                disks = ", ".join(self.changed[field])
                notes.append(
                    f"the {field} of {disks} changed in this time and is unknown; ask about a shorter time"
                )
            elif not self.by_disk[field]:
                notes.append(f"the {field} of no disk is known")
        return tuple(dict.fromkeys(notes))

    def sums(self, by_disk: Mapping[str, Sequence[int]]) -> dict[str, dict[str, list[int]]]:
        """Sums by field and value, from several sums of each device. Fields that no disk has are
        left out."""
        by_field: dict[str, dict[str, list[int]]] = {}
        for field, value_of in self.by_disk.items():
            if not value_of.keys().isdisjoint(by_disk):
                sums = by_field.setdefault(field, {})
                for disk, own in by_disk.items():
                    value = value_of.get(disk, UNKNOWN)
                    before = sums.get(value, [0] * len(own))
                    sums[value] = [a + b for a, b in zip(before, own, strict=True)]
        return by_field

    def merge_disks(self, stack: Stack, field: str | None, is_counted: bool) -> Stack:
        """The sums of each group's disks, from a breakdown by device. A stack of a field that is no
        group remains as it is. is_counted: whether counters have the devices, with partitions."""
        value_of = self.by_disk.get(field or "")
        if value_of is None:
            return stack
        in_sum = objects_in_sum(DEVICE, stack.keys) if is_counted else set(stack.keys)
        rows: dict[str, list[int]] = {}
        for row, disk in enumerate(stack.keys):
            if disk in in_sum:
                rows.setdefault(value_of.get(disk, UNKNOWN), []).append(row)
        totals = {value: sum(stack.totals[row] for row in own) for value, own in rows.items()}
        keys = sorted(rows, key=lambda value: (-totals[value], value))
        averages = stack.averages
        return replace(
            stack,
            keys=keys,
            values=np.array([_sum(stack.values[rows[value]]) for value in keys]).reshape(
                len(keys), stack.values.shape[1]
            ),
            totals=[totals[value] for value in keys],
            averages=None
            if averages is None
            else [float(np.nansum([averages[row] for row in rows[value]])) for value in keys],
            adds_up=True,
        )


def _sum(rows: Floats) -> Any:
    """The sum of rows by column, nan where none has a value."""
    return np.where(np.isnan(rows).all(axis=0), np.nan, np.nansum(rows, axis=0))
