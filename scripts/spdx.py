# SPDX-License-Identifier: Apache-2.0
"""Check that every source file of the project names its licence in its first lines.

    spdx.py         list the files without the line; the exit code is 1 if there is one
    spdx.py --add   add the line

Generated files, test data and the recipes of rigs, whose digest names an image, have none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = "SPDX-License-Identifier: Apache-2.0"
COMMENTS = {
    ".css": ("/* ", " */"),
    ".py": ("# ", ""),
    ".pyi": ("# ", ""),
    ".rs": ("// ", ""),
    ".sh": ("# ", ""),
    ".ts": ("// ", ""),
    ".tsx": ("// ", ""),
}
"""Suffix of a source file to what begins and ends a comment line."""
EXCLUDED = ("web/src/generated/", "tests/data/", "rigs/")


def main() -> int:
    """Exit code."""
    missing = [path for path in sources(ROOT) if not has_line(path.read_text("utf-8"))]
    if "--add" in sys.argv[1:]:
        for path in missing:
            path.write_text(with_line(path.read_text("utf-8"), path.suffix), "utf-8")
        return 0
    for path in missing:
        print(f"{path.relative_to(ROOT)}:1: no line '{LINE}'; scripts/spdx.py --add adds it")
    return 1 if missing else 0


def sources(root: Path) -> list[Path]:
    """Own source files that git knows or would add: by suffix, and scripts by their first line."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = [root / name for name in sorted(set(listed.split("\0"))) if name]
    return [
        path
        for path in paths
        if not str(path.relative_to(root)).startswith(EXCLUDED)
        and path.is_file()
        and (path.suffix in COMMENTS or (not path.suffix and _is_script(path)))
    ]


def has_line(text: str) -> bool:
    """Whether one of the first three lines names the licence."""
    return any(LINE in line for line in text.split("\n", 3)[:3])


def with_line(text: str, suffix: str) -> str:
    """A source text with the line at its begin, after `#!`."""
    begin, end = COMMENTS.get(suffix, ("# ", ""))
    first, newline, rest = text.partition("\n")
    line = f"{begin}{LINE}{end}\n"
    return f"{first}{newline}{line}{rest}" if first.startswith("#!") else line + text


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


if __name__ == "__main__":
    sys.exit(main())
