# SPDX-License-Identifier: Apache-2.0
"""Answers are compressed for who is far and takes that, and for no one else."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from iolab.output.server.base.store import Store
from iolab.output.server.http.access import Door
from iolab.output.server.http.app import LEAST, application, is_far, pack
from support.service import TOKEN

ACCEPTS = "br, gzip;q=0.8"


def request(host: str | None, accepts: str = ACCEPTS) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "headers": [(b"accept-encoding", accepts.encode())],
        "client": None if host is None else (host, 1234),
    }
    return Request(scope)


@pytest.mark.parametrize(
    ("host", "accepts", "far"),
    [
        ("127.0.0.1", ACCEPTS, False),
        ("127.3.2.1", ACCEPTS, False),
        ("::1", ACCEPTS, False),
        ("::ffff:127.0.0.1", ACCEPTS, False),
        ("192.0.2.7", ACCEPTS, True),
        ("2001:db8::1", ACCEPTS, True),
        ("fe80::1%eth0", ACCEPTS, True),
        ("::ffff:192.0.2.7", ACCEPTS, True),
        ("192.0.2.7", "GZIP", True),
        ("192.0.2.7", "", False),
        ("192.0.2.7", "br, deflate", False),
        ("192.0.2.7", "gzip; q=0", False),
        ("192.0.2.7", "xgzip", False),
        ("testclient", ACCEPTS, False),
        (None, ACCEPTS, False),
    ],
)
def test_who_is_far(host: str | None, accepts: str, far: bool) -> None:
    assert is_far(request(host, accepts)) is far


def test_what_fits_a_packet_is_sent_as_it_is() -> None:
    long = b"a" * LEAST
    assert pack(long[:-1], far=True) == (long[:-1], False)
    assert pack(long, far=False) == (long, False)
    small, encoded = pack(long, far=True)
    assert encoded
    assert gzip.decompress(small) == long


def test_the_answer_is_the_same_from_afar(store: Store) -> None:
    door = Door(["127.0.0.1"], 8750, token=TOKEN)
    words = {"recording": "rec", "statistic": "io.ops[latency]", "drawn": "true"}
    found = []
    for host in ("127.0.0.1", "192.0.2.7"):
        with TestClient(
            application(store, door), base_url="http://127.0.0.1:8750", client=(host, 1234)
        ) as client:
            client.headers["authorization"] = f"Bearer {TOKEN}"
            answer = client.get("/api/v1/query", params=words)
            assert answer.headers.get("content-encoding") == (
                None if host == "127.0.0.1" else "gzip"
            )
            assert "Accept-Encoding" in answer.headers["vary"]
            found.append(answer.json())
    assert found[0] == found[1]
