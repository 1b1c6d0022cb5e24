"""`iolab import`: other people's results become results that can be shown, compared and reported."""

from __future__ import annotations

import time
from pathlib import Path

import click

from .options import PATH, command_line, output_option, say


@click.command("import")
@click.argument("source", metavar="[TREE]", type=PATH, required=False)
@click.option("--layout", metavar="PATTERN", help="How the path of a run's folder below TREE names variant and factors: "
              "'{submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs'. Types are str, int and float; "
              "{variant}, {repetition} and {block} have a meaning of their own; * is any text.")
@click.option("--table", type=PATH, help="A CSV of published numbers: variant,<factors...>,metric,value,unit[,repetition].")
@click.option("--baseline", help="The variant that the others are compared with. Default: the first.")
@click.option("--link", is_flag=True, help="Link to the tree's files instead of copying them.")
@output_option("The results directory to make.")
def command(source: Path | None, layout: str | None, table: Path | None, baseline: str | None, link: bool, output: Path) -> None:
    """Import a tree (or tar archive) of fio and iostat files, or a published table.

    The foreign files are kept as evidence, and everything is derived from them as for runs made here. A damaged file
    costs its run, which is shown as INVALID with the reason. Published numbers stay UNJUDGED.
    """
    from ..errors import UsageError

    started = time.monotonic()
    if (source is None) == (table is None):
        raise UsageError("give a TREE with --layout, or --table FILE.csv", where="import")
    if table is not None:
        from ..results.published import import_table

        cells = import_table(table, output, baseline=baseline, reproduce=command_line())
        say(f"imported {cells} published cells into {output} in {time.monotonic() - started:.1f} s")
        return
    if layout is None:
        raise UsageError("a tree needs a --layout", where="import", hint="such as --layout '{variant}/fio-{numjobs:int}-jobs'")
    assert source is not None
    _import_tree(source, layout, output, link, baseline, started)


def _import_tree(source: Path, layout: str, output: Path, link: bool, baseline: str | None, started: float) -> None:
    from ..results.foreign import import_tree
    from ..verdict import Level
    from .options import open_results

    found = import_tree(source, layout, output, link=link, baseline=baseline, reproduce=command_line())
    results = open_results(output)
    counts = {level: sum(run.verdict.level is level for run in results.runs) for level in Level}
    judged = ", ".join(f"{count} {level.value}" for level, count in counts.items() if count)
    say(f"imported {found.runs} runs into {output} in {time.monotonic() - started:.1f} s: {judged}")
    if found.unmatched:
        many = len(found.unmatched)
        say(f"note: {many} folder{'s' if many > 1 else ''} with fio results not named by the layout, such as {found.unmatched[0]}")
