# SPDX-License-Identifier: Apache-2.0
"""The probe at work in a test: its frames, read back."""

from __future__ import annotations

import collections
import contextlib
import os
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolab import _core

from .waiting import PATIENCE, until

ROOT = Path(__file__).parent.parent.parent
PROBE = ROOT / "python/iolab/_probe/iolab-probe"
TRACEFS = Path("/sys/kernel/tracing")


def need_probe() -> Path:
    """The probe's path; the test is left out where it is not built."""
    if not PROBE.exists():
        pytest.skip("the probe is not built (make setup)")
    return PROBE


def need_tracing() -> None:
    """Leave the test out where nothing can be traced; tracefs is mounted where root may do that."""
    need_probe()
    if os.geteuid() != 0:
        pytest.skip("tracing needs root")
    if not (TRACEFS / "events").exists():
        subprocess.run(
            ["mount", "-t", "tracefs", "tracefs", str(TRACEFS)], capture_output=True, check=False
        )
    if not (TRACEFS / "events/block/block_rq_issue/format").exists():
        pytest.skip("this kernel's tracefs cannot be mounted here, or has no block tracepoints")


def instances_of(pid: int) -> list[str]:
    """Instances of tracefs that a probe made."""
    place = TRACEFS / "instances"
    return (
        [entry.name for entry in place.iterdir() if entry.name.startswith(f"iolab-{pid}-")]
        if place.exists()
        else []
    )


@dataclass
class Probe:
    """A running probe. Its standard output is read by a thread all along."""

    process: subprocess.Popen[bytes]
    frames: list[dict[str, Any]] = field(default_factory=list)
    torn: int = 0
    thread: threading.Thread | None = None

    @classmethod
    def start(cls, *arguments: str) -> Probe:
        process = subprocess.Popen(
            [str(PROBE), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        probe = cls(process)
        probe.thread = threading.Thread(target=probe._read, daemon=True)
        probe.thread.start()
        until(lambda: probe.frames or process.poll() is not None, "the probe's hello")
        return probe

    def _read(self) -> None:
        reader = _core.FrameReader()
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), 1 << 20):
            self.frames.extend(reader.feed(data))
        self.torn = reader.unfinished()

    def stop(self) -> int:
        """Close its standard input; its exit code."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.ended()

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        code = self.process.wait(timeout=PATIENCE)
        assert self.thread is not None
        self.thread.join(timeout=PATIENCE)
        return code

    def words(self) -> str:
        """What it wrote to standard error; only after its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def readings(self, more: int) -> None:
        """Wait until so many more readings of counters have come."""
        wanted = self._read_so_far() + more
        until(lambda: self._read_so_far() >= wanted, f"{more} readings")

    def _read_so_far(self) -> int:
        return sum(frame["source"] == "cpu" for frame in self.of("samples"))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Frames of a kind."""
        return [frame for frame in self.frames if frame["kind"] == kind]


@dataclass
class Events:
    """Columns of all events of a source, names instead of their numbers (None where there is none)."""

    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(self.columns["time_ns"])

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


_NUMBERS = {
    "time_ns": "<i8",
    "latency_ns": "<u8",
    "queue_ns": "<u8",
    "offset_bytes": "<u8",
    "size_bytes": "<u8",
    "pid": "<u4",
    "thread": "<u4",
    "latency_bucket": "<u2",
}
_NAMES = ("device", "process", "file", "mount", "client", "error", "flags")


def events_of(probe: Probe, source: str = "block") -> Events:
    """All events of a source: numbers as arrays of float (nan where there is none; time as
    integers), names as arrays of objects."""
    parts: dict[str, list[Any]] = collections.defaultdict(list)
    names: dict[str, list[str]] = collections.defaultdict(list)
    for frame in probe.of("events"):
        if frame["source"] != source:
            continue
        for name, kind in _NUMBERS.items():
            values = np.frombuffer(frame[name], kind)
            valid = frame.get(f"{name}_valid")
            parts[name].append(
                values
                if valid is None
                else np.where(np.frombuffer(valid, "u1") == 1, values.astype(float), np.nan)
            )
        parts["op"].append(
            np.array(_core.trace_ops(), dtype=object)[np.frombuffer(frame["op"], "u1")]
        )
        for name in _NAMES:
            if frame[f"{name}_restarted"]:
                names[name] = []
            names[name].extend(frame[f"{name}_names"])
            known = np.array([*names[name], None], dtype=object)
            ids = np.frombuffer(frame[name], "<u4").astype(np.int64)
            parts[name].append(
                known[
                    np.where(np.frombuffer(frame[f"{name}_valid"], "u1") == 1, ids, len(known) - 1)
                ]
            )
    empty: list[Any] = [np.array([])]
    return Events(
        {name: np.concatenate(parts.get(name) or empty) for name in [*_NUMBERS, "op", *_NAMES]}
    )


def number_of(device: str) -> str:
    """MAJOR:MINOR of a block device."""
    status = Path(device).stat()
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
