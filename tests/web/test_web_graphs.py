# SPDX-License-Identifier: Apache-2.0
"""Graphs of the worksheet in Chromium: values chosen and drilled into, maps cropped, zoomed, marked
and asked, with and without pointer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab import _core
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import expect, typed, until
from support.recordings import SECOND, START, events
from support.service import serving
from support.worksheet import addressed, drawn, frame, inked, part, picture, settled, visited

pytestmark = pytest.mark.browser

LATENCY, OP = "io.ops[latency]", "io.ops[op]"
SECONDS, READS, WRITES = 60, 100, 10
SLOW_FROM, SLOW_UNTIL = 20, 40
"""Between these seconds every eleventh I/O is a write of a backup that takes 5 to 40 ms, beside
reads of a database of 60 to 160 us."""


def _load(path: Path) -> RecordingWriter:
    """A database reads all the time; a backup writes for a third of it, a hundred times slower."""
    writer = RecordingWriter.create(
        path, host="there", clock="realtime", origin={"kind": "import"}, live=False
    )
    for second in range(SECONDS):
        slow = SLOW_FROM <= second < SLOW_UNTIL
        rows = READS + (WRITES if slow else 0)
        batch = events(rows, second, start_ns=START + second * SECOND, per_s=rows)
        write = [slow and row % 11 == 10 for row in range(rows)]
        latency = [
            5_000_000 + 350_000 * row if each else 60_000 + 1000 * (37 * row % 100)
            for row, each in enumerate(write)
        ]
        columns = {
            "latency_ns": latency,
            "latency_bucket": [_core.grid_index(value, 6) for value in latency],
            "op": ["write" if each else "read" for each in write],
            "process": ["backup" if each else "db" for each in write],
            "count": [1] * rows,
            "file": [
                f"/data/{'dump' if each else 'table'}/{row % 3}" for row, each in enumerate(write)
            ],
        }
        for name, values in columns.items():
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(
                place, batch.schema.field(place), pa.array(values, batch.schema.field(place).type)
            )
        writer.append_events(batch)
    writer.loss("overrun", "block", START + 50 * SECOND, START + 51 * SECOND, 17)
    return writer


@pytest.fixture(scope="module")
def listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    home = tmp_path_factory.mktemp("graphs")
    writer = _load(home / "rec")
    with serving(state_in(Store([home / "rec"]), home / "data", home / "alerts.jsonl")) as found:
        yield found
    writer.close()


@pytest.fixture
def show(browser: Any, listener: Listener) -> Iterator[Callable[..., Any]]:
    """Opens the worksheet with graphs, each a name or a name with what differs from how graphs
    begin."""
    with ExitStack() as stack:

        def open_page(*graphs: str | tuple[str, dict[str, object]], **options: Any) -> Any:
            texts = [
                each if isinstance(each, str) else dumps({"statistic": each[0], **each[1]})
                for each in graphs
            ]
            page = stack.enter_context(
                visited(browser, f"{listener.url}{part(*texts, recording='rec')}", **options)
            )
            for each in graphs:
                drawn(page, each if isinstance(each, str) else each[0])
            settled(page)
            return page

        yield open_page


def value(page: Any, statistic: str, name: str) -> Any:
    """A value in a graph's left panel."""
    return (
        frame(page, statistic)
        .locator(".values")
        .get_by_role("option", name=re.compile(f"^{re.escape(name)}"))
    )


def colours(page: Any, statistic: str) -> dict[str, int]:
    """Pixels of a plot by the kind of their colour: grey, or of a hue."""
    found: dict[str, int] = (
        frame(page, statistic)
        .locator("canvas")
        .first.evaluate("""canvas => {
        const {width, height} = canvas;
        const data = canvas.getContext('2d').getImageData(90, 10, width - 190, height - 60).data;
        const found = {grey: 0, green: 0, blue: 0};
        for (let i = 0; i < data.length; i += 4) {
            const [r, g, b] = [data[i], data[i + 1], data[i + 2]];
            if (Math.min(r, g, b) > 235) continue;
            if (Math.max(r, g, b) - Math.min(r, g, b) < 12) found.grey++;
            else if (g > Math.max(r + 20, b)) found.green++;
            else if (b > r + 20) found.blue++;
        }
        return found;
    }""")
    )
    return found


def told(page: Any, statistic: str, keys: int) -> None:
    """Wait until a map shows so many values apart from the rest."""
    frame(page, statistic).locator(f"figure[data-told='{keys}']").wait_for()
    settled(page)


def at(page: Any, statistic: str, second: float, height: float) -> tuple[float, float]:
    """A place on the screen: a second of the recording, and a share of the plot's height from its
    top."""
    box = frame(page, statistic).locator("canvas").first.bounding_box()
    return box["x"] + 84 + (box["width"] - 176) * second / SECONDS, box["y"] + 6 + (
        box["height"] - 42
    ) * height


def drag(page: Any, one: tuple[float, float], other: tuple[float, float]) -> None:
    page.mouse.move(*one)
    page.mouse.down()
    page.mouse.move((one[0] + other[0]) / 2, (one[1] + other[1]) / 2, steps=3)
    page.mouse.move(*other, steps=3)
    page.mouse.up()


def selected(place: Any, yes: bool = True) -> None:
    """Wait until a value is chosen, or is not."""
    expect(place).to_have_attribute("aria-selected", "true" if yes else "false")


def shown(page: Any) -> tuple[int, int]:
    """The span that the address says."""
    found = re.search(r"from=(\d+)&to=(\d+)", addressed(page, "from="))
    assert found
    return int(found[1]), int(found[2])


def test_values_of_a_map_are_highlighted_alone_left_out_and_all_in_colour(show: Any) -> None:
    page = show((LATENCY, {"by": "process", "crop": 0}))
    expect(value(page, LATENCY, "db")).to_have_text(re.compile(r"^db\s*100/s$"))
    plain = inked(page, LATENCY)
    place = frame(page, LATENCY).bounding_box()
    value(page, LATENCY, "backup").click()
    told(page, LATENCY, 1)
    highlighted = colours(page, LATENCY)
    # the reads are grey, the writes are in colour, and together they are the map
    assert highlighted["grey"] > 500
    assert highlighted["blue"] > 200
    assert abs(inked(page, LATENCY) - plain) < 0.02 * plain
    picture(page, "highlight")
    # the writes alone, and then the reads, of which there are many more
    page.keyboard.press("i")
    until(page, lambda: inked(page, LATENCY) < 0.98 * plain)
    settled(page)
    alone = inked(page, LATENCY)
    page.keyboard.press("u")
    until(page, lambda: inked(page, LATENCY) not in (alone, plain))
    settled(page)
    assert inked(page, LATENCY) < plain
    page.keyboard.press("r")
    told(page, LATENCY, 2)
    until(page, lambda: min(colours(page, LATENCY)[hue] for hue in ("blue", "green")) > 200)
    picture(page, "rainbow")
    # whatever is shown, nothing on the page moves
    assert frame(page, LATENCY).bounding_box() == place
    addressed(page, '"mode":"rainbow"')
    page.keyboard.press("Escape")
    selected(value(page, LATENCY, "backup"), False)


def test_areas_rescale_to_what_is_chosen(show: Any) -> None:
    page = show(OP)
    plot = frame(page, OP).locator("canvas").first
    before = plot.screenshot()
    value(page, OP, "write").click()
    until(page, lambda: plot.screenshot() != before)
    settled(page)
    picture(page, "areas")
    value(page, OP, "read").click(modifiers=["Shift"])
    chosen = frame(page, OP).locator("[role=option][aria-selected=true]")
    expect(chosen).to_have_text([re.compile("^read"), re.compile("^write")])
    frame(page, OP).locator("select.painter").select_option("line")
    addressed(page, '"painter":"line"')
    frame(page, OP).focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    selected(value(page, OP, "read"))


def test_a_value_leads_to_its_next_breakdowns_back_over_the_whole_time(show: Any) -> None:
    page = show(OP)
    value(page, OP, "write").click(button="right")
    menu = page.get_by_role("menu")
    menu.get_by_role("menuitem").first.wait_for()
    picture(page, "menu")
    expect(menu).not_to_contain_text("by op")
    menu.get_by_role("menuitem", name="by process").click()
    graphs = page.locator("section[data-statistic]")
    found = graphs.nth(1)
    found.locator("canvas").first.wait_for()
    expect(found).to_have_attribute(
        "data-statistic", re.compile(r'^io\.ops\[op="?write"?\]\[process\]$')
    )
    value_of = found.locator("[role=option]").first
    expect(value_of).to_have_text(re.compile("^backup"))
    # by keyboard: the list, its menu, the first step
    page.keyboard.press("l")
    expect(value_of).to_be_focused()
    page.keyboard.press("a")
    items = page.get_by_role("menuitem")
    expect(items.first).to_be_focused()
    page.keyboard.press("End")
    expect(items.last).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(items.first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(value_of).to_be_focused()
    # as fast as keys can come: what asks on is open before the next one, and the graph that it adds
    # has the focus
    typed(page, ["a", "ArrowDown", "ArrowUp", "Enter"])
    expect(graphs).to_have_count(3)
    expect(graphs.nth(2)).to_be_focused()


def test_what_lies_above_a_crop_is_counted(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}))
    words = frame(page, LATENCY).locator("[data-words]")
    expect(words).not_to_contain_text("above")
    frame(page, LATENCY).locator("select.crop").select_option("0.05")
    expect(words).to_have_text(re.compile(r"^\d+ I/Os \(\S+ %\) above [\d.]+ µs"))
    frame(page, LATENCY).focus()
    page.keyboard.press("c")
    addressed(page, '"crop":0', without=('"crop":0.05',))
    expect(words).not_to_contain_text("above")
    page.keyboard.press("q")
    page.keyboard.press("o")
    page.keyboard.press("y")
    addressed(page, '"colour":"log"', '"overlays":true', '"scale":"linear"')
    settled(page)
    picture(page, "overlays")


def test_values_are_zoomed_from_the_left_panel(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}))
    ranges = frame(page, LATENCY).locator(".values [role=option]")
    counted = "all => all.map(each => Number(each.title.split(': ')[1].replace(/[^0-9]/g, '')))"
    until(
        page,
        lambda: (
            sum(ranges.evaluate_all(counted)) == SECONDS * READS + (SLOW_UNTIL - SLOW_FROM) * WRITES
        ),
    )
    counts = ranges.evaluate_all(counted)
    ranges.first.click()
    ranges.nth(1).click(modifiers=["Shift"])
    frame(page, LATENCY).locator(".zoom-rows").click()
    expect(frame(page, LATENCY).locator("[data-words]")).to_contain_text(
        f"{sum(counts[2:]):,} I/Os below".replace(",", " ")
    )
    addressed(page, '"rows":{')
    page.keyboard.press("Z")
    addressed(page, without=('"rows"',))


def test_a_marked_part_says_whose_it_is_and_leads_on(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}))
    drag(page, at(page, LATENCY, 22, 0.02), at(page, LATENCY, 30, 0.3))
    who = frame(page, LATENCY).locator(".who")
    who.locator("table").first.wait_for()
    expect(who).to_contain_text(re.compile(r"\d+ I/Os inside"))
    # its right edge is dragged to a later second, its inside to an earlier one
    head = who.locator("strong").first
    expect(head).to_have_text(re.compile(r"22:13:4[12]\S* – 22:13:50"))
    drag(page, at(page, LATENCY, 30, 0.15), at(page, LATENCY, 35, 0.15))
    expect(head).to_have_text(re.compile(r"22:13:4[12]\S* – 22:13:55"))
    drag(page, at(page, LATENCY, 28, 0.15), at(page, LATENCY, 27, 0.15))
    expect(head).to_have_text(re.compile(r"22:13:4[01]\S* – 22:13:5[34]"))
    row = who.get_by_role("row", name=re.compile("^backup"))
    expect(row).to_contain_text("100 %")
    picture(page, "who")
    row.get_by_role("button", name="backup", exact=True).click()
    added = page.locator("section[data-statistic]").nth(1)
    expect(added).to_have_attribute(
        "data-statistic",
        re.compile(r'^io\.ops\[latency=\d+ns\.\.\d+ns\]\[process="?backup"?\]\[latency\]$'),
    )
    frame(page, LATENCY).locator(".zoom-mark").click()
    expect(who).to_have_count(0)
    addressed(page, '"rows":{', "from=17000000")


def test_a_part_is_marked_and_asked_by_keyboard(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}))
    frame(page, LATENCY).locator("canvas").first.focus()
    for key in ["ArrowUp"] * 12 + ["Shift+ArrowRight"] * 4 + ["Shift+ArrowUp"] * 7:
        page.keyboard.press(key)
    frame(page, LATENCY).locator(".who table").first.wait_for()
    expect(page.locator(".tooltip")).to_contain_text("latency:")
    head = frame(page, LATENCY).locator(".who strong").first
    for key in ("Control+ArrowRight", "Control+Shift+ArrowUp"):
        before = head.inner_text()
        page.keyboard.press(key)
        expect(head).not_to_have_text(before)
    page.keyboard.press("Escape")
    expect(frame(page, LATENCY).locator(".who")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(frame(page, LATENCY).locator(".second")).to_be_visible()


def test_the_pointer_says_what_is_there_and_a_click_selects_a_second(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}), OP)
    page.mouse.move(*at(page, LATENCY, 10.5, 0.93))
    words = page.locator(".tooltip")
    expect(words).to_contain_text(re.compile(r"latency: [\d.]+ µs to [\d.]+ µs"))
    expect(words).to_contain_text("of the column")
    expect(frame(page, OP).locator(".moment")).to_be_visible()
    page.mouse.move(*at(page, LATENCY, 50.5, 1.02))
    expect(words).to_contain_text(re.compile(r"missing: \d+ records? (was|were) lost"))
    page.mouse.click(*at(page, LATENCY, 30.5, 0.5))
    second = frame(page, OP).locator(".second")
    expect(second).to_be_visible()
    # columns are shorter than a second here: what it held is asked for
    write = value(page, OP, "write")
    expect(write).to_have_text(re.compile(rf"^write\s*{WRITES}/s$"))
    page.mouse.click(*at(page, LATENCY, 10.5, 0.5))
    expect(write).to_have_text(re.compile(r"^write\s*0/s$"))
    page.mouse.click(*at(page, LATENCY, 10.5, 0.5))
    expect(second).to_be_hidden()


def test_time_is_dragged_and_zoomed_by_the_wheel_on_all_graphs(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}), OP)
    page.mouse.move(*at(page, LATENCY, 30, 0.5))
    whole = shown(page)
    page.mouse.wheel(0, -500)
    until(page, lambda: shown(page) != whole)
    settled(page)
    first = shown(page)
    length = first[1] - first[0]
    assert 0.4 * SECONDS * SECOND < length < 0.6 * SECONDS * SECOND
    page.keyboard.down("Shift")
    drag(page, at(page, LATENCY, 30, 0.5), at(page, LATENCY, 20, 0.5))
    page.keyboard.up("Shift")
    until(page, lambda: shown(page)[0] > first[0])
    settled(page)
    second = shown(page)
    assert second[1] - second[0] == length
    page.mouse.move(*at(page, LATENCY, 30, 0.5))
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Shift")
    addressed(page, '"rows":{')


def test_files_are_a_tree_and_an_icicle(show: Any) -> None:
    statistic = "io.ops[file]"
    page = show((statistic, {"hierarchy": "icicle"}))
    slices = frame(page, statistic).locator(".icicle .slice")
    until(page, lambda: {"all", "data", "table", "dump"} <= set(slices.all_inner_texts()))
    frame(page, statistic).locator(".slice[title^='/data/table:']").click()
    expect(frame(page, statistic).locator("[role=option][aria-selected=true]")).to_have_text(
        [re.compile("table")] * 3
    )
    picture(page, "icicle")
    page.keyboard.press("t")
    page.keyboard.press("t")
    expect(frame(page, statistic).locator(".tree")).to_contain_text("table")


def test_nothing_is_painted_anew_while_a_graph_is_dragged(show: Any) -> None:
    page = show((LATENCY, {"crop": 0}))
    page.mouse.move(*at(page, LATENCY, 30, 0.5))
    whole = shown(page)
    page.mouse.wheel(0, -1200)
    until(page, lambda: shown(page) != whole)
    settled(page)
    # the service stays silent, so that all that is drawn is what was painted before
    page.route("**/api/v1/**", lambda route: None)
    page.evaluate("""() => {
        window.pictures = 0;
        const put = CanvasRenderingContext2D.prototype.putImageData;
        CanvasRenderingContext2D.prototype.putImageData = function (...all) { window.pictures++; return put.apply(this, all); };
    }""")
    before = frame(page, LATENCY).locator("canvas").first.screenshot()
    page.keyboard.down("Shift")
    page.mouse.move(*at(page, LATENCY, 30, 0.5))
    page.mouse.down()
    page.mouse.move(*at(page, LATENCY, 32, 0.5), steps=4)
    page.mouse.move(*at(page, LATENCY, 26, 0.5), steps=20)
    assert page.evaluate("window.pictures") == 0
    page.mouse.up()
    page.keyboard.up("Shift")
    until(page, lambda: frame(page, LATENCY).locator("canvas").first.screenshot() != before)
    page.unroute_all()
