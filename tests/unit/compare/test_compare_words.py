# SPDX-License-Identifier: Apache-2.0
"""How changes are written: no sign on what is zero, factors where per cent would mislead."""

from __future__ import annotations

from iolab.base.units import format_number
from iolab.output.report.words.phrases import MINUS, change_interval_text, signed_text
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Change
from iolab.studies.compare.render.words import change_text, interval_text
from support.runs import study

RATES = compare(study(blocks=2), "write.iops")


def change(value: float, low: float | None, high: float | None) -> Change:
    return Change(value, low, high, pairs=2, dropped=0)


def test_what_rounds_to_zero_bears_no_sign() -> None:
    assert change_text(change(-0.0004, None, None), RATES) == "0.0 %"
    assert change_text(change(0.0004, None, None), RATES) == "0.0 %"
    assert change_text(change(-0.0006, None, None), RATES) == "-0.1 %"
    assert interval_text(change(0, -0.0004, 0.0101), RATES) == "[0.0, +1.0]"
    assert interval_text(change(0, -0.0004, 0.0101), RATES, 2) == "[-0.04, +1.01]"


def test_large_changes_are_grouped() -> None:
    assert (
        change_text(change(231.0, None, None), RATES) == f"+{format_number(23100)} %" != "+23100 %"
    )
    assert signed_text(23100.0) == f"+{format_number(23100)}"
    assert (signed_text(-0.04), signed_text(0), signed_text(-3548.2), signed_text(1.25)) == (
        "0.0",
        "0.0",
        f"{MINUS}3548",
        "+1.2",
    )


def test_intervals_beyond_tenfold_are_factors() -> None:
    wide = change(1.0, -0.9999, 11_008_910.95)
    assert (
        interval_text(wide, RATES) == change_interval_text(wide, RATES) == "[< x 0.001, > x 1000]"
    )
    assert interval_text(wide, RATES, 1) == "[-100.0, +1100891095.0]", "a precision was asked for"
    within = change(1.0, -0.995, 900.0)
    assert interval_text(within, RATES) == change_interval_text(within, RATES) == "[x 0.005, x 901]"
    assert interval_text(change(1.0, 0.5, 9.5), RATES) == "[+50.0, +950.0]"
