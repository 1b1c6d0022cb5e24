# SPDX-License-Identifier: Apache-2.0
"""What a target is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from iolab.hosts.base.host import Host, Place
from iolab.hosts.base.options import Options
from iolab.hosts.facts.host_facts import Facts

from .made import Made

Fresh = Literal["run", "cell", "block", "study"]
"""How often a target is made."""


@dataclass(frozen=True)
class RunContext:
    """Which run a target is made ready for.

    Attributes:
        run: its name; cell: a word that equals for runs of the same cell of the same variant;
        block: its number. needed_bytes: room that the load may take.
    """

    run: str
    cell: str
    block: int
    needed_bytes: int

    def served_by(self, fresh: Fresh) -> str:
        """What one pool or file system serves that is made as often as `fresh` says: equal for
        two runs that share it."""
        return {
            "run": self.run,
            "cell": self.cell,
            "block": str(self.block),
            "study": "",
        }[fresh]


@dataclass(frozen=True)
class Permissions:
    """What the user allows: `destructive`, to overwrite block devices; `force`, even those that
    carry known data.

    Mounted or otherwise used devices, and those behind `/` or the results, are refused whatever is
    allowed.
    """

    destructive: bool = False
    force: bool = False


NOTHING_ALLOWED = Permissions()


class Target(Protocol):
    """Something to measure. It makes what it needs, and removes what it made and nothing else.

    The runner calls `open` once, then `begin` and `end` around every run, `release` before commands
    between variants, then `close`; `close` is called in any case. Between `begin` and `end`: where
    `cold()`, the workload's `layout` runs and then `chill()`; after the load `observe()`.
    """

    name: ClassVar[str]
    options: ClassVar[type[Options]]

    def __init__(
        self,
        options: Options,
        host: Host,
        scratch: str,
        permissions: Permissions = NOTHING_ALLOWED,
        writes: bool = True,
    ) -> None:
        """Args:
        scratch: a directory's path that may be made where the options name no place.
        `<scratch>.made` is where the target records what a kill would leave (see `made`).
        permissions: what the user allows; checked by `open`.
        writes: whether any load of the target writes to it.
        """

    def destroys(self) -> tuple[str, ...]:
        """What a study on it would overwrite, in words; none where it writes only to what it makes.
        Touches nothing, needs no `open`."""

    def problems(self, needed_bytes: int) -> tuple[str, ...]:
        """Everything by which `open` would refuse as things are, in words, as far as it shows
        without making anything.

        That the user's leave to overwrite a device is missing is no problem: `destroys` says what
        it takes.
        """

    def images(self) -> tuple[str, int] | None:
        """Directory and bytes of the loop files that `open` would make; None where it makes none.
        Touches nothing, needs no `open`."""

    def open(self, needed_bytes: int) -> None:
        """Check the target and make it ready; RunError where it isn't fit or lacks room for
        `needed_bytes`."""

    def begin(self, context: RunContext) -> Place:
        """A new directory or device for one run; RunError without free space."""

    def cold(self) -> bool:
        """Whether every run shall begin with nothing of its files in the host's memory."""

    def chill(self) -> None:
        """Put what was laid out out of the host's memory, and see that it went; RunError where that
        can't be done.

        Between a run's layout and its load; `begin`'s place stays as it was.
        """

    def observe(self) -> Mapping[str, Any]:
        """The target's state after a run, before its files are deleted: plain data for
        `target.json`.

        `taken_bytes`: room that the run's files take on the target, after everything was written
        back; `apparent_bytes`: their size; `written_bytes`: that without holes; `fill`: share of
        the target in use. An unknown value has no key. RunError if the target is missing.
        """

    def end(self, run: str) -> None:
        """Remove what the run left, and let its writes settle before the next one."""

    def release(self, again: bool) -> None:
        """Give up what would be in the way of commands between two variants, such as an imported
        pool that keeps a module in use.

        Called between runs, before the first of these commands. `again`: the next run uses this
        target too, so that what outlives a run has to be there at its `begin`. RunError where it
        can't be given up.
        """

    def close(self) -> None:
        """Remove whatever the target made. Never raises: what can't be removed is left."""

    def devices(self) -> tuple[str, ...]:
        """Kernel names of the block devices behind the target, as /proc/diskstats writes them;
        valid after `open`."""

    def facts(self) -> Facts:
        """What the target is: file system, mount options, devices; valid after `open`."""

    def notes(self) -> tuple[str, ...]:
        """What a user should know about it, such as why no device was found."""


class MadeTarget(Target):
    """What targets of iolab share: options with `cache`, and a record of what was made, which
    `close` undoes."""

    _options: Any
    _host: Host
    _made: Made

    def destroys(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def images(self) -> tuple[str, int] | None:
        """None."""
        return None

    def cold(self) -> bool:
        """Whether the study asks for it."""
        return bool(self._options.cache == "cold")

    def release(self, again: bool) -> None:
        """Nothing: no kernel module is in use that a study would reload."""

    def close(self) -> None:
        """Unmount, detach and remove what was made; wipe a file system off a user's device."""
        self._made.undo(self._host)
