# SPDX-License-Identifier: Apache-2.0
"""Results as the page's two documents: everything shown at once, and what is known of each run."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from iolab import __version__
from iolab.base.verdict import Level
from iolab.studies.compare.model import Comparison
from iolab.studies.compare.published import Published
from iolab.studies.compare.rules.sequential import sequential_notes
from iolab.studies.results.evidence.completeness import unreadable_runs
from iolab.studies.results.evidence.model import Run, Series
from iolab.studies.results.gates.stall import stalls

from ..charts.base.theme import DARK, LIGHT
from ..charts.reference import Reference
from .cover.cards import cover
from .cover.cautions import cover_cautions
from .headline import baseline_of, compare_metrics, main_comparisons
from .model.datasets import Datasets
from .model.metric_selection import chosen_metrics
from .model.payload import Details, LevelCount, Payload, Section, VariantInfo
from .model.source import Progress, Shown, Source
from .model.variant_selection import select
from .sections.hosts import environment
from .sections.hosts.target import target_part
from .sections.metric_sections import metric_section
from .sections.published_comparison import beside_sections
from .sections.runs import Texts, reason_groups, run_detail, run_table
from .sections.series import TimeBases, strips, without_devices
from .sections.sessions import sessions_part
from .sections.views import view_sections
from .sections.windows_and_steps import step_sections, window_sections
from .words import summary
from .words.credibility import trust
from .words.method import METHOD

MOST_COLUMNS = 6
"""Metrics in the table of runs."""

MOST_READINGS = 600_000
"""Readings of all series together, about two bytes each in the file; beyond it only sums and means
are kept."""

MEANINGS = {
    Level.OK: "passed every gate",
    Level.UNJUDGED: "published numbers without evidence",
    Level.SUSPECT: "included in estimates, marked with the reason",
    Level.INVALID: "excluded, together with its pair",
}


def assemble(
    results: Source,
    base: Path | None = None,
    references: Sequence[Reference] = (),
    published: Published | None = None,
    lines: str | None = None,
    progress: Progress | None = None,
) -> tuple[Payload, Details]:
    """Everything that the page is given.

    Args:
        results: opened results.
        base: directory of the report, for links to evidence; None leaves files named
        but unlinked. references: rated figures that throughput against latency is held against.
        published: numbers that the cells are compared with.
        lines: the factor with one line over the load per level, with a panel per variant; None: the
        variants are the lines.
        progress: called with each step that begins.
    """
    begin = progress or (lambda _: None)
    runs = results.runs
    places = {run.id: place for place, run in enumerate(runs)}
    leading, further = chosen_metrics(results.metrics(), runs)
    comparisons = compare_metrics(results, leading, begin)
    selection = select(comparisons)
    if selection is not None:
        # the others are listed as metrics without a section
        comparisons, further = [selection.of(comparison) for comparison in comparisons], []
    selected_results: Source = results if selection is None else Shown(results, selection.variants)
    datasets = Datasets()
    sections = []
    for comparison in comparisons:
        begin(f"drawing {comparison.metric.name}")
        sections.append(metric_section(comparison, places, datasets, charts=True, lines=lines))
    begin("drawing throughput against latency")
    sections += view_sections(selected_results, comparisons, datasets, references)
    if published is not None:
        sections += beside_sections(results, comparisons, published, places, datasets)
    begin("comparing steps and windows")
    sections += step_sections(selected_results, baseline_of(results), datasets, references)
    sections += window_sections(selected_results, places, datasets)
    sections += [
        metric_section(comparison, places, datasets, charts=False)
        for comparison in compare_metrics(results, further, begin)
    ]
    begin("describing the runs")
    manifest = results.manifest
    remarks = [
        *([] if selection is None else selection.words()),
        *([] if results.standing is None else results.standing.words()),
        *unreadable_runs(runs),
        *(note.text for note in sequential_notes(results.path, manifest)),
    ]
    spoken = main_comparisons(comparisons)
    compared = [item for item in spoken if any(cell.change for cell in item.cells)] or spoken
    sessions = sessions_part(runs, comparisons)
    cautions = cover_cautions(
        runs, [] if sessions is None else sessions.sentences, trust(compared, runs, remarks)
    )
    payload = Payload(
        generator=f"iolab {__version__}",
        title=manifest.name,
        description=manifest.description,
        origin=manifest.origin,
        created=_time_text(manifest.created_ns),
        variants=[
            variant
            for variant in _variants(results, comparisons)
            if selection is None or variant.name in selection.variants
        ],
        cover=cover(
            spoken,
            runs,
            cautions,
            is_running=results.standing is not None and results.standing.is_running,
        ),
        sessions=sessions,
        summary=summary.summarise(spoken, runs, remarks),
        levels=level_counts(runs),
        reasons=reason_groups(runs),
        sections=sections,
        elsewhere=_elsewhere(results, sections),
        datasets=datasets.tables,
        themes={"light": LIGHT, "dark": DARK},
        runs=run_table(runs, _factors(results), comparisons[:MOST_COLUMNS]),
        target=target_part(results),
        environment=environment.environment(results),
        assumptions=environment.assumptions(runs),
        jobs=[*environment.jobs(runs), *environment.studies(results)],
        reproduce=environment.reproduce(results),
        method=list(METHOD),
    )
    return payload, _details(results, base)


def _elsewhere(results: Source, sections: Sequence[Section]) -> list[str]:
    """Metrics that were observed and have no section: single devices, plain facts, and what no cell
    has a value of."""
    section_names = {section.name for section in sections}
    return [name for name in results.metrics() if name not in section_names]


def _variants(results: Source, comparisons: Sequence[Comparison]) -> list[VariantInfo]:
    names = dict.fromkeys([*results.manifest.variants, *(run.variant for run in results.runs)])
    baseline = comparisons[0].baseline if comparisons else results.manifest.baseline
    counts = Counter(run.variant for run in results.runs)
    return [
        VariantInfo(name=name, baseline=name == baseline, runs=counts[name])
        for name in names
        if counts[name]
    ]


def _factors(results: Source) -> list[str]:
    """Factors in the study's order, then any others that runs have."""
    return list(
        dict.fromkeys(
            [*results.manifest.factors, *(name for run in results.runs for name in run.factors)]
        )
    )


def level_counts(runs: Sequence[Run]) -> list[LevelCount]:
    """Runs per level, from trusted to refused."""
    return [
        LevelCount(
            level=level.value, runs=sum(run.verdict.level is level for run in runs), meaning=meaning
        )
        for level, meaning in MEANINGS.items()
    ]


def _details(results: Source, base: Path | None) -> Details:
    """Observations and series of every run; single devices' series leave where the file would grow
    too large."""
    texts, bases = Texts(), TimeBases()
    run_strips, spans = [], []
    for run in results.runs:
        series = results.series(run.id)
        run_strips.append(strips(series, bases))
        spans.append(stall_spans(run, series))
    left_out = ""
    if (
        sum(len(line.values) for of_run in run_strips for strip in of_run for line in strip.lines)
        > MOST_READINGS
    ):
        run_strips = [without_devices(of_run) for of_run in run_strips]
        left_out = "Series of single devices are left out, they would make this file too large; the evidence has them."
    details = [
        run_detail(run, texts, of_run, of_stalls, results=results.path, base=base)
        for run, of_run, of_stalls in zip(results.runs, run_strips, spans, strict=True)
    ]
    return Details(texts=texts.texts, times=bases.times, runs=details, left_out=left_out)


def stall_spans(run: Run, series: Sequence[Series]) -> list[tuple[float, float]]:
    """Seconds [from, to] of each stall of a run; of the longest alone where its series is missing."""
    by_name = {line.name: line for line in series}
    moved = by_name.get("device.bw", by_name.get("load.bw"))
    if moved is not None and any(moved.values > 0):
        return [(start, start + length) for start, length in stalls(moved)]
    spans = []
    for reason in run.verdict.reasons:
        start, length = reason.data.get("start_seconds"), reason.data.get("longest_seconds")
        if isinstance(start, (int, float)) and isinstance(length, (int, float)):
            spans.append((float(start), float(start + length)))
    return spans


def _time_text(created_ns: int) -> str:
    """When the results were made, UTC to the minute."""
    return datetime.datetime.fromtimestamp(created_ns / 1e9, datetime.UTC).strftime(
        "%Y-%m-%d %H:%M UTC"
    )
