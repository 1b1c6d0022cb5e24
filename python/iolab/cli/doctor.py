# SPDX-License-Identifier: Apache-2.0
"""`iolab doctor`: what this machine can do, what is missing, and what dead processes of iolab left
on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import sudo_command
from .base.options import format_option
from .base.output import say, tell, tell_json
from .doctor_checks import check, checks

if TYPE_CHECKING:
    from ..hosts.base.host import Host

_SYS_BLOCK = Path("/sys/block")


@click.command("doctor")
@click.option(
    "--clean",
    "cleans",
    is_flag=True,
    help="Remove tracefs instances of killed recorders and loop devices of killed studies. Needs root.",
)
@format_option("text", "json")
def command(cleans: bool, style: str) -> int:
    """Check what this machine can measure and record, and what killed iolab processes left on it,
    each with its remedy.

    Changes nothing without --clean. Exit code 1 if something could not be removed.
    """
    from ..errors import IolabError
    from ..hosts.kinds.local import LocalHost
    from ..recorder.probe.program import check as asked
    from ..recorder.probe.program import clean, instances_of, probe_path

    host, said, wrong = LocalHost(), {}, ""
    removed: list[str] = []
    kept: list[str] = []
    try:
        probe = str(probe_path())
        if cleans:
            removed, kept = clean(host, probe)
        said = asked(host, probe)
    except IolabError as error:
        wrong = str(error)
    loops_removed, loops_left = _clean_loops(host) if cleans else ([], [])
    loops = _loops()
    results = checks(host)
    results[2:2] = [_probe(said, wrong), *_sources(said)]
    instances = instances_of(said)
    leftovers = [
        {
            "kind": "tracefs-instance",
            "name": name,
            "removable": name not in kept,
            "remedy": "another process has it open: end that"
            if name in kept
            else sudo_command("doctor", "--clean"),
        }
        for name in instances.dead
    ] + [loop.as_data() for loop in loops if not loop.used_by]
    if style == "json":
        tell_json(
            {
                "schema": 1,
                "kind": "doctor",
                "checks": results,
                "leftovers": leftovers,
                "removed": [*removed, *loops_removed],
                "recording": list(instances.alive),
            }
        )
    else:
        tell(*(_line(result) for result in results))
        lines = [
            f"left over  {leftover['kind']} {leftover['name']}: {leftover['remedy']}"
            for leftover in leftovers
        ] or ["left over  nothing"]
        lines += [
            f"in use     tracefs instance {name}, of a probe that records"
            for name in instances.alive
        ]
        lines += [
            f"in use     loop-device {loop.node} on {loop.file}: {loop.used_by}"
            for loop in loops
            if loop.used_by
        ]
        lines += [f"removed    tracefs instance {name}" for name in removed] + [
            f"removed    loop-device {name}" for name in loops_removed
        ]
        tell(*lines)
    if cleans and (instances.dead or wrong or loops_left):
        why = "; ".join(filter(None, (wrong, *loops_left)))
        say("iolab doctor: not all could be removed" + (f": {why}" if why else ""))
        return 1
    return 0


def _line(check: Mapping[str, Any]) -> str:
    remedy = f"; {check['remedy']}" if check["remedy"] else ""
    return f"{'ok' if check['ok'] else 'missing':9}  {check['name']}: {check['found']}{remedy}"


def _probe(said: Mapping[str, Any], wrong: str) -> dict[str, Any]:
    if not said:
        return check("probe", False, wrong, "run 'make setup'")
    return check(
        "probe",
        True,
        f"{said.get('probe')}, Linux {said.get('kernel')}, {'as root' if said.get('root') else 'not as root'}",
    )


def _sources(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    sources = said.get("sources")
    for name, facts in (sources if isinstance(sources, dict) else {}).items():
        words = "; ".join(map(str, facts.get("words", ())))
        remedy = "" if said.get("root") else sudo_command("record")
        rows.append(
            check(
                f"record {name}", bool(facts.get("available")), words or "can be recorded", remedy
            )
        )
    return rows


@dataclass(frozen=True)
class _Loop:
    """A loop device of which the file is in a directory with iolab's mark.

    Attributes:
        results: the results directory that recorded this directory, if it belongs to this user.
        used_by: why the device is in use, empty if it is a leftover.
    """

    node: str
    file: Path
    results: Path | None
    used_by: str = ""

    def as_data(self) -> dict[str, Any]:
        """A leftover as plain data."""
        return {
            "kind": "loop-device",
            "name": f"{self.node} on {self.file}",
            "removable": self.results is not None,
            "remedy": sudo_command("doctor", "--clean")
            if self.results is not None
            else "where no study runs: iolab run --resume, which removes what a killed one made",
        }


def _loops() -> list[_Loop]:
    from ..errors import ResultsError
    from ..results.evidence.lock import check_free
    from ..targets.made import IMAGES, MARK

    loops = []
    for place in sorted(_SYS_BLOCK.glob("loop*/loop/backing_file")):
        try:
            file = Path(
                place.read_text(errors="surrogateescape").rstrip("\n").removesuffix(" (deleted)")
            )
            if not file.name.startswith(IMAGES) or not any(file.parent.glob(f"{MARK}*")):
                continue
            results = _results_of(file)
        except OSError:
            continue
        used_by = ""
        try:
            if results is not None:
                check_free(results)
        except ResultsError as error:
            used_by = str(error)
        loops.append(_Loop(place.parts[3], file, results, used_by))
    return loops


def _results_of(file: Path) -> Path | None:
    """The results directory that has a file's directory on record, and a lock by which it is known
    whether its study runs. A record of another user is none: root removes nothing at its word."""
    from ..results.evidence.lock import FILE as LOCK_FILE
    from ..targets.made import SUFFIX

    for results in file.parents[1:]:
        scratch = results / file.relative_to(results).parts[0]
        record = results / (scratch.name + SUFFIX)
        if (
            record.is_file()
            and not record.is_symlink()
            and record.stat().st_uid == os.geteuid()
            and (results / LOCK_FILE).is_file()
        ):
            return results
    return None


def _clean_loops(host: Host) -> tuple[list[str], list[str]]:
    """Remove what killed studies left, as --resume does first: each by its mark.

    Returns the removed devices, and a message for each that could not be removed.
    """
    from ..errors import IolabError
    from ..results.evidence.lock import lock
    from ..targets.made import clean_leftovers

    before = [loop for loop in _loops() if loop.results is not None and not loop.used_by]
    failures: list[str] = []
    for results in dict.fromkeys(loop.results for loop in before if loop.results is not None):
        try:
            with lock(results):  # a study that begins meanwhile keeps what it makes
                failures += clean_leftovers(host, results)
        except (IolabError, OSError) as error:
            failures.append(str(error))
    remaining = {(loop.node, loop.file) for loop in _loops()}
    return [
        f"{loop.node} on {loop.file}" for loop in before if (loop.node, loop.file) not in remaining
    ], failures
