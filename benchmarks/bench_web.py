# SPDX-License-Identifier: Apache-2.0
"""The worksheet in Chromium: frames a second while 3,600 columns are dragged and while four graphs
are live, the CPU of the first page, and how long a day takes.

A script asks for one frame after the other; Chromium's own tracing says how many were drawn of what
is dragged (of what is live only changes are drawn, so frames are those that the page was given),
and what CPU its main thread spent on each. The limits are 60 frames a second, which is 16.7 ms, and
a second until a day is drawn, from the address on: a day of a recording (from the maps of its
segments), and one of 86,400 seconds of which only what was kept is left, both in columns of a
minute. A day is opened anew several times; the best of the first (nothing is remembered of it then)
and of the others count, and the time of the service is printed with it. A value that is highlighted among
1.65 million I/Os has half a second, from the click until its map is drawn. Each figure is printed with its
limit, with the machine's load. Exits with 1 where one is beyond its limit; on a machine that does
other things as well frames get fewer and days longer. IOLAB_BENCH_SECONDS (5) makes the
measurements longer. Needs Chromium.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import bench_keep
import numpy as np
import pyarrow as pa
from surroundings import cpu_seconds, serve

from iolab import _core
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.write.writer import RecordingWriter

SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "5"))
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
HOUR, DAY = 3600, 86_400
FRAME_MS = 1000 / 60
OPENED_S = 1.0
HIGHLIGHT_S, MANY_S, MANY_RATE = 0.5, 1650, 1000
TIMES = 4
START_PAGE_S, START_PAGE_SHARE = 20, 0.1
KEPT_RATE = 300
"""I/Os a second of the day that was kept."""
CATEGORIES = [
    "devtools.timeline",
    *(f"disabled-by-default-devtools.timeline{part}" for part in ("", ".frame")),
]
WORK = ("FireAnimationFrame", "EventDispatch", "TimerFire", "Layout", "UpdateLayoutTree", "Paint")
"""What a page's main thread does, in the words of the tracing; some of it lies within other, so
that sums are never too small."""
GRAPHS = ("io.ops[latency]", "io.ops[op]", "io.ops[size]", "io.ops[process]")

DRAG = """([seconds, step]) => new Promise(done => {
    const canvas = document.querySelector('.plot canvas');
    const begun = performance.now();
    let frames = 0;
    const tick = now => {
        frames++;
        const {left, top, width} = canvas.getBoundingClientRect();
        const deltaX = Math.floor((now - begun) / 1000) % 2 ? -step : step;
        if (step) canvas.dispatchEvent(new WheelEvent('wheel', {
            deltaX, clientX: left + width / 2, clientY: top + 60, bubbles: true, cancelable: true}));
        if (now - begun < 1000 * seconds) requestAnimationFrame(tick);
        else done([frames, now - begun]);
    };
    requestAnimationFrame(tick);
})"""


def batch(start_ns: int, seconds: int, per_s: int, seed: int) -> pa.RecordBatch:
    """I/Os of two processes on two devices, latencies of two populations."""
    chance = np.random.default_rng(seed)
    rows = seconds * per_s
    write = chance.random(rows) < 0.3
    latency = np.where(
        write, chance.lognormal(14, 0.5, rows), chance.lognormal(11, 0.7, rows)
    ).astype(np.int64)
    buckets = [_core.grid_index(int(value), 6) for value in latency]
    columns: dict[str, Any] = {
        "source": ["block"] * rows,
        "time_ns": start_ns + np.arange(rows) * (SECOND // per_s),
        "latency_ns": latency,
        "latency_bucket": buckets,
        "size_bytes": np.where(write, 131072, 4096),
        "offset_bytes": chance.integers(0, 2**40, rows) & ~4095,
        "op": np.where(write, "write", "read").tolist(),
        "process": np.where(write, "backup", "db").tolist(),
        "device": np.where(chance.random(rows) < 0.5, "sda", "sdb").tolist(),
        "count": [1] * rows,
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(field.name, [None] * rows), field.type) for field in EVENTS],
        schema=EVENTS,
    )


def recorded(path: Path, seconds: int, per_s: int, *, segment: int = 600) -> None:
    """A recording that ended."""
    writer = RecordingWriter.create(
        path, host="bench", clock="realtime", origin={"kind": "import"}, live=False
    )
    for begin in range(0, seconds, segment):
        writer.append_events(
            batch(START + begin * SECOND, min(segment, seconds - begin), per_s, begin)
        )
        writer.seal()
    writer.close()


@contextmanager
def growing(path: Path) -> Iterator[None]:
    """A recording that grows by 2,000 I/Os a second."""
    over = threading.Event()
    writer = RecordingWriter.create(path, host="bench", clock="realtime", origin={"kind": "record"})
    writer.append_events(batch(time.time_ns() - 60 * SECOND, 60, 2000, 0))

    def write() -> None:
        number = 0
        while not over.wait(0.5):
            number += 1
            writer.append_events(batch(time.time_ns() - SECOND // 2, 1, 1000, number))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        writer.close()


@dataclass(frozen=True)
class Visit:
    """A page of a service of one recording."""

    page: Any
    address: str
    recording: str
    service: int
    """The process of the service."""

    def show(self, graphs: Sequence[str], **words: object) -> float:
        """Load the page anew, with a worksheet; the seconds from the address to the last graph that
        was drawn."""
        self.page.goto("about:blank")
        asked = [
            ("recording", self.recording),
            *words.items(),
            *(("graph", each) for each in graphs),
        ]
        begun = time.monotonic()
        self.page.goto(
            f"{self.address}/#" + "&".join(f"{name}={quote(str(value))}" for name, value in asked)
        )
        for each in graphs:
            self.page.wait_for_selector(f"section[data-statistic='{each}'] .values [role=option]")
        self.page.evaluate("() => new Promise(requestAnimationFrame)")
        return time.monotonic() - begun

    def service_ms(self) -> float:
        """What the service took for the graphs, by the page's own clock: from question to answer,
        one beside the other."""
        return float(
            self.page.evaluate("""() => {
            const asked = performance.getEntriesByType('resource').filter(each => each.name.includes('/query?'));
            return Math.max(...asked.map(each => each.responseEnd)) - Math.min(...asked.map(each => each.startTime));
        }""")
        )


@contextmanager
def visiting(browser: Any, recording: Path) -> Iterator[Visit]:
    """The page of a recording's service; it has been loaded once, so that the browser is awake."""
    service, address, token = serve(recording)
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    try:
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector("#add")
        yield Visit(page, address, recording.name, service.pid)
    finally:
        page.close()
        service.terminate()
        service.wait(30)


@contextmanager
def opened(browser: Any, recording: Path, graphs: Sequence[str], **words: object) -> Iterator[Any]:
    """The page with a worksheet that has come to rest."""
    with visiting(browser, recording) as visit:
        visit.show(graphs, **words)
        visit.page.wait_for_timeout(2000)
        yield visit.page


def frames(page: Any, step: int) -> tuple[float, float]:
    """(frames drawn a second, ms of CPU that the page's main thread took for each) while it is
    dragged by so many pixels a frame."""
    session = page.context.new_cdp_session(page)
    found: list[dict[str, Any]] = []
    ended = threading.Event()
    session.on("Tracing.dataCollected", lambda data: found.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda _: ended.set())
    session.send(
        "Tracing.start",
        {"transferMode": "ReportEvents", "traceConfig": {"includedCategories": CATEGORIES}},
    )
    asked, ms = page.evaluate(DRAG, [SECONDS, step])
    session.send("Tracing.end")
    limit = time.monotonic() + 20
    while not ended.is_set() and time.monotonic() < limit:
        page.wait_for_timeout(50)
    drawn = sum(each["name"] == "DrawFrame" for each in found) if step else asked
    busy = sum(each.get("tdur", each.get("dur", 0)) for each in found if each["name"] in WORK)
    return drawn / (ms / 1000), busy / 1000 / max(1, asked)


def said(what: str, measured: Callable[[], tuple[float, float]]) -> bool:
    """Print what was measured; whether the page keeps to its share of a frame."""
    rate, cost = measured()
    print(
        f"{what}: {rate:.1f} frames/s, {cost:.1f} ms of CPU in the page a frame: {cost / FRAME_MS:.2f} of {FRAME_MS:.1f} ms ({load()})",
        flush=True,
    )
    return cost <= FRAME_MS


def day(browser: Any, what: str, recording: Path, statistic: str, start: int) -> bool:
    """Print how long a day takes to be drawn; whether that is within a second, at the first time
    and again."""
    firsts: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    for _ in range(2):
        with visiting(browser, recording) as visit:
            for time_of_it in range(TIMES):
                took = visit.show([statistic], **{"from": start, "to": start + DAY * SECOND})
                (others if time_of_it else firsts).append((took, visit.service_ms() / 1000))
    for when, times in (("the first time", firsts), ("again", others)):
        took, service = min(times)
        print(
            f"{what}, {when}: {took:.2f} s until it was drawn: {took / OPENED_S:.2f} of {OPENED_S:g} s; {service:.2f} s of it the "
            f"service's answer ({load()})",
            flush=True,
        )
    return min(firsts)[0] <= OPENED_S


def start_page(browser: Any, recording: Path) -> bool:
    """Print the CPU of service and page while the first page of a recording that grows is open;
    whether that is at most a tenth of one core."""
    with visiting(browser, recording) as visit:
        session = visit.page.context.new_cdp_session(visit.page)
        session.send("Performance.enable")

        def page_seconds() -> float:
            metrics = session.send("Performance.getMetrics")["metrics"]
            return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

        visit.page.wait_for_selector(".cards canvas")
        visit.page.wait_for_timeout(5000)
        begun = time.monotonic(), cpu_seconds(visit.service), page_seconds()
        visit.page.wait_for_timeout(START_PAGE_S * 1000)
        seconds, service, page = (
            now - then
            for now, then in zip(
                (time.monotonic(), cpu_seconds(visit.service), page_seconds()), begun, strict=True
            )
        )
    share = (service + page) / seconds
    print(
        f"the first page of a live recording: service {service / seconds:.1%} and page {page / seconds:.1%} of one core: "
        f"{share / START_PAGE_SHARE:.2f} of {START_PAGE_SHARE:.0%} ({load()})",
        flush=True,
    )
    return share <= START_PAGE_SHARE


HIGHLIGHT = """name => new Promise(done => {
    performance.clearResourceTimings();
    const values = [...document.querySelectorAll('.graph-panel [role=option]')];
    const clicked = performance.now();
    values.find(each => each.title === name).click();
    const look = () => {
        const answered = performance.getEntriesByType('resource').some(each => each.name.includes('/layers?'));
        const frames = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - clicked)));
        if (answered) frames();
        else setTimeout(look, 5);
    };
    look();
})"""


def highlights(browser: Any, recording: Path) -> bool:
    """Print how long a value takes to be highlighted that was not highlighted before; whether the
    median of all devices and processes is within its limit."""
    times: list[float] = []
    for field in ("device", "process"):
        with visiting(browser, recording) as visit:
            graph = json.dumps({"statistic": GRAPHS[0], "by": field})
            span = f"from={START}&to={START + MANY_S * SECOND}"
            visit.page.goto("about:blank")
            visit.page.goto(
                f"{visit.address}/#recording={visit.recording}&{span}&graph={quote(graph)}"
            )
            options = visit.page.locator(".graph-panel [role=option]:not(:disabled)")
            options.first.wait_for()
            visit.page.wait_for_timeout(2000)
            for name in options.evaluate_all("all => all.map(each => each.title)"):
                times.append(visit.page.evaluate(HIGHLIGHT, name) / 1000)
                visit.page.wait_for_timeout(500)
    took = statistics.median(times)
    print(
        f"highlighting a value among {MANY_S * MANY_RATE:,} I/Os: {took:.2f} s (of {len(times)}: {min(times):.2f} to "
        f"{max(times):.2f}): {took / HIGHLIGHT_S:.2f} of {HIGHLIGHT_S:g} s ({load()})",
        flush=True,
    )
    return took <= HIGHLIGHT_S


def load() -> str:
    """How busy the machine is besides."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


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
    good = True
    with (
        tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), headless=True, args=ARGUMENTS
        )
        hours, whole, kept, live, many = (
            Path(folder, name) for name in ("hours", "day", "kept", "live", "many")
        )
        recorded(hours, 3 * HOUR, 100)
        middle = {"from": START + HOUR * SECOND, "to": START + 2 * HOUR * SECOND}
        with opened(browser, hours, GRAPHS[:1], **middle) as page:
            good &= said("dragging a map of 3,600 columns", lambda: frames(page, 12))
        with opened(browser, hours, GRAPHS, **middle) as page:
            good &= said("dragging four graphs of 3,600 columns", lambda: frames(page, 12))
        with growing(live):
            with opened(browser, live, GRAPHS, last=60) as page:
                good &= said("four live graphs", lambda: frames(page, 0))
            good &= start_page(browser, live)
        recorded(many, MANY_S, MANY_RATE)
        good &= highlights(browser, many)
        recorded(whole, DAY, 4)
        good &= day(browser, "a day from the maps of its segments", whole, GRAPHS[0], START)
        bench_keep.written(kept, bench_keep.LOADS["flash with a cache"], DAY // HOUR, KEPT_RATE)
        good &= day(
            browser,
            "a day of which only what was kept is left",
            kept,
            bench_keep.NAME,
            bench_keep.START * SECOND,
        )
        browser.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
