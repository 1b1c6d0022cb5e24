"""Recordings with every kind of file, what is asked of them, and files of them that are changed,
cut or deleted.

    python tests/support/mutations.py [HOW MANY [SEED]]

prints how many of the changes were told, refused, or harmless, and each that changed an answer
without a word.
"""

from __future__ import annotations

import contextlib
import io as streams
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "unit/statistics")]

from iolab.cli.main import run  # noqa: E402
from iolab.recording.write.writer import RecordingWriter  # noqa: E402
from iolab.statistics.language.intervals import SECOND  # noqa: E402
from support.kept_data import START, aged, busy, io, make  # noqa: E402

KEPT = ("io.ops[op]", "io.bytes[device]", "io.ops[latency]", "io.utilization[device]")
QUESTIONS = (
    ["query", "io.ops", "--interval", "1s", "--format", "json"],
    ["query", "io.ops[device]", "--interval", "1s", "--format", "json"],
    ["query", "io.ops[latency]", "--interval", "1s", "--format", "json"],
    ["query", "io.ops[file]", "--format", "json"],
    ["query", "io.ops[process=fio][latency]", "--format", "json"],
    ["query", "io.bytes", "--format", "json"],
    ["query", "io.ops[op]", "--format", "json"],
    ["query", "io.utilization[device]", "--format", "json"],
    ["show", "--format", "json"],
    ["show"],
    ["heatmap"],
)
TOLD = (
    "damaged",
    "missing",
    "can't be believed",
    "no line lists it",
    "were written",
    "its checksum",
    "doesn't say",
)


@dataclass(frozen=True)
class Mutation:
    """One change of one file: a bit flipped at a place, cut to so many bytes, or deleted."""

    file: str
    how: str
    place: int = 0
    bit: int = 0

    def apply(self, directory: Path) -> None:
        path = directory / self.file
        if self.how == "delete":
            path.unlink()
            return
        data = bytearray(path.read_bytes())
        if self.how == "cut":
            del data[self.place :]
        else:
            data[self.place] ^= 1 << self.bit
        # another file, as a copy that went wrong leaves it
        path.unlink()
        path.write_bytes(data)


def write(directory: Path) -> None:
    """A recording of sealed segments with what is kept of them, then one writer that dies with hot
    files."""
    make(directory / "whole", KEPT, segments=6, seconds=20, per_s=40, counters=True)
    aged(directory / "whole", directory / "r", 4)
    shutil.rmtree(directory / "whole")
    writer = RecordingWriter.reopen(directory / "r", live=False)
    for number in range(3):
        writer.process(100 + number, "fio", f"fio --name={number}", START)
        writer.mark(f"mark {number}", START + number * SECOND, START + (number + 1) * SECOND)
        writer.loss("unpaired", "block", START + number * SECOND, START + (number + 1) * SECOND, 3)
        writer.loss("damaged", "block", None, None, 2, f"words {number}")
    for number in range(5):
        writer.append_events(io(START + (120 + number) * SECOND, 1, 40))
        writer.append_samples(busy(START + (120 + number) * SECOND, 1))
        writer.tick(START + (121 + number) * SECOND)
    os._exit(9)


def written(directory: Path) -> Path:
    """The recording of `write`, of a process that is gone."""
    subprocess.run([sys.executable, __file__, "--write", str(directory)], check=False)
    return directory / "r"


def mutations(recording: Path, how_many: int, seed: int) -> Iterator[Mutation]:
    """So many, spread over all files; of each file that holds anything some are flipped bits, cuts,
    and its deletion."""
    chance = random.Random(seed)
    files = sorted(
        str(path.relative_to(recording)) for path in recording.rglob("*") if path.is_file()
    )
    for number in range(how_many):
        file = files[number % len(files)]
        size = (recording / file).stat().st_size
        how = chance.choices(("flip", "cut", "delete"), (0.7, 0.2, 0.1))[0] if size else "delete"
        yield Mutation(file, how, chance.randrange(size) if size else 0, chance.randrange(8))


def answers(recording: Path) -> list[tuple[int, str, str]]:
    """(exit code, what is printed, words) of each question."""
    found = []
    for question in QUESTIONS:
        out, words = streams.StringIO(), streams.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(words):
            code = run([question[0], str(recording), *question[1:]])
        found.append((code, out.getvalue(), words.getvalue()))
    return found


def outcome(
    before: list[tuple[int, str, str]], after: list[tuple[int, str, str]]
) -> tuple[str, list[str]]:
    """("harmless", "told", "refused" or "silent"), and what is wrong, if anything."""
    wrong, kinds = [], set()
    for question, (_, whole, said), (code, found, words) in zip(
        QUESTIONS, before, after, strict=True
    ):
        name = " ".join(question)
        if "Traceback" in words or (code and words.count("\n") != 1):
            wrong.append(f"{name}: {words[-300:]}")
        elif code:
            kinds.add("refused")
        elif (found, words) == (whole, said):
            kinds.add("harmless")
        elif any(
            word in found + words and (found + words).count(word) > (whole + said).count(word)
            for word in TOLD
        ):
            kinds.add("told")
        else:
            wrong.append(f"{name}: {_difference(whole, found)}")
    return "silent" if wrong else next(
        each for each in ("refused", "told", "harmless") if each in kinds
    ), wrong


def _difference(before: str, after: str) -> str:
    place = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0
    )
    return f"{before[max(0, place - 80) : place + 40]!r} became {after[max(0, place - 80) : place + 40]!r}"


def run_all(
    folder: Path, how_many: int, seed: int, tell: bool = False
) -> tuple[Counter[str], list[str]]:
    """Outcomes by kind, and what was wrong."""
    whole = written(folder)
    place = folder / "mutated"

    def fresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(whole, place)
        return place

    before = answers(fresh())
    assert all(code == 0 for code, *_ in before), before
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for number, mutation in enumerate(mutations(whole, how_many, seed)):
        mutation.apply(fresh())
        try:
            kind, words = outcome(before, answers(place))
        except Exception as error:
            kind, words = "traceback", [f"{type(error).__name__}: {error}"]
        found[kind] += 1
        wrong += [f"{mutation}: {each}" for each in words]
        if tell and words:
            print(f"{mutation}: {words[0]}", flush=True)
        if tell and number % 50 == 49:
            print(f"{number + 1} of {how_many}: {dict(found)}", flush=True)
    return found, wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]))
    with tempfile.TemporaryDirectory(prefix="iolab-mutations-") as name:
        counted, _ = run_all(
            Path(name),
            int(sys.argv[1]) if sys.argv[1:] else 1000,
            int(sys.argv[2]) if sys.argv[2:] else 1,
            tell=True,
        )
        print(dict(counted))
