# SPDX-License-Identifier: Apache-2.0
"""`iolab ab`: builds of OpenZFS or of a program against each other, from sources to the report."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.completion import complete_rigs
from ..base.options import STUDY_PATH, group_options, output_option
from ..base.output import say, steps, tell
from ..base.signals import signals_interrupt
from .options import DESTRUCTIVE, ONLY, REPETITIONS, RUNTIME, TARGET, TRUST, WORKLOAD, ChangeOptions

if TYPE_CHECKING:
    from iolab.hosts.kinds.rig import RigHost
    from iolab.hosts.ssh.host import SshHost
    from iolab.studies.plan.adapt import Changes
    from iolab.studies.plan.file.load import Study
    from iolab.studies.results.open.results import Results
    from iolab.studies.run.builds.ab import Ab, AbRequest
    from iolab.studies.targets.base import Permissions


@dataclass(frozen=True)
class Machine:
    """Where builds are made and measured: on a machine of a rig, or on another host."""

    rig: str
    host: str


@click.command("ab")
@click.option(
    "--study",
    metavar="STUDY.toml",
    type=STUDY_PATH,
    help="The study; its target is a pool, or it has [builds].",
)
@click.option(
    "--build",
    "builds",
    metavar="NAME=SOURCES",
    multiple=True,
    help="A build, as 'iolab rig build --build' takes it; two or more. The first is the baseline. "
    "Of a program: other sources for a build of the study.",
)
@click.option("--reduced", is_flag=True, help="The study's reduced form, [reduced].")
@ONLY
@REPETITIONS
@RUNTIME
@TARGET
@WORKLOAD
@click.option(
    "--rig",
    metavar="RIG",
    default="openzfs",
    show_default=True,
    shell_complete=complete_rigs,
    help="The rig; with --host, its scripts build OpenZFS.",
)
@click.option(
    "--host",
    metavar="USER@MACHINE",
    default="",
    help="Build and measure on this machine instead, below /opt/iolab/builds.",
)
@output_option("Directory for all files. Default: results/ab-STUDY.", required=False)
@click.option("--resume", is_flag=True, help="Continue an interrupted comparison; needs -o.")
@click.option("--keep-up", is_flag=True, help="Keep the machine up after the last run.")
@TRUST
@DESTRUCTIVE
@click.option("--force", is_flag=True, help="With --destructive: also where they hold data.")
@group_options(
    options="cli.study.options:ChangeOptions",
    machine="cli.study.ab:Machine",
    permissions="studies.targets.base:Permissions",
)
def command(
    study: Path | None,
    options: ChangeOptions,
    machine: Machine,
    output: Path | None,
    resume: bool,
    keep_up: bool,
    trust: bool,
    permissions: Permissions,
) -> int:
    """Compare builds: build them, run a study with a variant for each build, and write the report
    and a summary for a pull request.

    Builds of OpenZFS run on a machine of a rig, which is started and deleted; building needs root.
    If the study has [builds], the builds are of a program, and run on this machine. With --host, both
    are built and run there. The directory gets results/, report.html and summary.md. Ctrl-C keeps
    what is done, and --resume continues at any stage; the machine stays up in between.
    """
    from iolab.base.errors import IolabError, UsageError
    from iolab.studies.run.builds.ab import Ab, ab_study

    from .command import ask_trust

    if resume:
        if study or options != ChangeOptions() or machine.host or output is None:
            raise UsageError(
                "takes the directory: everything else is recorded there",
                where="--resume",
                hint="iolab ab --resume -o DIRECTORY",
            )
        ab = Ab.reopen(output, say)
    else:
        if study is None:
            raise UsageError("names no study", where="ab", hint="such as --study studies/X.toml")
        request = _request(study, options, machine)
        ab = Ab(output or Path("results") / f"ab-{study.stem}", request, say)
    if ab.request.host and not ab.request.is_of_program and not permissions.destructive:
        raise UsageError(
            f"the disks of the target on {ab.request.host} would be overwritten",
            where="ab",
            hint="allow it with --destructive, which --resume needs too",
        )
    if not ab.request.machine and keep_up:
        raise UsageError("no machine of a rig is started", where="--keep-up", hint="leave it out")
    loaded, changes = ab_study(ab.request)
    trusted = ask_trust(loaded, trust)
    if not resume:
        ab.begin()
    code = 130
    try:
        with signals_interrupt():
            if resume and ab.is_measured:
                say("all runs exist; writing the report")
                code = 0
            else:
                code = _measure(ab, loaded, changes, trusted, permissions)
            if code in (0, 5):
                _write(ab)
                if not keep_up:
                    ab.stop()
    except KeyboardInterrupt:
        code = 130
    except IolabError:
        _tell_rest(ab)
        raise
    if code == 130:
        _tell_rest(ab)
    return code


def _tell_rest(ab: Ab) -> None:
    """How an interrupted comparison continues, and which machine it left."""
    say(f"iolab ab --resume -o {ab.directory} continues")
    if ab.request.machine and ab.is_up:
        name = ab.request.machine
        say(f"the machine {name} is up: iolab rig down {name} deletes it")


def _request(study: Path, options: ChangeOptions, machine: Machine) -> AbRequest:
    """The comparison by the options of the command."""
    from iolab.base.errors import UsageError
    from iolab.hosts.kinds.parse import ssh_host_named
    from iolab.hosts.rigs.source_tree import with_absolute_paths
    from iolab.studies.plan.file.load import has_builds
    from iolab.studies.run.builds.ab import AbRequest, machine_name

    sources = tuple(map(with_absolute_paths, options.builds))
    is_of_program = has_builds(study)
    rig, host = machine.rig, machine.host
    if is_of_program and rig != "openzfs":
        raise UsageError(
            "the study has [builds] of a program, which no rig makes",
            where="--rig",
            hint="leave it out",
        )
    if host:
        ssh_host_named(host)
    name = "" if is_of_program or host else machine_name(study, sources)
    changes = replace(options, builds=()).changes()
    return AbRequest(study.absolute(), "" if is_of_program else rig, name, sources, changes, host)


def _measure(
    ab: Ab, study: Study, changes: Changes, trusted: bool, permissions: Permissions
) -> int:
    """Make the builds, start the machine, if there is one, and run what is missing; the exit
    code."""
    from iolab.base.errors import RunError
    from iolab.studies.plan.file.rig_tables import RigTable

    from .progress import Bar

    bar = Bar()
    with contextlib.ExitStack() as stack:
        host: RigHost | SshHost | None
        host = far = ab.connect()
        if far is not None:
            stack.callback(far.close)
        ab.build(far)
        if ab.request.machine:
            host = ab.start(study.rig or RigTable())
            stack.callback(host.close)
        if host is not None and not ab.request.is_of_program:
            ab.check_builds(host)
        with bar:
            ab.measure(changes, host, bar, trusted=trusted, permissions=permissions)
    outcome = bar.result
    if outcome is None or outcome.interrupted:
        return 130
    return RunError.exit_code if outcome.failed else 0


def _write(ab: Ab) -> None:
    """Write the report and the summary."""
    from iolab.base.files import write_atomically
    from iolab.output.report.build import build_page
    from iolab.output.report.pull_request import pull_request_markdown
    from iolab.output.report.words.phrases import SPACE

    from ..base.options import open_results

    results = open_results(ab.results)
    with steps() as progress:
        html, cover = build_page(results, ab.directory, progress=progress)
    request = ab.request
    machine: dict[str, str] = {}
    is_emulated = False
    if request.machine:
        machine, is_emulated = _machine_facts(ab)
    elif host := ab.connect():
        machine = {"host": host.name}
    names = request.names
    summary = pull_request_markdown(
        f"{request.study.stem}: {', '.join(names[1:])} against {names[0]}",
        results,
        cover,
        _program_facts(results, names)
        if request.is_of_program
        else {record.name: _build_facts(asdict(record)) for record in ab.records},
        machine,
        [*(["sudo"] if request.machine else []), "iolab", "ab", *request.arguments()],
        is_emulated=is_emulated,
    )
    report, markdown = ab.directory / "report.html", ab.directory / "summary.md"
    write_atomically(report, html)
    write_atomically(markdown, summary)
    say(f"wrote {report} and {markdown}")
    for card in cover.cards:
        for sentence in card.sentences:
            tell(sentence.text.replace(SPACE, " "))


def _build_facts(record: Mapping[str, Any]) -> dict[str, str]:
    """Facts of a build for the summary, by its record."""
    patches = [f"{Path(name).name} ({digest[:12]})" for name, digest in record["patches"].items()]
    return {
        "sources": "+".join(Path(part).name for part in record["sources"].split("+")),
        "version": record["version"],
        "revision": record["revision"][:12],
        "patches": ", ".join(patches),
        "digest of the sources": record["digest"][:12],
        "compiler": record["compiler"],
    }


def _program_facts(results: Results, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Facts of the builds of a program, by the evidence of the runs."""
    from iolab.studies.results.evidence.model import PROGRAM_BUILD

    facts: dict[str, dict[str, str]] = {name: {} for name in names}
    for run in results.runs:
        build = run.plan.extra.get(PROGRAM_BUILD)
        if not isinstance(build, dict) or facts.get(run.plan.variant) != {}:
            continue
        record = build["record"]
        programs = [
            f"{name}: {identity.get('build_id') or identity.get('sha256')}"
            for name, identity in build["programs"].items()
        ]
        words = {Path(word).name for command in record["commands"] for word in command}
        compilers = {
            version: name
            for name, version in record["compilers"].items()
            if name in words or (name == "cc" and not words & record["compilers"].keys())
        }
        facts[run.plan.variant] = {
            **_build_facts({**record, "compiler": ", ".join(compilers)}),
            "program": ", ".join(programs),
        }
    return facts


def _machine_facts(ab: Ab) -> tuple[dict[str, str], bool]:
    """Facts of the machine of the last runs, and whether its CPU is emulated."""
    from iolab.base.units import format_quantity

    state = ab.machine
    if state is None:  # begun with an older version
        return {"rig": ab.request.rig}, False
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
