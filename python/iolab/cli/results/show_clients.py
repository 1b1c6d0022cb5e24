# SPDX-License-Identifier: Apache-2.0
"""`iolab show` of a load from several clients: each client's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...results.evidence.model import Run


def client_lines(runs: Sequence[Run]) -> list[str]:
    """A line for each client; none for a load on one host.

    It has the range of the client's rate, its number of runs, its share of their sum, and how far
    its clock was off.
    """
    from ...results.derive.clients import FACTOR, client_runs
    from ...results.open.results import default_metric
    from ...units import format_number, readable_unit

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
            f"  {name:{width}}  {format_number(low / scale)} to {format_number(high / scale)} {symbol}, "
            f"{len(own)} run{'' if len(own) == 1 else 's'}{share}{_clock(name, [run for run, _ in own])}"
        )
    return lines


def _clock(name: str, runs: Sequence[Run]) -> str:
    from ...results.evidence.clients import clients_of
    from ...units import format_quantity

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
    from ...errors import FormatError
    from ...results.derive.clients import FACTOR, client_runs
    from ...results.evidence.clients import clients_of

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
