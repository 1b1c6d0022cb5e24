# SPDX-License-Identifier: Apache-2.0
"""Results of more variants than a report can draw: those that matter are drawn, and it says so."""

from __future__ import annotations

import json
import random
import time

from iolab.output.report.assemble import assemble
from iolab.output.report.model.variant_selection import MOST_PANELS, MOST_VARIANTS, select
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.results.evidence.model import Run
from support.report_data import HandMade, run


def many(variants: int, levels: int = 1, blocks: int = 1) -> list[Run]:
    """Noise of 1 %; the last variant is twice as fast as all others."""
    chance, runs = random.Random(1), list[Run]()
    for block in range(blocks):
        for number in range(variants):
            for level in range(levels):
                factor = 2.0 if number == variants - 1 else 1.0
                rate = 1000 * factor * chance.gauss(1, 0.01)
                values = {"write.iops": rate, "write.lat.mean": 1 / rate, "cpu.usr": 0.1}
                runs.append(
                    run(
                        len(runs) + 1,
                        f"v{number:04}",
                        {"n": 1 + number % 2, "level": level},
                        values,
                        block=block + 1,
                    )
                )
    return runs


def test_few_variants_are_all_shown() -> None:
    assert select([compare(many(MOST_VARIANTS), "write.iops")]) is None


def test_the_variants_that_matter_are_drawn() -> None:
    runs = many(61, blocks=3)
    steps: list[str] = []
    payload, details = assemble(HandMade(runs), progress=steps.append)
    shown = [variant.name for variant in payload.variants]
    assert len(shown) == MOST_VARIANTS
    assert {"v0000", "v0060"} <= set(shown)
    assert len(payload.runs.ids) == len(details.runs) == len(runs)
    drawn = json.dumps([section.model_dump(mode="json") for section in payload.sections])
    assert [name for name in sorted({each.variant for each in runs}) if name in drawn] == shown
    assert any(
        f"{MOST_VARIANTS} of 61" in sentence.text
        for part in payload.summary
        for sentence in part.sentences
    )
    assert "cpu.usr" in payload.elsewhere
    assert len(steps) >= 4


def test_tests_are_corrected_for_every_variant() -> None:
    comparison = compare(many(61, blocks=3), "write.iops")
    selection = select([comparison])
    assert selection is not None
    kept = selection.of(comparison)
    assert 0 < len(kept.cells) < len(comparison.cells)
    for cell in kept.cells:
        assert cell == comparison.cell(cell.table, cell.row, cell.col, cell.variant)


def test_panels_are_limited() -> None:
    comparison = compare(many(4, levels=MOST_PANELS + 10), "write.iops", layout=Layout(rows=["n"]))
    selection = select([comparison])
    assert selection is not None
    assert selection.panels is not None
    kept = selection.of(comparison)
    assert len({(cell.table, cell.col) for cell in kept.cells}) == MOST_PANELS
    assert len(selection.words()) == 1


def test_thousands_of_variants_take_seconds() -> None:
    """Time grows with the runs, not with their square: by CPU time, as the machine may be busy."""
    spent = []
    for variants in (500, 2000):
        source = HandMade(many(variants))
        start = time.process_time()
        assemble(source)
        spent.append(time.process_time() - start)
    assert spent[1] < 8 * spent[0]
