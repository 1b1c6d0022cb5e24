"""Is the data as compressible as asked?"""

from __future__ import annotations

from collections.abc import Iterable

from ...verdict import Reason
from ..facts import RunFacts
from .base import note, suspect


class CompressionGate:
    """fio's buffer options don't always give what they say; what is known to differ is said.

    `buffer_compress_percentage=0` without `refill_buffers` writes one block again and again (13.5 times compressible at
    128 KiB records); 100 without a pattern, and `zero_buffers`, write zeros, which ZFS stores as holes. SUSPECT where
    the job is known, a note where only fio's echo is there (it leaves flags out).
    """

    name = "compression"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The buffer options of the job, or of fio's echo."""
        known = facts.plan.extra.get("options")
        options = {**facts.options, **known} if isinstance(known, dict) else facts.options
        speak = suspect if isinstance(known, dict) else note
        percent = str(options.get("buffer_compress_percentage", ""))
        if percent == "0" and "refill_buffers" not in options:
            yield speak("compression", "0 % asked without refill_buffers: fio repeats one block, which compresses well")
        zeros = "zero_buffers" in options or (percent == "100" and "buffer_pattern" not in options)
        if zeros:
            yield speak("compression", "the data is all zeros: a file system that compresses stores holes")
