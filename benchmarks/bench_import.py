# SPDX-License-Identifier: Apache-2.0
"""Import and report of the 352 runs of ZFS on Linux #6566 against the least that any reader must do
with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import paired

ROOT = Path(__file__).parent.parent
DATA = (
    Path(os.environ.get("IOLAB_DATA", ROOT.parent / "shared" / "data"))
    / "zfsonlinux-6566-perf-v2.tar.xz"
)
IOLAB = Path(sys.executable).parent / "iolab"
LAYOUT = "{submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs"
LEAST = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    if path.is_file() and "results" not in path.parts:
        data = path.read_bytes()
        json.loads(data) if path.suffix == ".json" else data.split()
"""


def quiet(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def main() -> None:
    if not DATA.exists():
        print(f"left out: {DATA.name} is absent (set IOLAB_DATA to its directory)")
        return
    with tempfile.TemporaryDirectory() as scratch:
        quiet("tar", "-xf", str(DATA), "-C", scratch)
        tree = next(path for path in Path(scratch).iterdir() if path.is_dir())
        results = Path(scratch) / "results"

        def imported(*options: str) -> None:
            shutil.rmtree(results, ignore_errors=True)
            quiet(str(IOLAB), "import", str(tree), "--layout", LAYOUT, "-o", str(results), *options)

        def least() -> None:
            quiet(sys.executable, "-c", LEAST, str(tree))

        paired("iolab import", imported, least, against="reading the files and json.loads")
        report = results / "report.html"
        paired(
            "iolab report",
            lambda: quiet(str(IOLAB), "report", str(results), "-o", str(report)),
            least,
            against="reading the files and json.loads",
        )
        shown = json.loads(
            subprocess.run(
                [str(IOLAB), "show", str(results), "--format", "json"],
                capture_output=True,
                check=True,
            ).stdout
        )
        print(f"report: {report.stat().st_size / 1e6:.2f} MB for {len(shown['runs'])} runs")


if __name__ == "__main__":
    main()
