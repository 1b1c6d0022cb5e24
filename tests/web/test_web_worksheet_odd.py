# SPDX-License-Identifier: Apache-2.0
"""What is odd, in Chromium: the panel names a fault and marks it, with tables of a readable size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iolab import _core
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import violations
from support.recordings import SECOND, START, events
from support.service import serving
from support.worksheet import drawn, part, visited

pytestmark = pytest.mark.browser

LATENCY = "io.ops[latency]"
SLOW_NS = 100_000_000
PER_S = 500


def second_of(number: int, is_slow: bool) -> pa.RecordBatch:
    """I/Os of one second; slow ones take 100 ms longer."""
    batch = events(PER_S, number, start_ns=START + number * SECOND, per_s=PER_S)
    if not is_slow:
        return batch
    columns = batch.to_pydict()
    columns["latency_ns"] = [
        None if value is None else value + SLOW_NS for value in columns["latency_ns"]
    ]
    columns["latency_bucket"] = [
        None if value is None else _core.grid_index(value, 6) for value in columns["latency_ns"]
    ]
    return pa.RecordBatch.from_pydict(columns, schema=batch.schema)


@pytest.fixture(scope="module")
def slow_listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of 60 seconds, the last 15 of them slow."""
    home: Path = tmp_path_factory.mktemp("odd")
    with RecordingWriter.create(
        home / "rec", host="there", clock="realtime", origin={"kind": "import"}, live=False
    ) as writer:
        for number in range(60):
            writer.append_events(second_of(number, number >= 45))
    with serving(state_in(Store([home / "rec"]), home / "data", home / "a.jsonl")) as listener:
        yield listener


@pytest.mark.parametrize("width", [390, 1440])
def test_a_fault_is_named_and_marked(browser: Any, slow_listener: Listener, width: int) -> None:
    with visited(browser, slow_listener.url + part(LATENCY), width=width) as page:
        drawn(page, LATENCY)
        page.click("#odd")
        sentence = page.locator(".odd li .link").first
        sentence.wait_for()
        assert "latency" in sentence.inner_text()
        assert "since 22:14:05" in sentence.inner_text()
        # the sentence stays in sight of the graph that shows it
        assert sentence.evaluate("node => node.getBoundingClientRect().top >= 0")
        page.locator(".who .drill").first.wait_for()
        heights = page.locator(".who .drill svg").evaluate_all(
            "icons => icons.map(icon => icon.getBoundingClientRect().height)"
        )
        assert heights
        assert 5 < min(heights) <= max(heights) < 30
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == []
        page.get_by_role("button", name="Close what is odd").click()
        assert page.locator(".odd").count() == 0
