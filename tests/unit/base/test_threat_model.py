# SPDX-License-Identifier: Apache-2.0
"""The threat model names a test for each boundary, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = "docs/reference/threat-model.md"


def test_every_test_that_the_threat_model_names_exists() -> None:
    root = Path(__file__).parents[3]
    text = (root / PAGE).read_text("utf-8")
    rows = [
        line
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| boundary |"))
    ]
    assert len(rows) > 25
    for row in rows:
        named = re.findall(r"`(tests/[a-z_/0-9]+\.py)::(test_\w+)`", row)
        assert named, f"no test is named: {row}"
        for file, name in named:
            assert f"def {name}(" in (root / file).read_text("utf-8"), f"{file} has no {name}"


def test_readers_find_the_threat_model() -> None:
    root = Path(__file__).parents[3]
    for page in ("README.md", "ARCHITECTURE.md"):
        assert PAGE in (root / page).read_text("utf-8"), page
