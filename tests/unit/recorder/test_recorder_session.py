# SPDX-License-Identifier: Apache-2.0
"""A whole recording of fake probes on a fake clock: what the disk refuses for a moment is done
later, wherever the probe is."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.recordings.record.recorder import Outcome
from iolab.recordings.record.session import Preparation, Session
from iolab.recordings.record.settings import Settings
from iolab.recordings.record.sinks.intake import Sink
from iolab.recordings.store.base import layout, metadata
from iolab.recordings.store.read.recording import Recording
from support.clocks import SetClock
from support.recorder import FakeLauncher, FakeProbe, Listener

SECOND = 1_000_000_000
UP = 5000 * SECOND


def recorded(
    path: Path,
    clock: SetClock,
    heard: Listener,
    connection: Callable[[], Mapping[str, Any]] | None = None,
    pools: Callable[[], Sequence[str]] | None = None,
) -> tuple[Outcome, FakeLauncher]:
    """Half a minute, in which the first probe dies after five seconds."""
    launcher = FakeLauncher(
        lambda number, sources: FakeProbe(clock, sources, dies=5.5 if number == 0 else 1e9)
    )
    session = Session(
        Preparation(
            Settings(sources=("block",), duration=30.0, statistics=()),
            launcher,
            clock=clock,
            connection=connection,
            pools=pools,
        ),
        path,
        heard,
    )
    parts = session._recorder._parts
    parts.wait, parts.settled = (
        lambda files, seconds: clock.sleep(max(seconds, 0.001)),
        lambda: None,
    )
    return session.run(), launcher


def refusing(monkeypatch: pytest.MonkeyPatch, clock: SetClock, first: float, until: float) -> None:
    """The disk takes no `recording.json` between these seconds."""

    def write_json(*asked: Any) -> None:
        if first <= clock.monotonic() < until:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        layout.write_json(*asked)

    monkeypatch.setattr(metadata, "write_json", write_json)


@pytest.mark.parametrize("far", [False, True])
def test_another_probe_begins_while_the_disk_refuses_what_the_recording_is(
    far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, offsets = SetClock(), list[int]()

    def connection() -> Mapping[str, Any]:
        offsets.append(len(offsets))
        return {
            "host": "far",
            "connection": {"kind": "fake"},
            "clock_offset_ns": offsets[-1],
            "clock_offset_uncertainty_ns": 1,
        }

    refusing(monkeypatch, clock, 5.0, 9.0)
    heard = Listener()
    outcome, launcher = recorded(tmp_path / "r", clock, heard, connection if far else None)
    assert (outcome.reason, outcome.failure, len(launcher.launched)) == ("duration", None, 2)
    recording = Recording(tmp_path / "r")
    assert (
        sum(sum(each.sources.values()) for each in recording.segments())
        == outcome.status.events["block"]
        > 250
    )
    assert recording.facts.sessions[-1].get("clock_offset_ns") == (1 if far else None)
    assert recording.facts.origin.get("connection") == (
        {"host": "far", "kind": "fake"} if far else None
    )
    assert sum("Too many open files; it is tried again" in words for words in heard.notes) == far


def test_pools_are_told_by_the_recordings_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, known = SetClock(), list[Callable[[int], int]]()

    def sink(beneath: Sink, begin: object, describe: object, own_ns: Callable[[int], int]) -> Sink:
        known.append(own_ns)
        return beneath

    monkeypatch.setattr("iolab.recordings.record.session.PoolSink", sink)
    steps = [-3600.0]
    recorded(
        tmp_path / "r",
        clock,
        Listener(each=lambda: clock.set_ahead(steps.pop()) if steps else None),
        pools=lambda: ["true"],
    )
    assert known[0](clock.realtime_ns()) == clock.realtime_ns() + 3600 * SECOND


def test_growth_of_pools_stays_where_it_can_not_be_said_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    begun = clock.realtime_ns()

    def pools() -> Sequence[str]:
        readings = "".join(
            f"@ {begun + at * SECOND} {UP + at * SECOND}\npool\ttank\n-w\n\nvda\n2047\t{10 * at}"
            + "\t0" * 9
            + "\n-r\nend\n"
            for at in range(1, 4)
        )
        return ["printf", "%s", readings]

    refusing(monkeypatch, clock, 1.0, 20.0)
    with monkeypatch.context() as patch:
        # what the shell wrote is there before the first second is over
        patch.setattr("iolab.recordings.record.sinks.host_shell.os.set_blocking", lambda *_: None)
        outcome, _ = recorded(tmp_path / "r", clock, Listener(), pools=pools)
    assert (outcome.reason, outcome.failure) == ("duration", None)
    recording = Recording(tmp_path / "r")
    assert sum(each.sources.get("zpool", 0) for each in recording.segments()) == 20
    assert "zpool" in recording.facts.sources
