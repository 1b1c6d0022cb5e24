# SPDX-License-Identifier: Apache-2.0
"""The glossary: each term once, in one short sentence, with units and symbols that the program has."""

from __future__ import annotations

import pytest

from iolab.base import metrics
from iolab.base.glossary import SECTIONS, Term
from iolab.base.units import BASE
from iolab.base.verdict import Level

TERMS = [term for terms in SECTIONS.values() for term in terms]


def test_each_term_is_there_once() -> None:
    names = [term.name.lower() for term in TERMS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_meaning_is_one_short_sentence(term: Term) -> None:
    assert term.meaning[0].isupper() or term.meaning[0].isdigit()
    assert term.meaning.endswith(".")
    assert ". " not in term.meaning
    assert len(term.meaning.split()) <= 25
    assert "|" not in term.name + term.symbol + term.meaning, "the page is a table"


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_units_are_base_units(term: Term) -> None:
    assert term.unit is None or term.unit in BASE.values()


@pytest.mark.parametrize(
    ("symbol", "metric"),
    [
        ("iops", "write.iops"),
        ("bw", "write.bw"),
        ("slat", "write.slat.mean"),
        ("clat", "write.clat.mean"),
        ("lat", "write.lat.mean"),
        ("p99", "write.clat.p99"),
        ("await", "device.await"),
        ("queue", "device.queue"),
        ("util", "device.util"),
        ("stall.seconds", "stall.seconds"),
        ("write.amplification", "write.amplification"),
        ("target.compression", "target.compression"),
        ("offered.iops", "offered.iops"),
    ],
)
def test_a_symbol_in_names_of_metrics_has_their_unit(symbol: str, metric: str) -> None:
    [term] = [term for term in TERMS if term.symbol == symbol]
    known = metrics.find(metric)
    assert known is not None
    assert term.unit == known.unit


def test_every_level_of_a_verdict_is_explained() -> None:
    assert {level.value for level in Level} <= {term.name for term in TERMS}
