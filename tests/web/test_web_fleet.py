# SPDX-License-Identifier: Apache-2.0
"""The fleet page in a browser: rows of hosts, keys, and the way to a worksheet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.output.server.http.serve import Listener
from iolab.recordings.archive import Archive, push
from iolab.recordings.archive.labels import set_labels
from support.archives import record
from support.browser import violations
from support.service import serving
from support.worksheet import _INK, visited

pytestmark = pytest.mark.browser
ROWS = ".matrix tbody tr"


@pytest.fixture(scope="module")
def fleet_listener(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """A service of an archive of three hosts, of which one has markup for a name."""
    home = tmp_path_factory.mktemp("fleet")
    archive = Archive.open(str(home / "archive"), create=True)
    for seed, host in enumerate(("<b>db1", "db2", "web")):
        record(home / str(seed), segments=2 + seed, host=host, seed=seed)
        push(home / str(seed), archive)
    set_labels(archive, "web", {"rack": "<i>r1"})
    store = Store([Path(f"archive:{archive.url}")])
    with serving(state_in(store, home / "data", home / "alerts.jsonl")) as listener:
        yield listener


def test_keys_lead_to_the_worksheet_of_a_host(browser: Any, fleet_listener: Listener) -> None:
    with visited(browser, fleet_listener.url, width=1440, height=900) as page:
        page.wait_for_selector(ROWS)
        assert page.locator(f"{ROWS} th").all_inner_texts() == ["<b>db1", "db2", "web<i>r1"]
        page.wait_for_function(
            f"() => [...document.querySelectorAll('.matrix canvas')].every(canvas => ({_INK})(canvas) > 3)"
        )
        assert page.locator(".matrix .ticks span").count() > 2
        assert page.locator(".legend .ends span").count() == 3
        page.focus(".matrix")
        for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        assert page.locator(".at").inner_text().startswith("db2, 2023-11-14 22:13:")
        page.get_by_label("IOPS").check()
        page.wait_for_function("() => document.querySelector('.legend').innerText.includes('/s')")
        page.get_by_role("searchbox").fill("WEB")
        assert page.locator(ROWS).count() == 1
        page.reload()
        page.wait_for_selector(ROWS)
        assert page.locator(ROWS).count() == 1
        page.locator(".matrix canvas").click(position={"x": 5, "y": 5})
        page.wait_for_url("**/worksheet#recording=web*")
        page.wait_for_selector(".worksheet section[data-statistic='io.ops']")


def test_rows_of_a_label_lead_to_their_hosts(browser: Any, fleet_listener: Listener) -> None:
    with visited(browser, fleet_listener.url, width=1440, height=900) as page:
        page.wait_for_selector(ROWS)
        page.get_by_label("Rows").select_option("rack")
        page.wait_for_function(f"() => document.querySelectorAll('{ROWS}').length === 2")
        assert page.locator(f"{ROWS} th").all_inner_texts() == ["-2 hosts", "<i>r11 host"]
        page.locator(f"{ROWS} th button").nth(1).click()
        page.wait_for_selector(f"{ROWS} th a")
        assert page.locator(f"{ROWS} th a").all_inner_texts() == ["web"]
        assert page.evaluate("location.hash").endswith("host=rack%3D%3Ci%3Er1")


def test_the_page_is_accessible_and_fits(browser: Any, fleet_listener: Listener) -> None:
    with visited(browser, fleet_listener.url, width=390, height=844) as page:
        page.wait_for_selector(ROWS)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for _ in range(2):
            assert violations(page, ("moderate", "serious", "critical")) == []
            page.click("#theme")
