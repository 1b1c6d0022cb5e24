# SPDX-License-Identifier: Apache-2.0
"""A study's hooks: when each runs, with which words in its environment, and what its failing means.

The levels nest as the runs are ordered: study, then block, then variant (whenever the next run is
another variant's), then run. Between two variants the target first gives up what would be in the
way of their commands (an imported pool); then come `teardown` and the hooks after the one, then the
hooks before the other and its `setup`.
If `before` or `setup` fails, all runs after it fail; a failed `after` or `teardown` is reported.
What was begun is ended, also when the study stops early: only a second double Ctrl-C ends
after-hooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..plan.cells.cells import Cell
from ..plan.cells.plan import PlannedRun
from ..plan.commands import Command, Level
from ..plan.file.load import Study
from .builds.program_builds import ProgramBuilds
from .commands import CommandRunner
from .resuming.interrupts import Interrupts


def variables(
    *,
    run: str | None = None,
    cell: Cell | None = None,
    block: int | None = None,
    directory: Path | None = None,
    target: str | None = None,
    factors: bool = True,
) -> dict[str, str]:
    """`IOLAB_RUN`, `IOLAB_VARIANT`, `IOLAB_BLOCK`, `IOLAB_RUN_DIR`, `IOLAB_TARGET` and
    `IOLAB_FACTOR_<NAME>`, what is known of them."""
    values = {
        "IOLAB_RUN": run,
        "IOLAB_VARIANT": cell.variant if cell else None,
        "IOLAB_BLOCK": None if block is None else str(block),
        "IOLAB_RUN_DIR": None if directory is None else str(directory.absolute()),
        "IOLAB_TARGET": target,
    }
    if cell is not None and factors:
        for name, level in cell.factors.items():
            text = str(int(level)) if isinstance(level, bool) else str(level)
            values["IOLAB_FACTOR_" + re.sub(r"[^A-Za-z0-9_]", "_", name).upper()] = text
    return {name: value for name, value in values.items() if value is not None}


class Hooks:
    """Runs the hooks of a study."""

    def __init__(
        self,
        study: Study,
        commands: CommandRunner,
        results: Path,
        interrupts: Interrupts,
        notice: Callable[[str], None],
        release: Callable[[PlannedRun | None], None],
        builds: ProgramBuilds | None = None,
    ) -> None:
        """Args:
        builds: of programs, in the environment of hooks of the runs that use them.
        release: has the target of the run before give up what would be in the way of commands;
        given the run that comes next.
        """
        self._study, self._commands, self._results = study, commands, results
        self._interrupts, self._notice, self._release = interrupts, notice, release
        self._builds = builds
        self._block: int | None = None
        self._variant: str | None = None
        self._block_failure = self._variant_failure = ""
        self._cell: Cell | None = None

    def begin_study(self) -> str:
        """Why the study can't begin; empty where it can."""
        return self._before("study", "the study", self._results, variables())

    def come_to(self, run: PlannedRun) -> str:
        """Run the hooks between the run before and this one; why this run can't be done, empty if
        it can."""
        if run.block != self._block or run.cell.variant != self._variant:
            if run.cell.variant != self._variant:
                self._leave_variant(run)
            if run.block != self._block:
                self._leave_block()
                self._block = run.block
                self._block_failure = self._before(
                    "block", f"block {run.block}", self._results, variables(block=run.block)
                )
            if run.cell.variant != self._variant and not self._block_failure:
                self._enter_variant(run)
        return self._block_failure or self._variant_failure

    def leave_session(self) -> None:
        """Leave the variant and the block, before a session of another variant begins."""
        self._leave_variant(None)
        self._leave_block()

    def before_run(self, run: PlannedRun, name: str, directory: Path, target: str) -> str:
        """Why the run can't be done; empty where it can."""
        return self._before(
            "run", f"run {name}", directory, self._of_run(run, name, directory, target)
        )

    def after_run(self, run: PlannedRun, name: str, directory: Path, target: str) -> None:
        """Once its load ended, its files still there."""
        self._after("run", f"run {name}", directory, self._of_run(run, name, directory, target))

    def finish(self) -> None:
        """Leave the variant, the block and the study."""
        self.leave_session()
        self._after("study", "the study", self._results, variables())

    def _of_run(self, run: PlannedRun, name: str, directory: Path, target: str) -> dict[str, str]:
        return {
            **variables(
                run=name, cell=run.cell, block=run.block, directory=directory, target=target
            ),
            **({} if self._builds is None else self._builds.environment(run.cell)),
        }

    def _enter_variant(self, run: PlannedRun) -> None:
        self._variant, self._cell = run.cell.variant, run.cell
        title, words = f"variant {self._variant}", self._of_variant()
        self._variant_failure = self._before("variant", title, self._results, words) or self._all(
            self._setup()[0], f"setup of {title}", self._results, words
        )

    def _leave_variant(self, coming: PlannedRun | None) -> None:
        if self._variant is not None:
            if self._has_commands(self._variant) or (
                coming is not None and self._has_commands(coming.cell.variant)
            ):
                self._release(coming)
            title, words = f"variant {self._variant}", self._of_variant()
            self._all_noted(self._setup()[1], f"teardown of {title}", self._results, words)
            self._after("variant", title, self._results, words)
        self._variant, self._variant_failure = None, ""

    def _has_commands(self, variant: str) -> bool:
        """Whether something runs when the study comes to a variant or leaves it."""
        hooks = self._study.hooks
        return any(self._study.variant_hooks.get(variant, ())) or bool(
            hooks.before.get("variant") or hooks.after.get("variant")
        )

    def _leave_block(self) -> None:
        if self._block is not None:
            self._after(
                "block", f"block {self._block}", self._results, variables(block=self._block)
            )
        self._block, self._block_failure = None, ""

    def _setup(self) -> tuple[tuple[Command, ...], tuple[Command, ...]]:
        return self._study.variant_hooks.get(self._variant or "", ((), ()))

    def _of_variant(self) -> dict[str, str]:
        """Variables without factors, since a variant has many cells; with the target if its
        options name it."""
        assert self._cell is not None
        named = [getattr(self._cell.target, key, None) for key in ("path", "device")]
        target = next((str(value) for value in named if isinstance(value, str)), None)
        build = {} if self._builds is None else self._builds.variant_environment(self._cell.variant)
        words = variables(cell=self._cell, block=self._block, target=target, factors=False)
        return {**words, **build}

    def _before(self, level: Level, title: str, directory: Path, words: Mapping[str, str]) -> str:
        return self._all(
            self._study.hooks.before.get(level, ()), f"before {title}", directory, words
        )

    def _after(self, level: Level, title: str, directory: Path, words: Mapping[str, str]) -> None:
        self._all_noted(self._study.hooks.after.get(level, ()), f"after {title}", directory, words)

    def _all(
        self, commands: Iterable[Command], title: str, directory: Path, words: Mapping[str, str]
    ) -> str:
        """Run commands in order up to the first that fails; its failure in words."""
        for command in commands:
            end = self._commands.run(
                command, title, directory, words, lambda: self._interrupts.stop_now
            )
            if end.failure:
                return f"{title}: '{command.text}': {end.failure}"
        return ""

    def _all_noted(
        self, commands: Iterable[Command], title: str, directory: Path, words: Mapping[str, str]
    ) -> None:
        """Run all commands, whatever becomes of the ones before: they put things back."""
        for command in commands:
            presses = self._interrupts.presses
            end = self._commands.run(
                command,
                title,
                directory,
                words,
                lambda at=presses: self._interrupts.presses >= at + 2,  # type: ignore[misc]
            )
            if end.failure:
                self._notice(f"{title}: '{command.text}': {end.failure}")
