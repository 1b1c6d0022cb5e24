# SPDX-License-Identifier: Apache-2.0
"""Sections of the report about what happened inside runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.output.report.assemble import assemble
from iolab.studies.results.evidence.files import write_plan
from iolab.studies.results.evidence.manifest import Manifest, write_manifest
from iolab.studies.results.evidence.marks import FILE, Mark
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.open.results import Results
from support.fio_files import job, output, write_run

T0 = 1_700_000_000_000_000_000


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Three runs of ten seconds, at half the rate after a mark at five."""
    for block in (1, 2, 3):
        plan = RunPlan(
            run=f"{block:04d}-aaaaaaaa",
            variant="master",
            factors={"numjobs": 4},
            repetition=block,
            block=block,
            jobs=4,
            runtime=10.0,
            window=(T0, T0 + 10 * 10**9),
            exit_code=0,
        )
        run_dir = tmp_path / "runs" / plan.run
        write_run(run_dir, output(job()), plan=plan)
        rates = [4000 + block] * 5 + [2000 + block] * 5
        rows = "".join(
            f"{T0 // 10**6 + 1000 * (second + 1)}, {rate}, 1, 0, 0\n"
            for second, rate in enumerate(rates)
        )
        (run_dir / "fio_iops.log").write_text(rows)
        (run_dir / FILE).write_text(
            Mark(T0 + 5 * 10**9, "action", "disk pulled", data={"exit_code": 0}).as_line()
        )
        write_plan(run_dir, plan)
    write_manifest(
        tmp_path,
        Manifest(
            name="marked",
            origin="run",
            created_ns=T0,
            iolab="0",
            variants=["master"],
            factors=["numjobs"],
        ),
    )
    return Results(tmp_path)


def test_windows_get_a_section_with_their_change(results: Results) -> None:
    payload, _ = assemble(results)
    section = next(section for section in payload.sections if section.name == "windows.write.iops")
    assert section.title.startswith("Windows: IOPS, writes")
    text = section.model_dump_json()
    assert "disk pulled" in text
    assert "−50.0\u00a0%" in text
    assert section.charts


def test_without_marks_there_is_no_such_section(results: Results) -> None:
    for path in results.path.glob("runs/*/marks.jsonl"):
        path.unlink()
    payload, _ = assemble(Results(results.path))
    assert not [section for section in payload.sections if section.name.startswith("windows.")]
