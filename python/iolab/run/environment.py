"""`environment.json`: on what a study ran, written once whole, and as a fingerprint beside every run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..hosts.base import Host
from ..hosts.facts import Facts, host_facts
from ..results.evidence import ENVIRONMENT_FILE
from ..results.manifest import write_atomically
from ..targets.base import Target

SCHEMA = 1
_FACTS_OF_A_RUN = ("memory_bytes", "cpus")
"""Numbers that gates hold a run's load against."""


def gather(host: Host, targets: list[Target], tools: Mapping[str, str]) -> Facts:
    """Facts of host, targets and tools.

    A target's part enters the fingerprint only where the study has a single one: targets that differ are what is
    compared then, not a drift.
    """
    found = host_facts(host)
    found.fingerprint.update(tools)
    found.facts["tools"] = dict(tools)
    if len(targets) == 1:
        found.add(targets[0].facts())
    else:
        found.facts["targets"] = [target.facts().facts for target in targets]
    return found


def write_study_environment(directory: Path, found: Facts) -> None:
    """The whole of it, for the results directory."""
    _write(directory, found.fingerprint, found.facts)


def write_run_environment(run_dir: Path, found: Facts) -> None:
    """The fingerprint and the few facts that gates need."""
    _write(run_dir, found.fingerprint, {name: found.facts[name] for name in _FACTS_OF_A_RUN if name in found.facts})


def _write(directory: Path, fingerprint: Mapping[str, str], facts: Mapping[str, object]) -> None:
    data = {"schema": SCHEMA, "fingerprint": dict(fingerprint), "facts": dict(facts)}
    write_atomically(directory / ENVIRONMENT_FILE, json.dumps(data, indent=1, default=str) + "\n")
