"""The worksheet in Chromium: begun with two clicks, graphs added, arranged and moved in time, all of it in the address, by keyboard too."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.report.html import bundle_file
from iolab.server.desk import desk_in
from iolab.server.serve import Listener
from iolab.server.store import Store
from support.service import recorded, serving
from support.worksheet import add, drawn, frame, inked, part, picture, settled, visited

pytestmark = pytest.mark.real

LATENCY, OP = "io.ops[latency]", "io.ops[op]"
FEWEST_BYTES = 300 * 1000


@pytest.fixture(scope="module")
def listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    home = tmp_path_factory.mktemp("worksheet")
    writer = recorded(home / "<b>rec", seconds=90)
    with serving(desk_in(Store([home / "<b>rec"]), home / "data", home / "alerts.jsonl")) as found:
        yield found
    writer.close()


@pytest.fixture
def open_page(browser: Any, listener: Listener) -> Iterator[Any]:
    """Opens the worksheet at a part of its address; all pages are looked after when the test is over."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda at="", **options: stack.enter_context(visited(browser, f"{listener.url}{at}", **options))


def order(page: Any) -> list[str]:
    return list(page.locator("section[data-statistic]").evaluate_all("all => all.map(each => each.dataset.statistic)"))


def reading(page: Any) -> str:
    return str(page.locator("#reading strong").inner_text())


def address(page: Any) -> str:
    page.wait_for_timeout(400)
    return str(page.evaluate("decodeURIComponent(location.hash)"))


def test_a_first_time_user_comes_to_a_heat_map_with_a_click(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    picture(page, "empty")
    assert "token" not in page.url
    assert "<b>rec" in page.locator("#recording").inner_text()
    assert page.locator("b").count() == 0
    page.locator(".cards button").first.click()
    drawn(page, LATENCY, 5000)
    settled(page)
    picture(page, "first-map")
    assert page.locator(".welcome").count() == 0


def test_statistics_are_found_by_typing_and_by_arrows(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector(".welcome")
    page.keyboard.press("+")
    page.keyboard.type("latency")
    assert page.locator("#choices [role=option]").first.get_attribute("data-choice") == LATENCY
    picture(page, "add")
    page.keyboard.press("Shift+Enter")
    page.fill("#statistic", "")
    chosen = page.locator("#choices [aria-selected=true]")
    group = page.locator(".groups [aria-pressed=true]")
    first = group.inner_text()
    page.keyboard.press("ArrowRight")
    assert group.inner_text() != first
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert chosen.get_attribute("data-choice") == OP
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 0
    for statistic in (LATENCY, OP):
        drawn(page, statistic)
    # what can't be had says why, and can't be chosen
    page.keyboard.press("+")
    page.keyboard.type("net.bytes")
    option = page.locator("#choices [role=option]").first
    assert option.get_attribute("aria-disabled") == "true"
    assert len(option.locator(".about").inner_text()) > 10
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert order(page) == [LATENCY, OP]


def test_names_are_typed_as_in_a_terminal_and_wrong_ones_explained(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"), allowed=("status of 400",))
    add(page, "io.ops[op=write][latency]")
    page.keyboard.press("+")
    page.fill("#statistic", "io.ops[op=wrte][latency]x")
    page.press("#statistic", "Enter")
    problem = frame(page, "io.ops[op=wrte][latency]x").locator(".problem")
    problem.wait_for()
    assert len(problem.inner_text()) > 20


def test_graphs_are_moved_resized_and_closed(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, "io.bytes", recording="<b>rec"))
    for statistic in (LATENCY, OP, "io.bytes"):
        drawn(page, statistic)
    handle = frame(page, "io.bytes").locator(".handle")
    handle.focus()
    page.keyboard.press("ArrowUp")
    assert order(page) == [LATENCY, "io.bytes", OP]
    start, end = (frame(page, each).locator(".handle").bounding_box() for each in (LATENCY, OP))
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] + 5, steps=6)
    page.mouse.up()
    assert order(page)[-1] == LATENCY
    canvas = frame(page, "io.bytes").locator("canvas").first
    before = canvas.bounding_box()["height"]
    edge = frame(page, "io.bytes").locator(".edge")
    box = edge.bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 104, steps=4)
    page.mouse.up()
    settled(page)
    assert canvas.bounding_box()["height"] == pytest.approx(before + 100, abs=3)
    frame(page, "io.bytes").get_by_role("button", name="Half as wide").click()
    frame(page, OP).get_by_role("button", name="Half as wide").click()
    settled(page)
    one, two = (frame(page, each).bounding_box() for each in ("io.bytes", OP))
    assert one["y"] == two["y"]
    assert one["x"] + one["width"] <= two["x"]
    assert inked(page, "io.bytes") > 300
    picture(page, "arranged")
    frame(page, OP).get_by_role("button", name=f"Close {OP}").click()
    assert order(page) == ["io.bytes", LATENCY]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_address_says_all_of_it(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, recording="<b>rec"))
    drawn(page, LATENCY)
    frame(page, LATENCY).locator("select.crop").select_option("0.01")
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click()
    frame(page, OP).get_by_role("button", name="Half as wide").click()
    page.keyboard.press("1")
    page.keyboard.press("[")
    shown = page.locator("#reading").inner_text()
    said = address(page)
    page.reload()
    drawn(page, OP)
    assert page.locator("#reading").inner_text() == shown
    assert frame(page, LATENCY).locator("select.crop").input_value() == "0.01"
    assert frame(page, OP).locator(".values [aria-selected=true]").inner_text().startswith("write")
    assert "narrow" in frame(page, OP).get_attribute("class")
    assert address(page) == said
    # another address in the same page is followed
    page.evaluate("location.hash = 'recording=%3Cb%3Erec&graph=io.bytes'")
    drawn(page, "io.bytes")
    assert order(page) == ["io.bytes"]


def test_time_is_moved_and_zoomed(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    whole = page.locator("#reading").inner_text()
    assert reading(page) == "90 seconds"
    page.get_by_role("button", name="1 min", exact=True).click()
    assert reading(page) == "1 minute"
    page.get_by_role("button", name="1 min", exact=True).click()
    assert reading(page) == "2 minutes"
    page.get_by_role("button", name="1 h", exact=True).click()
    assert reading(page) == "1 hour"
    page.keyboard.press("1")
    page.keyboard.press("}")
    assert reading(page) == "30 seconds"
    middle = page.locator("#reading .quiet").inner_text()
    page.keyboard.press("]")
    later = page.locator("#reading .quiet").inner_text()
    assert later > middle
    page.keyboard.press("[")
    assert page.locator("#reading .quiet").inner_text() == middle
    page.keyboard.press("{")
    assert reading(page) == "1 minute"
    settled(page)
    page.keyboard.press("0")
    assert page.locator("#reading").inner_text() == whole
    # the strip of all time moves what is shown as well
    page.keyboard.press("}")
    strip = page.locator(".overview").bounding_box()
    before = page.locator("#reading .quiet").inner_text()
    page.mouse.move(strip["x"] + strip["width"] / 2, strip["y"] + 5)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] * 0.6, strip["y"] + 5, steps=3)
    page.mouse.up()
    assert page.locator("#reading .quiet").inner_text() > before


def test_graphs_have_a_time_of_their_own_or_share_it(open_page: Any) -> None:
    page = open_page(part(LATENCY, OP, recording="<b>rec"))
    drawn(page, OP)
    frame(page, OP).get_by_role("button", name="sync", exact=True).click()
    page.keyboard.press("}")
    own = frame(page, OP).locator(".own-time")
    assert own.inner_text().startswith("its own time")
    frame(page, LATENCY).locator("h2").click()
    assert reading(page) == "90 seconds"
    settled(page)
    picture(page, "own-time")
    frame(page, OP).get_by_role("button", name="sync all").click()
    assert own.count() == 0
    assert reading(page) == "45 seconds"


def test_extremes_are_jumped_to_one_after_the_other(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    when = frame(page, OP).locator(".panel-when")
    frame(page, OP).get_by_role("button", name="max", exact=True).click()
    page.wait_for_function("button => /\\d\\d:\\d\\d:\\d\\d/.test(button.innerText)", arg=when.element_handle())
    first = when.inner_text()
    page.keyboard.press("M")
    page.wait_for_function("([button, before]) => button.innerText !== before", arg=[when.element_handle(), first])
    second = when.inner_text()
    page.keyboard.press("m")
    page.wait_for_function("([button, before]) => button.innerText !== before", arg=[when.element_handle(), second])
    picture(page, "extreme")
    # the largest are those that the numbers say
    answer = page.evaluate("""async () => (await fetch('/api/v1/query?recording=%3Cb%3Erec&statistic=io.ops&interval=1s')).json()""")
    values = answer["values"][1:-1]
    largest = sorted(range(len(values)), key=lambda place: -values[place])[:2]
    seconds = [int(answer["t0_ns"]) // 10**9 + 1 + place for place in largest]
    import time

    assert [first, second] == [time.strftime("%H:%M:%S", time.gmtime(each)) for each in seconds]
    # the selected second is in the address
    selected = when.inner_text()
    assert "at=" in address(page)
    page.reload()
    drawn(page, OP)
    assert frame(page, OP).locator(".panel-when").inner_text() == selected


def test_two_times_are_compared(open_page: Any) -> None:
    page = open_page(part(LATENCY, recording="<b>rec"))
    drawn(page, LATENCY)
    page.keyboard.press("1")
    page.keyboard.press("}")
    page.keyboard.press("]")
    page.click("#compare")
    page.wait_for_selector(".difference canvas")
    settled(page)
    picture(page, "compared")
    assert "less" in page.locator(".difference h3").inner_text()
    with_before = page.locator("#compared").inner_text()
    page.click("#other-back")
    assert page.locator("#compared").inner_text() < with_before
    assert re.search(r"compare=\d+\.\.\d+&", address(page))
    page.keyboard.press(")")
    assert page.locator("#compared").inner_text() == with_before
    page.keyboard.press("(")
    assert page.locator("#compared").inner_text() < with_before
    page.keyboard.press("d")
    assert page.locator(".difference").count() == 0


def test_marks_lead_to_their_time(open_page: Any) -> None:
    page = open_page(part(OP, recording="<b>rec"))
    drawn(page, OP)
    assert page.locator(".overview .mark").count() == 1
    page.keyboard.press("g")
    page.locator("dialog").get_by_role("button", name="run 1").click()
    assert page.locator("dialog[open]").count() == 0
    assert reading(page) == "3.12 seconds"
    settled(page)
    assert inked(page, OP) > 300


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
    assert page.locator("dialog[open]").count() == 0


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
    assert page.locator("html").get_attribute("data-theme") != before
    page.keyboard.press("A")
    page.keyboard.press("R")
    assert page.evaluate("document.activeElement.id") == "recording"


def test_light_dark_narrow_and_large(open_page: Any) -> None:
    at = part(LATENCY, OP, recording="<b>rec")
    looks: dict[str, dict[str, Any]] = {"light": {"width": 1900}, "dark": {"color_scheme": "dark"}, "narrow": {"width": 700},
                                        "4k": {"width": 3840, "height": 2160}}
    for name, options in looks.items():
        page = open_page(at, **options)
        for statistic in (LATENCY, OP):
            drawn(page, statistic)
        settled(page)
        picture(page, name)
        assert page.locator("html").get_attribute("data-theme") == ("dark" if name == "dark" else "light")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page = open_page(at)
    page.click("#theme")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_bundle_is_small() -> None:
    size = sum(len(gzip.compress(bundle_file(name).encode(), 9)) for name in ("live.js", "live.css"))
    assert size < FEWEST_BYTES, f"{size} bytes in gzip"


def test_nothing_serious_is_found_by_axe(open_page: Any, root: Path) -> None:
    axe = root / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.exists():
        pytest.skip("axe-core is not installed (scripts/with-node npm --prefix web ci)")
    page = open_page()
    page.wait_for_selector(".welcome")

    def look(where: str) -> None:
        found = page.evaluate("async () => (await axe.run()).violations")
        serious = [f"{where}: {each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}" for each in found
                   if each["impact"] in ("serious", "critical")]
        assert serious == []

    page.evaluate(axe.read_text(encoding="utf-8"))
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
    frame(page, OP).get_by_role("option", name=re.compile("^write")).click(button="right")
    page.wait_for_selector("[role=menu]")
    look("menu")
    page.keyboard.press("Escape")
    for name in ("Kept", "Alerts"):
        page.get_by_role("button", name=name, exact=True).click()
        settled(page)
        look(name)
