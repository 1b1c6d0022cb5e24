# SPDX-License-Identifier: Apache-2.0
"""The gate: run every step, then print one table and one list of all failures.

    gate.py GROUP...        check, test, wheel, rig, all
    gate.py --deep GROUP... the same at full depth; a retried test is then a failure

A failing step does not prevent the others. Output of each step is in build/gate/NAME.log. The exit
code is 1 if anything failed. The last line has pytest's form.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build/gate"
BIN = ROOT / ".venv/bin"
NPM = ("scripts/with-node", "npm", "--prefix", "web", "run", "--silent")
REAL = "fio or loops or tracing"
DEEP = {"IOLAB_TEST_DEPTH": "all"}
FAST = {"IOLAB_TEST_DEPTH": "fast"}
SAMPLE = {"PROPTEST_RNG_SEED": "447"}
"""Environment of the steps: at full depth, in `make fast`, and in the gate, where each run tries the
same cases."""
WAITING = str((os.cpu_count() or 2) * 2)
"""Processes for tests that wait for other processes and for times during half of their time."""
BYTECODE = ROOT / "build/bytecode"
"""Where all Python processes of all steps keep compiled modules, whatever PYTHONDONTWRITEBYTECODE
says: without them, a process that reads one file compiles 1,000 modules first."""
MEMORY = Path("/dev/shm")
SPACE = 4 << 30
"""A directory in memory, and the free bytes that tests need to keep their files there."""
DISK = Path("/var/tmp")
"""A directory on a disk: without one, nothing can be measured with a cold cache."""
HALF = 0.5
"""Share of the machine of a step that keeps one of two cores busy, or waits half of its time."""
SHOWN = 30
"""Lines of a failed check that are printed."""
EVERY = 60.0
"""Seconds between two lines of progress."""


@dataclass
class Outcome:
    """What a step reported."""

    passed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    """(test, first line of its error)"""
    skipped: dict[str, int] = field(default_factory=dict)
    """Reason to number of tests."""
    retried: list[tuple[str, str]] = field(default_factory=list)
    """(test, first line of the error of its first try)"""
    left_out: str = ""
    """Why the step did not run."""
    seconds: float = 0.0
    cpu_s: float = 0.0
    """CPU time of its processes: well below `seconds`, they wait."""


@dataclass(frozen=True)
class Step:
    """A command with the reader of its results.

    Attributes:
        share: part of the machine that it keeps busy. Steps run at the same time while the sum is
            at most 1.
        follows: name of a step that must end first.
        in_memory: its temporary files are in memory where there is space: otherwise thousands of
            small recordings are synchronized to disk.
        why_not: returns why the step is left out, or "".
        after: is called when the step passed.
    """

    name: str
    command: Sequence[str]
    read: Callable[[Step, int], Outcome]
    share: float = 1.0
    follows: str = ""
    in_memory: bool = False
    why_not: Callable[[], str] = lambda: ""
    after: Callable[[], None] = lambda: None

    @property
    def log(self) -> Path:
        """Its output."""
        return LOGS / f"{self.name}.log"

    @property
    def report(self) -> Path:
        """The counts that a test runner writes."""
        return LOGS / f"{self.name}.json"


def main() -> int:
    """Exit code: 0 where every step passed, 1 where one failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description="Run every step of the gate.")
    parser.add_argument("groups", nargs="+", choices=["fast", "check", "wheel", "test", "rig"])
    parser.add_argument("--deep", action="store_true", help="full depth; no test may be retried")
    options = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    # modules that tests wrote into temporary directories do not exist any more
    for directory in (MEMORY, Path(tempfile.gettempdir())):
        for of_tests in (BYTECODE / directory.relative_to("/")).glob("*-*"):
            if not ROOT.is_relative_to(Path("/") / of_tests.relative_to(BYTECODE)):
                shutil.rmtree(of_tests, ignore_errors=True)
    steps = [step for group in options.groups for step in steps_of(group, options.deep)]
    started = time.monotonic()
    try:
        depth = DEEP if options.deep else FAST if "fast" in options.groups else SAMPLE
        outcomes = Runner(steps, depth).run()
    except KeyboardInterrupt:
        print("gate: interrupted", file=sys.stderr)
        return 130
    return summarize(outcomes, time.monotonic() - started, retry_fails=options.deep)


def steps_of(group: str, deep: bool) -> list[Step]:
    """The steps of a group in the order in which they start."""
    if group == "check":
        return [
            check("mypy", str(BIN / "mypy")),
            check("ruff", str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", "."),
            check("ruff-format", str(BIN / "ruff"), "format", "--check", "--quiet", "."),
            check("prose", str(BIN / "python"), "scripts/prose.py"),
            check("docs", "make", "--no-print-directory", "docs"),
            check("licence", str(BIN / "python"), "scripts/spdx.py"),
            check("rustfmt", "cargo", "fmt", "--check"),
            check("web-check", *NPM, "check"),
            check(
                "clippy",
                "cargo",
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ),
        ]
    if group == "fast":
        return [
            check("ruff", str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", "."),
            check("ruff-format", str(BIN / "ruff"), "format", "--check", "--quiet", "."),
            check("mypy", str(BIN / "mypy")),
            pytest(
                "fast",
                f"not (slow or browser or exclusive or deep or rig or {REAL})",
                "-q",
                workers=WAITING,
                in_memory=True,
            ),
        ]
    if group == "test":
        depth = "" if deep else " and not deep"
        cargo = (
            "cargo",
            "test",
            "--quiet",
            "--no-fail-fast",
            "--workspace",
            "--exclude",
            "iolab-py",
        )
        vitest = (*NPM, "test", "--", "--reporter=default", "--reporter=json")
        return [
            Step("rust", cargo, read_cargo, HALF),
            Step("vitest", (*vitest, f"--outputFile={LOGS / 'vitest.json'}"), read_vitest),
            pytest(
                "unit",
                f"not (browser or exclusive or rig or {REAL}){depth}",
                "tests",
                "--ignore=tests/wheel",
                workers=WAITING,
                in_memory=True,
            ),
            pytest(
                "browser",
                f"browser and not exclusive{depth}",
                *files_marked("browser"),
                share=HALF,
            ),
            pytest(
                "real",
                f"({REAL}) and not (browser or exclusive or rig){depth}",
                *files_marked("fio", "loops", "tracing"),
                workers=WAITING,
                share=HALF,
            ),
            pytest("exclusive", f"exclusive{depth}", *files_marked("exclusive"), workers="0"),
        ]
    if group == "wheel":
        return [
            check("dist", "make", "--no-print-directory", "dist"),
            dataclasses.replace(
                pytest("wheel", "", "tests/wheel", workers="0", share=HALF), follows="dist"
            ),
        ]
    inputs = Inputs("rig", RIG_INPUTS)
    return [
        dataclasses.replace(
            check("rig", "make", "--no-print-directory", "rig-test", share=1.0),
            read=read_pytest,
            why_not=lambda: inputs.passed() or why_no_rig(),
            after=inputs.remember,
        )
    ]


def files_marked(*markers: str) -> list[str]:
    """Test files that contain one of the markers: pytest need not import the others, which takes
    each of its processes longer than some steps. tests/conftest.py checks that markers are found
    in the file of their test."""
    pattern = re.compile(rf"\bmark\.({'|'.join(markers)})\b")
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(path.relative_to(ROOT))
        for path in tests
        if path.parent.name != "wheel" and pattern.search(path.read_text("utf-8"))
    ]


def check(name: str, *command: str, share: float = HALF) -> Step:
    """A step that passes by its exit code alone."""
    return Step(name, command, read_check, share)


def pytest(
    name: str,
    markers: str,
    *words: str,
    workers: str = "auto",
    in_memory: bool = False,
    share: float = 1.0,
) -> Step:
    """pytest over the tests that a marker expression selects, in so many processes."""
    spread = () if workers == "0" else ("-n", workers, "--dist", "worksteal")
    command = (str(BIN / "python"), "-m", "pytest", *words, *spread, "-m", markers)
    return Step(name, command, read_pytest, share, in_memory=in_memory)


class Runner:
    """Runs steps in their order, as many at a time as the machine has room for."""

    def __init__(self, steps: Sequence[Step], environment: dict[str, str]) -> None:
        self._waiting = list(steps)
        self._environment = environment
        self._running: dict[Step, tuple[subprocess.Popen[bytes], float]] = {}
        self._outcomes: dict[Step, Outcome] = {}
        self._order = list(steps)
        self._directories = contextlib.ExitStack()

    def run(self) -> dict[Step, Outcome]:
        """What each step reported, in their order."""
        reported = time.monotonic()
        try:
            while self._waiting or self._running:
                self._start()
                time.sleep(0.1)
                self._collect()
                if time.monotonic() - reported > EVERY:
                    reported = time.monotonic()
                    self._progress()
        finally:
            for process, _ in self._running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
            self._directories.close()
        return {step: self._outcomes[step] for step in self._order}

    def _variables(self, step: Step) -> dict[str, str]:
        """The environment of a step."""
        inherited = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        return {
            **inherited,
            **self._environment,
            **self._temporary(step),
            "IOLAB_TEST_REPORT": str(step.report),
            "PYTHONPYCACHEPREFIX": str(BYTECODE),
        }

    def _temporary(self, step: Step) -> dict[str, str]:
        """Environment with a temporary directory: in memory where there is space, or on a disk where
        `/tmp` is in memory."""
        if step.in_memory and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= SPACE:
            parent = MEMORY
        elif not step.in_memory and _is_in_memory(Path(tempfile.gettempdir())):
            parent = DISK
        else:
            return {}
        directory = tempfile.TemporaryDirectory(
            prefix=f"iolab-{step.name}-", dir=parent, ignore_cleanup_errors=True
        )
        path = self._directories.enter_context(directory)
        # some tests become another user, who must reach their files
        Path(path).chmod(0o711)
        return {"TMPDIR": path, "PYTEST_DEBUG_TEMPROOT": path}

    def _start(self) -> None:
        for step in list(self._waiting):
            if step.follows in {other.name for other in [*self._running, *self._waiting]}:
                continue
            if sum(other.share for other in self._running) + step.share > 1:
                return
            self._waiting.remove(step)
            if reason := step.why_not():
                self._outcomes[step] = Outcome(left_out=reason)
                print(f"gate: {step.name} is left out: {reason}", file=sys.stderr, flush=True)
                continue
            step.report.unlink(missing_ok=True)
            print(f"gate: {step.name} starts", file=sys.stderr, flush=True)
            with step.log.open("wb") as log:
                process = subprocess.Popen(
                    step.command,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=self._variables(step),
                )
            self._running[step] = process, time.monotonic()

    def _collect(self) -> None:
        for step, (process, started) in list(self._running.items()):
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid:
                continue
            code = process.returncode = os.waitstatus_to_exitcode(status)
            del self._running[step]
            outcome = step.read(step, code)
            outcome.seconds = time.monotonic() - started
            outcome.cpu_s = usage.ru_utime + usage.ru_stime
            self._outcomes[step] = outcome
            if not outcome.failed:
                step.after()
            result = "failed" if outcome.failed else "passed"
            print(
                f"gate: {step.name} {result} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True
            )
            if outcome.failed:
                print(step.log.read_text("utf-8", "replace")[-20_000:], file=sys.stderr, flush=True)

    def _progress(self) -> None:
        for step, (_, started) in self._running.items():
            seconds = time.monotonic() - started
            print(
                f"gate: {step.name}, {seconds:.0f} s: {_last_line(step.log)}",
                file=sys.stderr,
                flush=True,
            )


def read_check(step: Step, code: int) -> Outcome:
    """Of a linter or a build: its output is the error."""
    if code == 0:
        return Outcome()
    lines = [line for line in _text(step.log).splitlines() if line.strip()][:SHOWN]
    return Outcome(
        failed=[(step.name, line) for line in lines] or [(step.name, f"exit code {code}")]
    )


def read_pytest(step: Step, code: int) -> Outcome:
    """Of pytest: the counts that tests/conftest.py wrote."""
    try:
        report: dict[str, Any] = json.loads(step.report.read_text("utf-8"))
    except (OSError, ValueError):
        return Outcome(failed=[(step.name, f"exit code {code}: {_last_line(step.log)}")])
    outcome = Outcome(
        passed=report["passed"],
        failed=[(test, why) for test, why in report["failed"]],
        skipped=report["skipped"],
        retried=[(test, why) for test, why in report["retried"]],
    )
    if code and not outcome.failed:
        outcome.failed.append((step.name, f"exit code {code}: {_last_line(step.log)}"))
    return outcome


def read_cargo(step: Step, code: int) -> Outcome:
    """Of `cargo test`: its result lines, and the panics of what failed."""
    text = _text(step.log)
    outcome = Outcome(
        passed=sum(map(int, re.findall(r"^test result: .*? (\d+) passed", text, re.MULTILINE)))
    )
    for test, message in re.findall(
        r"^---- (\S+) stdout ----\n(?:\s*\n)*(.*(?:\n.+)?)", text, re.MULTILINE
    ):
        outcome.failed.append((test, " ".join(message.split())))
    if code and not outcome.failed:
        errors = re.findall(r"^error.*", text, re.MULTILINE) or [f"exit code {code}"]
        outcome.failed += [(step.name, error) for error in errors[:SHOWN]]
    return outcome


def read_vitest(step: Step, code: int) -> Outcome:
    """Of vitest: its JSON report (Jest's form)."""
    try:
        report: dict[str, Any] = json.loads(step.report.read_text("utf-8"))
    except (OSError, ValueError):
        return Outcome(failed=[(step.name, f"exit code {code}: {_last_line(step.log)}")])
    outcome = Outcome(passed=report["numPassedTests"])
    for file in report["testResults"]:
        name = Path(file["name"]).name
        for test in file["assertionResults"]:
            if test["status"] == "failed":
                error = " ".join(test["failureMessages"]).strip().partition("\n")[0]
                outcome.failed.append((f"{name}: {test['fullName']}", error))
    if code and not outcome.failed:
        outcome.failed.append((step.name, f"exit code {code}: {_last_line(step.log)}"))
    return outcome


RIG_INPUTS = (
    "rigs",
    "crates/iolab-core/src",
    "crates/iolab-probe",
    "python/iolab/hosts/rigs",
    "python/iolab/studies/targets",
    "python/iolab/studies/sources",
    "python/iolab/hosts",
    "python/iolab/formats/zfs",
    "tests/rig",
    "tests/contract/test_contract_hosts.py",
)
"""What decides whether the tests on the rig can have another result."""


class Inputs:
    """A digest over files, and whether a step passed with them on this machine.

    The digests that passed are kept in $XDG_CACHE_HOME/iolab/gate (~/.cache by default).
    """

    def __init__(self, name: str, paths: Sequence[str]) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *paths],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        digest = hashlib.sha256()
        for path in sorted(filter(None, listed.decode().split("\0"))):
            with contextlib.suppress(OSError):
                digest.update(
                    f"{path}\0".encode() + hashlib.sha256((ROOT / path).read_bytes()).digest()
                )
        self._digest = digest.hexdigest()[:16]
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self._mark = Path(cache) / "iolab/gate" / f"{name}-{self._digest}"

    def passed(self) -> str:
        """Why the step need not run again, or ""."""
        if not self._mark.exists():
            return ""
        return f"its inputs (digest {self._digest}) passed here on {self._mark.read_text().strip()}"

    def remember(self) -> None:
        """Note that the step passed."""
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        self._mark.write_text(time.strftime("%Y-%m-%d %H:%M\n"))


def why_no_rig() -> str:
    """Why no rig can be built or started on this machine, or ""."""
    for command in (
        ["scripts/install-system", "rig"],
        [str(BIN / "iolab"), "rig", "check", "openzfs"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return ((done.stdout + done.stderr).strip().splitlines() or ["no reason given"])[-1]
    return ""


def summarize(outcomes: dict[Step, Outcome], seconds: float, *, retry_fails: bool) -> int:
    """Print the table, what was skipped, retried and failed, and the closing line."""
    out = sys.stdout
    if retry_fails:
        for outcome in outcomes.values():
            outcome.failed += [(test, f"was retried: {why}") for test, why in outcome.retried]
    width = max(len(step.name) for step in outcomes)
    print(
        f"\n{'step':{width}}  result    seconds   cpu, s   passed  skipped  failed  retried",
        file=out,
    )
    for step, outcome in outcomes.items():
        result = "left out" if outcome.left_out else "FAILED" if outcome.failed else "ok"
        counts = (
            outcome.passed,
            sum(outcome.skipped.values()),
            len(outcome.failed),
            len(outcome.retried),
        )
        cells = [f"{step.name:{width}}  {result:8}", f"{outcome.seconds:9.0f}{outcome.cpu_s:9.0f}"]
        cells += [f"{count:{size}}" for count, size in zip(counts, (9, 9, 8, 9), strict=True)]
        print("".join(cells), file=out)
    _list(
        out,
        "left out",
        [(step.name, outcome.left_out) for step, outcome in outcomes.items() if outcome.left_out],
    )
    skipped: dict[str, int] = {}
    for outcome in outcomes.values():
        for reason, number in outcome.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + number
    _list(out, "skipped", [(f"{number} tests", reason) for reason, number in skipped.items()])
    _list(out, "retried", [pair for outcome in outcomes.values() for pair in outcome.retried])
    failed = [pair for outcome in outcomes.values() for pair in outcome.failed]
    _list(out, "failed", failed)
    numbers = {
        "failed": len(failed),
        "passed": sum(outcome.passed for outcome in outcomes.values()),
        "skipped": sum(skipped.values()),
        "rerun": sum(len(outcome.retried) for outcome in outcomes.values()),
    }
    words = ", ".join(f"{number} {name}" for name, number in numbers.items() if number)
    print(f"\n===== {words or 'no tests ran'} in {seconds:.2f}s =====", file=out, flush=True)
    return 1 if failed else 0


def _list(out: TextIO, title: str, lines: Sequence[tuple[str, str]]) -> None:
    if lines:
        print(f"\n{title}:", file=out)
        for name, text in lines:
            print(f"  {name}: {text}", file=out)


def _is_in_memory(directory: Path) -> bool:
    """Whether the file system of a directory keeps its files in memory."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    above = [(place, kind) for place, kind in mounts if directory.is_relative_to(place)]
    return max(above, key=lambda mount: len(mount[0]), default=("/", ""))[1] in ("tmpfs", "ramfs")


def _text(path: Path) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", path.read_text("utf-8", "replace"))


def _last_line(path: Path) -> str:
    lines = [line for line in _text(path).splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output yet"


if __name__ == "__main__":
    sys.exit(main())
