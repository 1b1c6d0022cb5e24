# SPDX-License-Identifier: Apache-2.0
"""Charts: values in, `Chart` out. Imported where a chart is wanted, never by
`import iolab` alone."""

from .bars import bars
from .base.export import export
from .base.model import Chart
from .before_after import before_after
from .change import change
from .histogram import Shares, histogram
from .hockey_stick import hockey_stick
from .matrix import matrix
from .over_load import over_load
from .percentiles import Tail, percentiles, tail
from .reference import Reference, parse_reference
from .series import series

__all__ = [
    "Chart",
    "Reference",
    "Shares",
    "Tail",
    "bars",
    "before_after",
    "change",
    "export",
    "histogram",
    "hockey_stick",
    "matrix",
    "over_load",
    "parse_reference",
    "percentiles",
    "series",
    "tail",
]
