# SPDX-License-Identifier: Apache-2.0
"""From root to the user who called sudo: before any file of theirs is touched."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iolab.base.errors import RunError, sudo_command

from ..settings import COUNTERS


@dataclass(frozen=True)
class Caller:
    """Who called sudo."""

    uid: int
    gid: int
    name: str
    home: str
    groups: tuple[int, ...]


def is_root() -> bool:
    """Whether this process may do everything."""
    return os.geteuid() == 0


def need_root_for(sources: Iterable[str]) -> None:
    """RunError where a source reads what only root may."""
    tracing = [name for name in sources if name != COUNTERS]
    if tracing and not is_root():
        raise RunError(
            f"recording {' and '.join(tracing)} needs root: the kernel shows its I/O to root only",
            hint=f"{sudo_command('record')} ...",
        )


def caller(environment: Mapping[str, str]) -> Caller | None:
    """The user behind `sudo`, by SUDO_UID and SUDO_GID; None without another user."""
    uid, gid = environment.get("SUDO_UID", ""), environment.get("SUDO_GID", "")
    if not is_root() or not uid.isascii() or not uid.isdecimal() or int(uid) == 0:
        return None
    number = int(uid)
    group = int(gid) if gid.isascii() and gid.isdecimal() else None
    try:
        entry = pwd.getpwuid(number)
    except KeyError:
        # a user of another machine's directory: the number is enough to own files
        return (
            None
            if group is None
            else Caller(number, group, environment.get("SUDO_USER", ""), "/", (group,))
        )
    group = entry.pw_gid if group is None else group
    return Caller(
        number, group, entry.pw_name, entry.pw_dir, tuple(os.getgrouplist(entry.pw_name, group))
    )


def become(user: Caller) -> None:
    """Give up root for good: groups, group, user, all three ids of each; the environment names the
    user again.

    RunError where the kernel refuses it.
    """
    os.setgroups(list(user.groups))
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    if os.getresuid() != (user.uid,) * 3 or os.getresgid() != (user.gid,) * 3:
        raise RunError(
            "root could not be given up",
            hint="record as root in a directory of root's, without sudo",
        )
    os.environ.update(
        HOME=user.home, **({"USER": user.name, "LOGNAME": user.name} if user.name else {})
    )
    for name in ("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"):
        os.environ.pop(name, None)
