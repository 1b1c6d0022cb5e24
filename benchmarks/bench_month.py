# SPDX-License-Identifier: Apache-2.0
"""The worksheet of a month of a server with eight disks, whose events of all but the last day are
deleted: what is left of them are the maps of segments, which are joined.

The load is made up: a rate that follows the hours of the day and the days of the week, latencies of
a mixture of caches, flash and rare slow I/Os, and one disk with three times the I/Os of the others.
A segment covers a minute, as the recorder makes them. Then `iolab view` serves it, and Chromium
opens the month, a week, and a minute of yesterday by process, each several times. Limits: 1 s until
the first picture of the month, from the address on; 0.3 s for a week and 0.5 s for the minute in
the page that is open; and memory of the service that does not grow between the second and the last
round. Prints each figure as ratio to its limit; exits with 1 where one is beyond it.
IOLAB_BENCH_DAYS (30) and IOLAB_BENCH_RATE (40 I/Os a second on average) make it shorter or another.
IOLAB_BENCH_MONTH is a directory that keeps the recording: a second run measures it again without
writing it. Needs Chromium.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from bench_web import ARGUMENTS, CHROMIUM, Visit, load, visiting
from surroundings import memory

from iolab.recordings.ask.engine.cells import bucket_of
from iolab.recordings.store.base.grids import LogLinear
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

DAYS = int(os.environ.get("IOLAB_BENCH_DAYS", "30"))
RATE = float(os.environ.get("IOLAB_BENCH_RATE", "40"))
KEPT = os.environ.get("IOLAB_BENCH_MONTH")
SECOND = 10**9
MINUTE, HOUR, DAY = 60, 3600, 86_400
DISKS = [f"sd{letter}" for letter in "abcdefgh"]
PROCESSES = ["postgres", "nfsd", "backup"]
ROUNDS = 5
GROWTH = 1.1
"""The service's memory after the last round may be so many times that after the second."""
LATENCY = "io.ops[latency]"
WHOLE, WEEK, YESTERDAY = "the month, first picture", "a week", "a minute of yesterday by process"
LIMITS_S = {WHOLE: 1.0, WEEK: 0.3, YESTERDAY: 0.5}


def rate_at(second: int) -> float:
    """I/Os a second: by day more than at night, at weekends half, a backup at two o'clock."""
    hour, weekday = second % DAY / HOUR, second // DAY % 7
    office = 0.4 + 1.2 * math.exp(-(((hour - 14) / 4) ** 2))
    backup = 3.0 if 2 <= hour < 2.5 else 0.0
    return RATE * (office * (0.5 if weekday >= 5 else 1.0) + backup)


def words(names: list[str], places: np.ndarray[Any, Any]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), names)


def minute(start_s: int, second: int, chance: np.random.Generator) -> pa.RecordBatch:
    """The I/Os of a minute, in the order of time."""
    rows = max(1, int(chance.poisson(rate_at(second) * MINUTE)))
    is_backup = np.full(rows, 2 <= second % DAY / HOUR < 2.5) & (chance.random(rows) < 0.8)
    kind = chance.random(rows)
    latency = np.where(
        kind < 0.35,
        chance.lognormal(math.log(30e3), 0.3, rows),
        np.where(
            kind < 0.995,
            chance.lognormal(math.log(250e3), 0.5, rows),
            chance.lognormal(math.log(20e6), 0.8, rows),
        ),
    ).astype(np.uint64)
    times = np.sort(chance.integers(0, MINUTE * SECOND, rows)) + (start_s + second) * SECOND
    columns = {
        "source": words(["block"], np.zeros(rows)),
        "time_ns": pa.array(times),
        "latency_ns": pa.array(latency),
        "latency_bucket": pa.array(
            bucket_of(latency, LogLinear(6), shifted=False).astype(np.uint16)
        ),
        "offset_bytes": pa.array(chance.integers(0, 2**30, rows).astype(np.uint64) * 4096),
        "size_bytes": pa.array(
            np.where(is_backup, 1 << 20, chance.choice([4096, 8192, 131072], rows)).astype(
                np.uint64
            )
        ),
        "op": words(["read", "write"], chance.random(rows) < 0.4),
        "device": words(DISKS, np.minimum(chance.integers(0, 10, rows), 7)),
        "process": words(PROCESSES, np.where(is_backup, 2, chance.random(rows) < 0.3)),
        "count": pa.array(np.ones(rows, np.uint64)),
    }
    return pa.RecordBatch.from_arrays(
        [
            columns.get(field.name, pa.nulls(rows, field.type))
            if field.name in columns or not pa.types.is_dictionary(field.type)
            else pa.DictionaryArray.from_arrays(
                pa.nulls(rows, pa.int32()), pa.array([], pa.string())
            )
            for field in EVENTS
        ],
        schema=EVENTS,
    )


def write_month(directory: Path, start_s: int) -> int:
    """Write the recording; its I/Os."""
    chance = np.random.default_rng(38)
    total = 0
    with RecordingWriter.create(
        directory,
        host="bench",
        clock="realtime",
        origin={"kind": "record"},
        retention={"age_s": DAY, "maps_age_s": 2 * DAYS * DAY},
        live=False,
    ) as writer:
        for second in range(0, DAYS * DAY, MINUTE):
            events = minute(start_s, second, chance)
            total += events.num_rows
            writer.append_segment([events])
            if second % DAY == 0:
                print(f"day {second // DAY + 1} of {DAYS}", file=sys.stderr, flush=True)
    return total


def join_maps(directory: Path) -> str:
    """Join the maps, as a recorder does meanwhile; how long that took."""
    begun = time.process_time()
    with RecordingWriter.reopen(directory, live=False) as writer:
        joins = writer.map_joiner.join()
    took = time.process_time() - begun
    return f"{joins} joins took {took:.0f} s of CPU, {took / DAYS / DAY:.3%} of the recorded time"


def prepare(recording: Path, start_s: int) -> None:
    """Write the recording and join its maps; print its size and what that took."""
    begun = time.perf_counter()
    total = write_month(recording, start_s)
    print(join_maps(recording), flush=True)
    size = sum(path.stat().st_size for path in recording.rglob("*") if path.is_file())
    left = sum(sum(part.sources.values()) for part in Recording(recording).segments())
    print(
        f"{DAYS} days, {total:,} I/Os, {left:,} of them left: {size / 2**20:.0f} MiB, written "
        f"in {time.perf_counter() - begun:.0f} s",
        flush=True,
    )


def walk(visit: Visit, start_s: int) -> dict[str, float]:
    """Seconds until each view is drawn: of the month in a page that is loaded, of the others in the
    page that is open."""
    end = start_s + DAYS * DAY
    yesterday = end - 20 * HOUR
    week = max(start_s, end - 10 * DAY)
    took = {WHOLE: visit.show([LATENCY], **{"from": start_s * SECOND, "to": end * SECOND})}
    for name, first, last, statistic in (
        (WEEK, week, min(end, week + 7 * DAY), LATENCY),
        (YESTERDAY, yesterday, yesterday + MINUTE, "io.ops[process]"),
    ):
        place = f"recording={quote(visit.recording)}"
        visit.page.evaluate("place => { location.hash = place }", place)
        visit.page.wait_for_selector(".welcome")
        place += f"&from={first * SECOND}&to={last * SECOND}&graph={quote(statistic)}"
        begun = time.monotonic()
        visit.page.evaluate("place => { location.hash = place }", place)
        visit.page.wait_for_selector(f"section[data-statistic='{statistic}'] .values [role=option]")
        visit.page.evaluate("() => new Promise(requestAnimationFrame)")
        took[name] = time.monotonic() - begun
    return took


def measure(browser: Any, recording: Path, start_s: int) -> bool:
    """Print the times of all views and the service's memory; whether all are within limits."""
    with visiting(browser, recording) as visit:
        first = walk(visit, start_s)
        sizes, others = [], []
        for _ in range(ROUNDS):
            others.append(walk(visit, start_s))
            sizes.append(memory(visit.service))
    is_good = True
    for name, limit in LIMITS_S.items():
        again = statistics.median(times[name] for times in others)
        # only the month is asked for first; the others are views of a page that is open
        counted = first[name] if name == WHOLE else again
        is_good &= counted <= limit
        print(
            f"{name}: {first[name]:.2f} s the first time, {again:.2f} s again ({ROUNDS} rounds): "
            f"{counted / limit:.2f} of {limit:g} s ({load()})",
            flush=True,
        )
    growth = sizes[-1] / sizes[0]
    print(
        f"memory of the service: {sizes[0] >> 20} MiB after the second round, {growth:.2f} times "
        f"that after {ROUNDS - 1} more: {growth / GROWTH:.2f} of {GROWTH:g}"
    )
    return is_good and growth <= GROWTH


def main() -> int:
    """Measure."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("left out: playwright is not installed")
        return 0
    if not CHROMIUM.exists():
        print(f"left out: there is no {CHROMIUM} (apt-get install chromium)")
        return 0
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        directory = Path(KEPT or folder)
        recording, start = directory / "month", directory / "start"
        if start.exists():
            start_s = int(start.read_text())
        else:
            # old is what is older than a day now
            start_s = int(time.time()) // MINUTE * MINUTE - DAYS * DAY
            prepare(recording, start_s)
            start.write_text(str(start_s))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS
            )
            is_good = measure(browser, recording, start_s)
            browser.close()
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
