# SPDX-License-Identifier: Apache-2.0
"""`iolab check`: rules for changes, as a gate of CI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ..base.options import PATH, draw_bar, format_option, group_options, open_results
from ..base.output import tell_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.api import Opened, OpenedSeveral
    from iolab.studies.compare.axes import Where
    from iolab.studies.compare.rules.check import Check, Outcome
    from iolab.studies.compare.rules.rules import Rule

BASELINE, CANDIDATE = "baseline", "candidate"
"""Arms of results that are checked against others."""

EXIT_CODES = {"pass": 0, "fail": 6, "inconclusive": 7}


@dataclass(frozen=True)
class Reference:
    """What is checked against: other results, a history, or a variant of the results."""

    against: tuple[Path, ...]
    directory: Path | None
    baseline: str | None


@dataclass(frozen=True)
class Tolerance:
    """What of the runs is tolerated, see `judge_runs`."""

    allow_failures: int = 0
    suspect: Outcome = "pass"


@click.command("check")
@click.argument("paths", metavar="RESULTS...", type=PATH, nargs=-1, required=True)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="'METRIC >= CHANGE'",
    help="A bound for the change of a metric: 'write.iops >= -5 %', 'read.clat.p99 <= +10 %', or "
    "'write.iops within 5 %' for both directions; repeatable. Default: the rules that RESULTS were "
    "measured with --until-decided for.",
)
@click.option(
    "--against",
    multiple=True,
    type=PATH,
    metavar="RESULTS",
    help="Results of the baseline; repeatable. Default: the baseline variant of RESULTS.",
)
@click.option(
    "--history",
    "directory",
    type=PATH,
    metavar="DIR",
    help="Check against the results of a history before RESULTS, since their last change.",
)
@click.option("--baseline", help="The variant that is the baseline. Default: the study's.")
@click.option(
    "--where",
    multiple=True,
    metavar="FACTOR=LEVEL[,LEVEL]",
    help="Check only these runs; repeatable.",
)
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    help="The exit code of an inconclusive rule. Default: a code of its own, 7.",
)
@click.option(
    "--allow-failures",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Runs that a variant may lose more than the baseline to errors or missing I/O. Default: 0.",
)
@click.option(
    "--suspect",
    type=click.Choice(["pass", "inconclusive", "fail"]),
    default="pass",
    show_default=True,
    help="The outcome at best where a run is SUSPECT.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0.0001, 0.25),
    help="Largest chance of a wrong pass, and of a wrong fail. Default: 0.05, or that of a study with "
    "--until-decided.",
)
@format_option("text", "json", "junit", "markdown")
@group_options(reference="cli.results.check:Reference", tolerance="cli.results.check:Tolerance")
def command(
    paths: tuple[Path, ...],
    rules: tuple[str, ...],
    reference: Reference,
    tolerance: Tolerance,
    where: tuple[str, ...],
    inconclusive: Literal["pass", "fail"] | None,
    alpha: float | None,
    style: str,
) -> int:
    """Check the changes of every variant against the baseline, cell by cell.

    A rule passes where a test shows for every cell that its bound is kept, fails where a test shows
    for a cell that it is broken, and is inconclusive otherwise: more blocks are needed, and it says
    how many. Exit codes: 0 all rules pass, 6 a rule fails, 7 none fails and one is inconclusive.

    RESULTS and those of --against are also fio results: files, and folders of them.

    Several RESULTS, and those of --against, repeat their arm. They have to be measured in turn, in at
    least 3 sessions of each arm: a single session is confounded with time and always inconclusive.

    Of a study that ran --until-decided, the blocks up to its last look are checked, at the level of
    that look: the stated chances hold over all looks, for other rules too.

    Runs that die or do no I/O leave the survivors to be compared. A variant that loses more runs so
    than the baseline fails; other losses that differ between the arms are inconclusive.

    With --history, RESULTS are checked against the level of each cell since its last change. The
    variation between sessions is known from the history, so that a single session is enough.
    """
    from iolab.base.errors import UsageError
    from iolab.studies.compare.axes import parse_where
    from iolab.studies.compare.render.check import render_check
    from iolab.studies.compare.rules.rules import ALPHA, parse_rule
    from iolab.studies.history.check import check_history
    from iolab.studies.history.store import History

    parsed = [parse_rule(text) for text in rules]
    against, baseline = reference.against, reference.baseline
    if reference.directory is not None:
        if against or baseline:
            raise UsageError(
                "a history is the baseline",
                where="--against" if against else "--baseline",
                hint="leave it out, or --history",
            )
        opened = [open_results(path) for path in paths]
        checked = check_history(
            History(reference.directory),
            opened,
            parsed,
            where=parse_where(where),
            alpha=ALPHA if alpha is None else alpha,
            notes=[note for results in opened for note in results.notes],
            allowed_failures=tolerance.allow_failures,
            suspect=tolerance.suspect,
        )
    else:
        checked = check_arms(
            _open(paths, against),
            parsed,
            baseline=baseline,
            where=parse_where(where),
            alpha=alpha,
            tolerance=tolerance,
        )
    tell_as(style, render_check(checked, style, inconclusive=inconclusive or "inconclusive"))
    outcome = checked.outcome
    return EXIT_CODES[inconclusive if inconclusive and outcome == "inconclusive" else outcome]


def check_arms(
    arms: Opened | OpenedSeveral,
    rules: Sequence[Rule],
    *,
    baseline: str | None = None,
    where: Where | None = None,
    alpha: float | None = None,
    tolerance: Tolerance = Tolerance(),
) -> Check:
    """Check the variants of results against their baseline.

    rules: by default those that the results were measured --until-decided for. UsageError: another
    alpha than that of the looks.
    """
    from iolab.api import Opened
    from iolab.base.errors import UsageError
    from iolab.studies.compare.rules.check import check
    from iolab.studies.compare.rules.rules import ALPHA
    from iolab.studies.compare.rules.sequential import SEQUENTIAL, Until

    until = look = None
    if isinstance(arms, Opened) and (until := Until.from_manifest(arms.manifest)) is not None:
        look = until.last_look(arms.manifest, arms.runs)
    if until is not None and alpha is not None and alpha != until.design.alpha:
        raise UsageError(
            f"the looks of these results were planned with alpha {until.design.alpha:g}",
            where="--alpha",
            hint="leave it out",
        )
    return check(
        arms.runs,
        rules or ([] if until is None else until.rules),
        baseline=baseline or arms.baseline,
        where=where or {},
        alpha=ALPHA if alpha is None else alpha,
        notes=[note for note in arms.notes if note.code != SEQUENTIAL],
        look=look,
        allowed_failures=tolerance.allow_failures,
        suspect=tolerance.suspect,
    )


def _open(paths: tuple[Path, ...], against: tuple[Path, ...]) -> Opened | OpenedSeveral:
    from iolab.api import OpenedSeveral, is_results
    from iolab.api import open_results as opened
    from iolab.base.errors import UsageError

    has_results = any(is_results(path) for path in (*paths, *against))
    if against:
        arms = [(BASELINE, path) for path in against] + [(CANDIDATE, path) for path in paths]
        if not has_results:
            return opened(*against, *paths, arms=arms, progress=draw_bar)
        names = [(arm, str(path)) for arm, path in arms]
        return OpenedSeveral((*against, *paths), names, progress=draw_bar)
    if len(paths) > 1 and has_results:
        raise UsageError(
            "several results have no baseline",
            where="check",
            hint="--against RESULTS names the results of the baseline",
        )
    return open_results(*paths)
