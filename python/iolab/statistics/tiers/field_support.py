# SPDX-License-Identifier: Apache-2.0
"""The fields that a source's events hold, and why not the others: a question may name any field,
but what none of them has is answered with `unknown` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ...recording.read.recording import Recording
from ...recording.read.trace import Trace
from ..language.catalogue import Entry
from ..language.fields import FIELDS

Told: TypeAlias = Mapping[str, tuple[str, ...]]
"""Source to the fields that its events hold; a source that is not in it may hold all."""

_CALLS = ("op", "process", "pid", "thread", "error", "flags", "latency", "offset", "size")

_RECORDED = {
    "block": (*_CALLS, "device", "queue"),
    "syscall": (*_CALLS, "file", "mount", "client", "share", "user"),
    "nfs": (
        "op",
        "procedure",
        "version",
        "client",
        "file",
        "thread",
        "error",
        "flags",
        "latency",
        "offset",
        "size",
    ),
}
"""What the probe reports of each I/O."""

_TRACED = ("op", "device", "process", "file", "job", "client", "latency", "offset", "size")
_OF_DISKS = ("op", "device", "process", "latency", "offset", "size")
_FORMATS = {
    "fio": ("op", "job", "latency", "offset", "size"),
    "biosnoop": _OF_DISKS,
    "blkparse": _OF_DISKS,
    "blktrace": _OF_DISKS,
}
"""What the native readers can find in a trace, and in those of some sources."""

_ELSEWHERE = {
    "device": "io.ops",
    "queue": "io.ops",
    "file": "file.ops",
    "mount": "file.ops",
    "job": "app.ops",
    "client": "nfs.ops",
}
"""Statistics that tell a field, where their source was recorded."""


def told_by(
    opened: Trace | Recording, sources: Iterable[str], has: Iterable[str] | None = None
) -> Told:
    """What is known of these sources. `has`: the fields of a trace's summary, where that was made.

    A source that a recording says nothing about is not known to lack anything.
    """
    if isinstance(opened, Trace):
        return {
            source: _FORMATS.get(source, _TRACED) if has is None else ("op", *has)
            for source in sources
        }
    fields = {}
    for source in sources:
        about = opened.facts.sources.get(source)
        if about is None:
            continue
        if "columns" in about:
            fields[source] = tuple(
                field.name for field in FIELDS.values() if field.column in ("op", *about["columns"])
            )
        elif "format" in about:
            fields[source] = _FORMATS.get(source, _TRACED)
        elif source in _RECORDED:
            fields[source] = _RECORDED[source]
    return fields


def fields_of(fields: Iterable[str], source: str, told: Told) -> tuple[str, ...]:
    """Those of the fields that a source's events hold."""
    return tuple(field for field in fields if source not in told or field in told[source])


def missing_fields(
    entry: Entry | None, fields: Iterable[str], source: str, told: Told
) -> dict[str, str]:
    """Why a source's events tell nothing of a field, by the field; of those that they hold nothing
    is said."""
    return {
        field: _why_not(entry, field, source)
        for field in fields
        if source in told and field not in told[source]
    }


def _why_not(entry: Entry | None, field: str, source: str) -> str:
    if field == "client" and source not in _RECORDED:
        return "only a table with a column of that name has the client"
    other = _ELSEWHERE.get(field, "")
    own = entry is not None and other.partition(".")[0] == entry.name.partition(".")[0]
    return f"{source} events tell no {field}{f'; {other} does, where it was recorded' if other and not own else ''}"
