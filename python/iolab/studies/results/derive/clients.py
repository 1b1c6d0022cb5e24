# SPDX-License-Identifier: Apache-2.0
"""A load from several clients: their results as one, and each client's part as a run of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iolab.base.errors import FormatError
from iolab.formats.core.tables import FioJob, FioLogTable, FioOutput
from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.pool import join_clients

from ..evidence.clients import KEY, ClientRun, client_files, client_of, clients_of
from ..evidence.files import CLIENTS, measured_files, read_file
from ..evidence.model import Run, RunPlan
from ..facts.run_facts import DamagedFile, RunFacts
from . import fio_metrics
from .steps import pool_run

FACTOR = "client"
"""Factor of the parts: the name of the client."""


@dataclass
class ClientTables:
    """What the files of a run's clients hold.

    Attributes:
        clients: of the plan; none for a load on one host. outputs: the load's result by client;
        files: the file of each.
    """

    clients: tuple[ClientRun, ...] = ()
    outputs: dict[str, FioOutput] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)

    def take(self, name: str, file: str, table: Any, logs: dict[str, FioLogTable]) -> None:
        """Keep a table of a client's file. Logs are added to `logs`, by the server's clock."""
        if isinstance(table, FioOutput):
            if name in self.outputs:
                self.assumptions.append(
                    f"{file} is left out: {self.files[name]} is the client's result"
                )
            else:
                self.outputs[name], self.files[name] = table, file
        elif isinstance(table, FioLogTable):
            offset = next(client.clock_offset_ns for client in self.clients if client.name == name)
            logs[file] = replace(table, time=table.time - offset / 1e9)

    def join(self, damaged: Sequence[DamagedFile]) -> tuple[FioOutput | None, list[DamagedFile]]:
        """The result of all clients as one; if any failed or left none, there is no result, never a
        smaller sum. Then also what is missing, unless `damaged` has it already."""
        reported = {client_of(file.file) for file in damaged}
        missing = [client.name for client in self.clients if client.name not in self.outputs]
        if not missing and all(client.status == "finished" for client in self.clients):
            return join_clients(
                {client.name: self.outputs[client.name] for client in self.clients}
            ), []
        return None, [
            DamagedFile(f"{CLIENTS}/{name}", f"client {name} left no result")
            for name in missing
            if name not in reported
        ]


def client_runs(run: Run) -> list[Run]:
    """Each client's part of a run, as a run with the factor `client`; none for a load on one host.

    Block, factors and verdict are the run's. Results that fio itself made as the client of several
    servers have such parts too. A damaged result costs its part; the run's verdict says so.
    """
    if FACTOR in run.factors or not run.evidence.is_dir():
        return []
    try:
        clients = clients_of(run.plan)
    except FormatError:
        return []
    if clients:
        parts = {
            client.name: _output(run, list(client_files(run.evidence, client.name)))
            for client in clients
        }
        parts = {
            name: (None if output is None else join_clients({name: output}), file)
            for name, (output, file) in parts.items()
        }
    else:
        parts = _by_host(*_output(run, [path.name for path in measured_files(run.evidence)]))
    return [
        _part(run, name, output, file, len(parts))
        for name, (output, file) in parts.items()
        if output is not None and output.jobs
    ]


def _output(run: Run, files: Sequence[str]) -> tuple[FioOutput | None, str]:
    """The first of some files that is a fio result."""
    for file in files:
        try:
            data = read_file(run.evidence, file, run.plan.files)
            if detect(data, file) == FioJson.name:
                return FioJson().read(data, file), file
        except FormatError:
            continue
    return None, ""


def _by_host(output: FioOutput | None, file: str) -> dict[str, tuple[FioOutput | None, str]]:
    """The parts of a result by the host that fio names; none where it names less than two."""
    jobs: dict[str, list[FioJob]] = {}
    for job in () if output is None else output.jobs:
        jobs.setdefault(job.hostname or "", []).append(job)
    if output is None or len(jobs) < 2 or "" in jobs:
        return {}
    return {name: (replace(output, jobs=tuple(own)), file) for name, own in jobs.items()}


def _part(run: Run, name: str, output: FioOutput, file: str, clients: int) -> Run:
    plan = _plan_of_part(run.plan, clients)
    facts = RunFacts(plan, output, file, pool_run(output.jobs, plan))
    window = next(
        (client.window for client in clients_of(run.plan) if client.name == name and client.window),
        run.window,
    )
    return replace(
        run,
        plan=replace(
            plan, run=f"{run.id}/{name}", factors={**run.factors, FACTOR: name}, window=window
        ),
        observations={value.metric: value for value in fio_metrics.observations(facts)},
        window=window,
    )


def _plan_of_part(plan: RunPlan, clients: int) -> RunPlan:
    """The plan of one of so many equal clients."""
    extra: Mapping[str, Any] = {key: value for key, value in plan.extra.items() if key != KEY}
    if isinstance(extra.get("concurrency"), int | float):
        extra = {**extra, "concurrency": extra["concurrency"] / clients}
    return replace(
        plan,
        jobs=None if plan.jobs is None else max(1, plan.jobs // clients),
        offered_iops=None if plan.offered_iops is None else plan.offered_iops / clients,
        extra=extra,
    )
