# SPDX-License-Identifier: Apache-2.0
"""What the sources have in common that run `zpool iostat` during the load: one process each,
its words in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from ..clock import Clock
from ..errors import RunError
from ..hosts.base.host import Host
from ..hosts.base.options import Options
from .beside import Beside
from .zfs_pools import pools_to_watch


class ZpoolOptions(Options):
    """`[sources.zpool-iostat]` and its kin."""

    interval: Annotated[
        int, Field(ge=1, description="whole seconds between readings; the gates expect one")
    ] = 1
    pool: str = Field(
        "", description="pool to watch; default: those that iolab made, else every imported one"
    )


class ZpoolProcess(Beside):
    """A shell that writes the log's head and then lets zpool speak, or asks it again and again."""

    options: ClassVar[type[Options]] = ZpoolOptions
    script: ClassVar[str]
    """Run with the interval and the pools' names as `$1`, `$2`..., after the head was written."""

    def __init__(
        self, options: ZpoolOptions, host: Host, clock: Clock, devices: Sequence[str]
    ) -> None:
        super().__init__(options.interval, host, clock)
        self._pool = options.pool

    def unfit(self) -> str | None:
        """A reason where zpool is not installed; pools may be made after this check."""
        if self._host.which("zpool") is None:
            return "zpool is not installed: apt install zfsutils-linux (Debian, Ubuntu)"
        return None

    def start(self, run_dir: Path) -> None:
        """Start it; RunError where no pool exists, or where it can't be started."""
        try:
            pools = pools_to_watch(self._host, self._pool)
        except OSError as error:
            raise RunError(
                f"{self.name} has nothing to watch: {error.strerror or error}",
                where=error.filename,
                hint="import a pool, or leave the source out",
            ) from None
        head = f"echo '# iolab {self.name} 1'"
        self._begin(
            ["sh", "-c", f"{head}\n{self.script}", self.name, str(self._interval), *pools],
            run_dir / f"{self.name}.log",
            {"LC_ALL": "C"},
        )
