# SPDX-License-Identifier: Apache-2.0
"""Colours of names in Chromium: the same in all graphs, after a reload, in a shared file, and in a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from iolab.output.charts.base.hues import colours_of
from iolab.output.report.build import build_report
from support.browser import expect
from support.report_data import HandMade, seconds, sweep
from support.worksheet import drawn, frame, part, settled, visited

pytestmark = pytest.mark.browser

OPS, BYTES, DEVICES = "io.ops[process]", "io.bytes[process]", "io.ops[device]"


def _colours(page: Any, statistic: str) -> dict[str, str]:
    """The swatches of a graph's list, by name."""
    found = (
        frame(page, statistic)
        .locator(".graph-panel")
        .first.locator("[role=option]:not(:disabled)")
        .evaluate_all(
            "all => all.map(each => [each.title, each.querySelector('.swatch rect')?.getAttribute('fill')])"
        )
    )
    return dict(found)


def test_a_name_has_one_colour_in_page_reload_and_shared_file(
    browser: Any, open_page: Any, tmp_path: Path
) -> None:
    page = open_page(part(OPS, BYTES, DEVICES, recording="<b>rec"))
    for statistic in (OPS, BYTES, DEVICES):
        drawn(page, statistic)
    settled(page)
    first = {statistic: _colours(page, statistic) for statistic in (OPS, BYTES, DEVICES)}
    assert len(set(first[OPS].values())) == len(first[OPS]) == 4
    assert first[BYTES] == first[OPS]
    assert len(set(first[DEVICES].values())) == len(first[DEVICES])
    page.reload()
    drawn(page, DEVICES)
    settled(page)
    assert {statistic: _colours(page, statistic) for statistic in first} == first
    with page.expect_download() as download:
        page.click("#share")
    file = tmp_path / "shared.html"
    download.value.save_as(file)
    # the strip of all that was recorded does not depend on the screen where the file was made
    for width in (1600, 700):
        with visited(browser, file.as_uri(), width=width) as alone:
            drawn(alone, DEVICES)
            settled(alone)
            assert {statistic: _colours(alone, statistic) for statistic in first} == first
            expect(alone.locator(".overview .lanes svg path").first).to_be_attached()


def test_a_device_has_one_colour_in_a_worksheet_and_in_a_report(
    browser: Any, open_page: Any, tmp_path: Path
) -> None:
    page = open_page(part(DEVICES, recording="<b>rec"))
    drawn(page, DEVICES)
    settled(page)
    worksheet = {name: colour for name, colour in _colours(page, DEVICES).items() if name}
    assert len(worksheet) >= 3
    # the largest device chooses its colour first, and a list begins with it
    devices = list(worksheet)
    runs = sweep(blocks=1, loads=(1,))
    series = {one.id: seconds(devices=devices) for one in runs}
    report = tmp_path / "report.html"
    report.write_text(build_report(HandMade(runs, path=tmp_path, series=series)), encoding="utf-8")
    with visited(browser, f"{report.as_uri()}#run={runs[0].id}") as opened:
        panel = opened.locator("dialog.panel[open]")
        panel.get_by_role("button", name=re.compile("Show .* over 30 s")).click()
        panel.locator(".drawing svg").wait_for()
        legend = panel.locator(".drawing svg .role-legend-entry").evaluate(
            """entry => [...entry.querySelectorAll('.role-legend-label text')].map((label, i) => [
                label.textContent,
                entry.querySelectorAll('.role-legend-symbol path')[i].getAttribute('stroke')])"""
        )
        lines = panel.locator(".drawing svg .mark-line path").evaluate_all(
            "all => all.map(each => each.getAttribute('stroke'))"
        )
    assert dict(legend) == worksheet
    assert set(worksheet.values()) <= set(lines)
    # the report's pictures are drawn by Python
    assert colours_of("device", devices) == worksheet
