# SPDX-License-Identifier: Apache-2.0
"""What others wrote: read without harm, written again, shown as text."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from iolab.base.untrusted_text import (
    html,
    json_text,
    markdown,
    page_json,
    parse_json,
    visible,
    visible_json,
    visible_lines,
    writable,
)


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_a_terminal_gets_nothing_that_it_obeys(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    assert all(line.isprintable() for line in visible_json(document).split("\n"))
    assert json.loads(visible_json(document)) == json.loads(document)
    assert writable(text).encode().decode() == writable(text)


def test_numbers_that_are_not_finite_are_null_in_json() -> None:
    value = {
        "a": math.nan,
        "b": [1.5, (math.inf, {"c": -math.inf})],
        "d": np.float64("nan"),
        "e": 2,
    }

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(json_text(value), parse_constant=refuse) == {
        "a": None,
        "b": [1.5, [None, {"c": None}]],
        "d": None,
        "e": 2,
    }


@given(st.text(max_size=30))
@example("+12.3\xa0% \u202e")
@example('bl\x1b[32mock\x9b2J\u202e \\u202e \\ "\r\n\t\u2028\0é😀')
def test_a_page_gets_texts_as_they_are_shown(text: str) -> None:
    document = json.dumps({text: [text]}, ensure_ascii=False)
    shown = json.loads(page_json(document))
    kept = {"\n": "\n", "\r": "\r", "\t": "\t", "\xa0": "\xa0"}
    escaped = "".join(kept.get(char, visible(char)) for char in text)
    assert shown == {escaped: [escaped]}
    assert page_json(page_json(document)) == page_json(document)


@given(st.text(max_size=30))
def test_html_holds_no_markup_and_no_control_character(text: str) -> None:
    assert html(text).isprintable()
    assert not set(html(text)) & {"<", ">", '"', "'"}
    assert all(line.isprintable() for line in visible_lines(text).split("\n"))


PUNCTUATION = "<>&\\`*_[]()|~$!#:/;=\"'"


@given(st.text(st.sampled_from(f"{PUNCTUATION}ab1 \n\x1b\u202e"), max_size=30))
@example("<img src=x onerror=alert(1)>")
@example("![x](http://example.com/x.png) [x](javascript:alert(1)) <http://example.com>")
@example("**a** __b__ *c* _d_ ~~e~~ `f` &lt; a_b")
def test_markdown_shows_the_text_and_has_no_markup(text: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for line in (f"### x{markdown(text)}x", f"| a |\n|---|\n| x{markdown(text)}x |"):
        parts = [
            part
            for token in reader.parse(line)
            if token.type == "inline"
            for part in token.children or ()
        ]
        assert {part.type for part in parts} <= {"text", "text_special"}
        assert "".join(part.content for part in parts).removeprefix("a") == f"x{visible(text)}x"


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
            parse_json(data)


@pytest.mark.parametrize(
    "data",
    [
        rb'{"\ud800": ["\udc80 \ud83d\ude00"]}',
        r'{"\ud800": ["\udc80 \ud83d\ude00"]}',
        '{"\ud800": ["\udc80 \U0001f600"]}'.encode("utf-8", "surrogatepass"),
    ],
)
def test_texts_can_be_written_again(data: bytes | str) -> None:
    assert parse_json(data) == {"\\ud800": ["\\udc80 \U0001f600"]}
