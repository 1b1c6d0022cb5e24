# SPDX-License-Identifier: Apache-2.0
"""Every operation of the target host's NFS server, recorded: `nfs.log` in the run, the events in
the study's recording."""

from __future__ import annotations

from typing import ClassVar

from .recorded import RecordedSource


class NfsSource(RecordedSource):
    """Every operation of the kernel's NFS server: procedure, client, latency, offset, size, file.
    Needs root."""

    name: ClassVar[str] = "nfs"
