# SPDX-License-Identifier: Apache-2.0
"""Did the load run without errors?"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from iolab.base.verdict import Reason

from ..facts.run_facts import RunFacts
from .base import invalid


class ErrorsGate:
    """INVALID when a job has an error, I/Os failed, fio's exit code is not 0, or the run was ended
    early.

    fio's exit code alone is the number of failed jobs modulo 256: 256 failed jobs give 0, so each
    job's own `error` decides. Under group_reporting one failed job of many leaves its error in the
    group's entry, next to valid rates.
    """

    name = "errors"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Job errors by errno, failed I/Os, exit code, status."""
        if facts.fio is not None:
            by_errno: dict[int, int] = {}
            for job in facts.fio.jobs:
                if job.error:
                    by_errno[job.error] = by_errno.get(job.error, 0) + 1
            for number, count in sorted(by_errno.items()):
                name = errno.errorcode.get(abs(number), str(number))
                entries = (
                    f"{count} of {len(facts.fio.jobs)} entries"
                    if len(facts.fio.jobs) > 1
                    else "its entry"
                )
                yield invalid(
                    "job-error",
                    f"fio reports {name} ({os.strerror(abs(number))}) in {entries}",
                    errno=number,
                    entries=count,
                )
            failed = sum(job.total_errors for job in facts.fio.jobs)
            if failed:
                yield invalid("io-errors", f"{failed} I/Os failed", failed_ios=failed)
        code = facts.plan.exit_code
        if code:
            how = f"was ended by signal {code - 128}" if code > 128 else f"exited with {code}"
            yield invalid("exit-code", f"fio {how}", exit_code=code)
        if facts.plan.status in ("failed", "interrupted"):
            why = str(facts.plan.extra.get("failure") or f"the run was {facts.plan.status}")
            yield invalid(facts.plan.status, why)
