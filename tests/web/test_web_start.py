# SPDX-License-Identifier: Apache-2.0
"""The start page in a browser: studies, a history, both sides of a change, pictures of recordings."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from iolab.output.report.page.html import bundle_file
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from support.browser import violations
from support.service import recorded, serving
from support.studies import history_of_studies
from support.worksheet import _INK, visited

pytestmark = pytest.mark.browser

FEWEST_BYTES = 60 * 1000
STUDY = ".studies > li"


@pytest.fixture(scope="module")
def start_listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of eight studies with a history, a recording with markup for a name, and damaged
    results."""
    home = tmp_path_factory.mktemp("start") / "folder"
    history_of_studies(home, 10)
    recorded(home / "<b>rec", seconds=20).close()
    (home / "torn").mkdir()
    (home / "torn/manifest.json").write_text("{")
    data = home.parent / "data"
    with serving(state_in(Store([home]), data, data / "alerts.jsonl")) as listener:
        yield listener


def all_read(page: Any) -> None:
    page.wait_for_function(
        "() => document.querySelector('.studies') && !document.body.innerText.includes('still to be read')"
    )


def test_studies_lead_to_reports_and_changes_to_runs(
    browser: Any, start_listener: Listener
) -> None:
    with visited(browser, start_listener.url, width=1440, height=1200) as page:
        all_read(page)
        assert page.locator(STUDY).count() == 11
        first = page.locator(STUDY).first
        assert first.locator("h3").inner_text() == "results/night-10"
        assert "2 OK" in first.inner_text()
        # each cell of the small matrix has a colour of the report's cover
        colours = first.locator(".stamp > span").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell).backgroundColor)"
        )
        assert colours
        assert "rgba(0, 0, 0, 0)" not in colours
        assert page.locator(STUDY).last.locator(".problem").count() == 1
        page.get_by_role("searchbox").fill("night-03")
        assert page.locator(STUDY).count() == 1
        page.get_by_role("link", name="History history").click()
        page.locator(".chart .mark").first.click()
        maps = page.locator(".change canvas")
        maps.first.wait_for()
        page.wait_for_function(
            f"() => [...document.querySelectorAll('.change canvas')].every(canvas => ({_INK})(canvas) > 300)"
        )
        assert maps.count() == 2
        sides = page.locator(".change .side h4").all_inner_texts()
        assert sides == ["r6", "r7"]
        href = page.locator(".change .runs a").first.get_attribute("href")
        assert href.startswith("/report/results/night-06#run=0001")
        page.get_by_role("link", name="I/Os").first.click()
        page.wait_for_selector(".worksheet section[data-statistic]")


def test_a_recording_has_a_picture_and_opens_its_worksheet(
    browser: Any, start_listener: Listener
) -> None:
    with visited(browser, start_listener.url, width=1440, height=1200) as page:
        picture = page.locator(".tile .thumbnail canvas").first
        picture.scroll_into_view_if_needed()
        page.wait_for_function(f"canvas => ({_INK})(canvas) > 100", arg=picture.element_handle())
        page.get_by_role("link", name="<b>rec").click()
        page.wait_for_selector(".welcome .thumbnail canvas")
    address = f"{start_listener.url}#recording=%3Cb%3Erec"
    with visited(browser, address, width=1440, height=900) as page:
        page.wait_for_url("**/worksheet#*")


@pytest.mark.parametrize("width", [390, 1440, 1920, 3840])
def test_nothing_is_wider_than_the_page(browser: Any, start_listener: Listener, width: int) -> None:
    with visited(browser, start_listener.url, width=width, height=900) as page:
        all_read(page)
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert page.evaluate(fits)
        page.get_by_role("link", name="History history").first.click()
        page.locator(".changes button").first.click()
        page.locator(".change .side h4").first.wait_for()
        assert page.evaluate(fits)


def test_nothing_serious_is_found_by_axe(browser: Any, start_listener: Listener) -> None:
    with visited(browser, start_listener.url, width=1440, height=900) as page:
        all_read(page)
        assert violations(page) == []
        page.get_by_role("link", name="History history").first.click()
        page.locator(".changes button").first.click()
        page.locator(".change .side h4").first.wait_for()
        assert violations(page) == []
        page.click("#theme")
        assert violations(page) == []


def test_the_bundle_is_small() -> None:
    size = sum(
        len(gzip.compress(bundle_file(name).encode(), 9)) for name in ("start.js", "start.css")
    )
    assert size < FEWEST_BYTES, f"{size} bytes in gzip"
