# SPDX-License-Identifier: Apache-2.0
"""Hosts by the words of a command line: `local`, `rig:NAME`, `USER@HOST[:PORT]`; or as JSON, with
all that a host's options say."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import ValidationError

from iolab.base import registry
from iolab.base.errors import UsageError

from ..base.host import Host
from ..base.options import Options
from ..ssh.host import SshHost

_FORMS = (
    "write local, rig:NAME, USER@HOST or USER@HOST:PORT (ssh:HOST where ssh itself knows the user)"
)


def host_named(text: str) -> Host:
    """The host that a text names, not yet connected to; UsageError where it names none."""
    kind, values = _parse_url(text)
    plugin = registry.load("host", kind)
    return cast(Host, plugin(cast(type[Options], plugin.options).model_validate(values)))


def ssh_host_named(text: str) -> SshHost:
    """A machine that is reached by ssh, not yet connected to; UsageError for any other host."""
    host = host_named(text)
    if not isinstance(host, SshHost):
        raise UsageError(
            "names no machine that is reached by ssh", where="--host", hint="such as root@zeno1"
        )
    return host


def _from_json(text: str) -> tuple[str, dict[str, Any]]:
    """`{"kind": "ssh", "address": ..., "identity": ...}`."""
    try:
        values = json.loads(text)
        kind = values.pop("kind")
        if kind not in ("local", "rig", "ssh"):
            raise ValueError
        registry.load("host", kind).options.model_validate(values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError):
        raise UsageError(f"'{text[:200]}' names no host", hint=_FORMS) from None
    return kind, values


def _parse_url(text: str) -> tuple[str, dict[str, Any]]:
    if text.startswith("{"):
        return _from_json(text)
    if text == "local":
        return "local", {}
    if match := re.fullmatch(r"rig:([A-Za-z0-9][\w.-]*)", text):
        return "rig", {"name": match[1]}
    match = re.fullmatch(
        r"(?:ssh:)?((?:[^\s@:/-][^\s@:/]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s@:/\[\]-][^\s@:/\[\]]*))(?::(\d{1,5}))?",
        text,
    )
    if match and ("@" in match[1] or text.startswith("ssh:")):
        values: dict[str, str | int] = {"address": match[1].replace("[", "").replace("]", "")}
        if match[2]:
            if not 1 <= int(match[2]) <= 65535:
                raise UsageError(f"{match[2]} is not a port", hint="1 to 65535")
            values["port"] = int(match[2])
        return "ssh", values
    raise UsageError(f"'{text}' names no host", hint=_FORMS)
