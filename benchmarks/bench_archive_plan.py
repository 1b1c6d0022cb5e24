# SPDX-License-Identifier: Apache-2.0
"""Planning a question to an archive with very many data files, of which only the metadata is made.

1,000 hosts have a data file a day and a day is one commit, as after compaction. IOLAB_BENCH_FILES:
data files (100,000). IOLAB_BENCH_HOSTS: hosts (1,000).
"""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

from iolab.recordings.archive import Archive, tables
from iolab.recordings.archive.scan import data_files, row_filter

FILES = int(os.environ.get("IOLAB_BENCH_FILES", "100000"))
HOSTS = int(os.environ.get("IOLAB_BENCH_HOSTS", "1000"))
DAY_NS = 86_400 * 10**9
FIRST_DAY = 20_000
ROUNDS = 3


def made_up(archive: Archive, schema: Any, host: int, day: int) -> DataFile:
    """The metadata of a file of a host and a day."""
    name = f"host{host:04}"
    bounds: dict[str, tuple[Any, Any]] = {
        "host": (name, name),
        "recording": (f"{host:016x}", f"{host:016x}"),
        "segment": (day * 1440, day * 1440 + 1439),
        "source": ("block", "block"),
        "time_ns": (day * DAY_NS, (day + 1) * DAY_NS - 1),
    }
    ends: list[dict[int, bytes]] = [{}, {}]
    for column, values in bounds.items():
        kind = StringType() if isinstance(values[0], str) else LongType()
        for place, value in enumerate(values):
            ends[place][schema.find_field(column).field_id] = to_bytes(kind, value)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{archive.url}/tables/{name}-{day}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(day, "block", name),
        record_count=3_000_000,
        file_size_in_bytes=32 << 20,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds=ends[0],
        upper_bounds=ends[1],
        split_offsets=[],
        sort_order_id=None,
        spec_id=0,
        equality_ids=None,
        key_metadata=None,
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as name:
        archive = Archive.open(str(Path(name) / "archive"), create=True)
        schema = archive.table(tables.EVENTS).schema()
        days = max(1, FILES // HOSTS)
        start = time.perf_counter()
        for day in range(FIRST_DAY, FIRST_DAY + days):

            def change(transaction: Any, day: int = day) -> None:
                with transaction.update_snapshot().fast_append() as update:
                    for host in range(HOSTS):
                        update.append_data_file(made_up(archive, schema, host, day))

            archive.commit(tables.EVENTS, change)
        passed = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(name).rglob("*") if path.is_file())
        print(
            f"{days * HOSTS:,} data files of {HOSTS:,} hosts and {days} days: {size / 2**20:.1f} MiB of metadata, "
            f"made in {passed:.0f} s",
            flush=True,
        )
        last = FIRST_DAY + days - 1
        date = datetime.date(1970, 1, 1) + datetime.timedelta(last)
        hour = (last * DAY_NS, last * DAY_NS + 3600 * 10**9)
        keys = [f"{host:016x}" for host in range(HOSTS)]
        questions = {
            f"an hour of a host on {date}": ([keys[7]], *hour),
            "an hour of all hosts": (keys, *hour),
            "all days of a host": ([keys[7]], None, None),
        }
        for text, (hosts, from_ns, until_ns) in questions.items():
            times = []
            for _ in range(ROUNDS if len(hosts) == 1 else 1):
                begun, begun_cpu = time.perf_counter(), time.process_time()
                where = row_filter(hosts, from_ns, until_ns, ["block"])
                chosen = data_files(archive, tables.EVENTS, where)
                times.append((time.perf_counter() - begun, time.process_time() - begun_cpu))
            best = min(times)
            print(
                f"{text}: {len(chosen):,} files, {best[0]:.2f} s, {best[1]:.2f} s of CPU",
                flush=True,
            )


if __name__ == "__main__":
    main()
