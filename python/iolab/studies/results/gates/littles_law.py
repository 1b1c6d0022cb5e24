# SPDX-License-Identifier: Apache-2.0
"""Does the load obey Little's law?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from iolab.base.units import format_number, format_quantity
from iolab.base.verdict import Reason

from ..facts.concurrency import Concurrency, concurrency_of, in_flight
from ..facts.run_facts import RunFacts
from .base import invalid, note, suspect
from .cpu_bound import SATURATED_CPU, SHORTEST

HIGH = 1.03
LOW = 0.97
SLOW_SECONDS = 100e-6
"""Above this mean latency the time a job spends between I/Os can't explain a gap."""
PACING = ("rate", "rate_iops", "thinktime", "flow")
"""fio's options that make a job wait between its I/Os (fio(1)); `rate_iops` of all jobs makes an
open loop, which is judged by its rate."""
FILLING = (
    "iodepth_low",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "latency_target",
    "serialize_overlap",
    "verify_backlog",
    "io_submit_mode",
)
"""fio's options by which a job holds fewer I/Os than its iodepth (fio(1))."""


def concurrency_reason(
    in_flight: float, concurrency: float, latency: float, cpu_bound: bool | None
) -> Reason | None:
    """The reason, if any, that L = `in_flight` against C = `concurrency` gives; `cpu_bound` None
    for published numbers."""
    ratio = in_flight / concurrency
    data = {"in_flight": in_flight, "concurrency": concurrency, "ratio": ratio}
    if ratio > HIGH and cpu_bound is not None:
        text = (
            f"Little's law: {format_number(in_flight)} I/Os in flight by rate and latency, but only {format_number(concurrency)} can "
            "be: a unit or a field is wrong"
        )
        return invalid("littles-law", text, **data)
    if ratio < LOW or ratio > HIGH:
        share = (
            f"time outside I/O: {format_number(100 * (1 - ratio), 3)} %"
            if ratio < LOW
            else f"more I/Os in flight than jobs: L/C = {format_number(ratio)}"
        )
        if cpu_bound is False and latency >= SLOW_SECONDS:
            return suspect(
                "time-outside-io",
                f"{share} at a mean latency of {format_quantity(latency, 's', 3)}",
                **data,
            )
        return note("time-outside-io", share, **data)
    return None


class LittlesLawGate:
    """L = rate x mean latency against C = jobs x effective depth, closed loops only (Little 1961).

    L > 1.03 C is a unit or field error: INVALID where C is known, that is planned, or proven by the
    result itself. A note where syncs make the difference, which engines do in addition to the I/Os
    of the depth. L < 0.97 C is time that jobs spend outside I/O: a note. It is SUSPECT only where the mean
    latency is at least 100 µs, the run took a second, no option lets fio wait between I/Os or hold
    fewer than its depth (`PACING`, `FILLING`), and neither a job saturates its CPU nor anyone the
    host's, which of an imported run must be known. Of a set of files it is never more than a note:
    they have to be opened, and some jobs are through before the others. What isn't known of C is
    noted; an assumed C makes nothing INVALID.
    """

    name = "littles-law"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The in-flight count over all operations, syncs included, against what the jobs can hold."""
        occupancy = in_flight(facts)
        if occupancy is None:
            return
        inside, syncs, latency = occupancy
        concurrency = concurrency_of(facts)
        reason: Reason | None
        if concurrency.most and inside > HIGH * concurrency.most:
            if inside - syncs <= HIGH * concurrency.most:
                reason = _of_syncs(inside, syncs, concurrency.most)
            else:
                reason = concurrency_reason(inside, concurrency.most, latency, cpu_bound=True)
        elif (
            concurrency.value is None
            and concurrency.plausible is not None
            and inside <= HIGH * concurrency.plausible
        ):
            reason = None
        elif concurrency.value is None or inside > HIGH * concurrency.value:
            reason = _unknown(inside, concurrency)
        else:
            saturated = (
                max(facts.cpu, facts.host_busy or 0.0) >= SATURATED_CPU
                or "files" in facts.plan.extra
                or facts.runtime < SHORTEST
                or (facts.plan.status == "imported" and facts.host_busy is None)
            )
            paced, filled = _options_of_any(facts, PACING), _options_of_any(facts, FILLING)
            reason = concurrency_reason(
                inside,
                concurrency.value,
                latency,
                saturated or bool(paced) or bool(filled) or not concurrency.is_told,
            )
            if reason is not None and paced:
                reason = replace(
                    reason, text=f"{reason.text}: fio waits between I/Os ({', '.join(paced)})"
                )
            elif reason is not None and filled:
                reason = replace(
                    reason,
                    text=f"{reason.text}: fio does not always fill its depth ({', '.join(filled)})",
                )
        if reason is not None:
            yield reason


def _options_of_any(facts: RunFacts, names: Sequence[str]) -> list[str]:
    """`name=value` of those options that a job of the run has, other than off."""
    jobs = () if facts.fio is None else facts.fio.jobs
    every = [facts.options, *(job.options for job in jobs)]
    values = {(name, options[name]) for options in every for name in names if name in options}
    return [
        f"{name}={value}"
        for name, value in sorted(values, key=lambda pair: (names.index(pair[0]), pair[1]))
        if name == "iodepth_batch_complete_min" or value.strip("0,") != ""
    ]


def _of_syncs(in_flight: float, syncs: float, concurrency: float) -> Reason:
    text = (
        f"{format_number(in_flight)} I/Os in flight by rate and latency, of which "
        f"{format_number(syncs)} are syncs: fio does not count these in its depth"
    )
    return note("syncs-in-flight", text, in_flight=in_flight, syncs=syncs, concurrency=concurrency)


def _unknown(inside: float, concurrency: Concurrency) -> Reason:
    many = f"{format_number(inside)} I/Os in flight by rate and latency"
    data = {"in_flight": inside, "concurrency": concurrency.value}
    if concurrency.unknown:
        return note(
            "concurrency-unknown",
            f"{many}; how many could be isn't known: {concurrency.unknown}",
            **data,
        )
    return note(
        "concurrency-unknown",
        f"{many}, more than the result's options ask for: they may be those of one of several jobs",
        **data,
    )
