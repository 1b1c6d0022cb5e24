# SPDX-License-Identifier: Apache-2.0
"""A comparison of builds as Markdown, for a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from iolab.base import registry
from iolab.base.untrusted_text import markdown
from iolab.studies.compare.compare import compare
from iolab.studies.compare.remarks import study_notes

from .model.cover_payload import Cover
from .model.source import Source
from .sections.hosts.environment import environment
from .words.phrases import SPACE

FACTS = ("kernel", "fio", "cpu", "memory", "openzfs, as loaded")
"""Facts of the environment that the summary has; the report has all."""
EMULATED = (
    "The CPU of the machine was emulated. Differences that come from the disks carry over to "
    "hardware; times of the CPU do not."
)


def pull_request_markdown(
    title: str,
    results: Source,
    cover: Cover,
    builds: Mapping[str, Mapping[str, str]],
    machine: Mapping[str, str],
    command: Sequence[str],
    *,
    is_emulated: bool,
) -> str:
    """Statements, verdicts, builds, tables, environment and the command that repeats it.

    Args:
        cover: of the report of the same results.
        builds: name to facts, such as `sources`; the first is the baseline.
        machine: facts of the machine.
        command: arguments that repeat the comparison.
    """
    lines = [f"## {markdown(title)}", ""]
    sentences = [sentence for card in cover.cards for sentence in card.sentences]
    for obstacle in cover.obstacles:
        lines.append(f"- **{_plain(obstacle.text)}**")
        lines += [
            f"  - {reason.count}: {_plain(reason.text)}. {_plain(reason.remedy)}"
            for reason in obstacle.reasons
        ]
    lines += [f"- {_plain(sentence.text)}" for sentence in sentences]
    lines += [""]
    lines += [f"{_plain(sentence.text)}  " for sentence in cover.cautions]
    lines += ["", *_builds_table(builds)]
    notes = study_notes(results.runs, results.standing, results.manifest.imported)
    renderer = registry.load("renderer", "markdown")()
    stated: set[str] = set()
    for metric in dict.fromkeys(sentence.section for sentence in sentences if sentence.section):
        comparison = compare(results.runs, metric, baseline=results.manifest.baseline, notes=notes)
        new = tuple(note for note in comparison.warnings if note.text not in stated)
        stated |= {note.text for note in new}
        lines += ["", renderer.render(replace(comparison, warnings=new)).rstrip("\n")]
    lines += ["", "### Environment", ""]
    facts = {fact.name: ", ".join(fact.values) for fact in environment(results)}
    all_facts = {**machine, **{name: facts[name] for name in FACTS if name in facts}}
    lines += [f"- {markdown(name)}: {markdown(value)}" for name, value in all_facts.items()]
    lines += ["", EMULATED] if is_emulated else []
    lines += ["", "### Repeat", "", f"    {shlex.join(command)}", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text of the page as Markdown, with ordinary spaces."""
    return markdown(text.replace(SPACE, " "))


def _builds_table(builds: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A column for each build, a row for each fact that some build has."""
    names = dict.fromkeys(name for facts in builds.values() for name in facts)
    rows = [
        [name, *(facts.get(name, "") for facts in builds.values())]
        for name in names
        if any(facts.get(name) for facts in builds.values())
    ]
    heads = ["build", *builds]
    return [
        f"| {' | '.join(map(markdown, heads))} |",
        f"|{'|'.join(['---'] * len(heads))}|",
        *(f"| {' | '.join(map(markdown, row))} |" for row in rows),
    ]
