"""Hosts by the words of a command line: `local`, `rig:NAME`, `USER@HOST[:PORT]`."""

from __future__ import annotations

import re
from typing import cast

from .. import registry
from ..errors import UsageError
from .base import Host
from .options import Options

_FORMS = "write local, rig:NAME, USER@HOST or USER@HOST:PORT (ssh:HOST where ssh itself knows the user)"


def host_named(text: str) -> Host:
    """The host that a text names, not yet connected to; UsageError where it names none."""
    kind, values = _parsed(text)
    plugin = registry.load("host", kind)
    return cast(Host, plugin(cast(type[Options], plugin.options).model_validate(values)))


def _parsed(text: str) -> tuple[str, dict[str, str | int]]:
    if text == "local":
        return "local", {}
    if match := re.fullmatch(r"rig:([A-Za-z0-9][\w.-]*)", text):
        return "rig", {"name": match[1]}
    match = re.fullmatch(r"(?:ssh:)?((?:[^\s@:/-][^\s@:/]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s@:/\[\]-][^\s@:/\[\]]*))(?::(\d{1,5}))?", text)
    if match and ("@" in match[1] or text.startswith("ssh:")):
        values: dict[str, str | int] = {"address": match[1].replace("[", "").replace("]", "")}
        if match[2]:
            if not 1 <= int(match[2]) <= 65535:
                raise UsageError(f"{match[2]} is no port", hint="1 to 65535")
            values["port"] = int(match[2])
        return "ssh", values
    raise UsageError(f"'{text}' names no host", hint=_FORMS)
