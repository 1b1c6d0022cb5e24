# SPDX-License-Identifier: Apache-2.0
"""The context of the numbers: environment, assumptions, the exact job and the commands."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from iolab.studies.compare.render.grids import grid
from iolab.studies.results.evidence.model import Run
from iolab.studies.results.facts.target_metrics import read_target

from ...model.payload import Assumption, Fact, TextBlock
from ...model.source import Source
from ...words.phrases import count_text, list_text
from ..runs import environment_groups, job_text
from .measured_hosts import hosts_of
from .target import FACTS

MOST_JOBS = 12
"""Jobs with different options that are shown; the panel of a run has its own."""
MOST_ROWS = 60
"""Jobs in the table of what differs."""


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
    values_of_fact: dict[tuple[str, str], Counter[str]] = {}
    for part in ("fingerprint", "facts"):
        for host in hosts_of(results):
            recorded_facts = host.recorded.get(part)
            if isinstance(recorded_facts, Mapping):
                recorded_facts = {
                    name: value for name, value in recorded_facts.items() if name not in FACTS
                }
            for name, value in _flat(recorded_facts):
                if name not in groups and not (name == "host" and hosts):
                    values_of_fact.setdefault((part, name), Counter())[value] += len(host.runs)
    for (_, name), values in values_of_fact.items():
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
    target = read_target(run.evidence, run.plan.files) if run.evidence.is_dir() else {}
    return str(target.get("version", "")) if target.get("kind") == "zfs" else ""


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
    """The distinct jobs. Jobs with the same options are one block with a table of the values that
    differ; each block is titled by the variants and how many runs used it."""
    users: dict[str, list[Run]] = {}
    for run in runs:
        if text := job_text(run).strip():
            users.setdefault(text, []).append(run)
    alike: dict[tuple[str, ...], list[str]] = {}
    for text in users:
        alike.setdefault(tuple(line.partition("=")[0] for line in text.splitlines()), []).append(
            text
        )
    groups = list(alike.values())
    blocks = [
        _job_block(texts, {text: users[text] for text in texts}) for texts in groups[:MOST_JOBS]
    ]
    if len(groups) > MOST_JOBS:
        rest = sum(map(len, groups[MOST_JOBS:]))
        blocks.append(
            TextBlock(
                title="more", text=f"{count_text(rest, 'further job')}: open a run to see its own"
            )
        )
    return blocks


def _job_block(texts: Sequence[str], users: Mapping[str, Sequence[Run]]) -> TextBlock:
    """Jobs with the same options in the same order, once, and what differs between them."""
    every = [run for runs in users.values() for run in runs]
    title = f"{list_text(_variants(every))}: {count_text(len(every), 'run')}"
    if len(every) == 1:
        title += f" ({every[0].id})"
    if len(texts) == 1:
        return TextBlock(title=title, text=texts[0])
    lines = list(zip(*(text.splitlines() for text in texts), strict=True))
    differing = [versions for versions in lines if len(set(versions)) > 1]
    names = [versions[0].partition("=")[0].strip() for versions in differing]
    common = "\n".join(
        versions[0] if len(set(versions)) == 1 else f"{versions[0].partition('=')[0]}=(see below)"
        for versions in lines
    )
    rows = [["runs", "variants", *names]]
    for place, text in enumerate(texts[:MOST_ROWS]):
        values = [versions[place].partition("=")[2] for versions in differing]
        rows.append([str(len(users[text])), list_text(_variants(users[text])), *values])
    hidden = len(texts) - MOST_ROWS
    more = [f"and {hidden} more: open a run to see its own"] if hidden > 0 else []
    table = "\n".join([*grid(rows, left=(1,)), *more])
    return TextBlock(
        title=f"{title}, {count_text(len(texts), 'job')} that differ in {list_text(names)}",
        text=f"{common}\n\n; values that differ\n{table}",
    )


def _variants(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.variant for run in runs))


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
