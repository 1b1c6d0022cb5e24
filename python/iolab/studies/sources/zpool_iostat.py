# SPDX-License-Identifier: Apache-2.0
"""`zpool iostat` during the run: rates and latencies of every vdev, and histograms of latency and
of size.

Rates (`zpool-iostat.log`) come of one zpool that reports again and again; -y leaves out the means
since boot.

Histograms (`zpool-latency.log`, `zpool-sizes.log`) can't come of it so: with an interval zpool
prints counts per second, cut to whole numbers, and a lone I/O in 1.001 s is none. Without one it
prints the counts since the pool was imported, exactly; so a shell asks for those again and again,
on a beat of its own, and the differences lose nothing. Rows of zeros alone are left out, but for
each vdev's first. A reading is written at once: the end of the run, which ends the shell, leaves no
half of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Host
from iolab.hosts.base.options import Options

from .background_process import BackgroundProcess
from .zfs_pools import pools_to_watch


class ZpoolOptions(Options):
    """`[sources.zpool-iostat]` and its kin."""

    interval: Annotated[
        int, Field(ge=1, description="whole seconds between readings; the gates expect one")
    ] = 1
    pool: str = Field(
        "", description="pool to watch; default: those that iolab made, else every imported one"
    )


class ZpoolProcess(BackgroundProcess):
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


_READING = re.compile(rb"^@ ", re.MULTILINE)

_STAMP = r"""read -r up _ </proc/uptime
  echo "@ $(date +%s%N) ${up%.*}${up#*.}0000000"
"""

_RATES = (
    _STAMP
    + r"""every=$1; shift
for pool; do printf 'pool\t%s\n' "$pool"; done
exec zpool iostat -HpyL -T u -l -v "$@" "$every"
"""
)

_COUNTS = r"""every=$(($1 * 100)); shift; next=
while :; do
  said=$(zpool iostat -HpL -v KIND "$@") || exit
  said=$(STAMP  for pool; do printf 'pool\t%s\n' "$pool"; done
  printf '%s\nend\n' "$said" | sed -E '/^(1|512)\t/!{/^[0-9]+(\t0)+$/d}')
  printf '%s\n' "$said"
  read -r up _ </proc/uptime
  now=${up%.*}${up#*.}
  next=$((${next:-now} + every))
  while [ "$next" -le "$now" ]; do next=$((next + every)); done
  left=$((next - now))
  sleep "$((left / 100)).$(printf %02d $((left % 100)))"
done
""".replace("STAMP", _STAMP)


class ZpoolIostatSource(ZpoolProcess):
    """Every vdev's operations, bytes and latencies per second, as `zpool iostat -l -v` has them."""

    name: ClassVar[str] = "zpool-iostat"
    script = _RATES
    mark = re.compile(rb"^\d{9,11}$", re.MULTILINE)


class ZpoolLatencySource(ZpoolProcess):
    """Every vdev's I/Os by powers of two of their latency, in all and in each queue (`zpool iostat
    -w`)."""

    name: ClassVar[str] = "zpool-latency"
    script = _COUNTS.replace("KIND", "-w")
    mark = _READING


class ZpoolSizesSource(ZpoolProcess):
    """Every vdev's I/Os by powers of two of their size, by themselves and put together (`zpool
    iostat -r`)."""

    name: ClassVar[str] = "zpool-sizes"
    script = _COUNTS.replace("KIND", "-r")
    mark = _READING
