# SPDX-License-Identifier: Apache-2.0
"""Results that rot: whatever byte changes, the answers are the same, or it is told, or refused in
one line.

A few of each kind by default; `IOLAB_MUTATIONS=350,600` makes so many of evidence and of caches.
What became of them is printed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run
from iolab.studies.results.evidence.files import (
    OWN_FILES,
    PLAN_FILE,
    RUNS,
    read_plan,
    run_directories,
    write_plan,
)
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.cache import FILE as OBSERVATIONS
from iolab.studies.results.open.cache import LIST
from iolab.studies.results.open.cache_details import HISTOGRAMS, SERIES
from iolab.studies.results.open.verify import verify_results
from support.fio_files import job, output

EVIDENCE, CACHES = (int(number) for number in os.environ.get("IOLAB_MUTATIONS", "40,60").split(","))
KINDS = ("flip", "cut", "delete", "append")
TOLD = ("damaged-file", "altered-file", "no-plan")
"""Codes of reasons that tell of damage."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for variant, iops in (("old", 1000.0), ("new", 1200.0)):
        for repetition in (1, 2):
            place = tmp_path / "tree" / variant / f"rep{repetition}"
            place.mkdir(parents=True)
            (place / "fio.json").write_text(output(job(jobs=1, iops=iops + repetition)))
            (place / "stderr.txt").write_text("words\n")
            (place / "fio_iops.log").write_text(
                "".join(f"{second * 1000}, {iops + second}, 1, 0, 0\n" for second in range(1, 11))
            )
    import_tree(tmp_path / "tree", "{variant}/rep{repetition:int}", tmp_path / "out")
    return tmp_path / "out"


def answers(directory: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, list[Any]]:
    """Exit code, what was said, and the documents of `show` and `compare`."""
    documents: list[Any] = []
    for words in (
        ["show", str(directory), "--format", "json"],
        ["compare", str(directory), "--format", "json"],
    ):
        capfd.readouterr()
        code = run(words)
        out, err = capfd.readouterr()
        if code:
            return code, err, documents
        documents.append(json.loads(out))
    return 0, err, documents


def mutate(path: Path, kind: str, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    place = chance.randrange(len(data))
    if kind == "flip":
        data[place] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[place:]
    elif kind == "append":
        data += chance.randbytes(chance.randrange(1, 9))
    else:
        path.unlink()
        return
    path.write_bytes(data)


def outcome(directory: Path, whole: list[Any], capfd: pytest.CaptureFixture[str]) -> str:
    code, said, found = answers(directory, capfd)
    assert "Traceback" not in said, said
    if code:
        assert said.count("\n") == 1, said
        return "refused in one line"
    if found == whole:
        return "same answers"
    codes = {reason["code"] for each in found[0]["runs"] for reason in each["verdict"]["reasons"]}
    return "told" if codes & set(TOLD) else "SILENT"


def tried(
    directory: Path, files: list[Path], count: int, capfd: pytest.CaptureFixture[str], seed: int
) -> Counter[tuple[str, str]]:
    code, said, whole = answers(directory, capfd)
    assert code == 0, said
    kept = directory.with_name("kept")
    shutil.copytree(directory, kept)
    chance = random.Random(seed)
    counted: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        path, kind = chance.choice(files), KINDS[number % len(KINDS)]
        status = path.stat()
        mutate(path, kind, chance)
        if path.exists():
            # as a disk does it: no time of change tells
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        changed = (
            not path.exists()
            or path.read_bytes() != (kept / path.relative_to(directory)).read_bytes()
        )
        result = outcome(directory, whole, capfd)
        assert result != "SILENT", (
            f"{kind} of {path.relative_to(directory)} (seed {seed}, {number})"
        )
        if changed and path.name not in (LIST, OBSERVATIONS, SERIES, HISTOGRAMS):
            assert verify_results(directory).findings, (
                f"{kind} of {path.relative_to(directory)} isn't found by a check"
            )
        counted[kind, result] += 1
        shutil.copy2(kept / path.relative_to(directory), path)
        for name in (LIST, OBSERVATIONS, SERIES, HISTOGRAMS):
            (directory / name).unlink(missing_ok=True)
            if (kept / name).exists():
                shutil.copy2(kept / name, directory / name)
    return counted


def told(what: str, counted: Counter[tuple[str, str]]) -> None:
    print(
        f"\n{sum(counted.values())} mutations of {what}: "
        + "; ".join(
            f"{kind}: {result} {number}" for (kind, result), number in sorted(counted.items())
        )
    )


def test_evidence_that_changed_is_told(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in (LIST, OBSERVATIONS, SERIES, HISTOGRAMS):
        (results / name).symlink_to(
            "/nonexistent/cache"
        )  # none is kept, so that evidence is read each time
    shutil.copytree(
        results, results.with_name("plain"), ignore=shutil.ignore_patterns("*.parquet", LIST)
    )
    directory = results.with_name("plain")
    files = sorted(path for path in (directory / RUNS).rglob("*") if path.is_file())
    counted: Counter[tuple[str, str]] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "iolab.studies.results.open.cache.is_foreign", lambda directory: True
        )  # no cache is written
        counted = tried(directory, [*files, directory / "manifest.json"], EVIDENCE, capfd, 1)
    with capfd.disabled():
        told("evidence, plans and manifest", counted)
    assert {result for _, result in counted} >= {"told"}


@pytest.mark.slow
def test_caches_that_changed_are_made_anew(
    results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answers(results, capfd)
    files = [results / name for name in (LIST, OBSERVATIONS, SERIES, HISTOGRAMS)]
    counted = tried(results, files, CACHES, capfd, 2)
    with capfd.disabled():
        told("caches", counted)
    assert {result for _, result in counted} == {"same answers"}


@pytest.mark.parametrize("kind", ["fifo", "zero", "directory", "sparse"])
@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "journal.jsonl",
        "environment.json",
        "hosts.json",
        "run.json",
        "target.json",
        "fio.json",
        "marks.jsonl",
        "log_ios.json",
        LIST,
        OBSERVATIONS,
    ],
)
def test_special_and_endless_files_are_refused_or_told_at_once(
    name: str, kind: str, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    of_run = name in ("run.json", "target.json", "fio.json", "marks.jsonl", "log_ios.json")
    path = (next(iter(sorted((results / RUNS).iterdir()))) if of_run else results) / name
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 42)
    code, said, found = answers(results, capfd)
    assert "Traceback" not in said
    assert said.count("\n") <= 1 or code == 0
    if not code and name in ("run.json", "fio.json"):
        assert found[0]["runs"][0]["verdict"]["level"] == "INVALID"


ODD: tuple[Any, ...] = (
    None,
    3,
    "x",
    [],
    [1],
    {},
    {"a": 1},
    {"a": {"b": [1, {"c": None}]}},
    True,
    -1,
    "\x1b[2J",
)
FIELDS = (
    "memory_bytes",
    "cpus",
    "temperatures_celsius",
    "block_devices",
    "devices",
    "controllers",
    "targets",
    "tools",
    "revisions",
    "module_parameters",
    "written_bytes",
    "taken_bytes",
    "fill",
    "kind",
    "version",
    "recording",
    "label",
    "events",
    "latency",
    "problem",
    "read",
    "write",
    "properties",
    "status",
)


def nonsense(chance: random.Random, depth: int = 0) -> Any:
    """A value of any kind, or an object of some."""
    if depth > 2 or chance.random() < 0.5:
        return chance.choice(ODD)
    return {chance.choice(FIELDS): nonsense(chance, depth + 1) for _ in range(4)}


@pytest.mark.parametrize("seed", range(6))
def test_facts_of_any_kind_are_read_or_left_out(
    seed: int, results: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Well-formed JSON with digests that agree: somebody may have written it so."""
    chance = random.Random(seed)
    for place in (results, *run_directories(results)):
        for name in sorted(OWN_FILES - {PLAN_FILE}):
            facts = {field: nonsense(chance) for field in FIELDS}
            document = {
                "schema": 1,
                "fingerprint": nonsense(chance),
                "facts": chance.choice([nonsense(chance), facts]),
                **facts,
            }
            (place / name).write_text(json.dumps(document))
        if place != results:
            write_plan(place, read_plan(place), durable=False)
    for words in (
        ["show", str(results)],
        ["show", str(results), "--format", "json"],
        ["compare", str(results)],
        ["report", str(results), "-o", str(tmp_path / "report.html")],
    ):
        capfd.readouterr()
        assert run(words) == 0, capfd.readouterr().err
