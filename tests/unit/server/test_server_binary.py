# SPDX-License-Identifier: Apache-2.0
"""Maps in binary, read by the description in docs/reference/api.md: they hold what JSON holds."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

BINARY = {"accept": "application/vnd.iolab.heat, application/json;q=0.5"}


def asked(client: TestClient, path: str, words: dict[str, str]) -> Any:
    answer = client.get(f"/api/v1/{path}", params=words)
    assert answer.status_code == 200, answer.text
    return answer.json()


def parts_of(data: bytes) -> tuple[dict[str, Any], list[Any]]:
    """(head, [low, high, count, column, bucket])."""
    magic, version, flags, zero, cells, buckets, length, rest = struct.unpack_from(
        "<4sBBHIIII", data
    )
    assert (magic, version, zero, rest) == (b"ioHm", 1, 0, 0)
    head = json.loads(data[24 : 24 + length])
    parts, place = [], 24 + length
    assert place % 8 == 0
    for kind, count in (
        ("<u8", buckets),
        ("<u8", buckets),
        ("<u8" if flags & 1 else "<u4", cells),
        ("<i4", cells),
        ("<u4", cells),
    ):
        parts.append(np.frombuffer(data, kind, count, place))
        place += parts[-1].nbytes
    assert place == len(data)
    return head, parts


def decoded(data: bytes) -> dict[str, Any]:
    """A map with its cells, as JSON has it."""
    head, (low, high, count, column, bucket) = parts_of(data)
    return {
        **head,
        "column": column.tolist(),
        "low": low[bucket].tolist(),
        "high": high[bucket].tolist(),
        "count": count.tolist(),
    }


def drawn(data: bytes) -> dict[str, Any]:
    """A map that is ready to be drawn, with its cells in their places again."""
    head, (low, high, count, column, row) = parts_of(data)
    sizes = head.pop("sizes")
    made = head.get("map", head)
    if made["group"] is None:
        assert sizes == []
        return head
    group, place = made["group"], 0
    assert low.tolist() == group["bounds"][:-1]
    assert high.tolist() == group["bounds"][1:]
    [one] = group["maps"]
    holders = [one, *(part for dimension in one["dimensions"] for part in dimension["parts"])]
    assert len(holders) == len(sizes)
    for holder, size in zip(holders, sizes, strict=True):
        mine = slice(place, place + size)
        holder["cells"] = {
            "starts": np.searchsorted(column[mine], np.arange(group["columns"] + 1)).tolist(),
            "rows": row[mine].tolist(),
            "counts": count[mine].tolist(),
        }
        place += size
    assert place == len(count)
    return head


@pytest.mark.parametrize(
    "statistic",
    [
        "io.ops[latency]",
        "io.ops[op=write][offset]",
        "io.ops[latency>=1h][latency]",
        "io.bytes[size]",
    ],
)
def test_binary_maps_hold_what_json_holds(statistic: str, client: TestClient) -> None:
    words = {"recording": "rec", "statistic": statistic, "interval": "1s"}
    answer = client.get("/api/v1/query", params=words, headers=BINARY)
    assert answer.headers["content-type"] == "application/vnd.iolab.heat"
    assert decoded(answer.content) == asked(client, "query", words)
    # what is no map stays JSON
    other = client.get(
        "/api/v1/query",
        params={**words, "statistic": "io.ops"},
        headers={"accept": "application/vnd.iolab.heat"},
    )
    assert other.json()["kind"] == "series"


@pytest.mark.parametrize(
    "statistic", ["io.ops[latency]", "io.ops[op=write][offset]", "io.ops[latency>=1h][latency]"]
)
def test_maps_to_be_drawn_in_binary(statistic: str, client: TestClient) -> None:
    words = {"recording": "rec", "statistic": statistic, "interval": "100ms", "drawn": "true"}
    answer = client.get("/api/v1/query", params=words, headers=BINARY)
    assert answer.headers["content-type"] == "application/vnd.iolab.heat"
    assert drawn(answer.content) == asked(client, "query", words)


@pytest.mark.parametrize("rest", ["true", "false"])
def test_layers_in_binary(rest: str, client: TestClient) -> None:
    words = {
        "recording": "rec",
        "statistic": "io.ops[latency]",
        "by": "op",
        "key": "read",
        "rest": rest,
    }
    answer = client.get("/api/v1/layers", params=words, headers=BINARY)
    assert answer.headers["content-type"] == "application/vnd.iolab.heat"
    assert drawn(answer.content) == asked(client, "layers", words)


def test_counts_beyond_32_bits_are_binary_as_well() -> None:
    from iolab.output.server.queries.binary import encode
    from iolab.recordings.ask.question import parse
    from iolab.recordings.store.base.counts import HeatCounts
    from iolab.recordings.store.base.grids import LogLinear

    whole = np.array([0, 1], dtype=np.int64)
    counts = HeatCounts(
        "latency", 0, 1, LogLinear(6), whole, whole, np.array([2**40, 3], dtype=np.int64)
    )
    assert decoded(encode(parse("io.ops[latency]"), counts))["count"] == [2**40, 3]
