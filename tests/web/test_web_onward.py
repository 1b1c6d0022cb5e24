# SPDX-License-Identifier: Apache-2.0
"""From a value to other sources in Chromium: latency, process, file and disk, by handles alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab import _core
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import expect
from support.gestures import marked
from support.recordings import SECOND, START, events
from support.service import serving
from support.worksheet import drawn, frame, part, picture, settled, visited

pytestmark = pytest.mark.browser

LATENCY = "io.ops[latency]"
SECONDS, ROWS = 20, 60
NAMES = ("db", "backup", "web")
DISKS = {"db": "sda", "backup": "sdb", "web": "sda"}


def _batch(source: str, second: int) -> pa.RecordBatch:
    """Calls or block I/Os of three processes: every third one by each, with disks and files of its own."""
    batch = events(ROWS, second, source=source, start_ns=START + second * SECOND, per_s=ROWS)
    names = [NAMES[row % 3] for row in range(ROWS)]
    latency = [20_000_000 if name == "backup" else 100_000 for name in names]
    columns = {
        "process": names,
        "op": ["read"] * ROWS,
        "latency_ns": latency,
        "latency_bucket": [_core.grid_index(value, 6) for value in latency],
        "count": [1] * ROWS,
        "device": [DISKS[name] if source == "block" else None for name in names],
        "file": [
            f"/data/{name}/{row % 2}" if source == "syscall" else None
            for row, name in enumerate(names)
        ],
    }
    for name, values in columns.items():
        place = batch.schema.get_field_index(name)
        field = batch.schema.field(place)
        batch = batch.set_column(place, field, pa.array(values, field.type))
    return batch


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onward") / "rec"
    with RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for second in range(SECONDS):
            writer.append_events(_batch("block", second))
            writer.append_events(_batch("syscall", second))
    return path


@pytest.fixture(scope="module")
def listener(browser: Any, recording: Path) -> Iterator[Listener]:
    home = recording.parent
    with serving(state_in(Store([recording]), home / "data", home / "alerts.jsonl")) as found:
        yield found


def _handle(page: Any, statistic: str, value: str) -> Any:
    """The drill handle of a row in a graph's list."""
    return (
        frame(page, statistic)
        .locator(".drills")
        .get_by_role("button", name=f"Break down {value}", exact=True)
    )


def _follow(page: Any, entry: str) -> str:
    """Take a menu entry; the statistic of the graph that it adds."""
    sections = page.locator("section[data-statistic]")
    before = sections.count()
    page.get_by_role("menuitem", name=re.compile(f"^{re.escape(entry)}")).click()
    expect(sections).to_have_count(before + 1)
    found = str(page.locator("section.focused").get_attribute("data-statistic"))
    drawn(page, found, 50)
    settled(page)
    return found


def _listed(page: Any, statistic: str) -> dict[str, str]:
    """Values of a graph's list with their numbers."""
    rows = frame(page, statistic).locator(".graph-panel").first.locator("[role=option]")
    found = rows.evaluate_all(
        "all => all.map(each => [each.title, each.querySelector('.number').textContent])"
    )
    return dict(found)


def test_latency_process_file_and_disk_follow_each_other(
    browser: Any, listener: Listener, recording: Path
) -> None:
    address = part(f'{{"statistic":"{LATENCY}","by":"process"}}', recording="rec")
    with visited(browser, f"{listener.url}{address}") as page:
        drawn(page, LATENCY)
        settled(page)
        _handle(page, LATENCY, "backup").click()
        page.get_by_role("menu").wait_for()
        picture(page, "onward-menu")
        files = _follow(page, "its files")
        assert files == "file.ops[process=backup][file]"
        answer = query(Recording(recording), parse(files))
        assert isinstance(answer, Stack)
        assert dict(zip(answer.keys, answer.totals, strict=True)) == {
            "/data/backup/0": 10 * SECONDS,
            "/data/backup/1": 10 * SECONDS,
        }
        rate = f"{10 * SECONDS / (answer.covered_ns / SECOND):.2f}/s"
        assert _listed(page, files) == {"/data/backup/0": rate, "/data/backup/1": rate}
        _handle(page, files, "/data/backup/0").click()
        disks = _follow(page, "the disks of its process")
        assert disks == "io.ops[process=backup][device]"
        assert list(_listed(page, disks)) == ["sdb"]
        _handle(page, disks, "sdb").click()
        assert _follow(page, "by latency") == "io.ops[process=backup][device=sdb][latency]"
        picture(page, "onward")


def test_a_file_asks_for_its_processes_before_their_disks(browser: Any, listener: Listener) -> None:
    with visited(browser, f"{listener.url}{part('file.ops[file]', recording='rec')}") as page:
        drawn(page, "file.ops[file]")
        settled(page)
        _handle(page, "file.ops[file]", "/data/web/1").click()
        assert _follow(page, "the disks of its processes") == "io.ops[process=web][device]"


def test_a_marked_part_leads_to_the_files_of_its_process(browser: Any, listener: Listener) -> None:
    with visited(browser, f"{listener.url}{part(LATENCY, recording='rec')}") as page:
        drawn(page, LATENCY)
        settled(page)
        marked(page, LATENCY, (0.1, 0.0), (0.6, 0.3))
        page.locator(".who").get_by_role("button", name="Break down backup").click()
        expect(page.get_by_role("menuitem").first).to_be_focused()
        assert _follow(page, "its files") == "file.ops[process=backup][file]"


def test_handles_are_reached_by_keys(browser: Any, listener: Listener) -> None:
    statistic = "io.ops[process]"
    with visited(browser, f"{listener.url}{part(statistic, recording='rec')}") as page:
        drawn(page, statistic)
        settled(page)
        frame(page, statistic).focus()
        page.keyboard.press("l")
        options = frame(page, statistic).locator("[role=option]")
        expect(options.first).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        name = options.nth(1).get_attribute("title")
        expect(_handle(page, statistic, str(name))).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem").first).to_be_focused()
        page.keyboard.press("Escape")
        expect(_handle(page, statistic, str(name))).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(options.nth(1)).to_be_focused()


def test_the_first_page_offers_files_where_they_are_recorded(
    browser: Any, listener: Listener
) -> None:
    with visited(browser, listener.url) as page:
        offered = page.locator(".cards [data-choice]")
        expect(offered).to_have_count(6)
        names = offered.evaluate_all("all => all.map(each => each.dataset.choice)")
        assert {"file.ops[latency]", "file.bytes[file]"} < set(names)
