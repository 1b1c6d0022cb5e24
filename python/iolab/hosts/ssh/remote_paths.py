# SPDX-License-Identifier: Apache-2.0
"""Where another host keeps what bears a path of this machine: the same absolute path below one
directory there.

`/home/me/results/x/scratch` is `/var/tmp/iolab-<this machine>-<user>/at/home/me/results/x/scratch`
over there. So paths can be distinguished and converted back without a table, also by a later iolab
that clears up after a killed one.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

from ..base.host import Host

LOCAL_FILE = re.compile(r"/proc/\d+/fd/\d+")
"""A file that is open in some process of this machine."""
_BASE = "/var/tmp"
"""On disk and kept over a boot, unlike /tmp; there on every Unix (hier(7))."""


def mirror_root() -> str:
    """The directory there, for this machine and user."""
    node = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) or "unnamed"
    return f"{_BASE}/iolab-{node}-{os.getuid()}"


def there(local: Path) -> str:
    """The path there for one of this machine."""
    return f"{mirror_root()}/at{local.absolute()}"


def work_root() -> str:
    """The directory there of all `work_place`s."""
    return f"{mirror_root()}/running"


def work_place(local: Path) -> str:
    """Where programs there work that here would in a directory: separate from all others, so that
    it can be surveyed and removed alone."""
    return f"{work_root()}/{hashlib.sha256(os.fsencode(local.absolute())).hexdigest()[:16]}"


def scratch_on(host: Host, local: Path) -> str:
    """Where a host keeps what this machine would keep at `local`: right there where it is this
    machine, else in the mirror."""
    elsewhere = getattr(host, "scratch", None)
    return str(local.absolute()) if elsewhere is None else str(elsewhere(local))


def here(path: str) -> str:
    """The path of this machine that `there` made it from; any other as it is."""
    root = f"{mirror_root()}/at"
    return path[len(root) :] if path.startswith(root + "/") else path
