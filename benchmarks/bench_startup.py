# SPDX-License-Identifier: Apache-2.0
"""`iolab --help` against a bare interpreter: what the command line costs before it does anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pairs import paired

IOLAB = Path(sys.executable).parent / "iolab"


def quiet(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    paired(
        "iolab --help",
        lambda: quiet(str(IOLAB), "--help"),
        lambda: quiet(sys.executable, "-c", "pass"),
        against="python -c pass",
        rounds=15,
    )
