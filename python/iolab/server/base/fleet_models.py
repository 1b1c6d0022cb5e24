# SPDX-License-Identifier: Apache-2.0
"""What the fleet page shows, as data: a measure of each host over time."""

from __future__ import annotations

from typing import Literal

from ...documents import Model
from .models import Value, VersionedModel

Measure = Literal["p99", "iops", "utilization", "losses"]


class FleetRecording(Model):
    """A recording of a host, with the time that it covers in ns."""

    name: str
    first_ns: int
    last_ns: int


class FleetHost(Model):
    """A row: the values of a host, or of all hosts with a value of a label.

    Values are by column, null where nothing was recorded. The name of the host, or the value, is in
    `host`, and the number of hosts in `hosts`. Labels and recordings are those of one host,
    recordings in order of time. The problem says why there are no values, else it is empty.
    """

    host: str
    hosts: int
    labels: dict[str, str]
    recordings: list[FleetRecording]
    values: list[Value]
    problem: str


class FleetAnswer(VersionedModel):
    """A measure of all hosts of an archive, or of a folder of recordings.

    All URLs and folders that are served are in `archives`, and names of the hosts' labels in
    `labels`. `live`: a recording of the folder grows. What has
    a row is in `by`: `host` or a label.

    p99 is in ns, iops in I/Os a second, utilization a share from 0 to 1. Losses are the number of
    records that were lost. Of several hosts, iops and losses are sums. p99 is of all their I/Os,
    and utilization is the largest.

    Column c begins at t0_ns + c * interval_ns. The archive covers first_ns to last_ns. The clock
    says whether times count from 1970.
    """

    archive: str
    archives: list[str]
    whole: str
    live: bool
    by: str
    labels: list[str]
    measure: Measure
    unit: str
    clock: Literal["realtime", "trace"]
    t0_ns: int
    interval_ns: int
    columns: int
    first_ns: int
    last_ns: int
    hosts: list[FleetHost]
    notes: list[str]
