# SPDX-License-Identifier: Apache-2.0
"""`iolab run`: do a study."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.options import STUDY_PATH, group_options, output_option
from ..base.output import on_terminal, say, tell, tell_json
from .options import DESTRUCTIVE, ONLY, REPETITIONS, RUNTIME, TARGET, TRUST, WORKLOAD, ChangeOptions

if TYPE_CHECKING:
    from iolab.hosts.base.host import Host
    from iolab.studies.plan.file.load import Study
    from iolab.studies.run.study import How


_DOES = (
    "runs these commands and sets these options with your rights",
    "puts load on these hosts with your rights",
)
"""About a study with something to agree to, and about a study with hosts alone."""


@dataclass(frozen=True)
class Preview:
    """Whether only the plan is printed, and how."""

    dry_run: bool
    style: str

    def check(self) -> None:
        """UsageError for a format without a plan."""
        from iolab.base.errors import UsageError

        if self.style != "text" and not self.dry_run:
            raise UsageError(
                "--format is for --dry-run",
                hint="iolab show RESULTS --format json prints what was measured",
            )


@click.command("run")
@click.argument("study", metavar="STUDY.toml", type=STUDY_PATH)
@output_option("Directory for the results. Default: results/NAME.", required=False)
@ONLY
@click.option(
    "--variant",
    "variants",
    metavar="NAME",
    multiple=True,
    help='Only this variant; repeatable. With order = "sessions": the variant that can be measured now.',
)
@REPETITIONS
@click.option(
    "--until-decided",
    "until",
    metavar="RULE",
    multiple=True,
    help="Add blocks until iolab check decides this rule, such as 'write.iops 5 %' (within 5 %); "
    "repeatable: all of them.",
)
@click.option(
    "--at-most",
    type=click.IntRange(2, 500),
    metavar="N",
    help="With --until-decided: blocks at which an undecided study ends. Default: 20.",
)
@RUNTIME
@click.option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    help="Seed of the run order. Default: as in the study.",
)
@TARGET
@WORKLOAD
@click.option(
    "--load",
    metavar="KEY=VALUE",
    multiple=True,
    help="A key of [load], such as path=/mnt/x or hosts='[\"root@c1\", \"root@c2\"]'; 'KEY=' takes it out; repeatable.",
)
@click.option(
    "--host",
    "named",
    metavar="HOST",
    multiple=True,
    help="Where the target is: rig:NAME, USER@HOST[:PORT] by ssh, or local, the default; repeatable: replicas, which do "
    "the whole study each. With --resume: where it was begun.",
)
@click.option(
    "--a-a",
    "again",
    is_flag=True,
    help="Measure the baseline twice, the second time as <baseline>-again: a difference between them is noise.",
)
@click.option(
    "--build",
    "builds",
    metavar="NAME[=SOURCES]",
    multiple=True,
    help="A build of the study's [builds], else of OpenZFS, as a variant, instead of the study's variants; repeatable. The "
    "first is the baseline. SOURCES replace those of the study.",
)
@click.option(
    "--reduced",
    is_flag=True,
    help="The study's reduced form, [reduced]: fewer levels, shorter runs. The options above override it.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, what would be overwritten, and what would fail here (exit code 1 in that case); run nothing.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How --dry-run prints.",
)
@click.option("--resume", is_flag=True, help="Continue existing results: run what is missing.")
@click.option(
    "--install-resume",
    is_flag=True,
    help="Write a systemd unit that resumes the study when this host is restarted. It is removed once "
    "the study is done.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first run that fails.")
@TRUST
@DESTRUCTIVE
@click.option(
    "--force",
    is_flag=True,
    help="With --destructive: also where they hold data. With --resume: also on a changed machine.",
)
@group_options(
    options="cli.study.options:ChangeOptions",
    how="studies.run.study:How",
    preview="cli.study.command:Preview",
)
def command(
    study: Path,
    output: Path | None,
    options: ChangeOptions,
    named: tuple[str, ...],
    preview: Preview,
    how: How,
    install_resume: bool,
    trust: bool,
) -> int:
    """Run a study: every cell in every block. The evidence of each run is kept.

    Ctrl-C once finishes the current run and stops; twice stops at once. What was measured is kept,
    and --resume continues.
    """
    from iolab.base.errors import UsageError
    from iolab.studies.plan.file.load import load_study, target_host
    from iolab.studies.results.open.multi_host import host_words, read_hosts

    from . import hosts as run_hosts

    changes = options.changes()
    preview.check()
    if install_resume and (preview.dry_run or named or options.variants):
        raise UsageError(
            "a unit resumes the whole study on this host",
            where="--install-resume",
            hint="leave --dry-run, --host and --variant out",
        )
    how = replace(how, changes=changes)
    place = run_hosts.place(study, output)
    with contextlib.ExitStack() as stack:
        words = named or (host_words(place) if how.resume else ())
        if not words:
            words = (target_host(study, changes) or "local",)
            if words != ("local",):  # no host is reached before the user agreed
                trust = ask_trust(load_study(study, changes), trust)
        hosts = run_hosts.open_hosts(words, stack)
        if len(hosts) == 1 and read_hosts(place) is None:
            host = next(iter(hosts.values()))
            if preview.dry_run:
                return _dry_run_on_one(study, output, host, how, preview.style, trust)
            return _on_one(study, output, host, how, trust, install_resume)
        studies, ends = run_hosts.loaded_on(study, hosts, how)
        if preview.dry_run:
            return run_hosts.print_plans(studies, ends, place, preview.style, hosts, how)
        return run_hosts.run_all(
            study, studies, ends, place, hosts, how, lambda loaded: ask_trust(loaded, trust)
        )


def _dry_run_on_one(
    study: Path, output: Path | None, host: Host, how: How, style: str, trust: bool
) -> int:
    from iolab.studies.plan.file.load import load_study
    from iolab.studies.plan.file.trust import require_trust

    loaded = load_study(study, how.changes, host=host)
    if loaded.hosts:
        require_trust(loaded, trust)
    return _print_plan(loaded, output, style, host, how)


def _on_one(
    study: Path, output: Path | None, host: Host, how: How, trust: bool, install_resume: bool
) -> int:
    from iolab.base.errors import RunError
    from iolab.hosts.kinds.local import LocalHost
    from iolab.studies.plan.file.load import load_study
    from iolab.studies.plan.file.trust import is_trusted
    from iolab.studies.run.resuming.unit import ResumeUnit, resume_arguments
    from iolab.studies.run.study import run_study

    from .progress import Bar

    loaded = load_study(study, how.changes, host=host)
    trusted = ask_trust(loaded, trust)
    place = output if output is not None else Path("results") / loaded.name
    unit = ResumeUnit(host, place)
    if install_resume:
        if not isinstance(host, LocalHost):
            raise RunError(
                f"the unit would be restarted with this machine, not with host '{host.name}'",
                where="--install-resume",
                hint="run iolab on that host",
            )
        if not is_trusted(loaded):
            raise RunError(
                "the unit could not run the study's commands: the agreement to them is not stored",
                where="--install-resume",
                hint="make the directory of the state writable, see XDG_STATE_HOME",
            )
        targets = dict.fromkeys(
            path for cell in loaded.cells if (path := getattr(cell.target, "path", None))
        )
        arguments = resume_arguments(study, place, destructive=how.destructive)
        unit.install(arguments, Path.cwd(), list(targets))
        say(f"note: {unit.path} resumes this study after a restart; it is removed once it is done")
    bar = Bar()
    with unit.remove_unless_begun(place), bar:
        run_study(
            study,
            output,
            replace(how, trusted=trusted),
            listener=bar,
            host=host,
            clock=getattr(host, "clock", None),
        )
    outcome = bar.result
    if outcome is not None and not outcome.remaining and unit.remove():
        say(f"note: the study is done; {unit.path} is removed")
    if outcome is None or outcome.interrupted:
        return 130
    return RunError.exit_code if outcome.failed else 0


def _print_plan(study: Study, output: Path | None, style: str, host: Host, how: How) -> int:
    """0, or 1 where it couldn't be done here now."""
    from iolab.studies.run.dry_run import preview

    from .plan_text import plan_lines

    plan = preview(
        study, output if output is not None else Path("results") / study.name, host, how.permissions
    )
    if style == "json":
        tell_json(plan.as_data())
    else:
        for line in plan_lines(plan):
            tell(line)
    return 1 if plan.problems else 0


def ask_trust(study: Study, trust: bool) -> bool:
    """Whether the study's commands may run: by --trust, by an earlier answer, or by an answer to the
    question that is asked now."""
    from iolab.studies.plan.file.trust import (
        describe_commands,
        is_trusted,
        remember,
        require_trust,
        trust_file,
    )

    if is_trusted(study):
        return True
    if not trust:
        say(f"{study.file} {_DOES[not study.consent]}:")
        for line in describe_commands(study):
            say(f"  {line}")
        if not (sys.stdin.isatty() and on_terminal()):
            require_trust(study, False)
        if not click.confirm("Run them?" if study.consent else "Use these hosts?", err=True):
            raise click.Abort
    if not remember(study):
        say(f"note: {trust_file()} can't be written, so the next run asks again")
    return True
