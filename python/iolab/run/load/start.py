# SPDX-License-Identifier: Apache-2.0
"""When the jobs of a load began: a layout of files before takes unknown time."""

from __future__ import annotations

from ...hosts.base.host import Host, text_or_none

_TICKS = 100
"""Clock ticks per second in /proc, the same on all of Linux's usual machines
(sysconf(_SC_CLK_TCK))."""
_OWN_THREADS = 2
"""fio's own: the main one and its helper. A third is a job (option `thread`)."""


def shows_threads(host: Host, pid: int) -> bool:
    """Whether the host shows the threads of a process."""
    try:
        host.list_directory(f"/proc/{pid}/task")
    except OSError:
        return False
    return True


def age_of_jobs(host: Host, pid: int) -> float | None:
    """Seconds since the first job of a load was started; None before.

    A load lays out its files and then starts its jobs as processes or threads. The start time of
    the oldest job counts, exact to a clock tick (proc_pid_stat(5), field 22).
    """
    try:
        threads = host.list_directory(f"/proc/{pid}/task")
    except OSError:
        return None
    jobs = [
        f"/proc/{child}/stat"
        for child in (text_or_none(host, f"/proc/{pid}/task/{pid}/children") or "").split()
    ]
    if not jobs and len(threads) > _OWN_THREADS:
        ids = sorted(int(thread) for thread in threads if thread.isdecimal())[_OWN_THREADS:]
        jobs = [f"/proc/{pid}/task/{thread}/stat" for thread in ids]
    starts = [
        ticks for path in jobs if (ticks := _start_ticks(text_or_none(host, path))) is not None
    ]
    uptime = (text_or_none(host, "/proc/uptime") or "").split()
    if not starts or not uptime:
        return None
    return max(0.0, float(uptime[0]) - min(starts) / _TICKS)


def _start_ticks(stat: str | None) -> int | None:
    fields = (stat or "").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None
