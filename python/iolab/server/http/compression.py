# SPDX-License-Identifier: Apache-2.0
"""An answer as a response: compressed for who is far, as it is for who is on this machine, to whom
bytes cost less than the work."""

from __future__ import annotations

import gzip
import ipaddress
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

LEAST = 1400
"""Bytes below which an answer is a packet in any case."""
_LEVEL = 3


def response(content: bytes, kind: str, *, encoded: bool, vary: str = "") -> Response:
    """The response. `encoded`: whether the content went through `packed` and came out compressed;
    vary: headers that it depends on."""
    headers = {"vary": ", ".join(each for each in (vary, "Accept-Encoding") if each)}
    return Response(
        content,
        media_type=kind,
        headers=headers | ({"content-encoding": "gzip"} if encoded else {}),
    )


def packed(content: bytes, *, far: bool) -> tuple[bytes, bool]:
    """(the content as it is sent, whether it is compressed)."""
    if not far or len(content) < LEAST:
        return content, False
    return gzip.compress(content, _LEVEL, mtime=0), True


def is_far(request: Request) -> bool:
    """Whether who asks is not on this machine, and takes compressed answers."""
    if request.client is None or not _takes_gzip(request.headers):
        return False
    try:
        host = ipaddress.ip_address(request.client.host.split("%")[0])
    except ValueError:
        return False  # no address: within this process
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    return not host.is_loopback


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    for part in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
