# SPDX-License-Identifier: Apache-2.0
"""Places of disks in a recording: the enclosure, slot, pool and vdev that each is a part of, by
time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .loss_log import is_time

PLACES = ("enclosure", "slot", "pool", "vdev")
"""Fields of places. Slots are `ENCLOSURE/SLOT`, vdevs `POOL/VDEV`."""
ORIGIN = "disks"
"""Where `origin` of `recording.json` has them."""


@dataclass(frozen=True)
class DiskPeriod:
    """The places of a disk, until the next period of the same disk.

    Attributes:
        disk: its kernel name. after_ns: until then the earlier places are certain. from_ns: from
        then on these are. places: by field; what is not known is missing.
    """

    disk: str
    after_ns: int
    from_ns: int
    places: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """As `recording.json` has it."""
        times = {"after_ns": self.after_ns, "from_ns": self.from_ns}
        return {"disk": self.disk, **times, **self.places}


def periods_of(origin: Mapping[str, Any]) -> Iterator[DiskPeriod]:
    """The periods of a recording, in their order. Those that are damaged are left out."""
    lines = origin.get(ORIGIN)
    for line in lines if isinstance(lines, list) else ():
        if not isinstance(line, dict) or not isinstance(line.get("disk"), str):
            continue
        places = {field: line[field] for field in PLACES if isinstance(line.get(field), str)}
        if is_time(line.get("after_ns")) and is_time(line.get("from_ns")):
            yield DiskPeriod(line["disk"], line["after_ns"], line["from_ns"], places)


def places_within(
    periods: Iterable[DiskPeriod], field: str, from_ns: int | None, until_ns: int | None
) -> tuple[dict[str, str], list[str]]:
    """(the value of a field of each disk that had only this value in a time, disks of which the
    value changed in it)."""
    of_disk: dict[str, list[DiskPeriod]] = {}
    for period in periods:
        of_disk.setdefault(period.disk, []).append(period)
    certain: dict[str, str] = {}
    changed = []
    for disk, own in of_disk.items():
        first = DiskPeriod(disk, 0, 0, {})
        ends = [period.from_ns for period in own]
        values = {
            period.places.get(field)
            for period, end_ns in zip([first, *own], [*ends, None], strict=True)
            if (end_ns is None or end_ns > (from_ns or 0))
            and (until_ns is None or period.after_ns < until_ns)
        }
        if len(values) > 1:
            changed.append(disk)
        elif (value := next(iter(values), None)) is not None:
            certain[disk] = value
    return certain, changed
