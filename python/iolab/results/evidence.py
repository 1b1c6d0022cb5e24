"""The files that a run leaves, and how they are found again: `runs/<id>/` with `run.json` beside the tools' own files.

Evidence is written once. Everything else in a results directory can be made again from it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..texts import parsed
from .manifest import write_atomically
from .model import RunPlan

SCHEMA = 1
RUNS = "runs"
PROFILES = "profiles"
"""Where runs lie that were made for a profile alone: apart, so that nothing that is measured knows of them."""
PLAN_FILE = "run.json"
ENVIRONMENT_FILE = "environment.json"

_DIGITS = 18
"""No study has runs with longer numbers."""

TARGET_FILE = "target.json"

IO_LOG_FILE = "log_ios.json"
"""What became of fio's log of every I/O, where it kept one."""

PICTURE_READ_FILE = "picture_read.json"

OWN_FILES = {PLAN_FILE, ENVIRONMENT_FILE, TARGET_FILE, IO_LOG_FILE, PICTURE_READ_FILE}
"""Files of a run directory that iolab itself writes about the run, as opposed to what tools measured."""


_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("run", "variant", "status", "host"), str),
    **dict.fromkeys(("jobs", "depth", "runtime", "ramp", "offered_iops"), int | float | None), "exit_code": int | None,
    **dict.fromkeys(("factors", "tools", "extra"), dict)}
"""What the fields of a plan hold."""


def write_plan(run_dir: Path, plan: RunPlan, *, durable: bool = True) -> None:
    """Write `run.json`: the plan as plain data. `durable=False` leaves the fsync out (imports, which can be made again)."""
    data = {"schema": SCHEMA, **dataclasses.asdict(plan)}
    text = json.dumps(data, indent=1, default=_plain) + "\n"
    if durable:
        write_atomically(run_dir / PLAN_FILE, text)
    else:
        (run_dir / PLAN_FILE).write_text(text, "utf-8")


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "items") else list(value) if isinstance(value, tuple) else str(value)


def read_plan(run_dir: Path) -> RunPlan:
    """The plan that `write_plan` wrote; FormatError where it is missing or damaged."""
    path = run_dir / PLAN_FILE
    try:
        data = parsed(path.read_bytes())
        if data.pop("schema") != SCHEMA:
            raise FormatError("of a schema that this iolab doesn't read", where=path)
        if data.get("window") is not None:
            data["window"] = (int(data["window"][0]), int(data["window"][1]))
        data["command"] = tuple(data.get("command", ()))
        if wrong := _wrong(data):
            raise FormatError(f"is no run's plan: {wrong} is of another kind", where=path)
        return RunPlan(**data)
    except FileNotFoundError:
        raise FormatError("has no run.json: the run was never finished", where=run_dir) from None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise FormatError(f"can't be read as a run's plan: {error!r}", where=path) from None


def _wrong(data: Mapping[str, Any]) -> str:
    """The first field that is of another kind than plans have it; empty where all are as they should be."""
    parts: Mapping[str, tuple[Iterable[Any], Any]] = {
        "factors": (data.get("factors", {}).values(), str | int | float | None), "tools": (data.get("tools", {}).values(), str),
        "command": (data["command"], str)}
    wrong = [name for name, kind in _KINDS.items() if name in data and not isinstance(data[name], kind)]
    wrong += [name for name, (values, kind) in parts.items() if not all(isinstance(each, kind) for each in values)]
    wrong += [name for name in ("repetition", "block") if type(data.get(name, 1)) is not int or abs(data.get(name, 1)) >= 2**31]
    wrong += ["window"] if any(abs(end) >= 2**63 for end in data.get("window") or ()) else []
    return next(iter(wrong), "")


def known_plan(run_dir: Path) -> tuple[RunPlan, FormatError | None]:
    """The run's plan; where it can't be read, what is known without it, and what is wrong.

    A run without a readable plan was killed before it ended: it is shown, and counts for nothing.
    """
    try:
        return read_plan(run_dir), None
    except FormatError as error:
        return RunPlan(run=run_dir.name, variant="?", factors={}, status="failed"), error


def run_directories(directory: Path) -> Iterator[Path]:
    """Run directories of a results directory, in order of their number."""
    runs = directory / RUNS
    if runs.is_dir():
        yield from sorted(path for path in runs.iterdir() if path.is_dir())


def profile_directories(directory: Path) -> Iterator[Path]:
    """Directories of the runs that were made for a profile, in order of their number."""
    profiles = directory / PROFILES
    if profiles.is_dir():
        yield from sorted(path for path in profiles.iterdir() if path.is_dir())


def run_number(name: str) -> int | None:
    """A run's number by its name, `0042-1a2b3c4d`; None for another name."""
    number = name.partition("-")[0]
    return int(number) if number.isascii() and number.isdecimal() and len(number) <= _DIGITS else None


def measured_files(run_dir: Path) -> list[Path]:
    """The tools' files of a run, sorted by name."""
    return sorted(path for path in run_dir.iterdir()
                  if path.name not in OWN_FILES and not path.name.startswith(".") and path.is_file())


def read_environment(directory: Path) -> dict[str, Any]:
    """`environment.json` of a run or of a results directory; empty where there is none or it is damaged."""
    return _document(directory / ENVIRONMENT_FILE)


def read_io_log(run_dir: Path) -> dict[str, Any]:
    """`log_ios.json` of a run: `recording` (below the results), `label` of its mark there, `events` and `latency` percentiles by operation,
    or the `problem`; empty where there is none or it is damaged."""
    return _document(run_dir / IO_LOG_FILE)


def _document(path: Path) -> dict[str, Any]:
    try:
        data = parsed(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
