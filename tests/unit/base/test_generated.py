# SPDX-License-Identifier: Apache-2.0
"""Generated files are what the code generates."""

from __future__ import annotations

import re
import runpy
from pathlib import Path


def test_committed_files_are_fresh(root: Path, tmp_path: Path) -> None:
    generate = runpy.run_path(str(root / "scripts/generate.py"))["generate"]
    paths = generate(tmp_path)
    assert len(paths) >= 4
    stale = [
        str(relative)
        for path in paths
        if not (root / (relative := path.relative_to(tmp_path))).exists()
        or (root / relative).read_text("utf-8") != path.read_text("utf-8")
    ]
    assert not stale, f"run make generate: {', '.join(stale)}"


def test_what_several_pages_share_has_one_type(root: Path) -> None:
    declared = {
        path.stem: set(
            re.findall(r"^export interface (\w+)", path.read_text("utf-8"), re.MULTILINE)
        )
        for path in (root / "web/src/generated").glob("*.ts")
    }
    shared = declared.pop("maps")
    assert "HeatMapGroup" in shared
    assert not shared & set().union(*declared.values())
