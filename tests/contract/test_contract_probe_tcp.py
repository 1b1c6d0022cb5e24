# SPDX-License-Identifier: Apache-2.0
"""What TCP connections moved, as the probe counts it: to the byte, though connections come and go
between two readings."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.query import query
from iolab.recordings.record.sinks.intake import Intake, Sink
from iolab.recordings.record.status import Status
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.probe import Probe

NEAR, FAR = "127.23.45.68", "127.23.45.67"
"""Addresses of this machine that nobody else uses."""
FRAMING = 2
"""Beginning and end of a connection take a place in its sequence of bytes each, and are
acknowledged like one."""


def exchange(
    server: socket.socket,
    amount: int,
    *,
    near: str = NEAR,
    before_its_end: Callable[[], object] = lambda: None,
) -> None:
    """A connection that moves so many bytes to the server."""
    with (
        socket.create_connection(server.getsockname()[:2], source_address=(near, 0)) as client,
        server.accept()[0] as far,
    ):
        client.sendall(b"x" * amount)
        left = amount
        while left:
            left -= len(far.recv(min(left, 1 << 20)))
        before_its_end()


def recording_of(probe: Probe, folder: Path) -> Recording:
    with RecordingWriter.create(
        folder, host="here", clock="realtime", origin={"kind": "record"}
    ) as writer:
        intake = Intake(Sink(writer), Status(), lambda _: None)
        for frame in probe.frames:
            intake.take(frame)
    return Recording(folder)


@pytest.mark.tracing
def test_connections_that_stay_and_that_live_between_two_readings(tmp_path: Path) -> None:
    with (
        socket.create_server((FAR, 0)) as server,
        socket.create_connection(server.getsockname(), source_address=(NEAR, 0)) as old,
        server.accept()[0] as far,
    ):
        old.sendall(b"x" * 12345)
        assert far.recv(20000)
        probe = Probe.start("--source", "counters", "--interval-ms", "250")
        probe.readings(2)
        for _ in range(40):
            exchange(server, 1000)
        exchange(server, 500_000, before_its_end=lambda: probe.readings(2))
        old.sendall(b"x" * 777)
        assert far.recv(20000)
        probe.readings(2)
        assert probe.stop() == 0
    if not any(frame["source"] == "tcp" for frame in probe.of("samples")):
        pytest.skip("this kernel does not tell what connections moved (inet_diag)")
    recording = recording_of(probe, tmp_path / "r")
    assert [loss for loss in recording.losses() if loss["source"] == "tcp"] == []
    moved = 40 * 1000 + 500_000 + 777
    for peer, way in ((FAR, "out"), (NEAR, "in")):
        found = query(recording, f"ip.bytes[peer={peer}][direction]", interval_ns=250_000_000)
        assert isinstance(found, Stack)
        counted = dict(zip(found.keys, found.totals, strict=True))
        assert moved <= counted[way] <= moved + 41 * FRAMING
        assert sum(counted.values()) - counted[way] <= 41 * FRAMING


@pytest.mark.tracing
def test_an_address_of_ipv6() -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("there is no IPv6 here")
    with server:
        probe = Probe.start("--source", "counters", "--interval-ms", "100")
        probe.readings(2)
        exchange(server, 5000, near="::1", before_its_end=lambda: probe.readings(2))
        probe.readings(2)
        assert probe.stop() == 0
    names = [
        name
        for frame in probe.of("samples")
        if frame["source"] == "tcp"
        for name in frame["object_names"]
    ]
    if not names:
        pytest.skip("this kernel does not tell what connections moved (inet_diag)")
    assert "::1" in names
