# SPDX-License-Identifier: Apache-2.0
"""The parts of guides that are made from results: conditions, verdicts, tables as iolab prints
them, charts, maps."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iolab.base.units import format_quantity
from iolab.output.charts.base.model import Chart
from iolab.output.charts.book import ChartBook
from iolab.output.charts.over_load import over_load
from iolab.output.charts.series import series
from iolab.output.report.sections.vdev_maps import KINDS, maps_of
from iolab.recordings.heatmap.figure import panels
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.svg import LAYOUT, svg
from iolab.recordings.heatmap.theme import LIGHT
from iolab.studies.compare.axes import Layout, level_text
from iolab.studies.compare.compare import compare
from iolab.studies.compare.published import Published
from iolab.studies.results.evidence.marks import seconds_of
from iolab.studies.results.evidence.model import Run
from iolab.studies.results.facts.target_metrics import read_target
from iolab.studies.results.open.results import Results

ROOT = Path(__file__).resolve().parent.parent

Picture = Callable[[str, str, str], str]
"""Name, SVG and words to the line that shows it."""
Part = Callable[[Results, Sequence[str], Picture], str]


def conditions(results: Results, words: Sequence[str], picture: Picture) -> str:
    """On what it was measured, when, and how long it took."""
    facts = results.environment()["facts"]
    rig = facts.get("rig", {})
    targets = facts.get("targets") or [facts]
    builds: dict[str, Any] = next(
        (target["openzfs"] for target in targets if "openzfs" in target), {}
    )
    windows = [run.plan.window for run in results.runs if run.plan.window is not None]
    began, ended = min(start for start, _ in windows), max(end for _, end in windows)
    loads = [(end - start) / 1e9 for start, end in windows]
    versions = {
        str(version)
        for run in results.runs
        if (version := read_target(run.evidence).get("version"))
    }
    rows = [
        (
            "machine",
            f"{facts['cpus']} CPUs ({_cpu(rig)}), {format_quantity(facts['memory_bytes'], 'B', 3)}",
        ),
        ("kernel", facts["kernel"]),
        ("OpenZFS", ", ".join(sorted(versions)) or builds.get("loaded", "")),
        ("fio", results.environment()["fingerprint"].get("fio", "")),
        (
            "disks",
            f"{rig.get('disks')} of {format_quantity(rig['disk_bytes'], 'B', 3)}, each {_limits(rig)}"
            if rig
            else "",
        ),
        (
            "runs",
            f"{_of_planned(results, len(windows))}, {_range(loads)} s each, {(ended - began) / 60e9:.0f} min in all",
        ),
        (
            "measured",
            f"{datetime.fromtimestamp(began / 1e9, UTC):%Y-%m-%d}, iolab {results.manifest.iolab}",
        ),
    ]
    return "\n".join(
        ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows if value)]
    )


def verdicts(results: Results, words: Sequence[str], picture: Picture) -> str:
    """How many runs are believed, and why others are not."""
    levels = Counter(run.verdict.level.value for run in results.runs)
    reasons: dict[str, list[Run]] = {}
    for run in results.runs:
        for reason in run.verdict.blames:
            reasons.setdefault(reason.code, []).append(run)
    lines = [
        f"Of {len(results.runs)} runs {', '.join(f'{count} {level}' for level, count in levels.most_common())}."
    ]
    for code, runs in sorted(reasons.items(), key=lambda item: -len(item[1])):
        text = next(reason.text for reason in runs[0].verdict.blames if reason.code == code)
        lines.append(
            f"- {code}, {len(runs)} run{'s' if len(runs) > 1 else ''}: such as {_cell(runs[0])}, {text}"
        )
    return "\n".join([lines[0], "", *lines[1:]])


def compared(results: Results, words: Sequence[str], picture: Picture) -> str:
    """What `iolab compare` prints, with the command."""
    command = [sys.executable, "-m", "iolab.cli", "compare", str(results.path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return f"```text\n$ iolab compare results/guides/{results.path.name} {shlex.join(words)}\n{done.stdout.rstrip()}\n```"


def chart(results: Results, words: Sequence[str], picture: Picture) -> str:
    """A chart of the book by its name, with its options: `over_load metric=device.util`."""
    name, options = words[0], dict(word.split("=", 1) for word in words[1:])
    found = getattr(ChartBook(results), name)(**options)
    return "\n\n".join(
        _shown(each, picture) for each in (found if isinstance(found, list) else [found])
    )


def beside(results: Results, words: Sequence[str], picture: Picture) -> str:
    """A metric's published cells drawn with those measured, and their rank correlation."""
    table, metric, *published = words
    found = Published(ROOT / table)
    runs = [
        run
        for run in found.with_published(results.runs)
        if run.plan.status != "published" or run.variant.split()[0] in published
    ]
    drawn = over_load(compare(runs, metric, layout=Layout(rows=["numjobs"], cols=["disks"])))
    said = [one.words(alone=True) for one in found.agreements(results.runs, metric)]
    return f"{_shown(drawn, picture, f'beside-{drawn.name}')}\n\n" + "\n".join(
        f"- {text}" for text in said
    )


def maps(results: Results, words: Sequence[str], picture: Picture) -> str:
    """What OpenZFS counted at the vdevs during one run: `zpool-latency disks=8 numjobs=64`."""
    run, notes = _run(results, words[1:]), list[str]()
    named = maps_of(run, words[0], notes)
    if notes or not named:
        raise SystemExit(f"{words[0]} of {_cell(run)}: {'; '.join(notes) or 'nothing was counted'}")
    title = KINDS[words[0]].title
    drawn = svg(panels(named, View("log"), LAYOUT), f"{title}: {_cell(run)}", LIGHT)
    return picture(words[0], drawn, f"{title}, second by second: {_cell(run)}")


def seconds(results: Results, words: Sequence[str], picture: Picture) -> str:
    """Some series of one run: `names=zfs.txg.dirty,zfs.txg.sync variant=small numjobs=8`; `as=NAME`
    where a page has several."""
    asked = dict(word.split("=", 1) for word in words)
    names = asked.pop("names").split(",")
    name = asked.pop("as", "seconds")
    run = _run(results, [f"{key}={level}" for key, level in asked.items()])
    by_name = {one.name: one for one in results.series(run.id)}
    drawn = series(
        [by_name[each] for each in names if each in by_name],
        title=_cell(run),
        marked=seconds_of(run.evidence, run.plan.window),
    )
    return _shown(drawn, picture, name)


PARTS: dict[str, Part] = {
    "conditions": conditions,
    "verdicts": verdicts,
    "compare": compared,
    "chart": chart,
    "beside": beside,
    "maps": maps,
    "seconds": seconds,
}


def _range(values: Sequence[float]) -> str:
    first, last = f"{min(values):.0f}", f"{max(values):.0f}"
    return first if first == last else f"{first} to {last}"


def _of_planned(results: Results, done: int) -> str:
    """`22 of 40 planned` where a study was stopped, else the number."""
    events = [
        json.loads(line)
        for line in (results.path / "journal.jsonl").read_text("utf-8").splitlines()
    ]
    planned = len({event["run"] for event in events if event["event"] == "planned"})
    return str(done) if done >= planned else f"{done} of {planned} planned"


def _shown(drawn: Chart, picture: Picture, name: str = "") -> str:
    return picture(name or drawn.name, drawn.svg(), drawn.title)


def _run(results: Results, words: Sequence[str]) -> Run:
    """The first run of a variant and cell."""
    wanted = dict(word.split("=", 1) for word in words)
    for run in results.runs:
        have: dict[str, Any] = {**run.factors, "variant": run.variant}
        if run.plan.window is not None and all(
            level_text(have.get(name)) == level for name, level in wanted.items()
        ):
            return run
    raise SystemExit(f"{results.path.name} has no run of {' '.join(words)}")


def _cell(run: Run) -> str:
    return " ".join(
        [run.variant, *(f"{name}={level_text(level)}" for name, level in run.factors.items())]
    )


def _cpu(rig: dict[str, Any]) -> str:
    return {"tcg": "emulated", "kvm": "KVM"}.get(str(rig.get("accelerator")), "real")


def _limits(rig: dict[str, Any]) -> str:
    found = [
        format_quantity(rig[key], unit, 3)
        for key, unit in (("disk_iops", "1/s"), ("disk_bytes_per_s", "B/s"))
        if rig.get(key)
    ]
    return f"held to {' and '.join(found)}" if found else "without a limit"
