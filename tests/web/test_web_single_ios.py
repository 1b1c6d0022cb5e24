# SPDX-License-Identifier: Apache-2.0
"""A cell of a map as a list of its I/Os, and one of these through the layers, in Chromium."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab import _core
from iolab.cli.main import run
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.store.base.schema import EVENTS, LATENCY_BITS
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import expect, violations
from support.recordings import SECOND, START
from support.service import serving
from support.worksheet import drawn, frame, part, picture, settled, visited

pytestmark = pytest.mark.browser

LATENCY = "io.ops[latency]"
CALLS = 250


def rows(source: str) -> pa.RecordBatch:
    """Calls of 400 us, each with a block I/O of 100 us, 20 a second, and a slow one of a journal."""
    made: list[dict[str, Any]] = []
    for place in range(CALLS):
        start = START + place * SECOND // 20
        call = {"pid": 7, "thread": 7, "process": "app", "op": "write", "count": 1}
        own = (
            {"time_ns": start + 400_000, "latency_ns": 400_000, "file": "/data/a", "flags": "fsync"}
            if source == "syscall"
            else {"time_ns": start + 150_000, "latency_ns": 100_000, "device": "sda"}
        )
        more = {"source": source, "size_bytes": 4096, "offset_bytes": 4096 * place}
        made.append({**dict.fromkeys(EVENTS.names), **call, **own, **more})
        if source == "block":
            journal = {"pid": 9, "thread": 9, "process": "jbd2", "offset_bytes": None}
            made.append({**made[-1], **journal, "time_ns": start + 350_000, "latency_ns": 150_000})
    for row in made:
        row["latency_bucket"] = _core.grid_index(row["latency_ns"], LATENCY_BITS)
    return pa.RecordBatch.from_pylist(made, schema=EVENTS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ios") / "rec"
    with RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for source in ("syscall", "block"):
            writer.append_events(rows(source))
    return path


@pytest.fixture(scope="module")
def layered(browser: Any, place: Path) -> Iterator[Listener]:
    home = place.parent
    with serving(state_in(Store([place]), home / "data", home / "a.jsonl")) as listener:
        yield listener


def test_a_part_of_a_map_is_a_list_as_the_command_prints_it(
    browser: Any, layered: Listener, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with visited(browser, layered.url + part(LATENCY), width=1440) as page:
        drawn(page, LATENCY, 50)
        settled(page)
        canvas = frame(page, LATENCY).locator("canvas").first
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 15)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 120, box["y"] + box["height"] - 60, steps=3)
        page.mouse.up()
        page.locator(".list-ios").click()
        table = page.locator(".io-table")
        table.locator("tbody tr").first.wait_for()
        total = int(page.locator(".io-head strong").inner_text().split(" I/O")[0].replace(" ", ""))
        assert 100 < total <= 2 * CALLS
        expect(table.locator("tbody tr")).to_have_count(100)
        # by latency, the largest first, and back
        table.get_by_role("button", name="latency").click()
        expect(table.locator("th[aria-sort=descending]")).to_contain_text("latency")
        expect(table.locator("tbody tr").first.locator("td").nth(1)).to_have_text("150.000")
        table.get_by_role("button", name="latency").click()
        expect(table.locator("tbody tr").first.locator("td").nth(1)).to_have_text("100.000")
        assert run(["ios", str(place), LATENCY, "--order", "offset"]) == 0
        table.get_by_role("button", name="time").click()
        page.get_by_role("button", name="The I/Os after").click()
        expect(page.locator(".io-head .quiet")).to_contain_text("101 – 200 of")
        capsys.readouterr()
        assert run(["ios", str(place), LATENCY, "--format", "csv", "--top", "500"]) == 0
        printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        shown = page.evaluate(
            """async () => {
            const answer = await fetch('/api/v1/ios?statistic=io.ops[latency]&limit=500');
            const text = await answer.text();
            return [...text.matchAll(/"time_ns":(\\d+)/g)].map(found => found[1]);
        }"""
        )
        assert shown == [row["time_ns"] for row in printed]


def test_one_io_is_shown_through_the_layers_by_keys_alone(browser: Any, layered: Listener) -> None:
    with visited(browser, layered.url + part(LATENCY), width=1440) as page:
        drawn(page, LATENCY, 50)
        settled(page)
        canvas = frame(page, LATENCY).locator("canvas").first
        # a crosshair from cell to cell until there is an I/O
        canvas.focus()
        rows = page.locator(".io-table tbody tr")
        listed = page.locator(".io-list")
        for key in [*["ArrowUp"] * 25, *["ArrowDown"] * 50]:
            page.keyboard.press(key)
            page.keyboard.press("Enter")
            page.evaluate("() => new Promise(requestAnimationFrame)")
            if listed.count():
                break
        rows.first.wait_for()
        rows.first.locator("th button").focus()
        page.keyboard.press("Enter")
        line = page.locator(".io-line table tbody tr")
        expect(line.first).to_contain_text("file call")
        assert "this I/O" in line.nth(1).inner_text()
        assert violations(page) == []
        picture(page, "single-io")
        page.keyboard.press("Escape")
        expect(page.locator(".io-list")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1920, "light")])
def test_a_sync_has_its_io_and_the_journal_by_time(
    browser: Any, layered: Listener, width: int, scheme: str
) -> None:
    statistic = "file.ops[latency]"
    with visited(browser, layered.url + part(statistic), width=width, color_scheme=scheme) as page:
        drawn(page, statistic, 50)
        settled(page)
        canvas = frame(page, statistic).locator("canvas").first
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 15)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] - 60, steps=3)
        page.mouse.up()
        page.locator(".list-ios").click()
        page.locator(".io-table tbody th button").first.click()
        line = page.locator(".io-line table tbody tr")
        expect(line).to_have_count(3)
        matches = line.evaluate_all("rows => rows.map(row => row.cells[2].innerText)")
        assert matches == ["this I/O", "same thread", "by time only"]
        starts = line.evaluate_all("rows => rows.map(row => row.cells[3].innerText)")
        assert starts == ["0", "+50 µs", "+200 µs"]
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
