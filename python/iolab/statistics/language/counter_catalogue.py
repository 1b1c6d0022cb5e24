# SPDX-License-Identifier: Apache-2.0
"""Statistics of counters of the kernel and of ZFS, as data: the fields that are read, and the meaning
of their growth."""

from __future__ import annotations

from dataclasses import dataclass

from .objects import UNNAMED


@dataclass(frozen=True)
class Part:
    """A value of the field that tells a counter's parts apart, such as op=read.

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
        source: of the samples. parts: at least one. part: the field that tells them apart by name,
        None for a single one. object: the field that the samples' objects are, None where there is
        one alone. scale: of the kernel's numbers to the statistic's unit. level: whether they are
        readings of a level, not growing counts. over: fields by whose growth a part's growth is
        divided, in place of the time. mean: whether objects are averaged, not added up. unsteady:
        fields that the kernel lets fall a little; that is no growth rather than a new start.
        mapped: whether it has a map of how many objects were how busy.
        always: the object that every reading has, where the others are left out while they do
        nothing; None where all are always there. within: further fields that objects' names hold
        after the first, with tabs between.
        combined: a field whose values are all that differ between parts: "hit demand data".
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


def _disk(suffixes: tuple[str, str, str], scale: float, *more: Part) -> Counter:
    parts = (
        Part("read", (suffixes[0],)),
        Part("write", (suffixes[1],)),
        Part("trim", (suffixes[2],)),
        *more,
    )
    return Counter("diskstats", parts, "op", "device", scale)


DISK_OPS = _disk(("reads", "writes", "discards"), 1.0, Part("flush", ("flushes",)))
DISK_BYTES = _disk(("read_sectors", "write_sectors", "discard_sectors"), 512.0)
DISK_BUSY = Counter(
    "diskstats", (Part("busy", ("io_ms",)),), None, "device", 0.001, mean=True, mapped=True
)
DISK_QUEUE = Counter("diskstats", (Part("queued", ("weighted_io_ms",)),), None, "device", 0.001)

_TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
CPU = Counter(
    # the kernel counts the time of guests among user's and nice's
    "cpu",
    (
        Part("user", ("user",), ("guest",)),
        Part("nice", ("nice",), ("guest_nice",)),
        Part("system", ("system",)),
        Part("irq", ("irq",)),
        Part("softirq", ("softirq",)),
        Part("steal", ("steal",)),
        Part("guest", ("guest", "guest_nice")),
        Part("idle", ("idle",), hidden=True),
        Part("iowait", ("iowait",), hidden=True),
    ),
    "mode",
    "cpu",
    over=_TICKS,
    mean=True,
    unsteady=("idle", "iowait", "guest", "guest_nice", "steal"),
    mapped=True,
)

_APART = ("MemFree", "AnonPages", "Cached", "Buffers", "Slab")
MEMORY = Counter(
    "memory",
    (
        Part("anonymous", ("AnonPages",)),
        Part("cached", ("Cached",)),
        Part("buffers", ("Buffers",)),
        Part("slab", ("Slab",)),
        Part("other", ("MemTotal",), _APART),
        Part("free", ("MemFree",), hidden=True),
        *(
            Part(name, (field,), hidden=True)
            for name, field in (
                ("available", "MemAvailable"),
                ("dirty", "Dirty"),
                ("writeback", "Writeback"),
                ("total", "MemTotal"),
            )
        ),
    ),
    "kind",
    level=True,
)
FAULTS = Counter(
    "memory", (Part("minor", ("pgfault",), ("pgmajfault",)), Part("major", ("pgmajfault",))), "kind"
)


def _network(what: str) -> Counter:
    return Counter(
        "network",
        (Part("in", (f"rx_{what}",)), Part("out", (f"tx_{what}",))),
        "direction",
        "interface",
    )


NET_BYTES, NET_PACKETS = _network("bytes"), _network("packets")
NET_LINK = Counter(
    "network", (Part("speed", ("speed_mbit",)),), None, "interface", 125_000.0, level=True
)

IP_BYTES = Counter(
    "tcp",
    (Part("in", ("received_bytes",)), Part("out", ("sent_bytes",))),
    "direction",
    "peer",
    always=UNNAMED,
)


def _nfs_client(
    *parts: Part, part: str | None = None, scale: float = 1.0, mean: bool = False
) -> Counter:
    return Counter(
        "nfs-client",
        parts,
        part,
        "server",
        scale,
        over=("ops",) if mean else (),
        mean=mean,
        always="",
        within=("mount", "procedure"),
    )


NFS_CLIENT_OPS = _nfs_client(Part("op", ("ops",)))
NFS_CLIENT_BYTES = _nfs_client(
    Part("read", ("read_bytes",)), Part("write", ("written_bytes",)), part="op"
)
NFS_CLIENT_TRAFFIC = _nfs_client(
    Part("in", ("received_bytes",)), Part("out", ("sent_bytes",)), part="direction"
)
NFS_CLIENT_LATENCY = _nfs_client(
    Part("queue", ("queue_ms",)),
    Part("server", ("rtt_ms",)),
    Part("other", ("execute_ms",), ("queue_ms", "rtt_ms")),
    part="phase",
    scale=1e6,
    mean=True,
)
NFS_CLIENT_ERRORS = _nfs_client(
    Part("error", ("errors",)),
    Part("retransmission", ("transmissions",), ("ops",)),
    Part("timeout", ("timeouts",)),
    part="kind",
)


def _smb_client(*parts: Part, part: str | None = None) -> Counter:
    return Counter("smb-client", parts, part, "server", always="", within=("share", "procedure"))


SMB_CLIENT_OPS = _smb_client(Part("op", ("ops",)))
SMB_CLIENT_BYTES = _smb_client(
    Part("read", ("read_bytes",)), Part("write", ("written_bytes",)), part="op"
)
SMB_CLIENT_ERRORS = _smb_client(Part("error", ("errors",)))

FILE_SYSTEMS = Counter(
    "filesystems",
    (
        Part("used", ("size_bytes",), ("free_bytes",)),
        Part("available", ("available_bytes",), hidden=True),
        Part("size", ("size_bytes",), hidden=True),
    ),
    "kind",
    "mount",
    level=True,
)


ARC_ACCESSES = Counter(
    "arcstats",
    tuple(
        # a hit on what is still being read counts for itself since 2.2, among hits before
        Part(result, (f"{access}_{kind}_{counter}",), also=(("access", access), ("kind", kind)))
        for result, counter in (("hit", "hits"), ("iohit", "iohits"), ("miss", "misses"))
        for access in ("demand", "prefetch")
        for kind in ("data", "metadata")
    ),
    "result",
    combined="outcome",
)
ARC_HIT_RATIO = Counter(
    "arcstats", (Part("hit", ("hits",)),), over=("hits", "iohits", "misses"), mean=True
)
ARC_SIZE = Counter(
    "arcstats",
    (
        *(
            Part(name, (field,))
            for name, field in (
                ("data", "data_size"),
                ("metadata", "metadata_size"),
                ("headers", "hdr_size"),
                ("l2arc-headers", "l2_hdr_size"),
                ("bonus", "bonus_size"),
                ("dnodes", "dnode_size"),
                ("dbufs", "dbuf_size"),
                ("waste", "abd_chunk_waste_size"),
            )
        ),
        *(
            Part(name, (field,), hidden=True)
            for name, field in (
                ("total", "size"),
                ("recent", "mru_size"),
                ("frequent", "mfu_size"),
                ("anonymous", "anon_size"),
                ("compressed", "compressed_size"),
                ("uncompressed", "uncompressed_size"),
            )
        ),
    ),
    "kind",
    level=True,
)
ARC_TARGET = Counter(
    "arcstats",
    (
        Part("target", ("c",)),
        Part("least", ("c_min",), hidden=True),
        Part("most", ("c_max",), hidden=True),
    ),
    "kind",
    level=True,
)

L2ARC_ACCESSES = Counter(
    "arcstats", (Part("hit", ("l2_hits",)), Part("miss", ("l2_misses",))), "result"
)
L2ARC_BYTES = Counter(
    "arcstats", (Part("read", ("l2_read_bytes",)), Part("write", ("l2_write_bytes",))), "op"
)
L2ARC_SIZE = Counter(
    "arcstats",
    (Part("stored", ("l2_asize",)), Part("logical", ("l2_size",), hidden=True)),
    "kind",
    level=True,
)
L2ARC_HEADERS = Counter("arcstats", (Part("headers", ("l2_hdr_size",)),), level=True)

ZIL_COMMITS = Counter("zil", (Part("commit", ("zil_commit_count",)),))
ZIL_RECORDS = Counter(
    "zil",
    tuple(Part(name, (f"zil_itx_{name}_count",)) for name in ("indirect", "copied", "needcopy")),
    "kind",
)
ZIL_BYTES = Counter(
    "zil",
    (
        Part("pool", ("zil_itx_metaslab_normal_bytes",)),
        Part("log", ("zil_itx_metaslab_slog_bytes",)),
    ),
    "kind",
)

TXG_GROUPS = Counter("txgs", (Part("group", ("groups",)),), None, "pool")
TXG_BYTES = Counter(
    "txgs",
    (
        Part("written", ("written_bytes",)),
        Part("dirty", ("dirty_bytes",), hidden=True),
        Part("read", ("read_bytes",), hidden=True),
    ),
    "kind",
    "pool",
)
TXG_TIME = Counter(
    "txgs",
    tuple(Part(name, (f"{name}_ns",)) for name in ("open", "quiesce", "wait", "sync")),
    "phase",
    "pool",
    1e-9,
)
