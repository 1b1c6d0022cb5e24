# SPDX-License-Identifier: Apache-2.0
"""How a foreign tree's paths name variants and factors:
`{submit}-rate-submit/{variant}/{disks:int}-{media}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import UsageError

_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_TYPES = {
    "str": (r"[^/]+?", str),
    "int": (r"[-+]?\d+", int),
    "float": (r"[-+]?(?:\d+\.?\d*|\.\d+)", float),
}
RESERVED = {"variant", "repetition", "block", "host", "process"}
"""Names with a meaning of their own; every other name is a factor."""

PLACES = ("repetition", "block", "host", "process")
"""Reserved names that say which of several equal runs a result is, where it ran, or which of
several fio processes of one run it comes from."""


@dataclass(frozen=True)
class Layout:
    """A compiled layout. `*` matches any text within one path part.

    Attributes:
        text: as written; fields: names in order of appearance.
    """

    text: str
    fields: tuple[str, ...]
    pattern: re.Pattern[str]
    types: dict[str, str]

    @property
    def factors(self) -> tuple[str, ...]:
        """Fields that are factors."""
        return tuple(name for name in self.fields if name not in RESERVED)

    def match(self, path: str) -> dict[str, Any] | None:
        """Values of the fields for a path relative to the tree (with `/`), or None."""
        match = self.pattern.fullmatch(path)
        if match is None:
            return None
        return {name: _TYPES[self.types[name]][1](text) for name, text in match.groupdict().items()}

    def rest(self, path: str) -> str:
        """The text of a matching path outside of all fields: it separates runs of one cell when
        nothing else does."""
        match = self.pattern.fullmatch(path)
        if match is None:
            return path
        parts, last = [], 0
        for name in self.fields:
            begin, end = match.span(name)
            parts.append(path[last:begin])
            last = end
        return "\0".join((*parts, path[last:]))


def parse_layout(text: str) -> Layout:
    """Compile a layout; UsageError says what is wrong with it."""
    pattern, fields, types, last = "", [], {}, 0
    stripped = text.strip("/") if text.strip() else ""
    if not stripped:
        raise UsageError(
            "the layout is empty",
            hint="such as --layout '{variant}/{disks:int}-hdd/fio-{numjobs:int}-jobs'",
        )
    for match in _FIELD.finditer(stripped):
        name, kind = match[1], match[2] or "str"
        where = f"--layout '{text}'"
        if not name.isidentifier():
            raise UsageError(
                f"'{{{name}}}' is not a field name", where=where, hint="use letters, digits and _"
            )
        if kind not in _TYPES:
            raise UsageError(
                f"unknown type '{kind}' of field '{name}'",
                where=where,
                hint=f"types are {', '.join(_TYPES)}",
            )
        if name in types:
            raise UsageError(f"field '{name}' appears twice", where=where)
        pattern += _literal(stripped[last : match.start()]) + f"(?P<{name}>{_TYPES[kind][0]})"
        fields.append(name)
        types[name] = "str" if name in PLACES else kind
        last = match.end()
    rest = stripped[last:]
    if "{" in rest or "}" in rest:
        raise UsageError("a brace of the layout is not closed", where=f"--layout '{text}'")
    pattern += _literal(rest)
    return Layout(stripped, tuple(fields), re.compile(pattern), types)


def _literal(text: str) -> str:
    return "[^/]*".join(re.escape(part) for part in text.split("*"))
