#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A clip of a minute that shows the pages: a slow disk is found on the worksheet.

`make tour`, or `.venv/bin/python scripts/tour.py [-o tour.webm]`. The recording is made up: a minute
of 10 thousand I/Os a second, in which one disk becomes slow. Chromium shows the pages of
`iolab view`, and its own encoder writes the clip. No file of the tree changes.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_odd import record, workload  # noqa: E402
from looks import CHROMIUM, service  # noqa: E402

SIZE = {"width": 1440, "height": 900}
SLOW_FROM = 38
"""The second of the recording in which the disk becomes slow."""
LATENCY = "io.ops[latency]"

_OVERLAY = """
addEventListener("DOMContentLoaded", () => {
    const pointer = document.createElement("div"), caption = document.createElement("div");
    Object.assign(pointer.style, {position: "fixed", zIndex: 99, width: "22px", height: "22px", borderRadius: "50%",
        margin: "-11px 0 0 -11px", background: "rgb(230 120 20 / 45%)", border: "2px solid rgb(230 120 20)",
        pointerEvents: "none", left: "-50px"});
    Object.assign(caption.style, {position: "fixed", zIndex: 98, left: "50%", bottom: "28px", padding: "10px 22px",
        transform: "translateX(-50%)", background: "rgb(16 22 30 / 90%)", color: "#fff", borderRadius: "8px",
        font: "600 22px system-ui, sans-serif", pointerEvents: "none", whiteSpace: "nowrap", display: "none"});
    document.body.append(pointer, caption);
    addEventListener("mousemove", event => {
        pointer.style.left = event.clientX + "px"; pointer.style.top = event.clientY + "px";
    }, true);
    window.tour_caption = words => { caption.textContent = words; caption.style.display = words ? "" : "none" };
});
"""

_ENCODE = """async ({times, seconds, rate}) => {
    const canvas = document.querySelector("canvas"), context = canvas.getContext("2d");
    const image = async i => {
        const found = new Image();
        found.src = "http://tour.invalid/" + i + ".jpg";
        await found.decode();
        return found;
    };
    const recorder = new MediaRecorder(canvas.captureStream(rate),
        {mimeType: "video/webm;codecs=vp8", videoBitsPerSecond: 3_000_000});
    const parts = [];
    recorder.ondataavailable = event => parts.push(event.data);
    const ended = new Promise(done => { recorder.onstop = done });
    context.drawImage(await image(0), 0, 0, canvas.width, canvas.height);
    recorder.start();
    const begin = performance.now();
    for (let i = 1; i < times.length; i++) {
        const wait = times[i] * 1000 - (performance.now() - begin);
        if (wait < -200) continue;
        const next = await image(i);
        await new Promise(done => setTimeout(done, Math.max(0, times[i] * 1000 - (performance.now() - begin))));
        context.drawImage(next, 0, 0, canvas.width, canvas.height);
    }
    await new Promise(done => setTimeout(done, Math.max(0, seconds * 1000 - (performance.now() - begin))));
    recorder.stop();
    await ended;
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    let text = "";
    for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(text);
}"""


@dataclass
class Film:
    """Pictures of a page with their times in seconds, and how fast the tour goes."""

    page: Any
    pace: float
    frames: list[tuple[float, bytes]] = field(default_factory=list)
    cuts: list[tuple[float, float]] = field(default_factory=list)
    """Waits for an answer, which depend on the machine and are cut."""

    def begin(self) -> None:
        """Take a picture whenever the page changes."""
        self._devtools = self.page.context.new_cdp_session(self.page)
        self._devtools.on("Page.screencastFrame", self._keep)
        self._devtools.send(
            "Page.startScreencast",
            {
                "format": "jpeg",
                "quality": 85,
                "everyNthFrame": 2,
                "maxWidth": 1440,
                "maxHeight": 900,
            },
        )

    def _keep(self, frame: dict[str, Any]) -> None:
        self.frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
        self._devtools.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    def wait(self, place: Any) -> None:
        """Wait until an element is visible; a second of it stays in the clip."""
        begin = time.time()
        place.wait_for(timeout=120_000)
        end = time.time()
        if end - begin > 1:
            self.cuts.append((begin + 0.5, end - 0.5))

    def times(self) -> list[float]:
        """Seconds of each picture in the clip."""
        begin = self.frames[0][0]
        return [
            when - begin - sum(max(0, min(when, end) - start) for start, end in self.cuts)
            for when, _ in self.frames
        ]

    def say(self, words: str) -> None:
        """Show a caption."""
        self.page.evaluate("words => window.tour_caption(words)", words)

    def rest(self, seconds: float) -> None:
        """Leave time to read."""
        self.page.wait_for_timeout(1000 * seconds * self.pace)

    def point(self, x: float, y: float) -> None:
        """Move the pointer slowly."""
        self.page.mouse.move(x, y, steps=max(2, round(15 * self.pace)))

    def click(self, place: Any) -> None:
        """Move to an element and click it."""
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        self.point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.rest(0.4)
        place.click()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag slowly from one point to another."""
        self.point(*start)
        self.page.mouse.down()
        self.point(*end)
        self.page.mouse.up()


def walk(film: Film, url: str) -> None:
    """The tour."""
    page = film.page
    page.goto(url)
    page.locator(".cards .thumbnail small", has_text="up to").nth(3).wait_for()
    page.locator(".odd .link").first.wait_for(timeout=120_000)
    film.begin()
    film.say("iolab: every I/O of a minute, 10 000 a second")
    film.rest(4)
    film.say("How long does I/O take? Every I/O is in the heat map")
    film.click(page.locator(f"[data-choice='{LATENCY}']"))
    graph = page.locator(f"section[data-statistic='{LATENCY}']").first
    canvas = graph.locator(".plot canvas").first
    canvas.wait_for()
    film.rest(3.5)
    film.say("What is odd here? All statistics were compared: one disk became slow")
    page.evaluate("scrollTo(0, 0)")
    film.rest(4)
    film.say("A click marks its I/Os")
    film.click(page.locator(".odd .link").first)
    film.wait(page.locator(".who table").first)
    film.rest(4)
    film.click(page.get_by_role("button", name="Close what is odd"))
    film.click(page.locator(".who").first.get_by_role("button", name="Unmark"))

    film.say("Or by hand: drag over slow I/Os. Who issued them?")
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(".plot canvas").first.bounding_box()
    left, top = box["x"] + 84, box["y"] + 6
    width, height = box["width"] - 176, box["height"] - 42
    film.drag((left + 0.66 * width, top + 0.02 * height), (left + 0.8 * width, top + 0.22 * height))
    film.wait(page.locator(".who table").first)
    film.rest(3.5)
    film.say("The mark has handles")
    page.evaluate("scrollTo(0, 0)")
    film.rest(0.3)
    film.drag((left + 0.8 * width, top + 0.12 * height), (left + 0.97 * width, top + 0.12 * height))
    film.rest(2)

    film.say("All processes in their colours")
    page.keyboard.press("Escape")
    # keys act on the graph that was clicked last
    graph.locator("h2").first.click()
    by = graph.locator("select.by")
    by.select_option("process")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("r")
    film.rest(3.5)
    film.say("Replay, with all graphs in step")
    strip = page.locator(".overview").bounding_box()
    film.drag((strip["x"] + 5, strip["y"] + 8), (strip["x"] + 0.3 * strip["width"], strip["y"] + 8))
    film.click(page.get_by_role("button", name="Replay"))
    page.locator("#speed").select_option("10")
    film.click(page.locator(".replay button").first)
    film.rest(6)
    page.locator(".replay button").first.click()
    film.say("In the dark, too")
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("T")
    film.rest(2.5)
    film.say("")
    film.rest(0.5)


def clip(browser: Any, film: Film, rate: int) -> bytes:
    """The pictures as WebM, by the browser's encoder."""
    page = browser.new_page()
    pictures = [picture for _, picture in film.frames]
    page.route(
        "http://tour.invalid/*.jpg",
        lambda route: route.fulfill(
            body=pictures[int(Path(route.request.url).stem)],
            content_type="image/jpeg",
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    page.route(
        "http://tour.invalid/", lambda route: route.fulfill(body="", content_type="text/html")
    )
    page.goto("http://tour.invalid/")
    page.set_content(f"<canvas width={SIZE['width']} height={SIZE['height']}></canvas>")
    times = film.times()
    text = page.evaluate(_ENCODE, {"times": times, "seconds": times[-1] + 1, "rate": rate})
    return base64.b64decode(text)


def record_tour(directory: Path, name: str) -> Path:
    """A recording of that name in a directory: a minute, in which one disk becomes slow."""
    rng = np.random.default_rng(7)
    table = workload(rng)
    slow = (table["device"] == "sde") & (table["seconds"] >= SLOW_FROM)
    table["latency"][slow] += rng.gamma(4, 5e6, int(slow.sum()))
    record(table, directory)
    return (directory / "recording").rename(directory / name)


def make(browser: Any, output: Path, pace: float) -> float:
    """Write the clip; its length in seconds."""
    with tempfile.TemporaryDirectory() as name:
        recording = record_tour(Path(name), "db-server")
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="no-preference")
        page.add_init_script(_OVERLAY)
        film = Film(page, pace)
        with service([recording], Path(name) / "home") as url:
            walk(film, url)
            page.close()
    output.write_bytes(clip(browser, film, 20))
    return film.times()[-1]


def main() -> None:
    """Make the clip."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/tour.webm"))
    parser.add_argument("--pace", type=float, default=1.0, help="0.1: pauses of a tenth")
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        seconds = make(browser, args.output, args.pace)
        browser.close()
    size = args.output.stat().st_size / 2**20
    spent = time.monotonic() - begun
    print(f"{args.output}: {seconds:.0f} s, {size:.1f} MiB, made in {spent:.0f} s")


if __name__ == "__main__":
    main()
