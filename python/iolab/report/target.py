"""What was measured: pools with their status and settings, what the study asked for, block devices and controllers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..compare.axes import level_text
from ..results.model import Run
from ..results.target_metrics import read_target
from . import zfs_settings
from .payload import Grid, TargetPart, TextBlock
from .source import Source
from .wording import count_text, list_text, place_text, size_text

MOST_STATES = 12
"""Layouts and columns of settings; a study that makes a pool anew with other settings for each of a hundred cells has more."""

FACTS = ("target", "targets", "openzfs", "filesystem", "devices", "loops", "block_devices", "storage_controllers")
"""Facts of the environment that stand here and not in the table of facts."""

_HEADS = {"model": "model", "vendor": "vendor", "serial": "serial", "size_bytes": "size", "rotational": "rotational",
          "scheduler": "scheduler", "write_cache": "write cache", "logical_block_bytes": "logical block",
          "physical_block_bytes": "physical block", "queue_requests": "queue", "read_ahead_bytes": "read ahead",
          "largest_request_bytes": "largest request", "merges_off": "merges"}


@dataclass(frozen=True)
class _State:
    """Runs that were measured on targets that are alike."""

    runs: list[Run]
    target: Mapping[str, Any]
    settings: dict[str, str]


def target_part(results: Source) -> TargetPart:
    """What the evidence and the environment know of the target; empty lists where they know nothing."""
    facts = results.environment().get("facts")
    known: Mapping[str, Any] = facts if isinstance(facts, Mapping) else {}
    asked = _asked(known)
    states = _states(results.runs, asked)
    shown = states[:MOST_STATES]
    titles = [_title(state.runs, results.runs) for state in shown]
    left = f" These are the first {len(shown)} of {len(states)} targets." if len(states) > len(shown) else ""
    grids = [_settings_grid(shown, titles, left), _asked_grid(asked), _devices_grid(known, results.runs), _controllers_grid(known)]
    return TargetPart(states=_status_texts(states, results.runs), tables=[grid for grid in grids if grid.rows])


def _asked(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each target was asked to be, with what was made of it."""
    several = facts.get("targets")
    found = several if isinstance(several, list) else [facts] if "target" in facts else []
    return [one for one in found if isinstance(one, Mapping)]


def _states(runs: Sequence[Run], asked: Sequence[Mapping[str, Any]]) -> list[_State]:
    """Pools by version, layout and settings; each is given by its first run."""
    options = [one.get("target") for one in asked]
    names = {name: None for one in options if isinstance(one, Mapping) for part in ("pool", "properties", "module_parameters")
             if isinstance(table := one.get(part), Mapping) for name in table}
    found: dict[object, _State] = {}
    for run in runs:
        target = read_target(run.evidence) if run.evidence.is_dir() else {}
        if target.get("kind") != "zfs":
            continue
        settings = zfs_settings.settings(target, names)
        key = (target.get("version"), tuple(_layout(target)), tuple(settings.items()))
        found.setdefault(key, _State([], target, settings)).runs.append(run)
    return list(found.values())


def _lines(target: Mapping[str, Any]) -> list[str]:
    pool = target.get("pool")
    lines = pool.get("status") if isinstance(pool, Mapping) else None
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _status(target: Mapping[str, Any]) -> str:
    return "\n".join(line.expandtabs() for line in _lines(target))


def _layout(target: Mapping[str, Any]) -> Iterable[str]:
    """The tree of the status without what every new pool has anew: its name, and the widths that follow from it."""
    lines = _lines(target)
    name = next((line.partition(":")[2].strip() for line in lines if line.strip().startswith("pool:")), "")
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
    texts = [TextBlock(title=_title([run for state in group for run in state.runs], runs), text=_status(group[0].target))
             for group in groups[:MOST_STATES]]
    if rest := len(groups) - len(texts):
        texts.append(TextBlock(title="more", text=f"{count_text(rest, 'further layout')}: target.json of each run has its own"))
    return texts


def _title(here: Sequence[Run], everywhere: Sequence[Run]) -> str:
    """Variants and levels by which these runs differ from the others, and how many they are."""
    said = []
    variants = list(dict.fromkeys(run.variant for run in here))
    if len(variants) < len({run.variant for run in everywhere}):
        said.append(list_text(variants))
    for name in dict.fromkeys(name for run in everywhere for name in run.factors):
        levels = {level_text(run.factors.get(name)): run.factors.get(name) for run in here}
        if len(levels) == 1 < len({level_text(run.factors.get(name)) for run in everywhere}):
            said.append(place_text([name], tuple(levels.values())))
    return f"{', '.join(said) or 'all'} ({count_text(len(here), 'run')})"


def _settings_grid(states: Sequence[_State], titles: Sequence[str], left: str) -> Grid:
    names = dict.fromkeys(name for state in states for name in state.settings)
    rows = [["OpenZFS", *(str(state.target.get("version", "")) for state in states)]] if states else []
    rows += [[name, *(state.settings.get(name, "") for state in states)] for name in names]
    targets = [state.target for state in states]
    rows += [[f"{name}, module", *(zfs_settings.parameter(target, name) for target in targets)]
             for name in zfs_settings.differing(targets) if f"{name}, module" not in names]
    note = ("Properties that people ask about, those that the study sets, those that are not as usual, and module parameters that differ; "
            "target.json of each run has all of them.")
    return Grid(title="Settings", note=note + left, head=["", *titles], rows=_unlike_first(rows))


def _asked_grid(asked: Sequence[Mapping[str, Any]]) -> Grid:
    """What the study asked for, and what was there or made for it: a column for each target."""
    parts = ("target", "filesystem", "openzfs", "loops")
    columns = [dict(pair for part in parts for pair in _plain(one.get(part), "" if part == "target" else part)) for one in asked]
    for column in columns:
        column.pop("openzfs loaded", None)  # before the target chose its build: the settings say which was measured
    names = dict.fromkeys(name for column in columns for name in column)
    head = ["", *([""] if len(columns) == 1 else (f"target {place}" for place in range(1, len(columns) + 1)))]
    rows = _unlike_first([[name, *(column.get(name, "") for column in columns)] for name in names])
    return Grid(title="As the study has it", note="", head=head, rows=rows)


def _unlike_first(rows: list[list[str]]) -> list[list[str]]:
    """Rows in which the targets differ, then the others."""
    return sorted(rows, key=lambda row: len(set(row[1:])) == 1)


def _plain(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Options as (name, text); what is empty or not set is left out."""
    if isinstance(value, Mapping):
        return [pair for name, inner in value.items() for pair in _plain(inner, f"{prefix} {name}".strip())]
    if value is None or value == "" or value == []:
        return []
    if isinstance(value, list | tuple):
        return [(prefix, "; ".join(" ".join(map(" ".join, _plain(one))) if isinstance(one, Mapping) else str(one) for one in value))]
    return [(prefix, ("no", "yes")[value] if isinstance(value, bool) else str(value))]


def _devices_grid(facts: Mapping[str, Any], runs: Sequence[Run]) -> Grid:
    """A row for each block device of the host, the target's first."""
    known: dict[str, Mapping[str, Any]] = {}
    for one in (facts, *_asked(facts)):
        for part in ("block_devices", "devices"):
            table = one.get(part)
            known |= {name: {**each, **known.get(name, {})} for name, each in table.items()} if isinstance(table, Mapping) else {}
    used = Counter(str(name) for run in runs if isinstance(devices := run.plan.extra.get("devices"), list | tuple) for name in devices)
    columns = [key for key in _HEADS if any(each.get(key) not in (None, "") for each in known.values())]
    rows = [[name, "yes" if used[name] == len(runs) else count_text(used[name], "run") if used[name] else "no",
             *(_device_text(key, known[name].get(key)) for key in columns)]
            for name in sorted(known, key=lambda name: (not used[name], len(name), name))]
    return Grid(title="Block devices", note="", head=["device", "in the target", *(_HEADS[key] for key in columns)], rows=rows)


def _device_text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key.endswith("_bytes") and isinstance(value, int | float):
        return size_text(value)
    if key == "merges_off":
        return {0: "on", 1: "simple ones", 2: "off"}.get(value, str(value))
    return ("no", "yes")[bool(value)] if key == "rotational" else str(value)


def _controllers_grid(facts: Mapping[str, Any]) -> Grid:
    """Controllers as `kind, name (driver)`, those that are alike once, with where they sit."""
    found: dict[tuple[str, str], list[str]] = {}
    listed = facts.get("storage_controllers")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping):
            driver = f" ({one['driver']})" if one.get("driver") else ""
            found.setdefault((str(one.get("kind", "")), f"{one.get('name', '')}{driver}"), []).append(str(one.get("address", "")))
    rows = [[kind, name, str(len(places)), list_text(places)] for (kind, name), places in found.items()]
    return Grid(title="Controllers", note="", head=["kind", "controller (driver)", "number", "addresses"], rows=rows)
