# SPDX-License-Identifier: Apache-2.0
"""Profiles as text: samples of `perf script`, with more or fewer columns, and folded stacks; cut
and damaged ones too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.base.registry import load
from iolab.formats.detect import detect, read
from iolab.formats.profiles.stacks import StackTable

SCRIPT = """# captured on    : Sat Nov 21 16:07:45 2026
fio  9567 61783.852923: cpu-clock:ppp:
\tffffffff821ef691 do_syscall_64+0x51 ([kernel.kallsyms])
\tffffffffc0a1d2f0 zio_execute ([zfs])
\t    7f94c2c5ea00 __libc_pread (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           938c8 [unknown] (/usr/bin/fio)
\t           938c9 [unknown] (/usr/bin/fio)

kworker/u8:3-lo 12389 61784.852923: cpu-clock:ppp:
\tffffffff8130b731 ret_from_fork ([kernel.kallsyms])

fio  9567 61785.352923: cpu-clock:ppp:
\t    558df910ab70 [unknown] ([unknown])
\tffff800010a1d2f0 [unknown] ([unknown])

"""
FOLDED = "fio;read_[k] 3\nfio;read_[k];copy to user_[k] 4\nswapper;default_idle_[k] 10\n"


def table(text: str, name: str = "x") -> StackTable:
    kind, found = read(text.encode(), name)
    assert kind in ("perf-script", "folded")
    assert isinstance(found, StackTable)
    return found


def test_samples_are_folded_from_the_outermost_frame() -> None:
    found = table(SCRIPT)
    assert found.stacks == {
        "fio;[fio];__libc_pread;zio_execute_[k];do_syscall_64_[k]": 1,
        "kworker/u8:3-lo;ret_from_fork_[k]": 1,
        "fio;[unknown]_[k];[unknown]": 1,
    }
    assert (found.event, found.damaged, found.samples) == ("cpu-clock:ppp", 0, 3)
    assert found.seconds == pytest.approx(1.5)


@pytest.mark.parametrize(
    "head",
    [
        "fio  9567 cycles: ",
        "fio 9567/9568 [001] 61783.852923:   10101010 cycles: ",
        "a name 9567 [000] cycles:",
    ],
)
def test_any_columns_of_a_sample_are_taken(head: str) -> None:
    found = table(f"{head}\n\t821ef691 main+0x1f (/usr/bin/fio)\n\n")
    assert list(found.stacks) == [
        f"{head[:3].strip() if head.startswith('fio') else 'a name'};main"
    ]
    assert found.event == "cycles"


def test_a_name_with_a_semicolon_makes_no_frame_more() -> None:
    assert list(table("a;b 1 cycles:\n\t1 f<x;y> (/bin/x)\n\n").stacks) == ["a:b;f<x:y>"]


def test_a_sample_that_was_cut_is_counted_and_left_out() -> None:
    cut = table(SCRIPT[: SCRIPT.index("\tffff800010a1d2f0")])
    assert (cut.samples, cut.damaged) == (2, 1)
    assert cut.first_damaged is not None
    assert "within a sample" in cut.first_damaged[1]


def test_a_damaged_line_costs_its_sample_alone() -> None:
    found = table(SCRIPT.replace("\tffffffffc0a1d2f0 zio_execute ([zfs])", "!!!"))
    assert (found.samples, found.damaged) == (2, 1)
    assert found.first_damaged == (4, "'!!!' is neither a sample nor a frame")


def test_folded_stacks_are_added_up_and_written_again() -> None:
    found = table(FOLDED + "fio;read_[k] 2\n")
    assert found.stacks == {
        "fio;read_[k]": 5,
        "fio;read_[k];copy to user_[k]": 4,
        "swapper;default_idle_[k]": 10,
    }
    assert table(found.to_text()).stacks == found.stacks


def test_a_folded_line_without_a_count_is_counted_as_damaged() -> None:
    found = table(FOLDED + "fio;read_[k]\nfio;;x 3\n")
    assert (found.samples, found.damaged) == (17, 2)
    assert found.first_damaged == (4, "'fio;read_[k]' is not a stack with a count")


@pytest.mark.parametrize(
    ("name", "text"), [("folded", "fio;a\n"), ("perf-script", "hello\n"), ("folded", "")]
)
def test_what_holds_no_stack_is_refused(name: str, text: str) -> None:
    with pytest.raises(FormatError, match=r"^x: "):
        load("format", name)().read(text.encode(), "x")


@pytest.mark.parametrize(
    "text", ["3;fio-3.33;job;0;0;10;20;0.00%\n", "1000, 5, 0, 4096\n", "a b c\n", "{}", "x 3\n"]
)
def test_other_files_are_not_taken_for_profiles(text: str) -> None:
    assert detect(text.encode(), "any.txt") not in ("folded", "perf-script")


@given(st.integers(0, len(SCRIPT)), st.integers(0, len(SCRIPT)), st.binary(max_size=20))
def test_whatever_befalls_a_file_it_is_read_or_refused(start: int, end: int, noise: bytes) -> None:
    for name, text in (("perf-script", SCRIPT), ("folded", FOLDED * 4)):
        found = read_or_refused(name, text.encode()[:start] + noise + text.encode()[end:])
        assert found is None or found.samples >= 0


def read_or_refused(name: str, data: bytes) -> StackTable | None:
    """None for a FormatError that says where; anything else fails the test."""
    caught = None
    try:
        found: StackTable = load("format", name)().read(data, "x")
        return found
    except FormatError as error:
        caught = error
    assert str(caught).startswith("x")
    return None
