# SPDX-License-Identifier: Apache-2.0
"""The report as a reader meets it: opened from disk in Chromium, without a network."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))
from iolab.output.report.build import build_report
from support.browser import expect, typed, until, violations
from support.report_data import HandMade, invalid, run, seconds, suspect, sweep

HOSTILE = "<img src=x onerror=alert(1)>"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with six blocks, a SUSPECT run with a stall, an INVALID one, and markup where names
    should be."""
    folder = tmp_path_factory.mktemp("study")
    evidence = folder / "runs" / "0001-00000000"
    evidence.mkdir(parents=True)
    (evidence / "fio.json").write_text('{"evidence": true}')
    status = ["  pool: tank", "config:", "", f"\ttank  ONLINE  {HOSTILE}", "\t  raidz2-0  ONLINE"]
    target = {
        "kind": "zfs",
        "version": "2.3.2",
        "pool": {"status": status},
        "dataset": {"recordsize": "8192"},
    }
    (evidence / "target.json").write_text(json.dumps(target))
    runs = sweep(1.5, more={"media": ["hdd", HOSTILE]})
    first = run(
        1,
        "master",
        runs[0].factors,
        {name: one.value for name, one in runs[0].observations.items()},
        evidence=evidence,
        reasons=[suspect()],
        extra={"job": f"[global]\n# {HOSTILE}\n"},
        command=("fio", "job.fio"),
    )
    last = run(900, "project", runs[0].factors, {}, block=9, reasons=[invalid()])
    runs = [first, *runs[1:], last]
    results = HandMade(
        runs,
        path=folder,
        series={one.id: seconds() for one in runs},
        name=f"a study {HOSTILE}",
        reproduce=["iolab", "run"],
        environment={
            "facts": {
                "block_devices": {
                    f"sd{letter}": {"size_bytes": 1 << 40, "scheduler": "none"} for letter in "abc"
                }
            }
        },
    )
    file = folder / "report.html"
    file.write_text(build_report(results), encoding="utf-8")
    return file


class Visit:
    """A page with everything that went wrong or out while it was open."""

    def __init__(self, browser: Any, report: Path, place: str = "", **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda message: (
                self.problems.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"a dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(report.as_uri() + place)
        self.page.wait_for_selector("main")


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Any]:
    """Open the report; when the test is over nothing may have gone wrong, and nothing may have been
    asked for."""
    visits: list[Visit] = []

    def opened(place: str = "", **options: Any) -> Any:
        visits.append(Visit(browser, report, place, **options))
        return visits[-1].page

    yield opened
    for each in visits:
        each.page.close()
        assert each.problems == []
        assert {url.partition("#")[0] for url in each.requests if not url.startswith("blob:")} == {
            report.as_uri()
        }


def test_it_shows_the_study_without_any_request(visit: Any) -> None:
    page = visit()
    expect(page.locator("h1")).to_have_text(f"a study {HOSTILE}")
    expect(page.locator("#summary")).to_contain_text("project against master")
    expect(page.locator(".levels button").nth(3)).to_have_text(re.compile("^1"))
    expect(page.locator("#runs tbody tr")).to_have_count(73)
    assert page.locator("img").count() == 0, "markup in a name became markup"


def test_the_metric_is_switched_and_the_address_keeps_it(visit: Any) -> None:
    page = visit()
    section = page.locator(".section")
    expect(section).to_have_attribute("data-section", "write.iops")
    page.select_option("#metric", "write.lat.mean")
    expect(section).to_have_attribute("data-section", "write.lat.mean")
    expect(section.locator(".chart svg").nth(1)).to_be_visible()
    expect(page).to_have_url(re.compile("metric=write.lat.mean"))
    page.reload()
    expect(section).to_have_attribute("data-section", "write.lat.mean")
    page.select_option("#metric", "all")
    expect(section.nth(4)).to_be_attached()
    page.go_back()
    expect(section).to_have_count(1)


def test_the_target_is_shown_and_what_has_no_table_is_named(visit: Any) -> None:
    page = visit()
    page.locator("nav a", has_text="Target").click()
    target = page.locator("#target")
    expect(target.locator("pre")).to_contain_text("raidz2-0  ONLINE")
    expect(target.locator("tr", has_text="recordsize")).to_contain_text("8 KiB")
    expect(target.locator("section[aria-label='Block devices'] tbody tr")).to_have_count(3)
    expect(page.locator("#environment")).not_to_contain_text("{")


def test_the_policy_lets_only_the_pages_script_run(browser: Any, report: Path) -> None:
    visited = Visit(browser, report)
    ran = visited.page.evaluate("""() => {
        window.slipped = 0;
        const script = document.createElement('script');
        script.textContent = 'window.slipped = 1';
        document.body.append(script);
        return window.slipped;
    }""")
    visited.page.close()
    assert ran == 0
    assert any("Content Security Policy" in problem for problem in visited.problems)


def test_a_run_opens_with_its_series_and_closes_with_escape(visit: Any) -> None:
    page = visit()
    page.locator("#runs tbody button", has_text="0001-00000000").click()
    panel = page.locator("dialog.panel")
    panel.get_by_text("moved nothing for 4 s from second 20").wait_for()
    expect(page).to_have_url(re.compile("run=0001-00000000"))
    assert panel.locator(".drawing svg").count() == 0, "series are drawn on demand"
    panel.get_by_role("button", name=re.compile("Show 2 series over 30 s")).click()
    panel.locator(".drawing svg").wait_for()
    expect(
        panel.locator(".drawing svg").get_by_text("throughput, device writes (MiB/s)")
    ).to_have_count(1)
    expect(panel.locator("pre").last).to_contain_text(HOSTILE)
    expect(panel.locator("table.observations").get_by_text("jobs[0].write.iops")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page).not_to_have_url(re.compile("run="))


def test_the_address_knows_at_once_that_a_run_is_left(visit: Any) -> None:
    page = visit("#run=0001-00000000")
    panel = page.locator("dialog.panel[open]")
    panel.locator(".evidence").wait_for()
    typed(page, ["Escape"])
    assert "run=" not in page.evaluate("location.hash")
    assert panel.count() == 0
    # from run to run by the keyboard: the button that was pressed has the focus on the next one,
    # too
    page.evaluate("location.hash = '#run=0001-00000000'")
    after = panel.get_by_role("button", name="Run after")
    after.focus()
    typed(page, ["Enter", "Enter"])
    expect(panel.locator("h2")).to_contain_text(
        f"Run {page.locator('#runs tbody tr button').nth(2).inner_text()}"
    )
    expect(after).to_be_focused()


def test_evidence_is_one_click_away(visit: Any) -> None:
    page = visit("#run=0001-00000000")
    link = page.locator("dialog.panel .evidence a", has_text="fio.json")
    link.wait_for()
    expect(link).to_have_attribute("href", "runs/0001-00000000/fio.json")
    assert (
        Path(page.url.removeprefix("file://").partition("#")[0]).parent / link.get_attribute("href")
    ).exists()


def test_dark_and_light_change_page_and_charts(visit: Any) -> None:
    page = visit(color_scheme="dark")
    colours = """() => [getComputedStyle(document.body).backgroundColor,
        document.querySelector('.chart svg .role-axis-title text, .chart svg text').getAttribute('fill')]"""
    page.locator(".chart svg text").first.wait_for()
    dark = page.evaluate(colours)
    page.click("#theme")
    until(
        page,
        lambda: all(
            now != before for now, before in zip(page.evaluate(colours), dark, strict=True)
        ),
    )
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    light = page.evaluate(colours)
    page.click("#theme")
    until(page, lambda: page.evaluate(colours) == dark)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    until(page, lambda: page.evaluate(colours) == light, "paper is white")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    until(page, lambda: page.evaluate(colours) == dark)


def test_the_keyboard_reaches_everything(visit: Any) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.focus("#metric")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".section")).to_have_attribute("data-section", "write.bw")
    page.focus("#runs thead th:nth-child(2) button")
    page.keyboard.press("Enter")
    expect(page.locator("#runs thead th").nth(1)).to_have_attribute("aria-sort", "ascending")
    run = page.locator("#runs tbody tr:nth-child(1) button")
    run.focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog.panel[open] :focus")).to_be_attached()
    page.keyboard.press("Escape")
    # the focus returns to where it came from
    expect(run).to_be_focused()


def test_runs_are_filtered_and_verdicts_lead_to_them(visit: Any) -> None:
    page = visit()
    page.fill("#filter", "verdict:invalid")
    expect(page.locator("#runs tbody tr")).to_have_count(1)
    page.fill("#filter", "nothing like this")
    expect(page.get_by_text("No run holds all of these words.")).to_be_visible()
    page.locator(".levels button").nth(2).click()
    expect(page.locator("#filter")).to_have_value("verdict:SUSPECT")
    expect(page.locator("#runs tbody tr")).to_have_count(1)


def test_a_charts_numbers_can_be_saved(visit: Any) -> None:
    page = visit()
    with page.expect_download() as saving:
        page.locator(".chart button", has_text="CSV").first.click()
    text = Path(saving.value.path()).read_text()
    assert saving.value.suggested_filename.endswith(".csv")
    assert text.splitlines()[0].count(",") > 2
    assert len(text.splitlines()) > 6


@pytest.mark.parametrize("width", [380, 768, 1360])
def test_nothing_sticks_out(visit: Any, width: int) -> None:
    page = visit("#metric=all", viewport={"width": width, "height": 800})
    page.locator(".section .chart svg").last.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    gates = page.locator("table.reasons")
    assert gates.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    page.evaluate("location.hash = '#run=0001-00000000'")
    page.locator("dialog.panel .evidence").wait_for()
    box = page.locator("dialog.panel").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_it_prints(visit: Any, tmp_path: Path) -> None:
    page = visit(color_scheme="dark")
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    page.emulate_media(media="print")
    for hidden in (".contents", "#theme", ".chooser", ".chart button"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator(".section table").first).to_be_visible()


def test_a_damaged_file_says_so(browser: Any, report: Path, tmp_path: Path) -> None:
    text = report.read_text()
    cut = re.sub(r'(id="iolab-report">[A-Za-z0-9+/]{200})[A-Za-z0-9+/=]+', r"\1", text)
    damaged = tmp_path / "damaged.html"
    damaged.write_text(cut)
    page = browser.new_page()
    page.goto(damaged.as_uri())
    page.get_by_text("The report's data are damaged").wait_for()
    page.close()


def test_without_scripts_the_summary_can_be_read(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    headings = page.get_by_role("heading", name="project against master")
    expect(headings).to_have_count(2)
    expect(headings.last).to_be_visible()
    assert page.locator("img").count() == 0
    context.close()


def test_a_cell_of_the_cover_shows_its_numbers_and_opens(visit: Any) -> None:
    page = visit()
    cell = page.locator(".matrix td[data-i='0']")
    cell.hover()
    tip = page.locator(".tip")
    expect(tip).to_contain_text("change")
    expect(tip).to_contain_text("q < 0.001; n = 6")
    expect(tip.locator("svg.curves g path").first).to_be_attached()
    cell.click()
    panel = page.locator("dialog.panel[open]")
    expect(panel.locator("h2")).to_contain_text("numjobs 1")
    expect(panel.locator("tbody tr").first).to_contain_text("write.iops")
    expect(page).to_have_url(re.compile("cell=0"))
    panel.get_by_role("button", name=re.compile("Show 2 series")).first.click()
    panel.locator(".drawing svg").first.wait_for()
    panel.locator(".evidence button").first.click()
    expect(page.locator("dialog.panel[open] h2")).to_contain_text("Run 00")
    page.keyboard.press("Escape")
    expect(panel.locator("h2")).to_contain_text("numjobs 1")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page).not_to_have_url(re.compile("cell="))


def test_arrow_keys_walk_a_matrix(visit: Any) -> None:
    page = visit()
    page.locator(".matrix td[tabindex='0']").first.focus()
    expect(page.locator(".tip")).to_contain_text("numjobs 1,")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".matrix td:focus")).to_have_attribute("tabindex", "0")
    expect(page.locator(".tip")).to_contain_text("numjobs 4,")
    page.keyboard.press("ArrowRight")
    place = page.locator(".matrix td:focus").get_attribute("data-i")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"cell={place}"))
    page.keyboard.press("Escape")
    expect(page.locator(f".matrix td[data-i='{place}']")).to_be_focused()


def test_the_cover_can_be_read_without_scripts(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    matrix = page.locator(".matrix").first
    expect(matrix.locator("tbody tr")).to_have_count(3)
    expect(matrix.locator("td[data-i]").first).to_have_text(re.compile(r"^!?[+−]\d"))
    expect(page.get_by_text("significantly better in").first).to_be_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_found_by_axe(browser: Any, report: Path, scheme: str) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator(".chart svg").first.wait_for()
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for cell in (None, "0"):
        if cell is not None:
            page.evaluate(f"location.hash = '#cell={cell}'")
            page.locator("dialog.panel[open] .evidence").wait_for()
        assert violations(page) == []
    context.close()


def test_links_to_parts_of_the_page_keep_the_address(visit: Any) -> None:
    page = visit("#metric=write.lat.mean")
    page.locator("nav a", has_text="Method").click()
    expect(page.locator("#method")).to_be_focused()
    expect(page).to_have_url(re.compile("#metric=write.lat.mean$"))
    expect(page.locator("#method")).to_be_in_viewport()


def test_several_results_begin_with_their_sessions(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from iolab.studies.compare.several import Several
    from support.results_over_time import imported_weeks

    made = imported_weeks(tmp_path_factory.mktemp("weeks"))
    file = made / "report.html"
    file.write_text(build_report(Several([made / "A1", made / "B1"]), made), encoding="utf-8")
    visit = Visit(browser, file)
    part = visit.page.locator("#sessions")
    expect(part.locator("h2")).to_have_text("Results compared")
    assert part.locator("caption").all_inner_texts() == [
        "Environments differ",
        "Results in order of time",
        "Unmatched cells",
    ]
    assert "Confounded with time" in part.inner_text()
    assert visit.page.locator("main > section").first.get_attribute("id") == "sessions"
    assert "\\xa0" not in visit.page.locator("main").inner_text()
    assert visit.problems == []
    visit.page.close()
