# SPDX-License-Identifier: Apache-2.0
"""The files that a run leaves, and how they are found again: `runs/<id>/` with `run.json` and
the tools' own files.

Evidence is written once. Everything else in a results directory can be made again from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from iolab.base.errors import FormatError, ResultsError
from iolab.base.files import EVIDENCE, folders_in, open_for_writing, read_regular, write_atomically
from iolab.base.integrity import FileDigest, has_own_digest, with_own_digest
from iolab.base.untrusted_text import parse_json

from .model import RunPlan

SCHEMA = 2
"""Of `run.json`: from 2 on it has digests, of the run's files and of itself."""
RUNS = "runs"
PROFILES = "profiles"
"""Where runs lie that were made for a profile alone: apart, so that nothing that is measured knows
of them."""
CLIENTS = "clients"
"""Directory of a run in which each client has one with the files of its part."""
PASSES = "passes"
"""Directory of a run with a directory for each pass of reading before the last one: `001` and so on.
Also the key of `run.json` for the number of passes."""
PLAN_FILE = "run.json"
ENVIRONMENT_FILE = "environment.json"

_DIGITS = 18
"""No study has runs with longer numbers."""

TARGET_FILE = "target.json"

IO_LOG_FILE = "log_ios.json"
"""What became of fio's log of every I/O, where it kept one."""

PICTURE_READ_FILE = "picture_read.json"

OWN_FILES = {PLAN_FILE, ENVIRONMENT_FILE, TARGET_FILE, IO_LOG_FILE, PICTURE_READ_FILE}
"""Files of a run directory that iolab itself writes about the run, as opposed to what tools
measured."""

_WORDS = (".err", "stderr.txt", "stdout.txt", "command.txt", "dmesg.txt", "hooks.jsonl", ".fio")
"""Ends of names of files that tell of a run in words."""

_IO_LOG_KINDS: Mapping[str, type] = {
    "recording": str,
    "label": str,
    "problem": str,
    "events": dict,
    "latency": dict,
}
"""Types of the fields of `log_ios.json`; a field of another type is left out."""

_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("run", "variant", "status", "host"), str),
    **dict.fromkeys(("jobs", "depth", "runtime", "ramp", "offered_iops"), int | float | None),
    "exit_code": int | None,
    **dict.fromkeys(("factors", "tools", "extra"), dict),
}
"""What the fields of a plan hold."""


def write_plan(run_dir: Path, plan: RunPlan, *, durable: bool = True) -> None:
    """Write `run.json`: the plan as plain data, with the digest of every file that the run left,
    and of itself.

    To be called last: what comes later is not the run's. `durable=False` leaves the fsync out
    (imports, which can be made again).
    """
    fields = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    files = {name: str(digest) for name, digest in _digests(run_dir).items()}
    document = with_own_digest(
        json.dumps({"schema": SCHEMA, **fields, "files": files}, indent=1, default=_plain)
    )
    if durable:
        write_atomically(run_dir / PLAN_FILE, document)
    else:
        with os.fdopen(
            open_for_writing(run_dir / PLAN_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            "w",
            encoding="utf-8",
        ) as file:
            file.write(document)


def _digests(run_dir: Path) -> dict[str, FileDigest]:
    """Of every file below a run's directory that can be read, in order of path."""
    digests = {}
    for path in files_below(run_dir):
        with contextlib.suppress(OSError):  # what can't be read now is no evidence
            digests[path] = FileDigest.of(read_regular(run_dir / path, limit=EVIDENCE))
    return dict(sorted(digests.items()))


def files_below(run_dir: Path) -> Iterator[str]:
    """Paths below a run's directory of everything but directories, `run.json` and hidden
    files."""
    top = len(str(run_dir)) + 1
    for folder, _, names in os.walk(run_dir):
        below = f"{folder[top:]}/" if len(folder) > top else ""
        for name in names:
            if not name.startswith(".") and (below or name != PLAN_FILE):
                yield f"{below}{name}"


def _plain(value: Any) -> Any:
    return (
        dict(value)
        if hasattr(value, "items")
        else list(value)
        if isinstance(value, tuple)
        else str(value)
    )


def read_plan(run_dir: Path) -> RunPlan:
    """The plan that `write_plan` wrote; FormatError where it is missing or damaged: its message
    names the file, and its place is the run's directory."""
    path = run_dir / PLAN_FILE
    try:
        content = read_regular(path)
        has_digest = has_own_digest(content)
        data = parse_json(content)
        schema = data.pop("schema")
        if type(schema) is not int or not 1 <= schema <= SCHEMA:
            raise FormatError(
                f"{PLAN_FILE} has a schema that this iolab does not read", where=run_dir
            )
        if has_digest is False or (has_digest is None and schema > 1):
            raise FormatError(
                f"{PLAN_FILE} is damaged: its content does not match its digest", where=run_dir
            )
        data.pop("sha256", None)
        if data.get("files") is not None:
            data["files"] = {
                str(name): FileDigest.parse(digest) for name, digest in data["files"].items()
            }
        if data.get("window") is not None:
            data["window"] = (int(data["window"][0]), int(data["window"][1]))
        data["command"] = tuple(data.get("command", ()))
        if wrong := _wrong(data):
            raise FormatError(
                f"{PLAN_FILE} is damaged: the type of '{wrong}' is wrong", where=run_dir
            )
        return RunPlan(**data)
    except FileNotFoundError:
        raise FormatError(
            f"{PLAN_FILE} is missing: the run was never finished", where=run_dir
        ) from None
    except OSError as error:
        raise FormatError(
            f"{PLAN_FILE} cannot be read: {error.strerror or error}", where=run_dir
        ) from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise FormatError(f"{PLAN_FILE} is damaged: {error!r}", where=run_dir) from None


def _wrong(data: Mapping[str, Any]) -> str:
    """The first field that is of another kind than plans have it; empty where all are as they
    should be."""
    parts: Mapping[str, tuple[Iterable[Any], Any]] = {
        "factors": (data.get("factors", {}).values(), str | int | float | None),
        "tools": (data.get("tools", {}).values(), str),
        "command": (data["command"], str),
    }
    wrong = [
        name for name, kind in _KINDS.items() if name in data and not isinstance(data[name], kind)
    ]
    wrong += [
        name
        for name, (values, kind) in parts.items()
        if not all(isinstance(value, kind) for value in values)
    ]
    wrong += [
        name
        for name in ("repetition", "block")
        if type(data.get(name, 1)) is not int or abs(data.get(name, 1)) >= 2**31
    ]
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
    yield from _folders_in(directory / RUNS)


def profile_directories(directory: Path) -> Iterator[Path]:
    """Directories of the runs that were made for a profile, in order of their number."""
    yield from _folders_in(directory / PROFILES)


def _folders_in(directory: Path) -> list[Path]:
    try:
        return folders_in(directory)
    except OSError as error:
        raise ResultsError(
            f"can't be read: {error.strerror or error}", where=error.filename or directory
        ) from None


def run_number(name: str) -> int | None:
    """A run's number by its name, `0042-1a2b3c4d`; None for another name."""
    number = name.partition("-")[0]
    return (
        int(number) if number.isascii() and number.isdecimal() and len(number) <= _DIGITS else None
    )


def measured_files(run_dir: Path) -> list[Path]:
    """The tools' files of a run, sorted by name."""
    return sorted(
        path
        for path in run_dir.iterdir()
        if path.name not in OWN_FILES and not path.name.startswith(".") and not path.is_dir()
    )


Files: TypeAlias = Mapping[str, FileDigest] | None
"""`RunPlan.files`."""


def read_file(run_dir: Path, name: str, files: Files) -> bytes:
    """A file of a run, as it was when the run ended; FormatError where it can't be read or is
    another by now."""
    path = run_dir / name
    try:
        data = read_regular(path, limit=EVIDENCE)
    except OSError as error:
        raise FormatError(error.strerror or str(error), where=path) from None
    if files is not None:
        if name not in files:
            raise FormatError("it was not there when the run ended", where=path)
        if files[name] != FileDigest.of(data):
            raise FormatError("its content changed after the run ended", where=path)
    return data


def missing_files(run_dir: Path, files: Files) -> list[str]:
    """Files that were there when the run ended and are not any more."""
    return [name for name in files or () if not os.path.lexists(run_dir / name)]


def holds_numbers(name: str) -> bool:
    """Whether a file of a run may be what its numbers come from; others tell of the run in
    words."""
    parts = name.split("/")
    below = len(parts) > 1 and not (len(parts) == 3 and parts[0] in (CLIENTS, PASSES))
    return not (name == ENVIRONMENT_FILE or below or name.endswith(_WORDS))


def read_environment(directory: Path, files: Files = None) -> dict[str, Any]:
    """`environment.json` of a run or of a results directory: `{"fingerprint": {name: text},
    "facts": {...}}`; empty where there is none or it is damaged."""
    document = read_document(directory, ENVIRONMENT_FILE, files)
    if not document:
        return {}
    parts: dict[str, dict[str, Any]] = {
        name: part if isinstance(part := document.get(name), dict) else {}
        for name in ("fingerprint", "facts")
    }
    return {
        **document,
        **parts,
        "fingerprint": {name: str(value) for name, value in parts["fingerprint"].items()},
    }


def read_io_log(run_dir: Path, files: Files = None) -> dict[str, Any]:
    """`log_ios.json` of a run: `recording` (below the results), `label` of its mark there, `events`
    and `latency` percentiles by operation, or the `problem`; empty where there is none or it is
    damaged."""
    document = read_document(run_dir, IO_LOG_FILE, files)
    entries: dict[str, Any] = {
        name: value
        for name, value in document.items()
        if isinstance(value, _IO_LOG_KINDS.get(name, object))
    }
    for name, kind in (("events", int), ("latency", dict)):
        if name in entries:
            entries[name] = {
                key: value for key, value in entries[name].items() if isinstance(value, kind)
            }
    return entries


def read_document(directory: Path, name: str, files: Files = None) -> dict[str, Any]:
    """A JSON object that iolab wrote; empty where there is none, or it is damaged by that digest in
    `files` or its own, which those of schema 2 on have."""
    try:
        content = read_file(directory, name, files)
        data, has_digest = parse_json(content), has_own_digest(content)
    except (FormatError, ValueError):
        return {}
    if (
        not isinstance(data, dict)
        or has_digest is False
        or (has_digest is None and data.get("schema", 1) not in (1, None))
    ):
        return {}
    data.pop("sha256", None)
    return data
