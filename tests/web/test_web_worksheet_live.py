# SPDX-License-Identifier: Apache-2.0
"""The worksheet over `iolab live` in Chromium, as one story: a load that fio makes appears, is
drilled into, and leaves the page again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.browser import PATIENCE, expect, until
from support.recorded import device_in_memory
from support.worksheet import addressed, drawn, frame, picture, settled, visited

pytestmark = [pytest.mark.browser, pytest.mark.fio, pytest.mark.loops, pytest.mark.tracing]

LATENCY, WRITES = "io.ops[latency]", "io.ops[op=write][latency]"


@dataclass
class Load:
    """Two fios with names of their own, and what the reading one measured once it has ended: its
    median in ns."""

    processes: list[subprocess.Popen[bytes]]
    output: Path

    def end(self) -> float:
        """End both."""
        for process in self.processes:
            process.send_signal(signal.SIGINT)
        for process in self.processes:
            process.wait(PATIENCE / 1000)
        document = json.loads(self.output.read_text()[self.output.read_text().index("{") :])
        return float(document["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"])


@contextmanager
def loaded(node: str, fio: str, directory: Path) -> Iterator[Load]:
    """A reader and a writer on a device, each a process of its own name."""
    output = directory / "fio.json"
    processes = []
    jobs = {
        "reader": ["--rw=randread", "--bs=4k", "--rate_iops=1500"],
        "writer": ["--rw=randwrite", "--bs=128k", "--rate_iops=150"],
    }
    for name, words in jobs.items():
        (directory / name).symlink_to(fio)
        processes.append(
            subprocess.Popen(
                [
                    directory / name,
                    f"--name={name}",
                    f"--filename={node}",
                    "--direct=1",
                    "--ioengine=psync",
                    "--time_based",
                    "--runtime=600",
                    "--size=32m",
                    "--output-format=json",
                    f"--output={output if name == 'reader' else directory / 'other.json'}",
                    *words,
                ],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    try:
        yield Load(processes, output)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def live(directory: Path, node: str) -> Iterator[str]:
    """`iolab live` on a device; its address."""
    words = [
        "live",
        "block",
        "--device",
        node,
        "-o",
        str(directory),
        "--port",
        "0",
        "--budget",
        "none",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(directory.parent / "data")},
    )
    try:
        assert process.stdout is not None
        yield next(
            word for line in process.stdout for word in line.split() if word.startswith("http://")
        )
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode in (0, 130), said


def ranges(page: Any, statistic: str) -> list[tuple[float, float, int]]:
    """The left panel of a map of latency: from, to in ns, I/Os."""
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    found = []
    for words, count in (
        frame(page, statistic)
        .locator(".values .value")
        .evaluate_all(
            "all => all.map(each => [each.querySelector('.name').innerText, each.querySelector('.number').innerText])"
        )
    ):
        low, high = (
            float(number) * units[unit]
            for number, unit in re.findall(r"([\d.]+) (ns|µs|ms|s)\b", words)
        )
        found.append((low, high, int(count.replace(" ", ""))))
    return found


def total(page: Any, statistic: str) -> int:
    """The I/Os that a map's heading counts."""
    return int(re.sub(r"\D", "", frame(page, statistic).locator(".graph-sum").inner_text()) or 0)


def places(page: Any) -> list[Any]:
    return [
        each.bounding_box()
        for each in page.locator("section[data-statistic], .time-bar, canvas").all()
    ]


def test_a_load_is_seen_drilled_into_and_taken_along(
    browser: Any, fio: str, tmp_path: Path
) -> None:
    recording = tmp_path / "rec"
    with (
        device_in_memory(tmp_path) as node,
        live(recording, node) as url,
        loaded(node, fio, tmp_path) as load,
        visited(browser, url) as page,
    ):
        # two clicks at most from nothing to the first map
        page.wait_for_selector(".welcome")
        page.locator(f'[data-choice="{LATENCY}"]').click()
        drawn(page, LATENCY)
        # some seconds of it, and all of the page
        until(page, lambda: total(page, LATENCY) > 3 * 1500)
        settled(page)
        picture(page, "live-1-appears")
        expect(page.locator("#recording")).to_contain_text("(live)")

        # nothing jumps while it goes on
        before, first = places(page), total(page, LATENCY)
        until(page, lambda: total(page, LATENCY) > first + 2 * 1500)
        assert places(page) == before

        # right-click: only writes, filled back over the time before
        head = frame(page, LATENCY).locator(".panel-head select")
        head.select_option("op")
        frame(page, LATENCY).get_by_role("option", name=re.compile("^write")).click(button="right")
        page.get_by_role("menuitem").first.wait_for()
        picture(page, "live-2-menu")
        page.get_by_role("menuitem", name=re.compile("^by latency")).click()
        drawn(page, WRITES)
        until(page, lambda: total(page, WRITES) > 3 * 150)
        frame(page, WRITES).locator(".panel-head select").select_option("process")
        process = frame(page, WRITES).get_by_role("option", name=re.compile("^writer"))
        process.wait_for()
        process.click(button="right")
        page.get_by_role("menuitem", name=re.compile("^by size")).click()
        narrow = "io.ops[op=write][process=writer][size]"
        drawn(page, narrow, 50)
        picture(page, "live-3-drilled")
        frame(page, narrow).get_by_role("button", name=f"Close {narrow}").click()

        # highlighted, alone, cropped
        frame(page, LATENCY).get_by_role("option", name=re.compile("^write")).click()
        frame(page, LATENCY).locator("figure[data-told='1']").wait_for()
        settled(page)
        picture(page, "live-4-highlighted")
        page.keyboard.press("i")
        settled(page)
        picture(page, "live-5-alone")
        page.keyboard.press("h")
        frame(page, LATENCY).get_by_role("option", name=re.compile("^write")).click()
        frame(page, LATENCY).locator("select.crop").select_option("0.01")
        expect(frame(page, LATENCY).locator("[data-words]")).to_contain_text(" above ")
        picture(page, "live-6-cropped")

        # held, it is what fio measured
        head.select_option("")
        page.click("#pause")
        expect(page.locator("#pause")).to_have_text("Resume")
        settled(page)
        median = load.end()
        rows = ranges(page, LATENCY)
        counts = sum(count for _, _, count in rows)
        # the device is part of what fio waits for; the rest is waiting for a processor, and more
        # where they are busy
        near = sum(count for low, high, count in rows if high > median / 8 and low < median * 1.5)
        assert near / counts > 0.5, (median, rows)

        # vertical zoom from two values of the left panel
        options = frame(page, LATENCY).locator(".values .value")
        options.nth(options.count() - 1).click()
        options.nth(2).click(modifiers=["Shift"])
        frame(page, LATENCY).get_by_role("button", name="Zoom to chosen values").click()
        settled(page)
        picture(page, "live-7-zoomed")
        expect(frame(page, LATENCY).locator("select.crop")).to_have_value("zoomed")
        page.keyboard.press("Z")

        # a part is marked: whose is it. Of all time, for half of a minute may lie before a
        # recording that is young
        page.click("#whole")
        settled(page)
        box = frame(page, LATENCY).locator("canvas").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 15)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] - 45, steps=5)
        page.mouse.up()
        # on a busy machine reader and writer may be as slow as each other: that is told, too
        told = frame(page, LATENCY).locator(".who")
        until(
            page,
            lambda: (
                "I/Os inside" in told.inner_text()
                and {"op", "process", "size"} <= set(re.findall(r"\w+", told.inner_text()))
            ),
        )
        picture(page, "live-8-who")
        page.keyboard.press("Escape")

        # two graphs with one time, and with their own
        page.keyboard.press("}")
        expect(frame(page, WRITES).locator(".own-time")).to_have_count(0)
        settled(page)
        drawn(page, WRITES, 100)

        # saved, and back from the address
        page.keyboard.press("w")
        page.fill("#sheet-name", "story")
        page.keyboard.press("Enter")
        page.locator('tr[data-sheet="story"]').wait_for()
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
        shown = page.locator("#reading").inner_text()
        addressed(page, "name=story")
        page.reload()
        drawn(page, WRITES, 100)
        settled(page)
        expect(page.locator("#reading")).to_have_text(shown, use_inner_text=True)
        expect(page.locator("#sheets")).to_have_text("story")

        # the numbers are those of iolab query: the page asks for whole columns
        with page.expect_download() as download, page.expect_request("**/export?*") as request:
            frame(page, WRITES).get_by_role("button", name="CSV").click()
        asked = dict(re.findall(r"(from|to|interval)=(\w+)", request.value.url))
        said = subprocess.run(
            [
                sys.executable,
                "-m",
                "iolab.cli",
                "query",
                str(recording),
                WRITES,
                "--format",
                "csv",
                "--interval",
                asked["interval"],
                "--from",
                moment(asked["from"]),
                "--to",
                moment(asked["to"]),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout
        assert Path(download.value.path()).read_bytes() == said

        # and all of it in a file that needs nothing else
        with page.expect_download() as download:
            page.click("#share")
        file = tmp_path / "shared.html"
        download.value.save_as(file)
        with visited(browser, file.as_uri()) as alone:
            for statistic in (LATENCY, WRITES):
                drawn(alone, statistic, 100)
            settled(alone)
            picture(alone, "live-9-shared")


def moment(ns: str) -> str:
    """A moment as commands take it."""
    import datetime

    whole, rest = divmod(int(ns), 10**9)
    clock = datetime.datetime.fromtimestamp(whole, datetime.UTC)
    return f"{clock:%Y-%m-%dT%H:%M:%S}.{rest:09d}" if rest else f"{clock:%Y-%m-%dT%H:%M:%S}"
