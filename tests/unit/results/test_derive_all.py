# SPDX-License-Identifier: Apache-2.0
"""Runs derived side by side are what they are one after the other."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolab.base.integrity import FileDigest
from iolab.base.verdict import Level
from iolab.formats.core.tables import FioOutput
from iolab.formats.fio.json_output import FioJson
from iolab.studies.results.derive import derive_all as deriving
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.derive.derive_all import FEWEST, Item, derive_all
from iolab.studies.results.evidence.model import Derived, RunPlan
from support.fio_files import iostat, job, output, write_run


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    """More runs than are derived by one process, on two hosts of which the second changes its
    kernel."""
    found = []
    for number in range(FEWEST + 8):
        run_dir = tmp_path / f"{number:04d}"
        plan = RunPlan(
            run=run_dir.name, variant="master", factors={}, host="ab"[number % 2], jobs=4
        )
        text = output(job(iops=1000.0 + number)) if number != 7 else "{"
        write_run(run_dir, text, plan=plan, **{"iostat-sdb.txt": iostat([(800.0, 50.0)] * 10)})
        kernel = "6.2" if number == 9 else "6.1"
        (run_dir / "environment.json").write_text(json.dumps({"fingerprint": {"kernel": kernel}}))
        found.append((run_dir, plan))
    return found


def told(derived: Derived) -> bytes:
    return pickle.dumps(
        (
            derived.observations,
            derived.verdict,
            derived.environment,
            [one.name for one in derived.series],
        )
    )


def reference(items: list[Item]) -> list[bytes]:
    environments: dict[str, Mapping[str, str]] = {}
    found = []
    for run_dir, plan in items:
        found.append(derive(run_dir, plan, reference=environments.get(plan.host)))
        environments.setdefault(plan.host, dict(found[-1].environment))
    return [told(one) for one in found]


@pytest.mark.parametrize("forks", [True, False])
def test_side_by_side_as_one_after_the_other(
    items: list[Item], forks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "_may_fork", lambda: forks)
    found = [told(one) for one in derive_all(items)]
    assert found == reference(items)
    assert any(b"environment" in one for one in found), "the changed kernel is seen"


@pytest.mark.parametrize("forks", [True, False])
def test_what_was_read_already_is_checked_and_not_read_again(
    items: list[Item], forks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [(run_dir / "fio.json").read_bytes() for run_dir, _ in items]
    items = [
        (
            run_dir,
            replace(
                plan,
                files={
                    path.name: FileDigest.of(path.read_bytes())
                    for path in run_dir.iterdir()
                    if path.name != "run.json"
                },
            ),
        )
        for run_dir, plan in items
    ]
    known = {
        FileDigest.of(data).sha256: FioJson().read(data, "fio.json")
        for data in files
        if data != b"{"
    }
    (items[20][0] / "fio.json").write_text(output(job(iops=5.0)))
    wanted = reference(items)
    monkeypatch.setattr(deriving, "_may_fork", lambda: forks)
    read = FioJson.read

    def read_damaged(self: FioJson, data: bytes, where: str) -> FioOutput:
        assert data == b"{", "read again"
        return read(self, data, where)

    monkeypatch.setattr(FioJson, "read", read_damaged)
    found = list(derive_all(items, known))
    assert [told(one) for one in found] == wanted
    assert found[20].verdict.level is Level.INVALID, "a file that changed is not what was read"
    assert found[19].verdict.level is Level.OK


@pytest.mark.slow
def test_a_killed_process_costs_no_run(items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "_may_fork", lambda: True)
    here = os.getpid()

    def dying(run_dir: Path, plan: RunPlan, **options: Any) -> Derived:
        if os.getpid() != here and plan.run == "0030":
            os.kill(os.getpid(), signal.SIGKILL)
        return derive(run_dir, plan, **options)

    monkeypatch.setattr(deriving, "derive", dying)
    assert [told(one) for one in derive_all(items)] == reference(items)


def test_no_process_is_forked_beside_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not deriving._may_fork()
