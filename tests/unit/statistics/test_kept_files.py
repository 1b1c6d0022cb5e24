# SPDX-License-Identifier: Apache-2.0
"""Files of what is kept: their names, that any reader opens them, and what is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from iolab.base.errors import FormatError, IolabError, ResultsError
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.kept import manage, recovery
from iolab.recordings.ask.kept.files import tables
from iolab.recordings.ask.kept.files.paths import (
    DEFINITIONS,
    STATE,
    TIERS,
    File,
    choose_files,
    files,
    folder_name,
    is_folder,
)
from iolab.recordings.ask.kept.writer import Keeper
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import SECOND
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from support.kept_data import aged, make
from support.narrow import present

NAME = "io.ops[process]"
MAP = "io.ops[process=fio][latency]"


def test_names_of_folders() -> None:
    long = "io.ops[file=" + "/a" * 400 + "]"
    names = [
        folder_name(name)
        for name in (
            "io.ops[latency]",
            "io.ops[op=write][latency]",
            "io.ops[op=read][latency]",
            long,
            long + "x",
            "io.ops[file=../../etc]",
            "io.ops[process=ü*?]",
        )
    ]
    assert len(set(names)) == len(names)
    assert all(
        is_folder(name) and len(name) < 100 and "/" not in name and ".." not in name
        for name in names
    )
    assert not any(is_folder(name) for name in ("io.latency", "io.offset", "io.size"))


def test_files_of_several_tiers_hold_each_segment_once() -> None:
    def made(*spans: tuple[int, int]) -> list[File]:
        return [File(first, last, Path(f"{first}-{last}")) for first, last in spans]

    second, minute, hour = TIERS
    found = choose_files(
        [
            (second, made((1, 10), (11, 20), (21, 21), (22, 22))),
            (
                minute,
                made(
                    (1, 20),
                ),
            ),
            (hour, made((1, 10))),
        ]
    )
    assert [(tier.name, each.first, each.last) for tier, each in found] == [
        ("1h", 1, 10),
        ("1s", 11, 20),
        ("1s", 21, 21),
        ("1s", 22, 22),
    ]


def test_any_reader_of_parquet_opens_them(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(
        path,
        [MAP, NAME, "io.utilization[device]"],
        segments=5,
        seconds=10,
        step_s=1800,
        per_s=20,
        counters=True,
    )
    place = path / "histograms/1s" / folder_name(MAP)
    whole = query(Recording(path), MAP, interval_ns=SECOND)
    assert isinstance(whole, HeatCounts)
    table = pq.read_table(place)
    assert table.column_names == ["time_s", "index", "count"]
    placed = np.asarray(table["index"]) != 2**32 - 1
    assert int(np.asarray(table["count"])[placed].sum()) == whole.total
    sql = f"SELECT sum(count)::BIGINT FROM '{place}/*.parquet' WHERE index <> 4294967295"
    assert present(duckdb.sql(sql)).fetchall() == [(whole.total,)]
    minutes = f"{path}/histograms/1m/{folder_name(NAME)}/*.parquet"
    keys = present(duckdb.sql(f"SELECT DISTINCT key FROM '{minutes}' ORDER BY 1")).fetchall()
    assert keys == [("cp",), ("db",), ("fio",)]
    growth = f"{path}/histograms/1h/{folder_name('io.utilization[device]')}/*.parquet"
    shares = dict(
        present(
            duckdb.sql(f"SELECT object, sum(amount) / sum(over) FROM '{growth}' GROUP BY object")
        ).fetchall()
    )
    assert shares == pytest.approx({"sda": 0.5, "sdb": 1 / 3}, rel=1e-3)
    facts = json.loads(pq.read_metadata(next(place.iterdir())).metadata[b"iolab"])
    assert (facts["statistic"], facts["form"], facts["bits"]) == (MAP, "map", 3)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"kind": "keep"}',
        b'{"kind": "keep", "schema": 99}',
        b'{"kind": "keep", "schema": 1, "revision": 1, "statistics": [7]}',
        b"\xff" * 100,
    ],
)
def test_damaged_definitions_and_state(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=2)
    for name in (DEFINITIONS, STATE):
        before = (path / name).read_bytes()
        (path / name).write_bytes(damage.replace(b"keep", b"kept") if name == STATE else damage)
        with pytest.raises(ResultsError) as error:
            manage.list_kept(path)
        assert str(name) in str(error.value)
        (path / name).write_bytes(before)
    assert manage.list_kept(path)[0]["state"] == "kept"


@pytest.mark.slow
def test_damaged_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r"
    make(path, [NAME], segments=2)
    old = aged(path, tmp_path / "old", 0)
    victim = files(old.path, TIERS[0], folder_name(NAME))[0].path
    whole = victim.read_bytes()
    before = query(old, NAME, interval_ns=SECOND)
    assert isinstance(before, Stack)
    spoilt = [
        whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        for place in range(0, len(whole), 131)
    ]
    cuts = [whole[:cut] for cut in (0, 10, len(whole) // 2, len(whole) - 1)]
    for data in (*spoilt, None, *cuts):
        victim.unlink(missing_ok=True)
        if data is not None:
            victim.write_bytes(data)
        try:
            found = query(old, NAME, interval_ns=SECOND)
        except IolabError:
            continue
        assert isinstance(found, Stack)
        assert any(victim.name in note and "damaged or missing" in note for note in found.notes)
        assert found.covered_ns < 31 * SECOND < before.covered_ns, "what it kept is a gap"
        if data in cuts:
            with pytest.raises(FormatError):
                tables.about(victim)
            with pytest.raises(FormatError):
                tables.read(victim)
    assert manage.list_kept(old.path)[0]["tiers"][0]["files"] == 2
    # the keeper goes on beside it
    told: list[str] = []
    recovery.change_definitions(old.path, lambda before: replace(before, bytes=None))
    Keeper(old.path, noticed=told.append).look()
    assert any("damaged file of a kept statistic" in words for words in told)
