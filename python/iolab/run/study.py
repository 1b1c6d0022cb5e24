"""Doing a whole study: from its file to a results directory."""

from __future__ import annotations

from pathlib import Path

from ..clock import Clock, SystemClock
from ..errors import RunError, UsageError
from ..hosts.base import Host
from ..hosts.local import LocalHost
from ..results.evidence import RUNS
from ..results.lock import FILE as LOCK_FILE
from ..results.lock import lock
from ..results.manifest import FILE as MANIFEST_FILE
from ..study.load import load_study
from .interrupts import Interrupts
from .progress import ProgressListener, Silence
from .runner import StudyRunner


def run_study(path: Path, output: Path | None = None, *, listener: ProgressListener | None = None, clock: Clock | None = None,
              host: Host | None = None, interrupts: Interrupts | None = None) -> Path:
    """Do a study and return its results directory.

    Args:
        path: the study file.
        output: results directory to make; default `results/<name>` below the working directory.
        listener: hears the progress; `Outcome` tells whether the study came to its end.
        clock, host: the system's and this machine unless given (fakes in tests).
        interrupts: Ctrl-C handling; its own unless given.

    Raises StudyError for a wrong study, UsageError where the directory holds results already, ResultsError where
    another study writes there, RunError where nothing could be measured at all (no fio, no room, no such target). A
    failing run is recorded and doesn't end the study.
    """
    study = load_study(path)
    directory = output if output is not None else Path("results") / study.name
    heard = listener or Silence()
    fresh = not directory.exists()
    _check_output(directory)
    try:
        with lock(directory):
            _check_output(directory)
            runner = StudyRunner(study, directory, heard, clock or SystemClock(), host or LocalHost())
            with interrupts or Interrupts(
                    lambda: heard.noticed("stopping after this run; press Ctrl-C again to stop now")) as stops:
                runner.run(stops, reproduce=["iolab", "run", str(path), *(["-o", str(output)] if output is not None else [])])
    except OSError as error:
        raise RunError(f"can't be written: {error.strerror or error}", where=error.filename or directory,
                       hint="choose another directory with -o") from None
    finally:
        _forget_if_unused(directory, fresh)
    return directory


def _check_output(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise UsageError("is a file, not a directory", where=directory, hint="choose another directory with -o")
    if (directory / MANIFEST_FILE).exists() or (directory / RUNS).exists():
        raise UsageError("holds results already", where=directory, hint="choose another directory with -o, or remove it first")


def _forget_if_unused(directory: Path, fresh: bool) -> None:
    """Take back a directory that was made here and in which nothing was written."""
    try:
        if fresh and directory.is_dir() and {entry.name for entry in directory.iterdir()} <= {LOCK_FILE}:
            (directory / LOCK_FILE).unlink(missing_ok=True)
            directory.rmdir()
    except OSError:
        pass
