# SPDX-License-Identifier: Apache-2.0
"""The unit of systemd in the guide of archives: systemd accepts it, and so does the recorder."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from iolab.cli.record.command import command

PROGRAM = "/opt/iolab/bin/iolab"


@pytest.fixture
def unit(root: Path) -> str:
    """Its text, as the guide has it."""
    guide = (root / "docs/guides/archive.md").read_text()
    [text] = re.findall(r"```ini\n(# /etc/systemd/system/iolab\.service\n.*?)```", guide, re.S)
    return str(text)


def test_systemd_accepts_it(unit: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for name, text in (("iolab", unit), ("wrong", unit.replace("KillMode=mixed", "KillMode=no"))):
        path = tmp_path / f"{name}.service"
        path.write_text(text.replace(PROGRAM, "/bin/true"))
        done = subprocess.run(
            [program, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
        )
        # it also names units of the machine, which are none of ours
        lines = [line for line in done.stderr.splitlines() if path.name in line]
        assert bool(lines) == (name == "wrong"), done.stderr


def test_the_recorder_takes_its_options(unit: str) -> None:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.replace("\\\n", " "))
    words = shlex.split(parser["Service"]["ExecStart"])
    assert words[:2] == [PROGRAM, "record"]
    parsed = command.make_context("record", words[2:]).params
    assert parsed["words"] == ("block", "counters")
    assert parsed["archive"].startswith("s3://")
    assert parsed["drops_archived"]
    assert parsed["quiet"]
    assert len(parsed["budget"]) == 2
    # Ctrl-C seals and pushes the last segment
    assert parser["Service"]["KillSignal"] == "SIGINT"
