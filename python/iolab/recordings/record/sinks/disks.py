# SPDX-License-Identifier: Apache-2.0
"""A sink that notes of which enclosures, pools and vdevs the recorded host's disks are parts, and
since when: a shell on the host reads sysfs and asks `zpool status`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from iolab.formats.zfs.zpool_status import pool_disks

from ...store.base.metadata import ORIGIN, DiskPeriod
from .host_shell import HostShell
from .intake import Sink

SCRIPT = r"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH LC_ALL=C
sys=${1:-/sys}

while read -r _; do
  for link in "$sys"/block/*/device/enclosure_device:*; do
    [ -d "$link/" ] || continue

    disk=${link#"$sys/block/"} id= slot=
    [ ! -r "$link/../id" ] || read -r id <"$link/../id"
    [ ! -r "$link/slot" ] || read -r slot <"$link/slot"

    [ -n "$id" ] || id=$(cd -P "$link/.." && printf %s "${PWD##*/}")
    printf 'bay\t%s\t%s\t%s\n' "${disk%%/*}" "$id" "${slot:-${link##*/enclosure_device:}}"
  done

  for part in "$sys"/block/*/*/partition; do
    part=${part%/partition}; disk=${part%/*}
    [ ! -d "$part" ] || printf 'on\t%s\t%s\n' "${part##*/}" "${disk##*/}"
  done

  for below in "$sys"/block/*/slaves/*; do
    disk=${below%/slaves/*}
    [ ! -e "$below" ] || printf 'on\t%s\t%s\n' "${disk##*/}" "${below##*/}"
  done

  echo =pools
  if [ -d /proc/spl/kstat/zfs ] && command -v zpool >/dev/null; then
    timeout -k 1 10 zpool status -LP 2>/dev/null
  fi

  echo =end
done
"""
"""Run by a shell on the host: each line of input has one answer. It ends with its input. An
argument replaces /sys."""

PERIOD_S = 10.0
"""Between two readings."""
AGAIN_S = 30.0
"""Until a shell that ended is started again."""
LONGEST = 1 << 22
"""Bytes of an answer; a longer one is not understood."""
MOST = 4096
"""Periods that are kept, the newest: of disks that change often, the first ones are forgotten."""
_DEEPEST = 8
"""Layers of devices between a pool and its disks."""

Places = Mapping[str, Mapping[str, str]]
"""Of each disk what it is a part of, by field."""


def parse_places(text: str) -> Places:
    """An answer without its last line. A disk that is in several places of a kind has none of this
    kind; lines that are not understood are skipped."""
    sysfs, _, status = text.partition("=pools\n")
    values: dict[tuple[str, str], set[str]] = {}
    below: dict[str, set[str]] = {}
    for line in sysfs.split("\n"):
        kind, *words = (" ".join(word.split()) for word in line.split("\t"))
        if kind == "bay" and len(words) == 3 and all(words):
            disk, enclosure, slot = words
            values.setdefault((disk, "enclosure"), set()).add(enclosure)
            values.setdefault((disk, "slot"), set()).add(f"{enclosure}/{slot}")
        elif kind == "on" and len(words) == 2 and all(words):
            below.setdefault(words[0], set()).add(words[1])
    for pool, vdev, path in pool_disks(status):
        if not path.startswith("/dev/"):
            continue  # a file
        device = path.removeprefix("/dev/")
        disks = _disks_below(device, below)
        # a vdev of one disk has the name of the disk, not that of its partition
        name = disks[0] if vdev == device and len(disks) == 1 else vdev
        for disk in disks:
            values.setdefault((disk, "pool"), set()).add(pool)
            values.setdefault((disk, "vdev"), set()).add(f"{pool}/{name}")
    places: dict[str, dict[str, str]] = {}
    for (disk, field), several in values.items():
        if len(several) == 1:
            places.setdefault(disk, {})[field] = next(iter(several))
    return places


def _disks_below(device: str, below: Mapping[str, Iterable[str]]) -> list[str]:
    """The disk of a partition, the disks below a device, or the device."""
    layer, disks = {device}, set[str]()
    for _ in range(_DEEPEST):
        disks |= {name for name in layer if name not in below}
        layer = {name for upper in layer for name in below.get(upper, ())}
    return sorted(disks)


class DiskPlaces:
    """The periods in which disks were in the same places, from readings as they come."""

    def __init__(self, periods: Iterable[DiskPeriod], begin_ns: int) -> None:
        """periods: of earlier sessions of the recording. begin_ns: of this session."""
        self.periods = list(periods)
        self._places: dict[str, Mapping[str, str]] = {
            period.disk: period.places for period in self.periods
        }
        # nothing was recorded between two sessions, and what is first read was so from the start
        self._begin_ns = begin_ns if self.periods else 0
        self._read_ns: int | None = None

    def learn(self, places: Places, asked_ns: int, answered_ns: int) -> bool:
        """Take a reading that was made between two times; whether something changed."""
        after_ns, from_ns = (
            (self._begin_ns, self._begin_ns)
            if self._read_ns is None
            else (self._read_ns, answered_ns)
        )
        self._read_ns = asked_ns
        changed = [
            DiskPeriod(disk, after_ns, from_ns, places.get(disk, {}))
            for disk in sorted(self._places.keys() | places.keys())
            if places.get(disk, {}) != self._places.get(disk, {})
        ]
        self.periods = [*self.periods, *changed][-MOST:]
        self._places |= {period.disk: period.places for period in changed}
        return bool(changed)


class DiskSink(Sink):
    """Passes everything on, and notes the places of disks, which it reads every `PERIOD_S`."""

    def __init__(
        self,
        sink: Sink,
        begin: Callable[[], Sequence[str]],
        places: DiskPlaces,
        note: Callable[[str, Any], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begin`: the argument list of a shell that runs `SCRIPT` on the recorded host; `note`
        sets a part of the recording's origin."""
        super().__init__(sink)
        self._begin, self._places, self._note, self._now = begin, places, note, now
        self._shell: HostShell | None = None
        self._text = b""
        self._asked_ns: int | None = None
        """When the question was sent that has no answer yet."""
        self._next = 0.0

    def tick(self, now_ns: int) -> None:
        """Take an answer, or ask, then see `Sink`."""
        if self._asked_ns is not None:
            self._take(now_ns)
        elif self._now() >= self._next:
            self._ask(now_ns)
        self._sink.tick(now_ns)

    def close(self) -> None:
        """End the shell, then see `Sink`."""
        try:
            self._end()
        finally:
            self._sink.close()

    def _ask(self, now_ns: int) -> None:
        try:
            if self._shell is None:
                self._shell = HostShell(self._begin(), has_input=True)
            self._shell.send("")
        except OSError:
            self._end()
            return
        self._asked_ns, self._next = now_ns, self._now() + PERIOD_S

    def _take(self, now_ns: int) -> None:
        while self._shell is not None and (data := self._shell.read()) is not None:
            self._text += data
            if not data or len(self._text) > LONGEST:
                self._end()
                return
        asked_ns = self._asked_ns
        if asked_ns is None or not self._text.endswith(b"=end\n"):
            return
        text = self._text.decode("utf-8", "backslashreplace").removesuffix("=end\n")
        self._text, self._asked_ns = b"", None
        if self._places.learn(parse_places(text), asked_ns, now_ns):
            self._note(ORIGIN, [period.as_json() for period in self._places.periods])

    def _end(self) -> None:
        shell, self._shell, self._text, self._asked_ns = self._shell, None, b"", None
        self._next = self._now() + AGAIN_S
        if shell is not None:
            shell.end(1.0)
