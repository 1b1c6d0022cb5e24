# SPDX-License-Identifier: Apache-2.0
"""Kernel tracing of others while a load runs is noted with the run."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iolab.hosts.kinds.fake import FakeHost
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.run.load.tracing import active_tracing

Do = Callable[..., Path]
TRACEFS = "/sys/kernel/tracing"


def traced(
    host: FakeHost, place: str, events: str = "", tracer: str = "nop", on: str = "1"
) -> None:
    host.files |= {
        f"{place}/set_event": events,
        f"{place}/current_tracer": f"{tracer}\n",
        f"{place}/tracing_on": f"{on}\n",
    }


def test_only_what_is_on_and_of_others_is_told(host: FakeHost) -> None:
    assert active_tracing(host, "/r") == []
    traced(host, TRACEFS)
    for name, environment in (
        ("iolab-7-1-block", "IOLAB_RESULTS=/r\0X=1\0"),
        ("iolab-8-1-block", "IOLAB_RESULTS=/other\0"),
    ):
        traced(
            host, f"{TRACEFS}/instances/{name}", "block:block_rq_issue\nblock:block_rq_complete\n"
        )
        host.files[f"/proc/{name.split('-')[1]}/environ"] = environment
    traced(host, f"{TRACEFS}/instances/off", "block:block_rq_issue\n", on="0")
    traced(host, f"{TRACEFS}/instances/idle")
    assert active_tracing(host, "/r") == [
        "instance iolab-8-1-block: 2 events (block:block_rq_issue, block:block_rq_complete)"
    ]
    traced(host, TRACEFS, tracer="function")
    assert active_tracing(host, "/r")[0] == "the kernel's own buffer: tracer function"


def test_a_run_notes_it_and_stays_what_it_is(do: Do, host: FakeHost) -> None:
    traced(host, TRACEFS, "sched:sched_switch\n")
    run = next(iter(run_directories(do())))
    assert read_plan(run).extra["tracing"] == [
        "the kernel's own buffer: 1 event (sched:sched_switch)"
    ]
    reasons = [
        reason for reason in derive(run, read_plan(run)).verdict.reasons if reason.code == "tracing"
    ]
    assert [(reason.level.name, reason.text) for reason in reasons] == [
        (
            "OK",
            "the kernel was traced during the run: the kernel's own buffer: 1 event (sched:sched_switch)",
        )
    ]


def test_without_tracing_nothing_is_noted(do: Do) -> None:
    run = next(iter(run_directories(do())))
    assert "tracing" not in read_plan(run).extra


@contextlib.contextmanager
def instance() -> Iterator[Path]:
    place = Path(TRACEFS, "instances", f"test-{secrets.token_hex(4)}")
    place.mkdir()
    try:
        yield place
    finally:
        place.rmdir()


@pytest.mark.tracing
def test_a_real_instance_is_seen() -> None:
    if os.geteuid() != 0 or not Path(TRACEFS, "instances").is_dir():
        pytest.skip("tracefs can't be used")
    with instance() as place:
        assert not any(place.name in words for words in active_tracing(LocalHost(), "/r"))
        (place / "set_event").write_text("sched:sched_process_exit\n")
        assert f"instance {place.name}: 1 event (sched:sched_process_exit)" in active_tracing(
            LocalHost(), "/r"
        )
        (place / "set_event").write_text("\n")
