# SPDX-License-Identifier: Apache-2.0
"""Recordings with every kind of file, what is asked of them, and files of them that are changed,
cut or deleted.

    python tests/support/mutations.py [HOW MANY [SEED [DELETED]]]

prints how many of the changes were told, refused, or harmless, and each that changed an answer
without a word. DELETED files are deleted together, then `verify --repair` runs; 0 stands for single
changes of any kind.
"""

from __future__ import annotations

import contextlib
import io as streams
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "unit/statistics")]

from iolab.cli.main import run  # noqa: E402
from iolab.recordings.ask.question import SECOND  # noqa: E402
from iolab.recordings.store.write.writer import RecordingWriter  # noqa: E402
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
SECONDS = 120.0
"""CPU time that all questions of a changed recording may take. A busy machine does not count."""
WAIT = 1800.0
"""How long they may wait."""
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


def deletions(
    recording: Path, together: int, how_many: int, seed: int
) -> list[tuple[Mutation, ...]]:
    """So many sets of files that are deleted together, in random order; none twice. Half of them
    contain a list or the lock, and a file of a segment."""
    chance = random.Random(seed)
    files = sorted(
        str(path.relative_to(recording)) for path in recording.rglob("*") if path.is_file()
    )
    lists = [name for name in files if name.endswith(".jsonl") or name == "lock"]
    segments = [name for name in files if name.endswith((".parquet", ".arrows"))]
    found: dict[tuple[str, ...], None] = {}
    if together == 1:
        found = {(name,): None for name in files}
    most = sum(1 for _ in itertools.combinations(files, together))
    while len(found) < min(how_many, most):
        if len(found) % 2 and together > 1:
            rest = chance.sample(segments, together - 1)
            found[tuple(sorted([chance.choice(lists), *rest]))] = None
        else:
            found[tuple(sorted(chance.sample(files, together)))] = None
    sets = [tuple(Mutation(name, "delete") for name in names) for names in found][:how_many]
    chance.shuffle(sets)
    return sets


def answers(recording: Path) -> list[tuple[int, str, str]]:
    """(exit code, what is printed, words) of each question."""
    found = []
    for question in QUESTIONS:
        out, words = streams.StringIO(), streams.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(words):
            code = run([question[0], str(recording), *question[1:]])
        printed = _without_sizes(out.getvalue()) if "show" in question else out.getvalue()
        found.append((code, printed, words.getvalue()))
    return found


def _without_sizes(text: str) -> str:
    """What `show` prints without bytes on disk, which a repair may change."""
    text = re.sub(r'"bytes": \{[^}]*\}', "", text)
    return re.sub(r"(?m)^on disk .*$", "", text)


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
        elif (
            (found, words) == (whole, said)
            or _has_equal_numbers(whole, found)
            or _is_coarser_drawing(whole, found)
        ):
            kinds.add("harmless")
        elif uncovered := _uncovered(whole, found):
            wrong.append(f"{name}: {uncovered}")
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


def _has_equal_numbers(before: str, after: str) -> bool:
    """Whether two answers in JSON have the same numbers.

    Notes may differ, such as by which tier answered. A heat map may have wider buckets where a note
    says so: each of its columns has the same count.
    """
    try:
        whole, changed = json.loads(before), json.loads(after)
    except ValueError:
        return False
    if not isinstance(whole, dict) or not isinstance(changed, dict) or "notes" not in whole:
        return False
    cells = {"column", "low", "high", "count"}
    is_coarser = any("buckets an octave" in note for note in changed.get("notes", ()))
    if whole.get("kind") != "heat" or not is_coarser:
        return whole == {**changed, "notes": whole["notes"]}
    plain = [
        {name: value for name, value in answer.items() if name not in {"notes", *cells}}
        for answer in (whole, changed)
    ]
    sums: list[Counter[int]] = [Counter(), Counter()]
    for answer, by_column in zip((whole, changed), sums, strict=True):
        for column, count in zip(answer["column"], answer["count"], strict=True):
            by_column[column] += count
    return plain[0] == plain[1] and sums[0] == sums[1]


def _is_coarser_drawing(before: str, after: str) -> bool:
    """Whether a drawn map has the same I/Os, time and losses, in wider buckets, which a note says."""

    def facts(drawing: str) -> list[str]:
        title, *rest = drawing.splitlines()
        return [
            title,
            *(line for line in rest if re.match(r" *(lost │|! |\d+ [a-zI][^┤]*$)", line)),
        ]

    note = re.search(r"^ +\d+ buckets an octave$", after, re.MULTILINE)
    if note is None or "I/Os in a cell" not in before:
        return False
    return facts(before) == [fact for fact in facts(after) if fact != note[0]]


def _uncovered(before: str, after: str) -> str:
    """A column of a series that has another value than before, though nothing says that its time is
    lost; empty where there is none."""
    try:
        whole, found = json.loads(before), json.loads(after)
    except ValueError:
        return ""
    if whole.get("kind") != "series" or whole["interval_ns"] != found.get("interval_ns"):
        return ""
    interval, lost = whole["interval_ns"], dict(found["lost_by_column"])
    lost |= {column: 0 for column, value in enumerate(found["values"]) if value is None}
    lost_before = {whole["t0_ns"] + at * interval: n for at, n in whole["lost_by_column"]}
    values = {whole["t0_ns"] + at * interval: value for at, value in enumerate(whole["values"])}
    for column, value in enumerate(found["values"]):
        time_ns = found["t0_ns"] + column * interval
        is_within = found["first_ns"] <= time_ns and time_ns + interval <= found["until_ns"]
        if (
            is_within
            and value is not None
            and value != values.get(time_ns)
            and column not in lost
            and time_ns not in lost_before
        ):
            return f"column {column} has {value}, not {values.get(time_ns)}, and no loss"
    return ""


def _difference(before: str, after: str) -> str:
    place = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0
    )
    return f"{before[max(0, place - 80) : place + 40]!r} became {after[max(0, place - 80) : place + 40]!r}"


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """TimeoutError in what computes or waits for too long."""
    limits = (
        (signal.ITIMER_PROF, signal.SIGPROF, SECONDS, "of CPU time"),
        (signal.ITIMER_REAL, signal.SIGALRM, WAIT, "of waiting"),
    )
    with contextlib.ExitStack() as stack:
        for timer, number, seconds, kind in limits:

            def end(*_: object, text: str = f"longer than {seconds:g} s {kind}") -> None:
                raise TimeoutError(text)

            stack.callback(signal.signal, number, signal.signal(number, end))
            stack.callback(signal.setitimer, timer, 0)
            signal.setitimer(timer, seconds)
        yield


def _repair(recording: Path) -> list[str]:
    """What is wrong with `verify --repair`: it crashes, or takes a finding that it did not repair
    for repaired."""
    out, words = streams.StringIO(), streams.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(words):
        code = run(["verify", str(recording), "--repair", "--format", "json"])
    if "Traceback" in words.getvalue() or code not in (0, 1, 3):
        return [f"verify --repair: {code} {words.getvalue()[-300:]}"]
    return []


def run_sets(
    folder: Path, sets: Sequence[Sequence[Mutation]], *, repair: bool, tell: bool = False
) -> tuple[Counter[str], list[str]]:
    """Outcomes by kind, and what was wrong, of changes that are made together. `repair`: ask again
    after `verify --repair`."""
    whole = folder / "r" if (folder / "r").is_dir() else written(folder)
    place = folder / f"mutated-{os.getpid()}"

    def fresh() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(whole, place)
        return place

    before = answers(fresh())
    assert all(code == 0 for code, *_ in before), before
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for number, changes in enumerate(sets):
        fresh()
        for mutation in changes:
            mutation.apply(place)
        words: list[str] = []
        try:
            with _bounded():
                kind, words = outcome(before, answers(place))
                if repair:
                    words += _repair(place)
                    after, more = outcome(before, answers(place))
                    words += [f"after a repair: {each}" for each in more]
                    kind = "silent" if words else kind
                    found[f"{after} after a repair"] += 1
        except TimeoutError as error:
            kind, words = "hang", [str(error)]
        except Exception as error:
            kind, words = "traceback", [f"{type(error).__name__}: {error}"]
        found[kind] += 1
        name = " + ".join(f"{each.how} {each.file} {each.place} {each.bit}" for each in changes)
        wrong += [f"{name}: {each}" for each in words]
        if tell and words:
            print(f"{name}: {words[0]}", flush=True)
        if tell and number % 50 == 49:
            print(f"{number + 1} of {len(sets)}: {dict(found)}", flush=True)
    return found, wrong


def run_all(
    folder: Path, how_many: int, seed: int, tell: bool = False, together: int = 0
) -> tuple[Counter[str], list[str]]:
    """`run_sets` of so many single changes, or of so many sets of `together` deletions, which are
    repaired as well."""
    whole = written(folder)
    if not together:
        sets = [(mutation,) for mutation in mutations(whole, how_many, seed)]
        return run_sets(folder, sets, repair=False, tell=tell)
    return run_sets(folder, deletions(whole, together, how_many, seed), repair=True, tell=tell)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]))
    numbers = [*map(int, sys.argv[1:]), *(1000, 1, 0)[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory(prefix="iolab-mutations-") as name:
        counted, _ = run_all(Path(name), numbers[0], numbers[1], tell=True, together=numbers[2])
        print(dict(counted))
