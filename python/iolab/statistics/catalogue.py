"""The statistics that can be asked for, as data: what each counts, of which source, and how it can be broken down."""

from __future__ import annotations

from dataclasses import dataclass

from . import counted
from .counted import Counter
from .fields import FIELDS, OPS, QUANTIZED

_ALL = tuple(FIELDS)
_CALLS = tuple(name for name in FIELDS if name not in ("queue", "job"))
_JOBS = ("op", "job", "file", "error", "flags", "latency", "offset", "size")


@dataclass(frozen=True)
class Entry:
    """A statistic.

    Attributes:
        name: `group.name`. about: what it is, in one line.
        measure: "ops" counts I/Os, "bytes" adds up sizes, "packets" and "faults" count those; "level" and "share" have no sum over time.
        unit: of its values: "1/s", "B/s", "B", "1" (a share) or "".
        sources: of events, those preferred first; none where it comes of counters alone. only: whether no other source will do; otherwise
        a recording's only other source answers, and of several the first by `preference`.
        counter: how counters answer it, None where only events do. Events are preferred, but for those of `LAST`.
        filters: fields that conditions may name. breakdowns: fields that it can be broken down by; counters know theirs alone.
        covers: what its numbers hold and what they don't, in one line.
    """

    name: str
    about: str
    measure: str
    unit: str
    sources: tuple[str, ...]
    only: bool
    filters: tuple[str, ...]
    breakdowns: tuple[str, ...]
    counter: Counter | None = None
    covers: str = ""

    @property
    def additive(self) -> bool:
        """Whether its values have a sum over time: a count, not a level."""
        return self.measure not in ("level", "share")

    def words(self, field: str) -> tuple[str, ...]:
        """The values that a field can have, none where these aren't known beforehand."""
        if field == "op":
            return OPS
        return tuple(part.name for part in self.counter.parts) if self.counter and field == self.counter.part else ()


LAST = ("fio", "syscall")
"""Sources that answer for the device only where there is nothing nearer to it, in this order; counters are nearer."""

_DISKS = "counters: a sum holds whole disks; partitions and devices made of others (dm, md, loop) are told when asked for"
_LINKS = "a sum holds interfaces to the outside; loopback, bridges, bonds and virtual ones are told when asked for"


def _entry(group: str, measure: str, about: str, sources: tuple[str, ...], only: bool, fields: tuple[str, ...],
           counter: Counter | None = None, covers: str = "") -> Entry:
    # bytes by latency, offset or size would weigh a map by size: that is another question than a count
    breakdowns = tuple(name for name in fields if measure == "ops" or name not in QUANTIZED)
    unit = {"ops": "1/s", "bytes": "B/s"}[measure]
    return Entry(f"{group}.{measure}", about, measure, unit, sources, only, fields, breakdowns, counter, covers)


def _counted(name: str, measure: str, unit: str, about: str, counter: Counter, covers: str) -> Entry:
    return Entry(name, about, measure, unit, (), True, counter.filters, counter.breakdowns, counter, covers)


_EVENTS = "every I/O that was recorded; what was lost is told beside it"

CATALOGUE = {entry.name: entry for entry in (
    _entry("io", "ops", "I/Os of the devices: those of the block layer where they were recorded", ("block",), False, _ALL,
           counted.DISK_OPS, f"events: {_EVENTS}; {_DISKS}"),
    _entry("io", "bytes", "bytes that the devices moved", ("block",), False, _ALL, counted.DISK_BYTES, f"events: {_EVENTS}; {_DISKS}"),
    _counted("io.utilization", "share", "1", "share of the time in which a device had something to do; several devices are averaged",
             counted.DISK_BUSY, "a device that works on many I/Os at once can take more though it is always busy"),
    _counted("io.queue", "level", "", "I/Os in flight, on average over time", counted.DISK_QUEUE, _DISKS),
    _entry("file", "ops", "system calls on files and devices", ("syscall",), True, _CALLS, covers=_EVENTS),
    _entry("file", "bytes", "bytes that system calls moved", ("syscall",), True, _CALLS, covers=_EVENTS),
    _entry("app", "ops", "I/Os as the load generator saw them", ("fio",), True, _JOBS, covers=_EVENTS),
    _entry("app", "bytes", "bytes as the load generator saw them", ("fio",), True, _JOBS, covers=_EVENTS),
    _counted("cpu.utilization", "share", "1", "share of the processors' time that was spent", counted.CPU,
             "idle and iowait count only where a condition names them; several processors are averaged"),
    _counted("memory.bytes", "level", "B", "memory in use, by what it holds", counted.MEMORY,
             "free, available, dirty, writeback and total count only where a condition names them"),
    _counted("net.bytes", "bytes", "B/s", "bytes that network interfaces moved", counted.NET_BYTES, _LINKS),
    _counted("net.packets", "packets", "1/s", "packets that network interfaces moved", counted.NET_PACKETS, _LINKS),
    _counted("net.link", "level", "B/s", "speed of the network's links, each way", counted.NET_LINK, f"links that are up; {_LINKS}"),
    _counted("fs.capacity", "level", "B", "room that is taken in file systems on local devices", counted.FILE_SYSTEMS,
             "size and available count only where a condition names them; data sets of one pool share its room"),
    _counted("vm.faults", "faults", "1/s", "page faults: major ones waited for I/O", counted.FAULTS, "the whole machine"),
)}
"""Every statistic, by name."""


def preference(sources: list[str], wanted: tuple[str, ...] = ("block",)) -> list[str]:
    """Sources of events, the one that answers first: those wanted, then other traces by name, then `LAST`."""
    def rank(name: str) -> tuple[int, int, str]:
        if name in wanted:
            return 0, wanted.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)

    return sorted(sources, key=rank)
