"""The page that iolab view and iolab live serve, in Chromium: drawn, asked, drilled into, followed, light and dark."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.errors import IolabError
from iolab.recording.writer import RecordingWriter
from iolab.report.html import bundle_file
from iolab.server.serve import Listener
from iolab.server.store import Store
from support.recordings import SECOND, events
from support.service import recorded, serving

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    try:
        bundle_file("live.js")
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    path = tmp_path_factory.mktemp("live") / "<b>rec"
    writer = recorded(path, seconds=20)
    with serving(Store([path])) as found:
        yield found
    writer.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open the page; when the test is over nothing may have gone wrong, and nobody else may have been asked."""
    opened: list[tuple[Any, list[str], list[str], str]] = []

    def open_page(found: Listener, width: int = 1900, part: str = "", **options: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 1100}, **options)
        problems: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning")
                and "willReadFrequently" not in message.text and "status of 400" not in message.text else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{found.url}{part}")
        page.wait_for_selector("section canvas")
        opened.append((page, problems, requests, f"http://127.0.0.1:{found.door.port}/"))
        return page

    yield open_page
    for page, problems, requests, address in opened:
        page.close()
        assert problems == []
        assert all(url.startswith((address, "blob:", "data:")) for url in requests)


def inked(page: Any, statistic: str) -> int:
    """Pixels of a graph's plot that are not background."""
    return int(page.locator(f'section[data-statistic="{statistic}"] canvas').evaluate("""canvas => {
        const data = canvas.getContext('2d').getImageData(90, 10, canvas.width - 190, 150).data;
        const ground = [data[0], data[1], data[2]];
        let count = 0;
        for (let i = 0; i < data.length; i += 4)
            if (data[i] !== ground[0] || data[i + 1] !== ground[1] || data[i + 2] !== ground[2]) count++;
        return count;
    }"""))


def show(page: Any, statistic: str, canonical: str | None = None) -> None:
    page.fill("#statistic", statistic)
    page.press("#statistic", "Enter")
    page.wait_for_selector(f"section[data-statistic='{canonical or statistic}'] canvas")


def counted(words: str) -> int:
    """The I/Os that stand above a map."""
    return int(re.match(r"([\d ]+) I/O", words)[1].replace(" ", ""))  # type: ignore[index]


def settled(page: Any) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")


def test_a_heat_map_and_a_stack_are_drawn(visit: Any, listener: Listener, tmp_path: Path) -> None:
    for theme, width in (("light", 1900), ("dark", 1000)):
        page = visit(listener, width, color_scheme=theme)
        settled(page)
        assert "token" not in page.url
        assert "<b>rec" in page.locator("#recording").inner_text()
        assert page.locator("b").count() == 0
        assert page.locator("html").get_attribute("data-theme") == theme
        for statistic in ("io.ops[latency]", "io.ops[op]"):
            assert inked(page, statistic) > 500
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=tmp_path / f"{theme}.png", full_page=True)


def test_typed_statistics_are_drawn_and_wrong_ones_explained(visit: Any, listener: Listener) -> None:
    page = visit(listener)
    for statistic in ("io.bytes", "io.bytes[device]", "io.ops[op=write][size]"):
        show(page, statistic)
        settled(page)
        assert inked(page, statistic) > 100
    show(page, " io.ops[ op=write ]", "io.ops[op=write]")
    page.fill("#statistic", "io.opps")
    page.press("#statistic", "Enter")
    page.wait_for_selector(".typed .problem")
    assert "did you mean 'io.ops'?" in page.locator(".typed .problem").inner_text()
    before = page.locator("section").count()
    page.locator('section[data-statistic="io.bytes"] .close').click()
    assert page.locator("section").count() == before - 1
    page.reload()
    page.wait_for_selector("section[data-statistic='io.bytes[device]'] canvas")
    assert page.locator("section").count() == before - 1


def test_a_value_is_drilled_into(visit: Any, listener: Listener) -> None:
    page = visit(listener)
    page.locator("nav").get_by_role("button", name="process", exact=True).first.click()
    page.wait_for_selector("section[data-statistic='io.ops[process]'] canvas")
    page.locator("section[data-statistic='io.ops[process]'] .keys").get_by_role("button", name="ünïcode", exact=True).click()
    page.wait_for_selector("section[data-statistic='io.ops[process=ünïcode]'] canvas")
    settled(page)
    assert inked(page, "io.ops[process=ünïcode]") > 100


def test_a_marked_part_says_whose_it_is(visit: Any, listener: Listener) -> None:
    page = visit(listener)
    box = page.locator('section[data-statistic="io.ops[latency]"] canvas').bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 150, steps=4)
    page.mouse.up()
    page.wait_for_selector(".who table")
    assert {"op", "device", "process"} <= set(page.locator(".who thead th:first-child").all_inner_texts())
    assert "I/Os between" in page.locator(".who p").inner_text()


def test_a_growing_recording_moves(visit: Any, tmp_path: Path) -> None:
    writer = RecordingWriter.create(tmp_path / "live", host="here", clock="realtime", origin={"kind": "record"})
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.wait(0.2):
            number += 1
            writer.append_events(events(100, number, start_ns=time.time_ns() - SECOND // 5, per_s=500))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        time.sleep(1)
        with serving(Store([tmp_path / "live"])) as found:
            page = visit(found)
            total = page.locator("section[data-statistic='io.ops[op]'] h2 + span")
            first = total.inner_text()
            page.wait_for_function("([place, before]) => document.querySelector(place).innerText !== before",
                                   arg=["section[data-statistic='io.ops[op]'] h2 + span", first])
            # maps that were there before another one came move as well
            show(page, "io.ops[op=write][size]")
            words = page.locator("section[data-statistic='io.ops[latency]'] [data-words]")
            shown = [counted(words.inner_text())]
            for _ in range(3):
                time.sleep(1.2)
                shown.append(counted(words.inner_text()))
            assert shown == sorted(set(shown)), shown
            assert "(live)" in page.locator("#recording").inner_text()
            page.click("#pause")
            time.sleep(1.2)
            held = total.inner_text()
            time.sleep(2)
            assert total.inner_text() == held
            page.close()
    finally:
        over.set()
        thread.join()
        writer.close()
