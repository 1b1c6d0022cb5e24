# SPDX-License-Identifier: Apache-2.0
"""Guides that are made of measurements: what was written by hand stays, parts are made anew,
mistakes are told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iolab.studies.results.imports.table import import_table

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import guide_parts  # noqa: E402
import guides  # noqa: E402

TABLE = ROOT / "studies/published/openzfs-447-max-rate-hdd.csv"
PAGE = """# By hand

<!-- study: studies/x.toml --only numjobs=1,2 -->

Words before.

<!-- part: compare --metric write.iops --where disks=1 -->
old
<!-- end -->

Words between.

<!-- part: chart over_load metric=write.iops -->
<!-- end -->
Words after.
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    import_table(TABLE, tmp_path / "published")
    return tmp_path / "published"


@pytest.mark.slow
def test_only_parts_are_made_anew_and_again_the_same(results: Path, tmp_path: Path) -> None:
    page, images = tmp_path / "page.md", tmp_path / "images"
    images.mkdir()
    page.write_text(PAGE)
    made = guides.filled(page, results, images)
    for words in (
        "# By hand",
        "Words before.",
        "Words between.",
        "Words after.",
        "<!-- study: studies/x.toml --only numjobs=1,2 -->",
    ):
        assert words in made
    assert "\nold\n" not in made
    assert "$ iolab compare results/guides/published --metric write.iops --where disks=1" in made
    assert " 1024" in made
    [picture] = images.glob("*.svg")
    assert f"](../images/{picture.name})" in made
    assert picture.read_text().startswith("<svg")
    page.write_text(made)
    assert guides.filled(page, results, images) == made


def test_an_unknown_part_is_told(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- part: table -->\n<!-- end -->\n")
    with pytest.raises(SystemExit, match=r"no part 'table'; there are: conditions"):
        guides.filled(page, results, tmp_path)


def test_two_pictures_never_share_a_name(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- part: chart iops -->\n<!-- end -->\n" * 2)
    with pytest.raises(SystemExit, match="two pictures are called"):
        guides.filled(page, results, tmp_path)


@pytest.mark.parametrize("page", guides.pages(), ids=lambda page: page.stem)
def test_each_guide_is_filled_from_a_study_that_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    match = guides.STUDY.search(text)
    assert match is not None
    assert (ROOT / match[1]).is_file()
    for part in guides.PART.finditer(text):
        assert part[2] in guide_parts.PARTS
        assert len(part[0].splitlines()) > 2, f"'{part[2]}' was never filled in: make guides"
    for flag in (match[2] or "").split():
        assert flag in text.split("-->", 1)[1], f"the page's commands don't say {flag}"
