"""Runs derived side by side are what they are one after the other."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from iolab.results.derive import derive_all as deriving
from iolab.results.derive.derive import derive
from iolab.results.derive.derive_all import FEWEST, Item, derive_all
from iolab.results.evidence.model import Derived, RunPlan
from support.fio_files import iostat, job, output, write_run


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    """More runs than are derived by one process, on two hosts of which the second changes its kernel."""
    found = []
    for number in range(FEWEST + 8):
        run_dir = tmp_path / f"{number:04d}"
        plan = RunPlan(run=run_dir.name, variant="master", factors={}, host="ab"[number % 2], jobs=4)
        text = output(job(iops=1000.0 + number)) if number != 7 else "{"
        write_run(run_dir, text, plan=plan, **{"iostat-sdb.txt": iostat([(800.0, 50.0)] * 10)})
        kernel = "6.2" if number == 9 else "6.1"
        (run_dir / "environment.json").write_text(json.dumps({"fingerprint": {"kernel": kernel}}))
        found.append((run_dir, plan))
    return found


def told(derived: Derived) -> bytes:
    return pickle.dumps((derived.observations, derived.verdict, derived.environment, [one.name for one in derived.series]))


def reference(items: list[Item]) -> list[bytes]:
    environments: dict[str, Mapping[str, str]] = {}
    found = []
    for run_dir, plan in items:
        found.append(derive(run_dir, plan, reference=environments.get(plan.host)))
        environments.setdefault(plan.host, dict(found[-1].environment))
    return [told(one) for one in found]


@pytest.mark.parametrize("forks", [True, False])
def test_side_by_side_as_one_after_the_other(items: list[Item], forks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "_may_fork", lambda: forks)
    found = [told(one) for one in derive_all(items)]
    assert found == reference(items)
    assert any(b"environment" in one for one in found), "the changed kernel is seen"


@pytest.mark.slow
def test_a_killed_process_costs_no_run(items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "_may_fork", lambda: True)
    here, kill = os.getpid(), deriving.derive

    def dying(run_dir: Path, plan: RunPlan, **options: Mapping[str, str]) -> Derived:
        if os.getpid() != here and plan.run == "0030":
            os.kill(os.getpid(), signal.SIGKILL)
        return kill(run_dir, plan, **options)

    monkeypatch.setattr(deriving, "derive", dying)
    assert [told(one) for one in derive_all(items)] == reference(items)


def test_no_process_is_forked_beside_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(deriving.threading, "active_count", lambda: 2)
    assert not deriving._may_fork()
