# SPDX-License-Identifier: Apache-2.0
"""Renew the guides that are made of measurements: run their studies, write their reports and
pictures, fill in their figures.

    scripts/guides.py --host rig:rig-guides [PAGE...]      (`make guides` starts the machine first and takes it down)

A page is its own template. `<!-- study: studies/x.toml FLAGS -->` names what is run; what stands
between `<!-- part: KIND ... -->` and `<!-- end -->` is made anew, everything else was written by
hand and stays. Results that are there are taken as they are; what a study lacks of its runs,
because it was stopped, is run.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from guide_parts import PARTS

from iolab.studies.results.open.results import Results

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / "docs/guides"
IMAGES = ROOT / "docs/images"
STUDY = re.compile(r"^<!-- study: (\S+)(?: (.+?))? -->$", re.MULTILINE)
REPORT = re.compile(r"^<!-- report: (.*?) -->$", re.MULTILINE)
PART = re.compile(
    r"^(<!-- part: (\S+)(?: ([^\n]+?))? -->\n).*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)


def pages() -> list[Path]:
    """Guides that name a study of theirs."""
    return [page for page in sorted(GUIDES.glob("*.md")) if STUDY.search(page.read_text("utf-8"))]


def measured(page: Path, results: Path, host: str) -> Path:
    """Run what the page's study lacks; its results directory."""
    study, flags = _study(page)
    place = results / Path(study).stem
    command = [
        "run",
        study,
        "--host",
        host,
        "--destructive",
        "--trust",
        "-o",
        str(place),
        *shlex.split(flags),
    ]
    if place.exists():
        command = [
            "run",
            study,
            "--host",
            host,
            "--destructive",
            "--trust",
            "-o",
            str(place),
            "--resume",
        ]
    _iolab(command)
    return place


def filled(page: Path, results: Path, images: Path) -> str:
    """The page's text with every part made anew from its results; pictures go to `images`."""
    found = Results(results)
    made: list[Path] = []

    def part(match: re.Match[str]) -> str:
        kind, words = match[2], shlex.split(match[3] or "")
        if kind not in PARTS:
            raise SystemExit(
                f"{page.name}: there is no part '{kind}'; there are: {', '.join(PARTS)}"
            )
        text = PARTS[kind](found, words, _pictures(page, images, made))
        return f"{match[1]}{text.rstrip()}\n<!-- end -->"

    return PART.sub(part, page.read_text("utf-8"))


def _pictures(page: Path, images: Path, made: list[Path]) -> Callable[[str, str, str], str]:
    """What a part calls with a picture's name, its SVG and its words; the line that shows it."""

    def write(name: str, svg: str, words: str) -> str:
        path = images / f"{page.stem}-{name}.svg"
        if path in made:
            raise SystemExit(f"{page.name}: two pictures are called {path.name}")
        made.append(path)
        path.write_text(svg, "utf-8")
        return f"![{words}](../images/{path.name})"

    return write


def _study(page: Path) -> tuple[str, str]:
    match = STUDY.search(page.read_text("utf-8"))
    assert match is not None
    return match[1], match[2] or ""


def _iolab(words: list[str]) -> None:
    print(f"iolab {shlex.join(words)}", file=sys.stderr)
    done = subprocess.run([sys.executable, "-m", "iolab.cli", *words], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> None:
    """Parse the command line and renew the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "pages",
        nargs="*",
        type=Path,
        metavar="PAGE",
        help="guides to renew; default all that are made of measurements",
    )
    parser.add_argument(
        "--host",
        help="where to measure, such as rig:rig-guides; without it only results that are there are written down",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "results/guides",
        help="where results are kept (%(default)s)",
    )
    asked = parser.parse_args()
    for page in [page.resolve() for page in asked.pages] or pages():
        begin = time.monotonic()
        results = asked.results.resolve() / Path(_study(page)[0]).stem
        if asked.host is not None:
            results = measured(page, asked.results.resolve(), asked.host)
        elif not results.exists():
            print(f"{page.name}: no results in {results}; --host measures", file=sys.stderr)
            continue
        report = REPORT.search(page.read_text("utf-8"))
        _iolab(
            [
                "report",
                str(results),
                "-o",
                str(results / "report.html"),
                *(shlex.split(report[1]) if report else []),
            ]
        )
        page.write_text(filled(page, results, IMAGES), "utf-8")
        print(f"{page.name}: renewed in {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
