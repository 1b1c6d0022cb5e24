# SPDX-License-Identifier: Apache-2.0
"""The gate that holds the recording of every I/O against fio's result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab import _core
from iolab.base.verdict import Level, Reason
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from support.fio_files import job, latency, output, write_run

PLAN = RunPlan(run="0001-aaaaaaaa", variant="master", factors={}, jobs=4, runtime=10.0, exit_code=0)
BINS = {1_000_000: 39_000, 1_500_000: 900, 9_000_000: 100}


def reasons(
    tmp_path: Path, said: Any, *, bins: dict[int, int] | None = None, syncs: bool = False
) -> list[Reason]:
    entry = job(latency_ns=1e6)
    entry["write"]["lat_ns"] |= {"N": entry["write"]["total_ios"]}
    if bins is not None:
        entry["write"]["lat_ns"] |= {"bins": {str(low): count for low, count in bins.items()}}
    if syncs:
        entry["sync"] = {"total_ios": 500, "lat_ns": {**latency(2e6), "bins": {"2000000": 1000}}}
    write_run(tmp_path, output(entry), plan=PLAN)
    if said is not None:
        (tmp_path / "log_ios.json").write_text(said if isinstance(said, str) else json.dumps(said))
    return [reason for reason in derive(tmp_path, PLAN).verdict.reasons if reason.code == "io-log"]


def percentiles() -> dict[str, int | None]:
    indices = [_core.grid_index(low, 6) for low in BINS]
    names = ("50", "90", "99", "99.9", "99.99")
    return dict(
        zip(
            names,
            _core.quantiles(indices, list(BINS.values()), [float(each) / 100 for each in names], 6),
            strict=True,
        )
    )


def test_the_same_numbers_are_no_reason(tmp_path: Path) -> None:
    assert (
        reasons(
            tmp_path,
            {"schema": 1, "events": {"write": 40_000}, "latency": {"write": percentiles()}},
            bins=BINS,
        )
        == []
    )


def test_syncs_are_in_no_log_of_fio(tmp_path: Path) -> None:
    said = {"schema": 1, "events": {"write": 40_000}, "latency": {"write": percentiles()}}
    assert reasons(tmp_path, said, bins=BINS, syncs=True) == []


@pytest.mark.parametrize("said", [None, "", "{", "[]", "7"])
def test_without_a_log_there_is_nothing_to_say(tmp_path: Path, said: str | None) -> None:
    assert reasons(tmp_path, said) == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"events": {"write": 39_999}}, "39999 writes, fio counted 40000"),
        ({"events": {}}, "0 writes, fio counted 40000"),
        ({"events": {"write": 40_000, "read": 5}}, "5 reads of which fio's result knows nothing"),
        ({"events": {"write": 40_000}, "damaged": 3}, "3 lines of fio's log are damaged"),
        ({"problem": "no space"}, "not in the recording: no space"),
    ],
)
def test_another_count_is_a_note_that_takes_nothing_away(
    tmp_path: Path, said: dict[str, Any], words: str
) -> None:
    (reason,) = reasons(tmp_path, said)
    assert words in reason.text
    assert reason.level is Level.OK


def test_moved_percentiles_are_a_note(tmp_path: Path) -> None:
    moved = {**percentiles(), "99": 7}
    (reason,) = reasons(
        tmp_path, {"events": {"write": 40_000}, "latency": {"write": moved}}, bins=BINS
    )
    assert reason.text.startswith(
        "write: percentiles of the recording differ from fio's: p99 7 ns instead of "
    )
    assert "p50" not in reason.text
