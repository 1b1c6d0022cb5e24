# SPDX-License-Identifier: Apache-2.0
"""Results with recordings, made run by run, for tests of the report's maps."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest_run
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.evidence.model import Run
from support import report_data

T0 = 1_700_000_000_000


def log(
    path: Path, start_ms: int, latency: int, *, count: int = 2000, offset: int = 0, seed: int = 1
) -> Trace:
    rng = random.Random(seed)
    times = sorted(rng.randrange(4000) for _ in range(count))
    path.write_text(
        "".join(
            f"{start_ms + time}, {round(latency * rng.uniform(0.5, 2))}, {at % 2}, {rng.choice([8192, 131072])}, "
            f"{offset + 4096 * rng.randrange(1000)}, 0\n"
            for at, time in enumerate(times)
        )
    )
    return Trace(path, "fio-lat")


class Study:
    """Results with recordings, made run by run."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs = path, list[Run]()
        self._made = 0

    def add(
        self,
        variant: str,
        repetition: int = 1,
        *,
        latency: int = 100_000,
        block: bool = False,
        recorded: bool = True,
        place: str = "directory",
        offset: int = 0,
        **factors: Any,
    ) -> None:
        self._made += 1
        number = self._made
        start = T0 + 10_000 * number
        evidence = self.path / "runs" / f"{number:04d}-00000000"
        evidence.mkdir(parents=True)
        extra: dict[str, Any] = {"place": {"path": "/x", "kind": place}}
        if recorded:
            self._ingest(
                "box",
                "fio",
                evidence.name,
                log(self.path / "a.log", start, latency, offset=offset, seed=number),
                start,
            )
            (evidence / "log_ios.json").write_text(
                json.dumps({"schema": 1, "recording": "recordings/box", "label": evidence.name})
            )
        if block:
            self._ingest(
                "watch",
                "block",
                evidence.name,
                log(self.path / "b.log", start, latency // 2, offset=2**36, seed=number),
                start,
            )
            extra["recording"] = {"path": "recordings/watch", "mark": evidence.name}
        window = (start * 10**6, (start + 4000) * 10**6)
        self.runs.append(
            report_data.run(
                number,
                variant,
                factors,
                {"write.iops": 1000.0},
                block=repetition,
                evidence=evidence,
                window=window,
                extra=extra,
            )
        )

    def _ingest(self, name: str, source: str, label: str, trace: Trace, start: int) -> None:
        place = self.path / "recordings" / name
        writer = (
            RecordingWriter.reopen(place, live=False)
            if (place / "recording.json").exists()
            else RecordingWriter.create(
                place, host=name, clock="realtime", origin={"kind": "run"}, live=False
            )
        )
        with writer:
            ingest_run(
                writer,
                label,
                [(trace, "iolab.0")],
                source=source,
                span=(start * 10**6, (start + 4000) * 10**6),
            )

    @property
    def source(self) -> report_data.HandMade:
        return report_data.HandMade(self.runs, self.path)
