# SPDX-License-Identifier: Apache-2.0
"""A study, a machine in memory, and what does the one on the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.run.study import run_study
from support.acting import Listener, fake_host, split_how, study_text


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(study_text(), "utf-8")
    return path


@pytest.fixture
def host() -> FakeHost:
    return fake_host()


@pytest.fixture
def heard() -> Listener:
    return Listener()


@pytest.fixture
def do(study: Path, host: FakeHost, heard: Listener, tmp_path: Path) -> Callable[..., Path]:
    """Do the study; the results are `out` unless told otherwise, and its commands are trusted."""

    def run(**changes: Any) -> Path:
        given = {
            "path": study,
            "output": tmp_path / "out",
            "listener": heard,
            "clock": host.clock,
            "host": host,
            "trusted": True,
            **changes,
        }
        return run_study(given.pop("path"), given.pop("output"), split_how(given), **given)

    return run
