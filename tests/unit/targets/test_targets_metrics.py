# SPDX-License-Identifier: Apache-2.0
"""What follows from what a target says: achieved compression, fill, write amplification, and the
compression gate."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.metrics import find
from iolab.base.verdict import Level, Reason
from iolab.formats.core.tables import DeviceSamples, FioDirection, FioJob
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.facts.run_facts import RunFacts
from iolab.studies.results.facts.target_metrics import observations, read_target
from iolab.studies.results.gates.compression import CompressionGate


def facts(
    target: dict[str, Any] | None = None,
    *,
    options: dict[str, Any] | None = None,
    operation: str = "write",
    load_bytes: int = 1000,
    device_rates: tuple[list[float], ...] = (),
) -> RunFacts:
    direction = FioDirection(
        ios=10,
        size_bytes=load_bytes,
        runtime=2.0,
        iops=5.0,
        bw=500.0,
        bw_field="bw",
        bw_source=500.0,
        bw_unit="B/s",
    )
    devices = {
        f"sd{number}": DeviceSamples(f"sd{number}", 1.0, {"write.bw": np.array(rates)}, {})
        for number, rates in enumerate(device_rates)
    }
    return RunFacts(
        RunPlan("0001-aa", "v", {}, extra={"options": options or {}}),
        devices=devices,
        target=target or {},
        pooled=FioJob("job", 0, {}, {operation: direction}),
    )


def values(found: RunFacts) -> dict[str, float]:
    return {each.metric: each.value for each in observations(found)}


def test_each_metric_is_registered_and_worked_out() -> None:
    found = values(
        facts(
            {"written_bytes": 800, "taken_bytes": 400, "fill": 0.25},
            device_rates=([500.0, 700.0], [100.0, 300.0]),
        )
    )
    assert found == {
        "target.compression": 2.0,
        "target.fill": 0.25,
        "write.amplification": (600 + 200) * 2 / 1000,
    }
    assert all(find(name) is not None for name in found)


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"written_bytes": 0, "taken_bytes": 5},
        {"written_bytes": 5, "taken_bytes": 0},
        {"written_bytes": 5, "taken_bytes": -4096},
        {"written_bytes": "5", "taken_bytes": 1},
        {"taken_bytes": 3},
        {"written_bytes": True, "taken_bytes": True},
        {"fill": 1.5},
        {"fill": float("nan")},
        {"fill": None},
    ],
)
def test_what_cannot_be_told_is_not(target: dict[str, Any]) -> None:
    assert values(facts(target)) == {}


def test_reads_mixed_reports_and_unknown_rates_have_no_amplification() -> None:
    assert values(facts(operation="read", device_rates=([1.0],))) == {}
    assert values(facts(operation="mixed", device_rates=([1.0],))) == {}
    assert values(facts(load_bytes=0, device_rates=([1.0],))) == {}
    assert values(facts(device_rates=([float("nan")],))) == {}
    assert values(facts(device_rates=([float("nan"), 500.0],))) == {"write.amplification": 1.0}


@given(st.binary(max_size=80))
def test_a_damaged_file_says_nothing(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = tmp_path_factory.mktemp("run")
    assert read_target(directory) == {}
    (directory / "target.json").write_bytes(content)
    assert isinstance(dict(read_target(directory)), dict)
    (directory / "target.json").write_text(json.dumps({"schema": 1, "fill": 0.5})[:-3])
    assert read_target(directory) == {}


def judged(options: dict[str, Any], ratio: float | None) -> list[Reason]:
    target = {} if ratio is None else {"written_bytes": 1e9 * ratio, "taken_bytes": 1e9}
    return list(CompressionGate().judge(facts(target, options=options)))


@pytest.mark.parametrize(
    ("options", "ratio"),
    [
        ({"compressibility": 0}, 1.0),
        ({"compressibility": 50}, 1.88),
        ({"compressibility": 50}, None),
        ({"compressibility": 100}, 32.0),
        ({}, 6.2),
        ({"buffer_compress_percentage": 50, "refill_buffers": 1}, 2.0),
        ({"compressibility": "much"}, 3.0),
    ],
)
def test_as_asked_or_nothing_asked_is_no_reason(
    options: dict[str, Any], ratio: float | None
) -> None:
    assert judged(options, ratio) == []


@pytest.mark.parametrize(
    ("percent", "ratio", "level", "words"),
    [
        (0, 6.2, Level.SUSPECT, "used 6.20 times less space"),
        (50, 1.0, Level.OK, "does not compress"),
        (100, 1.0, Level.OK, "does not compress"),
        (66, 2.0, Level.OK, "whole blocks only"),
        (50, 4.0, Level.OK, "whole blocks only"),
    ],
)
def test_what_differs_is_said(percent: int, ratio: float, level: Level, words: str) -> None:
    found = judged({"compressibility": percent}, ratio)
    assert [reason.level for reason in found] == [level]
    assert words in found[0].text
    assert found[0].data["achieved_ratio"] == pytest.approx(ratio)
