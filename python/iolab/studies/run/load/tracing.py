# SPDX-License-Identifier: Apache-2.0
"""Whether somebody traces the host's kernel while a load runs: events that are written, by
whomever, cost every I/O and call some time.

Read from tracefs (Documentation/trace/ftrace.rst): the events that are on and the tracer, of the
kernel's own buffer and of each instance.
"""

from __future__ import annotations

import re

from iolab.hosts.base.host import Host, text_or_none

from ..resuming.process_registry import MARK

_TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_OWN = re.compile(r"iolab-(\d+)-\d+-")
"""Names of instances that iolab's probe makes, with its process id."""
_IDLE = ("", "nop")


def active_tracing(host: Host, results: str) -> list[str]:
    """What is traced, a text each: `instance x: 3 events (block:block_rq_issue, ...)`. None where
    only root may look and this is not root.

    Args:
        results: the results' directory; what this study itself records into it is no news.
    """
    root = next(
        (place for place in _TRACEFS if text_or_none(host, f"{place}/current_tracer") is not None),
        None,
    )
    if root is None:
        return []
    try:
        instances = host.list_directory(f"{root}/instances")
    except OSError:
        instances = []
    descriptions = _describe(host, root, "the kernel's own buffer")
    for name in instances:
        maker = _OWN.match(name)
        if maker is None or f"{MARK}={results}" not in (
            text_or_none(host, f"/proc/{maker[1]}/environ") or ""
        ).split("\0"):
            descriptions += _describe(host, f"{root}/instances/{name}", f"instance {name}")
    return descriptions


def _describe(host: Host, place: str, title: str) -> list[str]:
    if text_or_none(host, f"{place}/tracing_on") == "0":
        return []
    events = (text_or_none(host, f"{place}/set_event") or "").split()
    tracer = text_or_none(host, f"{place}/current_tracer") or ""
    words = [] if tracer in _IDLE else [f"tracer {tracer}"]
    if events:
        some = ", ".join(events[:3]) + (", ..." if len(events) > 3 else "")
        words.append(f"{len(events)} event{'s' if len(events) > 1 else ''} ({some})")
    return [f"{title}: {', '.join(words)}"] if words else []
