# SPDX-License-Identifier: Apache-2.0
"""What hosts elsewhere have on top of what every host has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from ..base.host import Host
from .clock import HostClock


class Elsewhere(Host, Protocol):
    """A host that is reached over a connection, which may be lost and made again.

    Attributes:
        words: what names it on a command line. clock: this machine's seconds, the far side's time
        of day.
    """

    words: str
    clock: HostClock

    @property
    def far(self) -> Mapping[str, Any]:
        """What the far side is: `pid` of what works for this machine there, `uid`, `node`,
        `python`, `machine` (its kind of processor)."""

    @property
    def generation(self) -> int:
        """How many connections there were."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection that isn't known to be lost."""

    def reach(self) -> None:
        """Connect again where the connection was lost, which only a request detects;
        RunError where it can't be reached."""

    def connection_facts(self) -> dict[str, Any]:
        """How it is reached, and the offset of its clock from this machine's."""

    def keep_program(self, name: str, content: bytes) -> str:
        """Put a program there, checked by its hash; its path, which holds as long as the connection
        does. RunError where it can't be."""

    def session(self, *words: str) -> list[str]:
        """Argument list of a further session over the same connection, with its own standard input
        and output."""

    def close(self) -> None:
        """Hang up. Safe to call twice."""


def elsewhere(host: Host) -> Elsewhere | None:
    """The host where it is elsewhere; None where it is this machine."""
    return cast(Elsewhere, host) if hasattr(host, "keep_program") else None
