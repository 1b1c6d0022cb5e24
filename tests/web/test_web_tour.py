# SPDX-License-Identifier: Apache-2.0
"""The clip that `make tour` writes, from fewer I/Os and with short pauses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

import bench_odd  # noqa: E402
import tour  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.deep]


def test_the_tour_is_a_clip(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_odd, "RATE", 1000)
    clip = tmp_path / "tour.webm"
    seconds = tour.make(browser, clip, 0.02)
    assert seconds > 1
    content = clip.read_bytes()
    # EBML, as WebM begins
    assert content[:4] == b"\x1a\x45\xdf\xa3"
    assert b"V_VP8" in content[:1000]
    assert len(content) > 50_000
