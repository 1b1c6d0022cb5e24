# SPDX-License-Identifier: Apache-2.0
"""What the target says of a run (`target.json`), and what follows from it: achieved compression,
fill, write amplification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from iolab.base.metrics import of

from ..evidence.files import TARGET_FILE as FILE
from ..evidence.files import Files, read_document
from ..evidence.model import Observation
from .run_facts import RunFacts


def read_target(run_dir: Path, files: Files = None) -> Mapping[str, Any]:
    """The content of `target.json`; empty where there is none or it is damaged."""
    return read_document(run_dir, FILE, files)


def observations(facts: RunFacts) -> Iterator[Observation]:
    """`target.compression`, `target.fill`, `write.amplification`, each where it is known."""
    achieved = compression(facts.target)
    if achieved is not None:
        yield Observation(
            "target.compression",
            achieved,
            of("target.compression").unit,
            FILE,
            "written_bytes / taken_bytes",
        )
    fill = _number(facts.target, "fill")
    if fill is not None and 0 <= fill <= 1:
        yield Observation("target.fill", fill, of("target.fill").unit, FILE, "fill", fill, "1")
    amplified = write_amplification(facts)
    if amplified is not None:
        files = ", ".join(facts.monitor_files[:1])
        yield Observation(
            "write.amplification",
            amplified,
            of("write.amplification").unit,
            files,
            f"write.bw of {len(facts.devices)} devices x window / bytes of {facts.fio_file}",
        )


def compression(target: Mapping[str, Any]) -> float | None:
    """Bytes that the run's files hold (without holes) over the room that they take; None where
    either isn't known.

    Room is whole blocks, and a file system's metadata counts where its books don't tell it apart:
    below 1 for data that isn't compressed. Files that were preallocated take room without holding
    anything.
    """
    written, taken_bytes = _number(target, "written_bytes"), _number(target, "taken_bytes")
    return (
        written / taken_bytes
        if written and taken_bytes and written > 0 and taken_bytes > 0
        else None
    )


def write_amplification(facts: RunFacts) -> float | None:
    """Bytes that the target's devices wrote within the window over those that the load wrote in it;
    None without either.

    Below 1 where writes stay in memory beyond the window or are compressed; whatever else writes to
    the devices counts as well.
    """
    requested_bytes = sum(
        direction.size_bytes
        for name, direction in facts.parts.items()
        if name in ("write", "mixed")
    )
    if "mixed" in facts.parts or requested_bytes <= 0 or facts.runtime <= 0 or not facts.devices:
        return None  # `mixed` doesn't tell writes from reads
    rate = 0.0
    for samples in facts.devices.values():
        values = samples.columns.get("write.bw")
        if values is None or not np.isfinite(values).any():
            return None
        rate += float(np.nanmean(values))
    return rate * facts.runtime / requested_bytes


def _number(target: Mapping[str, Any], name: str) -> float | None:
    value = target.get(name)
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        else None
    )
