# SPDX-License-Identifier: Apache-2.0
"""Continues a study that ended early: finds finished runs and leftovers, and what to repeat.

The evidence decides, not the journal: a run is done if the status in its `run.json` is `finished`.
Other runs (killed, stopped, failed) are moved to `aside/` and repeated under the same number. Only
files that iolab made for measuring are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iolab.base.errors import FormatError, ResultsError, UsageError
from iolab.base.files import read_regular
from iolab.hosts.base.host import Host

from ...plan.adapt import Changes
from ...plan.file.load import Study, load_study
from ...results.evidence.files import profile_directories, read_plan, run_directories, run_number
from ...results.evidence.journal import FILE as JOURNAL_FILE
from ...results.evidence.journal import read_journal
from ...results.evidence.manifest import FILE as MANIFEST_FILE
from ...results.evidence.manifest import STUDY_FILE, Manifest, read_manifest
from ...results.evidence.model import RunPlan
from ...targets.made import SUFFIX as MADE
from ...targets.made import clean_leftovers
from .journal import Journal
from .process_registry import end_left_running

ASIDE = "aside"


@dataclass(frozen=True)
class Past:
    """What earlier attempts left in a results directory.

    Attributes:
        events: of the journal, in order.
        done: number of each finished run to its name.
        planned: number of each run to the name that it was planned under last.
        host: name of the host of the latest run, or of the study's start; None if unknown.
    """

    events: Sequence[Mapping[str, Any]]
    done: Mapping[int, str]
    planned: Mapping[int, str]
    host: str | None = None

    @property
    def begun(self) -> bool:
        """Whether any run was planned or done."""
        return bool(self.events or self.done)

    @property
    def surroundings(self) -> Mapping[str, Any]:
        """Tools and fingerprint of the latest planned runs; empty if the journal has none."""
        for event in reversed(self.events):
            if "surroundings" in event:
                surroundings = event["surroundings"]
                return surroundings if isinstance(surroundings, dict) else {}
        return {}


NOTHING = Past((), {}, {})


def begun(directory: Path) -> bool:
    """Whether a study was begun here: without a manifest no run was."""
    return (directory / MANIFEST_FILE).exists()


def recorded_study(
    directory: Path, path: Path, changes: Changes | None, host: Host | None
) -> Study:
    """The study as it was begun, from its kept text and changes.

    UsageError where `path` says something else by now, where `changes` differ from those it was
    begun with, or where these are no results of a run.
    """
    manifest = read_manifest(directory)
    if manifest.origin != "run" or manifest.study is None:
        raise UsageError("holds imported results, which cannot be continued", where=directory)
    kept = directory / STUDY_FILE
    try:
        same = read_regular(kept) == path.read_bytes()
    except OSError as error:
        raise ResultsError(
            f"can't be read: {error.strerror or error}", where=error.filename or kept
        ) from None
    if not same:
        raise UsageError(
            "is not the study that these results were begun with",
            where=path,
            hint=f"{kept} is; run the changed study into another directory with -o",
        )
    before = Changes.from_data(manifest.study.get("changes", {}))
    if changes and changes.as_data() != before.as_data():
        raise UsageError(
            f"these results were begun with {_words(before)}, not with {_words(changes)}",
            where=directory,
            hint="leave such flags out with --resume: they are kept with the results. A study with "
            'order = "sessions" measures its variants on different boots',
        )
    study = load_study(
        kept, before, host=host, directory=Path(manifest.study.get("directory", path.parent))
    )
    return replace(study, name=manifest.name)  # the kept file is named study.toml


def read_past(directory: Path) -> Past:
    """Read the finished runs from the evidence. Without a journal only the order of events is
    lost."""
    events = read_journal(directory)[0] if (directory / JOURNAL_FILE).exists() else []
    done, host = {}, None
    for run_dir in (*run_directories(directory), *profile_directories(directory)):
        plan, number = _plan(run_dir), run_number(run_dir.name)
        if plan is not None and plan.status == "finished" and number is not None:
            done[number], host = run_dir.name, plan.host
    planned = {
        number: event["run"]
        for event in events
        if event["event"] == "planned"
        and (number := run_number(str(event.get("run", "")))) is not None
    }
    said = [
        event["host"]
        for event in events
        if event["event"] in ("opened", "resumed", "started") and isinstance(event.get("host"), str)
    ]
    return Past(events, done, planned, said[-1] if said else host or _begun_on(directory))


def _begun_on(directory: Path) -> str | None:
    """The host in the manifest, which is written before anything is made on a host."""
    return read_manifest(directory).host if begun(directory) else None


def check_host(past: Past, host: Host, directory: Path, force: bool) -> None:
    """UsageError if the study was run on another host until now. `force` permits it, unless
    leftovers are on record there.

    To be called before `clear`, which would delete the record of leftovers on the other host.
    """
    if past.host is None or past.host == host.name:
        return
    what = f"the study was begun on host '{past.host}', not on '{host.name}'"
    if any(directory.glob(f"*{MADE}")):
        raise UsageError(
            f"{what}, and what it left over there can be removed from there alone",
            where=directory,
            hint="continue there: name that host with --host",
        )
    if not force:
        raise UsageError(
            what,
            where=directory,
            hint="continue there: name that host with --host; run here into another directory with -o; or "
            "continue here with --force: later runs are marked as of another environment",
        )


def clear(
    directory: Path,
    past: Past,
    journal: Journal,
    host: Host,
    notice: Callable[[str], None],
    given_up: Collection[int] = (),
) -> None:
    """End what a killed study left running, remove what its targets left, and set unfinished runs
    aside.

    Only what targets have on record is removed; see `starts` for which processes are ended. Runs
    `given_up` are not repeated, and remain where they are.
    """
    end_left_running(past.events, directory, journal, host, notice)
    for leftover in clean_leftovers(host, directory):
        notice(f"left over from the killed study: {leftover}")
    last = {str(event["run"]): event["event"] for event in past.events if "run" in event}
    for run_dir in (*run_directories(directory), *profile_directories(directory)):
        status = _status(run_dir)
        if status == "failed" and run_number(run_dir.name) in given_up:
            continue
        if status == "finished":
            if last.get(run_dir.name) != "finished":  # killed between the evidence and the journal
                journal.write("finished", run=run_dir.name, exit_code=0, recovered=True)
            continue
        place = _free_place(directory / ASIDE, run_dir.name)
        why = status or "killed in flight"
        journal.write("aside", run=run_dir.name, to=f"{ASIDE}/{place.name}", why=why)
        run_dir.rename(place)
        notice(f"run {run_dir.name} ({why}) is done again; what it left is in {ASIDE}/{place.name}")


def check_surroundings(
    past: Past,
    names: Mapping[int, str],
    surroundings: Mapping[str, Any],
    manifest: Manifest,
    study: Study,
    force: bool,
) -> list[str]:
    """Changes of the environment since the existing runs, as texts; empty if it equals that of any
    of them.

    Args:
        names: of the missing runs, by number, in the present environment.
        force: permit changes; later runs have another hash, and the environment gate judges them.

    Raises:
        UsageError: the environment changed.
    """
    earlier = [event["surroundings"] for event in past.events if "surroundings" in event]
    if (
        all(past.planned.get(number, name) == name for number, name in names.items())
        or surroundings in earlier
    ):
        return []
    changed = find_changes(past.surroundings, surroundings)
    if not changed and json.loads(json.dumps(study.as_data(), default=str)) != manifest.study:
        changed = [f"the study comes out with other parameters than under iolab {manifest.iolab}"]
    changed = changed or ["the runs were planned under other parameters"]
    if not force:
        raise UsageError(
            f"the environment is another one than the results': {'; '.join(changed)}",
            hint="put it back, run into another directory with -o, or continue with --force: later runs are marked as of another "
            "environment",
        )
    return changed


def find_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`kernel: 6.1 became 6.2` for each difference of tools and fingerprint, including new and
    missing facts."""
    changes: list[str] = []
    for part in ("tools", "fingerprint"):
        old, new = before.get(part, {}), now.get(part, {})
        changes += [
            f"{name}: {old.get(name, 'unknown')} became {new.get(name, 'unknown')}"
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name)
        ]
    return list(dict.fromkeys(changes))


def _plan(run_dir: Path) -> RunPlan | None:
    """`run.json`; None if it is missing or damaged."""
    try:
        return read_plan(run_dir)
    except FormatError:
        return None


def _status(run_dir: Path) -> str | None:
    plan = _plan(run_dir)
    return None if plan is None else plan.status


def _free_place(aside: Path, name: str) -> Path:
    aside.mkdir(exist_ok=True)
    number = 1
    while (aside / f"{name}.{number}").exists():
        number += 1
    return aside / f"{name}.{number}"


def _words(changes: Changes) -> str:
    return " ".join(changes.arguments()) or "no changes"
