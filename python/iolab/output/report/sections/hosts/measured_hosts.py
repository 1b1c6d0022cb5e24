# SPDX-License-Identifier: Apache-2.0
"""What is known of each host that runs were made on, with its own runs: a host's facts hold for
those alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.studies.results.evidence.model import Run

from ...model.source import Source


@dataclass(frozen=True)
class HostFacts:
    """One host of the results.

    Attributes:
        name: as the results have it; empty where they are of a single one.
        recorded: its `environment.json`, empty where there is none. runs: those made on it.
    """

    name: str
    recorded: Mapping[str, Any]
    runs: Sequence[Run]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the environment knows beyond the fingerprint."""
        facts_of_host = self.recorded.get("facts")
        return facts_of_host if isinstance(facts_of_host, Mapping) else {}


def hosts_of(results: Source) -> list[HostFacts]:
    """Every host, in the order of the results."""
    documents = results.environments()
    if len(documents) == 1:
        return [HostFacts("", recorded, results.runs) for recorded in documents.values()]
    return [
        HostFacts(name, recorded, [run for run in results.runs if host_of(run) == name])
        for name, recorded in documents.items()
    ]


def host_of(run: Run) -> str:
    """The name before the run's own, where results are of several hosts; else empty."""
    return run.id.rpartition("/")[0]
