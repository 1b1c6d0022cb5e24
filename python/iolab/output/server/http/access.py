# SPDX-License-Identifier: Apache-2.0
"""Who is let in: the right token, the right host name, no other site's page. The outermost layer,
before anything else looks at a request.

The token comes once in the address of a page (`/worksheet?token=...`), which is answered with a
cookie and the address without it; programs send it as `Authorization: Bearer`. Against pages of other sites: the cookie is
SameSite=Strict, `Origin` and `Sec-Fetch-Site` must not be foreign, and `Host` must be a name of
this service, so that no other host name that points here is served. What changes something
needs more than the cookie: an `Origin` or `Sec-Fetch-Site` that says that the page itself asks.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]


LONGEST_HEAD = 16 * 1024
"""Bytes of a request's head; more are refused."""
_PAGES = ("/", "/start", "/fleet", "/worksheet")
"""Pages of which the address takes the token; the redirect leads to the same page."""
_READS = ("GET", "HEAD")
"""Methods that change nothing; which others a path has, its route says."""


class Door:
    """What it takes to be let in.

    Attributes:
        token: part of the address, sent by programs. names: host names of this service. `literals`:
        whether any numeric address is one too, as where it listens on all of them. port: of the
        listening socket. It is part of the cookie's name, as cookies are shared by all ports.
    """

    def __init__(
        self, names: Iterable[str], port: int, *, literals: bool = False, token: str | None = None
    ) -> None:
        self.token = secrets.token_urlsafe(32) if token is None else token
        self.names = {name.lower().rstrip(".") for name in names}
        self.port, self.literals = port, literals
        self.cookie = f"iolab-{port}"
        # a cookie that leaks is not the token
        self._ticket = hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    def knows_host(self, host: str) -> bool:
        """Whether a `Host` header names this service."""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if not name:
            name, port = port or host, ""
        if port and port != str(self.port):
            return False
        bare = name.lower().rstrip(".")
        bare = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
        return bare in self.names or (self.literals and _is_address(bare))

    def knows_token(self, text: str) -> bool:
        """Whether it is the token, in a time that does not tell how much of it is right."""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def bears_token(self, headers: dict[str, str]) -> bool:
        """Whether a request bears the token itself."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.knows_token(token.strip())

    def let_in(self, headers: dict[str, str]) -> bool:
        """Whether a request bears the token or the cookie."""
        if self.bears_token(headers):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(
            cookie.value.encode("utf-8", "replace"), self._ticket.encode()
        )

    def cookie_header(self) -> str:
        """`Set-Cookie` for who came with the token."""
        return f"{self.cookie}={self._ticket}; Path=/; HttpOnly; SameSite=Strict"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class Guard:
    """The application behind the door."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or refuse."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # there are no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope)
        if refused is not None:
            if refused[0] == 401 and _is_page(scope):
                await _write_token_page(send, refused[2])
            else:
                await _answer(send, *refused)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message.get("headers", [])}
                message["headers"] = [
                    *message.get("headers", []),
                    *(header for header in _HEADERS if header[0] not in own),
                ]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        """(status, words, headers) where a request isn't served by the application."""
        address = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        head = address + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if head > LONGEST_HEAD:  # one that comes at once is whole before its length is looked at
            return (
                431,
                f"a request's head has {LONGEST_HEAD} bytes at most",
                [(b"connection", b"close")],
            )
        headers = _once(scope)
        if headers is None or not self._door.knows_host(headers.get("host", "")):
            return 403, "this service is not reached by that host name", []
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        own = origin is None or origin.lower() == f"http://{headers['host'].lower()}"
        # a link of another site may lead here, but what it finds needs the token all the same
        leads = (
            scope["path"] == "/"
            and scope["method"] == "GET"
            and headers.get("sec-fetch-mode") == "navigate"
        )
        if not own or (site not in ("none", "same-origin") and not leads):
            return 403, "requests of other sites are refused", []
        if scope["path"] in _PAGES and scope["method"] == "GET":
            token_and_rest = _with_token(scope["query_string"])
            if token_and_rest is not None and self._door.knows_token(token_and_rest[0]):
                query = f"?{urlencode(token_and_rest[1])}" if token_and_rest[1] else ""
                place = f"{scope['path']}{query}"
                return (
                    303,
                    "",
                    [
                        (b"location", place.encode()),
                        (b"set-cookie", self._door.cookie_header().encode()),
                    ],
                )
        if not self._door.let_in(headers):
            return (
                401,
                "the token is missing or wrong: open the address that iolab printed, or send the header Authorization: Bearer TOKEN",
                [(b"www-authenticate", b"Bearer")],
            )
        if scope["method"] in _READS:
            return None
        # a browser says where a change comes from; whoever sends the token itself is no page of
        # another site
        if not self._door.bears_token(headers) and origin is None and site != "same-origin":
            return 403, "changes come from the page itself, which says so", []
        return None


def _once(scope: Scope) -> dict[str, str] | None:
    """Headers by name; None where a decisive one is repeated."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in headers and key in ("host", "origin", "authorization", "cookie"):
            return None
        headers[key] = value.decode("latin-1")
    return headers


def _with_token(query: bytes) -> tuple[str, list[tuple[str, str]]] | None:
    """(the token in a query, the other parameters), None without one."""
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return None
    token = [value for name, value in pairs if name == "token"]
    return (token[0], [pair for pair in pairs if pair[0] != "token"]) if len(token) == 1 else None


def _is_page(scope: Scope) -> bool:
    """Whether a browser asks for a page to show."""
    headers = dict(scope["headers"])
    return scope["method"] == "GET" and b"text/html" in headers.get(b"accept", b"")


_TOKEN_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>iolab: token needed</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<body style="font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 10vh auto; padding: 0 1rem">
<h1>This page needs its token</h1>
<p>Open the whole address that <code>iolab view</code> or <code>iolab live</code> printed at its start.
It ends with <code>?token=...</code></p>
<p>A service that is started again has a new token, unless <code>--token-file FILE</code> keeps one.
A program sends the header <code>Authorization: Bearer TOKEN</code>.</p></body></html>
"""


async def _write_token_page(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    """A page that says where the token is."""
    content = _TOKEN_PAGE.encode()
    # its only style is inline, and it loads nothing
    policy = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    security = [header for header in _HEADERS if header[0] != b"content-security-policy"]
    about = [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", policy)]
    length = [(b"content-length", str(len(content)).encode())]
    await send(
        {
            "type": "http.response.start",
            "status": 401,
            "headers": [*about, *length, *headers, *security],
        }
    )
    await send({"type": "http.response.body", "body": content})


async def _answer(send: Send, status: int, words: str, headers: list[tuple[bytes, bytes]]) -> None:
    body: dict[str, Any] = {"schema": 1, "error": words, "hint": ""}
    content = json.dumps(body).encode() if words else b""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                *headers,
                *_HEADERS,
            ],
        }
    )
    await send({"type": "http.response.body", "body": content})
