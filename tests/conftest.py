"""What all tests share: where data of others lies, and results made from published tables."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes is the machine's matter
settings.register_profile("iolab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("iolab")
# a shell has what it begins in the background ignore Ctrl-C, and so would the processes that tests
# end by it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test beside real load has a second go: what else the machine did may have been the reason.
    The first is told, never hidden."""
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests marked `figures` measured, so that the figures that documents state can be
    read in every run; and what had to be tried again."""
    again = terminalreporter.stats.get("rerun", [])
    if again:
        terminalreporter.section(f"tried again: {len(again)}")
        for report in again:
            terminalreporter.write_line(f"{report.nodeid}: {_first_words(report)}")
    passed = [
        report
        for report in terminalreporter.stats.get("passed", [])
        if report.when == "call" and "figures" in report.keywords
    ]
    lines = [line for report in passed for line in report.capstdout.splitlines() if line.strip()]
    if lines:
        terminalreporter.section("measured by the tests")
        terminalreporter.write_line("\n".join(lines))


def _first_words(report: pytest.TestReport) -> str:
    """What went wrong, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr)).partition("\n")[0]


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
