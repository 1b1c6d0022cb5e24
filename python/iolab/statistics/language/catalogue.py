# SPDX-License-Identifier: Apache-2.0
"""The statistics that can be asked for, as data: what each counts, of which source, and how it can
be broken down."""

from __future__ import annotations

from dataclasses import dataclass

from ...recording.base.counts import Weight
from . import counter_catalogue
from .counter_catalogue import (
    ARC_ACCESSES,
    ARC_HIT_RATIO,
    ARC_SIZE,
    ARC_TARGET,
    L2ARC_ACCESSES,
    L2ARC_BYTES,
    L2ARC_HEADERS,
    L2ARC_SIZE,
    TXG_BYTES,
    TXG_GROUPS,
    TXG_TIME,
    ZIL_BYTES,
    ZIL_COMMITS,
    ZIL_RECORDS,
    Counter,
)
from .fields import FIELDS, OPS

_ALL = tuple(FIELDS)
_CALLS = tuple(name for name in FIELDS if name not in ("queue", "job", "device"))
_JOBS = ("op", "job", "file", "error", "flags", "latency", "offset", "size")


_NFS = (
    "op",
    "procedure",
    "version",
    "client",
    "file",
    "thread",
    "error",
    "latency",
    "offset",
    "size",
)

_SMB = (
    "op",
    "client",
    "user",
    "share",
    "file",
    "mount",
    "pid",
    "thread",
    "error",
    "flags",
    "latency",
    "offset",
    "size",
)


@dataclass(frozen=True)
class Entry:
    """A statistic.

    Attributes:
        name: `group.name`. about: what it is, in one line.
        measure: "ops" counts I/Os, "bytes" adds up sizes, "packets", "faults" and others count
        those; "level" and "share" have no sum over time.
        unit: of its values: "1/s", "B/s", "B", "1" (a share) or "".
        sources: of events, those preferred first; none where it comes of counters alone. only:
        whether no other source will do; otherwise a recording's only other source answers, and of
        several the first by `preference`. counter: how counters answer it, None where only events
        do. Events are preferred, but for those of `LAST`. filters: fields that conditions may name.
        breakdowns: fields that it can be broken down by; counters know theirs alone. covers: what
        its numbers hold and what they don't, in one line.
        octaves: whether latency and size are known by powers of two alone, so that its maps have no
        finer buckets.
        implied: (field, value) of conditions that always hold and are not in the name.
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
    octaves: bool = False
    implied: tuple[tuple[str, str], ...] = ()

    @property
    def additive(self) -> bool:
        """Whether its values have a sum over time: a count, not a level."""
        return self.measure not in ("level", "share")

    @property
    def weight(self) -> Weight:
        """What the cells of its maps hold: I/Os, or the bytes that they moved."""
        return "bytes" if self.measure == "bytes" else "count"

    def words(self, field: str) -> tuple[str, ...]:
        """The values that a field can have, none where these aren't known beforehand."""
        if field == "op":
            return OPS
        return self.counter.values(field) if self.counter else ()


LAST = ("fio", "syscall", "nfs", "zpool", "zpool-sizes")
"""Sources that answer for the device only where there is nothing nearer to it, in this order;
counters are nearer."""

_DISKS = "counters: a sum holds whole disks; partitions and devices made of others (dm, md, loop) are shown on request"
_LINKS = "a sum holds interfaces to the outside; loopback, bridges, bonds and virtual ones are shown on request"
_NFS_CLIENT = (
    "mounts of NFS that the recorded machine has; a file system that is mounted at several places counts "
    "once; an operation counts when its reply has arrived"
)
_SMB_CLIENT = "SMB mounts of the recorded machine; a share that is mounted twice counts once; there is no latency by share"
_ARC = "the machine's one ARC, all pools together"
_TXG = "groups that were done; one that came and went between two readings is lost, and counted as such"


def _entry(
    group: str,
    measure: str,
    about: str,
    sources: tuple[str, ...],
    only: bool,
    fields: tuple[str, ...],
    counter: Counter | None = None,
    covers: str = "",
) -> Entry:
    unit = {"ops": "1/s", "bytes": "B/s"}[measure]
    return Entry(
        f"{group}.{measure}", about, measure, unit, sources, only, fields, fields, counter, covers
    )


def _counted(
    name: str, measure: str, unit: str, about: str, counter: Counter, covers: str
) -> Entry:
    return Entry(
        name, about, measure, unit, (), True, counter.filters, counter.breakdowns, counter, covers
    )


_EVENTS = "every recorded I/O; losses are reported with the answer"

_NFS_EVENTS = f"{_EVENTS}; operations that only prepare others of their NFSv4 compound are part of the next one"

_SMB_CALLS = (
    "system calls of the processes smbd, not SMB operations: one operation can make several calls, or none; "
    "calls by io_uring and ksmbd are not seen; Samba's own files have no share"
)


def _smb(measure: str, about: str) -> Entry:
    return Entry(
        f"smb.{measure}",
        about,
        measure,
        {"ops": "1/s", "bytes": "B/s"}[measure],
        ("syscall",),
        True,
        ("process", *_SMB),
        _SMB,
        covers=_SMB_CALLS,
        implied=(("process", "smbd"),),
    )


_OCTAVES = "OpenZFS's own counts by powers of two; a condition on {} holds for all from its least value to twice that, or for none"


def _of_disks(name: str, about: str, source: str, quantity: str, *more: str) -> Entry:
    fields = ("op", "pool", "vdev", *more, quantity)
    return Entry(
        name,
        about,
        "ops",
        "1/s",
        (source,),
        True,
        fields,
        fields,
        covers=_OCTAVES.format(quantity),
        octaves=True,
    )


CATALOGUE = {
    entry.name: entry
    for entry in (
        _entry(
            "io",
            "ops",
            "block device I/Os",
            ("block",),
            False,
            _ALL,
            counter_catalogue.DISK_OPS,
            f"events: {_EVENTS}; {_DISKS}",
        ),
        _entry(
            "io",
            "bytes",
            "block device throughput",
            ("block",),
            False,
            _ALL,
            counter_catalogue.DISK_BYTES,
            f"events: {_EVENTS}; {_DISKS}",
        ),
        _counted(
            "io.utilization",
            "share",
            "1",
            "device utilization: share of time with at least one I/O in flight; mean over whole disks",
            counter_catalogue.DISK_BUSY,
            "a device that serves several I/Os in parallel can be 100 % utilized and still have capacity",
        ),
        _counted(
            "io.queue",
            "level",
            "",
            "queue depth: mean I/Os in flight",
            counter_catalogue.DISK_QUEUE,
            _DISKS,
        ),
        _entry(
            "file",
            "ops",
            "read, write and sync system calls on files and devices",
            ("syscall",),
            True,
            _CALLS,
            covers=_EVENTS,
        ),
        _entry(
            "file",
            "bytes",
            "throughput of read and write system calls",
            ("syscall",),
            True,
            _CALLS,
            covers=_EVENTS,
        ),
        _entry(
            "nfs",
            "ops",
            "operations of the NFS server",
            ("nfs",),
            True,
            _NFS,
            covers=_NFS_EVENTS,
        ),
        _entry(
            "nfs",
            "bytes",
            "NFS server throughput: bytes read and written",
            ("nfs",),
            True,
            _NFS,
            covers=_EVENTS,
        ),
        _smb("ops", "file operations of Samba's server, as system calls"),
        _smb("bytes", "throughput of Samba's server, as system calls"),
        _counted(
            "nfs.client.ops",
            "ops",
            "1/s",
            "operations of NFS mounts, by server, mount and procedure",
            counter_catalogue.NFS_CLIENT_OPS,
            _NFS_CLIENT,
        ),
        _counted(
            "nfs.client.bytes",
            "bytes",
            "B/s",
            "data that NFS mounts read from and wrote to their servers",
            counter_catalogue.NFS_CLIENT_BYTES,
            f"{_NFS_CLIENT}; data alone, of the procedures READ and WRITE",
        ),
        _counted(
            "nfs.client.traffic",
            "bytes",
            "B/s",
            "RPC messages of NFS mounts, in and out",
            counter_catalogue.NFS_CLIENT_TRAFFIC,
            f"{_NFS_CLIENT}; headers are included",
        ),
        _counted(
            "nfs.client.latency",
            "level",
            "ns",
            "mean latency of operations of NFS mounts, by phase",
            counter_catalogue.NFS_CLIENT_LATENCY,
            f"{_NFS_CLIENT}; the kernel counts milliseconds; queue: until the request is sent; server: until "
            "the reply, the network included; other: the client's own work",
        ),
        _counted(
            "nfs.client.errors",
            "errors",
            "1/s",
            "errors, retransmissions and timeouts of NFS mounts",
            counter_catalogue.NFS_CLIENT_ERRORS,
            f"{_NFS_CLIENT}; errors include expected ones, such as a LOOKUP of a file that does not exist; "
            "kernels before 5.3 do not count errors",
        ),
        _counted(
            "smb.client.ops",
            "ops",
            "1/s",
            "operations of SMB mounts, by server, share and command",
            counter_catalogue.SMB_CLIENT_OPS,
            _SMB_CLIENT,
        ),
        _counted(
            "smb.client.bytes",
            "bytes",
            "B/s",
            "data that SMB mounts read from and wrote to their servers",
            counter_catalogue.SMB_CLIENT_BYTES,
            _SMB_CLIENT,
        ),
        _counted(
            "smb.client.errors",
            "errors",
            "1/s",
            "operations of SMB mounts that failed",
            counter_catalogue.SMB_CLIENT_ERRORS,
            f"{_SMB_CLIENT}; errors include expected ones; SMB 1 counts none",
        ),
        _entry(
            "app",
            "ops",
            "I/Os as seen by the load generator",
            ("fio",),
            True,
            _JOBS,
            covers=_EVENTS,
        ),
        _entry(
            "app",
            "bytes",
            "throughput as seen by the load generator",
            ("fio",),
            True,
            _JOBS,
            covers=_EVENTS,
        ),
        _counted(
            "cpu.utilization",
            "share",
            "1",
            "CPU utilization, mean over CPUs",
            counter_catalogue.CPU,
            "idle and iowait count only where a condition names them; several processors are averaged",
        ),
        _counted(
            "memory.bytes",
            "level",
            "B",
            "memory in use, by kind",
            counter_catalogue.MEMORY,
            "free, available, dirty, writeback and total count only where a condition names them",
        ),
        _counted(
            "net.bytes",
            "bytes",
            "B/s",
            "network interface throughput",
            counter_catalogue.NET_BYTES,
            _LINKS,
        ),
        _counted(
            "net.packets",
            "packets",
            "1/s",
            "network interface packets",
            counter_catalogue.NET_PACKETS,
            _LINKS,
        ),
        _counted(
            "net.link",
            "level",
            "B/s",
            "network link speed, per direction",
            counter_catalogue.NET_LINK,
            f"links that are up; {_LINKS}",
        ),
        _counted(
            "ip.bytes",
            "bytes",
            "B/s",
            "TCP throughput, by peer",
            counter_catalogue.IP_BYTES,
            "TCP, no UDP, of the recorded network namespace; out is what the peer acknowledged; a connection that ends "
            "between two readings counts if the kernel reports its end; a sum leaves out this machine's own",
        ),
        _counted(
            "fs.capacity",
            "level",
            "B",
            "used space of file systems on local devices",
            counter_catalogue.FILE_SYSTEMS,
            "size and available count only where a condition names them; data sets of one pool share its room",
        ),
        _counted(
            "vm.faults",
            "faults",
            "1/s",
            "page faults; major faults wait for I/O",
            counter_catalogue.FAULTS,
            "the whole machine",
        ),
        _counted(
            "arc.accesses",
            "accesses",
            "1/s",
            "ARC accesses: hits, I/O hits (data already being read), misses",
            ARC_ACCESSES,
            _ARC,
        ),
        _counted(
            "arc.hit_ratio",
            "share",
            "1",
            "ARC hit ratio",
            ARC_HIT_RATIO,
            f"{_ARC}; nothing where there was no access",
        ),
        _counted(
            "arc.size",
            "level",
            "B",
            "ARC size, by kind",
            ARC_SIZE,
            f"{_ARC}; total, recent, frequent, anonymous, compressed and uncompressed count only where a condition names them",
        ),
        _counted(
            "arc.target",
            "level",
            "B",
            "ARC target size",
            ARC_TARGET,
            f"{_ARC}; least and most count only where a condition names them",
        ),
        _counted(
            "l2arc.accesses",
            "accesses",
            "1/s",
            "L2ARC accesses (ARC misses): hits and misses",
            L2ARC_ACCESSES,
            "all cache devices together",
        ),
        _counted(
            "l2arc.bytes",
            "bytes",
            "B/s",
            "L2ARC device throughput",
            L2ARC_BYTES,
            "all cache devices together",
        ),
        _counted(
            "l2arc.size",
            "level",
            "B",
            "L2ARC allocated size",
            L2ARC_SIZE,
            "all cache devices together; logical, which is before compression, counts only where a condition names it",
        ),
        _counted(
            "l2arc.headers",
            "level",
            "B",
            "ARC memory used by L2ARC headers",
            L2ARC_HEADERS,
            "a part of arc.size",
        ),
        _of_disks(
            "zpool.ops", "I/Os of OpenZFS vdevs by latency, queue time included", "zpool", "latency"
        ),
        _of_disks(
            "zpool.sizes",
            "I/Os of OpenZFS vdevs by size; flags name the queue: sync, async, scrub, trim, rebuild",
            "zpool-sizes",
            "size",
            "flags",
        ),
        _counted("txg.groups", "groups", "1/s", "transaction groups synced", TXG_GROUPS, _TXG),
        _counted(
            "txg.bytes",
            "bytes",
            "B/s",
            "bytes written by transaction groups",
            TXG_BYTES,
            f"{_TXG}; counted when a group is done; dirty and read count only where a condition names them",
        ),
        _counted(
            "txg.time",
            "level",
            "",
            "time of transaction groups in each phase, per second",
            TXG_TIME,
            f"{_TXG}; counted when a group is done; one is open while another syncs, so that the sum is more than 1",
        ),
        _counted(
            "zil.commits",
            "commits",
            "1/s",
            "intent log (ZIL) commits",
            ZIL_COMMITS,
            "all pools together",
        ),
        _counted(
            "zil.records",
            "records",
            "1/s",
            "intent log (ZIL) records, by how the data is written",
            ZIL_RECORDS,
            "all pools together",
        ),
        _counted(
            "zil.bytes",
            "bytes",
            "B/s",
            "intent log (ZIL) throughput, on pool devices and on log devices",
            ZIL_BYTES,
            "all pools together",
        ),
    )
}
"""Every statistic, by name."""

OF_EVENTS = frozenset(name for entry in CATALOGUE.values() for name in entry.sources)
"""Sources that have events, not counters."""


def preference(sources: list[str], wanted: tuple[str, ...] = ("block",)) -> list[str]:
    """Sources of events, the one that answers first: those wanted, then other traces by name, then
    `LAST`."""

    def rank(name: str) -> tuple[int, int, str]:
        if name in wanted:
            return 0, wanted.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)

    return sorted(sources, key=rank)
