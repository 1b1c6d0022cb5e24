# SPDX-License-Identifier: Apache-2.0
"""The worksheet in Chromium: begun with two clicks, graphs added, arranged and moved in time, all
of it in the address, by keyboard too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from support.browser import expect, typed, until, violations
from support.worksheet import add, addressed, drawn, frame, ordered, part, picture, reads, settled

pytestmark = pytest.mark.browser

LATENCY, OP = "io.ops[latency]", "io.ops[op]"


def moves(page: Any, later: bool) -> Callable[[], None]:
    """What waits until the time shown is later than now, or earlier."""
    what = "#reading .quiet"
    before = page.locator(what).inner_text()
    return lambda: until(
        page,
        lambda: (
            (page.locator(what).inner_text() > before) is later
            and page.locator(what).inner_text() != before
        ),
        f"{what}: {before}",
    )


def test_a_first_time_user_comes_to_a_heat_map_with_a_click(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    picture(page, "empty")
    expect(page).not_to_have_url(re.compile("token"))
    expect(page.locator("#recording")).to_contain_text("<b>rec")
    assert page.locator("b").count() == 0
    page.locator(".cards button").first.click()
    drawn(page, LATENCY, 5000)
    settled(page)
    picture(page, "first-map")
    expect(page.locator(".welcome")).to_have_count(0)
    # alone it fills the screen, and its list can be made wider
    box = frame(page, LATENCY).bounding_box()
    assert 940 < box["y"] + box["height"] <= 1000
    panel = frame(page, LATENCY).locator(".graph-panel")
    before = panel.bounding_box()["width"]
    divider = frame(page, LATENCY).get_by_role("separator", name="Width of the list")
    divider.press("ArrowRight")
    expect(divider).to_have_attribute("aria-valuenow", "16")
    assert panel.bounding_box()["width"] == pytest.approx(before * 16 / 15, abs=1)
    page.reload()
    expect(divider).to_have_attribute("aria-valuenow", "16")
    divider.dblclick()
    expect(divider).to_have_attribute("aria-valuenow", "15")


def test_statistics_are_found_by_typing_and_by_arrows(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    page.keyboard.press("+")
    page.keyboard.type("latency")
    option = page.locator("#choices [role=option]").first
    expect(option).to_have_attribute("data-choice", LATENCY)
    picture(page, "add")
    page.keyboard.press("Shift+Enter")
    page.fill("#statistic", "")
    chosen = page.locator("#choices [aria-selected=true]")
    group = page.locator(".groups [aria-pressed=true]")
    first = group.inner_text()
    page.keyboard.press("ArrowRight")
    expect(group).not_to_have_text(first)
    page.keyboard.press("ArrowLeft")
    expect(group).to_have_text(first)
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_attribute("data-choice", OP)
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    for statistic in (LATENCY, OP):
        drawn(page, statistic)
    # what can't be had says why, and can't be chosen
    page.keyboard.press("+")
    page.keyboard.type("net.bytes")
    expect(page.locator("#statistic")).to_have_value("net.bytes")
    expect(option).to_have_attribute("aria-disabled", "true")
    expect(option.locator(".about")).to_have_text(re.compile(".{11}"))
    page.keyboard.press("Enter")
    settled(page)
    expect(page.locator("dialog[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    ordered(page, LATENCY, OP)


def test_names_are_typed_as_in_a_terminal_and_wrong_ones_explained(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"), allowed=("status of 400",))
    add(page, "io.ops[op=write][latency]")
    page.keyboard.press("+")
    page.fill("#statistic", "io.ops[op=wrte][latency]x")
    page.press("#statistic", "Enter")
    problem = frame(page, "io.ops[op=wrte][latency]x").locator(".problem")
    expect(problem).to_have_text(re.compile(".{21}", re.DOTALL))


def test_graphs_are_moved_resized_and_closed(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, "io.bytes", recording="<b>rec"))
    for statistic in (LATENCY, OP, "io.bytes"):
        drawn(page, statistic)
    handle = frame(page, "io.bytes").locator(".handle")
    handle.focus()
    page.keyboard.press("ArrowUp")
    ordered(page, LATENCY, "io.bytes", OP)
    settled(page)
    start, end = (frame(page, each).locator(".handle").bounding_box() for each in (LATENCY, OP))
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] + 5, steps=6)
    page.mouse.up()
    ordered(page, "io.bytes", OP, LATENCY)
    settled(page)
    canvas = frame(page, "io.bytes").locator("canvas").first
    before = canvas.bounding_box()["height"]
    edge = frame(page, "io.bytes").locator(".edge")
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 104, steps=4)
    page.mouse.up()
    until(page, lambda: canvas.bounding_box()["height"] == pytest.approx(before + 100, abs=3))
    frame(page, "io.bytes").get_by_role("button", name="Half as wide").click()
    frame(page, OP).get_by_role("button", name="Half as wide").click()

    def beside() -> bool:
        one, two = (frame(page, each).bounding_box() for each in ("io.bytes", OP))
        return bool(one["y"] == two["y"] and one["x"] + one["width"] <= two["x"])

    until(page, beside)
    drawn(page, "io.bytes")
    picture(page, "arranged")
    frame(page, OP).get_by_role("button", name=f"Close {OP}").click()
    ordered(page, "io.bytes", LATENCY)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_address_says_all_of_it(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, recording="<b>rec"))
    drawn(page, LATENCY)
    frame(page, LATENCY).locator("select.crop").select_option("0.01")
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click()
    frame(page, OP).get_by_role("button", name="Half as wide").click()
    page.keyboard.press("1")
    reads(page, "1 minute")
    middle = addressed(
        page, "from=", '"crop":0.01', '"highlights":["write"]', '"width":1'
    ).partition("&to=")[0]
    earlier = moves(page, later=False)
    page.keyboard.press("[")
    earlier()
    shown = page.locator("#reading").inner_text()
    said = addressed(
        page, "from=", '"crop":0.01', '"highlights":["write"]', '"width":1', without=(middle,)
    )
    page.reload()
    drawn(page, OP)
    expect(page.locator("#reading")).to_have_text(shown, use_inner_text=True)
    expect(frame(page, LATENCY).locator("select.crop")).to_have_value("0.01")
    expect(frame(page, OP).locator(".values [aria-selected=true]")).to_have_text(
        re.compile("^write")
    )
    expect(frame(page, OP)).to_have_class(re.compile(r"\bnarrow\b"))
    settled(page)
    assert addressed(page) == said
    # another address in the same page is followed
    page.evaluate("location.hash = 'recording=%3Cb%3Erec&graph=io.bytes'")
    drawn(page, "io.bytes")
    ordered(page, "io.bytes")


def test_time_is_moved_and_zoomed(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    reads(page, "90 seconds")
    when = page.locator("#reading .quiet")
    whole = when.inner_text()
    page.get_by_role("button", name="1 min", exact=True).click()
    reads(page, "1 minute")
    page.get_by_role("button", name="1 min", exact=True).click()
    reads(page, "2 minutes")
    page.get_by_role("button", name="1 h", exact=True).click()
    reads(page, "1 hour")
    page.keyboard.press("1")
    page.keyboard.press("}")
    reads(page, "30 seconds")
    middle = when.inner_text()
    later = moves(page, later=True)
    page.keyboard.press("]")
    later()
    page.keyboard.press("[")
    expect(when).to_have_text(middle)
    page.keyboard.press("{")
    reads(page, "1 minute")
    settled(page)
    page.keyboard.press("0")
    reads(page, "90 seconds")
    expect(when).to_have_text(whole)
    # the strip of all time moves what is shown as well
    page.keyboard.press("}")
    reads(page, "45 seconds")
    strip = page.locator(".overview").bounding_box()
    later = moves(page, later=True)
    page.mouse.move(strip["x"] + strip["width"] / 2, strip["y"] + 5)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] * 0.6, strip["y"] + 5, steps=3)
    page.mouse.up()
    later()
    # its end alone, and all of it by a double click
    end = page.locator(".overview [data-end=until]").bounding_box()
    page.mouse.move(end["x"] + 4, end["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 4 - strip["width"] / 6, end["y"] + 5, steps=3)
    page.mouse.up()
    reads(page, re.compile(r"^(29|30|31)(\.\d+)? seconds$"))
    expect(page.locator(".overview .lane-name")).to_have_text(
        [re.compile("^IOPS ≤ .*/s$"), re.compile("^p99 .* – .* [mµ]?s$")]
    )
    expect(page.locator(".overview .losses")).to_have_count(1)
    page.mouse.dblclick(strip["x"] + 5, strip["y"] + 5)
    reads(page, "90 seconds")


def test_graphs_have_a_time_of_their_own_or_share_it(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, recording="<b>rec"))
    drawn(page, OP)
    frame(page, OP).get_by_role("button", name="sync", exact=True).click()
    page.keyboard.press("}")
    own = frame(page, OP).locator(".own-time")
    expect(own).to_have_text(re.compile("^its own time"))
    frame(page, LATENCY).locator("h2").click()
    reads(page, "90 seconds")
    settled(page)
    picture(page, "own-time")
    frame(page, OP).get_by_role("button", name="sync all").click()
    expect(own).to_have_count(0)
    reads(page, "45 seconds")


def test_extremes_are_jumped_to_one_after_the_other(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    when = frame(page, OP).locator(".panel-when")
    frame(page, OP).get_by_role("button", name="max", exact=True).click()
    expect(when).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    first = when.inner_text()
    page.keyboard.press("M")
    expect(when).not_to_have_text(first)
    second = when.inner_text()
    page.keyboard.press("m")
    expect(when).not_to_have_text(second)
    picture(page, "extreme")
    # the largest are those that the numbers say
    answer = page.evaluate(
        """async () => (await fetch('/api/v1/query?recording=%3Cb%3Erec&statistic=io.ops&interval=1s')).json()"""
    )
    values = answer["values"][1:-1]
    largest = sorted(range(len(values)), key=lambda place: -values[place])[:2]
    seconds = [int(answer["t0_ns"]) // 10**9 + 1 + place for place in largest]
    import time

    assert [first, second] == [time.strftime("%H:%M:%S", time.gmtime(each)) for each in seconds]
    # the selected second is in the address
    settled(page)
    selected = when.inner_text()
    addressed(page, "at=")
    page.reload()
    drawn(page, OP)
    expect(when).to_have_text(selected)
    # a key pressed twice at once goes two moments on, though the first one is still asked for
    typed(page, ["k", "M", "M"])
    expect(when).to_have_text(second)


def test_two_times_are_compared(open_page: Any) -> None:
    page = open_page(part(LATENCY, recording="<b>rec"))
    drawn(page, LATENCY)
    page.keyboard.press("1")
    page.keyboard.press("}")
    page.keyboard.press("]")
    reads(page, "30 seconds")
    page.click("#compare")
    page.wait_for_selector(".difference canvas")
    settled(page)
    picture(page, "compared")
    expect(page.locator(".difference h3")).to_contain_text("minus")
    assert violations(page) == []
    compared = page.locator("#compared")
    expect(compared).to_have_text("with 30 seconds earlier")
    page.click("#other-back")
    expect(compared).to_have_text("with 45 seconds earlier")
    assert re.search(r"compare=\d+\.\.\d+&", addressed(page, "compare="))
    page.keyboard.press(")")
    expect(compared).to_have_text("with 30 seconds earlier")
    page.keyboard.press("(")
    expect(compared).to_have_text("with 45 seconds earlier")
    page.keyboard.press("d")
    expect(page.locator(".difference")).to_have_count(0)


def test_marks_lead_to_their_time(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    expect(page.locator(".overview .mark")).to_have_count(1)
    page.keyboard.press("g")
    page.locator("dialog").get_by_role("button", name="run 1").click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    reads(page, "3.12 seconds")
    settled(page)
    drawn(page, OP)
