"""`iolab import`: other people's results become results that can be shown, compared and reported, and traces a recording."""

from __future__ import annotations

import time
from pathlib import Path

import click

from .options import PATH, command_line, output_option
from .telling import say


@click.command("import")
@click.argument("sources", metavar="[TREE | TRACE...]", type=PATH, nargs=-1)
@click.option("--layout", metavar="PATTERN", help="How the path of a run's folder below TREE names variant and factors: "
              "'{submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs'. Types are str, int and float; "
              "{variant}, {repetition} and {block} have a meaning of their own; * is any text.")
@click.option("--table", type=PATH, help="A CSV of published numbers: variant,<factors...>,metric,value,unit[,repetition].")
@click.option("--baseline", help="The variant that the others are compared with. Default: the first.")
@click.option("--link", is_flag=True, help="Link to the tree's files instead of copying them.")
@click.option("--device", "devices", metavar="NAME", multiple=True, help="Sum over this device of iostat's alone; "
              "repeatable. Default: the disks that are listed, without partitions and what is made of them.")
@click.option("--format", "kind", metavar="FORMAT", help="The traces' format. Default: found by content.")
@click.option("--columns", metavar="FIELDS", help="What the columns of a CSV trace hold: 'time:us,latency:ns,offset:bytes,-,op'.")
@click.option("--host", default="", metavar="NAME", help="Whose I/O a trace is.")
@output_option("The results directory to make; of traces, the recording to make or add to.")
def command(sources: tuple[Path, ...], layout: str | None, table: Path | None, baseline: str | None, link: bool,
            devices: tuple[str, ...], kind: str | None,
            columns: str | None, host: str, output: Path) -> None:
    """Import a tree (or tar archive) of fio and iostat files, a published table, or traces of I/O.

    The foreign files are kept as evidence, and everything is derived from them as for runs made here. A damaged file
    costs its run, which is shown as INVALID with the reason. Published numbers stay UNJUDGED. Traces of any known format
    become one recording, with every event as it is; `-` is standard input.
    """
    from ..errors import UsageError

    started = time.monotonic()
    if bool(sources) == (table is not None):
        raise UsageError("give a TREE with --layout, a TRACE, or --table FILE.csv", where="import")
    if table is not None:
        _refuse_devices(devices)
        from ..results.published import import_table

        cells = import_table(table, output, baseline=baseline, reproduce=command_line())
        say(f"imported {cells} published cells into {output} in {time.monotonic() - started:.1f} s")
        return
    if layout is None:
        from .import_traces import are_traces, import_traces

        if are_traces(sources, described=kind is not None or columns is not None):
            _refuse_devices(devices)
            import_traces(sources, output, kind=kind, columns=columns, host=host)
            return
        missing = next((path for path in sources if not path.exists()), None)
        if missing is not None:
            raise UsageError("no such file or directory", where=missing)
        raise UsageError("a tree needs a --layout", where="import", hint="such as --layout '{variant}/fio-{numjobs:int}-jobs'; of traces "
                         "each file must be one" if len(sources) > 1 else "such as --layout '{variant}/fio-{numjobs:int}-jobs'")
    if len(sources) > 1:
        raise UsageError("--layout takes one TREE", where="import", hint="import others into directories of their own")
    _import_tree(sources[0], layout, output, link, baseline, devices, started)


def _refuse_devices(devices: tuple[str, ...]) -> None:
    from ..errors import UsageError

    if devices:
        raise UsageError("--device chooses among the devices of iostat files, which stand beside fio's in a TREE", where="import",
                         hint="of a trace, --where device=NAME of heatmap and query keeps one device")


def _import_tree(source: Path, layout: str, output: Path, link: bool, baseline: str | None, devices: tuple[str, ...],
                 started: float) -> None:
    from ..results.foreign import import_tree
    from ..verdict import Level
    from .options import open_results

    found = import_tree(source, layout, output, link=link, baseline=baseline, reproduce=command_line(), devices=devices)
    results = open_results(output)
    counts = {level: sum(run.verdict.level is level for run in results.runs) for level in Level}
    judged = ", ".join(f"{count} {level.value}" for level, count in counts.items() if count)
    say(f"imported {found.runs} runs into {output} in {time.monotonic() - started:.1f} s: {judged}")
    if found.unmatched:
        many = len(found.unmatched)
        say(f"note: {many} folder{'s' if many > 1 else ''} with fio results not named by the layout, such as {found.unmatched[0]}")
