# SPDX-License-Identifier: Apache-2.0
"""How names of others are shown: the same in a terminal and on a page (vitest runs the same file)."""

from __future__ import annotations

import json
from pathlib import Path

from iolab.base.untrusted_text import visible


def test_vectors(root: Path) -> None:
    for case in json.loads((root / "tests/vectors/names.json").read_text())["visible"]:
        assert visible(case["text"]) == case["shown"]
