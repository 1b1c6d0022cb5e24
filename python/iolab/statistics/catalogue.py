"""The statistics that can be asked for, as data: what each counts, of which source, and how it can be broken down."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import FIELDS, QUANTIZED

_ALL = tuple(FIELDS)
_CALLS = tuple(name for name in FIELDS if name not in ("queue", "job"))
_JOBS = ("op", "job", "file", "error", "flags", "latency", "offset", "size")


@dataclass(frozen=True)
class Entry:
    """A statistic.

    Attributes:
        name: `group.name`. about: what it is, in one line.
        measure: "ops" counts I/Os, "bytes" adds up their sizes. unit: of its values, "1/s" or "B/s".
        sources: of events, those preferred first. only: whether no other source will do; otherwise a recording's only
        other source answers, and of several the first by `preference`.
        filters: fields that conditions may name. breakdowns: fields that it can be broken down by.
    """

    name: str
    about: str
    measure: str
    unit: str
    sources: tuple[str, ...]
    only: bool
    filters: tuple[str, ...]
    breakdowns: tuple[str, ...]


LAST = ("fio", "syscall")
"""Sources that answer for the device only where there is nothing nearer to it, in this order."""


def _entry(group: str, measure: str, about: str, sources: tuple[str, ...], only: bool, fields: tuple[str, ...]) -> Entry:
    # bytes by latency, offset or size would weigh a map by size: that is another question than a count
    breakdowns = tuple(name for name in fields if measure == "ops" or name not in QUANTIZED)
    return Entry(f"{group}.{measure}", about, measure, {"ops": "1/s", "bytes": "B/s"}[measure], sources, only, fields, breakdowns)


CATALOGUE = {entry.name: entry for entry in (
    _entry("io", "ops", "I/Os of the devices: those of the block layer where they were recorded", ("block",), False, _ALL),
    _entry("io", "bytes", "bytes that the devices moved", ("block",), False, _ALL),
    _entry("file", "ops", "system calls on files and devices", ("syscall",), True, _CALLS),
    _entry("file", "bytes", "bytes that system calls moved", ("syscall",), True, _CALLS),
    _entry("app", "ops", "I/Os as the load generator saw them", ("fio",), True, _JOBS),
    _entry("app", "bytes", "bytes as the load generator saw them", ("fio",), True, _JOBS),
)}
"""Every statistic, by name."""


def preference(sources: list[str], wanted: tuple[str, ...] = ("block",)) -> list[str]:
    """Sources of events, the one that answers first: those wanted, then other traces by name, then `LAST`."""
    def rank(name: str) -> tuple[int, int, str]:
        if name in wanted:
            return 0, wanted.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)

    return sorted(sources, key=rank)
