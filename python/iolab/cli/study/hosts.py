# SPDX-License-Identifier: Apache-2.0
"""`iolab run` on several hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.untrusted_text import visible

from ..base.output import say, tell, tell_json
from .plan_text import plan_lines

if TYPE_CHECKING:
    from iolab.base.errors import IolabError
    from iolab.hosts.base.host import Host
    from iolab.studies.plan.file.load import Study
    from iolab.studies.run.study import How

INTERRUPTED = 130


def open_hosts(words: tuple[str, ...], stack: ExitStack) -> dict[str, Host]:
    """Hosts by name, closed with the stack; UsageError for a host that is given twice."""
    from iolab.base.errors import UsageError
    from iolab.hosts.kinds.parse import host_named

    hosts: dict[str, Host] = {}
    for text in words:
        host = host_named(text)
        if host.name in hosts:
            raise UsageError(
                f"'{host.name}' is given twice", where="--host", hint="give each host once"
            )
        hosts[host.name] = host
        close = getattr(host, "close", None)
        if close is not None:
            stack.callback(close)
    return hosts


def place(study: Path, output: Path | None) -> Path:
    """Where a study's results go: where a user said, else results/NAME. StudyError where the file
    can't be read."""
    from iolab.studies.plan.file.load import study_name

    return output if output is not None else Path("results") / study_name(study)


def loaded_on(
    study: Path, hosts: Mapping[str, Host], how: How
) -> tuple[dict[str, Study], dict[str, IolabError]]:
    """The study as it comes out on each host, and why it doesn't on those that can't be reached;
    StudyError for a wrong one."""
    from iolab.base.errors import RunError, UsageError
    from iolab.studies.plan.file.load import load_study

    studies: dict[str, Study] = {}
    ends: dict[str, IolabError] = {}
    for name, host in hosts.items():
        try:
            studies[name] = load_study(study, how.changes, host=host)
        except RunError as error:
            ends[name] = error
    if len(hosts) > 1 and any(cell.load for loaded in studies.values() for cell in loaded.cells):
        raise UsageError(
            "the clients of [load] put their load on one target",
            where="--host",
            hint="name one host, that of the target",
        )
    if len(hosts) > 1 and any(loaded.until is not None for loaded in studies.values()):
        raise UsageError(
            "each of several hosts would end at another number of blocks",
            where="--until-decided",
            hint="name one host, or a number of blocks with --repetitions",
        )
    return studies, ends


def print_plans(
    studies: Mapping[str, Study],
    ends: Mapping[str, IolabError],
    output: Path,
    style: str,
    hosts: Mapping[str, Host],
    how: How,
) -> int:
    """What would be done on each host; the worst exit code, at least 1 where it couldn't be done on
    one of them now."""
    from iolab.studies.run.dry_run import preview

    plans: dict[str, Any] = {}
    refused = False
    for name, study in studies.items():
        plan = preview(study, output / name, hosts[name], how.permissions)
        refused |= bool(plan.problems)
        plans[name] = plan.as_data()
        if style == "text":
            tell(f"{name}:")
            for line in plan_lines(plan):
                tell(f"  {line}" if line else "")
    if style == "json":
        tell_json({"schema": 1, "kind": "plans", "hosts": plans})
    return max(_report_errors(ends), int(refused))


def run_all(
    study: Path,
    studies: Mapping[str, Study],
    ends: Mapping[str, IolabError],
    output: Path,
    hosts: Mapping[str, Host],
    how: How,
    ask_trust: Callable[[Study], bool],
) -> int:
    """Do it on each host that is there; the worst exit code."""
    from dataclasses import replace

    from iolab.base.errors import RunError
    from iolab.studies.run.hosts import forget_if_unused, run_on_hosts

    from .progress import Bar, Words, shared_progress

    if not studies:
        return _report_errors(ends)
    # expressions use facts of the host, so that what is to be agreed to may differ
    how = replace(how, trusted=all(ask_trust(loaded) for loaded in studies.values()))
    console = Words()
    with shared_progress(console) as progress:
        bars = {name: Bar(console, host=name, progress=progress) for name in studies}
        for name, error in ends.items():
            console.print(
                visible(f"{name}: not measured: {_without_name(error, name)}"),
                soft_wrap=True,
                markup=False,
            )
        failed = run_on_hosts(study, output, {name: hosts[name] for name in studies}, bars, how)
    forget_if_unused(output)
    results = [bars[name].result for name in studies if name not in failed]
    codes = [
        _report_errors({**ends, **failed}, said=set(ends)),
        *(RunError.exit_code for result in results if result is not None and result.failed),
    ]
    interrupted = any(result is None or result.interrupted for result in results)
    return INTERRUPTED if interrupted else max(codes)


def _report_errors(
    ends: Mapping[str, IolabError], said: set[str] | frozenset[str] = frozenset()
) -> int:
    """A line for each; the worst exit code, 0 without any."""
    for name, error in ends.items():
        if name not in said:
            say(f"iolab: {name}: {_without_name(error, name)}")
    return max((error.exit_code for error in ends.values()), default=0)


def _without_name(error: IolabError, name: str) -> str:
    return str(error).removeprefix(f"{name}: ")
