# SPDX-License-Identifier: Apache-2.0
"""Files of a recording that are replaced by FIFOs, devices, directories and endless files: nothing
hangs, nothing is read without end, and the damage is reported."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.cli.main import run
from iolab.recordings.store.read.recording import Recording
from support.mutations import written

LISTS = (
    "segments.jsonl",
    "losses/losses.jsonl",
    "names/processes.jsonl",
    "marks.jsonl",
    "histograms/files.jsonl",
    "lock",
)
OTHERS = (
    "events/000004.parquet",
    "samples/000004.parquet",
    "histograms/1s/io.latency/000004.parquet",
    "histograms/1s/io.latency/000001.parquet",
    "histograms/1s/io.ops-op.0c92820e/000004-000004.parquet",
    "histograms/keep.json",
    "histograms/kept.json",
    "hot/000007.events.arrows",
    "hot/000007.samples.arrows",
)
SECONDS = 20.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def recording(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "r"))


@contextlib.contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """End what hangs, and refuse it more than 4 GiB of memory."""

    def end(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before, limits = signal.signal(signal.SIGALRM, end), resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (4 << 30), limits[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)


def replace(path: Path, kind: str) -> None:
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(50 << 30)


def said(*words: str) -> tuple[int, str]:
    out, errors = io.StringIO(), io.StringIO()
    with bounded(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run(list(words))
    assert "Traceback" not in errors.getvalue()
    return code, out.getvalue() + errors.getvalue()


@pytest.mark.parametrize("kind", ["fifo", "zero", "directory", "sparse"])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_is_no_regular_file_is_damaged(name: str, kind: str, recording: Path) -> None:
    replace(recording / name, kind)
    for question in (["query", str(recording), "io.ops"], ["show", str(recording)]):
        code, words = said(*question)
        assert code == 0, words
        assert name in words
    code, words = said("verify", str(recording))
    assert code == 1
    assert name in words


@pytest.mark.parametrize("kind", ["fifo", "sparse"])
@pytest.mark.parametrize("name", OTHERS)
def test_any_file_that_is_no_regular_file_is_reported(
    name: str, kind: str, recording: Path
) -> None:
    replace(recording / name, kind)
    for question in (["query", str(recording), "io.ops"], ["show", str(recording)]):
        assert name.rpartition("/")[2] in said(*question)[1]
    code, words = said("verify", str(recording))
    assert code != 0
    assert name.rpartition("/")[2] in words


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse"])
def test_a_recording_without_its_facts_is_refused(kind: str, recording: Path) -> None:
    replace(recording / "recording.json", kind)
    for word in ("query", "show", "verify"):
        code, words = said(word, str(recording), *(["io.ops"] if word == "query" else []))
        assert code != 0
        assert str(recording) in words


def test_names_that_are_a_fifo_leave_the_events(recording: Path) -> None:
    before = Recording(recording).summary()
    replace(recording / "names/processes.jsonl", "fifo")
    with bounded():
        after = Recording(recording).summary()
    assert (after.events, after.samples) == (before.events, before.samples)
    assert not after.commands
