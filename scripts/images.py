#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renew the pictures of the README and of the guide of the worksheet.

`make images RESULTS=DIR`, or `.venv/bin/python scripts/images.py [-o docs/images] [DIR]`. The
worksheet shows the recording of the tour, which is made up. The report is that of results, such as
an import of the archive of OpenZFS #6566; without results its picture stays.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from looks import (  # noqa: E402
    CHROMIUM,
    LATENCY,
    WORKSHEET,
    Scene,
    mark_slow,
    service,
    settle,
    show_colours,
)
from tour import record_tour  # noqa: E402

SIZE = {"width": 1400, "height": 860}
HOST = "db-server"


def show_who(page: Any) -> None:
    """Mark slow I/Os, and show the tables of their names."""
    mark_slow(page)
    settle(page)
    page.locator(".who").first.evaluate(
        "panel => scrollBy(0, panel.getBoundingClientRect().bottom - innerHeight)"
    )


PICTURES: dict[str, Scene] = {
    "odd": WORKSHEET["odd"],
    "worksheet": ((LATENCY, "io.bytes[process]"), show_colours),
    "worksheet-who": ((LATENCY,), show_who),
}
"""File name to the scene that it shows."""


def take(browser: Any, url: str, address: str, scene: Scene | None, file: Path) -> None:
    """Write the picture of a scene; of a page as it is without one."""
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(url)
    page.goto(f"{urlsplit(url).scheme}://{urlsplit(url).netloc}{address}")
    if scene:
        scene[1](page)
    settle(page)
    page.evaluate("document.activeElement?.blur()")
    page.mouse.move(0, 0)
    page.screenshot(path=file)
    page.close()


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="results of the report's picture")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/images")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        recording = record_tour(Path(name), HOST)
        with service([recording], Path(name) / "home") as url:
            for picture, scene in PICTURES.items():
                graphs = "".join(f"&graph={quote(statistic)}" for statistic in scene[0])
                address = f"/worksheet#recording={HOST}{graphs}"
                take(browser, url, address, scene, args.output / f"{picture}.png")
        if args.results:
            with service([args.results], Path(name) / "home") as url:
                address = f"/report/{quote(args.results.resolve().name)}"
                take(browser, url, address, None, args.output / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
