"""What a target is."""

from __future__ import annotations

from typing import ClassVar, Protocol

from ..hosts.base import Host
from ..hosts.facts import Facts
from ..hosts.options import Options


class Target(Protocol):
    """Something to measure. It makes what it needs, and removes what it made and nothing else.

    The runner calls `open` once, then `begin` and `end` around every run, then `close`; `close` is called in any case.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]]

    def __init__(self, options: Options, host: Host, scratch: str) -> None:
        """`scratch` is a directory's path that may be made where the options name no place."""
        ...

    def open(self, needed_bytes: int) -> None:
        """Check the target and make it ready; RunError where it isn't fit or lacks room for `needed_bytes`."""
        ...

    def begin(self, run: str, needed_bytes: int) -> str:
        """A fresh, empty directory for one run; RunError where the room is gone."""
        ...

    def end(self, run: str) -> None:
        """Remove what the run left, and let its writes settle before the next one."""
        ...

    def close(self) -> None:
        """Remove whatever the target made. Never raises: what can't be removed is left."""
        ...

    def devices(self) -> tuple[str, ...]:
        """Kernel names of the block devices behind the target, as /proc/diskstats writes them; valid after `open`."""
        ...

    def facts(self) -> Facts:
        """What the target is: file system, mount options, devices; valid after `open`."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What a user should know about it, such as why no device was found."""
        ...
