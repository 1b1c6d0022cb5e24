# SPDX-License-Identifier: Apache-2.0
"""Results with profiles, without perf: run directories as a study leaves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from iolab.studies.results.evidence.files import write_plan
from iolab.studies.results.evidence.model import RunPlan

BEFORE = {
    "fio;read;vfs_read_[k];copy_[k]": 30,
    "fio;read;vfs_read_[k]": 10,
    "fio;main": 10,
    "kworker/u8:3-lo;worker_[k]": 25,
    "kworker/0:1H;worker_[k]": 25,
    "swapper;do_idle_[k];default_idle_[k]": 80,
    "swapper;do_idle_[k];default_idle_[k];irq_[k];done_[k]": 20,
}
AFTER = {
    "fio;read;vfs_read_[k];copy_[k]": 10,
    "fio;main": 30,
    "kworker/u8:9;worker_[k]": 10,
    "swapper;cpu_startup_entry_[k]": 150,
}


def add_profile(
    results: Path, number: int, variant: str, stacks: Mapping[str, int] | str, **more: object
) -> Path:
    """A run made for a profile; `more`: its plan's `status`, `factors`, `extra`."""
    name = f"{number:04d}-00000000"
    place = results / "profiles" / name
    place.mkdir(parents=True)
    plan: dict[str, object] = {"factors": {"numjobs": 4}, "block": 7, **more}
    text = (
        stacks
        if isinstance(stacks, str)
        else "".join(f"{stack} {count}\n" for stack, count in stacks.items())
    )
    (place / "profile.folded").write_text(text, "utf-8")
    facts = {
        "schema": 1,
        "frequency": 99,
        "seconds": 2.0,
        "cpus": 2,
        "event": "cpu-clock:ppp",
        "lost": 0,
        "damaged": 0,
        "tool": "perf version 6.1",
        "commands": [["perf", "record"], ["perf", "script"]],
    }
    (place / "profile.json").write_text(json.dumps(facts), "utf-8")
    write_plan(place, RunPlan(run=name, variant=variant, **plan))  # type: ignore[arg-type]
    return place
