#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of all pages, at four widths, light and dark, to look at one by one.

`make looks PATHS="REC RESULTS"`, or `.venv/bin/python scripts/looks.py [-o DIR] PATH...`. The paths
are recordings, results and archives, as `iolab view` takes them, or reports (`.html`). Each scene
is a state of a page, such as a menu or a comparison. The map of a notebook is a page of its own.
A picture is `DIR/SCENE-WIDTH-SCHEME.png`. A page that is wider than its window, and an error of
its script, end the command with code 1. No file of the tree changes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

CHROMIUM = "/usr/bin/chromium"
SIZES = {390: 844, 1440: 900, 1920: 1080, 3840: 2160}
SCHEMES = ("light", "dark")
LATENCY, OPS = "io.ops[latency]", "io.ops[op]"
REST_MS = 900
"""Time without a request after which a page is complete."""
WHOLE = 1440
"""Reports have a picture from top to end up to this width: a larger one takes long to draw."""


def settle(page: Any) -> None:
    """Wait until answers arrived and are drawn."""
    page.wait_for_timeout(200)
    page.evaluate(
        """rest => new Promise(done => {
            let timer = setTimeout(done, rest);
            const observer = new PerformanceObserver(() => { clearTimeout(timer); timer = setTimeout(done, rest); });
            observer.observe({type: "resource"});
            setTimeout(done, 20000);
        })""",
        REST_MS,
    )


def _graph(page: Any, statistic: str = LATENCY) -> Any:
    graph = page.locator(f'section[data-statistic="{statistic}"]').first
    graph.locator("canvas").first.wait_for()
    settle(page)
    return graph


def _drag(page: Any, graph: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over a plot, from and to shares of its width and height."""
    graph.scroll_into_view_if_needed()
    box = graph.locator("canvas").first.bounding_box()
    left = 84 if box["width"] > 500 else 60
    points = [
        (box["x"] + left + (box["width"] - left - 90) * x, box["y"] + 6 + (box["height"] - 42) * y)
        for x, y in (start, end)
    ]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=5)
    page.mouse.up()


def mark_slow(page: Any) -> None:
    """Mark slow I/Os of the first map."""
    _drag(page, _graph(page), (0.6, 0.02), (0.85, 0.5))
    page.locator(".who table").first.wait_for()


def _odd(page: Any) -> None:
    _graph(page)
    page.locator("#odd").click()
    page.locator(".odd:not([aria-busy=true])").wait_for(timeout=60_000)
    settle(page)


def _listed(page: Any) -> None:
    mark_slow(page)
    page.locator(".list-ios").first.click()
    page.locator(".io-table tbody tr").first.wait_for()


def _layers(page: Any) -> None:
    _listed(page)
    page.locator(".io-table tbody th button").first.click()
    page.locator(".io-line table tbody tr").first.wait_for()


def _value_menu(page: Any) -> None:
    _graph(page, OPS).locator(".values .handle, .values .drill").first.click()
    page.locator("[role=menu]").wait_for()


def _key(key: str, wait_for: str, statistic: str = LATENCY) -> Callable[[Any], None]:
    def act(page: Any) -> None:
        graph = _graph(page, statistic)
        graph.locator("h2").first.click()
        page.keyboard.press(key)
        page.locator(wait_for).first.wait_for()

    return act


def _searched(page: Any) -> None:
    _key("+", "#statistic")(page)
    page.fill("#statistic", "latency by disk")


def _percentiles(page: Any) -> None:
    _graph(page).locator("select.painter").select_option(label="percentiles")


def show_colours(page: Any) -> None:
    """Show each device of the first map in its colour."""
    graph = _graph(page)
    graph.locator("select.by").select_option("device")
    graph.locator("h2").first.click()
    page.keyboard.press("r")


def _preview(page: Any) -> None:
    _key("N", "dialog[open], .alert-form, form")(page)


def _welcome(page: Any) -> None:
    page.locator(".welcome .cards").wait_for()
    settle(page)
    if page.locator(".odd").count():
        page.locator(".odd:not([aria-busy=true])").wait_for(timeout=60_000)


def _start(page: Any) -> None:
    page.locator("main h2").first.wait_for()
    page.wait_for_function("() => !document.body.innerText.includes('still to be read')")


def _fleet(page: Any) -> None:
    page.locator(".matrix tbody tr").first.wait_for(timeout=60_000)


def _nothing(page: Any) -> None:
    page.locator("main, section").first.wait_for()


Scene = tuple[tuple[str, ...], Callable[[Any], None]]
"""Statistics of a worksheet, and what is done on it."""

WORKSHEET: dict[str, Scene] = {
    "welcome": ((), _welcome),
    "first-map": ((LATENCY,), _graph),
    "two": ((LATENCY, OPS), _graph),
    "three": (("io.ops[device]", "io.ops[offset]", "io.bytes[process]"), _nothing),
    "files": (("file.ops[latency]", "file.bytes[file]"), _nothing),
    "numbers": (("io.utilization[device]", "io.ops[queue]", "io.ops[size]"), _nothing),
    "coloured": ((LATENCY,), show_colours),
    "percentiles": ((LATENCY,), _percentiles),
    "who": ((LATENCY,), mark_slow),
    "odd": ((LATENCY,), _odd),
    "list": ((LATENCY,), _listed),
    "layers": ((LATENCY,), _layers),
    "menu": ((OPS,), _value_menu),
    "add": ((LATENCY,), _key("+", "#statistic")),
    "search": ((LATENCY,), _searched),
    "compare": ((LATENCY, OPS), _key("d", "#other-back")),
    "replay": ((LATENCY, OPS), _key("P", ".replay")),
    "sub-second": ((LATENCY,), _key("E", ".sub-second canvas")),
    "hierarchy": (
        ("file.bytes[file]",),
        _key("t", ".branches svg, .branches ul", "file.bytes[file]"),
    ),
    "marks": ((LATENCY,), _key("g", "dialog[open]")),
    "alert": ((LATENCY,), _preview),
    "kept": ((LATENCY,), _key("K", ".kept, main")),
    "saved": ((LATENCY,), _key("w", "dialog[open]")),
    "help": ((LATENCY,), _key("?", "dialog[open]")),
}


_WIDGET = """<!doctype html><body style="margin: 0 1rem"><div id="out"></div><script type="module">
    const values = %s;
    const model = {get: name => values[name], set: (name, value) => { values[name] = value }, save_changes() {}, on() {}, off() {}};
    const url = URL.createObjectURL(new Blob([values.esm], {type: "text/javascript"}));
    (await import(url)).default.render({model, el: document.getElementById("out")});
</script>"""


def widget_page(events: Path, home: Path) -> Path:
    """The map of a notebook as a page, with no kernel behind it."""
    import iolab

    opened: Any = iolab.open(events)
    widget = opened.explore("latency")
    values = {"page": widget.page, "esm": widget._esm, "selection": None}
    file = home / f"widget-{events.name}.html"
    file.write_text(_WIDGET % json.dumps(values).replace("</", "<\\/"), encoding="utf-8")
    return file


def _marked_widget(page: Any) -> None:
    canvas = page.locator("#out canvas").first
    canvas.wait_for()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.4 * box["height"], steps=4)
    page.mouse.up()
    page.locator("#out .who").wait_for()


@contextmanager
def service(paths: list[Path], home: Path) -> Iterator[str]:
    """`iolab view` of the paths; its address."""
    command = [sys.executable, "-m", "iolab", "view", *map(str, paths), "--port", "0"]
    environment = {**os.environ, "XDG_DATA_HOME": str(home), "XDG_STATE_HOME": str(home)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)


class Camera:
    """Takes pictures of scenes, and collects what is wrong with their pages."""

    def __init__(self, browser: Any, output: Path, widths: list[int], schemes: list[str]) -> None:
        self.browser = browser
        self.output = output
        self.widths = widths
        self.schemes = schemes
        self.problems: list[str] = []

    def take(
        self, name: str, token_url: str, address: str, act: Callable[[Any], None], whole: bool
    ) -> None:
        """A scene at all widths, in all schemes; `whole`: the page from top to end, once more."""
        for width in self.widths:
            for scheme in self.schemes:
                label = f"{name}-{width}-{scheme}"
                context = self.browser.new_context(
                    viewport={"width": width, "height": SIZES.get(width, 1000)},
                    color_scheme=scheme,
                )
                page = context.new_page()
                page.set_default_timeout(60_000)
                page.on("pageerror", lambda error, label=label: self._note(label, str(error)))
                try:
                    if token_url:
                        page.goto(token_url)
                        page.wait_for_timeout(100)
                    page.goto(address)
                    act(page)
                    settle(page)
                except Exception as error:
                    self._note(label, str(error).splitlines()[0])
                try:
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        self._note(label, "the page is wider than the window")
                    page.screenshot(path=self.output / f"{label}.png")
                    if whole and width <= WHOLE:
                        page.screenshot(path=self.output / f"{label}-whole.png", full_page=True)
                except Exception as error:
                    self._note(label, str(error).splitlines()[0])
                context.close()

    def _note(self, label: str, problem: str) -> None:
        self.problems.append(f"{label}: {problem}")
        print(self.problems[-1], file=sys.stderr)


def walk(camera: Camera, url: str, only: list[str]) -> None:
    """All scenes of a service."""
    base = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"
    page = camera.browser.new_page()
    page.goto(url)
    settle(page)
    answers = page.evaluate(
        """async () => {
            const requests = ["/api/v1/start", "/api/v1/recordings", "/api/v1/fleet"].map(async path => {
                const answer = await fetch(path);
                return answer.ok ? answer.json() : {};
            });
            return Promise.all(requests);
        }"""
    )
    page.close()
    studies = [study["name"] for study in answers[0].get("studies", [])]
    recordings = [item["name"] for item in answers[1].get("recordings", [])]

    def is_wanted(name: str) -> bool:
        return not only or any(word in name for word in only)

    if answers[2].get("archive") and is_wanted("fleet"):
        camera.take("fleet", url, f"{base}/fleet", _fleet, whole=True)
    if is_wanted("start"):
        camera.take("start", url, f"{base}/start", _start, whole=False)
    for number, study in enumerate(studies):
        name = f"report-{number}"
        if is_wanted(name):
            camera.take(name, url, f"{base}/report/{quote(study)}", _nothing, whole=True)
    for number, recording in enumerate(recordings):
        reasons = _unavailable(camera, url, recording)
        for scene, (statistics, act) in WORKSHEET.items():
            name = f"{scene}-{number}" if number else scene
            if is_wanted(name):
                unrecorded = [
                    statistic for statistic in statistics if statistic.split("[")[0] in reasons
                ]
                if unrecorded:
                    reason = reasons[unrecorded[0].split("[")[0]]
                    print(f"{name}: left out: {unrecorded[0]}: {reason}", file=sys.stderr)
                    continue
                graphs = "".join(f"&graph={quote(statistic)}" for statistic in statistics)
                camera.take(
                    name,
                    url,
                    f"{base}/worksheet#recording={quote(recording)}{graphs}",
                    act,
                    whole=False,
                )


def _unavailable(camera: Camera, url: str, recording: str) -> dict[str, str]:
    """The statistics that a recording cannot answer, and why."""
    page = camera.browser.new_page()
    page.goto(url)
    path = f"/api/v1/statistics?recording={quote(recording)}"
    answer = page.evaluate("async path => (await fetch(path)).json()", path)
    page.close()
    return {
        statistic["name"]: statistic["why_not"]
        for statistic in answer.get("statistics", [])
        if not statistic["available"]
    }


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/looks"))
    parser.add_argument("--only", action="append", default=[], help="words of scenes")
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--scheme", choices=SCHEMES, action="append")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    from iolab.recordings.store.base.layout import is_recording

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        camera = Camera(
            browser, args.output, args.width or list(SIZES), args.scheme or list(SCHEMES)
        )
        pages = [path for path in args.paths if path.suffix == ".html"]
        for path in pages:
            if not args.only or any(word in path.stem for word in args.only):
                camera.take(path.stem, "", path.resolve().as_uri(), _nothing, whole=True)
        if served := [path for path in args.paths if path not in pages]:
            with service(served, Path(home)) as url:
                walk(camera, url, args.only)
            for path in served:
                if is_recording(path) and not (args.only and "widget" not in args.only):
                    page = widget_page(path, Path(home)).as_uri()
                    camera.take("widget", "", page, _marked_widget, whole=False)
        browser.close()
    print(f"{len(list(args.output.glob('*.png')))} pictures in {args.output}")
    return 1 if camera.problems else 0


if __name__ == "__main__":
    sys.exit(main())
