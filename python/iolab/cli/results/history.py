# SPDX-License-Identifier: Apache-2.0
"""`iolab history`: results over time, and since when they changed."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolab.base.errors import IolabError, UsageError

from ..base.options import PATH, format_option, group_options, open_results, output_option
from ..base.output import on_terminal, redraw, say, tell, tell_as, tell_json
from ..study.options import TRUST

if TYPE_CHECKING:
    from iolab.studies.compare.rules.rules import Rule
    from iolab.studies.history.bisection import Bisection, Commit, Step, Verdict

DEFAULT = Path("history")
_HISTORY = click.option(
    "--history",
    "directory",
    type=PATH,
    default=DEFAULT,
    show_default=True,
    metavar="DIR",
    help="The history's directory.",
)


@click.group("history")
def command() -> None:
    """Results over time: add a results directory after each measurement, and see since when values
    changed.

    The history lists results directories, and indexes their values. Change points are searched in
    every series (a cell of a variant), with false discoveries controlled over all of them.
    """


@command.command()
@click.argument("paths", metavar="RESULTS | FIO.json...", type=PATH, nargs=-1, required=True)
@_HISTORY
@click.option("--revision", default="", help="What was measured: a commit, a version.")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Any fact to keep; repeatable."
)
def add(paths: tuple[Path, ...], directory: Path, revision: str, tags: tuple[str, ...]) -> None:
    """Add a results directory, or fio results: files, or a folder of them, of which a copy is kept
    in the history. The history is made where there is none."""
    from iolab.api import is_results
    from iolab.studies.history.store import History
    from iolab.studies.results.evidence.manifest import FILE

    pairs = {}
    for text in tags:
        name, equals, value = (word.strip() for word in text.partition("="))
        if not equals or not name:
            raise UsageError(f"'{text}' is not NAME=VALUE", where="--tag")
        pairs[name] = value
    history = History(directory, is_new=True)
    path = paths[0]
    if len(paths) == 1 and (is_results(path) or path.name == FILE):
        entry = history.add(path, revision=revision, tags=pairs)
    else:
        folder = directory / "imported"
        copy = _free_place(paths, folder)
        try:
            _import(paths, copy)
            entry = history.add(copy, revision=revision, tags=pairs)
        except IolabError:
            shutil.rmtree(copy, ignore_errors=True)
            with contextlib.suppress(OSError):  # not empty: there are other entries
                folder.rmdir()
                directory.rmdir()
            raise
    names = ", ".join(map(str, paths))
    say(
        f"added {names} to {directory} as {entry.number}, of {len(history.entries)} results",
        f"next: iolab history show --history {shlex.quote(str(directory))}",
    )


def _free_place(paths: Sequence[Path], folder: Path) -> Path:
    """A place for a copy of results, named after the first; UsageError for a missing path."""
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise UsageError("no such file or directory", where=missing)
    return next(
        place
        for number in itertools.count(1)
        if not (place := folder / f"{number:04d}-{paths[0].stem or 'results'}").exists()
    )


def _import(paths: Sequence[Path], output: Path) -> None:
    """fio results as a results directory."""
    from iolab.studies.results.imports.tree import fio_files, import_files, import_tree

    if len(paths) == 1 and paths[0].is_dir():
        import_tree(paths[0], None, output)
    else:
        import_files([file for path in paths for file in fio_files(path)], output)


@command.command("list")
@_HISTORY
@format_option("text", "json")
def list_entries(directory: Path, style: str) -> None:
    """List the results of a history in order of time."""
    from iolab.studies.history.render import list_json, list_text
    from iolab.studies.history.store import History

    history = History(directory)
    tell_as(style, list_json(history) if style == "json" else list_text(history))


@command.command()
@_HISTORY
@click.option(
    "--metric", "metrics", multiple=True, help="A metric; repeatable. Default: headline ones."
)
@click.option(
    "--where", multiple=True, metavar="FACTOR=LEVEL[,LEVEL]", help="Only these series; repeatable."
)
@format_option("text", "json", "csv")
def show(directory: Path, metrics: tuple[str, ...], where: tuple[str, ...], style: str) -> None:
    """Show every series with its changes: by how much, between which revisions, and what else
    changed then."""
    from iolab.base.errors import ResultsError
    from iolab.studies.compare.axes import parse_where
    from iolab.studies.history.changes import find_changes, selected_metrics
    from iolab.studies.history.render import render
    from iolab.studies.history.store import History

    history = History(directory)
    if not history.entries:
        raise ResultsError("has no results", where=directory, hint="iolab history add RESULTS")
    selected = selected_metrics(history, metrics)
    courses = find_changes(history, selected, where=parse_where(where))
    say(*history.notes)
    tell_as(style, render(history, courses, style))


@command.command()
@_HISTORY
def rebuild(directory: Path) -> int:
    """Rebuild the index from the results. The values of missing results stay. Exit code 1 where
    results can't be read."""
    from iolab.studies.history.store import History

    history = History(directory)
    problems = history.rebuild(_draw)
    say(*problems)
    tell(f"{len(history.entries) - len(problems)} of {len(history.entries)} results read")
    return 1 if problems else 0


@dataclass(frozen=True)
class Measurement:
    """How a commit is built and measured."""

    study: Path | None
    measure: str | None
    build: str | None
    trust: bool


@command.command()
@click.argument("good")
@click.argument("bad", default="HEAD")
@click.option(
    "--study",
    type=PATH,
    metavar="STUDY.toml",
    help="Measure each commit by this study. A variant of it is the baseline, such as the good commit.",
)
@click.option(
    "--measure",
    metavar="COMMAND",
    help="Measure each commit by this command, which writes results to the directory $IOLAB_RESULTS.",
)
@click.option("--build", metavar="COMMAND", help="Run before each measurement, such as make.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    required=True,
    metavar="'METRIC >= CHANGE'",
    help="As of iolab check; repeatable. A commit is bad if it breaks a rule.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0.0001, 0.25),
    help="Largest chance that a commit is wrongly good, and wrongly bad. Default: 0.05.",
)
@output_option("Directory for the results of each commit. Default: results/bisect.", required=False)
@TRUST
@format_option("text", "json")
@group_options(measurement="cli.results.history:Measurement")
def bisect(
    good: str,
    bad: str,
    measurement: Measurement,
    rules: tuple[str, ...],
    alpha: float | None,
    output: Path | None,
    style: str,
) -> int:
    """Find the first commit after GOOD, up to BAD, that breaks a rule (git-bisect(1)).

    Each tested commit is checked out, built, measured and checked. It is skipped if it can't be
    built, if a run fails, or if a rule is inconclusive. At the end the tree is as before. Results are
    kept: the same command after Ctrl-C continues. Exit codes: 0 the first bad commit is known, 7
    skipped commits leave several candidates.
    """
    from iolab.studies.compare.rules.rules import parse_rule
    from iolab.studies.history.bisection import Repository

    study, measure, build = measurement.study, measurement.measure, measurement.build
    if (study is None) == (measure is None):
        raise UsageError(
            "measures by a study or by a command", where="--study", hint="or --measure"
        )
    parsed = [parse_rule(text) for text in rules]
    place = (output or Path("results/bisect")).absolute()

    def test(commit: Commit) -> tuple[Verdict, str]:
        if build is not None and _run_command(build):
            return "skip", "can't be built"
        results = place / commit.revision[:12]
        if measure is None:
            words = [str(study), "-o", str(results), *(["--trust"] if measurement.trust else [])]
            is_measured = _run_study([*words, *(["--resume"] if results.exists() else [])])
        else:
            is_measured = _measure(measure, results)
        return _check(results, parsed, alpha) if is_measured else ("skip", "a run failed")

    bisection = Repository(Path.cwd()).bisect(good, bad, test, _say_step)
    if style == "json":
        tell_json(_bisection_json(bisection))
    elif bisection.first_bad is not None:
        step = next((step for step in bisection.steps if step.commit == bisection.first_bad), None)
        tell(f"first bad commit: {bisection.first_bad}", *([step.text] if step else []))
    else:
        tell("the first bad commit is one of these; all but the last were skipped:")
        tell(*(f"  {commit}" for commit in bisection.candidates))
    return 0 if bisection.first_bad is not None else 7


def _run_command(text: str, **environment: str) -> int:
    """Run a command with its output on stderr; its exit code."""

    words = shlex.split(text)
    try:
        return subprocess.run(
            words, env=os.environ | environment, stdout=sys.stderr, check=False
        ).returncode
    except (OSError, IndexError) as error:
        raise UsageError(f"'{text}' can't be started: {error}") from None


def _measure(command: str, results: Path) -> bool:
    """Whether a command wrote results, now or before. UsageError: it succeeded without results."""

    if results.exists():
        return True
    # a command that is killed leaves a part of its results
    part = results.with_name(f"{results.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    if _run_command(command, IOLAB_RESULTS=str(part)):
        return False
    if not part.exists():
        raise UsageError(f"'{command}' wrote no results to $IOLAB_RESULTS", where="--measure")
    part.rename(results)
    return True


def _run_study(words: list[str]) -> bool:
    """Whether all runs of a study are measured. Errors that are not of a run end the bisection."""
    from iolab.base.errors import RunError

    from ..main import run

    code = run(["run", *words])
    if code == 130:
        raise KeyboardInterrupt
    if code not in (0, RunError.exit_code):
        raise click.exceptions.Exit(code)
    return code == 0


def _check(results: Path, rules: list[Rule], alpha: float | None) -> tuple[Verdict, str]:
    """The verdict on measured results, with the changes."""
    from iolab.studies.compare.render.check import cell_lines

    from .check import check_arms

    check = check_arms(open_results(results), rules, alpha=alpha)
    verdicts: dict[str, Verdict] = {"pass": "good", "fail": "bad", "inconclusive": "skip"}
    return verdicts[check.outcome], "; ".join(cell_lines(check))


def _say_step(step: Step) -> None:
    remaining = f", at most {step.remaining} more" if step.remaining else ""
    say(f"{step.verdict}: {step.commit} ({step.text}){remaining}")


def _bisection_json(bisection: Bisection) -> dict[str, object]:
    return {
        "schema": 1,
        "kind": "bisection",
        "first_bad": None if bisection.first_bad is None else bisection.first_bad.revision,
        "candidates": [commit._asdict() for commit in bisection.candidates],
        "steps": [
            {**step.commit._asdict(), "verdict": step.verdict, "text": step.text}
            for step in bisection.steps
        ],
    }


def _draw(count: int, total: int) -> None:
    if on_terminal():
        redraw("" if count == total else f"reading results: {count} of {total}")
