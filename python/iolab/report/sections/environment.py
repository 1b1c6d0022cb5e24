# SPDX-License-Identifier: Apache-2.0
"""What stands around the numbers: environment, assumptions, the exact job and the commands."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...results.evidence.model import Run
from ...results.facts.target_metrics import read_target
from ..model.payload import Assumption, Fact, TextBlock
from ..model.source import Source
from ..words.phrases import count_text, list_text
from .measured_hosts import hosts_of
from .runs import environment_groups, job_text
from .target import FACTS

MOST_JOBS = 12
"""Distinct jobs shown in full; every run's own stands in its panel."""


def environment(results: Source) -> list[Fact]:
    """Facts of the host and of the runs; one by which runs differ lists its values with how many
    runs have each."""
    groups = environment_groups(results.runs)
    facts = [
        Fact(name=name, values=list(values), runs=list(values.values()))
        for name, values in groups.items()
    ]
    hosts = Counter(
        run.plan.host for run in results.runs if run.plan.host not in ("imported", "published")
    )
    told: dict[tuple[str, str], Counter[str]] = {}
    for part in ("fingerprint", "facts"):
        for host in hosts_of(results):
            known = host.recorded.get(part)
            if isinstance(known, Mapping):
                known = {name: value for name, value in known.items() if name not in FACTS}
            for name, value in _flat(known):
                if name not in groups and not (name == "host" and hosts):
                    told.setdefault((part, name), Counter())[value] += len(host.runs)
    for (_, name), values in told.items():
        of_all = len(values) == 1 and values.total() == len(results.runs)
        facts.append(
            Fact(name=name, values=list(values), runs=[] if of_all else list(values.values()))
        )
    versions = Counter(
        f"{version} ({run.variant})" for run in results.runs if (version := _openzfs(run))
    )
    if versions:
        facts.insert(
            0, Fact(name="openzfs, as loaded", values=list(versions), runs=list(versions.values()))
        )
    if hosts:
        facts.insert(0, Fact(name="host", values=list(hosts), runs=list(hosts.values())))
    return facts


def _openzfs(run: Run) -> str:
    """The version under which a pool was measured: builds may change from run to run."""
    found = read_target(run.evidence, run.plan.files) if run.evidence.is_dir() else {}
    return str(found.get("version", "")) if found.get("kind") == "zfs" else ""


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as (`cpu.model`, text)."""
    if isinstance(value, Mapping):
        return [
            pair
            for name, inner in value.items()
            for pair in _flat(inner, f"{prefix}.{name}" if prefix else str(name))
        ]
    if value is None or not prefix:
        return []
    if isinstance(value, (list, tuple)):
        between = "; " if any(isinstance(item, Mapping) for item in value) else ", "
        return [(prefix, between.join(map(_item, value)))]
    return [(prefix, str(value))]


def _item(value: Any) -> str:
    """One of a list; a table as `name value, name value`."""
    return (
        ", ".join(f"{name} {inner}" for name, inner in _flat(value))
        if isinstance(value, Mapping)
        else str(value)
    )


def assumptions(runs: Sequence[Run]) -> list[Assumption]:
    """What readers had to assume, the most frequent first."""
    counts = Counter(text for run in runs for text in dict.fromkeys(run.assumptions))
    return [Assumption(text=text, runs=number) for text, number in counts.most_common()]


def jobs(runs: Sequence[Run]) -> list[TextBlock]:
    """The distinct jobs, each titled by the variants and how many runs used it."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if text := job_text(run).strip():
            found.setdefault(text, []).append(run)
    blocks = [
        TextBlock(
            title=f"{list_text(list(dict.fromkeys(run.variant for run in users)))}: {count_text(len(users), 'run')}"
            + (f" ({users[0].id})" if len(users) == 1 else ""),
            text=text,
        )
        for text, users in found.items()
    ]
    if len(blocks) > MOST_JOBS:
        rest = len(blocks) - MOST_JOBS
        blocks = [
            *blocks[:MOST_JOBS],
            TextBlock(
                title="more", text=f"{count_text(rest, 'further job')}: open a run to see its own"
            ),
        ]
    return blocks


def reproduce(results: Source) -> list[TextBlock]:
    """Commands that make the results again, and one run's command as an example."""
    blocks = []
    for label, manifest in results.manifests().items():
        if manifest.reproduce:
            title = f"results {label}" if label else "these results"
            blocks.append(TextBlock(title=title, text=shlex.join(manifest.reproduce)))
    first = next((run for run in results.runs if run.plan.command), None)
    if first is not None:
        blocks.append(TextBlock(title=f"run {first.id}", text=shlex.join(first.plan.command)))
    for label, manifest in results.manifests().items():
        prefix = f"{label}: " if label else ""
        if manifest.source:
            blocks.append(TextBlock(title=f"{prefix}imported from", text=manifest.source))
        if layout := manifest.layout:
            blocks.append(
                TextBlock(
                    title=f"{prefix}layout of its paths",
                    text=layout if isinstance(layout, str) else "\n".join(layout),
                )
            )
    return blocks


def studies(results: Source) -> list[TextBlock]:
    """The resolved studies, as JSON; none of imported results. Equal ones are shown once."""
    labels: dict[str, list[str]] = {}
    for label, manifest in results.manifests().items():
        if manifest.study is not None:
            text = json.dumps(manifest.study, indent=2, ensure_ascii=False, default=str)
            labels.setdefault(text, []).append(label)
    title = "study, every default filled in"
    return [
        TextBlock(title=f"{title}: {list_text(names)}" if names != [""] else title, text=text)
        for text, names in labels.items()
    ]
