# SPDX-License-Identifier: Apache-2.0
"""What is said of kept statistics: what one waits for, and from where on something is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.manage import ADDING
from iolab.recordings.ask.question import SECOND
from support.kept_data import HOUR, START, make

NAME = "io.ops[process]"


def test_one_that_is_made_of_what_was_sealed_before_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [], segments=3)
    # no time to do it
    manage.add(path, [NAME], backfill=True, work_s=0)
    manage.add(path, ["io.bytes"], work_s=0)
    rows = {row["statistic"]: row for row in manage.list_kept(path)}
    assert (rows[NAME]["state"], rows[NAME]["why"]) == ("waiting", ADDING)
    assert (rows["io.bytes"]["state"], rows["io.bytes"]["why"]) == (
        "waiting",
        "nothing was sealed since it was added",
    )
    assert {row["statistic"]: row["state"] for row in manage.resume(path)} == {
        NAME: "kept",
        "io.bytes": "waiting",
    }


@pytest.mark.slow
def test_what_was_let_go_of_is_no_longer_since_when(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=10, seconds=10, step_s=1800, per_s=5)
    [row] = manage.list_kept(path)
    assert row["since_ns"] == START
    # sums of hours go back as far as before
    [row] = manage.prune(path, [], before_ns=START + 3 * HOUR, tier="1m")
    assert row["since_ns"] == START
    moment = START + 2 * HOUR + 600 * SECOND
    [row] = manage.prune(path, [], before_ns=moment)
    assert START < row["since_ns"] <= moment
    assert row["since_ns"] == moment
    assert manage.prune(path, [], before_ns=START)[0]["since_ns"] == moment
