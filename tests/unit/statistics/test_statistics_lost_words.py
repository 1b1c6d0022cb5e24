# SPDX-License-Identifier: Apache-2.0
"""What was lost is told by kind: a start from before the recording is no record that was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.golden import Golden
from support.recordings import SECOND, START, events


@pytest.mark.parametrize(
    "losses",
    [
        [("unpaired", 1, 0)],
        [("unpaired", 2, 0), ("unpaired", 1, 2)],
        [("overrun", 1, 1)],
        [("overrun", 1, 1), ("missed", 1200, 1), ("damaged", 1, 2), ("unpaired", 1, 0)],
        [("overrun", None, 1)],
        [("overrun", None, 1), ("unpaired", 3, 0)],
        [("overrun", None, 1), ("missed", 1, 2)],
        [("damaged", None, 1), ("unpaired", None, 1)],
        [("unknown-name", 7, 1)],
    ],
)
def test_words_by_kind(
    tmp_path: Path,
    losses: list[tuple[str, int | None, int]],
    capsys: pytest.CaptureFixture[str],
    golden: Golden,
) -> None:
    clock = FakeClock(START)
    with RecordingWriter.create(
        tmp_path / "r",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        system=clock,
        sources={"block": {}},
    ) as writer:
        clock.sleep(3)
        writer.append_events(events(300, start_ns=START, per_s=100))
        for kind, count, second in losses:
            writer.loss(
                kind, "block", START + second * SECOND, START + second * SECOND + SECOND // 2, count
            )
        writer.tick(START + 3 * SECOND)
    found = query(Recording(tmp_path / "r"), "io.ops", interval_ns=SECOND)
    assert isinstance(found, Series)
    assert found.losses is not None
    assert found.losses.unpaired == sum(
        count or 0 for kind, count, _ in losses if kind == "unpaired"
    )
    assert run(["query", str(tmp_path / "r"), "io.ops", "--interval", "1s"]) == 0
    said = [
        line
        for line in capsys.readouterr().out.splitlines()
        if " column" in line and not line.startswith("each")
    ]
    golden("statistics/lost", "\n".join(said))
    assert run(["heatmap", str(tmp_path / "r")]) == 0
    out = capsys.readouterr().out
    assert ("1 unmatched issue or completion event" in out) == (found.losses.unpaired == 1)
    assert ("lost 1 record " in out.replace("\n", " ")) == (found.losses.lost == 1)
