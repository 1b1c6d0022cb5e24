# SPDX-License-Identifier: Apache-2.0
"""What is printed goes through pipes: a reader that has seen enough is no failure, whichever
command prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipes") / "r"
    with RecordingWriter.create(
        path, host="here", clock="realtime", origin={"kind": "record"}, live=False
    ) as writer:
        for number in range(40):
            writer.append_events(events(500, number, start_ns=START + number * 100 * SECOND))
    return path


def into_nothing(*words: str) -> tuple[int, str]:
    """Exit code and words of a command whose reader has gone already."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "iolab.cli", *words],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            cwd=ROOT,
        )
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("query", "--help"),
        ("query", "{}", "io.ops"),
        ("query", "{}", "io.ops[process]", "--format", "csv"),
        ("query", "{}", "io.ops[latency]", "--format", "json"),
        ("query", "{}", "io.ops", "--follow"),
        ("show", "{}"),
        ("show", "{}", "--format", "json"),
        ("heatmap", "{}"),
        ("keep", "list", "{}", "--format", "json"),
        ("keep", "limits", "{}"),
        ("catalog",),
        ("catalog", "statistics", "{}"),
        ("rig", "list", "--format", "json"),
    ],
    ids=" ".join,
)
def test_a_reader_that_has_gone_is_no_failure(words: tuple[str, ...], recording: Path) -> None:
    assert into_nothing(*(word.format(recording) for word in words)) == (0, "")


def test_the_first_line_is_enough(recording: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m iolab.cli query {recording} 'io.ops[process]' --interval 1s --format csv | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("time")


def test_what_went_wrong_shows_in_the_exit_code_though_nobody_reads_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "iolab.cli", "keep", "list", str(tmp_path)],
            stderr=writing,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert done.returncode == 3


CALLS = """
import os, sys
from iolab.cli import main
from iolab.cli.base.output import redraw, say
class Group:
    def main(self, **_):
        redraw('a line') if {tty} else say('a line')
        say('words')
        say('more words')
        if {printed}:
            sys.stdout.write('held back')
        return 5
main.group = Group()
sys.exit(main.run([]))
"""


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("closed", ["", "1", "2", "12"])
def test_words_end_nothing_and_the_exit_code_stays(tty: bool, printed: bool, closed: str) -> None:
    """`closed`: descriptors that are not there at all; of the others the reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    code = CALLS.format(tty=tty and "2" not in closed, printed=printed and "1" not in closed)
    shut = " ".join(f"{number}>&-" for number in closed)
    try:
        # -E: what is printed is held back, whatever the environment says
        done = subprocess.run(
            ["bash", "-c", f'exec "$0" -E -c "$1" {shut}', sys.executable, code],
            stdout=writing,
            stderr=writing,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert done.returncode == 5


def test_a_study_goes_on_where_nobody_reads_its_words() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from iolab.cli.study.progress import Words; w = Words(); w.print('one'); w.print('two'); print('data'); sys.exit(5)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=writing,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stdout) == (5, "data\n")


def test_another_pipe_that_breaks_is_one(monkeypatch: pytest.MonkeyPatch, recording: Path) -> None:
    from iolab.cli.main import run
    from iolab.recordings.ask.kept import manage

    def breaks(_: Path) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(manage, "list_kept", breaks)
    with pytest.raises(BrokenPipeError):
        run(["keep", "list", str(recording)])
