# SPDX-License-Identifier: Apache-2.0
"""The map of a notebook in Chromium, with the model that anywidget hands over made up: what is
marked comes to the kernel, and what the kernel marks is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.api import Events
from support.browser import expect

pytestmark = pytest.mark.browser

_SHOW = """async ({page, esm}) => {
    const values = {page, selection: null}, handlers = {}
    window.kernel = {values, saved: 0, mark(part) { values.selection = part; handlers["change:selection"]() }}
    const model = {
        get: name => values[name],
        set: (name, value) => { values[name] = value },
        save_changes: () => { window.kernel.saved += 1 },
        on: (event, act) => { handlers[event] = act },
        off: event => { delete handlers[event] },
    }
    const url = URL.createObjectURL(new Blob([esm], {type: "text/javascript"}))
    const module = await import(url)
    window.close_widget = module.default.render({model, el: document.getElementById("out")})
}"""


def test_a_part_is_marked_in_the_page_and_by_the_kernel(browser: Any, tmp_path: Path) -> None:
    lines = ["time:ms,latency:us,op,process"]
    lines += [
        f"{n},{5000 if n % 10 == 0 else 100},{'write,dd' if n % 10 == 0 else 'read,fio'}"
        for n in range(2000)
    ]
    trace = tmp_path / "trace.csv"
    trace.write_text("\n".join(lines) + "\n")
    events = iolab.open(trace)
    assert isinstance(events, Events)
    widget = events.explore("latency")
    page = browser.new_page(viewport={"width": 900, "height": 700})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content("<!doctype html><h1>mine</h1><div id='out'></div>")
    page.evaluate(_SHOW, {"page": widget.page, "esm": widget._esm})
    canvas = page.locator("#out canvas")
    expect(canvas).to_have_count(1)
    # the upper half: the slow writes
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 90, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 95, box["y"] + 120, steps=3)
    page.mouse.up()
    who = page.locator("#out .who")
    expect(who.get_by_role("row", name="dd")).to_contain_text("100 %")
    assert page.evaluate("window.kernel.saved") > 0
    # the kernel's who() of what was marked has the page's numbers
    widget.selection = page.evaluate("window.kernel.values.selection")
    found = widget.who()
    assert found is not None
    assert 190 < found.inside <= 200
    assert found.outside == 2000 - found.inside
    expect(who).to_contain_text(f"{found.inside} I/Os")
    cropped = widget.crop()
    assert cropped.counts.total == found.inside
    # what the kernel marks is drawn
    page.evaluate("window.kernel.mark(null)")
    expect(who).to_have_count(0)
    page.evaluate("window.kernel.mark({from: 0, until: 1e9, low: 1, high: 1e6})")
    expect(who).to_contain_text("900 I/Os")
    # the notebook keeps its own styles
    assert page.locator("h1").first.evaluate("node => getComputedStyle(node).fontSize") == "32px"
    page.evaluate("window.close_widget()")
    expect(canvas).to_have_count(0)
    assert errors == []
    page.close()
