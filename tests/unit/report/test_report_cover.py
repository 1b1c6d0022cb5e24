# SPDX-License-Identifier: Apache-2.0
"""The cover: a matrix of changes with the numbers of `iolab compare`, and a sentence about each
quantity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

import pytest

from iolab.output.report.assemble import assemble
from iolab.output.report.cover import cards
from iolab.output.report.cover.cautions import cover_cautions
from iolab.output.report.cover.quantities import bound_cells, quantities_of
from iolab.output.report.headline import main_comparisons
from iolab.output.report.model.cover_payload import Cover, CoverCell
from iolab.output.report.model.metric_selection import chosen_metrics
from iolab.output.report.page.cover_html import cover_html
from iolab.output.report.page.html import render
from iolab.output.report.sections.hosts.environment import jobs
from iolab.output.report.sections.shades import change_shade, value_shades
from iolab.output.report.words.credibility import trust
from iolab.studies.compare.compare import compare
from iolab.studies.compare.render.json import as_json
from iolab.studies.compare.render.words import scale_for
from iolab.studies.results.evidence.model import Run
from support.golden import Golden
from support.report_data import HandMade, invalid, run, suspect, sweep

HOSTILE = '<img src=x onerror="alert(1)">'


class Tables(HTMLParser):
    """The numbered cells of all tables: number to (classes, text), and the heads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: dict[int, tuple[set[str], str]] = {}
        self.heads: list[str] = []
        self.tags: list[str] = []
        self._open: int | None = None
        self._is_head = False
        self.details: list[str] = []
        self._is_detail = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.tags.append(tag)
        if tag == "td" and "data-i" in known:
            self._open = int(known["data-i"] or "")
            self.cells[self._open] = (set((known.get("class") or "").split()), "")
        self._is_detail = tag == "span" and known.get("class") == "sides"
        if self._is_detail:
            self.details.append("")
        if tag == "th":
            self._is_head = True
            self.heads.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._open = None
        self._is_detail = self._is_detail and tag != "span"
        self._is_head = self._is_head and tag != "th"

    def handle_data(self, data: str) -> None:
        if self._is_detail:
            self.details[-1] += data
        elif self._open is not None:
            classes, text = self.cells[self._open]
            self.cells[self._open] = classes, text + data
        elif self._is_head:
            self.heads[-1] += data


def cover_of(runs: Sequence[Run]) -> Cover:
    metrics, _ = chosen_metrics(HandMade(runs).metrics(), runs)
    comparisons = main_comparisons([compare(runs, name) for name in metrics])
    cautions = cover_cautions(runs, [], trust(comparisons, runs))
    return cards.cover(comparisons, runs, cautions)


def cells_of(cover: Cover) -> list[CoverCell]:
    return [
        cell
        for card in cover.cards
        for matrix in card.matrices
        for row in matrix.cells
        for cell in row
        if cell is not None
    ]


def number(text: str) -> float:
    """The number of a cell, without its signs of certainty and verdict."""
    return float(text.lstrip("!✕~").replace("−", "-").replace(" ", ""))


def two_factors(change: float = 1.5, **more: Any) -> list[Run]:
    return sweep(change, more={"disks": [1, 2]}, **more)


def test_numbers_of_the_matrix_are_those_of_compare() -> None:
    runs = two_factors(noise=0.2)
    cover = cover_of(runs)
    drawn = Tables(cover_html(cover)).cells
    cells = cells_of(cover)
    assert len(drawn) == len(cells) == 3 * 6
    for metric in {cell.metric for cell in cells}:
        written = {
            ", ".join(f"{name}={level}" for name, level in cell["factors"].items()): cell["change"]
            for cell in as_json(compare(runs, metric))["cells"]
            if cell["change"] is not None
        }
        for place, cell in enumerate(cells):
            if cell.metric != metric:
                continue
            expected = written[cell.cell]
            classes, text = drawn[place]
            assert cell.change == expected["value"]
            assert number(text) == pytest.approx(
                expected["value"], abs=0.51 if abs(expected["value"]) >= 9.95 else 0.051
            )
            assert ("sig" in classes) == expected["decided"]


def test_values_of_one_variant_are_those_of_compare() -> None:
    runs = two_factors(variants=["only"])
    cover = cover_of(runs)
    comparison = compare(runs, "write.iops")
    scale = scale_for(comparison, None).scale
    values = {
        ", ".join(f"{name}={level}" for name, level in cell["factors"].items()): cell["value"]
        for cell in as_json(comparison)["cells"]
    }
    cells = [cell for cell in cells_of(cover) if cell.metric == "write.iops"]
    assert len(cells) == 6
    for cell in cells:
        assert cell.certainty == "value"
        assert cell.sides[0].value == pytest.approx(values[cell.cell] / scale)
        assert number(cell.text) == pytest.approx(values[cell.cell] / scale, rel=1e-3)
    assert {cell.shade for cell in cells} >= {0, 5}


def test_certainty_and_verdict_have_a_sign_besides_their_colour() -> None:
    runs = two_factors(1.02, noise=0.2)
    plain = runs[1]
    values = {name: one.value for name, one in plain.observations.items()}
    broken = [
        run(900 + place, one.variant, one.factors, {}, block=one.plan.block, reasons=[invalid()])
        for place, one in enumerate(runs)
        if one.factors == {"numjobs": 16, "disks": 2}
    ]
    kept = [one for one in runs if one.factors != {"numjobs": 16, "disks": 2}]
    marked = run(
        1, plain.variant, plain.factors, values, block=plain.plan.block, reasons=[suspect()]
    )
    cover = cover_of([marked if one is plain else one for one in kept] + broken)
    drawn = Tables(cover_html(cover)).cells
    iops = {
        cell.cell: drawn[place]
        for place, cell in enumerate(cells_of(cover))
        if cell.metric == "write.iops"
    }
    assert iops["numjobs=16, disks=2"] == ({"s0", "non", "invalid"}, "✕—")
    classes, text = iops["numjobs=1, disks=1"]
    assert "suspect" in classes
    assert text.startswith("!")
    assert "ins" in iops["numjobs=4, disks=1"][0]
    assert iops["numjobs=4, disks=1"][1].startswith("~")
    sentence = cover.cards[0].sentences[0].text
    assert "; 1 cell INVALID" in sentence


def test_a_pair_without_repetitions_is_not_drawn_as_sure() -> None:
    cover = cover_of(two_factors(blocks=1))
    assert {cell.certainty for cell in cells_of(cover)} == {"untested"}
    assert all("unt" in classes for classes, _ in Tables(cover_html(cover)).cells.values())


def test_rows_and_columns_are_factors_and_further_factors_are_matrices() -> None:
    runs = [
        run(
            place * 8 + disks * 4 + bs * 2 + variant,
            name,
            {"numjobs": load, "disks": disks, "bs": size, "media": media},
            {"write.iops": 100.0 + place},
            block=1,
        )
        for place, load in enumerate((1, 4, 16))
        for disks in (1, 2)
        for bs, size in enumerate(("4k", "128k"))
        for media in ("hdd", "ssd")
        for variant, name in enumerate(("a", "b", "c"))
    ]
    card = cover_of(runs).cards[0]
    assert [matrix.title for matrix in card.matrices] == [
        f"bs {size}, media {media}, {name}".replace(" ", "\N{NO-BREAK SPACE}").replace(
            ",\N{NO-BREAK SPACE}", ", "
        )
        for size in ("4k", "128k")
        for media in ("hdd", "ssd")
        for name in ("b", "c")
    ]
    matrix = card.matrices[0]
    assert (matrix.row_title, matrix.column_title) == ("numjobs", "disks")
    assert (matrix.rows, matrix.columns) == (["1", "4", "16"], ["1", "2"])


def test_one_factor_has_one_matrix_of_all_quantities() -> None:
    cover = cover_of(sweep())
    (card,) = cover.cards
    (matrix,) = card.matrices
    assert matrix.columns == ["1", "4", "16"]
    assert matrix.rows == [
        "IOPS, writes (%)",
        "mean latency, writes (%)",
        "device utilization, mean over devices (points)",
    ]
    assert [sentence.section for sentence in card.sentences] == [
        "write.iops",
        "write.lat.mean",
        "device.util",
    ]


def test_without_factors_variants_are_columns() -> None:
    runs = [
        run(block * 3 + place, name, {}, {"write.iops": 100.0 * (1 + place) + block}, block=block)
        for block in range(1, 7)
        for place, name in enumerate(("a", "b", "c"))
    ]
    (matrix,) = cover_of(runs).cards[0].matrices
    assert (matrix.rows, matrix.columns) == (["IOPS, writes (%)"], ["b", "c"])


def test_cells_of_a_joint_matrix_have_the_values_of_both_arms() -> None:
    cover = cover_of(sweep())
    cells = cells_of(cover)
    details = Tables(cover_html(cover)).details
    assert details == [cell.detail for cell in cells]
    for cell, detail in zip(cells, details, strict=True):
        before, after = (number(text) for text in re.findall(r"[\d.,]+", detail)[:2])
        assert [before, after] == [pytest.approx(side.value, rel=6e-3) for side in cell.sides]
    assert Tables(cover_html(cover_of(two_factors()))).details == []


def test_rows_with_the_most_significant_changes_are_drawn() -> None:
    (quantity, *_) = quantities_of([compare(two_factors(), "write.iops")], 8)
    chosen, note = bound_cells(quantity.cells, 4)
    assert len({place.row for place in chosen}) == 2
    assert note.startswith("4 of 6 cells are drawn")
    assert bound_cells(quantity.cells, 6) == (quantity.cells, "")


def test_many_levels_of_the_only_factor_are_rows() -> None:
    (matrix,) = cover_of(sweep(loads=range(1, 30), blocks=1)).cards[0].matrices
    assert len(matrix.rows) == 29
    assert len(matrix.columns) == 3


def test_operations_of_a_sweep_are_one_quantity() -> None:
    runs = [
        run(
            number,
            variant,
            {"iodepth": depth, "rw": rw},
            {f"{operation}.iops": 100.0 * depth, f"{operation}.lat.mean": 0.01},
        )
        for number, (depth, rw, variant) in enumerate(
            [
                (depth, rw, variant)
                for depth in (1, 4, 16)
                for rw in ("randread", "randwrite")
                for variant in ("a", "b")
            ]
        )
        for operation in (rw.removeprefix("rand"),)
    ]
    cover = cover_of(runs)
    assert [card.title for card in cover.cards] == ["IOPS", "mean latency"]
    (matrix,) = cover.cards[0].matrices
    assert matrix.columns == ["randread", "randwrite"]
    assert all(cell is not None for row in matrix.cells for cell in row)


def test_cells_beyond_the_bound_are_omitted_by_rank_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cards, "MOST_CELLS", 4)
    monkeypatch.setattr(cards, "MOST_OF_ALL", 8)
    cover = cover_of(two_factors())
    assert [
        sum(cell.metric == name for cell in cells_of(cover))
        for name in ("write.iops", "write.lat.mean", "device.util")
    ] == [4, 4, 0]
    assert cover.cards[0].note.startswith("4 of 6 cells are drawn")
    assert "6 cells: their numbers are in the tables below" in cover.cards[2].note
    assert "of 6 cells" in cover.cards[0].sentences[0].text


def test_names_of_others_stay_text() -> None:
    runs = sweep(variants=["a", HOSTILE], more={"media": [HOSTILE, "ssd"]})
    cover = cover_of(runs)
    tables = Tables(cover_html(cover))
    assert "img" not in tables.tags
    assert HOSTILE in "".join(tables.heads)


def test_the_page_has_the_matrix_without_scripts() -> None:
    payload, details = assemble(HandMade(two_factors()))
    page = render(payload, details)
    first = page[page.index('<div id="app">') : page.index("<noscript>")]
    assert len(Tables(first).cells) == 18
    assert "<h1>study</h1>" in first


@pytest.mark.parametrize(
    ("value", "shade"),
    [(0.0, 0), (0.0004, 0), (0.03, 1), (0.07, 2), (0.6, 5), (-0.03, -1), (-0.21, -4), (-0.4, -5)],
)
def test_a_fall_is_as_deep_as_its_inverse_rise(value: float, shade: int) -> None:
    comparison = compare(sweep(1 + value, noise=0, blocks=1), "write.iops")
    cell = next(cell for cell in comparison.cells if cell.change is not None)
    assert change_shade(cell.change, comparison) == shade
    slower = compare(sweep(1 / (1 + value), noise=0, blocks=1), "write.lat.mean")
    other = next(cell for cell in slower.cells if cell.change is not None)
    assert change_shade(other.change, slower) == -shade


def test_shades_of_values_follow_their_logarithm_over_a_wide_span() -> None:
    assert value_shades([1.0, 2.0, 3.0]) == [0, 2, 5]
    assert value_shades([1.0, 10.0, 100.0, None]) == [0, 2, 5, 0]
    assert value_shades([7.0, 7.0]) == [0, 0]


def cautious(runs: Sequence[Run]) -> Mapping[str, list[str]]:
    cover = cover_of(runs)
    return {
        "cautions": [sentence.text for sentence in cover.cautions],
        "sentences": [sentence.text for card in cover.cards for sentence in card.sentences],
    }


def syncing(*arms: str) -> list[Run]:
    """One cell in which each write of the given arms is followed by a sync of 4 ms."""
    return [
        run(
            place,
            one.variant,
            one.factors,
            {name: value.value for name, value in one.observations.items()}
            | {"write.ios": 1000.0}
            | ({"sync.lat.mean": 0.004, "sync.ios": 1000.0} if one.variant in arms else {}),
            block=one.plan.block,
        )
        for place, one in enumerate(sweep(loads=[4]))
    ]


CASES = {
    "gain": sweep(1.5),
    "loss": sweep(0.8, more={"disks": [1, 2]}),
    "no-change": sweep(1.0, noise=0.1),
    "one-cell": sweep(1.5, loads=[4]),
    "single-pairs": sweep(1.5, blocks=1),
    "one-variant": sweep(variants=["only"]),
    "three-variants": sweep(1.5, variants=["a", "b", "c"]),
    "nothing-left": [
        run(1, "a", {}, {}, reasons=[invalid()]),
        run(2, "b", {}, {}, reasons=[invalid()]),
    ],
    "syncs": syncing("master", "project"),
    "syncs-differ": syncing("project"),
    "mixed": [
        run(number * 2 + place, name, {"load": load}, {"write.iops": rate})
        for number, (load, change) in enumerate([(1, 0.6), (2, 1.02), (4, 1.5), (8, 1.0)])
        for place, (name, rate) in enumerate([("a", 100.0), ("b", 100.0 * change)])
    ],
}


@pytest.mark.parametrize(
    ("arms", "tone"), [(("master", "project"), "better"), (("project",), "plain")]
)
def test_a_latency_without_syncs_is_judged_where_the_arms_sync_alike(
    arms: tuple[str, ...], tone: str
) -> None:
    cover = cover_of(syncing(*arms))
    sentence = next(
        sentence for sentence in cover.cards[0].sentences if sentence.section == "write.lat.mean"
    )
    cell = next(cell for cell in cells_of(cover) if cell.metric == "write.lat.mean")
    assert sentence.text.startswith("mean latency, writes (without syncs): ")
    assert sentence.tone == tone
    assert cell.has_direction == (tone == "better")
    codes = [caution.code for caution in cover.cautions]
    assert codes[:2] == (["verdicts"] if tone == "better" else ["verdicts", "syncs-differ"])


def test_cautions_are_chosen_by_code() -> None:
    runs = sweep(blocks=1)
    comparisons = [compare(runs, "write.iops")]
    statements = trust(comparisons, runs, ["a run is missing"])
    codes = [caution.code for caution in cover_cautions(runs, [], statements)]
    assert {statement.code for statement in statements} >= {"verdicts", "missing", "one-pair"}
    assert codes == ["verdicts", "missing"]


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_sentences(case: str, golden: Golden) -> None:
    texts = cautious(CASES[case])
    golden(
        "report/cover",
        "\n".join(
            [*(f"caution: {text}" for text in texts["cautions"]), *texts["sentences"]]
        ).replace("\N{NO-BREAK SPACE}", " "),
    )


@pytest.mark.parametrize(
    ("loads", "end"),
    [
        ({1: 1.0, 4: 1.5}, "in 1 of 2 cells, +50 % at numjobs 4."),
        ({1: 1.5, 4: 1.5}, "in 2 of 2 cells, +50 %; largest gain at numjobs 1."),
    ],
    ids=["one cell", "equal cells"],
)
def test_a_sentence_has_its_only_number_once(loads: Mapping[int, float], end: str) -> None:
    runs = [
        run(
            100 * load + 10 * place + block,
            name,
            {"numjobs": load},
            {"write.iops": rate + (block % 3 - 1) * 0.01},
            block=block,
        )
        for load, change in loads.items()
        for block in range(8)
        for place, (name, rate) in enumerate([("a", 100.0), ("b", 100.0 * change)])
    ]
    text = cover_of(runs).cards[0].sentences[0].text
    assert text.replace("\N{NO-BREAK SPACE}", " ").endswith(end)


def test_equal_jobs_are_one_block_with_what_differs() -> None:
    runs = [
        run(
            place,
            variant,
            {"numjobs": load},
            {},
            extra={"job": f"[global]\nrw=write\nbs=4k\n[job]\nnumjobs={load}\n"},
        )
        for place, (variant, load) in enumerate(
            [(variant, load) for load in (1, 4, 16) for variant in ("a", "b")]
        )
    ]
    other = run(9, "a", {"numjobs": 1}, {}, extra={"job": "[global]\nrw=read\nrunning=1\n"})
    first, second = jobs([*runs, other])
    assert first.title == "a and b: 6 runs, 3 jobs that differ in numjobs"
    assert first.text.count("rw=write") == 1
    assert "numjobs=(see below)" in first.text
    assert [line.split() for line in first.text.splitlines()[-3:]] == [
        ["2", "a", "and", "b", load] for load in ("1", "4", "16")
    ]
    assert second.title == "a: 1 run (0009-00000000)"
    assert not re.search("see below", second.text)
