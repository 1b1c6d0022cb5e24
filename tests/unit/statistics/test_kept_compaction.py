# SPDX-License-Identifier: Apache-2.0
"""Files of the hour that is under way are few, and nothing is lost as they become one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from iolab.recordings.ask.kept import compaction
from iolab.recordings.ask.kept.files import tables
from iolab.recordings.ask.kept.files.paths import TIERS, files, folder_name, path_of

NAME = "io.ops[latency]"
FOLDER = folder_name(NAME)
HOUR = 1_790_000_000 // 3600 * 3600


def keep(path: Path, number: int, rows: list[tuple[int, int, int]]) -> None:
    """A segment's file, as the keeper writes it."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, tables.SCHEMAS["map"], strict=True)
        ],
        schema=tables.SCHEMAS["map"],
    )
    tables.write(
        path_of(path, TIERS[0], FOLDER, number, number),
        [tables.Sums(table, "map", 1, 3)],
        NAME,
        "block",
    )


def held(path: Path) -> Counter[tuple[int, int]]:
    """(second, bucket) to count, of all files that count."""
    found: Counter[tuple[int, int]] = Counter()
    for each in files(path, TIERS[0], FOLDER):
        for row in tables.read(each.path).table.to_pylist():
            found[row["time_s"], row["index"]] += row["count"]
    return found


def grown(path: Path, minutes: int) -> list[int]:
    """Files after each minute of half an hour's recording and more, which begins in the midst of an
    hour."""
    merger, truth, counts = compaction.Merger(path, NAME, "block"), Counter[tuple[int, int]](), []
    for number in range(1, minutes + 1):
        rows = [(HOUR + 1800 + 60 * number + second, second % 3, number) for second in range(60)]
        truth.update({(time, index): count for time, index, count in rows})
        keep(path, number, rows)
        merger.merge(number)
        counts.append(len(files(path, TIERS[0], FOLDER)))
        assert held(path) == truth
    return counts


@pytest.mark.slow
def test_an_hour_under_way_is_in_few_files(tmp_path: Path) -> None:
    counts = grown(tmp_path, 45)
    # and one of the hour that is over
    assert max(counts) <= compaction.SINGLES
    assert min(counts[20:]) <= 2


@pytest.mark.slow
def test_where_rows_are_many_it_is_merged_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FEW_ROWS", 100)
    counts = grown(tmp_path, 25)
    assert counts == list(range(1, 26))
