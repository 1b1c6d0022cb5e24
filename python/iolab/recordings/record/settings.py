# SPDX-License-Identifier: Apache-2.0
"""What a user can choose of a recording, and what holds unless chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

SOURCES = ("block", "syscall", "nfs", "counters")
"""What the probe can record. `counters` yields samples, the others events."""
DEFAULT_SOURCES = ("block", "counters")
COUNTERS = "counters"


@dataclass(frozen=True)
class Budget:
    """What recording may cost before the costliest source is suspended.

    Attributes:
        cpu_share: CPU time of probe and recorder together, as a share of all CPUs of the machine;
        None for any. bytes_per_s: growth of the recording on disk, bytes per second; None for any.
        window_s: seconds over which both are taken; pause_s: how long a source is suspended at
        first, twice as long each further time.
    """

    cpu_share: float | None = 0.25
    bytes_per_s: float | None = None
    window_s: float = 10.0
    pause_s: float = 60.0


@dataclass(frozen=True)
class Retention:
    """What is kept: the newest segments, up to so many bytes and so many seconds back; None for no
    limit. Default maps of deleted segments stay for 90 days and take a tenth of the bytes at
    most (`recording.retention`)."""

    bytes: int | None = 10 << 30
    age_s: float | None = 7 * 86400.0


@dataclass(frozen=True)
class Settings:
    """How to record.

    Attributes:
        sources: names among `SOURCES`; duration: seconds, None until something else ends it.
        tries: how often a probe that died is started again within `calm_s` seconds before recording
        ends. patience_s: seconds without any frame after which a probe counts as dead. It sends one
        each second. begin_s: seconds that a probe has to say hello: it sets up tracing first, and
        elsewhere it is brought there. statistics: kept from the start, in addition to those that
        are kept there already; None for the default ones of a new recording. archive: URL of the
        archive that the recording is pushed into while it grows. drops_archived: whether segments
        are deleted once they are archived. The labels of the host in the archive are `NAME=VALUE`.
    """

    sources: tuple[str, ...] = DEFAULT_SOURCES
    duration: float | None = None
    budget: Budget = field(default_factory=Budget)
    retention: Retention = field(default_factory=Retention)
    tries: int = 5
    calm_s: float = 60.0
    patience_s: float = 15.0
    begin_s: float = 20.0
    statistics: tuple[str, ...] | None = None
    archive: str | None = None
    drops_archived: bool = False
    labels: tuple[str, ...] = ()
