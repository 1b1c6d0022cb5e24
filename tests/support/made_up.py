# SPDX-License-Identifier: Apache-2.0
"""A probe that makes its frames up (see `support.frames`), in the place of the one that runs as
root; and `iolab record` with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .waiting import PATIENCE, until

FRAMES = Path(__file__).parent / "frames.py"
_SOURCES = ("block", "syscall", "counters")


def made_up_probe(place: Path, monkeypatch: pytest.MonkeyPatch, **script: Any) -> Path:
    """Have a probe of a script be the one that is started, or brought elsewhere. Its log, with a
    line of JSON for each start."""
    log, path = place / "probe.log", place / "probe"
    log.touch()
    log.chmod(0o666)
    check = json.dumps({"sources": {name: {"available": True, "words": []} for name in _SOURCES}})
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = --check ]; then echo '{check}'; exit; fi\n"
        f"exec {sys.executable} {FRAMES} '{json.dumps({'log': str(log), **script})}' \"$@\"\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("IOLAB_PROBE", str(path))
    return log


def starts(log: Path) -> list[dict[str, Any]]:
    """How the probe was started, each time."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's own rights, not those of who called sudo; the test is left out where nobody has them."""
    if os.geteuid() != 0:
        pytest.skip("recording block needs root")
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def recording_itself(directory: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """`iolab record block` as a process of its own, once it listens; it is ended, if the test has
    not ended it."""
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "iolab.cli",
            "record",
            "block",
            "--quiet",
            "-o",
            str(directory),
            *more,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: (directory / "control").exists() or child.poll() is not None, "the recorder")
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate(timeout=PATIENCE)
