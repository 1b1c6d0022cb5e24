# SPDX-License-Identifier: Apache-2.0
"""Sections that compare measured with published numbers: the cells that both have, and
whether they are ordered alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison
from iolab.studies.compare.published import Published

from ...charts.over_load import over_load
from ..model.datasets import Datasets
from ..model.payload import Section
from ..model.source import Source
from .metric_sections import metric_section


def beside_sections(
    results: Source,
    comparisons: Sequence[Comparison],
    published: Published,
    run_places: Mapping[str, int],
    datasets: Datasets,
) -> list[Section]:
    """A section for each leading metric that was published too. UsageError where the cells can't be
    matched."""
    sections = []
    for comparison in comparisons:
        name = comparison.metric.name
        if name not in published.metrics():
            continue
        both = compare(published.with_published(results.runs), name, baseline=comparison.baseline)
        section = metric_section(both, run_places, datasets, charts=False)
        said = [
            agreement.words(alone=len(comparison.variants) == 1)
            for agreement in published.agreements(results.runs, name)
        ]
        sections.append(
            section.model_copy(
                update={
                    "name": f"beside.{name}",
                    "title": f"Compared with published numbers: {section.title}",
                    "headline": True,
                    "lead": f"{published.about} {_sentence(said)} Other hardware, other years: it is the shape that can be compared.",
                    "notes": [],
                    "charts": [datasets.chart(over_load(both))],
                }
            )
        )
    return sections


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
