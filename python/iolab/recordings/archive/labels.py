# SPDX-License-Identifier: Apache-2.0
"""Labels of hosts in an archive, such as `rack=r1`: fields of questions to many hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iolab.base.errors import UsageError

from . import tables
from .store import Archive, expressions

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
LONGEST = 200
"""Characters of a value."""


def parse_label(words: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`; without a value the label is removed. UsageError."""
    name, sign, value = words.partition("=")
    name, value = name.strip(), value.strip()
    if not sign or not _NAME.fullmatch(name):
        raise UsageError(
            "is no label",
            where=f"--label {words!r}",
            hint="such as rack=r1; names are in lower case",
        )
    if len(value) > LONGEST or not value.isprintable():
        raise UsageError(
            f"a value has at most {LONGEST} printable characters", where=f"--label {name}"
        )
    return name, value


def set_labels(archive: Archive, host: str, labels: Mapping[str, str]) -> None:
    """Set labels of a host in one commit; an empty value removes a label. Other labels remain.
    ResultsError where the archive can't be written."""
    import pyarrow as pa

    of = expressions()
    rows = [
        {"host": host, "label": name, "value": value} for name, value in labels.items() if value
    ]
    where: Any = of.And(of.EqualTo("host", host), of.In("label", sorted(labels)))
    archive.replace(tables.HOSTS, where, pa.Table.from_pylist(rows, schema=tables.HOSTS.columns))
