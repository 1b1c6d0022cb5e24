# SPDX-License-Identifier: Apache-2.0
"""Keys of the worksheet in Chromium: heard from the first picture on, as fast as they come, and all
of them in the help."""

from __future__ import annotations

from typing import Any

import pytest

from iolab.output.server.http.serve import Listener
from support.browser import expect, typed
from support.worksheet import drawn, frame, ordered, part, picture, reads

pytestmark = pytest.mark.browser

LATENCY, OP = "io.ops[latency]", "io.ops[op]"


def test_keys_typed_at_once_are_those_of_what_the_first_one_opens(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, recording="<b>rec"))
    drawn(page, OP)
    typed(page, ["+", *"io.bytes", "Enter"])
    ordered(page, LATENCY, OP, "io.bytes")
    # the graph that was added has the focus, and its keys
    expect(frame(page, "io.bytes")).to_be_focused()
    typed(page, ["x", "w", *"fast", "Escape", "+", *"device", "Escape", "w", *"er"])
    expect(page.locator("#sheet-name")).to_have_value("er")
    ordered(page, LATENCY, OP)
    typed(page, ["Escape", "g", *"run 1"])
    expect(page.get_by_label("Find a mark")).to_have_value("run 1")
    typed(page, ["Escape", "?", "Escape", "1", "]"])
    expect(page.locator("dialog[open]")).to_have_count(0)
    reads(page, "1 minute")
    # a graph that is moved keeps the focus for the next key
    handle = frame(page, OP).locator(".handle")
    handle.focus()
    typed(page, ["ArrowUp", "ArrowDown", "ArrowUp"])
    ordered(page, OP, LATENCY)
    expect(handle).to_be_focused()
    # the focus is where it was before a dialog
    page.locator("#add").focus()
    typed(page, ["+", "Escape"])
    expect(page.locator("#add")).to_be_focused()


def test_a_key_is_heard_with_the_first_picture(browser: Any, listener: Listener) -> None:
    context = browser.new_context()
    page = context.new_page()
    # when there is anything to see, before the page can be painted
    page.add_init_script("""new MutationObserver((_, watch) => {
        if (!document.querySelector('.welcome')) return;
        watch.disconnect();
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true, cancelable: true}));
    }).observe(document, {childList: true, subtree: true});""")
    page.goto(listener.url)
    page.wait_for_selector(".welcome")
    expect(page.locator("#statistic")).to_be_focused()
    context.close()


def test_every_key_is_in_the_help(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] kbd")
    keys = page.locator("dialog[open] kbd").all_inner_texts()
    assert len(keys) == len(set(keys))
    assert len(keys) > 35
    picture(page, "help")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_pages_recordings_and_colours_have_keys(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    for key, title in (("K", "Kept statistics of <b>rec"), ("A", "Alerts")):
        page.keyboard.press(key)
        page.get_by_role("heading", name=title).wait_for()
        page.keyboard.press(key)
        drawn(page, OP)
    before = page.locator("html").get_attribute("data-theme")
    page.keyboard.press("A")
    page.keyboard.press("T")
    expect(page.locator("html")).not_to_have_attribute("data-theme", before)
    page.keyboard.press("A")
    page.keyboard.press("R")
    expect(page.locator("#recording")).to_be_focused()
