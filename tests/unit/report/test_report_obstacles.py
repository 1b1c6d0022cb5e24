# SPDX-License-Identifier: Apache-2.0
"""What a cover says where nothing, or one variant, can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from iolab.base.verdict import Reason
from iolab.output.report.assemble import assemble
from iolab.output.report.cover.obstacles import ELSE, MOST_REASONS, REMEDIES
from iolab.output.report.headline import MOST_MATRICES, headline
from iolab.output.report.model.cover_payload import Cover
from iolab.output.report.page.cover_html import cover_html
from iolab.studies.results.evidence.model import Run
from support.report_data import HandMade, invalid, run, suspect, sweep

HOSTILE = '<img src=x onerror="alert(1)">'


def judged(runs: Sequence[Run], reasons_of: Callable[[int, Run], Sequence[Reason]]) -> list[Run]:
    """The same runs with other verdicts."""
    return [
        run(
            place + 1,
            one.variant,
            one.factors,
            {name: found.value for name, found in one.observations.items()},
            block=one.plan.block,
            reasons=reasons_of(place, one),
        )
        for place, one in enumerate(runs)
    ]


def cover_of(runs: Sequence[Run]) -> Cover:
    return assemble(HandMade(runs))[0].cover


def test_results_of_invalid_runs_say_first_that_nothing_can_be_compared() -> None:
    error = invalid("job-error", "fio reports ENOSPC")
    runs = judged(sweep(), lambda place, _: [error if place % 3 else invalid("own-gate", "odd")])
    cover = cover_of(runs)
    [obstacle] = cover.obstacles
    assert obstacle.text == f"Nothing can be compared: all {len(runs)} runs are INVALID."
    assert [(reason.code, reason.count) for reason in obstacle.reasons] == [
        ("job-error", "24 of 36 runs"),
        ("own-gate", "12 of 36 runs"),
    ]
    assert [reason.remedy for reason in obstacle.reasons] == [REMEDIES["job-error"], ELSE]
    assert obstacle.reasons[0].runs == ["0002-00000000", "0003-00000000", "0005-00000000"]
    assert obstacle.reasons[0].more == 21
    assert "--resume" in obstacle.remedy
    assert cover.cards == []
    assert not [item for item in cover.cautions if item.code == "verdicts"]
    page = cover_html(cover)
    assert page.index("Nothing can be compared") < page.index("ENOSPC")
    assert 'href="#run=0002-00000000"' in page
    first = headline(HandMade(runs), 2)
    assert first.sentences[0].text == obstacle.text
    assert first.matrices == []


def test_a_headline_has_the_colours_of_the_cover() -> None:
    runs = sweep()
    page = cover_html(cover_of(runs))
    matrices = headline(HandMade(runs), 2).matrices
    assert 0 < len(matrices) <= MOST_MATRICES
    cells = [classes for _, rows in matrices for row in rows for classes in row]
    assert cells
    assert all(f'<td class="{classes}"' in page for classes in cells)


def test_a_variant_without_a_run_that_counts_is_named() -> None:
    def of(variant: str) -> Callable[[int, Run], Sequence[Reason]]:
        return lambda _, one: [invalid()] if one.variant == variant else []

    [lost] = cover_of(judged(sweep(), of("project"))).obstacles
    assert lost.text == "Nothing can be compared: all 18 runs of project are INVALID."
    [lost] = cover_of(judged(sweep(), of("master"))).obstacles
    assert "master" in lost.text
    three = judged(sweep(variants=("master", "one", "two")), of("two"))
    [lost] = cover_of(three).obstacles
    assert lost.text == "two can't be compared: all 18 runs of two are INVALID."


def test_arms_that_share_no_cell_are_no_comparison() -> None:
    runs = judged(
        sweep(loads=(1, 4)),
        lambda _, one: (
            [invalid()] if (one.variant == "master") == (one.factors["numjobs"] == 1) else []
        ),
    )
    [obstacle] = cover_of(runs).obstacles
    assert obstacle.text.startswith("Nothing can be compared: no cell")


@pytest.mark.parametrize(
    "runs",
    [
        sweep(),
        sweep(variants=("master",)),
        judged(sweep(), lambda *_: [suspect()]),
        judged(sweep(), lambda place, _: [invalid()] if place < 6 else []),
    ],
    ids=["all OK", "one arm", "all SUSPECT", "a block INVALID"],
)
def test_what_can_be_compared_has_no_obstacle(runs: Sequence[Run]) -> None:
    assert cover_of(runs).obstacles == []


def test_no_run_and_no_number_are_said() -> None:
    assert cover_of([]).obstacles[0].text == "Nothing can be compared: there is no run."
    [obstacle] = cover_of([run(1, "master", {}, {})]).obstacles
    assert obstacle.text == "Nothing can be compared: no run that counts has a number."
    [single] = cover_of([run(1, "master", {}, {}, reasons=[invalid()])]).obstacles
    assert single.text == "Nothing can be compared: the only run is INVALID."


def test_many_reasons_are_bounded_and_hostile_words_escaped() -> None:
    reasons = [invalid(f"gate-{number}", HOSTILE) for number in range(9)]
    cover = cover_of(judged(sweep(), lambda *_: reasons))
    [obstacle] = cover.obstacles
    assert len(obstacle.reasons) == MOST_REASONS
    assert obstacle.remedy.startswith("5 more reasons below.")
    assert "<img" not in cover_html(cover)
