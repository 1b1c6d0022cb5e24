# SPDX-License-Identifier: Apache-2.0
"""Is the data as compressible as asked, and did the target compress it so?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from ..facts.target_metrics import compression
from .base import note, suspect

TOLERANCE = 0.25
"""Share by which an achieved ratio may miss the asked one: blocks, records and headers cost up to
that at ordinary sizes."""
PLAIN = 1.05
"""Ratio up to which a target counts as not compressing at all."""


class CompressionGate:
    """fio's buffer options don't always give what they say, and file systems can't give every
    ratio; what differs is said.

    `buffer_compress_percentage=0` without `refill_buffers` writes one block again and again (13.5
    times compressible at 128 KiB records); 100 without a pattern, and `zero_buffers`, write zeros,
    which ZFS stores as holes. SUSPECT where the job is known, a note where only fio's echo is there
    (it leaves flags out).

    Where the target reports the space of the files: p per cent asked is a ratio of 1 / (1 - p /
    100). A target that doesn't compress gives a note; a target that compresses data that should be
    incompressible, SUSPECT; a target that misses the ratio by more than 25 %, a note, for file
    systems
    save whole blocks only: of 8 KiB in blocks of 4 KiB there is 1x and 2x and nothing between. The
    achieved ratio is the metric `target.compression`, and is what charts should use.
    """

    name = "compression"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The buffer options of the job, or of fio's echo; then the target's own figures."""
        options_of_study = facts.plan.extra.get("options")
        options = (
            {**facts.options, **options_of_study}
            if isinstance(options_of_study, dict)
            else facts.options
        )
        speak = suspect if isinstance(options_of_study, dict) else note
        percent = str(options.get("buffer_compress_percentage", ""))
        decided = "compressibility" in options
        if percent == "0" and "refill_buffers" not in options and not decided:
            yield speak(
                "compression",
                "0 % asked without refill_buffers: fio repeats one block, which compresses well",
            )
        zeros = "zero_buffers" in options or (percent == "100" and "buffer_pattern" not in options)
        if zeros:
            yield speak(
                "compression", "the data is all zeros: a file system that compresses stores holes"
            )
        requested, achieved = _requested_percent(options), compression(facts.target)
        if requested is not None and achieved is not None:
            yield from _compare(requested, achieved)


def _requested_percent(options: Mapping[str, Any]) -> float | None:
    """Per cent requested, 0 to 100; None where nothing was."""
    text = options.get("compressibility", options.get("buffer_compress_percentage"))
    try:
        percent = float(str(text))
    except ValueError:
        return None
    return percent if 0 <= percent <= 100 else None


def _compare(percent: float, achieved: float) -> Iterable[Reason]:
    data = {"asked_percent": percent, "achieved_ratio": achieved}
    if percent == 0:
        if achieved > 1 + TOLERANCE:
            yield suspect(
                "compression",
                f"incompressible data was requested, and used {achieved:.2f} times less space than its size",
                **data,
            )
        return
    if achieved <= PLAIN:
        yield note(
            "compression",
            f"{percent:g} % compressible data was stored as it is (ratio {achieved:.2f}): the target does not "
            'compress, or not what fio preallocated (fallocate = "none" does without)',
            **data,
        )
        return
    if percent == 100:
        return  # no ratio is asked for: the smallest that a record can become is the file system's own
    requested_ratio = 1 / (1 - percent / 100)
    if abs(achieved / requested_ratio - 1) > TOLERANCE:
        yield note(
            "compression",
            f"a ratio of {requested_ratio:.2f} was requested ({percent:g} %), {achieved:.2f} achieved: "
            "file systems save whole blocks only",
            asked_ratio=requested_ratio,
            **data,
        )
