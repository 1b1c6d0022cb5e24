# SPDX-License-Identifier: Apache-2.0
"""Doing a whole study: from its file to a results directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iolab.base.clock import Clock, SystemClock
from iolab.base.errors import RunError, UsageError
from iolab.hosts.base.host import Host
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.kinds.parse import host_named
from iolab.recordings.store.base.layout import is_recording

from ..plan.adapt import Changes
from ..plan.file.load import Study, is_in_sessions, load_study
from ..plan.file.trust import describe_commands, require_trust
from ..results.evidence.files import RUNS
from ..results.evidence.lock import FILE as LOCK_FILE
from ..results.evidence.lock import check_free, lock
from ..results.evidence.manifest import FILE as MANIFEST_FILE
from ..results.open.multi_host import FILE as HOSTS_FILE
from ..targets.base import Permissions
from .progress import ProgressListener, Silence
from .resuming.interrupts import Interrupts
from .resuming.resume import begun, recorded_study
from .runner import RunnerOptions, StudyRunner


@dataclass(frozen=True)
class How:
    """How a study is done this time.

    Attributes:
        changes: what differs from the file; kept with the results, so that `resume` needs none. In a
        study in sessions, `variants` selects the sessions of this call, and is not kept.
        resume: continue existing results: runs that are missing, failed or were killed are done.
        Begins where there are none. fail_fast: stop at the first run that fails.
        destructive, force: see `targets.base.Permissions`; `force` also resumes in an environment
        that changed, or on another host. trusted: whether the study's commands may run; a text
        agreed to before needs no leave.
    """

    changes: Changes = field(default_factory=Changes)
    resume: bool = False
    fail_fast: bool = False
    destructive: bool = False
    force: bool = False
    trusted: bool = False

    @property
    def permissions(self) -> Permissions:
        """As targets take it."""
        return Permissions(self.destructive, self.force)


def run_study(
    path: Path,
    output: Path | None = None,
    how: How | None = None,
    *,
    listener: ProgressListener | None = None,
    clock: Clock | None = None,
    host: Host | None = None,
    interrupts: Interrupts | None = None,
    open_host: Callable[[str], Host] = host_named,
) -> Path:
    """Do a study and return its results directory.

    Args:
        path: the study file.
        output: results directory to make; default `results/<name>` below the working directory.
        how: see there; by default as the file says, from the start.
        listener: is called with the progress; `Outcome` says whether the study was completed.
        clock, host: the system's and this machine unless given (fakes in tests).
        interrupts: Ctrl-C handling; its own unless given.
        open_host: opens the client hosts of `[load]`.

    Raises StudyError for a wrong study, UsageError where the directory holds results already or
    can't be resumed, ResultsError where another study writes there, RunError where nothing could be
    measured at all (no fio, no room, no such target, no room for the results any more). A failing
    run is recorded and doesn't end the study.
    """
    how = how or How()
    changes, resume = how.changes, how.resume
    session_variants: Sequence[str] = ()
    if changes.variants and is_in_sessions(path):
        load_study(path, changes, host=host)  # refuses unknown names
        session_variants, changes = changes.variants, replace(changes, variants=())
    study = load_study(path, changes, host=host)
    require_trust(study, how.trusted)
    directory = output if output is not None else Path("results") / study.name
    heard = listener or Silence()
    fresh = not directory.exists()
    if not resume and begun(directory):
        check_free(directory)  # before any advice to remove it
    _check_output(directory, resume)
    options = RunnerOptions(resume, how.fail_fast, how.permissions, session_variants)
    try:
        with lock(directory):
            _check_output(directory, resume)
            if resume and begun(directory):
                recorded = recorded_study(directory, path, changes, host)
                # changes that were kept with the results can add to what was agreed to
                same = describe_commands(recorded) == describe_commands(study)
                require_trust(recorded, how.trusted and same)
                study = recorded
            where = host or LocalHost()
            with interrupts or Interrupts(
                lambda: heard.notice("stopping after this run; press Ctrl-C again to stop now")
            ) as stops:
                if isinstance(where, LocalHost):
                    where.stopping = lambda: stops.stop_now
                while True:
                    runner = StudyRunner(
                        study, directory, heard, clock or SystemClock(), where, options, open_host
                    )
                    runner.run(stops, reproduce=_command_line(path, output, study, options, host))
                    if not runner.has_restarted:
                        break
                    options = replace(options, resume=True)
                    study = recorded_study(directory, path, changes, host)
    except OSError as error:
        hint = (
            "what was measured is kept: make room, then continue with --resume"
            if begun(directory)
            else "choose another directory with -o"
        )
        raise RunError(
            f"can't be written: {error.strerror or error}",
            where=error.filename or directory,
            hint=hint,
        ) from None
    finally:
        _forget_if_unused(directory, fresh)
    return directory


def _command_line(
    path: Path, output: Path | None, study: Study, options: RunnerOptions, host: Host | None
) -> list[str]:
    flags = ["--destructive"] if options.permissions.destructive else []
    flags += ["--host", str(words)] if (words := getattr(host, "words", None)) else []
    return [
        "iolab",
        "run",
        str(path),
        *(["-o", str(output)] if output is not None else []),
        *study.changes.arguments(),
        *flags,
    ]


def refuse_other(directory: Path) -> None:
    """UsageError where results can't be written to a path, as a file or a recording is there."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(
            "is a file, not a directory", where=directory, hint="choose another directory with -o"
        )
    if is_recording(directory):
        raise UsageError(
            "is a recording, not a results directory",
            where=directory,
            hint="choose another directory with -o",
        )


def _check_output(directory: Path, resume: bool) -> None:
    refuse_other(directory)
    if (directory / HOSTS_FILE).exists():
        raise UsageError(
            "holds results of several hosts",
            where=directory,
            hint="name all of them with --host, or choose another directory with -o",
        )
    runs = directory / RUNS
    if not (directory / MANIFEST_FILE).exists() and runs.is_dir() and any(runs.iterdir()):
        raise UsageError(
            "holds runs but no manifest.json",
            where=directory,
            hint="choose another directory with -o",
        )
    if not resume and (directory / MANIFEST_FILE).exists():
        raise UsageError(
            "holds results already",
            where=directory,
            hint="continue them with --resume, choose another directory with -o, or remove it first",
        )


def _forget_if_unused(directory: Path, fresh: bool) -> None:
    """Take back a directory that was made here and in which nothing was written."""
    try:
        if (
            fresh
            and directory.is_dir()
            and {entry.name for entry in directory.iterdir()} <= {LOCK_FILE}
        ):
            (directory / LOCK_FILE).unlink(missing_ok=True)
            directory.rmdir()
    except OSError:
        pass
