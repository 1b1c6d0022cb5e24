"""Generated files are what the code generates."""

from __future__ import annotations

import runpy
from pathlib import Path


def test_committed_files_are_fresh(root: Path, tmp_path: Path) -> None:
    generate = runpy.run_path(str(root / "scripts/generate.py"))["generate"]
    paths = generate(tmp_path)
    assert len(paths) >= 4
    stale = [str(relative) for path in paths
             if not (root / (relative := path.relative_to(tmp_path))).exists()
             or (root / relative).read_text("utf-8") != path.read_text("utf-8")]
    assert not stale, f"run make generate: {', '.join(stale)}"
