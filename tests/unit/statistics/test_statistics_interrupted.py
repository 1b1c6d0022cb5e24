# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C within a question: it ends as Ctrl-C, whatever DuckDB makes of it, and is no word on the
recording."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from iolab.base.errors import FormatError
from iolab.recordings.ask.engine.engine import HALT, Engine, Halt, Halted

ENDLESS = "SELECT count(*) AS n FROM range(1_000_000_000_000) a WHERE sin(a.range) > 2"
CALLS: dict[str, Callable[[Engine], object]] = {
    "ask": lambda engine: engine.ask("SELECT 1"),
    "run": lambda engine: engine.run("SELECT 1"),
    "stream": lambda engine: list(engine.stream("SELECT 1")),
    "files": lambda engine: engine.files("sealed", []),
}
COUNTING = "Invalid Input Error: counting the rows of the object registered as 'hot' failed: KeyboardInterrupt: "


class Failing:
    """A connection each of whose calls ends with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def fail(self, *_: Any, **__: Any) -> Any:
        raise self._error

    execute = sql = read_parquet = fail

    def interrupt(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""


def failing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose calls end with an error."""
    engine = Engine(Path("rec"))
    engine._connection.close()
    monkeypatch.setattr(engine, "_connection", Failing(error))
    return engine


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        duckdb.InvalidInputException(COUNTING),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
    ],
)
def test_it_is_ctrl_c_in_every_call(
    call: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        CALLS[call](failing(error, monkeypatch))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("dictionary changed size"), RuntimeError),
        (duckdb.IOException("No files found: KeyboardInterrupt.parquet"), FormatError),
    ],
)
def test_other_errors_stay_what_they_are(
    error: Exception, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in CALLS.values():
        with pytest.raises(kind):
            call(failing(error, monkeypatch))


def test_what_was_given_up_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    halt = Halt()
    token = HALT.set(halt)
    try:
        engine = failing(duckdb.InterruptException("INTERRUPT Error: Interrupted!"), monkeypatch)
        monkeypatch.setattr(engine, "_go_on", lambda: None)
        halt._over = True
        with pytest.raises(Halted):
            engine.ask("SELECT 1")
    finally:
        HALT.reset(token)


def interrupted(engine: Engine) -> None:
    """Ctrl-C comes while it is asked; however slow the machine is, before this ends."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    engine.ask(ENDLESS)
    time.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_a_signal_within_a_long_statement(threads: int, tmp_path: Path) -> None:
    """Whichever of its threads works at it: where another one does, the one that asked only waits."""
    for _ in range(5):
        with Engine(tmp_path, threads=threads) as engine, pytest.raises(KeyboardInterrupt):
            interrupted(engine)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_somebody_else_handles_stays_theirs(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Engine(tmp_path) as engine:
            engine.ask("SELECT 1 AS n")
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_one_that_comes_while_a_stream_is_read(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise KeyboardInterrupt

    with Engine(tmp_path) as engine:
        engine.register("hot", pa.RecordBatchReader.from_batches(table.schema, batches()))
        with pytest.raises(KeyboardInterrupt):
            engine.ask("SELECT sum(n) AS n FROM hot")
