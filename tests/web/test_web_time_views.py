# SPDX-License-Identifier: Apache-2.0
"""Marks, alerts, replay, clips and the map of offsets in the second, in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolab.output.server.http.serve import Listener
from support.browser import expect, violations
from support.recordings import SECOND, START
from support.worksheet import drawn, frame, part, picture, settled, visited

pytestmark = pytest.mark.browser

LATENCY, OPS = "io.ops[latency]", "io.ops"


def shown(page: Any) -> tuple[int, int]:
    """The time that the address says."""
    words = dict(
        each.split("=", 1) for each in page.evaluate("location.hash").lstrip("#").split("&")
    )
    return int(words["from"]), int(words["to"])


def test_a_mark_is_set_by_keys_and_seen_by_another_viewer(
    open_page: Any, listener: Listener
) -> None:
    page = open_page(part(LATENCY), width=1440)
    drawn(page, LATENCY)
    page.keyboard.press("B")
    page.keyboard.type("fan replaced")
    page.keyboard.press("Tab")
    page.keyboard.type("as loud as before")
    page.keyboard.press("Enter")
    row = page.locator(".sheet-dialog tr", has_text="fan replaced")
    row.wait_for()
    assert "as loud as before" in row.inner_text()
    assert violations(page) == []
    other = open_page(part(LATENCY), width=390, color_scheme="dark")
    drawn(other, LATENCY)
    mark = other.locator(".overview .mark.user")
    expect(mark).to_have_count(1)
    assert "fan replaced · as loud as before" in str(mark.get_attribute("title"))
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Really remove").click()
    expect(row).to_have_count(0)


def test_an_alert_begins_from_a_graph_and_is_previewed(open_page: Any) -> None:
    page = open_page(part(LATENCY), width=1440)
    drawn(page, LATENCY)
    frame(page, LATENCY).focus()
    page.keyboard.press("N")
    expect(page.get_by_label("Percentile")).to_have_value("p99")
    page.get_by_label("Name", exact=True).fill("slow")
    page.get_by_label("Limit").fill("0.001")
    page.get_by_label("Seconds").fill("1")
    preview = page.locator(".preview")
    expect(preview).to_contain_text("raised once")
    page.get_by_label("Limit").fill("100000")
    expect(preview).to_contain_text("It would not have been raised.")
    assert violations(page) == []
    before = frame(page, LATENCY).count()
    page.get_by_role("button", name="Save").click()
    page.locator("[data-alert=slow]").wait_for()
    page.get_by_role("button", name="Worksheet").click()
    drawn(page, LATENCY)
    assert before == 0
    picture(page, "alert-limit")
    page.get_by_role("button", name="Alerts").click()
    page.locator("[data-alert=slow] .delete").click()
    expect(page.locator("[data-alert=slow]")).to_have_count(0)


def test_a_replay_moves_all_graphs_and_makes_a_clip(
    browser: Any, listener: Listener, tmp_path: Path
) -> None:
    time = {"from": START, "to": START + 20 * SECOND}
    with visited(browser, listener.url + part(LATENCY, OPS, **time), width=1440) as page:
        drawn(page, LATENCY)
        drawn(page, OPS, 50)
        page.keyboard.press("P")
        # slow: the clip must not end by itself before the test ends it
        page.select_option("#speed", "5")
        page.evaluate("document.activeElement.blur()")
        with page.expect_download() as download:
            page.click("#clip")
            page.wait_for_function(
                # of 1000; the address is written once the replay rests
                "() => Number(document.querySelector('#position').value) > 60"
            )
            assert violations(page) == []
            page.click("#clip")
        download.value.save_as(tmp_path / "clip.webm")
        data = (tmp_path / "clip.webm").read_bytes()
        assert data[:4] == b"\x1a\x45\xdf\xa3"
        assert len(data) > 10_000
        # paused: the time rests, and is of the same length
        settled(page)
        begin, end = shown(page)
        assert end - begin == 20 * SECOND
        # the space bar would press the button that has the focus
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(".")
        expect(page.locator("#speed")).to_have_value("10")
        page.keyboard.press(" ")
        expect(page.locator("#play")).to_contain_text("Pause")
        page.select_option("#speed", "50")
        # it ends with the recording
        expect(page.locator("#play")).to_contain_text("Play")
        settled(page)
        assert abs(shown(page)[1] - (START + 90 * SECOND)) < SECOND
        page.locator("#position").fill("0")
        settled(page)
        assert shown(page) == (START, START + 20 * SECOND)
        page.keyboard.press("P")
        expect(page.locator(".replay")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_two_cells_of_offsets_choose_a_time(
    browser: Any, listener: Listener, width: int, scheme: str
) -> None:
    time = {"from": START, "to": START + 30 * SECOND}
    options: dict[str, Any] = {"color_scheme": scheme, "timezone_id": "Asia/Kolkata"}
    address = listener.url + part(LATENCY, **time)
    with visited(browser, address, width=width, **options) as page:
        drawn(page, LATENCY)
        page.keyboard.press("U")
        expect(page.locator("#reading .quiet")).to_contain_text("03:43:20")
        expect(page.locator("#reading .quiet")).to_contain_text("UTC+05:30")
        page.keyboard.press("U")
        expect(page.locator("#reading .quiet")).to_contain_text("22:13:20")
        frame(page, LATENCY).focus()
        page.keyboard.press("E")
        canvas = page.locator(".sub-second canvas")
        canvas.wait_for()
        words = page.locator(".sub-second-words")
        canvas.focus()
        # the cell at 15 s; 5 rows of 20 ms up; one second on
        for key in ("ArrowLeft", "ArrowRight", *["ArrowUp"] * 5, "Enter", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        expect(words).to_contain_text("1.02 seconds")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
        picture(page, f"sub-second-{width}")
        page.locator(".show-range").click()
        settled(page)
        begin, end = shown(page)
        assert (begin - START) / SECOND == pytest.approx(15.1, abs=1e-6)
        assert (end - START) / SECOND == pytest.approx(16.12, abs=1e-6)
