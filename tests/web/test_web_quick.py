# SPDX-License-Identifier: Apache-2.0
"""What the worksheet asks for in Chromium: maps in binary, percentiles where they are shown, a
marked part within what is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from iolab.output.server.queries.binary import MEDIA_TYPE
from support.browser import expect, until
from support.recordings import SECOND, START
from support.worksheet import drawn, frame, part, settled

pytestmark = pytest.mark.browser

LATENCY = "io.ops[latency]"
SHOWN = {"recording": "<b>rec", "from": START + 10 * SECOND, "to": START + 80 * SECOND}


def words_of(url: str) -> dict[str, str]:
    """The parameters of an address, one value each."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


@contextmanager
def asked(page: Any, path: str) -> Iterator[list[dict[str, str]]]:
    """Parameters of what the page asks for at a path, as long as this lasts."""
    found: list[dict[str, str]] = []

    def hear(request: Any) -> None:
        if urlsplit(request.url).path == f"/api/v1/{path}":
            found.append(words_of(request.url))

    page.on("request", hear)
    yield found
    page.remove_listener("request", hear)


def test_a_map_comes_in_binary_and_its_lines_when_they_are_shown(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    # thumbnails that are no maps are answered in JSON
    settled(page)
    kinds: list[str] = []
    page.on(
        "response",
        lambda answer: (
            kinds.append(answer.headers["content-type"]) if "drawn=true" in answer.url else None
        ),
    )
    with asked(page, "query") as questions:
        page.evaluate("at => { location.hash = at }", part(LATENCY, **SHOWN))
        drawn(page, LATENCY)
        settled(page)
        # the strip asks for percentiles at the same time
        maps = [question for question in questions if question.get("drawn") == "true"]
        assert {question.get("lines") for question in maps} == {"false"}
        assert set(kinds) == {MEDIA_TYPE}
        questions.clear()
        frame(page, LATENCY).get_by_role("button", name="More").click()
        frame(page, LATENCY).locator("input.lines").check()
        until(
            page,
            lambda: any(
                question.get("drawn") == "true" and "lines" not in question
                for question in questions
            ),
            "no lines were asked for",
        )
    settled(page)
    assert set(kinds) == {MEDIA_TYPE}


def test_a_marked_part_is_compared_with_the_other_ios_of_its_time(open_page: Any) -> None:
    page = open_page(part('{"statistic":"io.ops[latency]","crop":0}', **SHOWN))
    drawn(page, LATENCY)
    settled(page)
    box = frame(page, LATENCY).locator("canvas").first.bounding_box()
    with asked(page, "who") as questions:
        page.mouse.move(box["x"] + 200, box["y"] + 40)
        page.mouse.down()
        for step in range(1, 31):
            page.mouse.move(box["x"] + 200 + 5 * step, box["y"] + 40 + 4 * step)
        page.mouse.up()
        who = frame(page, LATENCY).locator(".who")
        expect(who.locator(".who-tables[aria-busy=false]")).to_be_visible()
        settled(page)
    last = questions[-1]
    around = (last["around_from"], last["around_to"])
    assert around == (last["from"], last["to"])
    first, last_ns = (int(str(SHOWN[name])) for name in ("from", "to"))
    assert first < int(around[0]) < int(around[1]) < last_ns
    text = who.locator(".who-tables p").first.inner_text()
    inside, outside = (
        int(re.sub(r"\D", "", each)) for each in re.findall(r"[\d\s\u2009\u00a0]*\d", text)[:2]
    )
    total = page.evaluate(
        """async ([from, to]) => (await (await fetch(
        `/api/v1/query?recording=%3Cb%3Erec&statistic=io.ops&from=${from}&to=${to}&interval=1s`)).json()).total""",
        list(around),
    )
    assert inside + outside == total
    assert inside > 0
    # a long path leaves room for its numbers
    over = who.locator(".who-tables table").first.evaluate(
        """table => {
            const link = table.querySelector("th .link");
            link.textContent = "/x".repeat(200);
            link.parentElement.className = "by-end";
            return table.scrollWidth - table.clientWidth;
        }"""
    )
    assert over <= 0


def test_a_graph_with_its_own_time_rests_at_the_time_that_it_shows(open_page: Any) -> None:
    graph = {
        "statistic": LATENCY,
        "by": "op",
        "synced": False,
        "span": {"from": SHOWN["from"], "until": SHOWN["to"]},
    }
    page = open_page(part(json.dumps(graph), recording="<b>rec"))
    drawn(page, LATENCY)
    settled(page)
    with asked(page, "query") as questions:
        page.evaluate(
            """frames => new Promise(done => {
            const canvas = document.querySelector('.plot canvas');
            const tick = left => {
                const {left: x, top, width} = canvas.getBoundingClientRect();
                canvas.dispatchEvent(new WheelEvent('wheel', {
                    deltaX: 1, clientX: x + width / 2, clientY: top + 60, bubbles: true, cancelable: true}));
                if (left > 1) requestAnimationFrame(() => tick(left - 1));
                else done();
            };
            tick(frames);
        })""",
            60,
        )
        settled(page)
    values = [each for each in questions if each.get("interval") == "whole"]
    maps = [each for each in questions if each.get("drawn") == "true"]
    assert values
    # what stands beside the map is of the same time
    until(
        page,
        lambda: values[-1]["from"] == maps[-1]["from"] and values[-1]["to"] == maps[-1]["to"],
        f"{values[-1]} {maps[-1]}",
    )
