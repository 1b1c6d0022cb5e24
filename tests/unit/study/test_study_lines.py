# SPDX-License-Identifier: Apache-2.0
"""Keys of a TOML file and their lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.studies.plan.file.lines import key_lines

TEXT = '''\
# a comment = 1
title = "a # no comment"  # a comment

[study]
name = 'x = y [z]'
long = """
name = "inside a text"
[not.a.table]
"""
levels = [
  1,   # one
  [2, "]"],
  { a = 1, b = { c = 2 } },
]

["quoted table".'and this']
a.b."c.d" = 1
raw = \'\'\'it's
fine\'\'\'

[[step]]
at = 1
[step.inner]
x = 1
[[step]]
at = 2
[step.inner]
x = 2
'''


def test_every_kind_of_key_has_its_line() -> None:
    lines = key_lines(TEXT)
    tomllib.loads(TEXT)
    assert lines[("title",)] == 2
    assert lines[("study",)] == 4
    assert lines[("study", "name")] == 5
    assert lines[("study", "long")] == 6
    assert lines[("study", "levels")] == 10
    assert lines[("study", "levels", "0")] == 11
    assert lines[("study", "levels", "1")] == 12
    assert lines[("study", "levels", "2", "b", "c")] == 13
    assert lines[("quoted table", "and this", "a", "b", "c.d")] == 17
    assert lines[("quoted table", "and this", "raw")] == 18
    assert lines[("step", "0", "at")] == 22
    assert lines[("step", "0", "inner", "x")] == 24
    assert lines[("step", "1", "at")] == 26
    assert lines[("step", "1", "inner", "x")] == 28
    assert not any("not" in path or "inside a text" in path for path in lines)


def test_windows_line_ends_count_once() -> None:
    assert key_lines("a = 1\r\n\r\n[t]\r\nb = 2\r\n") == {("a",): 1, ("t",): 3, ("t", "b"): 4}


def test_an_escaped_quote_does_not_end_a_text() -> None:
    assert key_lines('a = "\\" [x]"\nb = """\\"""" \nc = 1\n')[("c",)] == 3


words = st.text("abcdef-_", min_size=1, max_size=6)
texts = st.text("ab #=[]{}'\"\\,.\n\t", max_size=12)


@st.composite
def quoted(draw: st.DrawFn) -> str:
    """A text in one of TOML's four notations."""
    text = draw(texts)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    kinds = ['"' + escaped.replace("\n", "\\n") + '"', '"""' + escaped + '"""']
    if "'" not in text:
        kinds.append("'''" + text + "'''")
        if "\n" not in text:
            kinds.append("'" + text + "'")
    return draw(st.sampled_from(kinds))


values = st.recursive(
    st.one_of(
        st.integers().map(str), st.sampled_from(["true", "false", "1979-05-27T07:32:00Z"]), quoted()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ",\n # , ]\n".join(items) + "]"),
        st.dictionaries(words, inner.filter(lambda text: "\n" not in text), max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        ),
    ),
    max_leaves=5,
)
tables = st.dictionaries(words, st.dictionaries(words, values, max_size=4), max_size=4)


def _leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from _leaves(value, (*path, key))


@pytest.mark.slow
@given(tables)
def test_every_key_that_tomllib_reads_is_found_on_a_line_that_names_it(
    document: dict[str, dict[str, str]],
) -> None:
    text = "".join(
        f"[{name}]\n" + "".join(f"  {key} = {value} # x\n" for key, value in table.items())
        for name, table in document.items()
    )
    data = tomllib.loads(text)
    lines, rows = key_lines(text), text.split("\n")
    for path in _leaves(data):
        assert path in lines
        assert path[-1] in rows[lines[path] - 1]
