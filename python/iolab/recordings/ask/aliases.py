# SPDX-License-Identifier: Apache-2.0
"""Names in questions and answers instead of those that events have: enclosures, slots, pools and
vdevs for disks, names of hosts for addresses.

No event has them: the recording says what each disk is a part of. A condition becomes the one on
these disks, and a breakdown the sums of the breakdown by device.

Names of hosts come from a table of the user's, then from this machine's hosts file. Both are read
once. No resolver is asked, so that no question waits for a network.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from iolab.base.errors import UsageError
from iolab.base.files import read_regular

from ..store.base.metadata import periods_of, places_within
from ..store.read.recording import Recording
from ..store.read.trace import Trace
from .answers.answers import Floats, Stack
from .language.fields import FIELDS, missing, objects_in_sum
from .question import Filter, Statistic

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


ADDRESSED = ("client", "peer", "server")
"""Fields with addresses of hosts."""
VARIABLE = "IOLAB_NAMES"
"""Names the user's table."""
HOSTS = Path("/etc/hosts")
MOST_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_LABEL = re.compile(r"(.+) \(([0-9A-Fa-f:.%\w-]+)\)")


@dataclass(frozen=True)
class HostNames:
    """A name for each address. Several addresses may have one name."""

    by_address: dict[str, str]

    def label(self, field: str, value: str) -> str:
        """The text to display: `name` or, where several addresses have the name, `name (address)`.
        The value itself where it has no name."""
        name = self.by_address.get(_canonical(value) or "") if field in ADDRESSED else None
        if name is None:
            return value
        return name if len(self._addresses(name)) == 1 else f"{name} ({value})"

    def labels(self, field: str | None, values: Sequence[str]) -> list[str]:
        """`label` of each, for a breakdown by `field`."""
        return [self.label(field or "", value) for value in values]

    def filters(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        """The conditions by address: a name means all its addresses."""
        return tuple(
            replace(
                condition,
                values=tuple(
                    dict.fromkeys(
                        address for value in condition.values for address in self._meant(str(value))
                    )
                ),
            )
            if condition.field in ADDRESSED
            else condition
            for condition in filters
        )

    def statistic(self, asked: Statistic) -> Statistic:
        """The statistic with its conditions by address."""
        return replace(asked, filters=self.filters(asked.filters))

    def _meant(self, value: str) -> list[str]:
        labelled = _LABEL.fullmatch(value)
        if labelled and self.by_address.get(_canonical(labelled[2]) or "") == labelled[1]:
            return [labelled[2]]
        return self._addresses(value) or [value]

    def _addresses(self, name: str) -> list[str]:
        return self._by_name.get(name, [])

    @functools.cached_property
    def _by_name(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for address, name in self.by_address.items():
            by_name.setdefault(name, []).append(address)
        return by_name


@functools.cache
def host_names() -> HostNames:
    """The names in use: those of the table that `IOLAB_NAMES` names before those of /etc/hosts.

    UsageError where the table can't be read, with the line.
    """
    table = os.environ.get(VARIABLE, "")
    own = _table(Path(table)) if table else {}
    return HostNames({**_hosts(HOSTS), **own})


def _table(path: Path) -> dict[str, str]:
    """The user's table: lines `address=name` or as in hosts(5). UsageError names any other line."""
    try:
        names: dict[str, str] = {}
        for number, line in enumerate(_text(path).splitlines(), 1):
            entry = _entry(line)
            if entry is None and _words(line):
                raise UsageError(
                    f"'{line.strip()[:80]}' has no address and name",
                    where=f"{path}:{number}",
                    hint="write 10.0.0.7=backup, or a line as in /etc/hosts",
                )
            names |= [entry] if entry is not None else []
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"the table of names cannot be read: {reason}",
            where=path,
            hint=f"{VARIABLE} names it; unset it to go without",
        ) from None
    return names


def _hosts(path: Path) -> dict[str, str]:
    """The first name of each address of a hosts file; other lines are skipped. Loopback addresses
    have none: in a recording of another machine they mean that machine."""
    try:
        text = _text(path)
    except (OSError, UnicodeDecodeError):
        return {}
    names: dict[str, str] = {}
    for address, name in filter(None, map(_entry, text.splitlines())):
        if not ipaddress.ip_address(address).is_loopback:
            names.setdefault(address, name)
    return names


def _text(path: Path) -> str:
    return read_regular(path, limit=MOST_BYTES).decode("utf-8")


def _entry(line: str) -> tuple[str, str] | None:
    """(address, name) of a line, None where it has none."""
    words = _words(line)
    address = _canonical(words[0]) if words else None
    if address is None or len(words) < 2 or not _NAME.fullmatch(words[1]):
        return None
    return address, words[1]


def _words(line: str) -> list[str]:
    return line.partition("#")[0].replace("=", " ", 1).split()


def _canonical(address: str) -> str | None:
    """An address as probes write it, None for other text. IPv4 in IPv6 becomes IPv4."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)
