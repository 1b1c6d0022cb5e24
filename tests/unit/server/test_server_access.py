# SPDX-License-Identifier: Apache-2.0
"""Who is let in, on every path."""

from __future__ import annotations

import asyncio
import re
from http.cookies import SimpleCookie
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from iolab.base.errors import RunError, UsageError
from iolab.output.server.http.access import Door, Guard
from iolab.output.server.http.actions import ACTIONS
from iolab.output.server.http.serve import listen
from iolab.output.server.queries.routes import PREFIX, ROUTES

PAGE = [
    "/",
    "/report/rec",
    "/live.js",
    "/live.css",
    "/metrics",
    "/nothing",
    "/../etc/passwd",
    f"{PREFIX}/stream",
    f"{PREFIX}/openapi.json",
]
ASKED = [*PAGE, *(f"{PREFIX}{route.path}" for route in ROUTES)]
ACTED = sorted({f"{PREFIX}{action.path}".replace("{name}", "one") for action in ACTIONS})
PATHS = [*ASKED, *ACTED]
FOREIGN = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9999"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://localhost:8750"},
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer"},
        {"authorization": "Basic a-token-of-twenty-letters-or-more"},
        {"cookie": "iolab-8750=wrong"},
        {"cookie": "iolab-8750=a-token-of-twenty-letters-or-more"},
        {"cookie": '=;;;"\\'},
    ],
)
@pytest.mark.parametrize("query", ["", "?token=wrong", "?token="])
def test_no_or_a_wrong_token_is_401_on_every_path(
    path: str, headers: dict[str, str], query: str, anyone: TestClient
) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = anyone.request(method, f"{path}{query}", headers=headers)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert answer.json()["error"].startswith("the token")


@pytest.mark.parametrize("page", ["/", "/start", "/fleet", "/worksheet"])
def test_each_page_takes_the_token_and_leads_to_itself(
    anyone: TestClient, door: Door, page: str
) -> None:
    wrong = anyone.get(f"{page}?token=wrong")
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    first = anyone.get(f"{page}?token={door.token}&seconds=60")
    assert (first.status_code, first.headers["location"]) == (303, f"{page}?seconds=60")


def test_the_token_comes_once_in_the_address_then_a_cookie(anyone: TestClient, door: Door) -> None:
    first = anyone.get(f"/?token={door.token}&seconds=60")
    assert (first.status_code, first.headers["location"]) == (303, "/?seconds=60")
    cookie = SimpleCookie(first.headers["set-cookie"])["iolab-8750"]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["path"]) == ("Strict", "/")
    assert door.token not in cookie.value
    assert anyone.get("/", headers={"cookie": f"iolab-8750={cookie.value}"}).status_code == 200
    # the token in an address counts nowhere but there
    anyone.cookies.clear()
    assert anyone.get(f"{PREFIX}/recordings?token={door.token}").status_code == 401


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(
    "path", [f"{PREFIX}/stream?recording=rec", f"{PREFIX}/recordings", "/live.js", "/"]
)
def test_requests_of_other_sites_are_refused(
    path: str, headers: dict[str, str], client: TestClient
) -> None:
    assert client.get(path, headers=headers).status_code == 403


def test_a_link_of_another_site_leads_to_the_page_alone(client: TestClient) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200
    assert client.get(f"{PREFIX}/recordings", headers=link).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8750",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:8750",
        "",
        ":8750",
        "[::1",
        "10.0.0.1:8750",
        "127.0.0.1:8750:8750",
        "localhost:8750@evil.example",
    ],
)
def test_other_host_names_are_refused(host: str, client: TestClient) -> None:
    assert client.get(f"{PREFIX}/recordings", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8750", "localhost:8750", "LOCALHOST:8750", "localhost.:8750", "127.0.0.1"]
)
def test_own_host_names_are_served(host: str, client: TestClient) -> None:
    assert client.get(f"{PREFIX}/recordings", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ASKED)
def test_what_is_asked_is_only_read(path: str, client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, path, content=b"x" * 100_000).status_code in (404, 405)


@pytest.mark.parametrize("path", ACTED)
def test_only_what_is_foreseen_is_done(path: str, client: TestClient) -> None:
    meant = next(
        action.path
        for action in ACTIONS
        if re.fullmatch(f"{PREFIX}{action.path}".replace("{name}", "[^/]+"), path)
    )
    foreseen = {action.method for action in ACTIONS if action.path == meant}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} - foreseen:
        answer = client.request(method, path, content=b"x" * 100_000)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == foreseen | (
            {"HEAD"} if "GET" in foreseen else set()
        )


def test_what_a_path_without_changes_allows(client: TestClient) -> None:
    for path in ("/", "/live.js", "/metrics", f"{PREFIX}/recordings", f"{PREFIX}/stream"):
        assert set(client.post(path).headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *((foreign, 403) for foreign in FOREIGN),
        ({}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"origin": "http://127.0.0.1:8750"}, 404),
        ({"sec-fetch-site": "same-origin"}, 404),
        ({"origin": "http://127.0.0.1:8750", "sec-fetch-site": "same-origin"}, 404),
        ({"origin": "http://127.0.0.1:8750", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_with_the_cookie_alone_nothing_is_changed(
    headers: dict[str, str], status: int, anyone: TestClient, door: Door
) -> None:
    cookie = {"cookie": door.cookie_header().partition(";")[0]}
    assert anyone.get(f"{PREFIX}/recordings", headers=cookie).status_code == 200
    assert (
        anyone.delete(f"{PREFIX}/worksheets/none", headers={**cookie, **headers}).status_code
        == status
    )


def test_a_program_with_the_token_may_change_things(client: TestClient) -> None:
    assert client.delete(f"{PREFIX}/worksheets/none").status_code == 404
    for foreign in FOREIGN:
        assert client.delete(f"{PREFIX}/worksheets/none", headers=foreign).status_code == 403


def test_every_answer_says_what_a_page_may_do(client: TestClient, anyone: TestClient) -> None:
    for answer in (
        client.get(f"{PREFIX}/recordings"),
        client.get("/nothing"),
        client.post("/"),
        anyone.get("/", headers={"host": "x"}),
    ):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_head_has_no_body(client: TestClient) -> None:
    for path in (f"{PREFIX}/recordings", f"{PREFIX}/stream?recording=rec", "/metrics"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


def test_headers_that_decide_are_there_once() -> None:
    assert refused([(b"host", b"127.0.0.1:1"), (b"host", b"evil.example")]) == 403
    assert (
        refused(
            [
                (b"host", b"127.0.0.1:1"),
                (b"authorization", b"Bearer x"),
                (b"authorization", b"Bearer token"),
            ]
        )
        == 403
    )
    assert refused([(b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer token")]) == 200
    assert refused([]) == 403


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"host", b"origin", b"cookie", b"authorization", b"sec-fetch-site"]),
            st.binary(max_size=40),
        )
    ),
    st.binary(max_size=60),
    st.binary(max_size=40),
)
def test_whatever_is_sent_is_refused_in_order(
    headers: list[tuple[bytes, bytes]], query: bytes, path: bytes
) -> None:
    assert refused([(b"host", b"127.0.0.1:1"), *headers], query, path.decode("latin-1")) in (
        401,
        403,
    )


def refused(headers: list[tuple[bytes, bytes]], query: bytes = b"", path: str = "/") -> int:
    """The status that a request with these headers gets; 200 where it is let in."""
    sent: list[Any] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": headers,
    }
    asyncio.run(Guard(inside, Door(["127.0.0.1"], 1, token="token"))(scope, receive, send))
    return int(sent[0]["status"])


def test_sockets_for_all_are_warned_of_and_known_by_address() -> None:
    listener = listen("0.0.0.0", 0)
    try:
        assert "whoever has the token" in listener.warning
        assert listener.door.knows_host(f"192.0.2.7:{listener.door.port}")
        assert not listener.door.knows_host(f"evil.example:{listener.door.port}")
    finally:
        listener.socket.close()
    local = listen("localhost", 0)
    try:
        assert local.warning == ""
        assert local.url == f"http://localhost:{local.door.port}/?token={local.door.token}"
        assert len(local.door.token) >= 40
        with pytest.raises(RunError, match="can't listen"):
            listen("localhost", local.door.port)
    finally:
        local.socket.close()


@pytest.mark.parametrize(
    ("host", "port"),
    [("no.such.host.invalid", 0), ("127.0.0.1", -1), ("127.0.0.1", 70000), ("x" * 300, 0)],
)
def test_places_where_nobody_can_listen(host: str, port: int) -> None:
    with pytest.raises(UsageError):
        listen(host, port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(RunError, match="can't listen"):
        listen("192.0.2.1", 0)


def test_a_long_head_is_refused_however_it_comes(anyone: TestClient, door: Door) -> None:
    token = {"authorization": f"Bearer {door.token}"}
    assert (
        anyone.get("/api/v1/recordings", headers=token | {"x-long": "x" * 8000}).status_code != 431
    )
    assert (
        anyone.get("/api/v1/recordings", headers=token | {"x-long": "x" * 17_000}).status_code
        == 431
    )
    assert anyone.get(f"/api/v1/recordings?x={'x' * 17_000}", headers=token).status_code == 431


def test_a_browser_without_a_token_gets_a_page(anyone: TestClient, door: Door) -> None:
    answer = anyone.get("/?token=wrong", headers={"accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "--token-file" in answer.text
    assert "wrong" not in answer.text
    assert door.token not in answer.text
