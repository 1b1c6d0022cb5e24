# SPDX-License-Identifier: Apache-2.0
"""A run whose load came from several clients: sums, parts, the gate, and damaged evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.verdict import Level
from iolab.studies.results.derive.clients import client_runs
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.clients import ClientRun, clients_of, common_window
from iolab.studies.results.evidence.files import read_plan, write_plan
from iolab.studies.results.evidence.model import Derived, Run, RunPlan
from iolab.studies.results.facts.run_facts import Monitor, RunFacts
from iolab.studies.results.gates.monitor_alive import MonitorAliveGate
from support.fio_files import job, output

START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def client(name: str, late: float = 0.0, early: float = 0.0, **more: Any) -> ClientRun:
    """A client whose window of 10 s begins late and ends early by so many seconds."""
    window = (START + round(late * SECOND), START + round((10 - early) * SECOND))
    return ClientRun(name, f"ssh:{name}", exit_code=0, **{"window": window, **more})


def run_of(
    run_dir: Path, *clients: ClientRun, rates: dict[str, float] | None = None, **more: Any
) -> tuple[RunPlan, Derived]:
    """A run of these clients, each with a result of four jobs, and what is derived of it."""
    run_dir.mkdir()
    for one in clients:
        own = run_dir / "clients" / one.name
        own.mkdir(parents=True)
        rate = (rates or {}).get(one.name, 4000.0)
        entry = job(jobs=4, iops=rate, runtime=10.0)
        (own / "fio.json").write_text(output(entry, minute=0, numjobs="4"))
    plan = RunPlan(
        "0001-x",
        "v",
        {"clients": len(clients)},
        jobs=4 * len(clients),
        depth=1,
        runtime=10.0,
        window=common_window(clients),
        **{"extra": {"time_based": True, "clients": [one.as_data() for one in clients]}, **more},
    )
    write_plan(run_dir, plan)
    plan = read_plan(run_dir)
    return plan, derive(run_dir, plan)


def reasons(derived: Derived) -> dict[str, Level]:
    return {reason.code: reason.level for reason in derived.verdict.reasons}


def values(derived: Derived) -> dict[str, float]:
    return {one.metric: one.value for one in derived.observations}


def test_rates_are_summed_and_each_client_keeps_its_part(tmp_path: Path) -> None:
    plan, derived = run_of(
        tmp_path / "r", client("a"), client("b"), rates={"a": 4000.0, "b": 2000.0}
    )
    found = values(derived)
    assert found["write.iops"] == 6000
    assert found["write.ios"] == 60_000
    assert found["write.bytes"] == 60_000 * 8192
    assert found["littles_law"] == pytest.approx(1.0)
    # 1000 timed I/Os of each took 1 ms and 2 ms
    assert found["write.lat.mean"] == pytest.approx(1.5e-3)
    assert derived.verdict.level is Level.OK
    assert reasons(derived) == {"client-slower": Level.OK}
    iops = next(one for one in derived.observations if one.metric == "write.iops")
    assert (iops.source_file, iops.source_field) == (
        "clients/a/fio.json",
        "sum of 2 jobs of 2 clients: write.iops",
    )
    run = Run(
        plan,
        tmp_path / "r",
        {one.metric: one for one in derived.observations},
        derived.verdict,
    )
    parts = {str(part.factors["client"]): part for part in client_runs(run)}
    assert {name: part.value("write.iops") for name, part in parts.items()} == {
        "a": 4000.0,
        "b": 2000.0,
    }
    assert parts["b"].value("littles_law") == pytest.approx(1.0)
    assert parts["b"].id == "0001-x/b"
    assert sum(part.value("write.bytes") or 0 for part in parts.values()) == found["write.bytes"]
    assert client_runs(parts["a"]) == []


@pytest.mark.parametrize(
    ("late", "early", "level"),
    [
        (0.0, 0.0, None),
        (0.19, 0.0, None),
        (0.21, 0.0, Level.SUSPECT),
        (0.0, 0.21, Level.SUSPECT),
        (0.5, 0.5, Level.SUSPECT),
        (0.6, 0.5, Level.INVALID),
        (11.0, -11.0, Level.INVALID),
    ],
)
def test_the_share_without_all_clients_decides(
    tmp_path: Path, late: float, early: float, level: Level | None
) -> None:
    _, derived = run_of(tmp_path / "r", client("a"), client("b", late, early), client("c"))
    assert reasons(derived).get("clients-apart") is level
    if level is not None and late < 10:
        reason = next(one for one in derived.verdict.reasons if one.code == "clients-apart")
        assert reason.data["share"] == pytest.approx((late + max(early, 0)) / 10)
        assert "b" in reason.text


def test_clocks_are_noted_and_doubtful_ones_suspect(tmp_path: Path) -> None:
    ahead = client("a", clock_offset_ns=3 * SECOND, clock_uncertainty_ns=200_000)
    _, derived = run_of(tmp_path / "noted", ahead, client("b"))
    assert reasons(derived) == {"client-clock": Level.OK}
    stepped = client(
        "a", clock_offset_ns=SECOND, clock_uncertainty_ns=SECOND, clock_change_ns=2 * SECOND
    )
    _, derived = run_of(tmp_path / "stepped", stepped, client("b"))
    assert reasons(derived) == {"client-clock": Level.SUSPECT}
    assert "changed by 2.000 s" in derived.verdict.reasons[0].text
    _, derived = run_of(tmp_path / "unknown", client("a", window=None), client("b"))
    assert reasons(derived)["client-window"] is Level.SUSPECT


def test_a_missing_result_is_never_a_smaller_sum(tmp_path: Path) -> None:
    plan, _ = run_of(tmp_path / "r", client("a"), client("b"))
    (tmp_path / "r/clients/b/fio.json").unlink()
    derived = derive(tmp_path / "r", plan)
    assert derived.verdict.level is Level.INVALID
    assert "write.iops" not in values(derived)
    (tmp_path / "r/run.json").unlink()
    write_plan(tmp_path / "r", plan)  # as if it had never been there
    derived = derive(tmp_path / "r", read_plan(tmp_path / "r"))
    assert "client b left no result" in derived.verdict.reasons[0].text
    assert "write.iops" not in values(derived)


def test_a_failed_client_names_itself_once(tmp_path: Path) -> None:
    failed = client("b", status="failed", reason="exit code 137")
    ended = client("a", status="ended", reason="ended because client b failed")
    _, derived = run_of(tmp_path / "r", ended, failed, status="failed")
    found = [one.text for one in derived.verdict.reasons if one.code == "client-failed"]
    assert found == ["client b: exit code 137"]
    assert "write.iops" not in values(derived)


def test_logs_of_clients_are_read_by_the_servers_clock(tmp_path: Path) -> None:
    run_dir = tmp_path / "r"
    clients = (client("a"), client("b", clock_offset_ns=3 * SECOND))
    run_of(run_dir, *clients)
    for one, ahead in (("a", 0), ("b", 3000)):
        lines = [
            f"{START // 1_000_000 + ahead + 1000 * second}, 100, 1, 0, 0" for second in range(1, 11)
        ]
        (run_dir / f"clients/{one}/fio_bw.log").write_text("\n".join(lines) + "\n")
    plan = read_plan(run_dir)
    (run_dir / "run.json").unlink()
    write_plan(run_dir, plan)
    series = {one.name: one for one in derive(run_dir, read_plan(run_dir)).series}
    assert series["write.bw"].values.tolist() == [200 * 1024.0] * 10


@pytest.mark.parametrize(
    "entries",
    [
        7,
        "ab",
        [],
        [7],
        [{}],
        [{"name": "../x"}],
        [{**client("a").as_data(), "name": "../../etc"}],
        [{**client("a").as_data(), "name": ".."}],
        [{**client("a").as_data(), "name": ""}],
        [{**client("a").as_data(), "window": [1]}],
        [{**client("a").as_data(), "window": [2, 1]}],
        [{**client("a").as_data(), "window": [1, 2**70]}],
        [{**client("a").as_data(), "clock_offset_ns": "3"}],
        [{**client("a").as_data(), "clock_offset_ns": 2**70}],
        [client("a").as_data(), client("a").as_data()],
    ],
)
def test_damaged_entries_cost_the_run(tmp_path: Path, entries: Any) -> None:
    plan, _ = run_of(tmp_path / "r", client("a"))
    plan = RunPlan(**{**vars(plan), "extra": {"clients": json.loads(json.dumps(entries))}})
    derived = derive(tmp_path / "r", plan)
    assert derived.verdict.level is Level.INVALID
    run = Run(plan, tmp_path / "r", {}, derived.verdict)
    assert client_runs(run) == []


def test_windows_without_a_common_time_have_none() -> None:
    assert common_window((client("a"), client("b", 2.0))) == (
        START + 2 * SECOND,
        START + 10 * SECOND,
    )
    assert common_window((client("a"), client("b", 11.0, -20.0))) is None
    assert common_window((client("a"), client("b", window=None))) is None
    assert clients_of(RunPlan("r", "v", {})) == ()


def test_results_of_fios_own_clients_have_parts_too(tmp_path: Path) -> None:
    entries = [
        {**job(jobs=1, iops=rate), "hostname": name}
        for name, rate in (("h1", 100.0), ("h2", 300.0))
    ]
    document = json.loads(output(minute=0))
    del document["jobs"]
    document["client_stats"] = [*entries, {**job(jobs=2, iops=400.0), "jobname": "All clients"}]
    (tmp_path / "r").mkdir()
    (tmp_path / "r/fio.json").write_text(json.dumps(document, indent=1))
    write_plan(tmp_path / "r", RunPlan("0001-x", "v", {}, status="imported"))
    plan = read_plan(tmp_path / "r")
    derived = derive(tmp_path / "r", plan)
    run = Run(plan, tmp_path / "r", {}, derived.verdict)
    assert {str(part.factors["client"]): part.value("write.iops") for part in client_runs(run)} == {
        "h1": 100.0,
        "h2": 300.0,
    }


@pytest.mark.parametrize(("samples", "due"), [(5, []), (4, []), (3, [5])])
def test_monitors_are_judged_by_the_time_in_which_all_clients_measured(
    samples: int, due: list[int]
) -> None:
    clients = (client("a", late=5), client("b"))
    plan = RunPlan("0001-x", "v", {}, runtime=10.0, window=common_window(clients))
    facts = RunFacts(plan, clients=clients, monitors=(Monitor("cpu.log", "cpu", samples, 1.0),))
    found = list(MonitorAliveGate().judge(facts))
    assert [reason.data["due"] for reason in found if reason.code == "monitor-dead"] == due
