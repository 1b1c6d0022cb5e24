# SPDX-License-Identifier: Apache-2.0
"""Statistics of counters of the kernel and of ZFS, as data: the fields that are read, and the meaning
of their growth."""

from __future__ import annotations

from dataclasses import dataclass

from .objects import UNNAMED


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
