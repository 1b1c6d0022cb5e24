# SPDX-License-Identifier: Apache-2.0
"""A sink that adds the I/Os of OpenZFS's disks, from counts since import by powers of two of their
latency and size, as `zpool iostat` has them.

A shell on the host asks zpool once a second, for without an interval zpool prints counts that are
exact, and nothing is lost between two readings. Their growth becomes events that represent many
I/Os each. Only disks are taken: what zpool says of pools, mirrors and the like is the sum of
theirs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iolab import _core
from iolab.formats.zfs.zpool_histogram_log import ZpoolLatencyLog, ZpoolSizesLog
from iolab.formats.zfs.zpool_words import FEWEST_LATENCIES, FEWEST_SIZES, SIZES

from ...store.base.metadata import STEP_NS
from ...store.base.schema import EVENTS, LATENCY_BITS
from .host_shell import HostShell
from .intake import Sink

LATENCY, SIZE = "zpool", "zpool-sizes"
"""Sources of events by latency and by size."""
FACTS = {
    LATENCY: {
        "what": "I/Os of OpenZFS's disks by powers of two of their latency, in the queue and at the disk (zpool iostat -w)"
    },
    SIZE: {"what": "I/Os of OpenZFS's disks by powers of two of their size (zpool iostat -r)"},
}

SCRIPT = r"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH LC_ALL=C
place=/proc/spl/kstat/zfs
[ -d $place ] && command -v zpool >/dev/null || exit 0
next=
while :; do
  read -r up _ </proc/uptime
  now=${up%.*}${up#*.} pools=
  echo "@ $(date +%s%N) ${now}0000000" || exit
  for pool in $place/*/; do
    [ ! -d "$pool" ] || { pool=${pool%/}; pools=1; printf 'pool\t%s\n' "${pool##*/}"; }
  done
  for kind in w r; do
    echo "-$kind"
    [ -z "$pools" ] || zpool iostat -HpL -v "-$kind"
  done
  echo end || exit
  read -r up _ </proc/uptime
  now=${up%.*}${up#*.}
  next=$((${next:-now} + 100))
  while [ "$next" -le "$now" ]; do next=$((next + 100)); done
  left=$((next - now))
  sleep "$((left / 100)).$(printf %02d $((left % 100)))"
done
"""
"""Run by a shell on the host; ends with its output, and at once where there is no OpenZFS."""

LATE_NS = 5 * 10**9
"""Readings further apart do not show when their growth was."""
LONGEST = 1 << 24
_INNER = re.compile(
    r"(mirror|raidz[123]?|draid[123]?(:\S*)?|spare|replacing|indirect|missing|hole|root)-\d+"
)
_WAYS = ("read", "write")
_Key = tuple[str, str, int, int]
"""The kind (-w or -r), the vdev, the column, the power of two."""


@dataclass
class Reading:
    """Counts since the pools' import.

    Attributes:
        time_ns: as the machine's clock showed it, then by the recording's time.
        up_ns: since the machine was started; unlike the clock it cannot be set.
        disks: vdev to its pool.
        counts: those that are not 0.
    """

    time_ns: int
    up_ns: int
    disks: dict[str, str] = field(default_factory=dict)
    counts: dict[_Key, int] = field(default_factory=dict)

    def follows(self, before: Reading) -> bool:
        """Whether as much time passed since by both clocks."""
        return abs(self.time_ns - before.time_ns - (self.up_ns - before.up_ns)) <= STEP_NS


@dataclass(frozen=True)
class Growth:
    """What came of two readings: events by source, and the time of which nothing is known, None
    where all is."""

    batches: tuple[pa.RecordBatch, ...]
    missed: tuple[int, int] | None = None


class PoolCounts:
    """Takes what the shell writes, in pieces of any length."""

    def __init__(self, own_ns: Callable[[int], int] = lambda machine_ns: machine_ns) -> None:
        """`own_ns`: the recording's time of a time by the machine's clock."""
        self._own_ns = own_ns
        self._text = b""
        self._before: Reading | None = None
        self._strange: Reading | None = None

    def feed(self, data: bytes) -> Iterator[Growth]:
        """The growth between readings that are whole now; a reading that can't be understood is
        left out."""
        self._text = (self._text + data)[-LONGEST:]
        *readings, self._text = self._text.split(b"\nend\n")
        for text in readings:
            reading = read(text.decode("utf-8", "replace"))
            if reading is None:
                continue
            reading.time_ns = self._own_ns(reading.time_ns)
            before, strange = self._before, self._strange
            if (
                before is not None
                and not reading.follows(before)
                and not (strange is not None and reading.follows(strange))
            ):
                # the clock was set, and the recording has not learnt of it yet, or goes on by the
                # new time: the next reading tells
                self._strange = reading
                continue
            self._before, self._strange = reading, None
            if before is not None and (passed := reading.up_ns - before.up_ns) > 0:
                yield (
                    Growth((), (reading.time_ns - passed, reading.time_ns))
                    if passed > LATE_NS
                    else Growth(grown(before, reading))
                )


def read(text: str) -> Reading | None:
    """A reading; None where it has no time."""
    reading: Reading | None = None
    pools: set[str] = set()
    pool = vdev = kind = ""
    rows = {"-w": (ZpoolLatencyLog(), FEWEST_LATENCIES), "-r": (ZpoolSizesLog(), FEWEST_SIZES)}
    for line in text.split("\n"):
        first, *rest = line.split("\t")
        if first.startswith("@ "):
            time, _, up = first[2:].partition(" ")
            reading = (
                Reading(int(time), int(up))
                if all(word.isdecimal() and len(word) < 20 for word in (time, up))
                else None
            )
        elif reading is None or not first:
            continue
        elif first == "pool" and len(rest) == 1 and not kind:
            pools.add(rest[0])
        elif not rest and first in rows:
            kind, vdev = first, ""
        elif not rest:
            pool, vdev = (
                (first, "") if first in pools else (pool, "" if _INNER.fullmatch(first) else first)
            )
            if vdev:
                reading.disks[f"{pool}\t{vdev}"] = pool
        elif (
            kind
            and vdev
            and first.isdecimal()
            and all(number.isdecimal() and len(number) < 20 for number in rest)
        ):
            form, fewest = rows[kind]
            power = form.bucket(int(first)) if len(rest) >= fewest and len(first) < 21 else None
            if power is not None:
                reading.counts |= {
                    (kind, f"{pool}\t{vdev}", place, power): int(number)
                    for place, number in enumerate(rest)
                    if number != "0"
                }
    return reading


def grown(before: Reading, after: Reading) -> tuple[pa.RecordBatch, ...]:
    """Events for what the counts of each disk grew by, in the middle of the time between. A disk
    that is new, or with lower counts because its pool was imported again, yields nothing yet."""
    fell = {key[1] for key, count in before.counts.items() if after.counts.get(key, 0) < count}
    common_disks = before.disks.keys() & after.disks.keys() - fell
    growth = {
        key: count - before.counts.get(key, 0)
        for key, count in after.counts.items()
        if key[1] in common_disks
    }
    time_ns = after.time_ns - (after.up_ns - before.up_ns) // 2
    rows: dict[str, list[dict[str, object]]] = {LATENCY: [], SIZE: []}
    for (kind, disk, place, power), count in sorted(growth.items()):
        columns = (
            None if count <= 0 else _latency(place, power) if kind == "-w" else _size(place, power)
        )
        if columns is not None:
            pool, _, vdev = disk.partition("\t")
            rows[LATENCY if kind == "-w" else SIZE].append(
                columns | {"device": vdev, "mount": pool, "count": count}
            )
    return tuple(
        _batch(source, time_ns, rows_of_kind)
        for source, rows_of_kind in rows.items()
        if rows_of_kind
    )


def _latency(place: int, power: int) -> dict[str, object] | None:
    """The first two columns are the time in all; the others are parts of it."""
    if place >= len(_WAYS) or power > 62:
        return None
    return {
        "op": _WAYS[place],
        "latency_ns": 1 << power,
        "latency_bucket": _core.grid_index(1 << power, LATENCY_BITS),
    }


def _size(place: int, power: int) -> dict[str, object] | None:
    """Each I/O is in one column, alone or put together of several."""
    if place >= len(SIZES) or power > 62:
        return None
    queue = SIZES[place].partition(".")[0]
    op = {"scrub": "read", "rebuild": "write", "trim": "trim"}.get(queue) or queue.partition("_")[2]
    return {"op": op, "size_bytes": 1 << power, "flags": queue.partition("_")[0]}


def _batch(source: str, time_ns: int, rows: list[dict[str, object]]) -> pa.RecordBatch:
    columns = {"source": [source] * len(rows), "time_ns": np.full(len(rows), time_ns)}
    return pa.RecordBatch.from_arrays(
        [
            pa.array(
                columns[column.name]
                if column.name in columns
                else [row.get(column.name) for row in rows],
                column.type,
            )
            for column in EVENTS
        ],
        schema=EVENTS,
    )


_AGAIN = 15.0
"""Seconds until a shell that ended by a failure is begun again: the connection to its host may be
back."""


class PoolSink(Sink):
    """Hands everything on, and adds events of the pools' disks at each tick. Closed once, by
    `close`."""

    def __init__(
        self,
        sink: Sink,
        begin: Callable[[], Sequence[str]],
        describe: Callable[[str, Mapping[str, Any]], object],
        own_ns: Callable[[int], int],
    ) -> None:
        """`begin`: the argument list of a shell that runs `SCRIPT`, on the host that is
        recorded; `describe` notes what is known of a source; `own_ns`: see `PoolCounts`."""
        super().__init__(sink)
        self._begin, self._describe, self._own_ns = begin, describe, own_ns
        self._counts = PoolCounts(own_ns)
        self._described = False
        self._again_at = 0.0
        self._shell: HostShell | None = None
        self._start()

    def tick(self, now_ns: int) -> None:
        """Take what the shell wrote, then see `Sink`."""
        self._take()
        self._sink.tick(now_ns)

    def close(self) -> None:
        """End the shell, then see `Sink`."""
        try:
            self._take()
        finally:
            self._again_at = float("inf")
            self._end()
            self._sink.close()

    def _start(self) -> None:
        self._counts = PoolCounts(self._own_ns)
        try:
            self._shell = HostShell(self._begin())
        except OSError:
            self._again_at = time.monotonic() + _AGAIN

    def _take(self) -> None:
        if self._shell is None:
            if time.monotonic() >= self._again_at:
                self._start()
            return
        while (data := self._shell.read()) is not None:
            if not data:
                code = self._end(grace=2.0)
                # there is no OpenZFS there, or this was the end
                self._again_at = float("inf") if code == 0 else time.monotonic() + _AGAIN
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        for growth in self._counts.feed(data):
            if not self._described:
                self._described = True
                for name, facts in FACTS.items():
                    self._describe(name, facts)
            for batch in growth.batches:
                self._sink.append_events(batch)
            if growth.missed is not None:
                self._sink.loss(
                    "missed", LATENCY, *growth.missed, None, "zpool took too long to answer"
                )

    def _end(self, grace: float = 0.0) -> int:
        """Its exit code; it has `grace` seconds to end."""
        shell, self._shell = self._shell, None
        return 0 if shell is None else shell.end(grace)
