# SPDX-License-Identifier: Apache-2.0
"""What every renderer must do: write any comparison, an empty one and one with hostile names among
them, as text that ends with a line."""

from __future__ import annotations

import pytest

from iolab.base import registry
from iolab.base.verdict import Level
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison
from support.runs import run

HOSTILE = 'a\x1b[31mb\n|,"`<script>\u202e\x9b'


def made(
    *, level: Level = Level.OK, variants: tuple[str, str] = ("master", "project"), blocks: int = 6
) -> Comparison:
    return compare(
        [
            run(variant, 1000.0 + block + 100 * index, block=block, level=level, numjobs=4)
            for block in range(1, blocks + 1)
            for index, variant in enumerate(variants)
        ],
        "write.iops",
    )


COMPARISONS = {
    "with a change": made(),
    "of one repetition": made(blocks=1),
    "without a valid run": made(level=Level.INVALID),
    "of suspect runs": made(level=Level.SUSPECT),
    "with hostile names": made(variants=("master", HOSTILE)),
    "of one variant": compare([run("master", 5.0, numjobs=4)], "write.iops"),
}


@pytest.fixture(params=registry.names("renderer"))
def renderer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", COMPARISONS)
def test_it_writes_every_comparison(renderer: str, name: str) -> None:
    render = registry.load("renderer", renderer)().render
    text = render(COMPARISONS[name])
    assert isinstance(text, str)
    assert text == render(COMPARISONS[name])
    assert text.encode("utf-8")
    if renderer == "markdown":
        assert "<" not in text
        assert all(line.isprintable() for line in text.split("\n"))
    if name == "with a change":
        assert "project" in text
