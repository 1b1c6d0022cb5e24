"""What others wrote: read without harm, written again, shown as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.untrusted_text import parsed, visible, visible_json, writable


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_a_terminal_gets_nothing_that_it_obeys(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    assert all(line.isprintable() for line in visible_json(document).split("\n"))
    assert json.loads(visible_json(document)) == json.loads(document)
    assert writable(text).encode().decode() == writable(text)


def test_what_is_no_json_is_told_in_one_way() -> None:
    for data in (
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b"\xff",
        "{",
        "[" * 100_000,
    ):
        with pytest.raises(ValueError):
            parsed(data)


@pytest.mark.parametrize(
    "data",
    [
        rb'{"\ud800": ["\udc80 \ud83d\ude00"]}',
        r'{"\ud800": ["\udc80 \ud83d\ude00"]}',
        '{"\ud800": ["\udc80 \U0001f600"]}'.encode("utf-8", "surrogatepass"),
    ],
)
def test_texts_can_be_written_again(data: bytes | str) -> None:
    assert parsed(data) == {"\\ud800": ["\\udc80 \U0001f600"]}
