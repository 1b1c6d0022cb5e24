# SPDX-License-Identifier: Apache-2.0
"""The runs of an import: a run for each measurement of each matched result, with its factors,
repetition and block."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iolab.base.untrusted_text import writable
from iolab.formats.fio.groups import FioGroup, window_of

from ..evidence.model import RunPlan
from .account import Tally
from .assignment import SECTION, Assignment, Match
from .layouts.layout import RESERVED
from .layouts.options import (
    MeasuredRun,
    complete_factors,
    drop_explained_folders,
    split_by_options,
    telling_options,
    unlike_arms,
)
from .layouts.places import Place, clusters, natural, number_repetitions
from .reading import FioResult, options_of
from .source import Source

CONCURRENCY = ("numjobs", "jobs", "threads")
"""Factors that name how many jobs ran at once."""


@dataclass
class Run(MeasuredRun):
    """A measurement of a result: `main`, or one of its groups. `other_results`: those of other
    processes that ran at the same time."""

    main: Match = field(kw_only=True)
    group: FioGroup | None = None
    section: str | None = None
    other_results: list[Match] = field(default_factory=list)

    @property
    def parts(self) -> list[Match]:
        """The results of all processes that ran at once."""
        return [self.main, *self.other_results]


class RunBuilder:
    """Makes runs of matched results. `differences`: of the variants' options, in words."""

    def __init__(self, source: Source, assignment: Assignment, tally: Tally) -> None:
        self._source, self._assignment, self._tally = source, assignment, tally
        self.differences: tuple[str, ...] = ()

    def runs(self) -> list[Run]:
        """Runs in the order of their numbers, without copies, with processes joined."""
        runs = self._make_runs()
        self._complete(runs)
        self._differences(runs)
        runs = self._without_copies(runs)
        runs.sort(key=self._order)
        return self._join_processes(runs)

    def _complete(self, runs: Sequence[Run]) -> None:
        """Where several layouts name different factors, take what they leave out from fio's
        options."""
        if len(self._assignment.layouts) < 2:
            return
        for name, many in complete_factors(runs).items():
            self._tally.notes.append(
                f"{name} of {many} run{'s' if many > 1 else ''} is taken from fio's options: the path doesn't name it"
            )
        self._tally.notes += [
            f"{name} is not a factor: the other factors explain it"
            for name in drop_explained_folders(runs)
        ]

    def _make_runs(self) -> list[Run]:
        """A run for each group of each result."""
        sections = {
            group.name
            for match in self._assignment.matches
            for part in _groups_by_run(match.result)
            for group in part
            if len(part) > 1
        }
        runs: list[Run] = []
        for match in self._assignment.matches:
            many = len(_groups(match.result)) > 1
            for group in _groups(match.result) or (None,):
                run = self._run(match, group, many)
                if group is not None and group.name in sections:
                    run.factors[SECTION] = run.section = group.name
                runs.append(run)
        several = [
            match.result.path
            for match in self._assignment.matches
            if len(_groups_by_run(match.result)) > 1
        ]
        if several:
            self._tally.notes.append(
                f"{len(several)} file{'s have' if len(several) > 1 else ' has'} several fio runs, "
                f"such as {several[0]}: each is a run here"
            )
        if not sections:
            return runs
        split = sum(
            any(len(part) > 1 for part in _groups_by_run(match.result))
            for match in self._assignment.matches
        )
        self._tally.notes.append(
            f"{split} result{'s have' if split > 1 else ' has'} several sections that ran one after another: each is a run, "
            f"distinguished by the factor '{SECTION}'"
        )
        return runs

    def _run(self, taken: Match, group: FioGroup | None, many: bool) -> Run:
        plan = taken.result.plan
        fields = taken.fields
        variant = str(
            fields.get("variant", plan.variant if plan is not None else self._source.name)
        )
        factors = dict[str, object](plan.factors if plan is not None else {})
        factors |= {name: _plain(fields[name]) for name in fields if name not in RESERVED}
        host = str(fields.get("host", plan.host if plan is not None else "imported"))
        all_options = {} if group is None or plan is not None else options_of(group)
        options = {
            name: text
            for name, text in telling_options(all_options).items()
            if not (many and name == SECTION)
        }
        return Run(
            writable(variant),
            factors,
            options,
            all_options,
            writable(host),
            main=taken,
            group=group if many else None,
        )

    def _differences(self, runs: list[Run]) -> None:
        """What fio echoed differently within a cell becomes a factor; what else differs between the
        arms of a cell is said."""
        runs_with_options = [run for run in runs if run.options]
        for factor, example in split_by_options(runs_with_options).items():
            self._tally.notes.append(
                f"runs of one cell differ in what fio echoed, so they are not repetitions: '{factor}' became a factor "
                f"({example})"
            )
        if all(run.main.result.plan is None for run in runs):
            self.differences = tuple(
                f"variants differ in fio's {name} ({example})"
                for name, example in unlike_arms(runs_with_options).items()
            )

    def _without_copies(self, runs: list[Run]) -> list[Run]:
        """Runs with the same numbers and times as another run of the same cell and variant are one
        measurement, whatever a layout says."""
        first_paths: dict[tuple[object, ...], str] = {}
        kept, copies = [], dict[str, str]()
        for run in sorted(
            runs, key=lambda run: (run.main.result.path.count("/"), run.main.result.path)
        ):
            result = run.main.result
            key = (result.content, run.variant, run.host, _cell(run), run.section)
            if result.content and first_paths.setdefault(key, result.path) != result.path:
                copies[result.path] = first_paths[key]
            else:
                kept.append(run)
        if not copies:
            return runs
        copy, original = next(iter(copies.items()))
        many = "s have" if len(copies) > 1 else " has"
        self._tally.notes.append(
            f"{len(copies)} result{many} the same numbers and times as another of the same cell: "
            f"copies are one measurement and left out, such as {copy} of {original}"
        )
        self._tally.count("copies", copies)
        return kept

    def _join_processes(self, runs: Sequence[Run]) -> list[Run]:
        """Runs of one cell and variant that ran at the same time as one run of several processes.

        Where they have sections, each is a run, distinguished by the factor `process`.
        """
        alike: dict[tuple[object, ...], list[Run]] = {}
        for run in runs:
            is_own = run.main.result.plan is not None
            key = id(run) if is_own else (run.variant, run.host, _cell(run))
            alike.setdefault((key,), []).append(run)
        dropped: set[int] = set()
        joined, apart = 0, 0
        for members in alike.values():
            windows = [_window(run) for run in members]
            together_at = clusters(windows)
            if all("process" in run.main.fields for run in members) and (
                sum(windows[cluster[0]] is not None for cluster in together_at) < 2
            ):
                # results that are damaged or don't say when they ran, of the only run there is
                together_at = [list(range(len(members)))]
            for together in together_at:
                first, *other_members = _distinct([members[place] for place in together])
                if not other_members:
                    continue
                if first.section is not None or any(run.group is not None for run in other_members):
                    for number, run in enumerate([first, *other_members]):
                        run.factors["process"] = number
                    apart += 1 + len(other_members)
                    continue
                first.other_results = [run.main for run in other_members]
                dropped |= set(map(id, other_members))
                joined += 1
        if joined:
            self._tally.notes.append(
                f"{joined + len(dropped)} results ran at the same time as others of their cell, so they are not "
                f"repetitions: they are the processes of {joined} run{'s' if joined > 1 else ''}, with rates summed "
                "and latencies pooled"
            )
        if apart:
            self._tally.notes.append(
                f"{apart} sections ran at the same time as others of their cell, so they are not repetitions: "
                "'process' became a factor"
            )
        return [run for run in runs if id(run) not in dropped]

    def _order(self, run: Run) -> tuple[object, ...]:
        fields = run.main.fields
        if not fields and run.main.result.plan is not None:
            return (-1, run.main.result.path)
        place = next(
            (
                number
                for number, layout in enumerate(self._assignment.layouts)
                if set(layout.fields) == set(fields)
            ),
            0,
        )
        keys = tuple((str(type(fields[name])), fields[name]) for name in fields)
        return (
            place,
            keys,
            natural(run.main.rest),
            run.group.index if run.group is not None else 0,
        )

    def plans(self, runs: Sequence[Run], extra: Mapping[str, Any]) -> list[RunPlan]:
        """A plan for each run, with its number, factors, repetition and block; `extra` goes into
        each."""
        every = list(dict.fromkeys(name for run in runs for name in run.factors))
        blocks = self._numbers(runs, "block", "repetition")
        repetitions = (
            self._numbers(runs, "repetition", "block")
            if any("repetition" in run.main.fields for run in runs)
            else blocks
        )
        plans = []
        for number, (run, block, repetition) in enumerate(
            zip(runs, blocks, repetitions, strict=True), 1
        ):
            result, own = run.main.result, run.main.result.plan
            section = f"#{run.group.index}" if run.group is not None else ""
            digest = hashlib.sha256(os.fsencode(f"{result.path}{section}")).hexdigest()[:8]
            factors = {
                name: run.factors[name] for name in every if run.factors.get(name) is not None
            }
            jobs = next(
                (
                    factors[key]
                    for key in CONCURRENCY
                    if isinstance(factors.get(key), int) and key in run.main.fields
                ),
                None,
            )
            more: dict[str, Any] = {
                **extra,
                "imported_from": writable(f"{self._source.prefix}{result.path}"),
            }
            if run.group is not None:
                more["section"] = {"index": run.group.index, "name": run.group.name}
            name = f"{number:04d}-{digest}"
            if own is None:
                plans.append(
                    RunPlan(
                        name,
                        run.variant,
                        factors,
                        repetition,
                        block,
                        "imported",
                        run.host,
                        jobs=self._jobs(run, jobs) if isinstance(jobs, int) else None,
                        extra=more,
                    )
                )
            else:
                kept = (
                    own
                    if "repetition" not in run.main.fields and "block" not in run.main.fields
                    else None
                )
                plans.append(
                    _of_own(
                        own,
                        name,
                        run,
                        factors,
                        kept.repetition if kept else repetition,
                        kept.block if kept else block,
                        more,
                    )
                )
        return plans

    def _jobs(self, run: Run, named: int) -> int:
        """Jobs of all processes of a run, where its path names those of one or of all."""
        echoed = [
            self._assignment.sample(part.result).options.get("numjobs", "1") for part in run.parts
        ]
        total = sum(int(text) if text.isdecimal() else 1 for text in echoed)
        return named if named == total else named * len(run.parts)

    def _numbers(self, runs: Sequence[Run], first: str, second: str) -> list[int]:
        places = []
        for run in runs:
            named = run.main.fields.get(first, run.main.fields.get(second))
            places.append(
                Place(
                    (run.host, _cell(run)),
                    run.variant,
                    None if named is None else str(named),
                    run.main.rest,
                )
            )
        numbers, notes = number_repetitions(places)
        self._tally.notes += [note for note in notes if note not in self._tally.notes]
        return numbers


def _groups(result: FioResult) -> tuple[FioGroup, ...]:
    """The measurements of a result; of iolab's own runs none is apart, as their plan says what they
    are."""
    return result.groups if result.plan is None else ()


def _groups_by_run(result: FioResult) -> list[list[FioGroup]]:
    """The measurements of a result, apart by the fio runs that its file has."""
    parts: dict[int, list[FioGroup]] = {}
    for group in _groups(result):
        parts.setdefault(group.run, []).append(group)
    return list(parts.values())


def _window(run: Run) -> tuple[int, int] | None:
    result = run.main.result
    if run.group is not None:
        return run.group.window
    return None if result.output is None else window_of(result.output, result.groups)


def _distinct(runs: Sequence[Run]) -> list[Run]:
    """Runs without copies."""
    return list({run.main.result.content or str(id(run)): run for run in reversed(runs)}.values())[
        ::-1
    ]


def _plain(value: Any) -> object:
    return writable(value) if isinstance(value, str) else value


def _cell(run: MeasuredRun) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((name, repr(value)) for name, value in run.factors.items() if value is not None)
    )


def _of_own(
    own: RunPlan,
    name: str,
    run: Run,
    factors: dict[str, object],
    repetition: int,
    block: int,
    extra: dict[str, Any],
) -> RunPlan:
    """iolab's own plan of a run, under its new name."""
    return replace(
        own,
        run=name,
        variant=run.variant,
        factors=factors,
        repetition=repetition,
        block=block,
        host=run.host,
        extra={**own.extra, **extra},
    )
