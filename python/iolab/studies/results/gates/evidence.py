# SPDX-License-Identifier: Apache-2.0
"""Is the evidence there and readable?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.base.verdict import Reason
from iolab.formats.fio.messages import messages_in

from ..evidence.model import PROGRAM
from ..facts.run_facts import RunFacts
from .base import invalid, note, suspect


class EvidenceGate:
    """INVALID without a readable result of the load, with a damaged file of the load's own
    numbers, or where one run has sections that ran one after another. SUSPECT where another file was
    changed, removed or added after the run ended, and where fio wrote a message of trouble
    before its JSON. Damage of other files, such as a monitor's, is a note: their whole readings
    count, and the load's numbers don't depend on them.

    fio prints errors of I/O units and "terminating on signal" into the output file ahead of the
    document (fio issues 731, 2048), so such text means that something happened. Its notes,
    progress and normal output don't. Text of other programs (ssh, sudo, a shell) gets there where
    somebody redirects the output of all of them into one file: a note that doesn't blame fio.
    """

    name = "evidence"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """One reason per damaged or altered file, one for a missing result, one for leading text."""
        for damaged in facts.damaged:
            if damaged.is_auxiliary:
                text = f"{damaged.file} is damaged: {damaged.reason}"
                yield note("damaged-file", text, file=damaged.file)
            else:
                text = f"{damaged.file} can't be used: {damaged.reason}"
                yield invalid("damaged-file", text, file=damaged.file)
        for altered in facts.altered:
            yield suspect(
                "altered-file",
                f"{altered.file} is not as the run left it: {altered.reason}",
                file=altered.file,
            )
        if facts.fio is None:
            is_program = PROGRAM in facts.plan.extra and facts.plan.window is not None
            is_explained = any(not damaged.is_auxiliary for damaged in facts.damaged)
            if not is_explained and not facts.clients and not is_program:
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
        yield from _messages(facts.fio.leading_text, facts.fio_file)


def _messages(leading_text: str, file: str) -> Iterable[Reason]:
    """Text before fio's JSON: trouble of fio, its harmless notices, and other text."""
    messages = messages_in(leading_text)
    if messages.trouble:
        text = f"fio wrote text before its JSON: '{messages.trouble[0][:120]}'"
        yield suspect("text-in-json", text, file=file)
    if messages.notices:
        yield note("fio-notice", f"fio says: '{messages.notices[0][:120]}'", file=file)
    if messages.others:
        text = f"text before the JSON, not known to be fio's: '{messages.others[0][:120]}'"
        yield note("other-text", text, file=file, lines=len(messages.others))


def _few(names: Sequence[str]) -> str:
    return (
        ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
    )
