# SPDX-License-Identifier: Apache-2.0
"""The page of heat maps in Chromium: drawn, hovered, marked, zoomed, light and dark, without a
network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from support.browser import expect, until

HOSTILE = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.browser


def written(folder: Path, name: str, slow: int) -> Path:
    """4001 reads (100 µs, process db) and in their middle 400 slow writes (of a process with markup
    for a name)."""
    lines = ["time:ms,latency:us,offset:bytes,size:bytes,op,process"]
    for i in range(4000):
        lines.append(f"{i},100,{i * 8192},8192,read,db")
        if 1800 <= i < 2200:
            lines.append(
                f"{i},{slow + slow * (i % 100) // 100},{2**27 + 512 * i},65536,write,{HOSTILE}"
            )
    lines.append("3999,20,0,8192,read,db")
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps")
    one, two = written(folder, "one.csv", 20_000), written(folder, "two.csv", 5_000)
    assert (
        run(["heatmap", str(one), "--y", "all", "--percentiles", "-o", str(folder / "one.html")])
        == 0
    )
    assert run(["heatmap", str(one), "--against", str(two), "-o", str(folder / "both.html")]) == 0
    return folder


@pytest.fixture
def visit(browser: Any, pages: Path) -> Iterator[Any]:
    """Open a page; when the test is over nothing may have gone wrong, and nothing may have been
    asked for."""
    opened: list[tuple[Any, list[str], list[str], str]] = []

    def open_page(name: str, **options: Any) -> Any:
        page = browser.new_page(viewport={"width": 1200, "height": 1400}, **options)
        problems: list[str] = []
        requests: list[str] = []
        page.on(
            "console",
            lambda message: (
                problems.append(message.text)
                if message.type in ("error", "warning") and "willReadFrequently" not in message.text
                else None
            ),
        )  # that is said of the tests' own looking at pixels
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((pages / name).as_uri())
        page.wait_for_selector("canvas")
        opened.append((page, problems, requests, (pages / name).as_uri()))
        return page

    yield open_page
    for page, problems, requests, address in opened:
        page.close()
        assert problems == []
        assert {url for url in requests if not url.startswith("blob:")} == {address}


def words(page: Any, which: int = 0) -> Any:
    """What stands above a map; it is drawn together with it."""
    return page.locator("[data-words]").nth(which)


def drag(page: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one place of the first map to another, in shares of its plot."""
    box = page.locator("canvas").first.bounding_box()
    plot = (box["x"] + 84, box["y"] + 6, box["width"] - 84 - 92, 260)
    at = [(plot[0] + x * plot[2], plot[1] + y * plot[3]) for x, y in (start, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=4)
    page.mouse.up()


def inked(page: Any, which: int = 0) -> int:
    """Pixels of a map's plot that are not background."""
    return int(
        page.locator("canvas")
        .nth(which)
        .evaluate("""canvas => {
        const data = canvas.getContext('2d').getImageData(90, 10, canvas.width - 190, 250).data;
        const ground = [data[0], data[1], data[2]];
        let count = 0;
        for (let i = 0; i < data.length; i += 4)
            if (data[i] !== ground[0] || data[i + 1] !== ground[1] || data[i + 2] !== ground[2]) count++;
        return count;
    }""")
    )


def test_three_maps_are_drawn_with_their_counts(visit: Any) -> None:
    page = visit("one.html")
    expect(page.locator("canvas")).to_have_count(3)
    expect(page.locator("h1")).to_have_text("I/O of one.csv")
    for which in range(3):
        expect(words(page, which)).to_have_text(re.compile("^4 401 I/Os shown"))
        assert inked(page, which) > 500
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_time_without_io_is_shaded_not_hatched(visit: Any, pages: Path, scheme: str) -> None:
    """As on the worksheet: hatched is what was not recorded, and no trace tells that."""
    lines = [f"{i},100,0,8192,read" for i in range(3000) if not 1000 <= i < 2000]
    trace = pages / "pause.csv"
    trace.write_text("\n".join(["time:ms,latency:us,offset:bytes,size:bytes,op", *lines]) + "\n")
    assert run(["heatmap", str(trace), "-o", str(pages / "pause.html")]) == 0
    page = visit("pause.html", color_scheme=scheme)
    expect(words(page)).to_contain_text("shaded: no I/O, though some was expected")
    expect(words(page)).not_to_contain_text("hatched")
    # the ground, the shade a fourth of its height below the map's top, and another place of it
    ground, *shades = page.evaluate(
        """() => {
            const canvas = document.querySelector('canvas'), ratio = devicePixelRatio;
            const at = (share, y) => [...canvas.getContext('2d').getImageData(
                Math.round((84 + share * (canvas.width / ratio - 176)) * ratio), Math.round(y * ratio), 1, 1).data];
            return [at(0.1, 60), ...[57, 60, 63, 66, 69].map((y) => at(0.42, y))];
        }"""
    )
    assert all(each == shades[0] for each in shades)
    assert shades[0] != ground


def test_a_marked_part_says_whose_it_is(visit: Any) -> None:
    page = visit("one.html")
    drag(page, (0.4, 0.0), (0.6, 0.3))
    who = page.locator(".who")
    expect(who.locator("strong")).to_have_text("400 I/Os")
    rows = [re.split(r"\t+", row) for row in who.locator("tbody tr").all_inner_texts()]
    found = {row[0]: row[1:] for row in rows}
    assert found["write"] == ["400 I/Os", "100 %", "0 %"]
    assert found["read"] == ["0 I/Os", "0 %", "100 %"]
    assert found[HOSTILE] == ["400 I/Os", "100 %", "0 %"]
    page.locator("canvas").first.press("Escape")
    expect(who).to_have_count(0)


def test_zoom_to_the_marked_part_and_back(visit: Any) -> None:
    page = visit("one.html")
    drag(page, (0.4, 0.0), (0.6, 0.3))
    page.locator(".zoom-in").first.click()
    # fewer than all of them
    expect(words(page)).to_have_text(re.compile(r"^(1 )?\d{1,3} I/Os shown.* below "))
    page.click("#whole")
    page.locator(".all-y").first.click()
    expect(words(page)).to_have_text(re.compile("^4 401 I/Os shown"))
    expect(words(page)).not_to_contain_text("below")


def test_hover_says_range_count_and_share(visit: Any) -> None:
    page = visit("one.html")
    box = page.locator("canvas").first.bounding_box()
    tooltip = page.locator(".tooltip")
    before = ""
    for y in range(10, 264, 2):
        page.mouse.move(box["x"] + 300, box["y"] + y)
        if re.search("count: [1-9]", before := " ".join(tooltip.inner_text().split())):
            break
    # where the pointer rests, whatever it passed on its way
    expect(tooltip).to_have_text(re.compile(r"count:\s+[1-9]\d* I/Os?"), use_inner_text=True)
    text = " ".join(tooltip.inner_text().split())
    assert re.match(r"[\d.]+ (ms|s) to [\d.]+ (ms|s) ", text), before
    assert re.search(r"latency: [\d.]+ µs to [\d.]+ µs", text), before
    assert "100 % of the column" in text


def test_wheel_and_keys_zoom_time_for_all_maps(visit: Any) -> None:
    page = visit("one.html")
    said = words(page, 2)
    expect(said).to_have_text(re.compile("^4 401 I/Os shown"))
    before = said.inner_text()
    page.locator("canvas").nth(1).focus()
    page.keyboard.press("+")
    expect(said).not_to_have_text(before)
    half = said.inner_text()
    page.keyboard.press("ArrowRight")
    expect(said).not_to_have_text(half)
    page.keyboard.press("-")
    page.keyboard.press("-")
    expect(said).to_have_text(before)
    box = page.locator("canvas").first.bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 100)
    page.mouse.wheel(0, -600)
    expect(said).not_to_have_text(before)


def test_controls_change_the_picture(visit: Any) -> None:
    page = visit("one.html")

    def picture() -> str:
        return str(page.locator("canvas").first.evaluate("canvas => canvas.toDataURL()"))

    expect(words(page)).to_have_text(re.compile("^4 401 I/Os shown"))
    seen = {picture()}
    changes: tuple[Callable[[], object], ...] = (
        lambda: page.select_option("#color", "linear"),
        lambda: page.locator(".y-scale").first.select_option("linear"),
        lambda: page.locator(".crop").first.select_option("0.05"),
        lambda: page.locator(".lines").first.uncheck(),
    )
    for change in changes:
        change()
        until(page, lambda: picture() not in seen)
        seen.add(picture())
    # 5 % of 4401 are 220.05
    expect(words(page)).to_contain_text("220 I/Os (5 %) above")


def test_two_maps_and_their_difference(visit: Any) -> None:
    page = visit("both.html")
    expect(page.locator("canvas")).to_have_count(3)
    for which, first in enumerate(
        ("4 401 I/Os shown", "4 401 I/Os shown", "blue: fewer, orange: more")
    ):
        expect(words(page, which)).to_have_text(re.compile(f"^{first}( · |$)"))
    # reads are the same in both, so nothing of them remains
    assert 0 < inked(page, 2) < inked(page, 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit: Any, scheme: str) -> None:
    page = visit("one.html", color_scheme=scheme)
    ground = "canvas => [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data].slice(0, 3)"
    expected = {"light": [255, 255, 255], "dark": [20, 24, 29]}
    canvas = page.locator("canvas").first
    until(page, lambda: canvas.evaluate(ground) == expected[scheme])
    page.click("#theme")
    until(
        page, lambda: canvas.evaluate(ground) == expected["dark" if scheme == "light" else "light"]
    )
