# SPDX-License-Identifier: Apache-2.0
"""Golden files: compared, sectioned by case, and none without a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import golden as module
from support.golden import FILES, Golden


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "FILES", tmp_path / "tests/golden")
    monkeypatch.delenv(module.RENEW, raising=False)
    (tmp_path / "tests/golden").mkdir(parents=True)
    return tmp_path / "tests/golden"


def test_every_golden_file_has_a_test_that_compares_it() -> None:
    tests = FILES.parent.rglob("test_*.py")
    named = {
        name
        for path in tests
        if path != Path(__file__)
        for name in re.findall(r'\bgolden\(\s*"([^"]+)"', path.read_text("utf-8"))
    }
    kept = {path.relative_to(FILES).with_suffix("").as_posix() for path in FILES.rglob("*.txt")}
    assert sorted(kept - named) == []
    assert sorted(named - kept) == []


def test_an_equal_text_passes_and_another_fails_with_a_diff(files: Path, golden: Golden) -> None:
    (files / "a.txt").write_text("one\ntwo\n")
    golden("a", "one\ntwo")
    with pytest.raises(pytest.fail.Exception) as failure:
        golden("a", "one\nthree\n")
    assert {"-two", "+three"} <= set(str(failure.value).splitlines())
    with pytest.raises(pytest.fail.Exception):
        golden("absent", "one\n")


def test_a_temporary_directory_is_normalized(files: Path, tmp_path: Path, golden: Golden) -> None:
    (files / "a.txt").write_text("TMP/x: no\nTMP/y\n")
    golden("a", f"{tmp_path}/x: no\n/tmp/pytest-of-me/pytest-3/popen-gw1/other0/y\n")


@pytest.mark.parametrize("case", ["first", "second"])
def test_a_file_has_a_section_for_each_case_and_no_other(
    files: Path, golden: Golden, case: str
) -> None:
    (files / "a.txt").write_text("=== first\nof first\n=== second\nof second\n")
    golden("a", f"of {case}")
    (files / "a.txt").write_text("=== first\nof first\n=== second\nof second\n=== third\n")
    with pytest.raises(pytest.fail.Exception, match="3 sections"):
        golden("a", f"of {case}")


def test_renewing_writes_the_text(
    files: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(module.RENEW, "renew")
    golden("a/b", "new")
    monkeypatch.delenv(module.RENEW)
    assert (files / "a/b.txt").read_text() == "new\n"
    golden("a/b", "new")
