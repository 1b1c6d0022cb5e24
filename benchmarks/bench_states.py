# SPDX-License-Identifier: Apache-2.0
"""Commands of two states of the project in the same rounds: the heat map of a fio log of 20 million
lines, import and report of 352 published runs, and of 29 copies of these, 10,208 runs.

IOLAB_BENCH_BEFORE is the `iolab` program of the earlier state. Each round runs both, in alternating
order. Prints median and range of elapsed time, CPU time and largest memory of each command, and the
ratio of the medians. The copies are imported and reported once; the report of them in the current
state alone. IOLAB_BENCH_ROUNDS (5), IOLAB_BENCH_LINES (20 million), IOLAB_BENCH_COPIES (29) and
IOLAB_BENCH_ONLY=heatmap,import,many choose less or more.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_heatmap import LINES, write_log
from bench_import import DATA, IOLAB, LAYOUT

BEFORE = os.environ.get("IOLAB_BENCH_BEFORE")
ROUNDS = int(os.environ.get("IOLAB_BENCH_ROUNDS", "5"))
ONLY = os.environ.get("IOLAB_BENCH_ONLY", "heatmap,import,many").split(",")
COPIES = int(os.environ.get("IOLAB_BENCH_COPIES", "29"))


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    elapsed_s: float
    cpu_s: float
    memory_mib: float


def run(program: str, arguments: Sequence[str]) -> Cost:
    """Run a command to its end; its output is discarded. RuntimeError where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{program} {' '.join(arguments)} failed: status {status}")
    return Cost(elapsed_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def compare(
    name: str,
    arguments: Callable[[], Sequence[str]],
    *,
    has_before: bool = True,
    rounds: int = ROUNDS,
) -> None:
    """Rounds of a command with both programs. `arguments` prepares each run."""
    programs = {"now": str(IOLAB)}
    if BEFORE and has_before:
        programs = {"before": BEFORE, **programs}
    costs: dict[str, list[Cost]] = {state: [] for state in programs}
    for number in range(rounds):
        states = list(programs)
        for state in states if number % 2 == 0 else reversed(states):
            costs[state].append(run(programs[state], arguments()))
    print(f"{name} ({rounds} rounds, load {os.getloadavg()[0]:.1f})")
    for title, unit, value_of in (
        ("elapsed", "s", lambda cost: cost.elapsed_s),
        ("CPU", "s", lambda cost: cost.cpu_s),
        ("memory", "MiB", lambda cost: cost.memory_mib),
    ):
        values = {state: sorted(map(value_of, costs[state])) for state in programs}
        texts = [
            f"{state} {statistics.median(numbers):.3g} {unit} ({numbers[0]:.3g} to {numbers[-1]:.3g})"
            for state, numbers in values.items()
        ]
        medians = [statistics.median(numbers) for numbers in values.values()]
        ratio = f"; {medians[1] / medians[0]:.2f} x" if len(medians) == 2 else ""
        print(f"  {title}: {', '.join(texts)}{ratio}", flush=True)


def imports(tree: Path, layout: str, target: Path) -> Callable[[], list[str]]:
    """Arguments of an import into a new directory at each call."""

    def arguments() -> list[str]:
        shutil.rmtree(target, ignore_errors=True)
        return ["import", str(tree), "--layout", layout, "-o", str(target)]

    return arguments


def copies(tree: Path, place: Path, count: int) -> Path:
    """A directory with so many hard-linked copies of a tree, as repetitions of its runs."""
    for number in range(count):
        shutil.copytree(tree, place / str(number), copy_function=os.link)
    return place


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as directory:
        place = Path(directory)
        if "heatmap" in ONLY:
            log = place / "plain_lat.1.log"
            write_log(log, LINES, offsets=False)
            compare("heatmap of a log", lambda: ["heatmap", str(log), "-o", str(place / "m.svg")])
            log.unlink()
        if "import" not in ONLY and "many" not in ONLY:
            return
        if not DATA.exists():
            print(f"left out: {DATA.name} is absent (set IOLAB_DATA to its directory)")
            return
        subprocess.run(["tar", "-xf", str(DATA), "-C", directory], check=True)
        tree = next(path for path in place.iterdir() if path.is_dir())
        target = place / "results"
        report = ["report", str(target), "-o", str(place / "report.html")]
        if "import" in ONLY:
            compare("import of 352 runs", imports(tree, LAYOUT, target))
            compare("report of 352 runs", lambda: report)
        if "many" in ONLY:
            runs = 352 * COPIES
            repeated = copies(tree, place / "copies", COPIES)
            layout = f"{{repetition:int}}/{LAYOUT}"
            compare(f"import of {runs:,} runs", imports(repeated, layout, target), rounds=1)
            compare(f"report of {runs:,} runs", lambda: report, has_before=False, rounds=1)


if __name__ == "__main__":
    main()
