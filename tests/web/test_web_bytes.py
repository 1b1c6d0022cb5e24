# SPDX-License-Identifier: Apache-2.0
"""A map of bytes in the worksheet: its sum, the pointer, the list, whose the bytes are, keys in
colour, two times; no percentiles."""

from __future__ import annotations

import re
from json import dumps
from typing import Any

import pytest

from support.browser import expect
from support.recordings import SECOND, START
from support.worksheet import drawn, frame, part, picture, settled

pytestmark = pytest.mark.browser

NAME = "io.bytes[latency]"
BYTES = r"[\d.]+ ([KMGT]i)?B"


def opened(open_page: Any, spec: dict[str, object], **words: object) -> Any:
    page = open_page(part(dumps({"statistic": NAME, "crop": 0, **spec}), **words))
    drawn(page, NAME)
    settled(page)
    return page


def test_a_map_of_bytes_says_bytes(open_page: Any) -> None:
    page = opened(open_page, {"painter": "percentiles"})
    place = frame(page, NAME)
    expect(place.locator(".graph-sum")).to_have_text(re.compile(rf"^[\d ]+ I/Os, {BYTES}$"))
    # percentiles are of I/Os, so that they are no choice
    expect(place.locator("select.painter option")).to_have_text(["heat map", "one line"])
    expect(place.locator("[role=listbox] .number").first).to_have_text(re.compile(rf"^{BYTES}$"))
    canvas = place.locator("canvas").first
    canvas.focus()
    for key in ["ArrowUp"] * 12 + ["Shift+ArrowRight"] * 20 + ["Shift+ArrowUp"] * 20:
        page.keyboard.press(key)
    expect(page.locator(".tooltip")).to_contain_text(re.compile(rf"bytes: {BYTES}"))
    who = place.locator(".who")
    expect(who.locator("p strong")).to_have_text(re.compile(rf"^{BYTES} inside$|^{BYTES}$"))
    picture(page, "bytes")


def test_two_times_of_a_map_of_bytes(open_page: Any) -> None:
    span = {
        "from": START + 50 * SECOND,
        "to": START + 80 * SECOND,
        "compare": f"{START + 10 * SECOND}..{START + 40 * SECOND}",
    }
    page = opened(open_page, {"by": "op", "highlights": ["write"]}, **span)
    difference = frame(page, NAME).locator(".difference")
    expect(difference.locator("h3")).to_contain_text("more bytes per second")
    difference.locator("canvas").focus()
    for key in ["ArrowUp"] * 12 + ["ArrowRight"] * 10:
        page.keyboard.press(key)
    words = page.locator(".tooltip")
    for line in (rf"difference: [+-]?{BYTES}/s", rf"this time: {BYTES}", rf"that time: {BYTES}"):
        expect(words).to_contain_text(re.compile(line))
    picture(page, "bytes-compared")
