# SPDX-License-Identifier: Apache-2.0
"""What tests of studies that are gone on with share: how one is stopped, and what holds of it at
the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.interrupts import Interrupts

Do = Callable[..., Path]
"""Do the study of the fixtures; returns its results."""
BOOT = "/proc/sys/kernel/random/boot_id"


class Killed(BaseException):
    """What a test throws for kill -9."""


def names(out: Path) -> list[str]:
    return [run.name for run in run_directories(out)]


def agreed(out: Path) -> None:
    """Every run that is there is finished, once, in evidence and in the journal; every number is
    there."""
    plans = [read_plan(run) for run in run_directories(out)]
    assert [plan.status for plan in plans] == ["finished"] * len(plans)
    assert [int(plan.run[:4]) for plan in plans] == list(range(1, len(plans) + 1))
    last: dict[str, str] = {}
    counted: dict[str, int] = {}
    for event in read_journal(out)[0]:
        if "run" in event and event["event"] != "planned":
            last[event["run"]] = event["event"]
        if event["event"] == "finished":
            counted[event["run"]] = counted.get(event["run"], 0) + 1
        elif event["event"] == "aside":
            counted.pop(event["run"], None)
    assert {run for run, event in last.items() if event == "finished"} == {
        plan.run for plan in plans
    }
    assert set(counted.values()) == {1}


def stop_after(number: int, host: FakeHost) -> Interrupts:
    """Ctrl-C while the run of that number is in flight."""
    stops = Interrupts()
    work = host.programs["fio"].work
    assert work is not None
    begun = len(host.started)

    def press(command: Any, directory: Path) -> None:
        work(command, directory)
        if len(host.started) - begun == number:
            stops.press()

    host.programs["fio"].work = press
    return stops
