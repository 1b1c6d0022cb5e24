# SPDX-License-Identifier: Apache-2.0
"""Checking results whole: every file with a known digest is read and compared; damaged caches are
rebuilt on request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from iolab.base.errors import FormatError, IolabError, ResultsError
from iolab.base.files import EVIDENCE, is_foreign, read_regular
from iolab.base.integrity import FileDigest, Finding, Progress, Verification, has_own_digest
from iolab.base.untrusted_text import parse_json

from ..evidence.completeness import open_runs, standing
from ..evidence.files import (
    ENVIRONMENT_FILE,
    PLAN_FILE,
    RUNS,
    files_below,
    holds_numbers,
    profile_directories,
    read_plan,
    run_directories,
)
from ..evidence.journal import FILE as JOURNAL_FILE
from ..evidence.journal import examine_journal
from ..evidence.manifest import FILE as MANIFEST_FILE
from ..evidence.manifest import TABLES, read_manifest
from .cache import LIST, evidence_key, listed_caches
from .multi_host import FILE as HOSTS_FILE
from .multi_host import read_hosts


@dataclass(frozen=True)
class _Checked:
    """What looking at one file gave: its size, whether a digest of it was known, and what is
    wrong."""

    size_bytes: int = 0
    is_verified: bool = True
    finding: Finding | None = None


_Check = Callable[[], _Checked]


def verify_results(
    path: Path, *, repair: bool = False, progress: Progress | None = None
) -> Verification:
    """Read every file of a results directory and compare it with what was recorded of it when it
    was written.

    Args:
        path: the results directory, also one of several hosts.
        repair: rebuild caches that are damaged or stale. Evidence is never touched.
        progress: see `integrity.Progress`.

    Results that are being made are checked as far as they are. ResultsError where it is no results
    directory.
    """
    if not any(os.path.lexists(path / name) for name in (MANIFEST_FILE, HOSTS_FILE, RUNS)):
        raise ResultsError("not a results directory (it has no manifest.json)", where=path)
    parts = _parts(path)
    checks: list[_Check] = (
        [lambda: _own_document(path, HOSTS_FILE)] if (path / HOSTS_FILE).exists() else []
    )
    findings = _absent_hosts(path)
    for part in parts:
        below = "" if part == path else f"{part.name}/"
        checks_of_part, missing = _checks_of(part, below)
        checks += checks_of_part
        findings += missing
    done = _run(checks, progress)
    findings += [check.finding for check in done if check.finding is not None]
    checked = Verification(
        "results",
        len(done),
        sum(check.size_bytes for check in done),
        sum(not check.is_verified for check in done),
    )
    if repair:
        findings = _repair_caches(path, parts, findings)
    return replace(checked, findings=tuple(sorted(findings, key=lambda each: each.path)))


def _parts(path: Path) -> list[Path]:
    """The results directories of each host; those that are there where `hosts.json` can't be
    read."""
    if not (path / HOSTS_FILE).exists():
        return [path]
    try:
        hosts = read_hosts(path)
        names = sorted(hosts.words) if hosts is not None else []
    except ResultsError:
        names = sorted(entry.name for entry in path.iterdir())
    return [path / name for name in names if (path / name).is_dir()]


def _absent_hosts(path: Path) -> list[Finding]:
    try:
        hosts = read_hosts(path)
    except ResultsError:
        return []  # a finding of its own
    return [
        Finding(f"{name}/", "missing", "the study was not begun there, or its results are missing")
        for name in (hosts.words if hosts is not None else ())
        if not (path / name).is_dir()
    ]


def _checks_of(part: Path, below: str) -> tuple[list[_Check], list[Finding]]:
    """What is to be read of the results of one host, and what is missing."""
    checks: list[_Check] = [lambda: _own_document(part, MANIFEST_FILE, below)]
    findings = []
    try:
        manifest = read_manifest(part)
    except ResultsError:
        manifest = None
    if manifest is not None and manifest.files is not None:
        checks += [
            _check_listed(
                part,
                name,
                digest,
                below,
                "the published numbers" if name.startswith(f"{TABLES}/") else "",
            )
            for name, digest in manifest.files.items()
        ]
        tables = (
            table.relative_to(part).as_posix() for table in sorted((part / TABLES).glob("*.csv"))
        )
        findings += [
            _unexpected_finding(f"{below}{name}") for name in tables if name not in manifest.files
        ]
    if os.path.lexists(part / ENVIRONMENT_FILE) or (
        manifest is not None and manifest.origin == "run"
    ):
        checks.append(lambda: _own_document(part, ENVIRONMENT_FILE, below, "on what the study ran"))
    if os.path.lexists(part / JOURNAL_FILE):
        checks.append(lambda: _journal(part, below))
    elif manifest is not None and manifest.origin == "run":
        findings.append(
            Finding(
                f"{below}{JOURNAL_FILE}",
                "missing",
                "it is not there",
                "which runs were planned, and whether all of them are there",
            )
        )
    progress = None if manifest is None else standing(part, manifest)
    findings += [
        Finding(
            f"{below}runs/{name}", "missing", "a list says that this run was there", f"run {name}"
        )
        for name in (progress.gone if progress is not None else ())
    ]
    try:
        unfinished = open_runs(
            examine_journal(part)[0] if os.path.lexists(part / JOURNAL_FILE) else []
        )
    except ResultsError:
        unfinished = set()  # a finding of its own
    for run_dir in (*run_directories(part), *profile_directories(part)):
        checks += _run_checks(part, run_dir, below, unfinished)
    if manifest is not None and manifest.origin != "table":
        checks += _caches(part, below)
    return checks, findings


def _run_checks(part: Path, run_dir: Path, below: str, unfinished: set[str]) -> Iterator[_Check]:
    place = f"{below}{run_dir.relative_to(part).as_posix()}/"
    if not os.path.lexists(run_dir / PLAN_FILE) and run_dir.name in unfinished:
        return
    yield lambda: _own_document(run_dir, PLAN_FILE, place, f"run {run_dir.name}")
    try:
        files = read_plan(run_dir).files
    except FormatError:
        return
    names = list(files_below(run_dir))
    if files is None:
        yield from (_check_unlisted(run_dir, name, place) for name in names)
        return
    for name, digest in files.items():
        yield _check_listed(
            run_dir,
            name,
            digest,
            place,
            f"the numbers of run {run_dir.name}" if holds_numbers(name) else "",
        )
    for name in names:
        if name not in files:
            yield lambda name=name: _Checked(
                is_verified=False, finding=_unexpected_finding(f"{place}{name}")
            )  # type: ignore[misc]


def _check_listed(
    directory: Path,
    name: str,
    digest: FileDigest,
    below: str,
    lost: str = "",
    *,
    is_derived: bool = False,
) -> _Check:
    def check() -> _Checked:
        def wrong(kind: str, text: str) -> Finding:
            return Finding(f"{below}{name}", kind, text, lost, is_derived)  # type: ignore[arg-type]

        try:
            data = read_regular(directory / name, limit=EVIDENCE)
        except FileNotFoundError:
            return _Checked(finding=wrong("missing", "it is not there any more"))
        except OSError as error:
            return _Checked(
                finding=wrong("damaged", f"it can't be read: {error.strerror or error}")
            )
        same = FileDigest.of(data) == digest
        return _Checked(
            len(data),
            finding=None if same else wrong("damaged", "its content is not what was written"),
        )

    return check


def _check_unlisted(directory: Path, name: str, below: str) -> _Check:
    """A file of a run without recorded digests: whether it can be read at all."""

    def check() -> _Checked:
        try:
            return _Checked(len(read_regular(directory / name, limit=EVIDENCE)), is_verified=False)
        except OSError as error:
            return _Checked(
                finding=Finding(
                    f"{below}{name}", "damaged", f"it can't be read: {error.strerror or error}"
                )
            )

    return check


def _own_document(
    directory: Path, name: str, below: str = "", lost: str = "what these results are"
) -> _Checked:
    """A JSON object with a digest of itself."""
    try:
        data = read_regular(directory / name, limit=EVIDENCE)
        is_whole = has_own_digest(data)
        document = parse_json(data)
    except FileNotFoundError:
        return _Checked(finding=Finding(f"{below}{name}", "missing", "it is not there", lost))
    except OSError as error:
        return _Checked(
            finding=Finding(
                f"{below}{name}", "damaged", f"it can't be read: {error.strerror or error}", lost
            )
        )
    except ValueError:
        is_whole, document = False, None
    schema = (
        document.get("schema", document.get("schema_version"))
        if isinstance(document, dict)
        else None
    )
    if is_whole is False or not isinstance(document, dict) or (is_whole is None and schema != 1):
        return _Checked(
            len(data),
            finding=Finding(
                f"{below}{name}", "damaged", "its content is not what its digest is of", lost
            ),
        )
    return _Checked(len(data), is_verified=is_whole is True)


def _journal(part: Path, below: str) -> _Checked:
    try:
        size = (part / JOURNAL_FILE).stat().st_size
        damaged = examine_journal(part)[2]
        is_verified = b'"crc32"' in read_regular(part / JOURNAL_FILE, limit=EVIDENCE)
    except (ResultsError, OSError) as error:
        return _Checked(
            finding=Finding(f"{below}{JOURNAL_FILE}", "damaged", str(error), "the order of events")
        )
    if not damaged:
        return _Checked(size, is_verified)
    lines = ", ".join(map(str, damaged[:5])) + (", ..." if len(damaged) > 5 else "")
    return _Checked(
        size,
        is_verified,
        Finding(
            f"{below}{JOURNAL_FILE}",
            "damaged",
            f"changed or missing at line {lines}",
            "those events",
        ),
    )


def _caches(part: Path, below: str) -> Iterator[_Check]:
    if not os.path.lexists(part / LIST):
        return
    key, files = listed_caches(part)
    if key is None:
        yield lambda: _Checked(
            finding=Finding(
                f"{below}{LIST}",
                "damaged",
                "its content is not what its digest is of",
                is_derived=True,
            )
        )
    elif key != evidence_key(part):
        yield lambda: _Checked(
            finding=Finding(
                f"{below}{LIST}", "stale", "evidence or iolab changed since", is_derived=True
            )
        )
    else:
        yield lambda: _own_document(part, LIST, below, "")
        yield from (
            _check_listed(part, name, digest, below, is_derived=True)
            for name, digest in files.items()
        )


def _unexpected_finding(path: str) -> Finding:
    return Finding(
        path, "unexpected", "it was not there when the list of files was written, and is not used"
    )


def _repair_caches(path: Path, parts: Sequence[Path], findings: Sequence[Finding]) -> list[Finding]:
    """The same findings, with a mark at those of rebuilt caches."""
    from .results import Results

    rebuilt: set[str] = set()
    for part in parts:
        below = "" if part == path else f"{part.name}/"
        if is_foreign(part) or not any(
            finding.is_derived and finding.path.rpartition("/")[0] == below.rstrip("/")
            for finding in findings
        ):
            continue
        (part / LIST).unlink(missing_ok=True)
        try:
            Results(part)
        except IolabError:
            continue  # the evidence is to be put back first
        done = [check() for check in _caches(part, below)]
        if done and not any(check.finding for check in done):
            rebuilt |= {
                finding.path
                for finding in findings
                if finding.is_derived and finding.path.rpartition("/")[0] == below.rstrip("/")
            }
    return [
        replace(finding, is_repaired=True)
        if finding.path in rebuilt and finding.is_derived
        else finding
        for finding in findings
    ]


def _run(checks: Sequence[_Check], progress: Progress | None) -> list[_Checked]:
    """All of them, side by side: hashing lets go of the interpreter."""
    done = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, check in enumerate(pool.map(lambda check: check(), checks), 1):
            done.append(check)
            if progress is not None:
                progress(number, len(checks))
    return done
