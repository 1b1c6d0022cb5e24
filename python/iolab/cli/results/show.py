# SPDX-License-Identifier: Apache-2.0
"""`iolab show`: what is in it: runs, verdicts with reasons, metrics, environment; of a recording or
trace, its I/Os."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.options import PATH, format_option, from_standard_input, open_results
from ..base.output import tell, tell_json

if TYPE_CHECKING:
    from iolab.base.verdict import Reason
    from iolab.studies.results.evidence.model import Run
    from iolab.studies.results.open.results import Results


@click.command("show")
@click.argument("path", metavar="PATH", type=PATH)
@click.option("--runs", "every", is_flag=True, help="A line for each run.")
@format_option("text", "json")
def command(path: Path, every: bool, style: str) -> None:
    """Show what results hold: runs, verdicts with their reasons, metrics, environment. Of a
    recording or trace of I/O: operations, span, percentiles, losses.

    PATH is also a file that fio wrote: JSON, terse, or the text that it prints. A - reads
    standard input: paste the text, then press Ctrl-D.
    """
    from .show_recording import is_recording, show_recording
    from .show_trace import is_trace, show_trace

    path = from_standard_input(path)
    if is_recording(path):
        show_recording(path, style)
        return
    if is_trace(path):
        show_trace(path, style)
        return
    results = open_results(path)
    if style == "json":
        tell_json(as_json(results))
        return
    tell(
        *_head(results),
        *_reasons(results),
        *(_runs(results) if every else []),
        *client_lines(results.runs),
        *profile_lines(results.path),
        *_rest(results),
    )


def as_json(results: Results) -> dict[str, Any]:
    """`{"schema": 1, "kind": "results", "runs": [...], ...}`: what scripts may rely on."""
    manifest = results.manifest
    return {
        "schema": 1,
        "kind": "results",
        "name": manifest.name,
        "origin": manifest.origin,
        "baseline": results.baseline,
        "variants": manifest.variants,
        "factors": manifest.factors,
        "metrics": results.metrics(),
        "verdicts": _counts(results),
        "until": (manifest.study or {}).get("until"),
        "standing": None if results.standing is None else asdict(results.standing),
        "environment": results.environment(),
        "reproduce": manifest.reproduce,
        "runs": [
            {
                "run": run.id,
                "variant": run.variant,
                "factors": dict(run.factors),
                "repetition": run.plan.repetition,
                "block": run.plan.block,
                "host": run.plan.host,
                "status": run.plan.status,
                "verdict": run.verdict.as_json(),
                "metrics": {
                    name: observation.value for name, observation in run.observations.items()
                },
                "evidence": str(run.evidence),
                "assumptions": list(run.assumptions),
                **clients_json(run),
            }
            for run in results.runs
        ],
        **profiles_json(results.path),
    }


def _counts(results: Results) -> dict[str, int]:
    from iolab.base.verdict import Level

    counted = {
        level.value: sum(run.verdict.level is level for run in results.runs) for level in Level
    }
    return {level: count for level, count in counted.items() if count}


def _head(results: Results) -> list[str]:
    from iolab.base.metrics import of
    from iolab.base.units import format_number, readable_unit
    from iolab.studies.compare.axes import level_text, levels
    from iolab.studies.compare.rules.sequential import sequential_notes

    manifest = results.manifest
    kind = {"run": "runs made here", "tree": "imported files", "table": "published numbers"}[
        manifest.origin
    ]
    lines = [
        f"{manifest.name}: {len(results.runs)} run{'' if len(results.runs) == 1 else 's'}, {kind}"
    ]
    lines += [f"  {line}" for line in manifest.description.splitlines()]
    named = [
        f"{name} (baseline)" if name == results.baseline else name for name in manifest.variants
    ]
    lines.append(f"variants  {', '.join(named)}")
    for name in manifest.factors:
        swept = ", ".join(
            level_text(key[0]) for key in levels(results.runs, [name]) if key[0] is not None
        )
        lines.append(f"factor    {name}: {swept}")
    lines.append(
        f"verdicts  {', '.join(f'{count} {level}' for level, count in _counts(results).items()) or 'none: no run is there'}"
    )
    lines += [f"blocks    {note.text}" for note in sequential_notes(results.path, manifest)]
    if results.standing is not None:
        lines += [f"missing   {text}" for text in results.standing.words()]
    ratios = [value for run in results.runs if (value := run.value("littles_law")) is not None]
    if ratios:
        lines.append(
            f"Little's law  L/C {_range(f'{min(ratios):.3f}', f'{max(ratios):.3f}')} over "
            f"{len(ratios)} closed-loop run{'' if len(ratios) == 1 else 's'}"
        )
    lines.append("metrics")
    for name in results.metrics():
        if not of(name).headline:
            continue
        values = [value for run in results.runs if (value := run.value(name)) is not None]
        symbol, scale = readable_unit(values, run_unit(results.runs, name))
        low, high = (format_number(end / scale) for end in (min(values), max(values)))
        runs = f"{len(values)} run{'' if len(values) == 1 else 's'}"
        lines.append(f"  {name:18} {_range(low, high)} {symbol}".rstrip() + f", {runs}")
    hidden = sum(not of(name).headline for name in results.metrics())
    lines += [f"  and {hidden} more (iolab catalog metrics explains them)"] if hidden else []
    return lines


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def run_unit(runs: list[Run], metric: str) -> str:
    """The base unit in which runs hold a metric."""
    return next(run.observations[metric].unit for run in runs if metric in run.observations)


def _reasons(results: Results) -> list[str]:
    """Each kind of reason with its runs, worst first."""
    by_code: dict[tuple[int, str], list[tuple[Run, Reason]]] = {}
    for run in results.runs:
        for reason in run.verdict.reasons:
            by_code.setdefault((-reason.level.rank, reason.code), []).append((run, reason))
    lines = []
    for (rank, code), reasons in sorted(by_code.items(), key=lambda item: item[0]):
        level = "note" if rank == 0 else reasons[0][1].level.value
        many = len({run.id for run, _ in reasons})
        lines.append(f"{level}  {code}: {many} run{'s' if many > 1 else ''}")
        most = 8 if rank else 2
        lines += [f"    {_place(run)}: {reason.text}" for run, reason in reasons[:most]]
        lines += (
            [f"    and {len(reasons) - most} more (--format json has them all)"]
            if len(reasons) > most
            else []
        )
    return lines


def _place(run: Run) -> str:
    from iolab.studies.compare.axes import axis_text

    return " ".join(
        part
        for part in (
            run.id,
            run.variant,
            axis_text(run.factors.keys(), tuple(run.factors.values())),
        )
        if part
    )


def _runs(results: Results) -> list[str]:
    return [
        "runs",
        *(
            f"  {run.verdict.level.value:9} {_place(run)} repetition {run.plan.repetition} {run.plan.status}"
            for run in results.runs
        ),
    ]


def _rest(results: Results) -> list[str]:
    lines = []
    facts = dict(results.environment().get("fingerprint", {}))
    for name in facts:
        values = dict.fromkeys(str(run.environment.get(name, facts[name])) for run in results.runs)
        if len(values) > 1:
            facts[name] = ", ".join(values)
    if facts:
        lines += ["environment", *(f"  {name}: {value}" for name, value in facts.items())]
    assumptions = dict.fromkeys(text for run in results.runs for text in run.assumptions)
    if assumptions:
        lines += ["assumed", *(f"  {text}" for text in list(assumptions)[:8])]
        lines += [f"  and {len(assumptions) - 8} more"] if len(assumptions) > 8 else []
    if results.manifest.reproduce:
        import shlex

        lines.append(f"made by   {shlex.join(results.manifest.reproduce)}")
    return lines


def client_lines(runs: Sequence[Run]) -> list[str]:
    """A line for each client; none for a load on one host.

    It has the range of the client's rate, its number of runs, its share of their sum, and how far
    its clock was off.
    """
    from iolab.base.units import format_number, readable_unit
    from iolab.studies.results.derive.clients import FACTOR, client_runs
    from iolab.studies.results.open.results import default_metric

    parts = [(run, part) for run in runs for part in client_runs(run)]
    if not any(part.observations for _, part in parts):
        return []
    metric = default_metric([part for _, part in parts], "")
    lines = [f"clients, {metric}"]
    names = list(dict.fromkeys(str(part.factors[FACTOR]) for _, part in parts))
    width = max(map(len, names))
    every = [value for _, part in parts if (value := part.value(metric)) is not None]
    unit = next(part.observations[metric].unit for _, part in parts if metric in part.observations)
    symbol, scale = readable_unit(every, unit)
    for name in names:
        own = [
            (run, value)
            for run, part in parts
            if part.factors[FACTOR] == name and (value := part.value(metric)) is not None
        ]
        if not own:
            continue
        low, high = min(value for _, value in own), max(value for _, value in own)
        sums = [(value, total) for run, value in own if (total := run.value(metric))]
        share = (
            f", {100 * sum(value for value, _ in sums) / sum(total for _, total in sums):.1f} % of the sum of these runs"
            if sums
            else ""
        )
        lines.append(
            f"  {name:{width}}  {_range(format_number(low / scale), format_number(high / scale))} {symbol}, "
            f"{len(own)} run{'' if len(own) == 1 else 's'}{share}{_clock(name, [run for run, _ in own])}"
        )
    return lines


def _clock(name: str, runs: Sequence[Run]) -> str:
    from iolab.base.units import format_quantity
    from iolab.studies.results.evidence.clients import clients_of

    offsets = [
        (abs(client.clock_offset_ns), client.clock_uncertainty_ns)
        for run in runs
        for client in clients_of(run.plan)
        if client.name == name
    ]
    if not offsets or max(offsets) == (0, 0):
        return ""
    offset, uncertainty = max(offsets)
    return (
        f", clock off by up to {format_quantity(offset / 1e9, 's', 3)} "
        f"(known to {format_quantity(uncertainty / 1e9, 's', 2)})"
    )


def clients_json(run: Run) -> dict[str, Any]:
    """`{"clients": [{"client", ..., "metrics": {...}}, ...]}`; empty for a load on one host."""
    from iolab.base.errors import FormatError
    from iolab.studies.results.derive.clients import FACTOR, client_runs
    from iolab.studies.results.evidence.clients import clients_of

    try:
        recorded = {client.name: client.as_data() for client in clients_of(run.plan)}
    except FormatError:
        return {}
    metrics = {
        str(part.factors[FACTOR]): {name: value.value for name, value in part.observations.items()}
        for part in client_runs(run)
    }
    names = list(dict.fromkeys([*recorded, *metrics]))
    if not names:
        return {}
    return {
        "clients": [
            {
                FACTOR: name,
                **{key: value for key, value in recorded.get(name, {}).items() if key != "name"},
                "metrics": metrics.get(name, {}),
            }
            for name in names
        ]
    }


def profile_lines(path: Path) -> list[str]:
    """A line for each profile, with what was sampled; and what was to be one."""
    from iolab.studies.compare.axes import axis_text
    from iolab.studies.compare.profile_words import remarks, sampling_text, spent
    from iolab.studies.results.open.profiles import read_profiles

    profiles, notes = read_profiles(path)
    if not profiles and not notes:
        return []
    lines = ["profiles  in runs of their own, which enter no estimate; iolab report draws them"]
    for profile in profiles:
        head = " ".join(
            part
            for part in (
                profile.run,
                profile.variant,
                axis_text(profile.factors.keys(), tuple(profile.factors.values())),
            )
            if part
        )
        lines.append(f"  {head}: {sampling_text(profile)}; {spent(profile)}")
        lines += [f"    {text}" for text in remarks(profile)]
    return [*lines, *(f"  {note}" for note in notes)]


def profiles_json(path: Path) -> dict[str, Any]:
    """`{"profiles": [...]}`, empty where there are none."""
    from iolab.studies.results.open.profiles import read_profiles

    profiles, notes = read_profiles(path)
    if not profiles and not notes:
        return {}
    return {
        "profiles": [
            {
                "run": profile.run,
                "variant": profile.variant,
                "factors": dict(profile.factors),
                "host": profile.host,
                "samples": profile.samples,
                "busy_samples": profile.busy_samples,
                "kernel_samples": profile.kernel_samples,
                "frequency": profile.frequency,
                "seconds": profile.seconds,
                "cpus": profile.cpus,
                "event": profile.event,
                "lost_chunks": profile.lost,
                "damaged_samples": profile.damaged,
                "stacks": str(profile.evidence / profile.file),
            }
            for profile in profiles
        ],
        "profiles_missing": notes,
    }
