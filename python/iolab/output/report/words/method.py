# SPDX-License-Identifier: Apache-2.0
"""How numbers are judged, in short: the text at the end of every report. The long one is in
`docs/method`."""

from __future__ import annotations

from ..model.payload import MethodPart

METHOD = (
    MethodPart(
        id="verdicts",
        title="Verdicts",
        text=[
            "Gates look at each run's evidence. The verdict is the worst of what they say, and it travels with the number.",
            "INVALID runs enter no estimate, and their partner in the block leaves with them. SUSPECT runs enter and are "
            "marked. UNJUDGED marks published numbers without evidence. Notes are information only.",
        ],
    ),
    MethodPart(
        id="estimates",
        title="Estimates and changes",
        text=[
            "A cell's value is the geometric mean over its runs (the arithmetic mean for shares and other metrics that are "
            "compared by difference).",
            "A change compares the runs of one block: logarithms of their ratio, averaged over blocks, so that drift "
            "between blocks cancels.",
            "A mean over a sweep uses only cells that are valid on both sides, and is never taken across columns.",
        ],
    ),
    MethodPart(
        id="tests",
        title="Intervals and tests",
        text=[
            "Intervals are two-sided t intervals; the variance is pooled over the sweep where a homogeneity test allows it, "
            "per cell otherwise.",
            "q is the p value after Benjamini and Hochberg's correction over the sweep: of the changes that are called "
            "significant at q ≤ 0.05, at most about one in twenty is expected to be false.",
            "~ marks a change that is not significant. That does not prove that nothing changed: the interval says which changes are "
            "excluded, and “needs” says how many blocks would confirm a change of the size seen with 80 % power.",
            "A single pair of runs has no interval and no test.",
            "Arms that were not measured in turn are compared by their sessions: contiguous runs of one arm on one boot. With a single "
            "session of an arm the change is confounded with time: it contains the difference of the sessions, and is never significant.",
        ],
    ),
    MethodPart(
        id="sources",
        title="Where each number comes from",
        text=[
            "Open a run to see each value with its file, its field and the number as the file has it. Latency is kept in "
            "seconds, sizes in bytes and rates per second; tables choose a readable unit, the CSV of a chart is unrounded.",
        ],
    ),
)
