# SPDX-License-Identifier: Apache-2.0
"""Latency logs of fio 2.x are in us, those of fio 3 in ns: known, given, or stated as an
assumption."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import Derived, RunPlan
from support.fio_files import job, output, write_run

PLAN = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
TERSE = Path(__file__).parents[2] / "data" / "formats" / "fio-3.33-terse-v3.txt"
TERSE_2 = Path(__file__).parents[2] / "data" / "formats" / "fio-3.33-terse-v2.txt"


def log(value: int, columns: int = 4) -> str:
    return "".join(
        f"{1000 * second}, {value}, 1, 0{', 0' * (columns - 4)}\n" for second in range(1, 11)
    )


def read(
    tmp_path: Path, text: str | bytes, value: int, *, columns: int = 4, **extra: Any
) -> tuple[float, list[str]]:
    """Seconds of the logged latency, and what was assumed for it."""
    plan = dataclasses.replace(PLAN, extra=extra)
    write_run(tmp_path, text, plan=plan)
    (tmp_path / "x_clat.1.log").write_text(log(value, columns))
    derived: Derived = derive(tmp_path, plan)
    series = next(each for each in derived.series if each.name == "write.clat")
    return float(series.values[3]), [each for each in derived.assumptions if "latency logs" in each]


def result(version: str | None) -> str:
    document = json.loads(output(job(jobs=1)))
    del document["fio version"]
    if version is not None:
        document["fio version"] = version
    if version is not None and version.startswith("fio-2.1"):
        write = document["jobs"][0]["write"]
        for kind in ("lat", "clat", "slat"):
            write[kind] = {
                key: each / 1000 if isinstance(each, (int, float)) else each
                for key, each in write.pop(f"{kind}_ns").items()
            }
    return json.dumps(document)


@pytest.mark.parametrize(
    ("version", "seconds"),
    [
        ("fio-3.33", 5e-6),
        ("fio-3.0-39-gba87", 5e-6),
        ("fio-2.99", 5e-6),
        ("fio-2.1.4", 5e-3),
        ("fio-2.16", 5e-3),
        (None, 5e-6),
    ],
)
def test_the_result_beside_the_log_says_the_unit(
    tmp_path: Path, version: str | None, seconds: float
) -> None:
    text = (
        result(version)
        if version != "fio-2.16"
        else result("fio-2.1").replace("fio-2.1", "fio-2.16")
    )
    found, assumed = read(tmp_path, text, 5000)
    assert found == pytest.approx(seconds)
    assert assumed == []


def test_terse_output_is_in_us_whatever_the_logs_are(tmp_path: Path) -> None:
    seconds, assumed = read(tmp_path, TERSE.read_bytes(), 5000)
    assert seconds == pytest.approx(5e-6)
    assert assumed == []


def test_an_unknown_version_is_an_assumption_and_can_be_given(tmp_path: Path) -> None:
    text = TERSE_2.read_bytes()
    seconds, assumed = read(tmp_path, text, 5000)
    assert seconds == pytest.approx(5e-6)
    assert "taken as ns" in assumed[0]
    assert "--log-unit us" in assumed[0]
    for content, unit, expected in (
        (text, "us", 5e-3),
        (text, "ns", 5e-6),
        (result("fio-2.1.4"), "ns", 5e-6),
    ):
        seconds, assumed = read(tmp_path, content, 5000, log_latency_unit=unit)
        assert seconds == pytest.approx(expected)
        assert assumed == []


def test_values_that_no_ns_can_be_are_us(tmp_path: Path) -> None:
    seconds, assumed = read(tmp_path, TERSE_2.read_bytes(), 80)
    assert seconds == pytest.approx(8e-5)
    assert "taken as us" in assumed[0]


def test_a_priority_says_ns(tmp_path: Path) -> None:
    seconds, assumed = read(tmp_path, TERSE_2.read_bytes(), 5000, columns=6)
    assert seconds == pytest.approx(5e-6)
    assert assumed == []
    assert read(tmp_path, TERSE_2.read_bytes(), 5000, columns=5)[
        1
    ]  # an offset, of an old fio, or a priority
