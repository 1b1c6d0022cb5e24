# SPDX-License-Identifier: Apache-2.0
"""What every gate must do: judge whatever evidence there is without raising, and give reasons that
can be stored and read."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.base import registry
from iolab.base.verdict import Level, Reason
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.facts.run_facts import RunFacts
from support.fio_files import idle, iostat, job, output, write_run

PLANS = {
    "as planned": RunPlan(
        run="0001-aaaaaaaa",
        variant="master",
        factors={"numjobs": 4},
        jobs=4,
        runtime=10.0,
        exit_code=0,
    ),
    "nothing known": RunPlan(run="0001-aaaaaaaa", variant="?", factors={}, status="failed"),
    "ended by a signal": RunPlan(
        run="0001-aaaaaaaa", variant="master", factors={}, jobs=4, runtime=10.0, exit_code=-9
    ),
    "zero": RunPlan(
        run="0001-aaaaaaaa",
        variant="master",
        factors={"numjobs": 0},
        jobs=0,
        depth=0,
        runtime=0.0,
        offered_iops=0.0,
        exit_code=0,
    ),
    "huge": RunPlan(
        run="0001-aaaaaaaa",
        variant="master",
        factors={},
        jobs=10**9,
        runtime=1e300,
        offered_iops=1e300,
        exit_code=0,
    ),
}
ROWS = iostat([(1000.0, 50.0)] * 10)
EVIDENCE: dict[str, Callable[[], tuple[str, dict[str, str]]]] = {
    "whole": lambda: (output(job()), {"iostat-sda_txt": ROWS}),
    "no job": lambda: (output(), {}),
    "no I/O": lambda: (output({**job(), "write": idle()}), {}),
    "cut off": lambda: (output(job())[:200], {"iostat-sda_txt": ROWS[:40]}),
    "empty": lambda: ("", {"iostat-sda_txt": ""}),
}


@pytest.fixture(params=registry.names("gate"))
def gate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[(plan, evidence) for plan in PLANS for evidence in EVIDENCE], ids="-".join)
def facts(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunFacts:
    plan, evidence = request.param
    text, files = EVIDENCE[evidence]()
    write_run(tmp_path, text, plan=PLANS[plan], **files)
    seen: list[RunFacts] = []
    capture: Callable[[RunFacts], list[Reason]] = lambda facts: seen.append(facts) or []  # type: ignore[func-returns-value]  # noqa: E731
    monkeypatch.setattr("iolab.studies.results.derive.derive.judge", capture)
    derive(tmp_path, PLANS[plan])
    return seen[0]


def test_it_judges_whatever_evidence_there_is(gate: str, facts: RunFacts) -> None:
    judge = registry.load("gate", gate)().judge
    reasons = list(judge(facts))
    assert reasons == list(judge(facts)), "judged again, the same facts give the same reasons"
    for reason in reasons:
        assert reason.level in (Level.OK, Level.SUSPECT, Level.INVALID)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reason.code)
        assert reason.text
        assert "\n" not in reason.text
        assert Reason.from_json(json.loads(json.dumps(reason.as_json()))) == reason


def test_it_says_what_it_looks_at(gate: str) -> None:
    assert len(inspect.getdoc(registry.load("gate", gate)) or "") > 40
