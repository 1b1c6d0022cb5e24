# SPDX-License-Identifier: Apache-2.0
"""The worksheet in a browser, as a user handles it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .browser import PATIENCE, expect, until

ARTEFACTS = Path(__file__).parents[1] / "artefacts" / "worksheet"
"""Pictures of what tests saw; never committed."""

_INK = """canvas => {
    const {width, height} = canvas;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    const colours = new Map();
    for (let i = 0; i < data.length; i += 4) {
        const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
        colours.set(colour, (colours.get(colour) ?? 0) + 1);
    }
    return [...colours.values()].sort((a, b) => b - a).slice(1).reduce((sum, count) => sum + count, 0);
}"""


def part(*graphs: str, **words: object) -> str:
    """The part of an address that says what is shown."""
    return "#" + "&".join(
        f"{name}={quote(str(value))}"
        for name, value in [*words.items(), *(("graph", each) for each in graphs)]
    )


def frame(page: Any, statistic: str) -> Any:
    """A graph with all that belongs to it."""
    return page.locator(f'section[data-statistic="{statistic}"]').first


def drawn(page: Any, statistic: str, least: int = 300) -> None:
    """Wait until a graph's plot shows something."""
    place = frame(page, statistic).locator("canvas").first
    place.wait_for()
    page.wait_for_function(
        f"([canvas, least]) => ({_INK})(canvas) > least", arg=[place.element_handle(), least]
    )


def inked(page: Any, statistic: str) -> int:
    """Pixels of a graph's plot that are not background."""
    return int(frame(page, statistic).locator("canvas").first.evaluate(_INK))


def add(page: Any, statistic: str, canonical: str = "") -> None:
    """Add a statistic by typing it."""
    page.locator("#add").wait_for()
    page.keyboard.press("+")
    page.fill("#statistic", statistic)
    page.press("#statistic", "Enter")
    drawn(page, canonical or statistic)


def ordered(page: Any, *statistics: str) -> None:
    """Wait until these are the graphs, in this order."""
    found = page.locator("section[data-statistic]")
    until(
        page,
        lambda: (
            found.evaluate_all("all => all.map(each => each.dataset.statistic)") == list(statistics)
        ),
        str(statistics),
    )


def reads(page: Any, length: str | re.Pattern[str]) -> None:
    """Wait until so much time is shown."""
    expect(page.locator("#reading strong")).to_have_text(length)


_ADDRESS = "decodeURIComponent(location.hash.replaceAll('+', ' '))"

TURNS = 6
"""Turns of quiet, each longer than 60 ms, after which nothing more is expected: the page asks when
what it shows has rested."""

_OPEN: dict[Any, set[Any]] = {}
"""Requests of a page that are under way, besides the stream."""


def settled(page: Any) -> None:
    """Wait until what was asked for is there and painted, and nothing more is asked for some turns
    of the page's own timers; a page that asks every second is taken in a pause."""
    quiet = 0
    begun = time.monotonic()
    while quiet < (TURNS if time.monotonic() < begun + 10 else 1):
        if time.monotonic() > begun + PATIENCE / 1000:
            raise AssertionError(f"still asked for: {[each.url for each in _OPEN[page]]}")
        page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))"
        )
        # what came may have made the page ask on
        quiet = 0 if _OPEN[page] else quiet + 1


def addressed(page: Any, *words: str, without: tuple[str, ...] = ()) -> str:
    """What the address says, once it says all of these words and none of those `without`."""
    page.wait_for_function(
        f"""([words, without]) => {{
        const said = {_ADDRESS};
        return words.every(each => said.includes(each)) && !without.some(each => said.includes(each));
    }}""",
        arg=[list(words), list(without)],
    )
    return str(page.evaluate(_ADDRESS))


def picture(page: Any, name: str) -> Path:
    """Keep what is seen now."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTEFACTS / f"{name}.png"
    page.screenshot(path=path)
    return path


@contextmanager
def visited(
    browser: Any,
    url: str,
    *,
    width: int = 1600,
    height: int = 1000,
    allowed: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Any]:
    """The page; when it is left nothing may have gone wrong but what is `allowed`, and nobody else
    may have been asked."""
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    page.set_default_timeout(PATIENCE)
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
    under_way: set[Any] = set()
    _OPEN[page] = under_way
    page.on("request", lambda request: requests.append(request.url))
    page.on(
        "request", lambda request: under_way.add(request) if "/stream?" not in request.url else None
    )
    for over in ("requestfinished", "requestfailed"):
        page.on(over, lambda request: under_way.discard(request))
    page.goto(url)
    try:
        yield page
    finally:
        page.close()
        del _OPEN[page]
    home = url.split("?")[0].split("#")[0]
    wrong = [each for each in problems if not any(words in each for words in allowed)]
    assert not wrong, "\n".join(wrong)
    elsewhere = [each for each in requests if not each.startswith((home, "blob:", "data:"))]
    assert not elsewhere, "\n".join(elsewhere)
