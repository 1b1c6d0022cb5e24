# SPDX-License-Identifier: Apache-2.0
"""What all tests share: where data of others lies, and results made from published tables."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support.depth import IS_FAST, IS_FULL, depth
from support.golden import Golden

# The time of an example depends on the machine. The gate tries the same examples in every run;
# at full depth they are random.
settings.register_profile(
    "iolab",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_FULL,
    max_examples=10 if IS_FAST else depth(25, 100),
)
settings.load_profile("iolab")
# a shell has what it begins in the background ignore Ctrl-C, and so would the processes that tests
# end by it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent


NEEDS = ("browser", "fio", "loops", "tracing", "rig", "exclusive")
"""Markers of tests that use real programs, devices or time."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without searching for garbage, and leave what was imported out of later searches:
    both took a third of the time of collecting and a tenth of the time of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Modules are collected at the end, as without `pytest_collection`."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Retry a test that uses the real thing once, since another process can be the cause of its
    failure. The first failure is reported: a test that is retried is to be repaired. `make fast`
    runs the first case of each test.

    Raises:
        pytest.UsageError: a marker is not in the file of its test, where scripts/gate.py searches.
    """
    texts: dict[Path, str] = {}
    for item in items:
        markers = [name for name in NEEDS if item.get_closest_marker(name)]
        if not markers:
            continue
        item.add_marker(pytest.mark.flaky(reruns=1))
        if item.path not in texts:
            texts[item.path] = item.path.read_text("utf-8")
        for name in markers:
            if f"mark.{name}" not in texts[item.path]:
                raise pytest.UsageError(f"{item.nodeid}: mark it {name} in its own file")
    if IS_FAST:
        first = {
            item.nodeid.partition("[")[0]: item
            for item in reversed(items)
            if not item.get_closest_marker("slow")
        }
        kept = set(first.values())
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print what was retried, and what tests marked `figures` measured: figures that documents
    state can be read in every run. Write the counts to $IOLAB_TEST_REPORT for scripts/gate.py."""
    stats: dict[str, list[Any]] = terminalreporter.stats
    retried = stats.get("rerun", [])
    if retried:
        terminalreporter.section(f"retried: {len(retried)}")
        for report in retried:
            terminalreporter.write_line(f"{report.nodeid}: {_first_line(report)}")
    passed = [report for report in stats.get("passed", []) if report.when == "call"]
    lines = [
        line
        for report in passed
        if "figures" in report.keywords
        for line in report.capstdout.splitlines()
        if line.strip()
    ]
    if lines:
        terminalreporter.section("measured by the tests")
        terminalreporter.write_line("\n".join(lines))
    if path := os.environ.get("IOLAB_TEST_REPORT"):
        Path(path).write_text(json.dumps(_counts(stats, passed)), "utf-8")


def _counts(stats: dict[str, list[Any]], passed: list[Any]) -> dict[str, Any]:
    """Counts, failures, reasons of skips, retries, and seconds by file."""
    skipped: dict[str, int] = {}
    for report in stats.get("skipped", []):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        skipped[reason] = skipped.get(reason, 0) + 1
    seconds: dict[str, float] = {}
    for report in (report for reports in stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            file = report.nodeid.partition("::")[0]
            seconds[file] = seconds.get(file, 0.0) + report.duration
    return {
        "passed": len(passed),
        "failed": [
            [report.nodeid, _first_line(report)]
            for report in [*stats.get("failed", []), *stats.get("error", [])]
        ],
        "skipped": skipped,
        "retried": [[report.nodeid, _first_line(report)] for report in stats.get("rerun", [])],
        "seconds": dict(sorted(seconds.items(), key=lambda item: -item[1])),
        "markers": {name: sum(name in report.keywords for report in passed) for name in NEEDS},
    }


def _first_line(report: Any) -> str:
    """The first line of a failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr)).strip().partition("\n")[0]


@pytest.fixture(autouse=True)
def _keep_niceness() -> Iterator[None]:
    """A test that leaves its process at another niceness delays all later tests of the process."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    yield
    left = os.getpriority(os.PRIO_PROCESS, 0)
    if left != niceness:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
        pytest.fail(f"the test left its process at niceness {left}")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares full texts with tests/golden."""
    return Golden(request)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def zol_archive() -> Path:
    """The published ZFS on Linux #6566 study, never committed; the test is left out where it is
    absent."""
    path = (
        Path(os.environ.get("IOLAB_DATA", ROOT.parent / "shared" / "data"))
        / "zfsonlinux-6566-perf-v2.tar.xz"
    )
    if not path.exists():
        pytest.skip(f"{path.name} is absent (set IOLAB_DATA to its directory)")
    return path


@pytest.fixture(scope="session")
def cases() -> Path:
    """Small results of others with known right values, never committed; the test is left out where
    they are absent."""
    path = Path(os.environ.get("IOLAB_DATA", ROOT.parent / "shared" / "data")) / "cases"
    if not path.exists():
        pytest.skip("cases/ is absent (set IOLAB_DATA to its directory)")
    return path


@pytest.fixture(scope="session")
def foreign_archive() -> Path:
    """fio results of public projects as their users keep them, never committed; the test is left
    out where they are absent."""
    path = (
        Path(os.environ.get("IOLAB_DATA", ROOT.parent / "shared" / "data"))
        / "foreign-results.tar.xz"
    )
    if not path.exists():
        pytest.skip(f"{path.name} is absent (set IOLAB_DATA to its directory)")
    return path


@pytest.fixture(scope="session")
def fio() -> str:
    """Path of fio; the test is left out where it is absent."""
    found = shutil.which("fio")
    if found is None:
        pytest.skip("fio is absent")
    return found
