# SPDX-License-Identifier: Apache-2.0
"""The statistics, as data: what each counts, of which source, and how it can
be broken down.

Those of counters of the kernel and of ZFS name the fields that are read, and the meaning
of their growth.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...store.base.counts import Weight
from .fields import FIELDS, OF_DISKS, OPS, UNNAMED


@dataclass(frozen=True)
class Part:
    """A value of the field that divides a counter into parts, such as op=read.

    Attributes:
        name: the value. plus, less: the kernel's fields that make it, added and taken away. A part
        of which this kernel has no field of `plus` is not known, which is not 0.
        hidden: whether it counts only where a condition names it: it is no load (idle), or other
        parts hold it already. also: values of further fields that tell parts apart: (field, value).
    """

    name: str
    plus: tuple[str, ...]
    less: tuple[str, ...] = ()
    hidden: bool = False
    also: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """What no other part of its counter is called."""
        return " ".join([self.name, *(value for _, value in self.also)])


@dataclass(frozen=True)
class Counter:
    """How samples answer a statistic.

    Attributes:
        source: of the samples. parts: at least one. part: the field with their names,
        None for a single one. object: the field that the samples' objects are, None where there is
        one alone. scale: of the kernel's numbers to the statistic's unit. level: whether they are
        readings of a level, not growing counts. over: a part's growth is divided by the
        growth of these fields instead of the time. mean: whether objects are averaged, not added up. unsteady:
        fields that the kernel lets fall a little; that is no growth rather than a new start.
        mapped: whether it has a map of how many objects were how busy.
        always: the object that every reading has, where the others are left out while they do
        nothing; None where all are always there. within: further fields that objects' names hold
        after the first, with tabs between.
        combined: a field with the whole key of a part as value: "hit demand data".
    """

    source: str
    parts: tuple[Part, ...]
    part: str | None = None
    object: str | None = None
    scale: float = 1.0
    level: bool = False
    over: tuple[str, ...] = ()
    mean: bool = False
    unsteady: tuple[str, ...] = ()
    mapped: bool = False
    always: str | None = None
    within: tuple[str, ...] = ()
    combined: str | None = None

    @property
    def apart(self) -> tuple[str, ...]:
        """Fields that tell parts apart."""
        further = [field for field, _ in self.parts[0].also]
        return tuple(field for field in (self.part, *further, self.combined) if field)

    @property
    def filters(self) -> tuple[str, ...]:
        """Fields that conditions may name."""
        return (*self.apart, *self.objects)

    @property
    def objects(self) -> tuple[str, ...]:
        """Fields that objects' names hold."""
        return (*([self.object] if self.object else []), *self.within)

    def object_value(self, name: str, field: str) -> str:
        """An object's value of a field of `objects`; "" where its name has none."""
        if not self.within:
            return name
        return dict(zip(self.objects, name.split("\t"), strict=False)).get(field, "")

    def value(self, part: Part, field: str) -> str:
        """A part's value of a field of `apart`."""
        if field == self.combined:
            return part.key
        return part.name if field == self.part else dict(part.also)[field]

    def values(self, field: str) -> tuple[str, ...]:
        """Values that a field of `apart` can have; none of any other field."""
        return (
            tuple(dict.fromkeys(self.value(part, field) for part in self.parts))
            if field in self.apart
            else ()
        )

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """Fields that it can be broken down by."""
        return (*self.filters, "utilization") if self.mapped else self.filters

    @property
    def read(self) -> tuple[str, ...]:
        """The kernel's fields that it needs."""
        return tuple(
            dict.fromkeys(
                [name for part in self.parts for name in (*part.plus, *part.less)] + list(self.over)
            )
        )


def _parts(**fields: str) -> tuple[Part, ...]:
    """Parts of one field of the kernel each."""
    return tuple(Part(name, (field,)) for name, field in fields.items())


def _hidden(**fields: str) -> tuple[Part, ...]:
    """Hidden parts of one field of the kernel each."""
    return tuple(Part(name, (field,), hidden=True) for name, field in fields.items())


def _disk(more: tuple[Part, ...] = (), scale: float = 1.0, **fields: str) -> Counter:
    return Counter("diskstats", (*_parts(**fields), *more), "op", "device", scale)


_CPU = (
    # the kernel counts the time of guests among user's and nice's
    Part("user", ("user",), ("guest",)),
    Part("nice", ("nice",), ("guest_nice",)),
    *_parts(system="system", irq="irq", softirq="softirq", steal="steal"),
    Part("guest", ("guest", "guest_nice")),
    *_hidden(idle="idle", iowait="iowait"),
)
_MEMORY = (
    *_parts(anonymous="AnonPages", cached="Cached", buffers="Buffers", slab="Slab"),
    Part("other", ("MemTotal",), ("MemFree", "AnonPages", "Cached", "Buffers", "Slab")),
    *_hidden(free="MemFree", available="MemAvailable", dirty="Dirty"),
    *_hidden(writeback="Writeback", total="MemTotal"),
)
_FAULTS = (Part("minor", ("pgfault",), ("pgmajfault",)), Part("major", ("pgmajfault",)))


def _network(what: str) -> Counter:
    parts = (Part("in", (f"rx_{what}",)), Part("out", (f"tx_{what}",)))
    return Counter("network", parts, "direction", "interface")


_TRAFFIC = (Part("in", ("received_bytes",)), Part("out", ("sent_bytes",)))
_MOVED = _parts(read="read_bytes", write="written_bytes")


def _nfs_client(
    *parts: Part, part: str | None = None, scale: float = 1.0, over: tuple[str, ...] = ()
) -> Counter:
    return Counter(
        "nfs-client",
        parts,
        part,
        "server",
        scale,
        over=over,
        mean=bool(over),
        always="",
        within=("mount", "procedure"),
    )


def _smb_client(*parts: Part, part: str | None = None) -> Counter:
    return Counter("smb-client", parts, part, "server", always="", within=("share", "procedure"))


_ACCESSES = tuple(
    # a hit on what is still being read counts for itself since 2.2, among hits before
    Part(result, (f"{access}_{kind}_{counter}",), also=(("access", access), ("kind", kind)))
    for result, counter in (("hit", "hits"), ("iohit", "iohits"), ("miss", "misses"))
    for access in ("demand", "prefetch")
    for kind in ("data", "metadata")
)
_ARC_SIZES = (
    *_parts(data="data_size", metadata="metadata_size", headers="hdr_size"),
    Part("l2arc-headers", ("l2_hdr_size",)),
    *_parts(bonus="bonus_size", dnodes="dnode_size", dbufs="dbuf_size"),
    *_parts(waste="abd_chunk_waste_size"),
    *_hidden(total="size", recent="mru_size", frequent="mfu_size"),
    *_hidden(anonymous="anon_size", compressed="compressed_size"),
    *_hidden(uncompressed="uncompressed_size"),
)
_ARC_EVICTIONS = (
    *_parts(eligible="evict_l2_eligible", ineligible="evict_l2_ineligible"),
    *_parts(stored="evict_l2_cached"),
    # both are in `eligible`; since OpenZFS 2.1
    *_hidden(recent="evict_l2_eligible_mru", frequent="evict_l2_eligible_mfu"),
)
_ARC_TARGETS = (*_parts(target="c"), *_hidden(least="c_min", most="c_max"))
_TXG_BYTES = (
    *_parts(written="written_bytes"),
    *_hidden(dirty="dirty_bytes", read="read_bytes"),
)
_TXG_PHASES = _parts(open="open_ns", quiesce="quiesce_ns", wait="wait_ns", sync="sync_ns")
_ZIL_RECORDS = tuple(
    Part(name, (f"zil_itx_{name}_count",)) for name in ("indirect", "copied", "needcopy")
)

COUNTERS = {
    "io.ops": _disk(_parts(flush="flushes"), read="reads", write="writes", trim="discards"),
    "io.bytes": _disk(
        scale=512.0, read="read_sectors", write="write_sectors", trim="discard_sectors"
    ),
    "io.utilization": Counter(
        "diskstats", _parts(busy="io_ms"), None, "device", 0.001, mean=True, mapped=True
    ),
    "io.queue": Counter("diskstats", _parts(queued="weighted_io_ms"), None, "device", 0.001),
    "cpu.utilization": Counter(
        "cpu",
        _CPU,
        "mode",
        "cpu",
        over=("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"),
        mean=True,
        unsteady=("idle", "iowait", "guest", "guest_nice", "steal"),
        mapped=True,
    ),
    "memory.bytes": Counter("memory", _MEMORY, "kind", level=True),
    "vm.faults": Counter("memory", _FAULTS, "kind"),
    "net.bytes": _network("bytes"),
    "net.packets": _network("packets"),
    "net.link": Counter(
        "network", _parts(speed="speed_mbit"), None, "interface", 125_000.0, level=True
    ),
    "ip.bytes": Counter("tcp", _TRAFFIC, "direction", "peer", always=UNNAMED),
    "nfs.client.ops": _nfs_client(Part("op", ("ops",))),
    "nfs.client.bytes": _nfs_client(*_MOVED, part="op"),
    "nfs.client.traffic": _nfs_client(*_TRAFFIC, part="direction"),
    "nfs.client.latency": _nfs_client(
        *_parts(queue="queue_ms", server="rtt_ms"),
        Part("other", ("execute_ms",), ("queue_ms", "rtt_ms")),
        part="phase",
        scale=1e6,
        over=("ops",),
    ),
    "nfs.client.errors": _nfs_client(
        Part("error", ("errors",)),
        Part("retransmission", ("transmissions",), ("ops",)),
        Part("timeout", ("timeouts",)),
        part="kind",
    ),
    "smb.client.ops": _smb_client(Part("op", ("ops",))),
    "smb.client.bytes": _smb_client(*_MOVED, part="op"),
    "smb.client.errors": _smb_client(Part("error", ("errors",))),
    "fs.capacity": Counter(
        "filesystems",
        (
            Part("used", ("size_bytes",), ("free_bytes",)),
            *_hidden(available="available_bytes", size="size_bytes"),
        ),
        "kind",
        "mount",
        level=True,
    ),
    "arc.accesses": Counter("arcstats", _ACCESSES, "result", combined="outcome"),
    "arc.hit_ratio": Counter(
        "arcstats", _parts(hit="hits"), over=("hits", "iohits", "misses"), mean=True
    ),
    "arc.size": Counter("arcstats", _ARC_SIZES, "kind", level=True),
    "arc.target": Counter("arcstats", _ARC_TARGETS, "kind", level=True),
    "arc.evictions": Counter("arcstats", _ARC_EVICTIONS, "kind"),
    "l2arc.accesses": Counter("arcstats", _parts(hit="l2_hits", miss="l2_misses"), "result"),
    "l2arc.bytes": Counter("arcstats", _parts(read="l2_read_bytes", write="l2_write_bytes"), "op"),
    "l2arc.size": Counter(
        "arcstats",
        (*_parts(stored="l2_asize"), *_hidden(logical="l2_size")),
        "kind",
        level=True,
    ),
    "l2arc.headers": Counter("arcstats", _parts(headers="l2_hdr_size"), level=True),
    "zil.commits": Counter("zil", _parts(commit="zil_commit_count")),
    "zil.records": Counter("zil", _ZIL_RECORDS, "kind"),
    "zil.bytes": Counter(
        "zil",
        _parts(pool="zil_itx_metaslab_normal_bytes", log="zil_itx_metaslab_slog_bytes"),
        "kind",
    ),
    "txg.groups": Counter("txgs", _parts(group="groups"), None, "pool"),
    "txg.bytes": Counter("txgs", _TXG_BYTES, "kind", "pool"),
    "txg.time": Counter("txgs", _TXG_PHASES, "phase", "pool", 1e-9),
}
"""How samples answer a statistic, by its name."""


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

_EVENTS = "every recorded I/O; losses are reported with the answer"
_DISKS = "counters: a sum holds whole disks; partitions and stacked devices (dm, md, loop) are shown on request"
_LINKS = "a sum holds interfaces to the outside; loopback, bridges, bonds and virtual ones are shown on request"
_SMB_CALLS = (
    "system calls of the processes smbd, not SMB operations: one operation can make several calls, or none; "
    "calls by io_uring and ksmbd are not seen; Samba's own files have no share"
)
_NFS_CLIENT = (
    "mounts of NFS that the recorded machine has; a file system that is mounted at several places counts "
    "once; an operation counts when its reply has arrived"
)
_SMB_CLIENT = "SMB mounts of the recorded machine; a share that is mounted twice counts once; there is no latency by share"
_ARC = "the machine's one ARC, all pools together"
_L2ARC = "all cache devices together"
_OCTAVES = "OpenZFS's own counts by powers of two; a condition on {} holds for all from its least value to twice that, or for none"
_TXG = "groups that were done; a group that came and went between two readings is lost, and counted as such"

_COVERS = {
    **dict.fromkeys(("io.ops", "io.bytes"), f"events: {_EVENTS}; {_DISKS}"),
    "io.utilization": "a device that serves several I/Os in parallel can be 100 % utilized and still have capacity",
    "io.queue": _DISKS,
    "nfs.ops": f"{_EVENTS}; operations that only prepare others of their NFSv4 compound are part of the next one",
    **dict.fromkeys(("smb.ops", "smb.bytes"), _SMB_CALLS),
    "nfs.client.ops": _NFS_CLIENT,
    "nfs.client.bytes": f"{_NFS_CLIENT}; data alone, of the procedures READ and WRITE",
    "nfs.client.traffic": f"{_NFS_CLIENT}; headers are included",
    "nfs.client.latency": f"{_NFS_CLIENT}; the kernel counts milliseconds; queue: until the request is sent; server: until "
    "the reply, the network included; other: the client's own work",
    "nfs.client.errors": f"{_NFS_CLIENT}; errors include expected ones, such as a LOOKUP of a file that does not exist; "
    "kernels before 5.3 do not count errors",
    **dict.fromkeys(("smb.client.ops", "smb.client.bytes"), _SMB_CLIENT),
    "smb.client.errors": f"{_SMB_CLIENT}; errors include expected ones; SMB 1 counts none",
    "cpu.utilization": "idle and iowait count only where a condition names them; several processors are averaged",
    "memory.bytes": "free, available, dirty, writeback and total count only where a condition names them",
    **dict.fromkeys(("net.bytes", "net.packets"), _LINKS),
    "net.link": f"links that are up; {_LINKS}",
    "ip.bytes": "TCP, no UDP, of the recorded network namespace; out is what the peer acknowledged; a connection that ends "
    "between two readings counts if the kernel reports its end; a sum leaves out this machine's own",
    "fs.capacity": "size and available count only where a condition names them; data sets of one pool share its room",
    "vm.faults": "the whole machine",
    "arc.accesses": _ARC,
    "arc.hit_ratio": f"{_ARC}; nothing where there was no access",
    "arc.size": f"{_ARC}; total, recent, frequent, anonymous, compressed and uncompressed count only where a condition names them",
    "arc.target": f"{_ARC}; least and most count only where a condition names them",
    "arc.evictions": f"{_ARC}; before compression; stored: the L2ARC has a copy; recent and frequent, the parts of eligible, "
    "count only where a condition names them",
    **dict.fromkeys(("l2arc.accesses", "l2arc.bytes"), _L2ARC),
    "l2arc.size": f"{_L2ARC}; logical, which is before compression, counts only where a condition names it",
    "l2arc.headers": "a part of arc.size",
    "zpool.ops": _OCTAVES.format("latency"),
    "zpool.sizes": _OCTAVES.format("size"),
    "txg.groups": _TXG,
    "txg.bytes": f"{_TXG}; counted when a group is done; dirty and read count only where a condition names them",
    "txg.time": f"{_TXG}; counted when a group is done; one is open while another syncs, so that the sum is more than 1",
    **dict.fromkeys(("zil.commits", "zil.records", "zil.bytes"), "all pools together"),
}
"""What the numbers of a statistic hold, by its name; of all others `_EVENTS`."""

_CALLS = tuple(name for name in FIELDS if name not in ("queue", "job", "device"))
_MAPS = ("latency", "offset", "size")
_JOBS = ("op", "job", "file", "error", "flags", *_MAPS)
_NFS = ("op", "procedure", "version", "client", "file", "thread", "error", *_MAPS)
_SAMBA = ("op", "client", "user", "share", "file", "mount")
_SMB = (*_SAMBA, "pid", "thread", "error", "flags", *_MAPS)


@dataclass(frozen=True)
class _Events:
    """The events that answer a statistic, as `Entry` has it. filters_alone: fields that can be
    conditions, but no breakdowns."""

    source: str
    breakdowns: tuple[str, ...]
    filters_alone: tuple[str, ...] = ()
    only: bool = True
    octaves: bool = False
    implied: tuple[tuple[str, str], ...] = ()


_OF_EVENTS = {
    **dict.fromkeys(("io.ops", "io.bytes"), _Events("block", (*FIELDS, *OF_DISKS), only=False)),
    **dict.fromkeys(("file.ops", "file.bytes"), _Events("syscall", _CALLS)),
    **dict.fromkeys(("nfs.ops", "nfs.bytes"), _Events("nfs", _NFS)),
    **dict.fromkeys(
        ("smb.ops", "smb.bytes"),
        _Events("syscall", _SMB, ("process",), implied=(("process", "smbd"),)),
    ),
    **dict.fromkeys(("app.ops", "app.bytes"), _Events("fio", _JOBS)),
    "zpool.ops": _Events("zpool", ("op", "pool", "vdev", "latency"), octaves=True),
    "zpool.sizes": _Events("zpool-sizes", ("op", "pool", "vdev", "flags", "size"), octaves=True),
}

_STATISTICS = """
io.ops              | ops      | 1/s | block device I/Os
io.bytes            | bytes    | B/s | block device throughput
io.utilization      | share    | 1   | device utilization: share of time with at least one I/O in flight; mean over whole disks
io.queue            | level    |     | queue depth: mean I/Os in flight
file.ops            | ops      | 1/s | read, write and sync system calls on files and devices
file.bytes          | bytes    | B/s | throughput of read and write system calls
nfs.ops             | ops      | 1/s | operations of the NFS server
nfs.bytes           | bytes    | B/s | NFS server throughput: bytes read and written
smb.ops             | ops      | 1/s | file operations of Samba's server, as system calls
smb.bytes           | bytes    | B/s | throughput of Samba's server, as system calls
nfs.client.ops      | ops      | 1/s | operations of NFS mounts, by server, mount and procedure
nfs.client.bytes    | bytes    | B/s | data that NFS mounts read from and wrote to their servers
nfs.client.traffic  | bytes    | B/s | RPC messages of NFS mounts, in and out
nfs.client.latency  | level    | ns  | mean latency of operations of NFS mounts, by phase
nfs.client.errors   | errors   | 1/s | errors, retransmissions and timeouts of NFS mounts
smb.client.ops      | ops      | 1/s | operations of SMB mounts, by server, share and command
smb.client.bytes    | bytes    | B/s | data that SMB mounts read from and wrote to their servers
smb.client.errors   | errors   | 1/s | operations of SMB mounts that failed
app.ops             | ops      | 1/s | I/Os as seen by the load generator
app.bytes           | bytes    | B/s | throughput as seen by the load generator
cpu.utilization     | share    | 1   | CPU utilization, mean over CPUs
memory.bytes        | level    | B   | memory in use, by kind
net.bytes           | bytes    | B/s | network interface throughput
net.packets         | packets  | 1/s | network interface packets
net.link            | level    | B/s | network link speed, per direction
ip.bytes            | bytes    | B/s | TCP throughput, by peer
fs.capacity         | level    | B   | used space of file systems on local devices
vm.faults           | faults   | 1/s | page faults; major faults wait for I/O
arc.accesses        | accesses | 1/s | ARC accesses: hits, I/O hits (data already being read), misses
arc.hit_ratio       | share    | 1   | ARC hit ratio
arc.size            | level    | B   | ARC size, by kind
arc.target          | level    | B   | ARC target size
arc.evictions       | bytes    | B/s | bytes evicted from the ARC, by eligibility for the L2ARC
l2arc.accesses      | accesses | 1/s | L2ARC accesses (ARC misses): hits and misses
l2arc.bytes         | bytes    | B/s | L2ARC device throughput
l2arc.size          | level    | B   | L2ARC allocated size
l2arc.headers       | level    | B   | ARC memory used by L2ARC headers
zpool.ops           | ops      | 1/s | I/Os of OpenZFS vdevs by latency, queue time included
zpool.sizes         | ops      | 1/s | I/Os of OpenZFS vdevs by size; flags name the queue: sync, async, scrub, trim, rebuild
txg.groups          | groups   | 1/s | transaction groups synced
txg.bytes           | bytes    | B/s | bytes written by transaction groups
txg.time            | level    |     | time of transaction groups in each phase, per second
zil.commits         | commits  | 1/s | intent log (ZIL) commits
zil.records         | records  | 1/s | intent log (ZIL) records, by how the data is written
zil.bytes           | bytes    | B/s | intent log (ZIL) throughput, on pool devices and on log devices
"""
"""Name, measure, unit, and what it is."""


def _entry(row: str) -> Entry:
    name, measure, unit, about = (cell.strip() for cell in row.split("|"))
    counter, covers = COUNTERS.get(name), _COVERS.get(name, _EVENTS)
    events = _OF_EVENTS.get(name)
    if events is None:
        assert counter is not None
        filters = (*counter.filters, *(OF_DISKS if counter.object == "device" else ()))
        return Entry(
            name, about, measure, unit, (), True, filters, counter.breakdowns, counter, covers
        )
    return Entry(
        name,
        about,
        measure,
        unit,
        (events.source,),
        events.only,
        (*events.filters_alone, *events.breakdowns),
        events.breakdowns,
        counter,
        covers,
        events.octaves,
        events.implied,
    )


CATALOGUE = {
    entry.name: entry for entry in (_entry(row) for row in _STATISTICS.strip().splitlines())
}
"""Every statistic, by name."""

OF_EVENTS = frozenset(name for entry in CATALOGUE.values() for name in entry.sources)
"""Sources that have events, not counters."""


def preference(sources: list[str], wanted: tuple[str, ...] = ("block",)) -> list[str]:
    """Sources of events in order of preference: those wanted, then other traces by name, then
    `LAST`."""

    def rank(name: str) -> tuple[int, int, str]:
        if name in wanted:
            return 0, wanted.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)

    return sorted(sources, key=rank)
