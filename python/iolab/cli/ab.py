# SPDX-License-Identifier: Apache-2.0
"""`iolab ab`: builds of OpenZFS against each other, from sources to the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .completion import complete_rigs
from .options import STUDY_PATH, output_option
from .output import say, steps, tell
from .run import Runtime

if TYPE_CHECKING:
    from ..rigs.builds import BuildRecord
    from ..run.ab import Ab
    from ..study.adapt import Changes
    from ..study.load import Study


@click.command("ab")
@click.option(
    "--study", metavar="STUDY.toml", type=STUDY_PATH, help="The study; its target is a pool."
)
@click.option(
    "--build",
    "builds",
    metavar="NAME=SOURCES",
    multiple=True,
    help="A build, as 'iolab rig build --build' takes it; two or more. The first is the baseline.",
)
@click.option("--reduced", is_flag=True, help="The study's reduced form, [reduced].")
@click.option(
    "--only",
    metavar="FACTOR=LEVEL[,LEVEL]",
    multiple=True,
    help="Only these levels of a factor; repeatable.",
)
@click.option(
    "--repetitions", type=click.IntRange(1, 10_000), metavar="N", help="Number of blocks."
)
@click.option("--runtime", type=Runtime(), metavar="TIME", help="Duration of every run.")
@click.option(
    "--rig",
    metavar="RIG",
    default="openzfs",
    show_default=True,
    shell_complete=complete_rigs,
    help="The rig.",
)
@output_option("Directory for all files. Default: results/ab-STUDY.", required=False)
@click.option("--resume", is_flag=True, help="Continue an interrupted comparison; takes -o alone.")
@click.option("--keep-up", is_flag=True, help="Keep the machine up after the last run.")
@click.option("--trust", is_flag=True, help="Run the study's commands without asking.")
def command(
    study: Path | None,
    builds: tuple[str, ...],
    reduced: bool,
    only: tuple[str, ...],
    repetitions: int | None,
    runtime: str | None,
    rig: str,
    output: Path | None,
    resume: bool,
    keep_up: bool,
    trust: bool,
) -> int:
    """Compare builds of OpenZFS: build them, start a machine, run a study with a variant for each
    build, and write the report and a summary for a pull request.

    The directory gets results/, report.html and summary.md. Ctrl-C keeps what is done, and --resume
    continues at any stage; the machine stays up in between. Building needs root.
    """
    from ..errors import UsageError
    from ..rigs.source_tree import with_absolute_paths
    from ..run.ab import Ab, AbRequest, ab_study, machine_name
    from ..study.adapt import Changes, parse_only
    from .run import ask_trust

    if resume:
        if study or builds or reduced or only or repetitions or runtime or output is None:
            raise UsageError(
                "takes the directory alone: everything else is recorded there",
                where="--resume",
                hint="iolab ab --resume -o DIRECTORY",
            )
        ab = Ab.reopen(output, say)
    else:
        if study is None:
            raise UsageError("names no study", where="ab", hint="such as --study studies/X.toml")
        changes = Changes(
            only=parse_only(only), repetitions=repetitions, runtime=runtime, reduced=reduced
        )
        sources = tuple(map(with_absolute_paths, builds))
        request = AbRequest(study.absolute(), rig, machine_name(study, sources), sources, changes)
        ab = Ab(output or Path("results") / f"ab-{study.stem}", request, say)
    loaded, changes = ab_study(ab.request)
    trusted = ask_trust(loaded, trust)
    if not resume:
        ab.begin()
    ab.build()
    code = _measure(ab, loaded, changes, trusted)
    if code in (0, 5):
        _write(ab)
        if not keep_up:
            ab.stop()
    if code == 130:
        say(
            f"the machine {ab.request.machine} is up: iolab ab --resume -o {ab.directory} continues, "
            f"iolab rig down {ab.request.machine} deletes it"
        )
    return code


def _measure(ab: Ab, study: Study, changes: Changes, trusted: bool) -> int:
    """Start the machine and run what is missing; the exit code."""
    from ..errors import RunError
    from ..study.rig_tables import RigTable
    from .progress import Bar

    bar = Bar()
    host = ab.start(study.rig or RigTable())
    try:
        with bar:
            ab.measure(changes, host, bar, trusted=trusted)
    finally:
        host.close()
    outcome = bar.result
    if outcome is None or outcome.interrupted:
        return 130
    return RunError.exit_code if outcome.failed else 0


def _write(ab: Ab) -> None:
    """Write the report and the summary."""
    from ..files import write_atomically
    from ..report.build import build_page
    from ..report.pull_request import pull_request_markdown
    from ..report.words.phrases import SPACE
    from .options import open_results

    results = open_results(ab.results)
    with steps() as progress:
        html, cover = build_page(results, ab.directory, progress=progress)
    machine, is_emulated = _machine_facts(ab)
    names = ab.request.names
    summary = pull_request_markdown(
        f"{ab.request.study.stem}: {', '.join(names[1:])} against {names[0]}",
        results,
        cover,
        {record.name: _build_facts(record) for record in ab.records},
        machine,
        ["sudo", "iolab", "ab", *ab.request.arguments()],
        is_emulated=is_emulated,
    )
    report, markdown = ab.directory / "report.html", ab.directory / "summary.md"
    write_atomically(report, html)
    write_atomically(markdown, summary)
    say(f"wrote {report} and {markdown}")
    for card in cover.cards:
        for sentence in card.sentences:
            tell(sentence.text.replace(SPACE, " "))


def _build_facts(record: BuildRecord) -> dict[str, str]:
    """Facts of a build for the summary."""
    patches = [f"{Path(name).name} ({digest[:12]})" for name, digest in record.patches.items()]
    return {
        "sources": "+".join(Path(part).name for part in record.sources.split("+")),
        "version": record.version,
        "revision": record.revision[:12],
        "patches": ", ".join(patches),
        "digest of the sources": record.digest[:12],
        "compiler": record.compiler,
    }


def _machine_facts(ab: Ab) -> tuple[dict[str, str], bool]:
    """Facts of the machine, and whether its CPU is emulated."""
    from ..hosts.kinds.rig import running_machine
    from ..units import format_quantity

    state = running_machine(ab.request.machine)
    limits = [
        f"{state.disk_iops} IOPS" if state.disk_iops else "",
        format_quantity(state.disk_bytes_per_s, "B/s", 3) if state.disk_bytes_per_s else "",
    ]
    limit = ", ".join(filter(None, limits))
    disks = f"{state.disks} of {format_quantity(state.disk_bytes, 'B', 3)}"
    is_emulated = state.accelerator == "tcg"
    facts = {
        "rig": state.rig,
        "disks": disks + (f", {limit} each" if limit else ", without a limit"),
        "CPUs": f"{state.cpus}{', emulated' if is_emulated else ''}",
    }
    return facts, is_emulated
