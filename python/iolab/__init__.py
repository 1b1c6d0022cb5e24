# SPDX-License-Identifier: Apache-2.0
"""iolab: a storage performance laboratory.

import iolab
results = iolab.open("results/quickstart")
results.compare("write.iops", rows="numjobs")
results.chart.iops()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import version as _version

__version__ = _version()

if TYPE_CHECKING:
    from .api import open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    # `iolab --help` must not pay for what `open` needs
    if name == "open":
        from .api import open as opened

        return opened
    raise AttributeError(f"module 'iolab' has no attribute '{name}'")
