# SPDX-License-Identifier: Apache-2.0
"""How the worksheet looks in Chromium: light, dark, narrow and large, to those who do not see it,
and how much of it is sent."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest

from iolab.output.report.page.html import bundle_file
from support.browser import expect, violations
from support.worksheet import add, drawn, frame, part, picture, settled

pytestmark = pytest.mark.browser

LATENCY, OP, BYTES = "io.ops[latency]", "io.ops[op]", "io.bytes[process]"
FEWEST_BYTES = 300 * 1000
FITS = """each => [each, ...each.children].every(part => part.getBoundingClientRect().right <= innerWidth)
    && each.scrollWidth <= each.clientWidth"""
"""Whether nothing of it is cut off."""


def test_light_dark_narrow_and_large(open_page: Any) -> None:
    at = part(LATENCY, OP, recording="<b>rec")
    looks: dict[str, dict[str, Any]] = {
        "light": {"width": 1900},
        "dark": {"color_scheme": "dark"},
        "narrow": {"width": 700},
        "4k": {"width": 3840, "height": 2160},
    }
    for name, options in looks.items():
        page = open_page(at, **options)
        for statistic in (LATENCY, OP):
            drawn(page, statistic)
        settled(page)
        picture(page, name)
        expect(page.locator("html")).to_have_attribute(
            "data-theme", "dark" if name == "dark" else "light"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page = open_page(at)
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_the_highest_row_of_a_map_is_apart_from_its_border(
    open_page: Any, width: int, scheme: str
) -> None:
    page = open_page(part(LATENCY, recording="<b>rec"), width=width, color_scheme=scheme)
    drawn(page, LATENCY)
    settled(page)
    # where the crop ends with the row of the slowest I/Os: the plot begins 6 px below the canvas
    apart, rows = page.evaluate(
        """() => {
            const canvas = document.querySelector(".plot canvas");
            const context = canvas.getContext("2d");
            const [left, wide] = [90, canvas.width - 190];
            const colours = (y, high) => {
                const {data} = context.getImageData(left, y, wide, high);
                const found = new Set();
                for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 3).join());
                return found.size;
            };
            return [colours(2, 3), colours(6, canvas.height - 60)];
        }"""
    )
    assert apart == 1
    assert rows > 5


@pytest.mark.parametrize("width", [800, 1100, 1280])
def test_the_time_is_read_whole(open_page: Any, width: int) -> None:
    page = open_page(part(OP, recording="<b>rec"), width=width)
    drawn(page, OP)
    page.evaluate(
        "document.querySelector('#reading strong').textContent = 'the last 1 234 seconds'"
    )
    assert page.locator("#reading").evaluate(FITS)


def test_the_bar_of_a_comparison_is_one_row(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"), width=1400)
    drawn(page, OP)
    page.click("#compare")
    settled(page)
    page.evaluate(
        """() => {
            document.querySelector('#reading strong').textContent = '16.14 seconds';
            document.querySelector('#compared').textContent = 'with 16.14 seconds earlier';
        }"""
    )
    tops = page.locator("#add, #compare, #marks").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().top)"
    )
    assert max(tops) - min(tops) < 5
    assert page.locator("#reading").evaluate(FITS)


def test_nothing_is_cut_where_it_is_narrow(open_page: Any) -> None:
    page = open_page(part(LATENCY, BYTES, recording="<b>rec"), width=390, height=1400)
    for statistic in (LATENCY, BYTES):
        drawn(page, statistic)
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#reading").evaluate(FITS)
    # the choices are one row, which a finger or the focus scrolls
    outside = """each => [...each.querySelectorAll('*')].filter(part => !part.closest('.graph-tools > *')
        && part.getBoundingClientRect().right > each.getBoundingClientRect().right).map(part => part.outerHTML)"""
    assert frame(page, LATENCY).evaluate(outside) == []
    more = frame(page, LATENCY).get_by_role("button", name="More")
    more.focus()
    right = "each => each.getBoundingClientRect().right"
    assert more.evaluate(right) <= 390
    picture(page, "telephone")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_change_has_room_for_its_name_and_its_share(open_page: Any, width: int) -> None:
    page = open_page(part(BYTES, recording="<b>rec"), width=width)
    drawn(page, BYTES)
    page.click("#compare")
    changes = page.locator(".changes .value.change")
    changes.first.wait_for()
    settled(page)
    changes.locator(".by").evaluate_all(
        "all => all.forEach(each => { each.textContent = '▲ 0.0042 %'; })"
    )
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    assert changes.locator(".name, .number").evaluate_all(cut) == []
    assert changes.evaluate_all(cut) == []


def test_the_bundle_is_small() -> None:
    size = sum(
        len(gzip.compress(bundle_file(name).encode(), 9)) for name in ("live.js", "live.css")
    )
    assert size < FEWEST_BYTES, f"{size} bytes in gzip"


def test_nothing_serious_is_found_by_axe(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")

    def look(where: str) -> None:
        assert violations(page) == [], where

    look("empty")
    page.locator(".cards button").first.click()
    add(page, OP)
    add(page, "io.ops[file]")
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click()
    settled(page)
    for theme in ("graphs", "graphs in the other theme"):
        look(theme)
        page.click("#theme")
        settled(page)
    for key, where in (("+", "add"), ("w", "worksheets"), ("?", "help"), ("g", "marks")):
        page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        settled(page)
        look(where)
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click(button="right")
    page.wait_for_selector("[role=menu]")
    look("menu")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    for name in ("Kept", "Alerts"):
        page.get_by_role("button", name=name, exact=True).click()
        settled(page)
        look(name)
