# SPDX-License-Identifier: Apache-2.0
"""`iolab verify`: read every file of results or a recording, and say which are not what was
written, and what is lost by it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.options import PATH, format_option
from ..base.output import say, tell, tell_json

if TYPE_CHECKING:
    from iolab.base.integrity import Finding, Verification

MANY = 1000
"""Files beyond which it is said how far it is."""

FOUND = 1
"""Exit code where something is not what was written, and was not repaired. A stale cache is no
damage: the next command rebuilds it."""


@click.command(
    "verify",
    epilog="Exit codes: 0 no damage, or all of it was repaired (a stale cache is no damage); 1 damage was found.",
)
@click.argument("path", metavar="PATH", type=PATH)
@click.option(
    "--repair",
    is_flag=True,
    help="Rebuild what can be derived: segment maps, lists, kept statistics, caches.",
)
@format_option("text", "json")
def command(path: Path, repair: bool, style: str) -> int:
    """Check every file of results or of a recording for damage, and report what is lost."""
    verification = _verify(path, repair)
    if style == "json":
        tell_json(as_json(path, verification))
    else:
        tell(*lines(path, verification))
    return (
        FOUND
        if any(
            not finding.is_repaired and finding.kind != "stale" for finding in verification.findings
        )
        else 0
    )


def as_json(path: Path, found: Verification) -> dict[str, object]:
    """`{"schema": 1, "kind": "results" | "recording", "path", "files", "bytes", "unverified",
    "findings": [...]}`."""
    return {
        "schema": 1,
        "kind": found.kind,
        "path": str(path),
        "files": found.files,
        "bytes": found.size_bytes,
        "unverified": found.unverified,
        "findings": [asdict(finding) for finding in found.findings],
    }


def lines(path: Path, found: Verification) -> list[str]:
    """A line of what was read, then one for each finding."""
    from iolab.recordings.heatmap.ticks import quantity

    head = f"{path}: {found.kind}, {_count_text(found.files, 'file')}, {quantity(found.size_bytes, 'B')} read"
    older = [
        f"{_count_text(found.unverified, 'file')} of an older iolab without a checksum of the whole: looked at page by page"
    ]
    stale = sum(finding.kind == "stale" and not finding.is_repaired for finding in found.findings)
    end = (
        "no damage"
        if stale == len(found.findings)
        else _count_text(len(found.findings) - stale, "finding")
    )
    repaired = sum(finding.is_repaired for finding in found.findings)
    derived = sum(
        finding.is_derived and not finding.is_repaired and finding.kind != "stale"
        for finding in found.findings
    )
    more = [_advice(path, derived)] if derived else []
    if stale:
        more.append(
            f"{_count_text(stale, 'cache')} made by another iolab or for other evidence: the next command that needs it rebuilds it"
        )
    return [
        head,
        *(older if found.unverified else []),
        *map(_line, found.findings),
        f"{end}{f', {repaired} repaired' if repaired else ''}",
        *more,
    ]


def _advice(path: Path, derived: int) -> str:
    """How so many findings are repaired. A directory of another user is left as it is, even with
    `--repair`."""
    from iolab.base.files import is_foreign

    owner = f", run by its owner: {path} belongs to another user" if is_foreign(path) else ""
    return f"{_count_text(derived, 'finding')} can be rebuilt: iolab verify --repair{owner}"


def _line(each: Finding) -> str:
    lost = f"; lost: {each.lost}" if each.lost else ""
    return (
        f"{each.kind:10} {each.path}: {each.text}{lost}{' (repaired)' if each.is_repaired else ''}"
    )


def _count_text(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _verify(path: Path, repair: bool) -> Verification:
    from iolab.recordings.ask.kept.verify import verify
    from iolab.recordings.store.base.layout import is_recording
    from iolab.studies.results.open.verify import verify_results

    if is_recording(path):
        return verify(path, repair=repair, progress=_progress)
    verification = verify_results(path, repair=repair, progress=_progress)
    for recording in sorted(
        place
        for pattern in ("recordings/*", "*/recordings/*")
        for place in path.glob(pattern)
        if is_recording(place)
    ):
        verification = _join(
            verification,
            verify(recording, repair=repair, progress=_progress),
            str(recording.relative_to(path)),
        )
    return verification


def _join(whole: Verification, part: Verification, below: str) -> Verification:
    """Findings of results and of a recording in them."""
    findings = (
        *whole.findings,
        *(replace(finding, path=f"{below}/{finding.path}") for finding in part.findings),
    )
    return replace(
        whole,
        files=whole.files + part.files,
        size_bytes=whole.size_bytes + part.size_bytes,
        unverified=whole.unverified + part.unverified,
        findings=tuple(sorted(findings, key=lambda each: each.path)),
    )


def _progress(done: int, of: int) -> None:
    if of > MANY and (done == of or done % 512 == 0):
        say(f"{done} of {of} files read")
