# SPDX-License-Identifier: Apache-2.0
"""Flame graphs in the report: found, walked, zoomed and compared in Chromium, without a network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))
from iolab.output.report.build import build_report
from support.browser import expect
from support.profiles import AFTER, BEFORE, add_profile
from support.report_data import HandMade, sweep

HOSTILE = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    add_profile(folder, 13, "patched", AFTER)
    add_profile(folder, 14, "plain", {**BEFORE, f"fio;{HOSTILE.replace(' ', '_')}": 20})
    file = folder / "report.html"
    file.write_text(
        build_report(
            HandMade(sweep(1.5), path=folder, baseline="plain", variants=["plain", "patched"])
        ),
        "utf-8",
    )
    return file


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    made = browser.new_page(viewport={"width": 1200, "height": 900})
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("dialog", lambda dialog: problems.append(dialog.message))
    made.goto(report.as_uri() + "#profiles")
    made.locator("#profiles").scroll_into_view_if_needed()
    expect(made.locator(".flame-scroll .slice").first).to_be_visible()
    yield made
    made.close()
    assert not problems


def graph(page: Any, place: int) -> Any:
    return page.locator(".profile").nth(place)


def test_a_graph_for_each_variant_and_one_of_the_difference(page: Any) -> None:
    expect(page.locator(".profile")).to_have_count(3)
    expect(graph(page, 0).locator("figcaption")).to_contain_text("plain baseline")
    expect(graph(page, 0).locator("figcaption")).to_contain_text(
        "99 Hz, 2 s, 2 CPUs, cpu-clock; idle 36.4 %"
    )
    expect(graph(page, 2).locator("figcaption")).to_contain_text("patched against plain")
    expect(graph(page, 2).locator("tbody tr").first).to_contain_text("main")


def test_what_is_pointed_at_or_has_the_focus_is_said(page: Any) -> None:
    graph(page, 0).get_by_label("vfs_read (kernel)").hover()
    expect(graph(page, 0).locator(".said")).to_have_text("vfs_read (kernel): 40 samples, 28.6 %")
    graph(page, 0).get_by_label("all:").focus()
    page.keyboard.press("ArrowUp")
    expect(graph(page, 0).locator(".said")).to_have_text("fio: 70 samples, 50.0 %")
    page.keyboard.press("ArrowDown")
    expect(graph(page, 0).locator(".said")).to_have_text("all: 140 samples")


def test_a_part_is_shown_alone_in_every_graph_on_one_scale(page: Any) -> None:
    graph(page, 0).get_by_label("read (user)").click()
    expect(page.locator(".zoomed")).to_contain_text("Only read, in all graphs")
    widths = [
        graph(page, place)
        .locator(".slice")
        .first.evaluate("each => each.parentElement.style.width")
        for place in (0, 1)
    ]
    assert widths[0] == "100%"
    assert float(widths[1].removesuffix("%")) == pytest.approx(
        100 * (10 / 50) / (40 / 140), abs=0.1
    )
    graph(page, 1).locator(".slice").first.focus()
    page.keyboard.press("Escape")
    expect(page.locator(".zoomed")).to_contain_text("A click shows a part alone")


def test_functions_are_found_by_name_and_their_share_is_said(page: Any) -> None:
    expect(page.locator(".profile .match")).to_have_count(0)
    page.fill("#profile-find", "Worker")
    expect(graph(page, 0).locator(".match")).to_contain_text("“Worker”: 35.7 %")
    expect(graph(page, 0).locator(".slice.found")).to_have_count(2)


def test_functions_of_the_kernel_alone_and_one_function_in_all_cells(page: Any) -> None:
    page.select_option("#profile-view", "kernel")
    expect(graph(page, 0).get_by_label("read (user)")).to_have_count(0)
    graph(page, 0).get_by_label("vfs_read (kernel)").click()
    table = page.locator("#profile-frame")
    expect(table.locator("thead th")).to_have_text(["cell", "plain", "patched"])
    expect(table.locator("tbody td")).to_have_text(["28.6 %", "20.0 %"])
    page.select_option("#profile-view", "user")
    expect(graph(page, 0).get_by_label("read (user)")).to_have_count(1)
    expect(page.locator("[data-tone=kernel].slice")).to_have_count(0)
    expect(table).to_have_count(0)


def test_callers_stand_below_or_above_as_asked(page: Any) -> None:
    def above(name: str) -> float:
        return float(graph(page, 0).get_by_label(name).bounding_box()["y"])

    assert above("fio:") > above("vfs_read (kernel)")
    page.select_option("#profile-look", "icicle")
    assert above("fio:") < above("vfs_read (kernel)")


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_leads_out_of_the_page(browser: Any, report: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(report.as_uri() + "#profiles")
    page.locator("#profiles").scroll_into_view_if_needed()
    expect(page.locator(".flame-scroll .slice").first).to_be_visible()
    assert page.locator("#profiles").evaluate("each => each.scrollWidth <= each.clientWidth + 1")
    page.close()
