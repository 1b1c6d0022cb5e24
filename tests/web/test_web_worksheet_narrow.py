# SPDX-License-Identifier: Apache-2.0
"""The worksheet in Chromium on narrow pages: all of it can be read and reached, and nothing but
tables scrolls sideways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.ask.kept import manage
from support.browser import expect, until
from support.service import serving, watched
from support.worksheet import drawn, ordered, part, picture, visited

pytestmark = pytest.mark.browser

LONG = "r" * 190
WIDTHS = (320, 390, 720, 1440)


@pytest.fixture(scope="module")
def served(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of a recording with a long name, of which a statistic is kept."""
    home: Path = tmp_path_factory.mktemp("narrow")
    watched(home / LONG)
    manage.add(home / LONG, ["io.ops[latency]"], backfill=True)
    with serving(state_in(Store([home / LONG]), home / "data", home / "alerts.jsonl")) as found:
        yield found


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(browser: Any, served: Listener, width: int) -> None:
    with visited(browser, served.url, width=width, height=900) as page:
        page.wait_for_selector(".welcome")
        for key, place in (("", ".welcome"), ("K", "tr[data-kept]"), ("A", "form.sentence")):
            if key:
                page.keyboard.press(key)
            page.locator(place).first.wait_for()
            picture(page, f"narrow-{width}-{key or 'begin'}")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (
                key,
                width,
            )


@pytest.mark.parametrize(("width", "height"), [(390, 800), (720, 450), (1440, 900)])
def test_a_statistic_is_chosen(browser: Any, served: Listener, width: int, height: int) -> None:
    with visited(browser, f"{served.url}{part('io.ops[op]')}", width=width, height=height) as page:
        drawn(page, "io.ops[op]", 50)
        page.keyboard.press("+")
        options = page.locator("#choices [role=option]")
        options.first.wait_for()
        picture(page, f"narrow-add-{width}")
        home = page.locator("dialog[open]").bounding_box()
        for option in options.all()[:6]:
            box = option.bounding_box()
            assert box["height"] < 90, "as high as its words"
            for words in option.locator("span").all():
                inner = words.bounding_box()
                assert inner is None or (
                    home["x"] <= inner["x"]
                    and inner["x"] + inner["width"] <= home["x"] + home["width"]
                )
        assert (
            page.locator("dialog[open]").evaluate("each => each.scrollHeight - each.clientHeight")
            <= 1
        )
        # its whole name is it, whatever else the words are in
        page.locator("#statistic").fill("nothing like it")
        expect(page.locator("dialog[open] .nothing")).to_contain_text("What can be named")
        page.locator("#statistic").fill("io.bytes[op]")
        page.keyboard.press("Enter")
        ordered(page, "io.ops[op]", "io.bytes[op]")


def test_a_wish_to_drop_is_taken_back(browser: Any, served: Listener) -> None:
    with visited(browser, served.url) as page:
        page.wait_for_selector(".welcome")
        page.keyboard.press("K")
        drop = page.locator("tr[data-kept] .drop")
        drop.focus()
        for away in ("Escape", "Tab"):
            drop.focus()
            page.keyboard.press("Enter")
            expect(drop).to_have_text("Yes, drop")
            page.keyboard.press(away)
            expect(drop).to_have_text("Drop")
        drop.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator("tr[data-kept]")).to_have_count(0)
        # the focus is where one goes on
        until(page, lambda: page.evaluate("document.activeElement.tagName") == "INPUT")
