"""`iolab run`: do a study."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH, output_option


@click.command("run", short_help="Do a study: every cell of it, block by block, with what watches it.")
@click.argument("study", metavar="STUDY.toml", type=PATH)
@output_option("The results directory to make. Default: results/NAME.", required=False)
def command(study: Path, output: Path | None) -> int:
    """Do a study: every cell of it in every block, watched, each run's evidence kept.

    Ctrl-C once finishes the run in flight and stops, twice stops now; what was measured stays. docs/reference/study.md
    has every key of a study.
    """
    from ..errors import RunError
    from ..run.study import run_study
    from .progress import Bar

    bar = Bar()
    with bar:
        run_study(study, output, listener=bar)
    outcome = bar.result
    if outcome is None or outcome.interrupted:
        return 130
    return RunError.exit_code if outcome.failed else 0
