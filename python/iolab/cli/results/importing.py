# SPDX-License-Identifier: Apache-2.0
"""`iolab import`: other people's results become results that can be shown, compared and reported,
and traces a recording."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.options import PATH, TABLE_PATH, bytes_of, command_line, group_options, output_option
from ..base.output import say, tell_json

if TYPE_CHECKING:
    from iolab.recordings.store.read.trace import Trace
    from iolab.studies.results.imports.account import Imported


@dataclass(frozen=True)
class Tree:
    """How the files of results are taken in."""

    layouts: tuple[str, ...]
    link: bool
    devices: tuple[str, ...]
    max_size: str | None


@dataclass(frozen=True)
class TraceOptions:
    """What traces and latency logs hold."""

    kind: str | None
    columns: str | None
    host: str
    log_unit: str | None


@click.command("import")
@click.argument("sources", metavar="[SOURCE...]", type=PATH, nargs=-1)
@click.option(
    "--layout",
    "layouts",
    metavar="PATTERN",
    multiple=True,
    help="Where the path of a run below SOURCE has the variant and the factors, such as "
    "'{submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs'. Types are str, int and float. "
    "{variant}, {repetition}, {block} and {host} are reserved; other names are factors; * matches any text. "
    "Repeatable: the first that matches is used. Default: inferred, and printed.",
)
@click.option(
    "--table",
    type=TABLE_PATH,
    help="A CSV of published numbers: variant,<factors...>,metric,value,unit[,repetition].",
)
@click.option(
    "--baseline",
    help="The variant that the others are compared with. Default: one named baseline, master, before... or the first.",
)
@click.option("--link", is_flag=True, help="Link to the tree's files instead of copying them.")
@click.option(
    "--device",
    "devices",
    metavar="NAME",
    multiple=True,
    help="Sum over this device of iostat's alone; "
    "repeatable. Default: the disks that are listed, without partitions and what is made of them.",
)
@click.option(
    "--log-unit",
    type=click.Choice(("us", "ns")),
    help="Unit of fio's latency logs. Default: by the version that wrote them.",
)
@click.option("--max-size", metavar="SIZE", help="What an archive may have unpacked. Default: 64G.")
@click.option(
    "--format",
    "kind",
    metavar="FORMAT",
    help="The traces' format. Default: found by content. Of results `json` writes what "
    "became of every file to stdout.",
)
@click.option(
    "--columns",
    metavar="FIELDS",
    help="What the columns of a CSV trace hold: 'time:us,latency:ns,offset:bytes,-,op'.",
)
@click.option(
    "--host", default="", metavar="NAME", help="The machine that a trace was recorded on."
)
@output_option("The results directory to make; of traces, the recording to make or add to.")
@group_options(tree="cli.results.importing:Tree", trace="cli.results.importing:TraceOptions")
def command(
    sources: tuple[Path, ...],
    table: Path | None,
    baseline: str | None,
    tree: Tree,
    trace: TraceOptions,
    output: Path,
) -> None:
    """Import fio results (a directory, a tar or zip archive, single files), a published table, or
    traces of I/O.

    Results are found by content. The layout of their paths is inferred and printed, so that it can
    be repeated or corrected with --layout. Each measurement becomes a run: sections of a file that
    ran one after another are runs of their own. What became of every file is counted on stderr. The
    files are kept as evidence, and everything is derived from them as for runs made here. A damaged
    file costs its run, which is shown as INVALID with the reason. Published numbers stay UNJUDGED.
    Several fio results are a variant each. Traces of any known format become one recording, with
    every event as it is; `-` is standard input.
    """
    from iolab.base.errors import UsageError

    started = time.monotonic()
    layouts, link, devices = tree.layouts, tree.link, tree.devices
    kind, columns, host, log_unit = trace.kind, trace.columns, trace.host, trace.log_unit
    if bool(sources) == (table is not None):
        raise UsageError("give a SOURCE, or --table FILE.csv", where="import")
    if table is not None:
        _refuse_devices(devices)
        from iolab.studies.results.imports.table import import_table

        cells = import_table(table, output, baseline=baseline, reproduce=command_line())
        say(
            f"imported {cells} published cells into {output} in {time.monotonic() - started:.1f} s",
            f"next: iolab compare {shlex.quote(str(output))}",
        )
        return
    if not layouts:
        from iolab.studies.results.imports.source import is_archive

        described = kind not in (None, "json") or columns is not None
        if not any(map(is_archive, sources)) and are_traces(sources, described=described):
            _refuse_devices(devices)
            import_traces(sources, output, kind=kind, columns=columns, host=host, log_unit=log_unit)
            return
    for wrong, flag in (
        (kind not in (None, "json"), "--format"),
        (columns is not None, "--columns"),
        (bool(host), "--host"),
    ):
        if wrong:
            raise UsageError(f"{flag} is for traces, and a SOURCE is none", where="import")
    missing = next((path for path in sources if not path.exists()), None)
    if missing is not None:
        raise UsageError("no such file or directory", where=missing)
    extra: dict[str, Any] = {} if log_unit is None else {"log_latency_unit": log_unit}
    if devices:
        extra["devices"] = list(devices)
    if len(sources) > 1:
        if layouts or any(path.is_dir() for path in sources):
            raise UsageError(
                "one directory or archive at a time",
                where="import",
                hint="import others into directories of their own",
            )
        from iolab.studies.results.imports.tree import import_files

        outcome = import_files(
            sources,
            output,
            link=link,
            baseline=baseline,
            reproduce=command_line(),
            extra=extra,
        )
    else:
        from iolab.studies.results.imports.source import MAX_BYTES
        from iolab.studies.results.imports.tree import import_tree

        outcome = import_tree(
            sources[0],
            layouts or None,
            output,
            link=link,
            baseline=baseline,
            reproduce=command_line(),
            extra=extra,
            max_bytes=MAX_BYTES if tree.max_size is None else bytes_of(tree.max_size, "--max-size"),
        )
    _tell(outcome, output, started, kind == "json")


def _refuse_devices(devices: tuple[str, ...]) -> None:
    from iolab.base.errors import UsageError

    if devices:
        raise UsageError(
            "--device chooses among the devices of iostat files, which lie with fio's in a TREE",
            where="import",
            hint="of a trace, --where device=NAME of heatmap and query keeps one device",
        )


def _tell(found: Imported, output: Path, started: float, as_json: bool) -> None:
    """Words on stderr; as JSON on stdout as well."""
    from iolab.base.verdict import Level
    from iolab.studies.results.imports.account import account
    from iolab.studies.results.open.results import Results

    from ..base.options import draw_bar

    results = Results(output, progress=draw_bar, outputs=found.outputs)
    counts = {level: sum(run.verdict.level is level for run in results.runs) for level in Level}
    judged = ", ".join(f"{count} {level.value}" for level, count in counts.items() if count)
    many = f"{len(results.runs)} run{'' if len(results.runs) == 1 else 's'}"
    say(
        f"imported {many} into {output} in {time.monotonic() - started:.1f} s: {judged}",
        *account_lines(found),
        f"next: iolab {'compare' if len({run.variant for run in results.runs}) > 1 else 'show'} "
        f"{shlex.quote(str(output))}",
    )
    if as_json:
        tell_json(
            {
                "schema": 1,
                "kind": "import",
                **account(found),
                "verdicts": {level.value: count for level, count in counts.items() if count},
            }
        )


_FATES = {
    "results": "fio results, each one run or more",
    "damaged": "damaged fio results: INVALID runs",
    "evidence": "kept with their result as evidence",
    "copies": "copies of results that were taken: no runs",
    "unmatched": "fio results that no layout matches: no runs",
    "beside-others": "files next to results that are not runs",
    "unattached": "readings or logs that belong to no single result",
    "traces": "traces of I/O: iolab import FILE -o DIR makes a recording of them",
    "unknown": "not recognised",
    "own": "of iolab's own results, taken as they are",
}
_FATES_OF_ONE = {
    "results": "fio result, one run or more",
    "damaged": "damaged fio result: an INVALID run",
    "evidence": "kept with its result as evidence",
    "copies": "copy of a result that was taken: no run",
    "unmatched": "fio result that no layout matches: no run",
    "beside-others": "file next to results that is not a run",
    "unattached": "reading or log that belongs to no single result",
    "traces": "trace of I/O: iolab import FILE -o DIR makes a recording of it",
    "own": "of iolab's own results, taken as it is",
}


def account_lines(found: Imported) -> list[str]:
    """What became of every file, in lines: the layout, counts with examples, what was decided."""
    read, skipped = (sum(map(len, files.values())) for files in (found.files, found.skipped))
    lines = []
    if found.layouts:
        options = " ".join(f"--layout {shlex.quote(text)}" for text in found.layouts)
        lines.append(f"layout{', inferred' if found.is_inferred else ''}: {options}")
    lines += [f"files: {read + skipped}"]
    for name, words in _FATES.items():
        paths = found.files.get(name, ())
        if paths:
            example = (
                f", such as {', '.join(sorted(paths)[:2])}"
                if name not in ("results", "evidence", "own")
                else ""
            )
            if len(paths) == 1:
                words = _FATES_OF_ONE.get(name, words)
            lines.append(f"  {len(paths):6} {words}{example}")
    lines += [
        f"  {len(paths):6} skipped: {reason}, such as {paths[0]}"
        for reason, paths in found.skipped.items()
    ]
    if found.suggestions:
        is_single = len(found.unmatched_files) == 1
        layouts = " ".join(f"--layout {shlex.quote(text)}" for text in found.suggestions)
        lines.append(f"the unmatched result{'' if is_single else 's'} would be taken by {layouts}")
    if found.empty:
        many = len(found.empty)
        lines.append(
            f"note: {many} folder{'s' if many > 1 else ''} that the layout names {'have' if many > 1 else 'has'} no fio result, "
            f"such as {found.empty[0]}"
        )
    return [*lines, *(f"note: {note}" for note in (*found.notes, *found.differences))]


def are_traces(paths: Sequence[Path], described: bool) -> bool:
    """Whether paths are traces: said so (`described` by format or columns), standard input, or
    found by content."""
    from .show_trace import is_trace

    return bool(paths) and all(
        (described and not path.is_dir()) or is_trace(path) for path in paths
    )


LATENCY_LOGS = {"ns": "fio-lat", "us": "fio-lat-us"}
"""Formats of fio's latency logs by their unit, as `--log-unit` names it."""


def _in_unit(trace: Trace, unit: str) -> Trace:
    """A latency log of fio in that unit; UsageError for another trace."""
    from iolab.base.errors import UsageError
    from iolab.recordings.store.read.trace import STDIN

    format_name = None if trace.path == STDIN and trace.format is None else trace.detect()
    if format_name not in (None, *LATENCY_LOGS.values()) or trace.columns is not None:
        raise UsageError(
            "--log-unit is the unit of fio's latency logs, and this is not one",
            where=trace.path,
            hint="--columns states the unit of a CSV column, such as latency:us",
        )
    return replace(trace, format=LATENCY_LOGS[unit])


def import_traces(
    paths: Sequence[Path],
    output: Path,
    *,
    kind: str | None,
    columns: str | None,
    host: str,
    log_unit: str | None = None,
) -> None:
    """Import each into the recording at `output`, and say what came of it."""
    from iolab.base.errors import UsageError
    from iolab.recordings.heatmap.words import ios, number
    from iolab.recordings.store.read.trace import STDIN, Trace
    from iolab.recordings.store.write.ingest import ingest

    if paths.count(STDIN) > 1:
        raise UsageError("standard input can be read only once", where="import")
    started = time.monotonic()
    traces = [
        _in_unit(Trace(path, kind, columns), log_unit) if log_unit else Trace(path, kind, columns)
        for path in paths
    ]
    done = ingest(traces, output, host=host)
    seconds = time.monotonic() - started
    say(
        f"imported {ios(done.events)} into {output} in {seconds:.1f} s",
        f"next: iolab heatmap {shlex.quote(str(output))}; iolab who {shlex.quote(str(output))}",
    )
    for text in done.assumptions:
        say(f"note: {text}")
    for count, words in (
        (done.lost, "records lost, says the tracer"),
        (done.damaged, "damaged lines or records left out"),
        (done.unpaired, "unmatched issue or completion events"),
    ):
        if count:
            say(f"note: {number(count)} {words}")
