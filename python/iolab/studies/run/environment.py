# SPDX-License-Identifier: Apache-2.0
"""`environment.json`: the environment of a study, complete once, and as a fingerprint with each
run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from iolab.base.files import write_atomically
from iolab.base.integrity import with_own_digest
from iolab.hosts.base.host import Host
from iolab.hosts.facts.block_devices import block_device_facts, settings
from iolab.hosts.facts.host_facts import Facts, host_facts

from ..results.evidence.files import ENVIRONMENT_FILE
from ..targets.base import Target
from .builds.revisions import revision

SCHEMA = 1
SCHEMA_OF_STUDY = 2
"""That for the whole study has a digest of itself; a run's is among the digests of `run.json`."""
_FACTS_OF_A_RUN = ("memory_bytes", "cpus", "boot_id")
"""Numbers that gates need of a run, and the boot on which it ran."""


_OF_A_CLIENT = {"kernel", "cpu"}
"""Facts of a client by which runs may differ."""


def gather(
    host: Host,
    targets: list[Target],
    tools: Mapping[str, str],
    revisions: Mapping[str, str],
    clients: Mapping[str, Host] | None = None,
) -> Facts:
    """Facts of host, targets, tools and source trees.

    A target's part enters the fingerprint only where the study has a single one: targets that
    differ are what is compared then, not a drift. Settings of disks that all targets share always
    do. Loop devices are left out of it: their names change by chance.

    Args:
        revisions: name to the path of a git work tree. clients: hosts of the load, by name; their
        kernels and processors enter the fingerprint.
    """
    environment = host_facts(host)
    for name, client in (clients or {}).items():
        theirs = host_facts(client)
        environment.facts.setdefault("clients", {})[name] = theirs.facts
        for key in _OF_A_CLIENT & theirs.fingerprint.keys():
            environment.fingerprint[f"{key} of client {name}"] = theirs.fingerprint[key]
    environment.fingerprint.update(tools)
    environment.facts["tools"] = dict(tools)
    for name, path in revisions.items():
        environment.fingerprint[f"revision:{name}"] = environment.facts.setdefault("revisions", {})[
            name
        ] = revision(host, name, path)
    if len(targets) == 1:
        environment.add(targets[0].facts())
    else:
        environment.facts["targets"] = [target.facts().facts for target in targets]
    shared = set.intersection(*(set(target.devices()) for target in targets)) if targets else set()
    for device in sorted(shared):
        environment.fingerprint.update(settings(block_device_facts(host, device), device))
    environment.fingerprint = {
        key: text for key, text in environment.fingerprint.items() if ":loop" not in key
    }
    return environment


def write_study_environment(directory: Path, found: Facts) -> None:
    """The whole of it, for the results directory."""
    write_atomically(
        directory / ENVIRONMENT_FILE,
        with_own_digest(_text(SCHEMA_OF_STUDY, found.fingerprint, found.facts)),
    )


def write_run_environment(run_dir: Path, found: Facts, temperatures: Mapping[str, float]) -> None:
    """The fingerprint, the few facts that gates need, and how warm it was at the start. Synced with
    the rest of the run."""
    facts: dict[str, object] = {
        name: found.facts[name] for name in _FACTS_OF_A_RUN if name in found.facts
    }
    if temperatures:
        facts["temperatures_celsius"] = dict(temperatures)
    write_atomically(
        run_dir / ENVIRONMENT_FILE, _text(SCHEMA, found.fingerprint, facts), durable=False
    )


def _text(schema: int, fingerprint: Mapping[str, str], facts: Mapping[str, object]) -> str:
    data = {"schema": schema, "fingerprint": dict(fingerprint), "facts": dict(facts)}
    return json.dumps(data, indent=1, default=str) + "\n"
