# SPDX-License-Identifier: Apache-2.0
"""Live data as one stream of server-sent events: once a second how far a recording is, and the
answers to the statistics followed.

An answer is always of the whole window, in whole columns, and equals that of /query: leaving an
answer out does no harm. A slow reader gets fewer of them, a reader that doesn't read for
`PATIENCE` seconds is dropped, and nothing is kept for either beyond the message that is being sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from iolab.base.documents import Model
from iolab.base.errors import IolabError, UsageError
from iolab.recordings.ask.language.quantities import parse_duration
from iolab.recordings.ask.question import SECOND

from ..base.models import Problem, Tick
from ..base.store import Store
from ..base.thread_pool import Busy, Workers
from ..queries.answers import ask
from ..queries.listing import counts, facts_of, is_live, silence, status_of_name
from ..queries.parameters import (
    DRAWN,
    LINES,
    LONGEST_NAME,
    MOST_COLUMNS,
    RECORDING,
    SOURCE,
    TOPMOST,
    Parameter,
    Words,
    number,
    parameters,
    parse_of,
    recording_of,
    several,
    text,
)

PATIENCE = 10.0
"""Seconds after which a reader that takes nothing is dropped."""
PERIOD = 1.0
MOST_STREAMS = 16
MOST_STATISTICS = 8
LONGEST_WINDOW = 3600
FEW_COLUMNS = 600
"""Columns at most, where their length is not requested."""
_QUIET = 15
"""Periods between two ticks of a recording that doesn't grow."""

PARAMETERS = (
    RECORDING,
    Parameter(
        "statistic",
        f"Followed in the stream; repeatable, {MOST_STATISTICS} at most.",
        {
            "type": "array",
            "maxItems": MOST_STATISTICS,
            "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        },
    ),
    Parameter(
        "seconds",
        "Length of the window that ends with the latest event.",
        {"type": "integer", "minimum": 1, "maximum": LONGEST_WINDOW, "default": 60},
    ),
    Parameter(
        "interval",
        f"Length of a column: 1s, 10ms. Default: a second, or what makes at most {FEW_COLUMNS}.",
        text(64),
    ),
    SOURCE,
    TOPMOST,
    DRAWN,
    LINES,
)


@dataclass(frozen=True)
class Window:
    """So many ns up to now, in columns of that length: what is followed."""

    length_ns: int
    interval_ns: int

    def words(self, last_ns: int | None) -> dict[str, str]:
        """Parameters of a question to what ends with an event at `last_ns`: from the column in
        which the window begins to the one in which that event is. None: nothing was recorded yet.
        """
        if last_ns is None:
            return {"interval": f"{self.interval_ns}ns"}
        first = max(0, last_ns + 1 - self.length_ns) // self.interval_ns * self.interval_ns
        until = (last_ns // self.interval_ns + 1) * self.interval_ns
        return {"from": str(first), "to": str(until), "interval": f"{self.interval_ns}ns"}


class Streams:
    """Streams of one store; what several of them ask is answered once."""

    def __init__(
        self,
        store: Store,
        pool: Workers,
        stopping: Callable[[], bool],
        *,
        patience: float = PATIENCE,
        period: float = PERIOD,
    ) -> None:
        self.store, self._pool, self._stopping = store, pool, stopping
        self.patience, self._period = patience, period
        self._answers: dict[tuple[Any, ...], tuple[Any, asyncio.Task[str]]] = {}
        self.open = 0

    async def events(
        self, recording: str, statistics: list[str], window: Window, words: dict[str, str]
    ) -> AsyncIterator[str]:
        """Server-sent events until the service stops. `words`: parameters of each question besides
        statistic and time."""
        before: Any = None
        quiet = silent_s = 0
        while not self._stopping():
            begun = time.monotonic()
            try:
                tick = await self._pool.run(partial(tick_of, self.store, recording))
                state = (
                    tick.now_ns,
                    tuple(tick.events.items()),
                    tick.state,
                    tick.live,
                    tick.problem,
                )
                # a recorder that is silent is said so each second, by a tick alone
                if state != before or quiet >= _QUIET or tick.silent_s != silent_s:
                    yield event("tick", tick)
                    quiet, silent_s = 0, tick.silent_s
                if state != before and not tick.problem:
                    for statistic in statistics:
                        yield await self._share_answer(state, recording, statistic, window, words)
                before = state
            except Busy:
                pass  # this second is left out; the next answer is of the whole window again
            except IolabError as error:
                yield event("problem", Problem(error=error.message, hint=error.hint or ""))
            quiet += 1
            await self._pause(begun)

    async def _share_answer(
        self, state: Any, recording: str, statistic: str, window: Window, words: dict[str, str]
    ) -> str:
        """An answer as an event, made once for all streams that ask the same of the same state."""
        key = (recording, statistic, window, *sorted(words.items()))
        answer = self._answers.get(key)
        if answer is None or answer[0] != state:
            if len(self._answers) > 4 * MOST_STREAMS:
                self._answers.clear()
            question = {
                **words,
                **window.words(state[0]),
                "recording": recording,
                "statistic": statistic,
            }
            task = asyncio.create_task(self._answer(question))
            answer = self._answers[key] = (state, task)
        return await asyncio.shield(answer[1])

    async def _answer(self, words: Words) -> str:
        try:
            return await self._pool.run(lambda: event("answer", ask(self.store, words)))
        except Busy:
            return event(
                "problem",
                Problem(error="too many questions at once", hint="the next second tries again"),
            )
        except IolabError as error:
            return event(
                "problem",
                Problem(error=f"{words['statistic']}: {error.message}", hint=error.hint or ""),
            )

    async def _pause(self, begun: float) -> None:
        """Until a period after it began; at least half of one, so that a slow answer doesn't take
        all of a processor."""
        until = max(begun + self._period, time.monotonic() + self._period / 2)
        while not self._stopping() and (left_s := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, 0.25))


class StreamResponse(Response):
    """Sends events until they end, the reader has left, or it takes none for too long."""

    def __init__(self, streams: Streams, events: AsyncIterator[str], *, body: bool) -> None:
        super().__init__(None, headers={"x-accel-buffering": "no"}, media_type="text/event-stream")
        self._streams, self._events, self._body = streams, events, body
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if not self._body:
            await send({"type": "http.response.body", "body": b""})
            return
        self._streams.open += 1
        tasks = {
            asyncio.create_task(self._write(send)),
            asyncio.create_task(wait_disconnect(receive)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._streams.open -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, send: Send) -> None:
        async for event in self._events:
            await asyncio.wait_for(
                send({"type": "http.response.body", "body": event.encode(), "more_body": True}),
                self._streams.patience,
            )
        await asyncio.wait_for(
            send({"type": "http.response.body", "body": b""}), self._streams.patience
        )


async def wait_disconnect(receive: Receive) -> None:
    """When who asks has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def event(name: str, data: Model) -> str:
    """One server-sent event; JSON has no line ends."""
    return f"event: {name}\ndata: {data.model_dump_json(by_alias=True)}\n\n"


def tick_of(store: Store, name: str) -> Tick:
    """How far a recording is now."""
    facts = facts_of(store, name)
    status = status_of_name(store, name)
    size, suspended = status.get("bytes"), status.get("suspended")
    members = store.members(name) if facts.live else []
    return Tick(
        recording=name,
        live=facts.live,
        first_ns=facts.first_ns,
        last_ns=facts.last_ns,
        events=facts.events,
        lost=counts(status, "lost"),
        now_ns=None if facts.last_ns is None else store.newest(name),
        state=str(status.get("state", "")) if facts.live else "ended" if status else "",
        bytes=size if isinstance(size, int) else None,
        suspended={str(key): str(words) for key, words in suspended.items()}
        if isinstance(suspended, dict)
        else {},
        # of several hosts the one that is silent for the longest time
        silent_s=max(
            (silence(store.path(member)) for member in members if is_live(store, member)), default=0
        ),
        problem=facts.problem,
    )


def stream_path(streams: Streams) -> Callable[[Request], Any]:
    """The endpoint; the question is checked before the stream begins, so that a mistake is an
    answer of its own."""
    bounds = {parameter.name: parameter.bounds for parameter in PARAMETERS}

    async def endpoint(request: Request) -> Response:
        words = parameters(request.query_params.multi_items(), bounds)
        statistics = several(words, "statistic")
        words.pop("statistic", None)
        window = _window(words)
        recording = recording_of(streams.store, words)
        opened = streams.store.open_asked(recording)
        for statistic in statistics:
            parse_of(opened, statistic)
        rest = {name: value for name, value in words.items() if name not in ("seconds", "interval")}
        if streams.open >= MOST_STREAMS:
            raise Busy
        return StreamResponse(
            streams,
            streams.events(recording, statistics, window, rest),
            body=request.method == "GET",
        )

    return endpoint


def _window(words: Words) -> Window:
    """The requested window. UsageError for none that can be followed."""
    seconds = number(words, "seconds", 60, 1, LONGEST_WINDOW)
    interval = (
        parse_duration(words["interval"])
        if "interval" in words
        else -(-seconds // FEW_COLUMNS) * SECOND
    )
    if seconds * SECOND > MOST_COLUMNS * interval:
        raise UsageError(
            f"that makes more than {MOST_COLUMNS} columns",
            where="interval",
            hint="follow less time, in longer columns",
        )
    return Window(seconds * SECOND, interval)
