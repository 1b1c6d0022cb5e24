# SPDX-License-Identifier: Apache-2.0
"""The gate runs every step, whatever fails, and lists every failure."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

CARGO = """
running 2 tests
.F
failures:

---- grid::tests::adds stdout ----

thread 'grid::tests::adds' panicked at src/grid.rs:7:9:
assertion failed: 1 == 2

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
running 3 tests
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
"""
VITEST = {
    "numPassedTests": 4,
    "testResults": [
        {
            "name": "/x/tests/spaces.test.ts",
            "assertionResults": [
                {"status": "passed", "fullName": "maps zoom", "failureMessages": []},
                {"status": "failed", "fullName": "maps move", "failureMessages": ["a\nb"]},
            ],
        }
    ],
}
PYTEST = {
    "passed": 7,
    "failed": [["tests/test_a.py::test_b", "assert 1 == 2"]],
    "skipped": {"fio is missing": 2},
    "retried": [["tests/test_a.py::test_c", "timed out"]],
}


@pytest.fixture
def gate(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module that writes below a directory of the test."""
    spec = importlib.util.spec_from_file_location("gate", root / "scripts/gate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gate", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOGS", tmp_path)
    return module


def python(code: str) -> Sequence[str]:
    return sys.executable, "-c", code


def prints(text: str, code: int = 1) -> Sequence[str]:
    return python(f"import sys; print({text!r}); sys.exit({code})")


def reports(document: object, code: int) -> Sequence[str]:
    """What a test runner does: it writes its counts to $IOLAB_TEST_REPORT."""
    return python(
        "import os, pathlib, sys; "
        f"pathlib.Path(os.environ['IOLAB_TEST_REPORT']).write_text({json.dumps(document)!r}); "
        f"sys.exit({code})"
    )


def test_every_failure_of_every_step_is_listed(
    gate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        gate.Step("lint", prints("a.py:1:1 unused"), gate.read_check, 0.5),
        gate.Step("format", prints("", 0), gate.read_check, 0.5),
        gate.Step("rust", prints(CARGO), gate.read_cargo),
        gate.Step("vitest", reports(VITEST, 1), gate.read_vitest),
        gate.Step("unit", reports(PYTEST, 1), gate.read_pytest),
        gate.Step("rig", prints("not reached"), gate.read_check, why_not=lambda: "no qemu"),
    ]
    outcomes = gate.Runner(steps, {}).run()
    assert [step.name for step in outcomes] == [step.name for step in steps]
    assert gate.summarize(outcomes, 12.0, retry_fails=False) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    table = {line.split()[0]: line.split()[1] for line in lines[2 : 2 + len(steps)]}
    assert table == {
        "lint": "FAILED", "format": "ok", "rust": "FAILED", "vitest": "FAILED", "unit": "FAILED", "rig": "left"
    }  # fmt: skip
    failed = lines[lines.index("failed:") + 1 :]
    assert failed[0] == "lint: a.py:1:1 unused"
    assert failed[1].startswith("grid::tests::adds: thread 'grid::tests::adds' panicked")
    assert failed[2:4] == ["spaces.test.ts: maps move: a", "tests/test_a.py::test_b: assert 1 == 2"]
    assert "rig: no qemu" in lines
    assert "2 tests: fio is missing" in lines
    assert "tests/test_a.py::test_c: timed out" in lines
    assert lines[-1] == "===== 4 failed, 15 passed, 2 skipped, 1 rerun in 12.00s ====="


def test_a_retried_test_fails_at_full_depth(
    gate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    step = gate.Step("unit", reports({**PYTEST, "failed": []}, 0), gate.read_pytest)
    outcomes = gate.Runner([step], {}).run()
    assert gate.summarize(outcomes, 1.0, retry_fails=False) == 0
    assert gate.summarize(outcomes, 1.0, retry_fails=True) == 1
    assert "was retried: timed out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reader", "command"),
    [
        ("read_pytest", prints("Segmentation fault", 139)),
        ("read_pytest", reports({**PYTEST, "failed": []}, 3)),
        ("read_vitest", prints("npm: not found", 127)),
        ("read_cargo", prints("error: could not compile", 101)),
        ("read_check", prints("", 2)),
    ],
)
def test_a_runner_that_dies_is_a_failure(
    gate: ModuleType, reader: str, command: Sequence[str]
) -> None:
    step = gate.Step("unit", command, getattr(gate, reader))
    [outcome] = gate.Runner([step], {}).run().values()
    assert len(outcome.failed) == 1


def test_steps_share_the_machine_and_others_have_it_alone(gate: ModuleType) -> None:
    def step(name: str, share: float, follows: str = "") -> object:
        command = python("import time; time.sleep(0.5)")
        return gate.Step(name, command, gate.read_check, share, follows)

    steps = [step("a", 0.5), step("after a", 0.5, "a"), step("b", 0.5), step("alone", 1.0)]
    runner = gate.Runner(steps, {})
    runner._start()
    assert [step.name for step in runner._running] == ["a", "b"]
    outcomes = runner.run()
    assert [step.name for step in outcomes] == ["a", "after a", "b", "alone"]
    assert all(outcome.seconds > 0.4 for outcome in outcomes.values())


def test_the_cpu_time_of_a_step_is_that_of_all_its_processes(gate: ModuleType) -> None:
    compute = "import time\nwhile time.process_time() < 0.3: pass"
    child = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {compute!r}]); {compute}"
    )
    steps = [
        gate.Step("computes", python(child), gate.read_check, 0.5),
        gate.Step("waits", python("import time; time.sleep(0.7)"), gate.read_check, 0.5),
    ]
    computes, waits = gate.Runner(steps, {}).run().values()
    assert not computes.failed
    assert computes.cpu_s >= 0.6
    assert waits.cpu_s < 0.5


def test_exclusive_tests_run_alone(gate: ModuleType) -> None:
    [step] = [step for step in gate.steps_of("test", False) if step.name == "exclusive"]
    assert step.share == 1
    assert step.command[step.command.index("-m", 3) :] == ("-m", "exclusive and not deep")
    assert "-n" not in step.command


def test_inputs_pass_once_and_not_after_a_change(
    gate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    inputs = gate.Inputs("rig", gate.RIG_INPUTS)
    assert inputs.passed() == ""
    inputs.remember()
    again = gate.Inputs("rig", gate.RIG_INPUTS)
    assert again._digest in again.passed()
    assert gate.Inputs("rig", gate.RIG_INPUTS[:-1]).passed() == ""


def test_every_marker_belongs_to_a_step(gate: ModuleType) -> None:
    words = " ".join(
        word for group in ("test", "wheel", "rig") for step in gate.steps_of(group, False) for word in step.command
    )  # fmt: skip
    for marker in ("browser", "fio", "loops", "tracing", "exclusive"):
        assert marker in words


@pytest.mark.parametrize(("space", "is_used"), [(0, True), (1 << 62, False)])
def test_temporary_files_are_in_memory_where_there_is_space(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, space: int, is_used: bool
) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(gate, "MEMORY", memory)
    monkeypatch.setattr(gate, "SPACE", space)
    code = "import tempfile; print(tempfile.mkdtemp()); raise SystemExit(1)"
    step = gate.Step("unit", python(code), gate.read_check, in_memory=True)
    [[(_, path)]] = [outcome.failed for outcome in gate.Runner([step], {}).run().values()]
    assert Path(path).is_relative_to(memory) == is_used
    assert list(memory.iterdir()) == []


def test_python_processes_of_all_steps_share_compiled_modules(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(gate, "BYTECODE", tmp_path / "bytecode")
    (tmp_path / "module.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import module"
    assert gate.Runner([gate.Step("a", python(code), gate.read_check)], {}).run()
    assert [path.name.partition(".")[0] for path in (tmp_path / "bytecode").rglob("module*")] == [
        "module"
    ]
    assert not list(tmp_path.glob("__pycache__"))


@pytest.mark.parametrize("disk_is_memory", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_only_steps_that_ask_for_it_keep_files_in_memory(
    gate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_memory: bool,
    disk_is_memory: bool,
) -> None:
    """Without a disk nothing can be measured with a cold cache."""
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    for directory in (memory, disk):
        directory.mkdir()
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(gate, "MEMORY", memory)
    monkeypatch.setattr(gate, "SPACE", 0)
    monkeypatch.setattr(gate, "DISK", disk)
    monkeypatch.setattr(gate, "_is_in_memory", lambda _: disk_is_memory)
    code = "import os, sys; print(os.environ.get('TMPDIR', '')); sys.exit(1)"
    step = gate.Step("unit", python(code), gate.read_check, in_memory=in_memory)
    [outcome] = gate.Runner([step], {}).run().values()
    [(_, line)] = outcome.failed
    parent = memory if in_memory else disk if disk_is_memory else None
    assert line == "exit code 1" if parent is None else Path(line).parent == parent
    assert list(memory.iterdir()) == list(disk.iterdir()) == []


def test_the_file_system_of_a_directory_is_that_of_its_deepest_mount(gate: ModuleType) -> None:
    assert gate._is_in_memory(Path("/proc/self")) is False
    if Path("/dev/shm").is_mount():
        assert gate._is_in_memory(Path("/dev/shm/nothing")) is True
