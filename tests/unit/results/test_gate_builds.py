# SPDX-License-Identifier: Apache-2.0
"""The gate of builds: arms that ran the same modules, and modules of another build than the one
asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive_all import derive_all
from support.fio_files import job, output, write_run


def build(
    asked: str | None, source: str, *, digest: str = "", expected: str | None = None
) -> dict[str, Any]:
    """What a run says of its build: `source` is of the loaded zfs, `expected` of the file."""
    return {
        "asked": asked,
        "modules": {"zfs": {"srcversion": source, "build_id": f"{source}-id"}},
        "expected": {"zfs": source if expected is None else expected},
        **({"record": {"digest": digest}} if digest else {}),
    }


def verdicts(tmp_path: Path, *builds: Any) -> list[dict[str, Level]]:
    items = []
    for number, each in enumerate(builds):
        place = tmp_path / str(number)
        plan = write_run(place, output(job()))
        (place / "target.json").write_text(json.dumps({"schema": 1, "kind": "zfs", "build": each}))
        items.append((place, plan))
    return [
        {reason.code: reason.level for reason in derived.verdict.reasons}
        for derived in derive_all(items)
    ]


def test_different_builds_are_fine(tmp_path: Path) -> None:
    assert verdicts(tmp_path, build("base", "A"), build("patched", "B"), build("base", "A")) == [
        {},
        {},
        {},
    ]


def test_arms_that_ran_the_same_build_are_invalid(tmp_path: Path) -> None:
    assert (
        verdicts(tmp_path, build("base", "A"), build("patched", "A"))
        == [{"same-build": Level.INVALID}] * 2
    )
    unnamed = {**build(None, "A"), "expected": {}}
    assert (
        verdicts(tmp_path / "x", unnamed, build("patched", "A", digest="p"))
        == [{"same-build": Level.INVALID}] * 2
    )
    different = build("base", "A", digest="a"), build("patched", "A", digest="b")
    assert verdicts(tmp_path / "y", *different) == [{"same-build": Level.INVALID}] * 2


def test_builds_of_the_same_sources_may_be_equal(tmp_path: Path) -> None:
    assert (
        verdicts(tmp_path, build("base", "A", digest="a"), build("again", "A", digest="a"))
        == [{"same-sources": Level.OK}] * 2
    )


def test_a_build_that_was_not_asked_for_is_invalid(tmp_path: Path) -> None:
    assert verdicts(tmp_path, build("base", "A"), build("patched", "A", expected="B")) == [
        {"same-build": Level.INVALID},
        {"wrong-build": Level.INVALID},
    ]


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        "text",
        [],
        {"asked": "x"},
        {"asked": "x", "modules": 3},
        {"modules": {"zfs": 3}, "expected": 4},
        {"asked": ["x"], "modules": {"zfs": {}}, "record": 5, "expected": []},
    ],
)
def test_odd_evidence_is_no_reason(tmp_path: Path, damaged: Any) -> None:
    assert verdicts(tmp_path, damaged, build("base", "A")) == [{}, {}]


def program(asked: str | None, identity: Any, **more: Any) -> dict[str, Any]:
    """What a run says of the program of its load."""
    ran = {"tool": {"path": "/x/tool", "build_id": identity}}
    return {"asked": asked, "programs": ran if identity else {}, **more}


def of_programs(tmp_path: Path, *builds: Any) -> list[dict[str, Level]]:
    items = []
    for number, build_of_run in enumerate(builds):
        plan = write_run(tmp_path / str(number), output(job()))
        plan = replace(plan, extra={**plan.extra, "build": build_of_run})
        items.append((tmp_path / str(number), plan))
    return [
        {reason.code: reason.level for reason in derived.verdict.reasons}
        for derived in derive_all(items)
    ]


def test_programs_are_judged_as_modules_are(tmp_path: Path) -> None:
    own = {"expected": {"tool": {"build_id": "A"}}}
    other = {"expected": {"tool": {"build_id": "B"}}}
    right = program("old", "A", **own), program("new", "B", **other)
    assert of_programs(tmp_path / "right", *right) == [{}, {}]
    wrong = program("old", "A", **own), program("new", "A", **other)
    assert of_programs(tmp_path / "wrong", *wrong) == [
        {"same-build": Level.INVALID},
        {"wrong-build": Level.INVALID},
    ]
    same = program("old", "A", **own), program("new", "A", **own)
    assert of_programs(tmp_path / "same", *same) == [{"same-build": Level.INVALID}] * 2
    record = {"record": {"digest": "d"}}
    alike = program("old", "A", **own, **record), program("new", "A", **own, **record)
    assert of_programs(tmp_path / "alike", *alike) == [{"same-sources": Level.OK}] * 2
    system = program(None, "A"), program("new", "A", **own)
    assert of_programs(tmp_path / "system", *system) == [{"same-build": Level.INVALID}] * 2


def test_an_unknown_program_is_suspect(tmp_path: Path) -> None:
    unknown = program("old", None, expected={"tool": {"build_id": "A"}}), program(None, None)
    assert of_programs(tmp_path, *unknown) == [{"unknown-build": Level.SUSPECT}, {}]


@pytest.mark.parametrize(
    "damaged",
    [7, [], {}, {"asked": []}, {"asked": "a", "programs": 7}, {"asked": "a", "programs": {"x": 7}}],
)
def test_damaged_evidence_of_programs_never_raises(tmp_path: Path, damaged: Any) -> None:
    assert len(of_programs(tmp_path, damaged, program("b", "B", expected={"tool": 7}))) == 2
