# SPDX-License-Identifier: Apache-2.0
"""What leaves the worksheet in Chromium and comes back: saved sheets, CSV, PNG, a file without a
service, and a service that goes away."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.open.results import Results
from support.browser import expect, until
from support.fio_files import job, output
from support.recordings import SECOND, START, events
from support.service import TOKEN, recorded, serving
from support.worksheet import add, drawn, frame, inked, part, picture, reads, settled, visited

pytestmark = pytest.mark.browser

LATENCY, OP = "io.ops[latency]", "io.ops[op]"


@pytest.fixture(scope="module")
def home(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("worksheet")
    with recorded(path / "rec", seconds=90):
        yield path


@pytest.fixture
def listener(home: Path, tmp_path: Path) -> Iterator[Listener]:
    with serving(
        state_in(Store([home / "rec"]), tmp_path / "data", tmp_path / "alerts.jsonl")
    ) as found:
        yield found


def saved_file(page: Any, act: Any, directory: Path) -> Path:
    with page.expect_download() as download:
        act()
    path = directory / str(download.value.suggested_filename)
    download.value.save_as(path)
    return path


def test_worksheets_are_saved_opened_cloned_and_deleted(open_page: Any, tmp_path: Path) -> None:
    page = open_page(part(LATENCY, OP))
    drawn(page, OP)
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click()
    page.keyboard.press("1")
    reads(page, "1 minute")
    shown = page.locator("#reading").inner_text()
    page.keyboard.press("w")
    page.fill("#sheet-name", "one slow disk")
    page.keyboard.press("Enter")
    row = page.locator('tr[data-sheet="one slow disk"]')
    row.wait_for()
    picture(page, "worksheets")
    file = tmp_path / "data" / "worksheets" / "one slow disk.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each["statistic"] for each in json.loads(file.read_text())["graphs"]] == [LATENCY, OP]
    row.locator(".clone").click()
    page.locator('tr[data-sheet="one slow disk 2"]').wait_for()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    # another worksheet, and back to the saved one
    fresh = open_page()
    fresh.wait_for_selector(".welcome")
    fresh.keyboard.press("w")
    fresh.locator('tr[data-sheet="one slow disk"] .open').click()
    drawn(fresh, OP)
    expect(fresh.locator("#reading")).to_have_text(shown, use_inner_text=True)
    expect(frame(fresh, OP).locator(".values [aria-selected=true]")).to_have_text(
        re.compile("^write")
    )
    expect(fresh.locator("#sheets")).to_have_text("one slow disk")
    # nothing is replaced or deleted without being asked twice
    fresh.keyboard.press("w")
    fresh.fill("#sheet-name", "one slow disk 2")
    fresh.keyboard.press("Enter")
    fresh.get_by_role("button", name="Yes, replace it").wait_for()
    fresh.locator('tr[data-sheet="one slow disk 2"] .delete').click()
    fresh.get_by_role("button", name="Yes, delete it").click()
    fresh.locator('tr[data-sheet="one slow disk 2"]').wait_for(state="detached")
    assert [each.name for each in (tmp_path / "data" / "worksheets").iterdir()] == [
        "one slow disk.json"
    ]


def test_names_that_no_file_should_have_are_refused(open_page: Any, tmp_path: Path) -> None:
    page = open_page(part(OP))
    drawn(page, OP)
    for name in ("../up", ".hidden", "a/b", "ü"):
        page.keyboard.press("w")
        page.fill("#sheet-name", name)
        page.keyboard.press("Enter")
        assert page.locator("#sheet-name").evaluate("field => !field.validity.valid"), name
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
    settled(page)
    assert not (tmp_path / "data" / "worksheets").exists()


def test_numbers_are_those_of_the_command_line(open_page: Any, home: Path, tmp_path: Path) -> None:
    page = open_page(part(LATENCY, OP))
    for statistic in (LATENCY, OP):
        drawn(page, statistic)
        button = frame(page, statistic).get_by_role("button", name="CSV")
        file = saved_file(page, button.click, tmp_path)
        assert file.suffix == ".csv"
        words = ["query", str(home / "rec"), statistic, "--format", "csv", "--interval", "200ms"]
        said = subprocess.run(
            [sys.executable, "-m", "iolab.cli", *words], check=True, capture_output=True, timeout=60
        ).stdout
        assert file.read_bytes() == said
        assert len(said.splitlines()) > 80


def test_a_picture_is_what_is_seen(open_page: Any, tmp_path: Path) -> None:
    page = open_page(part(LATENCY))
    drawn(page, LATENCY)
    frame(page, LATENCY).focus()
    file = saved_file(page, lambda: page.keyboard.press("p"), tmp_path)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 5000
    width = int.from_bytes(file.read_bytes()[16:20], "big")
    assert 900 < width < 1600


def test_a_shared_file_needs_no_service(open_page: Any, browser: Any, tmp_path: Path) -> None:
    page = open_page(part(LATENCY, OP))
    for statistic in (LATENCY, OP):
        drawn(page, statistic)
    frame(page, LATENCY).locator("select[name=by], .panel-head select").first.select_option("op")
    frame(page, LATENCY).get_by_role("option", name=re.compile("^write")).click()
    frame(page, LATENCY).locator("figure[data-told='1']").wait_for()
    settled(page)
    shown = inked(page, LATENCY)
    file = saved_file(page, lambda: page.click("#share"), tmp_path)
    assert file.suffix == ".html"
    with visited(browser, file.as_uri(), allowed=()) as alone:
        for statistic in (LATENCY, OP):
            drawn(alone, statistic)
        settled(alone)
        picture(alone, "shared")
        until(alone, lambda: inked(alone, LATENCY) == pytest.approx(shown, rel=0.1))
        assert alone.locator("#share, #add").count() == 0
        # it hovers
        box = frame(alone, LATENCY).locator("canvas").first.bounding_box()
        alone.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(alone.locator(".tooltip:not([hidden])")).to_contain_text("latency")
        # it crops and zooms
        before = inked(alone, LATENCY)
        frame(alone, LATENCY).locator("select.crop").select_option("0.05")
        until(alone, lambda: inked(alone, LATENCY) != before)
        alone.keyboard.press("}")
        reads(alone, "45 seconds")
        # averages are those of the time that was shared, and no others are made up
        expect(alone.locator(".problem")).to_have_text(
            ["The file holds this for the time that was shared only."]
        )
        drawn(alone, LATENCY)
        alone.keyboard.press("{")
        alone.locator(".problem").wait_for(state="detached")
    assert TOKEN not in file.read_text(encoding="utf-8")


def test_the_page_goes_on_when_the_service_is_there_again(
    browser: Any, home: Path, tmp_path: Path
) -> None:
    state = state_in(Store([home / "rec"]), tmp_path / "data", tmp_path / "alerts.jsonl")
    port = str(_unused_port())
    stack = ExitStack()
    first = stack.enter_context(serving(state, port=int(port)))
    away = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
    with visited(browser, f"{first.url}{part(OP)}", allowed=away) as page:
        drawn(page, OP)
        stack.close()
        page.keyboard.press("1")
        expect(page.locator(".problems .problem")).to_contain_text("retries every")
        drawn(page, OP)
        picture(page, "away")
        with serving(state, port=int(port)):
            expect(page.locator(".problems .problem")).to_have_count(0)
            settled(page)
            add(page, LATENCY)


def _unused_port() -> int:
    import socket

    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def test_what_is_kept_is_managed(browser: Any, tmp_path: Path) -> None:
    with RecordingWriter.create(
        tmp_path / "kept", host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        writer.append_events(events(4000))
        writer.seal()
    state = state_in(Store([tmp_path / "kept"]), tmp_path / "data", tmp_path / "alerts.jsonl")
    with serving(state) as found, visited(browser, found.url, allowed=("status of 400",)) as page:
        page.wait_for_selector(".welcome")
        page.get_by_role("button", name="Kept", exact=True).click()
        page.get_by_label("Statistic").fill("io.ops[latency]")
        page.get_by_role("button", name="Keep", exact=True).click()
        row = page.locator('tr[data-kept="io.ops[latency]"]')
        row.wait_for()
        picture(page, "kept")
        row.get_by_role("button", name="Pause").click()
        row.get_by_role("button", name="Resume").wait_for()
        expect(row).to_contain_text("paused")
        row.get_by_role("button", name="Resume").click()
        row.get_by_role("button", name="Pause").wait_for()
        row.get_by_role("button", name="Drop", exact=True).click()
        row.get_by_role("button", name="Yes, drop").click()
        row.wait_for(state="detached")
        page.get_by_label("Statistic").fill("io.nothing")
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator(".problem")).to_contain_text("io.nothing")
        # it stays when the list is asked for again, which is every two seconds
        for _ in range(2):
            with page.expect_response("**/api/v1/kept?*"):
                pass
        settled(page)
        expect(page.locator(".problem")).to_contain_text("io.nothing")


def test_what_was_removed_is_gone_until_it_is_back(browser: Any, tmp_path: Path) -> None:
    recorded(tmp_path / "rec", seconds=20).close()
    state = state_in(Store([tmp_path / "rec"]), tmp_path / "data", tmp_path / "alerts.jsonl")
    with (
        serving(state) as found,
        visited(browser, f"{found.url}{part(OP)}", allowed=("status of 409",)) as page,
    ):
        drawn(page, OP)
        settled(page)
        (tmp_path / "rec").rename(tmp_path / "elsewhere")
        page.click("#closer")
        expect(page.locator(".problem")).to_have_text(re.compile("^rec: does not exist any more"))
        expect(page.locator("#reading")).to_contain_text("2023-11-14")
        page.reload()
        expect(page.locator(".problem")).to_have_text(re.compile("^rec: does not exist any more"))
        (tmp_path / "elsewhere").rename(tmp_path / "rec")
        expect(page.locator(".problem")).to_have_count(0)
        drawn(page, OP)


def test_alerts_are_sentences(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    page.get_by_role("button", name="Alerts", exact=True).click()
    page.get_by_label("Name").fill("too busy")
    page.get_by_label("Statistic").fill("io.ops")
    page.get_by_label("Limit").fill("100")
    page.get_by_label("Seconds").fill("30")
    page.get_by_label("Only during").fill("08:00-18:00 mon-fri")
    page.get_by_role("button", name="Save").click()
    row = page.locator('li[data-alert="too busy"]')
    expect(row).to_contain_text("io.ops")
    expect(row).to_contain_text("100")
    # the next one can be typed at once
    expect(page.get_by_label("Name")).to_be_focused()
    picture(page, "alerts")
    row.get_by_role("button", name="Change").click()
    page.get_by_label("Direction").select_option("falls below")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("below")
    expect(row.get_by_role("button", name="Change")).to_be_focused()
    row.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    expect(page.get_by_label("Name")).to_be_focused()


def test_marks_of_runs_lead_to_the_report_and_back(browser: Any, tmp_path: Path) -> None:
    for variant in ("a", "b"):
        where = tmp_path / "tree" / variant / "rep1"
        where.mkdir(parents=True)
        (where / "fio.json").write_text(output(job(jobs=1, runtime=2.0)), encoding="utf-8")
    results = tmp_path / "results"
    assert (
        run(
            [
                "import",
                str(tmp_path / "tree"),
                "--layout",
                "{variant}/rep{repetition:int}",
                "-o",
                str(results),
            ]
        )
        == 0
    )
    ids = [each.id for each in Results(results).runs]
    with recorded(results / "recordings" / "here", seconds=20) as writer:
        for number, each in enumerate(ids):
            writer.mark(
                each,
                START + number * 10 * SECOND,
                START + (number + 1) * 10 * SECOND,
                "run",
                f"runs/{each}",
            )
    state = state_in(Store([results]), tmp_path / "data", tmp_path / "alerts.jsonl")
    with serving(state) as found, visited(browser, f"{found.url}{part(OP)}") as page:
        drawn(page, OP)
        page.keyboard.press("g")
        page.locator(
            "dialog tr", has=page.get_by_role("button", name=ids[1], exact=True)
        ).get_by_role("link").click()
        page.wait_for_url(re.compile("/report/results#run="))
        page.get_by_role("link", name=re.compile("what was recorded")).first.click()
        drawn(page, LATENCY)
        reads(page, "10 seconds")
        expect(page.locator("#reading .quiet")).to_contain_text("22:13:30")
