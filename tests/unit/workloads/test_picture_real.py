# SPDX-License-Identifier: Apache-2.0
"""Pictures drawn by the real fio through the whole of iolab, and read back from the recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.recordings.ask.query import heat
from iolab.recordings.ask.question import Question
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import run_study
from iolab.studies.workloads.picture.reading import ReadBack, drawn_in, read_back

pytestmark = [pytest.mark.fio, pytest.mark.figures]

FAIR = 0.7
"""Share and correlation that a picture has even where the machine is busy and starves fio; 0.95 and
more is usual, noise has below 0.2."""

STUDY = """
[study]
repetitions = 1
[target]
path = "{path}"
[workload]
kind = "picture"
{options}
"""


def drawn(tmp_path: Path, options: str) -> ReadBack:
    """Draw, and read back from the recording that the run left."""
    (tmp_path / "target").mkdir()
    (tmp_path / "study.toml").write_text(
        STUDY.format(path=tmp_path / "target", options=options), "utf-8"
    )
    results = run_study(tmp_path / "study.toml", tmp_path / "out")
    (run,) = Results(results).runs
    assert run.verdict.level is not Level.INVALID, [reason.text for reason in run.verdict.reasons]
    assert list((tmp_path / "target").iterdir()) == []
    canvas = drawn_in(run.evidence)
    (recording,) = (results / "recordings").iterdir()
    found = read_back(
        heat(
            Recording(recording),
            canvas.map,
            Question(interval_ns=10_000_000, buckets=4096 if canvas.map == "offset" else None),
        ),
        canvas,
    )
    print(f"picture in the {canvas.map} map: {found.words()}")
    return found


def test_the_offset_picture_is_read_back(fio: str, tmp_path: Path) -> None:
    found = drawn(
        tmp_path, 'map = "offset"\ntext = "iolab"\nruntime = "8s"\nper_pixel = 40\nsize = "16m"'
    )
    assert found.correlation > FAIR
    assert found.share > FAIR


@pytest.mark.deep
def test_the_size_picture_is_read_back(fio: str, tmp_path: Path) -> None:
    found = drawn(
        tmp_path,
        'map = "size"\ntext = "iolab"\nruntime = "8s"\nper_pixel = 30\nsize = "16m"\nop = "write"',
    )
    assert found.correlation > FAIR
    assert found.share > FAIR


@pytest.mark.exclusive
def test_the_latency_picture_stands_out(fio: str, tmp_path: Path) -> None:
    """How much depends on what else the machine does; chance would give the share of the picture
    that is lit."""
    found = drawn(tmp_path, 'map = "latency"\ntext = "io"\nruntime = "8s"')
    assert found.share > found.area
    assert found.correlation > 0.25
    assert found.contrast > 1.5


def test_a_bitmap_in_a_place_with_a_strange_name(fio: str, tmp_path: Path) -> None:
    odd = tmp_path / "a b:c"
    odd.mkdir()
    found = drawn(
        odd,
        'bitmap = """\n#.#\n.#.\n"""\nruntime = "2s"\nper_pixel = 30\nsize = "4m"\ninverse = true\ndirect = false',
    )
    assert found.correlation > FAIR
