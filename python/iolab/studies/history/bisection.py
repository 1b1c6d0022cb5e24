# SPDX-License-Identifier: Apache-2.0
"""Bisection of a git repository: the first commit that breaks a rule (git-bisect(1))."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from iolab.base.errors import IolabError, UsageError

Verdict = Literal["good", "bad", "skip"]

_LEFT = re.compile(r"^Bisecting: (\d+) revisions? left", re.MULTILINE)


class Commit(NamedTuple):
    """A commit: its full hash and the first line of its message."""

    revision: str
    subject: str

    def __str__(self) -> str:
        return f"{self.revision[:12]} {self.subject}"


@dataclass(frozen=True)
class Step:
    """A commit that was tested. text: its measured change, or why it was skipped. remaining: commits
    that are still to be tested, at most."""

    commit: Commit
    verdict: Verdict
    text: str
    remaining: int = 0


@dataclass(frozen=True)
class Bisection:
    """The end of a bisection. candidates: the first bad commit, or several if the commits between
    them were skipped."""

    candidates: tuple[Commit, ...]
    steps: tuple[Step, ...]

    @property
    def first_bad(self) -> Commit | None:
        """The first bad commit; None if skipped commits leave several."""
        return self.candidates[0] if len(self.candidates) == 1 else None


class Repository:
    """A working tree of git."""

    def __init__(self, path: Path) -> None:
        """UsageError: no working tree, changes that are not committed, a bisection under way."""
        self._path = path
        self._path = Path(self._git("rev-parse", "--show-toplevel"))
        if self._git("status", "--porcelain", "--untracked-files=no"):
            raise UsageError(
                "has changes that are not committed",
                where=self._path,
                hint="git stash, or commit them",
            )
        if (self._path / self._git("rev-parse", "--git-path", "BISECT_START")).exists():
            raise UsageError("a bisection is under way", where=self._path, hint="git bisect reset")

    def commit(self, revision: str) -> Commit:
        """A commit by its name. UsageError: unknown."""
        name = self._git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        return Commit(name, self._git("log", "-1", "--format=%s", name))

    def bisect(
        self,
        good: str,
        bad: str,
        test: Callable[[Commit], tuple[Verdict, str]],
        tell: Callable[[Step], object],
    ) -> Bisection:
        """Test commits between `good` and `bad`, each checked out. The tree is as before at the end,
        also after an error.

        Args:
            test: its verdict, with a text; an error ends the bisection.
            tell: called after each test.
        """
        first, last = self.commit(good), self.commit(bad)
        if first == last:
            raise UsageError("the good and the bad commit are the same", where=bad)
        steps = []
        with self._start(first, last) as output:
            while not (candidates := self._candidates(output)):
                commit = self.commit("HEAD")
                verdict, text = test(commit)
                output = self._git("bisect", verdict, accepted=(0, 2))
                match = _LEFT.search(output)
                remaining = int(match[1]) + 1 if match else 0
                steps.append(Step(commit, verdict, text, remaining))
                tell(steps[-1])
        return Bisection(tuple(map(self.commit, candidates)), tuple(steps))

    @contextmanager
    def _start(self, good: Commit, bad: Commit) -> Iterator[str]:
        try:
            yield self._git("bisect", "start", bad.revision, good.revision)
        finally:
            self._git("bisect", "reset")

    def _candidates(self, output: str) -> list[str]:
        """Commits that can be the first bad one, if nothing is left to be tested."""
        if match := re.search(r"^([0-9a-f]{40,64}) is the first bad commit", output, re.MULTILINE):
            return [match[1]]
        if "only 'skip'ped commits left" not in output:
            return []
        return re.findall(r"^([0-9a-f]{40,64})$", output, re.MULTILINE)

    def _git(self, *words: str, accepted: tuple[int, ...] = (0,)) -> str:
        """What git prints. UsageError: an exit code that is not `accepted`."""
        try:
            done = subprocess.run(
                ["git", *words],
                cwd=self._path,
                env=os.environ | {"LC_ALL": "C"},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except FileNotFoundError:
            raise IolabError("git is not installed", hint="install git") from None
        if done.returncode not in accepted:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = lines[-1] if lines else f"exit code {done.returncode}"
            raise UsageError(f"git {words[0]}: {reason.removeprefix('fatal: ')}", where=self._path)
        return done.stdout.strip()
