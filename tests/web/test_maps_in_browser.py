# SPDX-License-Identifier: Apache-2.0
"""The report's heat maps in Chromium: side by side on one scale, chosen by cell, repetition and y,
marked, by keyboard, light and dark."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))
from iolab.output.report.build import build_report
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import expect, until
from support.map_study import Study

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>"
BLOCK = [
    "plain, fio (run 0003)",
    "plain, block layer (run 0003)",
    f"{HOSTILE}, fio (run 0004)",
    f"{HOSTILE}, block layer (run 0004)",
]
"""The maps of the cell that the block layer saw as well."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cells, two variants (one named with markup), two repetitions; the second cell also as the
    block layer saw it, with losses."""
    study = Study(tmp_path_factory.mktemp("maps"))
    for repetition in (1, 2):
        for bs in ("8k", "64k"):
            for variant, latency in (("plain", 100_000), (HOSTILE, 5_000_000)):
                study.add(variant, repetition, latency=latency, bs=bs, block=bs == "64k")
    watched = study.runs[2].plan.window
    assert watched is not None
    with RecordingWriter.reopen(study.path / "recordings" / "watch", live=False) as writer:
        writer.facts.sources["block"] = {
            "what": "the block layer, live"
        }  # times of an imported trace's losses are not known
        writer.loss("overrun", "block", watched[0] + 10**9, watched[0] + 10**9 + 10**7, 1234)
        writer.describe("block", {})
    file = study.path / "report.html"
    file.write_text(build_report(study.source), encoding="utf-8")
    return file


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Any]:
    """The page at its maps; nothing may have gone wrong when the test is over, and nothing may have
    been asked for."""
    opened: list[tuple[Any, list[str], list[str]]] = []

    def open_page(**options: Any) -> Any:
        page = browser.new_page(viewport={"width": 1400, "height": 1200}, **options)
        problems: list[str] = []
        requests: list[str] = []
        page.on(
            "console",
            lambda message: (
                problems.append(message.text)
                if message.type in ("error", "warning") and "willReadFrequently" not in message.text
                else None
            ),
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report.as_uri())
        page.wait_for_selector("main")
        opened.append((page, problems, requests))
        return page

    yield open_page
    for page, problems, requests in opened:
        page.close()
        assert problems == []
        assert {url for url in requests if not url.startswith("blob:")} == {report.as_uri()}


def to_maps(page: Any) -> Any:
    page.get_by_role("link", name="Maps", exact=True).click()
    captioned(
        page,
        "plain (run 0001)",
        f"{HOSTILE} (run 0002)",
        f"{HOSTILE} (run 0002) minus plain (run 0001)",
    )
    return page.locator("#maps")


def captioned(page: Any, *names: str) -> None:
    """Wait until these are the maps, and drawn: each says then what it shows."""
    expect(page.locator("#maps figcaption strong")).to_have_text(list(names))
    expect(page.locator("#maps [data-words]")).to_have_text([re.compile(".")] * len(names))


def colours(page: Any, which: int) -> set[str]:
    """Colours in a map's plot."""
    return set(
        page.locator("#maps canvas")
        .nth(which)
        .evaluate("""canvas => {
        const data = canvas.getContext('2d').getImageData(90, 10, canvas.width - 190, 250).data;
        const found = new Set();
        for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 3).join());
        return [...found];
    }""")
    )


def test_maps_are_there_for_paper_too_without_what_can_be_chosen(visit: Any) -> None:
    page = visit()
    # nobody comes to them: the page unpacks them when it has nothing else to do
    expect(page.locator("#maps canvas")).to_have_count(3)
    choices = page.locator("#maps").locator("select, button:not(.link)")
    expect(choices.first).to_be_visible()
    page.emulate_media(media="print")
    until(page, lambda: not any(each.is_visible() for each in choices.all()))
    expect(page.locator("#maps h3").first).to_be_visible()


def test_maps_say_what_they_show(visit: Any) -> None:
    page = visit()
    home = to_maps(page)
    assert home.locator("img").count() == 0
    expect(home.locator("[data-words]").first).to_have_text(
        re.compile("^2 000 I/Os shown · 20 ms a column")
    )


def test_variants_stand_beside_each_other_on_one_scale(visit: Any) -> None:
    page = visit()
    to_maps(page)
    boxes = [page.locator("#maps canvas").nth(which).bounding_box() for which in (0, 1)]
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=1)
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    ink = [
        page.locator("#maps canvas")
        .nth(which)
        .evaluate("""canvas => {
            const data = canvas.getContext('2d').getImageData(90, 6, canvas.width - 190, 260).data;
            const wide = canvas.width - 190;
            let sum = 0, count = 0;
            for (let i = 0; i < data.length; i += 4)
                if (data[i] < 240) { sum += Math.floor(i / 4 / wide); count++; }
            return sum / count;
        }""")
        for which in (0, 1)
    ]
    assert ink[0] > ink[1] + 60, "100 µs lie far below 5 ms on the one axis"


def test_cell_repetition_and_y_are_chosen(visit: Any) -> None:
    page = visit()
    home = to_maps(page)
    page.select_option("#map-cell", label="bs=64k")
    captioned(page, *BLOCK)
    page.select_option("#map-repetition", "2")
    expect(home.locator("figcaption strong").first).to_have_text("plain, fio (run 0007)")
    page.select_option("#map-y", "offset")
    expect(home.locator("h3")).to_have_text(["Offset, fio", "Offset, block layer"])
    page.select_option("#map-y", "all")
    expect(home.locator("h3")).to_have_text(
        ["Latency", "Offset, fio", "Offset, block layer", "Size"]
    )
    until(
        page,
        lambda: all(
            len(colours(page, which)) > 2 for which in range(page.locator("#maps canvas").count())
        ),
    )
    home.get_by_role("button", name="0007-00000000").click()
    expect(page.locator("dialog[open]")).to_contain_text("0007-00000000")


def test_what_was_lost_stands_under_the_map(visit: Any) -> None:
    page = visit()
    home = to_maps(page)
    assert "lost" not in home.inner_text()
    page.select_option("#map-cell", label="bs=64k")
    captioned(page, *BLOCK)
    words = home.locator("[data-words]").all_inner_texts()
    assert "1 234 records were lost: in 1 column" in words[1]
    assert "lost" not in words[0] + words[2] + words[3]
    heights = [
        page.locator("#maps canvas").nth(which).bounding_box()["height"] for which in range(4)
    ]
    assert heights[1] == heights[0] + 10
    canvas = page.locator("#maps canvas").nth(1)
    box = canvas.bounding_box()
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    plot = box["width"] - 84 - 92
    page.mouse.move(box["x"] + 84 + plot * 1.01 / 4, box["y"] + 6 + 260 + 5)
    expect(page.locator(".tooltip")).to_contain_text("1 234 records")


def test_a_part_is_marked_zoomed_into_and_left_by_keyboard(visit: Any) -> None:
    page = visit()
    home = to_maps(page)
    canvas = page.locator("#maps canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 240, steps=4)
    page.mouse.up()
    expect(home.locator(".who")).to_contain_text("These I/Os do not differ")
    canvas.focus()
    page.keyboard.press("Escape")
    expect(home.locator(".who")).to_have_count(0)
    words = home.locator("[data-words]").first
    for _ in range(2):
        page.keyboard.press("+")
    expect(words).not_to_have_text(re.compile("^2 000 I/Os"))
    home.locator("#whole").click()
    expect(words).to_have_text(re.compile("^2 000 I/Os"))


def test_light_and_dark_and_narrow(visit: Any) -> None:
    page = visit(color_scheme="dark")
    to_maps(page)
    dark = colours(page, 0)
    page.locator("#theme").click()
    until(page, lambda: "255,255,255" in colours(page, 0) - dark)
    page.set_viewport_size({"width": 500, "height": 900})

    def below() -> bool:
        boxes = [page.locator("#maps canvas").nth(which).bounding_box() for which in (0, 1)]
        return bool(
            boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
            and boxes[0]["x"] + boxes[0]["width"] <= 500
        )

    until(page, below)
    until(page, lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_without_scripts_there_is_a_line_for_each_run(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.locator("noscript").inner_text() or page.content()
    assert "run 0001-00000000 (plain, bs=8k): 2 000 I/Os" in text
    context.close()
