# SPDX-License-Identifier: Apache-2.0
"""Profiles in the report: what the page is given of them, and the same as pictures and on the
command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iolab.cli.results.show import profile_lines, profiles_json
from iolab.output.charts.base.export import export
from iolab.output.charts.flame import flame_charts
from iolab.output.report.build import build_report
from iolab.output.report.model.profile_payload import Profiles
from iolab.output.report.sections.profiles import run_profiles
from iolab.studies.compare.profiles import cells_of
from iolab.studies.results.open.profiles import read_profiles
from support.profiles import AFTER, BEFORE, add_profile
from support.report_data import HandMade, sweep


@pytest.fixture
def results(tmp_path: Path) -> HandMade:
    add_profile(tmp_path, 13, "patched", AFTER)
    add_profile(tmp_path, 14, "plain", {**BEFORE, "fio;<b>&": 40})
    add_profile(tmp_path, 15, "plain", BEFORE, status="failed", extra={"failure": "no room"})
    return HandMade(sweep(1.5), path=tmp_path, baseline="plain", variants=["plain", "patched"])


def made(results: HandMade) -> Profiles:
    found = run_profiles(results)
    assert found is not None
    return found


def test_every_column_has_a_place_for_each_part(results: HandMade) -> None:
    [cell] = made(results).cells
    count = len(cell.parts.name)
    assert cell.title == "numjobs=4"
    assert {len(column) for column in (cell.parts.parent, cell.parts.kernel)} == {count}
    assert {len(column) for one in cell.profiles for column in (one.samples, one.shares)} == {count}
    assert max(cell.parts.name) < len(cell.parts.names)
    assert [(one.variant, one.baseline) for one in cell.profiles] == [
        ("plain", True),
        ("patched", False),
    ]
    [change] = cell.changes
    assert len(change.changes) == count
    assert max(change.changes) == pytest.approx(30 / 50 - 10 / 160)
    assert change.functions[0].name == "main"
    assert change.functions[0].more


def test_what_never_came_to_be_is_said(results: HandMade) -> None:
    assert made(results).notes == ["run 0015-00000000, made for a profile, has none: no room"]


def test_results_without_profiles_have_no_such_part(tmp_path: Path) -> None:
    assert run_profiles(HandMade(sweep(1.5), path=tmp_path)) is None
    assert run_profiles(HandMade(sweep(1.5))) is None


def test_profiles_change_nothing_else_of_the_report(results: HandMade, tmp_path: Path) -> None:
    from iolab.output.report.assemble import assemble

    alone = HandMade(
        sweep(1.5), path=tmp_path / "elsewhere", baseline="plain", variants=["plain", "patched"]
    )
    assert assemble(results)[0] == assemble(alone)[0]


def test_a_page_without_scripts_says_what_was_sampled(results: HandMade) -> None:
    from iolab.base.errors import IolabError

    try:
        page = build_report(results)
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")
    assert '<script type="application/gzip;base64" id="iolab-profiles">' in page
    assert "<li>plain numjobs=4: 240 samples, 99 Hz, 2 s, 2 CPUs, cpu-clock; idle 33.3 %" in page


def test_pictures_are_whole_and_have_their_numbers_beside_them(
    results: HandMade, tmp_path: Path
) -> None:
    cells = cells_of(read_profiles(results.path)[0], "plain", ["plain", "patched"])
    written = export(flame_charts(cells), tmp_path / "charts")
    assert [path.name for path in written] == [
        f"{name}.{kind}"
        for name in (
            "profile-plain-numjobs-4",
            "profile-patched-numjobs-4",
            "profile-patched-against-plain-numjobs-4",
        )
        for kind in ("svg", "csv")
    ]
    for path in written[::2]:
        root = ElementTree.fromstring(path.read_text("utf-8"))
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
    tips = re.findall(r"<g><title>(.*?)</title>", written[0].read_text("utf-8"))
    assert "&lt;b&gt;&amp; (user): 40 samples, 25.0 %" in tips
    assert "fio;read;vfs_read,1,40,0.25" in written[1].read_text("utf-8").splitlines()
    assert (
        written[5].read_text("utf-8").startswith("stack,kernel,share.plain,share.patched,change\n")
    )


def test_names_of_any_characters_make_pictures(results: HandMade, tmp_path: Path) -> None:
    add_profile(
        results.path,
        16,
        "plain",
        {"ba\x1b[2Jd;main;turn\u202eed": 4000},
        factors={"numjobs": "8\x07"},
    )
    cells = cells_of(read_profiles(results.path)[0], "plain", ["plain", "patched"])
    chart = next(chart for chart in flame_charts(cells) if "8" in chart.title)
    document = chart.svg()
    root = ElementTree.fromstring(document)
    said = [each.text or "" for each in root.iter() if each.tag.endswith(("title", "text", "desc"))]
    assert r"ba\x1b[2Jd" in said
    assert r"turn\u202eed (user): 4000 samples, 100.0 %" in said
    assert r"Profile of plain numjobs=8\x07" in said
    assert chart.png(1).startswith(b"\x89PNG")


def test_show_lists_profiles_and_what_is_missing(results: HandMade) -> None:
    lines = profile_lines(results.path)
    assert lines[1] == (
        "  0013-00000000 patched numjobs=4: 200 samples, 99 Hz, 2 s, 2 CPUs, cpu-clock; idle 75.0 %; of the rest 40.0 % in "
        "the kernel, 60.0 % in user programs"
    )
    assert lines[-1] == "  run 0015-00000000, made for a profile, has none: no room"
    found = json.loads(json.dumps(profiles_json(results.path)))
    assert [
        (one["variant"], one["samples"], one["busy_samples"], one["kernel_samples"])
        for one in found["profiles"]
    ] == [("patched", 200, 50, 20), ("plain", 240, 160, 110)]
    assert profiles_json(results.path / "nowhere") == {}
