# SPDX-License-Identifier: Apache-2.0
"""Names of hosts for the addresses in answers: a table of the user's, then this machine's hosts
file. Both are read once. No resolver is asked, so that no question waits for a network."""

from __future__ import annotations

import functools
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import UsageError
from ...files import read_regular
from .names import Filter, Statistic

FIELDS = ("client", "peer", "server")
"""Fields with addresses of hosts."""
VARIABLE = "IOLAB_NAMES"
"""Names the user's table."""
HOSTS = Path("/etc/hosts")
MOST_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_LABEL = re.compile(r"(.+) \(([0-9A-Fa-f:.%\w-]+)\)")


@dataclass(frozen=True)
class HostNames:
    """A name for each address. Several addresses may have one name."""

    by_address: dict[str, str]

    def label(self, field: str, value: str) -> str:
        """The text to display: `name` or, where several addresses have the name, `name (address)`.
        The value itself where it has no name."""
        name = self.by_address.get(_canonical(value) or "") if field in FIELDS else None
        if name is None:
            return value
        return name if len(self._addresses(name)) == 1 else f"{name} ({value})"

    def labels(self, field: str | None, values: Sequence[str]) -> list[str]:
        """`label` of each, for a breakdown by `field`."""
        return [self.label(field or "", value) for value in values]

    def filters(self, filters: Iterable[Filter]) -> tuple[Filter, ...]:
        """The conditions by address: a name means all its addresses."""
        return tuple(
            replace(
                condition,
                values=tuple(
                    dict.fromkeys(
                        address for value in condition.values for address in self._meant(str(value))
                    )
                ),
            )
            if condition.field in FIELDS
            else condition
            for condition in filters
        )

    def statistic(self, asked: Statistic) -> Statistic:
        """The statistic with its conditions by address."""
        return replace(asked, filters=self.filters(asked.filters))

    def _meant(self, value: str) -> list[str]:
        labelled = _LABEL.fullmatch(value)
        if labelled and self.by_address.get(_canonical(labelled[2]) or "") == labelled[1]:
            return [labelled[2]]
        return self._addresses(value) or [value]

    def _addresses(self, name: str) -> list[str]:
        return self._by_name.get(name, [])

    @functools.cached_property
    def _by_name(self) -> dict[str, list[str]]:
        by_name: dict[str, list[str]] = {}
        for address, name in self.by_address.items():
            by_name.setdefault(name, []).append(address)
        return by_name


@functools.cache
def host_names() -> HostNames:
    """The names in use: those of the table that `IOLAB_NAMES` names before those of /etc/hosts.

    UsageError where the table can't be read, with the line.
    """
    table = os.environ.get(VARIABLE, "")
    own = _table(Path(table)) if table else {}
    return HostNames({**_hosts(HOSTS), **own})


def _table(path: Path) -> dict[str, str]:
    """The user's table: lines `address=name` or as in hosts(5). UsageError names any other line."""
    try:
        names: dict[str, str] = {}
        for number, line in enumerate(_text(path).splitlines(), 1):
            entry = _entry(line)
            if entry is None and _words(line):
                raise UsageError(
                    f"'{line.strip()[:80]}' has no address and name",
                    where=f"{path}:{number}",
                    hint="write 10.0.0.7=backup, or a line as in /etc/hosts",
                )
            names |= [entry] if entry is not None else []
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"the table of names cannot be read: {reason}",
            where=path,
            hint=f"{VARIABLE} names it; unset it to go without",
        ) from None
    return names


def _hosts(path: Path) -> dict[str, str]:
    """The first name of each address of a hosts file; other lines are skipped. Loopback addresses
    have none: in a recording of another machine they mean that machine."""
    try:
        text = _text(path)
    except (OSError, UnicodeDecodeError):
        return {}
    names: dict[str, str] = {}
    for address, name in filter(None, map(_entry, text.splitlines())):
        if not ipaddress.ip_address(address).is_loopback:
            names.setdefault(address, name)
    return names


def _text(path: Path) -> str:
    return read_regular(path, limit=MOST_BYTES).decode("utf-8")


def _entry(line: str) -> tuple[str, str] | None:
    """(address, name) of a line, None where it has none."""
    words = _words(line)
    address = _canonical(words[0]) if words else None
    if address is None or len(words) < 2 or not _NAME.fullmatch(words[1]):
        return None
    return address, words[1]


def _words(line: str) -> list[str]:
    return line.partition("#")[0].replace("=", " ", 1).split()


def _canonical(address: str) -> str | None:
    """An address as probes write it, None for other text. IPv4 in IPv6 becomes IPv4."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)
