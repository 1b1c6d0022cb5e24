# SPDX-License-Identifier: Apache-2.0
"""`[reduced]` and `[rig]` of a study file: the smaller study, and the machine that it runs on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iolab.hosts.base.options import Duration, Size

from ..cells.factors import Scalar


class ReducedTable(BaseModel):
    """`[reduced]`: changes of the study that `iolab run --reduced` makes.

    The keys have the meaning of the options of `iolab run` with the same names, which override them.
    """

    model_config = ConfigDict(extra="forbid")

    repetitions: Annotated[
        int | None, Field(ge=1, le=10_000, strict=True, description="number of blocks")
    ] = None
    runtime: Annotated[Duration | None, Field(gt=0, description="duration of every run")] = None
    only: Annotated[
        dict[str, list[Scalar]], Field(description="factor to the levels that are kept")
    ] = Field(default_factory=dict)
    target: Annotated[dict[str, Any], Field(description="keys of [target] with other values")] = (
        Field(default_factory=dict)
    )
    workload: Annotated[
        dict[str, Any], Field(description="keys of [workload] with other values")
    ] = Field(default_factory=dict)


class RigTable(BaseModel):
    """`[rig]`: the machine of a rig, as options of `iolab rig up`, and the target on it."""

    model_config = ConfigDict(extra="forbid")

    disks: Annotated[int, Field(ge=0, le=128, strict=True, description="number of data disks")] = 4
    disk_size: Annotated[Size, Field(gt=0, description="size of each data disk")] = 8 << 30
    disk_iops: Annotated[
        int | None, Field(ge=1, strict=True, description="I/Os a second of each data disk")
    ] = None
    disk_mbps: Annotated[
        int | None, Field(ge=1, strict=True, description="MB/s (10^6 bytes) of each data disk")
    ] = None
    fast_disks: Annotated[
        int, Field(ge=0, le=8, strict=True, description="additional disks without a limit")
    ] = 0
    memory: Annotated[Size | None, Field(gt=0, description="memory; default: the recipe's")] = None
    cpus: Annotated[
        int | None, Field(ge=1, le=64, strict=True, description="CPUs; default: at most 4")
    ] = None
    target: Annotated[
        dict[str, Any], Field(description="keys of [target] with values for this machine")
    ] = Field(default_factory=dict)
