# SPDX-License-Identifier: Apache-2.0
"""Questions whose asker has gone: they begin no more, or end, and their thread is free for others."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from iolab.output.server.base.store import Store
from iolab.output.server.base.thread_pool import Workers
from iolab.output.server.http import app, serve
from iolab.recordings.ask.engine.engine import HALT, Engine, Halt, Halted
from support.service import TOKEN, Served, serving

ENDLESS = "SELECT sum(a.range * b.range % 7) AS n FROM range(100_000_000) a, range(100_000_000) b"
PATIENCE = 60.0


def ask_endlessly(begun: threading.Event) -> None:
    with Engine(Path()) as engine:
        begun.set()
        engine.ask(ENDLESS)


async def eventually(met: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < limit
        await asyncio.sleep(0.01)


def test_what_the_engine_does_is_given_up() -> None:
    begun, ended = threading.Event(), threading.Event()

    def function() -> None:
        try:
            ask_endlessly(begun)
        except Halted:
            ended.set()

    async def main() -> None:
        workers = Workers(threads=1)
        asked = asyncio.create_task(workers.run(function))
        await eventually(begun.is_set)
        asked.cancel()
        await eventually(ended.is_set)
        # its thread is there for the next one
        assert await asyncio.wait_for(workers.run(lambda: 5), PATIENCE) == 5
        workers.close()

    asyncio.run(main())
    assert HALT.get() is None


def test_what_waits_for_a_thread_is_never_begun() -> None:
    free, asked = threading.Event(), []

    async def main() -> None:
        workers = Workers(threads=1, most_waiting=1)
        first = asyncio.create_task(workers.run(lambda: free.wait(PATIENCE)))
        await asyncio.sleep(0)
        second = asyncio.create_task(workers.run(lambda: asked.append("second")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await asyncio.sleep(0)
        # nor does it take the place of another
        third = asyncio.create_task(workers.run(lambda: asked.append("third")))
        await asyncio.sleep(0)
        free.set()
        await asyncio.wait_for(asyncio.gather(first, third), PATIENCE)
        workers.close()

    asyncio.run(main())
    assert asked == ["third"]


def test_a_question_that_was_given_up_begins_nothing_more() -> None:
    halt = Halt()
    halt.halt()
    token = HALT.set(halt)
    try:
        with pytest.raises(Halted), Engine(Path()):
            pass
    finally:
        HALT.reset(token)
    with Engine(Path()) as engine:
        assert engine.ask("SELECT 5 AS n")["n"].tolist() == [5]


def test_a_question_that_is_given_up_between_two_statements_goes_no_further() -> None:
    halt = Halt()
    token = HALT.set(halt)
    try:
        with Engine(Path()) as engine:
            assert engine.ask("SELECT 5 AS n")["n"].tolist() == [5]
            halt.halt()
            for go_on in (
                lambda: engine.run("SELECT 5"),
                lambda: engine.ask("SELECT 5 AS n"),
                lambda: list(engine.stream("SELECT 5")),
            ):
                with pytest.raises(Halted):
                    go_on()
    finally:
        HALT.reset(token)


def test_an_asker_who_stays_gets_the_answer_and_the_error() -> None:
    async def stays() -> Message:
        await asyncio.sleep(PATIENCE)
        return {"type": "http.disconnect"}

    async def leaves() -> Message:
        return {"type": "http.disconnect"}

    async def answer(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return 5

    async def fails() -> int:
        raise Halted("no")

    async def main() -> None:
        assert await app._unless_disconnected(answer(0), stays) == 5
        assert await app._unless_disconnected(answer(PATIENCE), leaves) is None
        with pytest.raises(Halted):
            await app._unless_disconnected(fails(), stays)

    begun = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begun < PATIENCE


def test_over_the_wire(served: Served, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(*_: Any) -> Any:
        try:
            ask_endlessly(begun)
        except Halted:
            ended.set()
            raise

    monkeypatch.setattr(app, "_write_answer", endless)
    listener = served(store)
    connection = http.client.HTTPConnection("127.0.0.1", listener.door.port, timeout=PATIENCE)
    connection.request("GET", "/api/v1/recordings", headers={"authorization": f"Bearer {TOKEN}"})
    assert begun.wait(PATIENCE)
    connection.close()
    assert ended.wait(PATIENCE)


def test_the_end_of_the_service_cancels_open_questions_without_a_word(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()
    monkeypatch.setattr(app, "_write_answer", lambda *_: ask_endlessly(begun))
    monkeypatch.setattr(serve, "GRACE_S", 0)
    with serving(store) as listener:
        connection = http.client.HTTPConnection("127.0.0.1", listener.door.port, timeout=PATIENCE)
        connection.request(
            "GET", "/api/v1/recordings", headers={"authorization": f"Bearer {TOKEN}"}
        )
        assert begun.wait(PATIENCE)
    connection.close()
    assert caplog.messages == []
