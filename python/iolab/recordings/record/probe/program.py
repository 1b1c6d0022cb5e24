# SPDX-License-Identifier: Apache-2.0
"""The probe as a program: where it is, how it is called, whether it can record here, what its exit
codes mean, and what dead probes left: tracefs instances. Their rings use memory, and their
tracepoints slow down every call."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from iolab.base.errors import IolabError, RunError, UsageError, sudo_command
from iolab.hosts.base.host import Host

OVERRIDE = "IOLAB_PROBE"
"""Environment variable that names a probe to use instead of iolab's own."""
NAME = "iolab-probe"


def probe_path() -> Path:
    """Where the probe is; RunError where it was not built."""
    override = os.environ.get(OVERRIDE)
    path = (
        Path(override) if override else Path(str(resources.files("iolab").joinpath("_probe", NAME)))
    )
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise RunError(
            "the probe is not built",
            where=path,
            hint=f"set {OVERRIDE} to a program" if override else "run 'make setup'",
        )
    return path.absolute()


def probe_arguments(
    sources: Sequence[str],
    *,
    devices: Sequence[str] = (),
    mounts: Sequence[str] = (),
    exclude: Sequence[int] = (),
    ring_kib: int | None = None,
    tracefs: str | None = None,
) -> list[str]:
    """The probe's arguments. `devices`: `major:minor`; `exclude`: pids without recorded I/O."""
    words: list[str] = []
    for flag, values in (
        ("--source", sources),
        ("--device", devices),
        ("--mount", mounts),
        ("--exclude-pid", exclude),
    ):
        for value in values:
            words += [flag, str(value)]
    if ring_kib is not None:
        words += ["--ring-kib", str(ring_kib)]
    if tracefs is not None:
        words += ["--tracefs", tracefs]
    return words


def check_sources(host: Host, path: str, sources: Sequence[str]) -> None:
    """RunError where the probe, at a path of the host, says that it can't record these sources
    there."""
    try:
        can = json.loads(_output(host, path, "--check"))["sources"]
        reasons = [
            f"{name}: {'; '.join(can[name]['words']) if name in can else 'the probe has no such source'}"
            for name in sources
            if name not in can or not can[name]["available"]
        ]
    except (ValueError, KeyError, TypeError):
        return  # a probe that says nothing of it says so when it begins
    if reasons:
        raise RunError(
            f"can't be recorded {'here' if host.name == 'local' else 'there'}: {'; '.join(reasons)}",
            where=None if host.name == "local" else host.name,
            hint="iolab doctor checks what a machine can do",
        )


def failure(code: int | None, words: Sequence[str]) -> IolabError:
    """What a probe that ended before it began says, as an error."""
    said = words[-1].removeprefix(f"{NAME}: ") if words else ""
    if code == 2:
        return UsageError(said or "the probe refuses its arguments")
    if code == 3:
        return RunError(
            said or "recording is not permitted",
            hint=None if "sudo" in said else f"record as root: {sudo_command('record')} ...",
        )
    if code == 4:
        return RunError(said or "recording is not possible here")
    how = "" if code is None else f" with exit code {code}"
    return RunError(f"the probe ended{how} before it began{': ' if said else ''}{said}")


@dataclass(frozen=True)
class Instances:
    """Names of tracefs instances that probes made: of dead ones, and of those that live."""

    dead: Sequence[str]
    alive: Sequence[str]


def check(host: Host, probe: str) -> dict[str, Any]:
    """What the probe says of a machine: `sources` with `available` and `words`, `tracefs`, `root`,
    `instances`. RunError where it can't."""
    return _ask(host, probe, "--check")


def instances_of(check: Mapping[str, Any]) -> Instances:
    """Those of a check; none where it lists none, as without root."""
    instances = check.get("instances")
    names = instances if isinstance(instances, dict) else {}
    return Instances(
        *(
            [str(name) for name in names.get(key, ()) if isinstance(name, str)]
            for key in ("dead", "alive")
        )
    )


def clean(host: Host, probe: str) -> tuple[list[str], list[str]]:
    """Remove the instances of dead probes. Returns names of those that went, and of those that the
    kernel keeps, as they are in use. RunError where the probe can't be run."""
    answer = _ask(host, probe, "--clean")
    removed, kept = ([str(name) for name in answer.get(key, ())] for key in ("removed", "kept"))
    return removed, kept


def _output(host: Host, probe: str, word: str) -> str:
    done = host.run([probe, word])
    if done.exit_code:
        raise failure(done.exit_code, done.stderr.splitlines())
    return done.stdout


def _ask(host: Host, probe: str, word: str) -> dict[str, Any]:
    output = _output(host, probe, word)
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RunError(
            f"what the probe says to {word} is not understood",
            where=probe,
            hint="run 'make setup', it builds both",
        )
    return answer
