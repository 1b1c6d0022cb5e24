# SPDX-License-Identifier: Apache-2.0
"""An answer has a database for itself, which another answer uses afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolab.base.errors import FormatError
from iolab.recordings.ask.engine import engine as module
from iolab.recordings.ask.engine.engine import IDLE, Databases, Engine
from iolab.recordings.store.ledger import Part


@pytest.fixture(autouse=True)
def openings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of threads of the databases that a test opened."""
    threads_of_opened: list[int] = []
    open_database = module._open

    def count(threads: int) -> object:
        threads_of_opened.append(threads)
        return open_database(threads)

    databases = Databases()
    monkeypatch.setattr(module, "_open", count)
    monkeypatch.setattr(module, "DATABASES", databases)
    yield threads_of_opened
    for _, database in databases._idle:
        database.close()


def values(engine: Engine, name: str) -> list[int]:
    return [int(value) for value in engine.ask(f"SELECT a FROM {name} ORDER BY a")["a"]]


def part_of(path: Path, value: int) -> Part:
    pq.write_table(pa.table({"a": [value]}), path)
    return Part(path, None, None)


def test_a_database_is_opened_once_for_answers_in_series(openings: list[int]) -> None:
    for value in range(5):
        with Engine(Path()) as engine:
            engine.register("events", pa.table({"a": [value]}))
            assert values(engine, "events") == [value]
    assert len(openings) == 1


def test_names_end_with_their_answer(tmp_path: Path) -> None:
    with Engine(tmp_path) as engine:
        engine.register("hot", pa.table({"a": [1]}))
        engine.files("sealed", [part_of(tmp_path / "it's 1.parquet", 2)])
        engine.run("CREATE TEMP VIEW events AS SELECT * FROM sealed UNION ALL SELECT * FROM hot")
        assert values(engine, "events") == [1, 2]
        engine.files("sealed", [part_of(tmp_path / "2.parquet", 3)])
        assert values(engine, "sealed") == [3]
    for name in ("hot", "sealed", "events"):
        with Engine(tmp_path) as engine, pytest.raises(FormatError):
            values(engine, name)


def test_answers_at_the_same_time_do_not_share_a_database(openings: list[int]) -> None:
    with Engine(Path()) as first, Engine(Path()) as second, Engine(Path(), threads=1) as third:
        for value, engine in enumerate((first, second, third)):
            engine.register("events", pa.table({"a": [value]}))
        assert [values(engine, "events") for engine in (first, second, third)] == [[0], [1], [2]]
    assert len(openings) == 3
    assert openings[2] == 1


def test_a_database_of_a_failed_answer_is_not_used_again(openings: list[int]) -> None:
    with Engine(Path()) as engine, pytest.raises(FormatError):
        engine.run("SELECT * FROM nothing")
    with Engine(Path()) as engine:
        engine.run("SELECT 1")
    assert len(openings) == 2


def test_few_idle_databases_are_kept() -> None:
    engines = [Engine(Path()) for _ in range(IDLE + 2)]
    for engine in engines:
        engine.run("SELECT 1")
    for engine in engines:
        engine.__exit__()
    assert len(module.DATABASES._idle) == IDLE


def test_a_forked_child_opens_a_database_of_its_own(openings: list[int]) -> None:
    with Engine(Path()) as engine:
        engine.run("SELECT 1")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            module.DATABASES.forget()
            with Engine(Path()) as engine:
                engine.register("events", pa.table({"a": [7]}))
                code = 0 if values(engine, "events") == [7] and len(openings) == 2 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
