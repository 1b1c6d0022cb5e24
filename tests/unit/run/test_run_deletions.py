# SPDX-License-Identifier: Apache-2.0
"""Files of results and histories that are deleted together, also whole runs: the answers are the
same, or say so, or are refused in one line.

A sample by default; `IOLAB_DELETIONS=500,200` takes so many pairs and triples. What became of them
is printed.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.studies.history.store import History
from iolab.studies.results.evidence.manifest import read_manifest, write_manifest
from iolab.studies.results.imports.table import import_table
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.multi_host import Hosts, write_hosts
from support.fio_files import job, output
from support.resuming import Do

PAIRS, TRIPLES = (int(word) for word in os.environ.get("IOLAB_DELETIONS", "25,10").split(","))
SECONDS = 30
DERIVED = {"caches.json", "observations.parquet", "series.parquet", "histograms.parquet", ".lock"}

TELLING = {"notes", "warnings", "reasons", "standing", "missing", "differences", "lost", "findings"}
"""Fields of documents in which something wrong is stated."""

Questions = list[list[str]]
Answer = tuple[int, str, str]


def imported(base: Path) -> Path:
    for variant, iops in (("old", 1000.0), ("new", 1200.0)):
        for repetition in range(1, 5):
            place = base / "tree" / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(output(job(jobs=1, iops=iops + repetition)))
            (place / "stderr.txt").write_text("words\n")
    import_tree(base / "tree", "{variant}/rep{repetition:int}", base / "out")
    return base / "out"


def questions_of(directory: Path) -> Questions:
    return [
        ["show", str(directory), "--format", "json"],
        ["compare", str(directory), "--format", "json"],
        ["check", str(directory), "--rule", "write.iops >= -50 %", "--format", "json"],
    ]


def answers(questions: Questions) -> list[Answer]:
    done = []
    for words in questions:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words)
        done.append((code, out.getvalue(), err.getvalue()))
    return done


def words_of(document: Any) -> Counter[str]:
    """Everything that tells of something wrong: notes, warnings, reasons, differences."""
    words: Counter[str] = Counter()

    def visit(value: Any, is_telling: bool) -> None:
        if isinstance(value, dict):
            for key, member in value.items():
                visit(
                    member,
                    is_telling or key in TELLING,
                )
        elif isinstance(value, list):
            for member in value:
                visit(member, is_telling)
        elif is_telling and isinstance(value, str):
            words[value] += 1

    visit(document, False)
    for level in ("SUSPECT", "INVALID"):
        words[level] = json.dumps(document).count(level)
    return words


def outcome(questions: Questions, before: list[Answer], after: list[Answer]) -> str:
    results = []
    for words, (_, old, _), (code, new, err) in zip(questions, before, after, strict=True):
        if "Traceback" in err:
            return f"TRACEBACK {err}"
        if new == old:
            results.append("same answers")
        elif not new:
            results.append("refused" if code and err.count("\n") == 1 else f"SILENT: {code} {err}")
        elif words_of(json.loads(new)) - words_of(json.loads(old)) or err:
            results.append("told")
        else:
            results.append(f"SILENT {words}")
    return max(results, key=lambda text: ("SILENT" in text, text == "refused", text == "told"))


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError("HANG")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def places_of(directory: Path) -> list[str]:
    """Files, and directories of runs, hosts or studies."""
    return sorted(
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() or path.parent.name == "runs" or path.name in ("here", "there")
    )


def drawn(places: list[str]) -> list[tuple[str, ...]]:
    chance = random.Random(7)
    sets: dict[tuple[str, ...], None] = {(place,): None for place in places}
    for size, count in ((2, PAIRS), (3, TRIPLES)):
        most = sum(1 for _ in itertools.combinations(places, size))
        chosen: dict[tuple[str, ...], None] = {}
        while len(chosen) < min(count, most):
            chosen[tuple(sorted(chance.sample(places, size)))] = None
        sets |= chosen
    return list(sets)


def try_all(directory: Path, questions: Questions, *, is_verified: bool = True) -> None:
    before = answers(questions)
    assert all("Traceback" not in err and out for _, out, err in before), before
    kept = directory.with_name(f"{directory.name}.kept")
    shutil.copytree(directory, kept, symlinks=True)
    counted: Counter[str] = Counter()
    wrong = []
    for places in drawn(places_of(directory)):
        for place in places:
            path = directory / place
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        with bounded():
            result = outcome(questions, before, answers(questions))
            if is_verified and {Path(place).name for place in places} - DERIVED:
                [(code, out, err)] = answers([["verify", str(directory), "--format", "json"]])
                if "Traceback" in err or (code == 0 and not json.loads(out)["findings"]):
                    result = f"SILENT: verify {err}"
        counted[result.split(":")[0]] += 1
        if result.isupper() or "SILENT" in result or "TRACEBACK" in result:
            wrong.append((places, result))
        shutil.rmtree(directory)
        shutil.copytree(kept, directory, symlinks=True)
    print(f"\n{directory.name}: {sum(counted.values())} sets: {dict(counted)}")
    assert wrong == [], "\n".join(map(str, wrong[:30]))


@pytest.fixture
def made(do: Do) -> Path:
    return do()


@pytest.mark.slow
def test_a_study(made: Path) -> None:
    try_all(made, questions_of(made))


def test_runs_and_the_journal(made: Path) -> None:
    runs = sorted((made / "runs").iterdir())
    for path in runs[: len(runs) // 2]:
        shutil.rmtree(path)
    (made / "journal.jsonl").unlink()
    for words in questions_of(made):
        [(_, out, _)] = answers([words])
        assert "journal.jsonl, the list of planned and ended runs, is missing" in out
    [(code, out, _)] = answers([["verify", str(made)]])
    assert code != 0
    assert "journal.jsonl" in out


def test_an_import(tmp_path: Path) -> None:
    path = imported(tmp_path)
    try_all(path, questions_of(path))


def test_published_numbers(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "variant,metric,value,unit,repetition\n"
        + "".join(f"{name},write.iops,{100 + n},IOPS,{n}\n" for name in "ab" for n in range(1, 5))
    )
    import_table(table, tmp_path / "out")
    try_all(tmp_path / "out", questions_of(tmp_path / "out"))


@pytest.mark.slow
def test_hosts(tmp_path: Path, made: Path) -> None:
    both = tmp_path / "both"
    for name in ("here", "there"):
        shutil.copytree(made, both / name)
    write_hosts(both, Hosts({"here": "local", "there": "ssh:there"}))
    try_all(both, questions_of(both))


@pytest.mark.slow
def test_a_history(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = imported(tmp_path / "base")
    for number in range(4):
        place = home / f"results{number}"
        shutil.copytree(path, place)
        write_manifest(
            place, read_manifest(place).model_copy(update={"created_ns": 10**18 + number * 10**14})
        )
        History(home / "h", is_new=True).add(place)
    questions = [
        ["history", "show", "--history", str(home / "h"), "--format", "json"],
        ["history", "list", "--history", str(home / "h"), "--format", "json"],
    ]
    try_all(home, questions, is_verified=False)


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = imported(tmp_path)
    run_dir = next((path / "runs").iterdir())
    (run_dir / os.fsdecode(b"\xff.txt")).write_text("words")
    for code, out, err in answers([*questions_of(path), ["verify", str(path)]]):
        assert "Traceback" not in err
        assert out, code
    assert "ff.txt" in out


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_one_line(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = imported(tmp_path)
    history = ["history", "add", str(path), "--history", str(tmp_path / "h")]
    report = ["report", str(path), "-o", str(tmp_path / "r.html")]

    def full(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", full)
    for words, file in ((history, "h/history.json"), (report, "r.html")):
        [(code, _, err)] = answers([words])
        assert code == 1
        assert err.splitlines()[-1] == f"iolab: {tmp_path / file}: {os.strerror(number)}"
        assert not (tmp_path / file).exists()
