# SPDX-License-Identifier: Apache-2.0
"""What was measured: pools with their status and settings, what the study requested, block devices
and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.studies.compare.axes import key_of, level_text, levels
from iolab.studies.results.evidence.model import Run
from iolab.studies.results.facts.target_metrics import read_target

from ...model.payload import Grid, TargetPart, TextBlock
from ...model.source import Source
from ...words.phrases import count_text, list_text, place_text
from . import zfs_settings
from .devices import controllers_grid, devices_grid, requested_targets
from .measured_hosts import HostFacts, host_of, hosts_of

MOST_STATES = 12
"""Layouts, columns of settings and of what was requested; a study that makes a new pool with other
settings for each of a hundred cells has more."""

FACTS = (
    "target",
    "targets",
    "openzfs",
    "filesystem",
    "devices",
    "loops",
    "block_devices",
    "storage_controllers",
)
"""Facts of the environment that are shown here and not in the table of facts."""


@dataclass(frozen=True)
class _State:
    """Runs that were measured on targets that are alike."""

    runs: list[Run]
    target: Mapping[str, Any]
    settings: dict[str, str]


def target_part(results: Source) -> TargetPart:
    """What the evidence and the environment know of the target; empty lists where they know
    nothing."""
    hosts = hosts_of(results)
    states = _in_order(
        _states(
            results.runs, [target for host in hosts for target in requested_targets(host.facts)]
        ),
        results,
    )
    shown_states = states[:MOST_STATES]
    titles = [_title(state.runs, results.runs) for state in shown_states]
    grids = [
        _settings_grid(shown_states, titles, _omitted_note(len(states))),
        _asked_grid(hosts),
        devices_grid(hosts),
        controllers_grid(hosts),
    ]
    return TargetPart(
        states=_status_texts(states, results.runs), tables=[grid for grid in grids if grid.rows]
    )


def _omitted_note(targets: int) -> str:
    """That not all of so many targets are shown; empty where they are."""
    return (
        f"These are the first {MOST_STATES} of {targets} targets." if targets > MOST_STATES else ""
    )


def _states(runs: Sequence[Run], wanted: Sequence[Mapping[str, Any]]) -> list[_State]:
    """Pools by version, layout and settings; each is given by its first run."""
    options = [target_options.get("target") for target_options in wanted]
    names = {
        name: None
        for option in options
        if isinstance(option, Mapping)
        for part in ("pool", "properties", "module_parameters")
        if isinstance(table := option.get(part), Mapping)
        for name in table
    }
    states: dict[object, _State] = {}
    for run in runs:
        target = read_target(run.evidence, run.plan.files) if run.evidence.is_dir() else {}
        if target.get("kind") != "zfs":
            continue
        settings = zfs_settings.settings(target, names)
        key = (target.get("version"), tuple(_layout(target)), tuple(settings.items()))
        states.setdefault(key, _State([], target, settings)).runs.append(run)
    return list(states.values())


def _in_order(states: Sequence[_State], results: Source) -> list[_State]:
    """By variant and level, as a study lists its targets: runs come in seeded order."""
    variants, factors = results.manifest.variants, results.manifest.factors
    rank = {key: place for place, key in enumerate(levels(results.runs, factors))}

    def place(run: Run) -> tuple[int, int]:
        return variants.index(run.variant) if run.variant in variants else len(variants), rank[
            key_of(run, factors)
        ]

    return sorted(states, key=lambda state: min(map(place, state.runs)))


def _lines(target: Mapping[str, Any]) -> list[str]:
    pool = target.get("pool")
    lines = pool.get("status") if isinstance(pool, Mapping) else None
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _status(target: Mapping[str, Any]) -> str:
    return "\n".join(line.expandtabs() for line in _lines(target))


def _layout(target: Mapping[str, Any]) -> Iterable[str]:
    """The tree of the status without what differs in every pool: its name, and the widths that
    follow from it."""
    lines = _lines(target)
    name = next(
        (line.partition(":")[2].strip() for line in lines if line.strip().startswith("pool:")), ""
    )
    for line in lines:
        if line.startswith("\t"):
            depth = len(line[1:]) - len(line[1:].lstrip())
            yield " ".join((str(depth), *("" if word == name else word for word in line.split())))


def _status_texts(states: Sequence[_State], runs: Sequence[Run]) -> list[TextBlock]:
    """What pools say of themselves, those that are laid out alike once."""
    alike: dict[tuple[str, ...], list[_State]] = {}
    for state in states:
        if layout := tuple(_layout(state.target)):
            alike.setdefault(layout, []).append(state)
    groups = list(alike.values())
    texts = [
        TextBlock(
            title=_title([run for state in group for run in state.runs], runs),
            text=_status(group[0].target),
        )
        for group in groups[:MOST_STATES]
    ]
    if rest := len(groups) - len(texts):
        texts.append(
            TextBlock(
                title="more",
                text=f"{count_text(rest, 'further layout')}: target.json of each run has its own",
            )
        )
    return texts


def _title(here: Sequence[Run], everywhere: Sequence[Run]) -> str:
    """Hosts, variants and levels by which these runs differ from the others, and how many they
    are."""
    said = []
    hosts = list(dict.fromkeys(map(host_of, here)))
    if len(hosts) < len(set(map(host_of, everywhere))):
        said.append(list_text(hosts))
    variants = list(dict.fromkeys(run.variant for run in here))
    if len(variants) < len({run.variant for run in everywhere}):
        said.append(list_text(variants))
    for name in dict.fromkeys(name for run in everywhere for name in run.factors):
        level_of_text = {level_text(run.factors.get(name)): run.factors.get(name) for run in here}
        if len(level_of_text) == 1 < len({level_text(run.factors.get(name)) for run in everywhere}):
            said.append(place_text([name], tuple(level_of_text.values())))
    said = list(dict.fromkeys(said))
    return f"{', '.join(said) or 'all'} ({count_text(len(here), 'run')})"


def _settings_grid(states: Sequence[_State], titles: Sequence[str], left: str) -> Grid:
    names = dict.fromkeys(name for state in states for name in state.settings)
    rows = (
        [["OpenZFS", *(str(state.target.get("version", "")) for state in states)]] if states else []
    )
    rows += [[name, *(state.settings.get(name, "") for state in states)] for name in names]
    targets = [state.target for state in states]
    rows += [
        [f"{name}, module", *(zfs_settings.parameter(target, name) for target in targets)]
        for name in zfs_settings.differing(targets)
        if f"{name}, module" not in names
    ]
    note = (
        "Properties that people ask about, those that the study sets, those that are not as usual, and module parameters that differ; "
        "target.json of each run has all of them."
    )
    return Grid(
        title="Settings",
        note=f"{note} {left}".rstrip(),
        head=["", *titles],
        rows=_unlike_first(rows),
    )


def _asked_grid(hosts: Sequence[HostFacts]) -> Grid:
    """What the study requested, and what existed or was made for it: a column for each target, and
    for each host where theirs differ."""
    columns_of_host = {
        host.name: [_asked_column(target) for target in requested_targets(host.facts)]
        for host in hosts
    }
    first, *other_columns = columns_of_host.values()
    if other_columns and all(column == first for column in other_columns):
        columns_of_host = {"": first}
    titles = [
        ", ".join([*([host] if host else []), *([f"target {place}"] if len(columns) > 1 else [])])
        for host, columns in columns_of_host.items()
        for place in range(1, len(columns) + 1)
    ]
    every = [column for columns in columns_of_host.values() for column in columns]
    shown_states = every[:MOST_STATES]
    names = dict.fromkeys(name for column in shown_states for name in column)
    rows = _unlike_first(
        [[name, *(column.get(name, "") for column in shown_states)] for name in names]
    )
    return Grid(
        title="As the study has it",
        note=_omitted_note(len(every)),
        head=["", *titles[:MOST_STATES]],
        rows=rows,
    )


def _asked_column(one: Mapping[str, Any]) -> dict[str, str]:
    parts = ("target", "filesystem", "openzfs", "loops")
    column = dict(
        pair for part in parts for pair in _plain(one.get(part), "" if part == "target" else part)
    )
    column.pop(
        "openzfs loaded", None
    )  # before the target chose its build: the settings say which was measured
    return column


def _unlike_first(rows: list[list[str]]) -> list[list[str]]:
    """Rows in which the targets differ, then the others."""
    return sorted(rows, key=lambda row: len(set(row[1:])) == 1)


def _plain(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Options as (name, text); what is empty or not set is left out."""
    if isinstance(value, Mapping):
        return [
            pair
            for name, inner in value.items()
            for pair in _plain(inner, f"{prefix} {name}".strip())
        ]
    if value is None or value == "" or value == []:
        return []
    if isinstance(value, list | tuple):
        return [
            (
                prefix,
                "; ".join(
                    " ".join(map(" ".join, _plain(item)))
                    if isinstance(item, Mapping)
                    else str(item)
                    for item in value
                ),
            )
        ]
    return [(prefix, ("no", "yes")[value] if isinstance(value, bool) else str(value))]
