# SPDX-License-Identifier: Apache-2.0
"""How much a test does: a sample in the gate, all of it in `make test-all`."""

from __future__ import annotations

import os

IS_FULL = os.environ.get("IOLAB_TEST_DEPTH") == "all"


def depth(sample: int, full: int) -> int:
    """A number of cases: `sample` in the gate, `full` where IOLAB_TEST_DEPTH is "all"."""
    return full if IS_FULL else sample
