# SPDX-License-Identifier: Apache-2.0
"""Where a load goes: what a target offers and a workload takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Place:
    """Where a load goes: a fresh, empty directory, or block devices.

    Attributes:
        path: the directory; or the devices' nodes joined by `:`, as fio's `filename` takes them
        (none has a colon itself).
    """

    path: str
    kind: Literal["directory", "device"] = "directory"
