# SPDX-License-Identifier: Apache-2.0
"""Sizes as expressions: what they come to, and what is said of wrong ones."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size
from iolab.studies.plan.cells.expressions import ExpressionError, is_expression, size_of, takes_size
from iolab.studies.plan.file.load import load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.acting import fake_host
from support.golden import Golden

GIB = 2**30
NAMES = {
    "memory": 16 * GIB,
    "cpus": 8,
    "numjobs": 4,
    "bs": "128k",
    "ratio": 0.5,
    "op": "read",
    "flag": True,
    "swap": None,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.25 * memory", 4 * GIB),
        ("2 * memory / numjobs", 8 * GIB),
        ("memory", 16 * GIB),
        ("1g * cpus", 8 * GIB),
        ("(1g + 512m) * 2", 3 * GIB),
        ("memory - 1g - 1g", 14 * GIB),
        ("memory / 2 / 2", 4 * GIB),
        ("1g+1g*2", 3 * GIB),
        ("-1g + 2 * 1g", GIB),
        ("1000 * bs", 125 * 2**20),
        ("ratio * memory", 8 * GIB),
        (".5*memory", 8 * GIB),
        ("8 * bs", 2**20),
        ("3 * bs", 3 * 131072),
        ("memory / 3", 16 * GIB // 3 // 2**20 * 2**20),
        ("10 / 4", 2),
        ("1GiB*1", GIB),
        ("2 * 4kb", 8192),
    ],
)
def test_an_expression_comes_to_bytes(text: str, value: int) -> None:
    assert size_of(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "2 *",
        "* 2",
        "(memory",
        "memory)",
        "2 memory",
        "memory / 0",
        "memory / (cpus - 8)",
        "1q * 2",
        "memory ** 2",
        "memory; ls",
        "__import__(1)",
        "memry / 2",
        "op * 2",
        "flag * 2",
        "swap * 2",
        "1g - 2g",
        "0.1 * 2",
        "9e * 9",
        "9999999p * 9999",
        "(" * 60 + "1" + ")" * 60,
        "",
    ],
)
def test_a_wrong_expression_says_why(text: str, golden: Golden) -> None:
    with pytest.raises(ExpressionError) as caught:
        size_of(text, NAMES)
    golden("study/expressions-wrong", str(caught.value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1g", False),
        ("50%", False),
        ("4k-64k", False),
        ("lots", False),
        ("4k,8k", False),
        ("memory", True),
        ("numjobs", True),
        ("memory - 1g", True),
        ("2*1g", True),
        ("(1g)", True),
        ("1g/3", True),
    ],
)
def test_sizes_and_fios_ranges_are_no_expressions(text: str, expected: bool) -> None:
    assert is_expression(text, NAMES) is expected


def test_only_sizes_are_computed() -> None:
    assert all(takes_size(key) for key in ("size", "io_size", "filesize", "offset", "dirty_bytes"))
    assert not any(
        takes_size(key) for key in ("numjobs", "bs", "path", "buffer_pattern", "mount_options")
    )


numbers = st.integers(1, 999).map(str)
trees = st.recursive(
    numbers | st.sampled_from(["memory", "cpus", "4k", "1m"]),
    lambda below: st.one_of(
        st.tuples(below, st.sampled_from("+-*/"), below).map(" ".join),
        below.map(lambda text: f"({text})"),
    ),
    max_leaves=8,
)


@given(trees)
def test_it_agrees_with_exact_arithmetic(text: str) -> None:
    exact = (
        text.replace("memory", str(NAMES["memory"]))
        .replace("cpus", "8")
        .replace("4k", "4096")
        .replace("1m", "1048576")
    )
    words = exact.replace("(", " ( ").replace(")", " ) ").split()
    try:
        value = eval(
            "".join(f"Fraction({word})" if word.isdigit() else word for word in words),
            {"Fraction": Fraction},
        )
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            size_of(text, NAMES)
        return
    if not 2 <= value < 2**62:
        return
    found = size_of(text, NAMES)
    step = 2**20 if value >= 2**20 else 1
    assert abs(found - value) <= step * (1 + 1e-9) + float(value) * 1e-9


@given(st.text("0123456789.kmgp+-*/() memorycpus", max_size=30))
def test_any_text_is_a_size_or_an_expression_error(text: str) -> None:
    try:
        value = size_of(text, NAMES)
    except ExpressionError:
        return
    assert 0 < value < 2**63


STUDY = """
[workload]
kind = "fio"
runtime = "2s"
[workload.options]
size = "{size}"
[factors]
numjobs = [1, 4]
"""


def test_a_study_means_the_hosts_memory_and_the_cells_factors(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(STUDY.format(size="0.5 * memory / numjobs"), "utf-8")
    options = [
        cell.as_data()["workload"]["options"] for cell in load_study(path, host=fake_host()).cells
    ]
    memory = 16384000 * 1024
    assert options == [
        {"size": memory // 2 // count // 2**20 * 2**20, "numjobs": count} for count in (1, 4)
    ]


def test_levels_may_be_expressions(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        STUDY.replace('size = "{size}"\n', "").replace(
            "numjobs = [1, 4]", 'size = ["8m", "memory / 4"]'
        ),
        "utf-8",
    )
    study = load_study(path, host=fake_host())
    assert [
        (cell.factors["size"], cell.as_data()["workload"]["options"]["size"])
        for cell in study.cells
    ] == [("8m", "8m"), ("memory / 4", 4000 * 2**20)]


def test_a_factor_that_only_an_expression_names_is_used(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        STUDY.format(size="memory / share").replace("numjobs = [1, 4]", "share = [2]"), "utf-8"
    )
    assert load_study(path, host=fake_host()).cells[0].as_data()["workload"]["options"] == {
        "size": 8000 * 2**20
    }


def test_a_wrong_expression_is_told_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(STUDY.format(size="memry / numjobs"), "utf-8")
    with pytest.raises(StudyProblems) as caught:
        load_study(path, host=fake_host())
    assert str(caught.value) == (
        f"{path}:6: workload.options.size: 'memry / numjobs' names 'memry', which is neither a fact nor a "
        "factor; there are: memory, cpus, numjobs"
    )


def test_a_host_that_tells_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(STUDY.format(size="memory / 2"), "utf-8")
    host = fake_host()
    host.files.pop("/proc/meminfo")
    with pytest.raises(
        StudyProblems, match="needs the host's memory, which it doesn't tell; write a size"
    ):
        load_study(path, host=host)


def test_sizes_are_read_as_fio_reads_them() -> None:
    for unit in ("k", "M", "GiB", "tb"):
        assert size_of(f"1 * 3{unit}", {}) == parse_fio_size(f"3{unit}")
    with pytest.raises(UsageError):
        parse_fio_size("3x")
