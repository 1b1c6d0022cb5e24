# SPDX-License-Identifier: Apache-2.0
"""How graphs of the worksheet are painted: what was not recorded, what does not add up, maps as
lines, two times, parts of a tree."""

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
from iolab.base.clock import FakeClock
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.output.server.queries.answers import ask
from iolab.output.server.queries.comparison import changes
from iolab.recordings.heatmap.ticks import quantity
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import expect, until
from support.recordings import SECOND, START, events
from support.service import serving
from support.worksheet import addressed, drawn, frame, part, picture, settled, visited

pytestmark = pytest.mark.browser

LATENCY, OP, FILE, DEVICE = "io.ops[latency]", "io.ops[op]", "io.ops[file]", "io.ops[device]"
FIRST, GAP, SECOND_FROM, END = 0, 20, 30, 60
"""Seconds: it is recorded from FIRST to GAP and from SECOND_FROM to END."""
BEFORE, AFTER = -10, 70
"""Seconds that are shown."""
ALL = {"from": str(START + BEFORE * SECOND), "to": str(START + AFTER * SECOND)}


def _events(second: int, rows: int) -> pa.RecordBatch:
    batch = events(rows, second, start_ns=START + second * SECOND, per_s=rows)
    write = [row % 10 == 0 for row in range(rows)]
    latency = [
        8_000_000 + 50_000 * row if each else 60_000 + 1000 * (37 * row % 100)
        for row, each in enumerate(write)
    ]
    columns = {
        "latency_ns": latency,
        "latency_bucket": [_core.grid_index(value, 6) for value in latency],
        "count": [1] * rows,
        "op": ["write" if each else "read" for each in write],
        "process": ["backup" if each else f"db{row % 14}" for row, each in enumerate(write)],
        "file": [
            f"/data/{'dump' if each else 'table'}/{row % 3}" for row, each in enumerate(write)
        ],
        "device": ["sda"] * rows,
    }
    for name, values in columns.items():
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(
            place, batch.schema.field(place), pa.array(values, batch.schema.field(place).type)
        )
    return batch


def _samples(second: int) -> pa.RecordBatch:
    rows = [
        ("diskstats", START + second * SECOND, thing, field, 1000 + second * step)
        for thing, scale in (("sda", 30), ("sda1", 20), ("sda2", 10), ("sdb", 12))
        for field, step in (("reads", scale), ("writes", scale // 2), ("io_ms", 9 * scale))
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), SAMPLES, strict=True)
        ],
        schema=SAMPLES,
    )


def _recorded(path: Path) -> None:
    """A load that does twice as much after a gap as before it."""
    clock = FakeClock(START)
    for begin, end, rows in ((FIRST, GAP, 100), (SECOND_FROM, END, 200)):
        writer = (
            RecordingWriter.reopen(path, system=clock)
            if begin
            else RecordingWriter.create(
                path, host="there", clock="realtime", origin={"kind": "record"}, system=clock
            )
        )
        with writer:
            for second in range(begin, end):
                writer.append_events(_events(second, rows))
                writer.append_samples(_samples(second))
                clock.sleep(1)
            # the last reading ends the last second
            writer.append_samples(_samples(end))
        clock.sleep(SECOND_FROM - GAP)


@pytest.fixture(scope="module")
def store(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("painters") / "rec"
    _recorded(path)
    return Store([path])


@pytest.fixture(scope="module")
def listener(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    home = tmp_path_factory.mktemp("home")
    with serving(state_in(store, home / "data", home / "alerts.jsonl")) as found:
        yield found


@pytest.fixture
def show(browser: Any, listener: Listener) -> Iterator[Callable[..., Any]]:
    """Opens the worksheet with graphs, each a name or a name with what differs from how graphs
    begin; `time`: words of the address."""
    with ExitStack() as stack:

        def open_page(
            *graphs: str | tuple[str, dict[str, object]],
            time: dict[str, str] | None = None,
            **options: Any,
        ) -> Any:
            texts = [
                each if isinstance(each, str) else dumps({"statistic": each[0], **each[1]})
                for each in graphs
            ]
            page = stack.enter_context(
                visited(
                    browser,
                    f"{listener.url}{part(*texts, recording='rec', **(time or ALL))}",
                    **options,
                )
            )
            for each in graphs:
                drawn(page, each if isinstance(each, str) else each[0])
            settled(page)
            return page

        yield open_page


_SHARE = """(canvas, [from, to, top, bottom]) => {
    const scale = canvas.width / canvas.clientWidth;
    const [left, right] = [from, to].map(share => Math.round((84 + share * (canvas.clientWidth - 176)) * scale));
    const [high, low] = [top, bottom].map(share => Math.round((6 + share * (canvas.clientHeight - 42)) * scale));
    const context = canvas.getContext('2d');
    const ground = context.getImageData(1, 1, 1, 1).data;
    const data = context.getImageData(left, high, right - left, low - high).data;
    let other = 0;
    for (let i = 0; i < data.length; i += 4)
        if (Math.abs(data[i] - ground[0]) + Math.abs(data[i + 1] - ground[1]) + Math.abs(data[i + 2] - ground[2]) > 12) other++;
    return other / (data.length / 4);
}"""


def painted(place: Any, first: float, until_s: float, top: float, bottom: float) -> float:
    """The share of a part of a plot that is not background: between seconds, and between heights
    from its top."""
    length = AFTER - BEFORE
    return float(
        place.evaluate(
            _SHARE, [(first - BEFORE + 1) / length, (until_s - BEFORE - 1) / length, top, bottom]
        )
    )


def at(page: Any, place: Any, second: float, height: float = 0.5) -> tuple[float, float]:
    """A place on the screen: a second of the recording, and a share of the plot's height from its
    top."""
    box = place.bounding_box()
    return box["x"] + 84 + (box["width"] - 176) * (second - BEFORE) / (AFTER - BEFORE), box[
        "y"
    ] + 6 + (box["height"] - 42) * height


def pointed(page: Any, place: Any, second: float, height: float, words: str) -> None:
    """Point there until the tooltip says these words."""
    place.scroll_into_view_if_needed()
    x, y = at(page, place, second, height)
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    expect(page.locator(".tooltip")).to_contain_text(re.compile(words))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_time_that_was_not_recorded_is_hatched_and_said(show: Any, scheme: str) -> None:
    graphs = (
        (LATENCY, {"crop": 0, "height": 140}),
        (OP, {"height": 140}),
        (LATENCY.replace("[", "[op=write]["), {"painter": "percentiles", "height": 140}),
        ("io.bytes", {"height": 140}),
    )
    page = show(*graphs, color_scheme=scheme, height=1300)
    picture(page, f"painters-unrecorded-{scheme}")
    for statistic, _ in graphs:
        place = frame(page, statistic).locator("canvas").first
        # high up in the plot, where no data are
        for first, end in ((BEFORE, FIRST), (GAP, SECOND_FROM), (END, AFTER)):
            assert painted(place, first, end, 0.02, 0.1) > 0.05, (statistic, first)
        expect(frame(page, statistic).locator("[data-words]")).to_contain_text(
            "hatched: not recorded"
        )
        pointed(
            page,
            place,
            (BEFORE + FIRST) / 2,
            0.2,
            "nothing is recorded of this time: what there is begins later",
        )
        pointed(page, place, (GAP + SECOND_FROM) / 2, 0.2, "nothing was recorded here")
        pointed(
            page, place, (END + AFTER) / 2, 0.2, "nothing is recorded of this time: it ended before"
        )
    empty = painted(frame(page, OP).locator("canvas").first, FIRST, GAP, 0.02, 0.1)
    assert empty == 0, "what was recorded is hatched"


def test_what_does_not_add_up_stands_as_lines(show: Any) -> None:
    page = show((DEVICE, {"source": "diskstats"}), OP, "io.utilization[device]")
    as_painted = {
        statistic: frame(page, statistic).locator("select.painter")
        for statistic in (DEVICE, OP, "io.utilization[device]")
    }
    expect(as_painted[OP]).to_have_value("stack")
    expect(as_painted[DEVICE]).to_have_value("line")
    expect(as_painted["io.utilization[device]"]).to_have_value("line")
    words = frame(page, DEVICE).locator("[data-words]")
    expect(words).to_contain_text("don't add up")
    expect(frame(page, OP).locator("[data-words]")).not_to_contain_text("add up")
    picture(page, "painters-lines")
    # the sum beside the name is that of whole disks alone: 45 and 18 a second
    expect(frame(page, DEVICE).locator(".graph-sum")).to_contain_text("63/s on average")
    as_painted[DEVICE].select_option("stack")
    addressed(page, '"painter":"stack"')
    frame(page, DEVICE).focus()
    page.keyboard.press("L")
    addressed(page, '"painter":"line"')


def listed(page: Any, statistic: str) -> dict[str, str]:
    """What the left panel says of each value."""
    found = frame(page, statistic).locator(".graph-panel").first.locator("[role=option]")
    return dict(
        found.evaluate_all(
            "all => all.map(each => [each.querySelector('.name').innerText, each.querySelector('.number').innerText])"
        )
    )


def test_a_map_is_painted_as_percentiles_and_as_one_line(show: Any, store: Store) -> None:
    page = show((LATENCY, {"crop": 0}))
    place = frame(page, LATENCY)
    place.locator("select.painter").select_option("percentiles")
    lines = ask(store, {"statistic": LATENCY, "drawn": "percentiles", **ALL, "interval": "1s"}).keys  # type: ignore[attr-defined]
    expected = {each.key: quantity(each.mean, "ns") for each in lines}
    until(page, lambda: listed(page, LATENCY) == expected, f"{expected}")
    settled(page)
    picture(page, "painters-percentiles")
    addressed(page, '"painter":"percentiles"')
    # a percentile is chosen, and has no breakdowns of its own
    place.get_by_title("p99", exact=True).click(button="right")
    # a menu would be there with the next frame
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    expect(page.get_by_role("menu")).to_have_count(0)
    place.get_by_title("p99", exact=True).click()
    expect(place.locator("[role=option][aria-selected=true]")).to_have_count(1)
    expect(page.get_by_role("menu")).to_have_count(0)
    page.keyboard.press("y")
    addressed(page, '"scale":"linear"')
    page.keyboard.press("L")
    addressed(page, '"painter":"line"', without=('"highlights"',))
    whole: Any = ask(store, {"statistic": "io.ops", **ALL, "interval": "1s"})
    expect(place.locator(".graph-sum")).to_have_text(
        re.compile(rf"{whole.total:,}".replace(",", "."))
    )
    expect(place.locator("canvas").first).to_have_attribute(
        "aria-label", re.compile("lines over time")
    )
    settled(page)
    picture(page, "painters-one-line")
    page.keyboard.press("L")
    addressed(page, '"painter":"heat"')
    expect(place.locator("canvas").first).to_have_attribute(
        "aria-label", re.compile("heat map over time")
    )


def test_two_times_of_numbers_are_compared(show: Any, store: Store) -> None:
    this, that = (35, 55), (0, 20)
    time = {
        "from": str(START + this[0] * SECOND),
        "to": str(START + this[1] * SECOND),
        "compare": f"{START + that[0] * SECOND}..{START + that[1] * SECOND}",
    }
    page = show(OP, "io.ops", time=time)
    for statistic in (OP, "io.ops"):
        expect(frame(page, statistic).locator(".difference .change").first).to_be_visible()
    found = changes(
        store,
        {
            "statistic": OP,
            "from": time["from"],
            "to": time["to"],
            "other_from": str(START + that[0] * SECOND),
            "other_to": str(START + that[1] * SECOND),
            "interval": "1s",
        },
    )
    assert [each.key for each in found.keys] == ["read", "write"]
    rows = frame(page, OP).locator(".difference .change")
    expect(rows).to_have_count(3)
    for place, each in enumerate([*found.keys, found.whole]):
        assert each.ratio == 2
        expect(rows.nth(place)).to_have_attribute(
            "title", re.compile(f"now {each.mean}/s, then {each.other_mean}/s: .{each.change}/s")
        )
        expect(rows.nth(place)).to_contain_text("▲ 100 %")
    expect(frame(page, "io.ops").locator(".difference .change")).to_have_count(1)
    plot = frame(page, OP).locator(".difference canvas")
    settled(page)
    picture(page, "painters-two-times")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.move(box["x"] + 302, box["y"] + 60)
    expect(page.locator(".tooltip")).to_contain_text("that time: ")
    before = plot.screenshot()
    rows.first.click()
    # it is chosen in the graph as well
    expect(
        frame(page, OP).locator(".graph-panel").first.locator("[role=option][aria-selected=true]")
    ).to_have_count(1)
    addressed(page, '"highlights":["read"]')
    page.mouse.move(5, 5)
    until(page, lambda: plot.screenshot() != before)


def test_a_mark_in_a_difference_says_whose_it_is_in_either_time(show: Any) -> None:
    time = {
        "from": str(START + 35 * SECOND),
        "to": str(START + 55 * SECOND),
        "compare": f"{START}..{START + 20 * SECOND}",
    }
    page = show((LATENCY, {"crop": 0}), time=time)
    plot = frame(page, LATENCY).locator(".difference canvas")
    plot.wait_for()
    settled(page)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 70, steps=4)
    page.mouse.up()
    who = frame(page, LATENCY).locator(".difference .who")
    row = who.get_by_role("row", name=re.compile("^backup"))
    expect(row).to_contain_text("100 %")
    inside = who.locator("p strong")
    now = int(re.sub(r"\D", "", inside.inner_text().split("I/O")[0]))
    picture(page, "painters-difference-who")
    who.locator("select.who-when").select_option("that time")
    # half as much was done then
    until(
        page,
        lambda: int(re.sub(r"\D", "", inside.inner_text().split("I/O")[0]) or 0) == now // 2,
        f"half of {now}",
    )
    expect(row).to_contain_text("100 %")
    who.locator(".zoom-mark").click()
    expect(frame(page, LATENCY).locator(".who")).to_have_count(0)
    addressed(page, '"rows":{')


@pytest.mark.parametrize("way", ["pointer", "keys"])
def test_a_part_of_files_is_shown_alone(show: Any, way: str) -> None:
    page = show((FILE, {"hierarchy": "icicle"}))
    place = frame(page, FILE)
    slices = place.locator(".icicle .slice")
    expect(slices).to_have_count(10)
    if way == "pointer":
        place.locator(".place:has(.slice[title^='/data/table:']) .only").click()
    else:
        slices.first.focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        expect(place.locator(".slice:focus")).to_have_attribute(
            "title", re.compile("^/data/table:")
        )
        page.keyboard.press("z")
    expect(slices).to_have_text(
        ["table", re.compile("[012]"), re.compile("[012]"), re.compile("[012]")]
    )
    crumbs = place.locator(".crumbs button")
    expect(crumbs).to_have_text(["all", "data", "table"])
    picture(page, f"painters-icicle-{way}")
    # a tree shows the same part
    place.focus()
    page.keyboard.press("t")
    page.keyboard.press("t")
    expect(place.locator(".tree .branch")).to_have_count(3)
    if way == "pointer":
        crumbs.nth(1).click()
        expect(place.locator(".tree .branch").first).to_have_text("table")
        crumbs.first.click()
        expect(crumbs).to_have_count(1)
        place.locator(".tree .branch", has_text="data").first.dblclick()
        expect(crumbs).to_have_text(["all", "data"])
        return
    # a file holds nothing that could be shown alone, so only the second key leads anywhere
    place.locator(".tree .branch").first.focus()
    page.keyboard.press("z")
    page.keyboard.press("Z")
    expect(crumbs).to_have_text(["all", "data"])
    # what had the focus is gone, and the keys go on from the part that is shown
    expect(crumbs.last).to_be_focused()
    page.keyboard.press("Z")
    expect(crumbs).to_have_count(1)
    expect(crumbs.last).to_be_focused()
    place.locator(".tree .only").first.focus()
    page.keyboard.press("Enter")
    expect(crumbs).to_have_text(["all", "data"])
    expect(crumbs.last).to_be_focused()


def test_values_that_get_no_colour_are_said(show: Any) -> None:
    page = show((LATENCY, {"by": "process", "mode": "rainbow", "crop": 0}))
    panel = frame(page, LATENCY).locator(".graph-panel")
    expect(panel.locator(".notice")).to_have_text(
        "12 of 15 values are in colour, the others are grey"
    )
    expect(panel.locator(".swatch rect")).to_have_count(15)
    expect(panel.locator(".swatch rect[fill='#8a929c']")).to_have_count(3)
    picture(page, "painters-colours")


def test_the_source_is_chosen_where_several_answer(show: Any) -> None:
    page = show(OP, (LATENCY, {"crop": 0}))
    source = frame(page, OP).locator("select.source")
    expect(source.locator("option")).to_have_text(["block", "diskstats (counters)"])
    # counters know no latency
    expect(frame(page, LATENCY).locator("select.source")).to_have_count(0)
    before = frame(page, OP).locator(".graph-sum").inner_text()
    source.select_option("diskstats")
    addressed(page, '"source":"diskstats"')
    expect(frame(page, OP).locator(".graph-sum")).not_to_have_text(before)
    source.select_option("block")
    addressed(page, without=('"source"',))
    expect(frame(page, OP).locator(".graph-sum")).to_have_text(before)


def test_nothing_moves_while_the_sum_of_a_graph_changes(show: Any) -> None:
    page = show((DEVICE, {"source": "diskstats"}), width=900)
    heights = (
        frame(page, DEVICE)
        .locator(".graph-head")
        .evaluate("""head => {
        const sum = head.querySelector('.graph-sum');
        return ['', '1', '123 456 789 012, 123 456.7 MiB/s on average'].map(words => {
            sum.textContent = words;
            return head.getBoundingClientRect().height;
        });
    }""")
    )
    assert len(set(heights)) == 1, heights
