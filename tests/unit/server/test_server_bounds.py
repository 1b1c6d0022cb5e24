# SPDX-License-Identifier: Apache-2.0
"""Times, intervals and values at and beyond what numbers hold: an answer or a refusal, never a
fault."""

from __future__ import annotations

import itertools

import pytest
from starlette.testclient import TestClient

MOMENTS = [
    "9223372036854775807",
    "9223372036854775808",
    "9999999999999999999",
    "0",
    "-99999999999d",
    "0001-01-01",
    "1e30s",
]
INTERVALS = ["1ns", "9999999999999d", "1000000d", "36525d", "whole", "NaN", "1e9s"]
VALUES = [
    "0",
    "18446744073709551615ns",
    "18446744073709551616ns",
    "1e300s",
    "-1s",
    "9223372036854775808B",
    "nan",
]
STATISTICS = ["io.ops[op]", "io.ops[latency]", "io.ops[offset]"]
API = "/api/v1"


def answered(client: TestClient, path: str, **words: str) -> None:
    answer = client.get(f"{API}/{path}", params=words)
    assert answer.status_code in (200, 400), (path, words, answer.text)
    if answer.status_code == 400:
        assert answer.json()["error"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rec", "t.csv"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_any_moment(name: str, moment: str, client: TestClient) -> None:
    for statistic, (path, more) in itertools.product(
        STATISTICS,
        (("query", {"interval": "whole"}), ("query", {"drawn": "true"}), ("extremes", {})),
    ):
        for end in ("from", "to"):
            answered(client, path, recording=name, statistic=statistic, **{end: moment}, **more)
    for other in MOMENTS:
        answered(
            client,
            "difference",
            recording=name,
            statistic="io.ops[latency]",
            **{"from": moment, "to": other, "other_from": moment, "other_to": other},
        )


@pytest.mark.parametrize("name", ["rec", "t.csv"])
@pytest.mark.parametrize("interval", INTERVALS)
def test_any_interval(name: str, interval: str, client: TestClient) -> None:
    ends = {"from": "0s", "to": "1s", "other_from": "0s", "other_to": "1s"}
    for statistic, (path, more) in itertools.product(
        STATISTICS,
        (
            ("query", {"drawn": "true"}),
            ("extremes", {}),
            ("layers", {"by": "op", "key": "read"}),
            ("difference", ends),
        ),
    ):
        answered(client, path, recording=name, statistic=statistic, interval=interval, **more)


@pytest.mark.parametrize(("low", "high"), itertools.product(VALUES, VALUES))
def test_any_value(low: str, high: str, client: TestClient) -> None:
    answered(client, "who", recording="rec", statistic="io.ops[latency]", low=low, high=high)
    answered(client, "query", recording="rec", statistic=f"io.ops[latency={low}..{high}]")
