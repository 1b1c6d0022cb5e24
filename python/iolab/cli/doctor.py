"""`iolab doctor`: what this machine can do, what is missing, and what dead processes of iolab left on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .doctor_checks import check, checks
from .options import format_option
from .output import say, tell, tell_json

_SYS_BLOCK = Path("/sys/block")


@click.command("doctor")
@click.option("--clean", "cleans", is_flag=True, help="Remove the tracefs instances of killed recorders. Needs root.")
@format_option("text", "json")
def command(cleans: bool, style: str) -> int:
    """Check what this machine can measure and record, and what killed iolab processes left on it, each with its remedy.

    Changes nothing without --clean. Exit code 1 if something could not be removed.
    """
    from ..errors import IolabError
    from ..hosts.kinds.local import LocalHost
    from ..recorder.leftovers import check as asked
    from ..recorder.leftovers import clean, instances_of
    from ..recorder.program import probe_path

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
    found = checks(host)
    found[2:2] = [_probe(said, wrong), *_sources(said)]
    instances = instances_of(said)
    leftovers = [{"kind": "tracefs-instance", "name": name, "removable": name not in kept,
                  "remedy": "another process has it open: end that" if name in kept else "sudo iolab doctor --clean"}
                 for name in instances.dead] + _loops()
    if style == "json":
        tell_json({"schema": 1, "kind": "doctor", "checks": found, "leftovers": leftovers, "removed": removed,
                   "recording": list(instances.alive)})
    else:
        tell(*(_line(each) for each in found))
        lines = [f"left over  {each['kind']} {each['name']}: {each['remedy']}" for each in leftovers] or ["left over  nothing"]
        lines += [f"in use     tracefs instance {name}, of a probe that records" for name in instances.alive]
        tell(*lines, *(f"removed    tracefs instance {name}" for name in removed))
    if cleans and (instances.dead or wrong):
        say("iolab doctor: not all could be removed" + (f": {wrong}" if wrong else ""))
        return 1
    return 0


def _line(check: Mapping[str, Any]) -> str:
    remedy = f"; {check['remedy']}" if check["remedy"] else ""
    return f"{'ok' if check['ok'] else 'missing':9}  {check['name']}: {check['found']}{remedy}"


def _probe(said: Mapping[str, Any], wrong: str) -> dict[str, Any]:
    if not said:
        return check("probe", False, wrong, "run 'make setup'")
    return check("probe", True, f"{said.get('probe')}, Linux {said.get('kernel')}, {'as root' if said.get('root') else 'not as root'}")


def _sources(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    sources = said.get("sources")
    for name, each in (sources if isinstance(sources, dict) else {}).items():
        words = "; ".join(map(str, each.get("words", ())))
        remedy = "" if said.get("root") else "sudo iolab record"
        found.append(check(f"record {name}", bool(each.get("available")), words or "can be recorded", remedy))
    return found


def _loops() -> list[dict[str, Any]]:
    """Loop devices whose files lie in a directory that bears iolab's mark: of a study that runs, or of one that was killed."""
    from ..targets.made import IMAGES, MARK

    found = []
    for place in sorted(_SYS_BLOCK.glob("loop*/loop/backing_file")):
        try:
            file = Path(place.read_text(errors="surrogateescape").rstrip("\n").removesuffix(" (deleted)"))
            marked = file.name.startswith(IMAGES) and any(file.parent.glob(f"{MARK}*"))
        except OSError:
            continue
        if marked:
            found.append({"kind": "loop-device", "name": f"{place.parts[3]} on {file}", "removable": False,
                          "remedy": "where no study runs: iolab run --resume, which removes what a killed one made"})
    return found
