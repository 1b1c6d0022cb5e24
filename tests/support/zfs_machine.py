# SPDX-License-Identifier: Apache-2.0
"""OpenZFS on the machine in memory: its counters, and a shell whose zpool speaks once a second."""

from __future__ import annotations

from collections.abc import Callable

from iolab.hosts.kinds.fake import FakeHost, FakeProgram

POOL = "iolab-0123456789ab"
ROOT = "/proc/spl/kstat/zfs"
START = 1_700_000_000
HEAD = "18 1 0x01 1 1 1 1\nname                            type data\n"
TXGS = (
    "txg      birth            state ndirty       nread        nwritten     reads    writes   "
    "otime        qtime        wtime        stime       \n"
)


def named(**counters: int) -> str:
    """A named kstat."""
    return HEAD + "".join(f"{name:<31} 4    {value}\n" for name, value in counters.items())


def group(txg: int, state: str = "C", dirty: int = 688128, sync_ns: int = 91995750) -> str:
    """A line of `txgs`."""
    times = (985774450, 23500, 112890, sync_ns) if state == "C" else (0, 0, 0, 0)
    return (
        f"{txg:<8} {80000000000 + txg * 10**9:<16} {state}     {dirty if state == 'C' else 0:<12} "
        "0            573440       0        79       "
        + " ".join(f"{time:<12}" for time in times)
        + "\n"
    )


FILES = {
    f"{ROOT}/arcstats": named(
        hits=3482,
        misses=18,
        demand_data_hits=411,
        demand_data_misses=18,
        size=11294736,
        c=64863232,
        l2_hdr_size=0,
    )
    + "memory_available_bytes          3    -4096\n",
    f"{ROOT}/zil": named(
        zil_commit_count=418, zil_itx_count=417, zil_itx_metaslab_slog_bytes=3564656
    ),
    f"{ROOT}/dmu_tx": named(dmu_tx_assigned=2002, dmu_tx_dirty_delay=7),
    f"{ROOT}/{POOL}/txgs": TXGS + group(5) + group(6) + group(7, "O"),
    f"{ROOT}/{POOL}/dmu_tx_assign": HEAD
    + "1 ns                            4    0\n2 ns                            4    3\n",
    f"{ROOT}/{POOL}/objset-0x36": HEAD
    + f"dataset_name                    7    {POOL}/a b\n"
    + named(writes=1054, nwritten=8634368, reads=511, nread=4186112).removeprefix(HEAD),
    "/sys/module/zfs/parameters/zfs_txg_history": "100\n",
}


def rates(passed: float) -> str:
    """What the log of `zpool-iostat` holds after so many seconds."""
    rows = "".join(
        f"{name}\t688128\t1005944832\t0\t{writes}\t0\t8537072\t-\t1536455\t-\t1456962\t-\t-\t-\t91388\t-\t-\n"
        for name, writes in ((POOL, 787), ("mirror-0", 787), ("vdb", 393), ("vdc", 394))
    )
    reports = "".join(f"{START + second}\n{rows}\n" for second in range(1, int(passed + 1e-6) + 1))
    return (
        f"# iolab zpool-iostat 1\n@ {START}250000000 5000000000\npool\t{POOL}\n{START}\n{reports}"
    )


def counts(kind: str) -> Callable[[float], str]:
    """What the log of `zpool-latency` or `zpool-sizes` holds after so many seconds: 3 more writes
    each second and vdev."""
    first, label, queues = ("1", "131071", 10) if kind == "zpool-latency" else ("512", "8192", 12)

    def text(passed: float) -> str:
        found = f"# iolab {kind} 1\n"
        for second in range(int(passed + 1e-6) + 1):
            found += f"@ {START + second}{'0' * 9} {5 + second}{'0' * 9}\npool\t{POOL}\n"
            row = "\t".join(str(3 * second if queue == 1 else 0) for queue in range(queues))
            found += "".join(
                f"\n{name}\n{first}\t{chr(9).join('0' * queues)}\n{label}\t{row}\n"
                for name in (POOL, "mirror-0", "vdb")
            )
            found += "end\n"
        return found

    return text


def with_zfs(
    host: FakeHost, kind: str = "zpool-iostat", seconds: float = 1e9, exit_code: int = 0
) -> FakeHost:
    """The host with OpenZFS loaded and a pool imported; its shell is that of the source `kind`, and
    dies after `seconds`."""
    host.files.update(FILES)
    prints = rates if kind == "zpool-iostat" else counts(kind)
    host.programs |= {
        "zpool": FakeProgram(),
        "sh": FakeProgram(seconds=seconds, exit_code=exit_code, prints=prints),
    }
    return host
