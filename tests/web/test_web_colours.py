# SPDX-License-Identifier: Apache-2.0
"""Colours of names in Chromium: the same in all graphs, after a reload, and in a shared file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
    with visited(browser, file.as_uri()) as alone:
        drawn(alone, DEVICES)
        settled(alone)
        assert {statistic: _colours(alone, statistic) for statistic in first} == first
