# SPDX-License-Identifier: Apache-2.0
"""Trees of fio results, and their import."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iolab.studies.results.imports.account import Imported
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results
from support.fio_files import job, output


def put_result(
    place: Path,
    *,
    seed: int = 0,
    minute: int | None = None,
    iops: float = 4000.0,
    jobs: int = 1,
    **options: str,
) -> None:
    """A result that ended at that minute, or else at one of its own: executions of 10 s follow each
    other."""
    place.parent.mkdir(parents=True, exist_ok=True)
    document = json.loads(output(job(jobs=jobs, iops=iops), minute=minute, **options))
    document["timestamp_ms"] += seed * 60_000
    place.write_text(json.dumps(document, indent=1), "utf-8")


def import_results(
    tree: Path, output_: Path, layout: str | Sequence[str] | None = None, **more: Any
) -> tuple[Imported, Results]:
    """Import a tree: the account of its files, and the results."""
    found = import_tree(tree, layout, output_, **more)
    return found, Results(output_)


def check_account(found: Imported, tree: Path) -> None:
    """Every file of the tree counts exactly once."""
    counted = [path for paths in (*found.files.values(), *found.skipped.values()) for path in paths]
    assert len(counted) == len(set(counted)) == sum(not path.is_dir() for path in tree.rglob("*"))
