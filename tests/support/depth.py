# SPDX-License-Identifier: Apache-2.0
"""How much a test does: all of it in `make test-all`, a sample in the gate, less in `make fast`."""

from __future__ import annotations

import os

IS_FULL = os.environ.get("IOLAB_TEST_DEPTH") == "all"
IS_FAST = os.environ.get("IOLAB_TEST_DEPTH") == "fast"
"""`make fast` runs the first case of each test, and tries fewer examples of each property."""


def depth(sample: int, full: int) -> int:
    """A number of cases: `sample` in the gate, `full` where IOLAB_TEST_DEPTH is "all"."""
    return full if IS_FULL else sample
