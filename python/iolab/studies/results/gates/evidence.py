# SPDX-License-Identifier: Apache-2.0
"""Is the evidence there and readable?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.base.verdict import Reason
from iolab.formats.fio.messages import trouble_in

from ..evidence.model import PROGRAM
from ..facts.run_facts import RunFacts
from .base import invalid, suspect


class EvidenceGate:
    """INVALID without a readable result of the load, with any file damaged that numbers come from,
    or where one run has sections that ran one after another; SUSPECT where another file was
    changed, removed or added after the run ended, and where fio wrote text into its JSON.

    fio prints errors of I/O units and "terminating on signal" into the output file ahead of the
    document (fio issues 731, 2048), so text there means that something happened; its notes,
    progress and normal output don't.
    """

    name = "evidence"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """One reason per damaged or altered file, one for a missing result, one for leading text."""
        for damaged in facts.damaged:
            yield invalid(
                "damaged-file", f"{damaged.file} can't be used: {damaged.reason}", file=damaged.file
            )
        for altered in facts.altered:
            yield suspect(
                "altered-file",
                f"{altered.file} is not as the run left it: {altered.reason}",
                file=altered.file,
            )
        if facts.fio is None:
            is_program = PROGRAM in facts.plan.extra and facts.plan.window is not None
            if not facts.damaged and not facts.clients and not is_program:
                yield invalid("no-result", "fio left no result: no file of the run is fio output")
            return
        if facts.sections:
            yield invalid(
                "sections",
                f"{facts.fio_file} holds {len(facts.sections)} sections that ran one after another "
                f"({_few(facts.sections)}), each a measurement of its own: import it again, which makes a run of each",
                file=facts.fio_file,
                sections=list(facts.sections),
            )
        elif not facts.fio.jobs:
            yield invalid(
                "no-io",
                f"{facts.fio_file} holds no job: fio was ended before any of them reported",
                file=facts.fio_file,
            )
        elif not facts.directions:
            yield invalid("no-io", "fio's result holds no I/O at all", file=facts.fio_file)
        trouble = trouble_in(facts.fio.leading_text)
        if trouble is not None:
            yield suspect(
                "text-in-json",
                f"fio wrote text before its JSON: '{trouble[:120]}'",
                file=facts.fio_file,
            )


def _few(names: Sequence[str]) -> str:
    return (
        ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
    )
