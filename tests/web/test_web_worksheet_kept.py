# SPDX-License-Identifier: Apache-2.0
"""The page of what is kept, in Chromium: its limits as they are and as they are set, and what is
dropped by age."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.manage import limit, limits
from iolab.recordings.store.write.writer import RecordingWriter
from support.browser import until
from support.recordings import SECOND, START, events
from support.service import serving
from support.worksheet import picture, visited

pytestmark = pytest.mark.browser

NAME = "io.ops[latency]"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A recording of three days, a little of each, of which a statistic is kept."""
    path = tmp_path / "rec"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for day in range(3):
            writer.append_events(events(400, day, start_ns=START + day * 86400 * SECOND))
            writer.seal()
    manage.add(path, [NAME], backfill=True)
    return path


@pytest.fixture
def page(browser: Any, place: Path, tmp_path: Path) -> Iterator[Any]:
    state = state_in(Store([place]), tmp_path / "data", tmp_path / "alerts.jsonl")
    with serving(state) as found, visited(browser, found.url, allowed=("status of 400",)) as page:
        page.wait_for_selector(".welcome")
        page.get_by_role("button", name="Kept", exact=True).click()
        page.locator("form[data-limits]").wait_for()
        yield page


def test_limits_are_those_that_hold(page: Any, place: Path) -> None:
    from playwright.sync_api import expect

    intro = page.locator(".page > p.quiet").first
    expect(intro).to_contain_text(
        "by the second for 7 days, by the minute for 14 days, by the hour for 90 days"
    )
    expect(page.get_by_label("Size in GiB")).to_have_value("1")
    expect(page.get_by_label("Share of CPU time")).to_have_value("5")
    # changed elsewhere, the page says so by itself
    limit(place, {"retention": {"1s": 86400}, "bytes": 3 << 30, "cpu_share": None})
    expect(intro).to_contain_text("by the second for 1 day")
    expect(page.get_by_label("Size in GiB")).to_have_value("3")
    expect(page.get_by_label("Share of CPU time")).to_have_value("")


def test_limits_are_set(page: Any, place: Path) -> None:
    from playwright.sync_api import expect

    limit(place, {"bytes": 1234567891})
    expect(page.get_by_label("Size in GiB")).to_have_value("1.14978")
    page.get_by_label("Share of CPU time").fill("2.5")
    page.get_by_label("Days by the second").fill("0.5")
    page.get_by_label("Days by the hour").fill("400")
    picture(page, "kept-limits")
    page.get_by_role("button", name="Set limits").click()
    page.get_by_role("button", name="what is beyond goes now").wait_for()
    assert limits(place)["retention"]["1s"] == 7 * 86400, "less is kept only when that is meant"
    page.get_by_role("button", name="what is beyond goes now").click()
    expect(page.locator(".page > p.quiet").first).to_contain_text(
        "by the second for 12 hours, by the minute for 14 days"
    )
    found = limits(place)
    assert (found["bytes"], found["cpu_share"]) == (1234567891, pytest.approx(0.025)), (
        "what was not touched stays as it was, to the byte"
    )
    assert found["retention"] == {"1s": 43200, "1m": 14 * 86400, "1h": 400 * 86400}
    page.get_by_label("Size in GiB").fill("")
    page.get_by_label("Days by the hour").fill("401")
    page.get_by_role("button", name="Set limits").click()
    until(page, lambda: limits(place)["bytes"] is None)
    expect(page.locator(".page > p.quiet").first).to_contain_text("by the hour for 401 days")
    page.get_by_label("Days by the minute").fill("0.1")
    page.get_by_role("button", name="Set limits").click()
    page.get_by_role("button", name="what is beyond goes now").click()
    expect(page.locator(".problem")).to_contain_text("longer sums are kept at least as long")
    assert limits(place)["bytes"] is None
    assert limits(place)["retention"]["1m"] == 14 * 86400


def test_limits_that_are_not_changed_are_those_that_hold_by_now(page: Any, place: Path) -> None:
    page.get_by_label("Days by the hour").fill("400")
    # changed elsewhere, which the page has not heard of when it sends its own
    limit(place, {"bytes": 3 << 30, "cpu_share": None, "retention": {"1s": 86400}})
    page.get_by_role("button", name="Set limits").click()
    until(page, lambda: limits(place)["retention"]["1h"] == 400 * 86400)
    found = limits(place)
    assert (found["bytes"], found["cpu_share"], found["retention"]["1s"]) == (3 << 30, None, 86400)


def test_what_is_old_is_dropped_by_tier_and_days(page: Any, place: Path) -> None:
    from playwright.sync_api import expect

    row = page.locator(f'tr[data-kept="{NAME}"]')
    expect(row).to_contain_text("1s: 2 days")
    old, form = (
        row.get_by_role("button", name="Delete old data"),
        page.locator(f'tr[data-pruning="{NAME}"]'),
    )
    old.click()
    form.get_by_label("Days that stay").fill("1.5")
    form.get_by_label("What is dropped").select_option("1s")
    picture(page, "kept-prune")
    form.get_by_role("button", name="Delete").click()
    form.wait_for(state="detached")
    tiers = {tier["tier"]: tier["first_ns"] for tier in manage.list_kept(place)[0]["tiers"]}
    assert tiers["1h"] < START + SECOND < tiers["1s"] < START + 86401 * SECOND
    old.click()
    form.get_by_role("button", name="Cancel").click()
    form.wait_for(state="detached")
    old.click()
    form.get_by_label("Days that stay").fill("0")
    form.get_by_role("button", name="Delete").click()
    form.wait_for(state="detached")
    left = manage.list_kept(place)[0]
    assert all(
        tier["first_ns"] is None
        or left["until_ns"] - tier["first_ns"] <= tier["interval_s"] * SECOND
        for tier in left["tiers"]
    ), "of each tier what holds the last moment, at most"
