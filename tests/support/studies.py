# SPDX-License-Identifier: Apache-2.0
"""Studies over time with their recordings, and a history of them."""

from __future__ import annotations

from pathlib import Path

from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.history.store import History
from iolab.studies.results.open.results import Results

from .fio_files import job, output
from .recordings import SECOND, START, events

CHANGE = 7
"""The first study with fewer I/Os."""


def import_study(home: Path, number: int, iops: int) -> Path:
    """Results of two runs, with a recording of both. `number` tells the studies apart."""
    from iolab.cli.main import run

    tree = home / "trees" / f"{number:02}"
    for repetition in (1, 2):
        place = tree / "now" / f"rep{repetition}"
        place.mkdir(parents=True)
        (place / "fio.json").write_text(
            output(job(iops=iops + repetition), minute=60 * number + repetition)
        )
    results = home / "results" / f"night-{number:02}"
    layout = ["--layout", "{variant}/rep{repetition:int}"]
    assert run(["import", str(tree), *layout, "-o", str(results)]) == 0
    start = START + number * 3600 * SECOND
    with RecordingWriter.create(
        results / "recordings/here",
        host="here",
        clock="realtime",
        origin={"kind": "run"},
        live=False,
    ) as writer:
        for place_of_run, run_of_study in enumerate(Results(results).runs):
            from_ns = start + place_of_run * 10 * SECOND
            writer.append_events(events(iops // 4, number, start_ns=from_ns, per_s=iops // 4))
            link = f"runs/{run_of_study.id}"
            writer.mark(run_of_study.id, from_ns, from_ns + SECOND, "run", link, {"variant": "now"})
    return results


def history_of_studies(home: Path, count: int = 12) -> Path:
    """A folder with `count` results, of which those from `CHANGE` on are slower, and their
    history."""
    history = History(home / "history", is_new=True)
    for number in range(1, count + 1):
        iops = (1000 if number < CHANGE else 600) + 7 * (number % 3)
        history.add(
            import_study(home, number, iops), revision=f"r{number}", tags={"night": str(number)}
        )
    return home
