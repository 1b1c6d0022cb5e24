# SPDX-License-Identifier: Apache-2.0
"""What a user does on the worksheet, in the words of its guides."""

from __future__ import annotations

import re
from typing import Any

from .answers import span
from .browser import expect
from .worksheet import add, drawn, frame, settled


def value(page: Any, statistic: str, name: str) -> Any:
    """A value in a graph's left panel."""
    return (
        frame(page, statistic)
        .locator(".values")
        .get_by_role("option", name=re.compile(f"^{re.escape(name)}"))
    )


def asked_on(page: Any, place: Any, step: str) -> str:
    """Right-click a value of a left panel and take one of its next breakdowns; the statistic of the
    graph that this adds."""
    sections = page.locator("section[data-statistic]")
    before = sections.count()
    place.click(button="right")
    page.get_by_role("menuitem", name=re.compile(f"^{re.escape(step)}")).click()
    expect(sections).to_have_count(before + 1)
    found = str(page.locator("section.focused").get_attribute("data-statistic"))
    drawn(page, found, 50)
    lowered(page, found)
    return found


def lowered(page: Any, statistic: str, pixels: int = 200) -> None:
    """Make a graph lower by the keys of its lower edge, so that two are seen at once."""
    edge = frame(page, statistic).locator(".edge")
    while (height := int(edge.get_attribute("aria-valuenow"))) > pixels:
        edge.press("ArrowUp")
        expect(edge).not_to_have_attribute("aria-valuenow", str(height))
    settled(page)


def shown(page: Any, *statistics: str, pixels: int = 200) -> None:
    """Add graphs, of which two are seen at once."""
    for statistic in statistics:
        add(page, statistic)
        lowered(page, statistic, pixels)


def closed(page: Any, *statistics: str) -> None:
    """Close graphs."""
    for statistic in statistics:
        frame(page, statistic).get_by_role("button", name=f"Close {statistic}").click()
        expect(frame(page, statistic)).to_have_count(0)


def as_lines(page: Any, *statistics: str) -> None:
    """Show the values of breakdowns as lines, not as areas."""
    for statistic in statistics:
        frame(page, statistic).locator("select.painter").select_option("line")
    settled(page)


def chosen(page: Any, from_ns: float, until_ns: float) -> None:
    """Drag over the strip of all time, to show a part of it."""
    box = page.locator(".overview").bounding_box()
    begin, end = span(page)
    first, last = (
        box["x"] + box["width"] * (at - begin) / (end - begin) for at in (from_ns, until_ns)
    )
    page.mouse.move(last, box["y"] + 4)
    page.mouse.down()
    page.mouse.move((first + last) / 2, box["y"] + 4, steps=3)
    page.mouse.move(first, box["y"] + 4, steps=3)
    page.mouse.up()
    settled(page)


def marked(
    page: Any, statistic: str, from_: tuple[float, float], until: tuple[float, float]
) -> None:
    """Drag over a graph's plot, between two points that are shares of its width and height from its
    upper left corner."""
    box = frame(page, statistic).locator("canvas").first.bounding_box()
    (left, top), (right, bottom) = (
        (box["x"] + 84 + (box["width"] - 176) * x, box["y"] + 6 + (box["height"] - 42) * y)
        for x, y in (from_, until)
    )
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move((left + right) / 2, (top + bottom) / 2, steps=3)
    page.mouse.move(right, bottom, steps=3)
    page.mouse.up()
