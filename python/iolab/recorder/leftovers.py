# SPDX-License-Identifier: Apache-2.0
"""What dead probes left on this machine: tracefs instances. Their rings use memory, and their
tracepoints slow down every call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import RunError
from ..hosts.base.host import Host
from .program import failure


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


def _ask(host: Host, probe: str, word: str) -> dict[str, Any]:
    done = host.run([probe, word])
    if done.exit_code:
        raise failure(done.exit_code, done.stderr.splitlines())
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RunError(
            f"what the probe says to {word} is not understood",
            where=probe,
            hint="run 'make setup', it builds both",
        )
    return answer
