# SPDX-License-Identifier: Apache-2.0
"""Statistics of OpenZFS that come of its own counters, as data. Names of counters change from
release to release: one that is not there is not known, and never 0."""

from __future__ import annotations

from .counter_catalogue import Counter, Part

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
