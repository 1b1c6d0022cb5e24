# SPDX-License-Identifier: Apache-2.0
"""A metric of which no distribution is assumed, as a plugin may declare it: the longest queue of a
run. No built-in one is tested without a distribution, since extremes of I/Os are never tested."""

from __future__ import annotations

from iolab.base import metrics

LONGEST_QUEUE = metrics.Metric(
    "queue.longest", "longest queue", "s", "lower", pools="max", assumption="nothing"
)
metrics._BY_NAME[LONGEST_QUEUE.name] = LONGEST_QUEUE
