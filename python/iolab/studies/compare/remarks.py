# SPDX-License-Identifier: Apache-2.0
"""Remarks on the numbers: footnotes of cells, warnings of the whole."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from iolab.base.metrics import LEAST_BEYOND, Metric
from iolab.base.stats.blocks import shared_luck_p
from iolab.base.stats.sessions import least_permutation_p
from iolab.base.units import format_quantity
from iolab.base.verdict import Level

from ..results.evidence.completeness import Standing, unreadable_runs
from ..results.evidence.model import KERNEL, Run
from .arms import arm_runs, is_asymmetric
from .axes import Axes, level_text
from .cells import ArmCell, Pairing, is_tail
from .model import (
    CONFOUNDED,
    NOT_ALTERNATING,
    SYNCS_APART,
    SYNCS_DIFFER,
    UNBALANCED,
    Change,
    Difference,
    Key,
    Warning,
)

Place = tuple[Key, Key, Key]


def footnotes_of(
    arm: ArmCell, pairing: Pairing | None, metric: Metric, notes: dict[str, str]
) -> tuple[str, ...]:
    """Codes of what a reader must know of one cell; their texts are added to `notes`, with an
    example each."""
    codes: dict[str, None] = {}

    def say(code: str, text: str) -> None:
        codes[code] = None
        notes.setdefault(code, text)

    for run in arm.runs:
        for reason in run.verdict.blames:
            say(reason.code, f"SUSPECT, {reason.code}: such as {run.id}, {reason.text}")
        if run.verdict.has("saturated"):
            say("saturated", "saturated: the offered rate was not reached")
    for run in arm.left_out.values():
        is_paired = not run.results and not (pairing is not None and pairing.is_by_sessions)
        partner = ", with the other arm's run of their block" if is_paired else ""
        if run.verdict.level is Level.INVALID:
            why = f", {run.verdict.blames[0].text}" if run.verdict.blames else ""
            say(
                "invalid",
                f"INVALID runs left out{partner}: such as {run.id}{why}",
            )
        else:
            say(
                "missing",
                f"runs without {metric.name} left out{partner}",
            )
    if is_tail(arm.runs, metric):
        say(
            "tail",
            f"the tail of the sample, shown and not tested: fewer than {LEAST_BEYOND} I/Os of a run "
            "are beyond it, so that it depends on their number",
        )
    if pairing is not None and pairing.zero:
        say(
            "zero",
            "a value is zero, which has no logarithm: change of the arithmetic mean, without a test"
            if pairing.zero_change is not None
            else "the baseline's values are zero: no ratio",
        )
    return tuple(codes)


def syncs_warning(runs: Sequence[Run], metric: Metric) -> list[Warning]:
    """That a latency of writes leaves out syncs, which fio times apart; empty without syncs.

    `SYNCS_DIFFER` where the numbers of syncs for each write differ between the arms by more than a
    tenth. The arm with more syncs then waits longer, which the latency of its writes does not show.
    """
    if not re.fullmatch(r"write\.(lat|clat)\..*", metric.name):
        return []
    by_arm: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        writes, syncs = run.value("write.ios"), run.value("sync.ios")
        has_syncs = syncs is not None or run.value("sync.lat.mean") is not None
        number = syncs if syncs is not None else (writes or 1.0 if has_syncs else 0.0)
        rate = number / writes if writes else number
        by_arm.setdefault(run.variant, []).append((rate, run.value("sync.lat.mean") or 0.0))
    rates = {arm: fmean(rate for rate, _ in pairs) for arm, pairs in by_arm.items()}
    if not any(rates.values()):
        return []
    if max(rates.values()) <= 1.1 * min(rates.values()):
        text = (
            "fio times syncs apart: a write's latency leaves out the time in fsync and fdatasync, "
            "which sync.lat.mean has"
        )
        return [Warning(SYNCS_APART, text)]
    arms = []
    for arm, pairs in by_arm.items():
        times = [seconds for _, seconds in pairs if seconds]
        mean_time = f", {format_quantity(fmean(times), 's', 3)} each" if times else ""
        arms.append(f"{arm} {rates[arm]:.2g} per write{mean_time}" if rates[arm] else f"{arm} none")
    text = (
        f"latencies of writes leave out syncs, and the arms sync differently ({'; '.join(arms)}): "
        "a lower latency is not judged as better"
    )
    return [Warning(SYNCS_DIFFER, text)]


def warnings_of(
    runs: Sequence[Run],
    metric: Metric,
    axes: Axes,
    baseline: str,
    variants: Sequence[str],
    pairings: Mapping[tuple[Place, str], Pairing],
    changes: Mapping[tuple[Place, str], Change],
    differences: Sequence[Difference] = (),
) -> tuple[Warning, ...]:
    """What holds for the comparison as a whole."""
    warnings = []
    base, *others = arm_runs(runs, (baseline, *variants))
    unlike = [arm for arm in others if is_asymmetric(base, arm)]
    if unlike:
        listed = ", ".join(
            f"{arm.variant} {len(arm.lost)} of {arm.planned}" for arm in (base, *unlike[:4])
        )
        warnings.append(
            Warning(
                "losses",
                f"the arms lost different runs ({listed}): those that count may be the better ones "
                "of an arm",
            )
        )
    if not variants:
        warnings.append(
            Warning(
                "one-variant",
                f"'{baseline}' is the only variant: there is nothing to compare it with",
            )
        )
    if axes.unasked:
        listed = ", ".join(axes.unasked)
        warnings.append(
            Warning(
                "hidden-variation",
                f"{listed} varies and was not requested: a table for each level "
                f"(--where {axes.unasked[0]}=... picks one, --ignore {axes.unasked[0]} pools them)",
            )
        )
    for name in axes.ignored:
        levels = _list_texts({level_text(run.factors.get(name)) for run in runs})
        warnings.append(
            Warning("hidden-variation", f"hidden variation: {name} varies within cells ({levels})")
        )
    warnings += [
        Warning("same-sources", text)
        for text in dict.fromkeys(
            note.text for run in runs for note in run.verdict.notes if note.code == "same-sources"
        )
    ][:1]
    warnings += _environment(runs, {difference.name for difference in differences})
    warnings += _devices(runs)
    warnings += syncs_warning(runs, metric)
    if any(run.verdict.level is Level.UNJUDGED for run in runs):
        warnings.append(
            Warning("unjudged", "published numbers: UNJUDGED, without evidence to look at")
        )
    warnings += shared_luck_notes(
        metric,
        {
            variant: [pairing for (_, name), pairing in pairings.items() if name == variant]
            for variant in variants
        },
    )
    warnings += _sessions(changes.values(), pairings.values())
    in_blocks = [change.pairs for change in changes.values() if change.sessions is None]
    most = max(in_blocks, default=0)
    if in_blocks and most == 1:
        warnings.append(
            Warning(
                "one-block",
                "one run per cell: no interval, and no change can be distinguished from noise",
            )
        )
    elif 1 < most < 6:
        warnings.append(
            Warning(
                "few-blocks",
                f"{most} blocks: the exact test can't be significant below 6, as p of {most} pairs is at "
                f"least {2 / 2**most:.3g}",
            )
        )
    has_several = any(run.results for run in runs)
    for unit, why, is_by_sessions in (
        ("pair", "one side INVALID or missing", False),
        ("run", "INVALID, or without a run of the other arm", True),
    ):
        # a cell that one of several results lacks is listed as unmatched
        counted = [
            pairing
            for pairing in pairings.values()
            if pairing.is_by_sessions is is_by_sessions and (is_by_sessions or not has_several)
        ]
        without = sum(pairing.without for pairing in counted)
        dropped = sum(pairing.dropped for pairing in counted) - without
        if dropped:
            warnings.append(
                Warning("dropped", f"{dropped} {unit}{'s' if dropped > 1 else ''} left out: {why}")
            )
        if without:
            warnings.append(
                Warning(
                    "without",
                    f"{metric.name}: {without} {unit}{'s' if without > 1 else ''} left out, without the metric",
                )
            )
    return tuple(warnings)


def _sessions(changes: Iterable[Change], pairings: Iterable[Pairing]) -> list[Warning]:
    """What follows from arms that did not take turns, or of which this is not known."""
    warnings = []
    every, pairings = list(changes), list(pairings)
    by_sessions = [change.sessions for change in every if change.sessions is not None]
    confounded = sum(change.reason == CONFOUNDED for change in every)
    if confounded:
        warnings.append(
            Warning(
                CONFOUNDED,
                f"{confounded} of {len(every)} changes confounded with time; repeat each arm in at "
                "least 3 sessions, alternating: the arms were not measured in turn and one has a "
                "single session, so that the change contains the difference of the sessions",
            )
        )
    if any(min(sessions) > 1 for sessions in by_sessions):
        if not all(pairing.is_alternating for pairing in pairings):
            warnings.append(
                Warning(
                    NOT_ALTERNATING,
                    "all sessions of one arm were before those of the other: a trend over that time "
                    "is part of the change, so that nothing is significant; alternate the arms",
                )
            )
        unequal = sorted({sessions for sessions in by_sessions if sessions[0] != sessions[1]})
        equal = [sessions for sessions in by_sessions if sessions[0] == sessions[1]]
        if unequal:
            listed = ", ".join(f"{first} and {second}" for first, second in unequal[:3])
            warnings.append(
                Warning(
                    UNBALANCED,
                    f"unequal numbers of sessions ({listed}): arms may differ in noise, so that "
                    "Welch's t interval over session means decides and there is no permutation test",
                )
            )
        if equal and (most := max(equal))[0] < 4:
            least = least_permutation_p(most)
            warnings.append(
                Warning(
                    "few-sessions",
                    f"{most[0]} sessions of each arm: p of the permutation test can't fall below "
                    f"{least:.2g}, and Welch's t interval over session means decides",
                )
            )
    return [*warnings, *order_notes(pairings)]


def order_notes(pairings: Iterable[Pairing]) -> list[Warning]:
    """That the place of imported runs in the order of the runs is not known."""
    unordered = [
        (pairing.unordered, runs, pairing.is_by_sessions)
        for pairing in pairings
        if pairing.unordered
        and (
            runs := 2 * len(pairing.differences)
            if pairing.sessions is None
            else sum(len(values) for arm in pairing.sessions for values in arm.values())
        )
        > 2
    ]
    if not unordered:
        return []
    count, runs = (sum(numbers) for numbers in zip(*(item[:2] for item in unordered), strict=True))
    if count >= runs:
        text = "fio's results do not state when they ran: the arms are assumed to have taken turns"
    elif any(is_by_sessions for *_, is_by_sessions in unordered):
        text = (
            f"{count} of {runs} runs do not state when they ran; by the times of the others the arms "
            "did not take turns"
        )
    else:
        text = (
            f"{count} of {runs} runs do not state when they ran; the times of the others do not "
            "contradict that the arms took turns"
        )
    return [Warning("order-unknown", text)]


SHARED_LUCK_NOTED = 0.01
"""Below this p value a note says that blocks share their luck: one of a hundred sound sweeps has
it. Variances are not pooled below `SHARED_LUCK_LEVEL` already."""


def shared_luck_notes(
    metric: Metric, pairings_by_variant: Mapping[str, Sequence[Pairing]]
) -> list[Warning]:
    """That cells of a sweep are not independent evidence, by variant."""
    notes = []
    for variant, pairings in pairings_by_variant.items():
        in_blocks = [pairing for pairing in pairings if len(pairing.differences) >= 3]
        p = None
        if len(in_blocks) > 1:
            p = shared_luck_p(
                [pairing.differences for pairing in in_blocks],
                [pairing.blocks for pairing in in_blocks],
            )
        if p is not None and p <= SHARED_LUCK_NOTED:
            notes.append(
                Warning(
                    "shared-luck",
                    f"{metric.name} of {variant}: the {len(in_blocks)} cells rise and fall together "
                    "from block to block, so that they are not independent evidence; blocks are "
                    "the unit, and each cell keeps its own variance",
                )
            )
    return notes


def study_notes(
    runs: Sequence[Run], standing: Standing | None, imported: Mapping[str, Any] | None = None
) -> tuple[Warning, ...]:
    """What is missing of a study, which of its runs have a missing or damaged `run.json`, and in
    which of fio's options the variants of imported runs differ.

    `runs` are all runs of the results, before any choice: a damaged run has no variant or factor to
    choose it by.
    """
    missing = [] if standing is None else standing.words()
    return (
        *(Warning("unfinished", text) for text in missing),
        *(Warning("unreadable-run", text) for text in unreadable_runs(runs)),
        *(Warning("options", str(text)) for text in (imported or {}).get("differences", ())),
    )


def _environment(runs: Sequence[Run], shown: Container[str]) -> list[Warning]:
    """Host facts that differ between runs of one host, and hosts that differ; `shown` are stated
    elsewhere."""
    differences = []
    hosts = dict.fromkeys(run.plan.host for run in runs)
    if len(hosts) > 1:
        differences.append(
            Warning(
                "hidden-variation",
                f"hidden variation: runs of several hosts ({_list_texts(set(hosts))}); pairs are of one host",
            )
        )
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.environment.items():
            values.setdefault(name, set()).add(value)
    # a study that names the kernel of each run compares kernels
    intended = {KERNEL} if all(KERNEL in run.plan.extra for run in runs) else set()
    if len(hosts) == 1:
        differences += [
            Warning(
                "hidden-variation",
                f"hidden variation: {name} of the host differs between runs ({_list_texts(texts)})",
            )
            for name, texts in values.items()
            if len(texts) > 1 and name not in shown and name not in intended
        ]
    return differences


def _devices(runs: Sequence[Run]) -> list[Warning]:
    """Devices that held up their peers in some runs: such a target isn't the same as one without
    them."""
    slow: dict[str, int] = {}
    for run in runs:
        for reason in run.verdict.reasons:
            if reason.code == "slow-device":
                name = str(reason.data.get("device", "?"))
                slow[name] = slow.get(name, 0) + 1
    return [
        Warning(
            "hidden-variation",
            f"hidden variation: the target's devices differ: {name} is slower than its peers in {count} of "
            f"{len(runs)} runs",
        )
        for name, count in sorted(slow.items())
    ]


def _list_texts(texts: set[str], most: int = 4) -> str:
    ordered = sorted(texts)
    return ", ".join(ordered[:most]) + (
        f" and {len(ordered) - most} more" if len(ordered) > most else ""
    )
