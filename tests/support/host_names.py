# SPDX-License-Identifier: Apache-2.0
"""Names of clients from a table, for queries of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.recordings.ask.aliases import VARIABLE, host_names


@contextlib.contextmanager
def names_from(table: Path) -> Iterator[None]:
    """Use a table of names, and none after the block. The process remembers the names in use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(table))
        host_names.cache_clear()
        try:
            yield
        finally:
            host_names.cache_clear()
