# SPDX-License-Identifier: Apache-2.0
"""Several results in one file of fio, and JSON that others put around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import FormatError
from iolab.formats.detect import detect
from iolab.formats.fio.groups import groups_of
from iolab.formats.fio.json_output import FioJson
from support.fio_files import job, output
from support.imported_trees import import_results


def document(
    seconds: float, *, at: float = 0.0, iops: float = 1000.0, **fields: Any
) -> dict[str, Any]:
    """What fio writes of a run of so many seconds that began at `at`; `start`: with job_start;
    `depth`: its iodepth; `name`: of its job."""
    entry = job(jobs=1, iops=iops, runtime=seconds, name=fields.get("name", "load"))
    if fields.get("start"):
        entry["job_start"] = round(1_700_000_000_000 + at * 1000)
    made: dict[str, Any] = json.loads(output(entry, iodepth=str(fields.get("depth", 8))))
    if fields.get("stamp", True):
        made["timestamp_ms"] = round(1_700_000_000_000 + (at + seconds) * 1000)
        made["timestamp"] = made["timestamp_ms"] // 1000
    else:
        del made["timestamp_ms"], made["timestamp"]
    return made


def read_ios(text: str) -> list[tuple[int, int]]:
    """Run and I/Os of each job."""
    assert detect(text.encode(), "x") == "fio-json"
    result = FioJson().read(text.encode(), "file")
    return [(job.run, job.directions["write"].ios) for job in result.jobs]


def joined(documents: Sequence[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(one, indent=2) for one in documents)


SNAPSHOTS = [document(seconds, iops=1000) for seconds in (1, 2, 3.1)]
CASES: dict[str, tuple[list[dict[str, Any]], list[tuple[int, int]]]] = {
    "reports of one run": (SNAPSHOTS, [(0, 3100)]),
    "reports of one run with start times": (
        [document(seconds, start=True) for seconds in (1, 2)],
        [(0, 2000)],
    ),
    "reports without time stamps": ([document(n, stamp=False) for n in (1, 2)], [(0, 2000)]),
    "repetitions": (
        [document(10, at=12.0 * n, iops=1000 + n) for n in range(3)],
        [(0, 10000), (1, 10010), (2, 10020)],
    ),
    "repetitions that become longer": (
        [document(10 + n / 100, at=10.5 * n) for n in range(2)],
        [(0, 10000), (1, 10010)],
    ),
    "repetitions by start time": (
        [document(10, at=n, start=True, iops=1000 + n) for n in range(2)],
        [(0, 10000), (1, 10010)],
    ),
    "other options": ([document(1, depth=8), document(2, depth=16)], [(0, 1000), (1, 2000)]),
    "other jobs": ([document(1, name="a"), document(2, name="b")], [(0, 1000), (1, 2000)]),
    "reports of two runs": (
        [document(1), document(2), document(1, at=5, iops=900), document(2, at=5, iops=900)],
        [(0, 2000), (1, 1800)],
    ),
    "a copy": ([document(1), document(1)], [(0, 1000)]),
}
AROUND: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "one after another": joined,
    "on one line each": lambda documents: "\n".join(map(json.dumps, documents)),
    "an array": lambda documents: json.dumps(documents, indent=1),
    "an array after text": lambda documents: f"note: x\n{json.dumps(documents)}",
    "below a key": lambda documents: json.dumps({"runs": {"all": documents}}, indent=4),
    "a key each": lambda documents: json.dumps(
        {f"k{n}": {"r": d} for n, d in enumerate(documents)}
    ),
    "other order of keys": lambda documents: json.dumps(documents, sort_keys=True, indent=1),
    "text on the line of the brace": lambda documents: "".join(
        f"fio output: {json.dumps(d, indent=1)} done\n" for d in documents
    ),
    "a prompt": lambda documents: "".join(f">{json.dumps(d, indent=1)}\n" for d in documents),
    "quoted": lambda documents: "> " + joined(documents).replace("\n", "\n> "),
    "a log": lambda documents: "".join(
        f"2026-03-01T12:00:05Z {line}\n" for line in joined(documents).split("\n")
    ),
    "escapes": lambda documents: "".join(
        f"\x1b[?2004l\x1b[0m{json.dumps(d, indent=1)}\x1b[K\n" for d in documents
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("case", CASES)
def test_each_run_of_a_file_counts_once(case: str, around: str) -> None:
    documents, expected = CASES[case]
    assert read_ios(AROUND[around](documents)) == expected


def test_what_stands_around_is_no_message_of_fio() -> None:
    for around in AROUND.values():
        result = FioJson().read(around(SNAPSHOTS).encode(), "file")
        assert result.leading_text in ("", "note: x")
    text = "fio: io_u error\nlog: {\n" + json.dumps(SNAPSHOTS[0])
    assert FioJson().read(text.encode(), "file").leading_text == "fio: io_u error"


@pytest.mark.parametrize(
    ("torn", "words"),
    [(0, "document 1 of 3"), (1, "document 2 of 3"), (2, "document 3 is cut off")],
)
def test_a_torn_document_leaves_the_others(torn: int, words: str) -> None:
    texts = [json.dumps(document(10, at=20.0 * n), indent=1) for n in range(3)]
    texts[torn] = texts[torn][:200]
    result = FioJson().read("\n".join(texts).encode(), "file")
    assert len(groups_of(result)) == 2
    assert any(words in text for text in result.assumptions)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"fio version": "fio-3.1", "jobs": [', "before its last brace"),
        ('log: {"fio version" 3}', "no JSON in the file; it begins with 'log: "),
        ('{"fio version": "fio-3.1", "jobs": [}]}', "the JSON is damaged: expecting value"),
        ('{"result": {"x": 1}}', "neither 'jobs' nor 'client_stats'"),
    ],
)
def test_the_message_has_the_reason(text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        FioJson().read(text.encode(), "file")
    assert words in str(caught.value).lower() or words in str(caught.value)


def test_many_braces_take_no_time() -> None:
    text = "{ " * 200_000 + "\n" + json.dumps(SNAPSHOTS[0])
    assert len(FioJson().read(text.encode(), "file").jobs) == 1
    with pytest.raises(FormatError):
        FioJson().read(b'{"fio version": {' * 20_000, "file")


def test_runs_of_a_file_become_runs(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    documents = [
        document(10, at=20.0 * n, iops=1000 + n, depth=8 if n < 3 else 16) for n in range(5)
    ]
    (tmp_path / "tree" / "all.json").write_text(joined(documents))
    imported, results = import_results(tmp_path / "tree", tmp_path / "out", None)
    assert any("several fio runs" in note for note in imported.notes)
    assert [(run.factors["iodepth"], run.plan.repetition) for run in results.runs] == [
        (8, 1),
        (8, 2),
        (8, 3),
        (16, 1),
        (16, 2),
    ]
    assert [run.value("write.iops") for run in results.runs] == [1000, 1001, 1002, 1003, 1004]
    assert len({run.window for run in results.runs}) == 5
