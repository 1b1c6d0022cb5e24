# SPDX-License-Identifier: Apache-2.0
"""Four clients read from one server, and one of them is slow: found by what each peer gets,
explained by its rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.query import query
from support.network import need_network, network
from support.probe import need_probe
from support.stories import recorded_server

ASKED = 16_000_000
"""Bytes a second that the server gives each client, 128 Mbit/s."""
SLOW = 3
RATE = 32_000_000 / 8
"""Bytes a second of the slow link, with its frames' heads."""
SECOND = 10**9


@pytest.mark.tracing
@pytest.mark.exclusive
@pytest.mark.figures
def test_the_slow_client_is_found_by_its_peer_and_explained_by_its_rate(tmp_path: Path) -> None:
    need_probe()
    need_network()
    with network(4, slow={SLOW: "32mbit"}) as lab, lab.serving(ASKED):
        recording = recorded_server(lab, tmp_path / "r", 5)
    found = query(recording, "ip.bytes[direction=out][peer]", interval_ns=SECOND)
    assert isinstance(found, Stack)
    # the machine's own view and nothing else: its clients
    assert set(found.keys) == set(lab.addresses[1:])
    # whole seconds in which all of them read
    busy = np.flatnonzero((found.values > 0).all(axis=0))[1:-1]
    assert len(busy) >= 2
    read = {key: values[busy] for key, values in zip(found.keys, found.values, strict=True)}
    slow = read.pop(lab.addresses[SLOW])
    assert found.keys[-1] == lab.addresses[SLOW]
    # it gets what its link carries and never more; the others what the server gives, as far as a
    # busy machine lets it
    assert 0.7 * RATE < slow.mean() < slow.max() < 1.05 * RATE
    for key, values in read.items():
        assert 2 * RATE < values.mean() < 1.1 * ASKED, key
    # what the peers moved is what went over the interface, but for the heads of its frames
    peers = query(recording, "ip.bytes[direction=out]", interval_ns=SECOND)
    link = query(recording, "net.bytes[direction=out][interface=eth0]", interval_ns=SECOND)
    assert isinstance(peers, Series)
    assert isinstance(link, Series)
    assert 1.0 < link.total / peers.total < 1.06
    print(
        f"bytes a second by peer: {', '.join(f'{key} {values.mean():,.0f}' for key, values in read.items())}; "
        f"behind 32 Mbit/s {slow.mean():,.0f} (at most {slow.max():,.0f})"
    )
