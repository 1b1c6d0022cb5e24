# SPDX-License-Identifier: Apache-2.0
"""Measured cells beside published ones: the same cells, ordered alike or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import FormatError, UsageError
from iolab.base.verdict import Level
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.compare.published import Published
from iolab.studies.results.evidence.model import Run
from support.runs import run

TABLE = """# printed somewhere
variant,numjobs,disks,metric,value,unit
before,1,1,write.iops,100,1/s
before,1,2,write.iops,200,1/s
before,4,1,write.iops,300,1/s
before,4,2,write.iops,400,1/s
before,8,2,write.iops,900,1/s
before,1,1,write.lat.mean,9,ms
"""


@pytest.fixture
def table(tmp_path: Path) -> Published:
    path = tmp_path / "printed.csv"
    path.write_text(TABLE)
    return Published(path)


def measured(values: dict[tuple[int, int], float], variant: str = "rig", **more: Any) -> list[Run]:
    return [
        run(variant, value, numjobs=numjobs, disks=disks, **more)
        for (numjobs, disks), value in values.items()
    ]


ALIKE = {(1, 1): 5.0, (1, 2): 6.0, (4, 1): 7.0, (4, 2): 8.0, (64, 1): 1.0}


def test_cells_in_common_are_ordered_alike_or_not(table: Published) -> None:
    [found] = table.agreements(measured(ALIKE), "write.iops")
    assert (found.cells, found.correlation) == pytest.approx((4, 1))
    assert found.words(alone=True) == "rank correlation with before of printed: 1.00 over 4 cells"
    [other] = table.agreements(
        measured({place: 100 - value for place, value in ALIKE.items()}), "write.iops"
    )
    assert (
        other.words(alone=False)
        == "rank correlation of rig with before of printed: -1.00 over 4 cells"
    )


def test_repetitions_are_one_value_and_invalid_runs_none(table: Published) -> None:
    runs = measured(ALIKE) + measured(
        {(1, 1): 9.0}, block=2
    )  # the mean of 5 and 9 lies between 6 and 7
    assert table.agreements(runs, "write.iops")[0].correlation == pytest.approx(0.8)
    invalid = measured({(1, 1): 9.0}, block=2, level=Level.INVALID)
    assert table.agreements(measured(ALIKE) + invalid, "write.iops")[
        0
    ].correlation == pytest.approx(1)


def test_too_few_cells_say_so(table: Published) -> None:
    runs = measured({(1, 1): 1.0, (1, 2): 2.0})
    assert (
        table.agreements(runs, "write.iops")[0]
        .words(True)
        .startswith("no rank correlation with before of printed: 2 cells")
    )


def test_a_comparison_is_noted_where_its_metric_was_published(table: Published) -> None:
    runs = measured(ALIKE)
    noted = table.add_note(compare(runs, "write.iops"), runs)
    assert "note: rank correlation with before of printed: 1.00 over 4 cells" in str(noted)
    other = [run("rig", 0.5, metric="device.util", unit="1", numjobs=1, disks=1)]
    plain = compare(other, "device.util")
    assert table.add_note(plain, other) is plain


def test_both_stand_in_one_comparison_with_the_published_cells_that_were_measured(
    table: Published,
) -> None:
    both = compare(
        table.with_published(measured(ALIKE)),
        "write.iops",
        baseline="before (published)",
        layout=Layout(rows=["numjobs"], cols=["disks"]),
    )
    cell = both.cell((), (4,), (2,), "before (published)")
    assert cell is not None
    assert cell.estimate.value == 400
    own = both.cell((), (4,), (2,), "rig")
    assert own is not None
    assert own.estimate.value == 8
    assert both.cell((), (8,), (2,), "before (published)") is None


def test_cells_that_differ_in_something_else_are_refused(table: Published) -> None:
    with pytest.raises(UsageError, match="differ in disks, which was not swept"):
        table.agreements([run("rig", 1.0, numjobs=1)], "write.iops")
    with pytest.raises(UsageError, match="differ in bs too"):
        table.with_published(measured(ALIKE, bs="8k") + measured(ALIKE, bs="16k"))


def test_one_level_of_a_table_can_be_held_beside_what_did_not_sweep_it(tmp_path: Path) -> None:
    path = tmp_path / "printed.csv"
    path.write_text(TABLE)
    alone = [
        run("rig", value, numjobs=numjobs) for numjobs, value in ((1, 5.0), (4, 8.0), (8, 9.0))
    ]
    with pytest.raises(UsageError) as refused:
        Published(path).agreements(alone, "write.iops")
    assert (
        refused.value.hint
        == "--published printed.csv:disks=1 takes the cells of one level (of 1, 2)"
    )
    picked = Published(tmp_path / "printed.csv:disks=2")
    [found] = picked.agreements(alone, "write.iops")
    assert (found.published, found.cells) == ("before of printed (disks=2)", 3)
    both = compare(picked.with_published(alone), "write.iops", baseline="before (published)")
    assert (both.rows, both.tables) == (("numjobs",), ())
    assert [cell.estimate.value for cell in both.cells if cell.variant == "before (published)"] == [
        200,
        400,
        900,
    ]
    for wrong in ("disks=9", "bs=8k", "disks"):
        with pytest.raises(UsageError):
            Published(tmp_path / f"printed.csv:{wrong}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "variant,metric\n",
        "variant,numjobs,metric,value,unit\na,1,write.iops,many,1/s\n",
        "\x00\xff",
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "damaged.csv"
    path.write_text(text, "latin-1")
    with pytest.raises(FormatError):
        Published(path)
    with pytest.raises(UsageError, match="can't be read"):
        Published(tmp_path / "none.csv")
