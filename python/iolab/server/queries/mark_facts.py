# SPDX-License-Identifier: Apache-2.0
"""What is known of the runs of results that a recording belongs to: variant, cell and verdict."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import IolabError


def run_facts(results: Path | None) -> dict[str, dict[str, Any]]:
    """By run: `variant`, `cell` (factors with their levels), `verdict` and `reasons` (of what is not
    OK). Nothing of runs that are not read yet, or of results that can't be read: their problem is
    stated where they are listed."""
    if results is None:
        return {}
    # slow to load
    from ...results.open.cache import evidence_key

    try:
        return _facts(results, evidence_key(results))
    except (IolabError, OSError):
        return {}


@lru_cache(maxsize=8)
def _facts(path: Path, key: str) -> dict[str, dict[str, Any]]:
    """Of results with this key of their evidence."""
    from ...results.open.results import Results

    return {
        run.id: {
            "variant": run.variant,
            "cell": {name: str(level) for name, level in run.factors.items()},
            "repetition": run.plan.repetition,
            "verdict": run.verdict.level.value,
            "reasons": [
                reason.text for reason in run.verdict.reasons if reason.level.value != "OK"
            ],
        }
        for run in Results(path).runs
    }
