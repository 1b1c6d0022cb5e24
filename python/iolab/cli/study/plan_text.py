# SPDX-License-Identifier: Apache-2.0
"""A study's plan in words, for `run --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from iolab.base.units import format_quantity
from iolab.base.untrusted_text import visible
from iolab.studies.compare.axes import axis_text
from iolab.studies.plan.cells.expressions import takes_size
from iolab.studies.plan.file.trust import describe_commands

from .progress import clock_text, count_text

if TYPE_CHECKING:
    from iolab.studies.run.dry_run import Preview, TargetPreview


def plan_lines(plan: Preview) -> Iterator[str]:
    """Head, targets, what would be overwritten, commands, the runs in order, then what forbids them."""
    study, runs = plan.study, plan.plan.runs
    commands = describe_commands(study)
    uncounted = ", commands not counted" if commands else ""
    extra_runs = (
        [f"{count_text(len(plan.plan.profiles), 'run')} for profiles"] if plan.plan.profiles else []
    )
    blocks = f"{count_text(len(plan.plan.measured_runs), 'run')} in {count_text(study.repetitions, 'block')}"
    yield (
        f"{study.name}: {', '.join([blocks, *extra_runs])}, "
        f"about {clock_text(plan.plan.seconds)}{uncounted}, into {plan.directory}"
    )
    if study.session_order:
        how = "; each begins with a restart" if study.restarts else ""
        yield f"sessions: {', '.join(study.session_order)}{how}"
    if study.until is not None:
        looks = ", ".join(map(str, study.until.design.looks))
        yield f"ends once decided: {study.until.words()}; looks after blocks {looks}"
    if study.changes:
        yield f"changed: {' '.join(study.changes.arguments())}"
    for target in plan.targets:
        yield _target_line(target)
    clients = dict.fromkeys(
        name for cell in study.cells if cell.load for name in cell.load.taking_part()
    )
    if clients:
        yield f"load from: {', '.join(clients)}"
    for name, sources in plan.builds.items():
        yield f"build {name}: of {visible(sources)}, compiled before the runs unless it exists"
    overwritten = [text for target in plan.targets for text in target.destroys]
    yield "overwrites: " + (
        f"{'; '.join(dict.fromkeys(overwritten))} (needs --destructive)"
        if overwritten
        else "nothing"
    )
    yield from (f"note: {note}" for note in plan.notes)
    if plan.no_profiles is not None:
        yield f"profiles would be left out: {plan.no_profiles}"
    if commands:
        yield "commands:"
        yield from (f"  {line}" for line in commands)
    width = max((len(run.cell.variant) for run in runs), default=0)
    digits = len(str(len(runs)))
    block = session = 0
    for run in runs:
        if (run.session, run.block) != (session, block):
            session, block = run.session, run.block
            title = f"session {session}, block {block}:" if session else f"block {block}:"
            yield "profiles:" if run.profile else title
        place = axis_text(run.cell.factors.keys(), tuple(run.cell.factors.values()))
        yield f"  {run.number:{digits}}  {run.cell.variant:{width}}  {place}".rstrip()
    # last, where it is seen: a plan can have thousands of runs
    for problem in plan.problems:
        yield f"can't be done here now: {problem}"


def _target_line(target: TargetPreview) -> str:
    words = ", ".join(f"{key} {value}" for key, value in _flat(target.changed))
    return (
        f"target: {target.kind}"
        + (f" ({words})" if words else "")
        + f", up to {format_quantity(target.room_bytes, 'B', 3)} a run"
    )


def _flat(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """`loop.size 37.7 GiB`: keys as `--target` takes them."""
    for key, value in options.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif isinstance(value, list):
            yield above + key, " ".join(str(element) for element in value)
        elif isinstance(value, int) and takes_size(key):
            yield above + key, format_quantity(value, "B", 3)
        else:
            yield above + key, str(value)
