# SPDX-License-Identifier: Apache-2.0
"""This machine as a host: what is its own beside the contract."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iolab.hosts.kinds import local
from iolab.hosts.kinds.local import LocalHost
from support.waiting import PATIENCE


@pytest.fixture
def handled() -> Iterator[None]:
    """A handler of SIGTERM, as a study has one."""
    previous = signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, previous)


@pytest.mark.parametrize("beside", [False, True])
def test_a_death_of_iolab_just_before_the_program_begins_is_not_missed(
    handled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """The signal comes when the child has asked for it and is still a copy of iolab, with its
    handlers. `beside`: in another thread."""
    real = local._die_with

    def die_with(parent: int) -> Callable[[], None]:
        ask = real(parent)

        def then() -> None:
            ask()
            os.kill(os.getpid(), signal.SIGTERM)

        return then

    monkeypatch.setattr(local, "_die_with", die_with)
    codes: list[int | None] = []

    def start() -> None:
        process = LocalHost().start(
            [sys.executable, "-c", "pass"],
            cwd=tmp_path,
            stdout=tmp_path / "o",
            stderr=tmp_path / "e",
        )
        codes.append(process.wait(PATIENCE))

    if beside:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join(PATIENCE)
    else:
        start()
    assert codes == [128 + signal.SIGTERM]
