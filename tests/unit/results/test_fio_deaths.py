# SPDX-License-Identifier: Apache-2.0
"""How fio dies, and what the evidence says of it: the cases that a rate alone would hide."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from iolab.base.verdict import Level, Verdict
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from support.fio_files import idle, job, output, write_run

PLAN = RunPlan(
    run="0001-aaaaaaaa", variant="master", factors={"numjobs": 4}, jobs=4, runtime=10.0, exit_code=0
)


def judged(tmp_path: Path, text: str | bytes | None, plan: RunPlan = PLAN) -> Verdict:
    write_run(tmp_path, text, plan=plan)
    return derive(tmp_path, plan).verdict


def codes(verdict: Verdict) -> set[str]:
    return {reason.code for reason in verdict.blames}


def test_a_healthy_run_is_ok(tmp_path: Path) -> None:
    verdict = judged(tmp_path, output(job(), numjobs="4", runtime="10"))
    assert verdict == Verdict(Level.OK, ())


def test_exit_code_0_with_256_failed_jobs(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, jobs=256)
    entries = [
        {**job(jobs=1, iops=50.0, error=28), "jobname": f"job{number}"} for number in range(256)
    ]
    verdict = judged(tmp_path, output(*entries), plan)
    assert verdict.level is Level.INVALID
    reason = next(reason for reason in verdict.reasons if reason.code == "job-error")
    assert reason.data == {"errno": 28, "entries": 256}
    assert "ENOSPC (No space left on device) in 256 of 256 entries" in reason.text


def test_one_failed_job_in_a_group_of_four_beside_a_healthy_rate(tmp_path: Path) -> None:
    verdict = judged(tmp_path, output(job(error=5), numjobs="4"))
    assert (verdict.level, codes(verdict)) == (Level.INVALID, {"job-error"})
    assert "EIO" in verdict.blames[0].text


def test_interrupted_with_a_healthy_looking_rate(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, exit_code=130)
    verdict = judged(
        tmp_path, "fio: terminating on signal 2\n" + output(job(runtime=3.2), runtime="10"), plan
    )
    assert verdict.level is Level.INVALID
    assert codes(verdict) == {"exit-code", "runtime", "text-in-json"}
    assert "ended early, after 3.200 s of 10.00 s" in " ".join(
        reason.text for reason in verdict.reasons
    )


def test_interrupted_in_a_foreign_tree_without_exit_code_or_plan(tmp_path: Path) -> None:
    plan = RunPlan(run="0001-aaaaaaaa", variant="master", factors={}, status="imported")
    verdict = judged(tmp_path, output(job(runtime=3.2), numjobs="4", runtime="10"), plan)
    assert (verdict.level, codes(verdict)) == (Level.INVALID, {"runtime"})


@pytest.mark.parametrize("text", [b"", b"\n"])
def test_an_empty_file(tmp_path: Path, text: bytes) -> None:
    verdict = judged(tmp_path, text, dataclasses.replace(PLAN, exit_code=137))
    assert verdict.level is Level.INVALID
    assert {"damaged-file", "exit-code"} <= codes(verdict)
    assert "empty" in verdict.blames[0].text
    assert "ended by signal 9" in " ".join(reason.text for reason in verdict.blames)


def test_no_file(tmp_path: Path) -> None:
    verdict = judged(tmp_path, None, dataclasses.replace(PLAN, exit_code=1))
    assert (verdict.level, codes(verdict)) == (Level.INVALID, {"no-result", "exit-code"})


def test_text_before_the_json_is_suspect(tmp_path: Path) -> None:
    text = (
        "fio: io_u error on file /tank/a.0.0: Input/output error: write offset=8192, buflen=8192\n"
    )
    verdict = judged(tmp_path, text + output(job()))
    assert (verdict.level, codes(verdict)) == (Level.SUSPECT, {"text-in-json"})
    assert "io_u error" in verdict.blames[0].text


def test_cut_json(tmp_path: Path) -> None:
    verdict = judged(tmp_path, output(job())[:900])
    assert (verdict.level, codes(verdict)) == (Level.INVALID, {"damaged-file"})


def test_no_io_at_all(tmp_path: Path) -> None:
    verdict = judged(tmp_path, output({**job(), "write": idle()}))
    assert (verdict.level, codes(verdict)) == (Level.INVALID, {"no-io"})


def test_too_few_jobs(tmp_path: Path) -> None:
    entries = [job(jobs=1, iops=1000.0) for _ in range(3)]
    verdict = judged(tmp_path, output(*entries))
    assert codes(verdict) >= {"job-count"}
    assert verdict.level is Level.INVALID


def test_another_number_of_jobs_than_planned(tmp_path: Path) -> None:
    verdict = judged(tmp_path, output(job(), numjobs="8"))
    assert "job-count" in codes(verdict)


def test_a_status_of_failed_counts_whatever_the_files_say(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, status="failed", extra={"failure": "the target was full"})
    verdict = judged(tmp_path, output(job()), plan)
    assert (verdict.level, verdict.blames[0].text) == (Level.INVALID, "the target was full")
