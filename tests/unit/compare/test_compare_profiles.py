# SPDX-License-Identifier: Apache-2.0
"""Profiles of a cell on one tree, their differences, and the words for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.studies.compare.profile_words import percent, points, remarks, sampling_text, spent
from iolab.studies.compare.profiles import CellProfiles, cells_of, change
from iolab.studies.results.open.profiles import Profile, is_idle, read_profiles
from support.profiles import AFTER, BEFORE, add_profile


@pytest.fixture
def cell(tmp_path: Path) -> CellProfiles:
    add_profile(tmp_path, 13, "patched", AFTER)
    add_profile(tmp_path, 14, "plain", BEFORE)
    found, notes = read_profiles(tmp_path)
    assert not notes
    [one] = cells_of(found, "plain", ["plain", "patched"])
    return one


def test_the_baseline_comes_first_and_idle_is_not_in_the_tree(cell: CellProfiles) -> None:
    assert [one.variant for one in cell.profiles] == ["plain", "patched"]
    assert [(one.samples, one.busy_samples, one.kernel_samples) for one in cell.profiles] == [
        (200, 120, 110),
        (200, 50, 20),
    ]
    assert "default_idle" in [part.name for part in cell.parts], "an interrupt on top of it is work"
    assert "cpu_startup_entry" not in [part.name for part in cell.parts]


def test_a_parent_holds_what_its_children_do_and_comes_before_them(cell: CellProfiles) -> None:
    for place, part in enumerate(cell.parts):
        assert part.parent is None or part.parent < place
        children = [one for one in cell.parts if one.parent == place]
        for profile in range(2):
            assert sum(one.samples[profile] for one in children) <= part.samples[profile]
    for profile in range(2):
        assert sum(
            part.shares[profile] for part in cell.parts if part.parent is None
        ) == pytest.approx(1)


def test_threads_that_differ_by_a_number_are_one_process(cell: CellProfiles) -> None:
    [kworker] = [part for part in cell.parts if part.name.startswith("kworker")]
    assert (kworker.name, kworker.samples) == ("kworker", (50, 10))


def test_differences_are_of_shares_so_that_lengths_do_not_matter(cell: CellProfiles) -> None:
    [fio] = [part for part in cell.parts if part.name == "fio"]
    assert change(fio, 0, 1) == pytest.approx(40 / 50 - 50 / 120)
    found = cell.differing(0, 1)
    assert found[0].name == "main"
    assert change(found[0], 0, 1) == pytest.approx(30 / 50 - 10 / 120)
    assert [abs(change(one, 0, 1)) for one in found] == sorted(
        (abs(change(one, 0, 1)) for one in found), reverse=True
    )
    assert ("vfs_read", True) in [(one.name, one.kernel) for one in found]


def test_parts_too_small_to_be_seen_are_left_out() -> None:
    stacks = {"fio;main": 10_000, "fio;rare": 1}
    [cell] = cells_of([Profile("1", "a", {}, stacks)], None, ["a"])
    assert [part.name for part in cell.parts] == ["fio", "main"]


def test_cells_are_apart_and_a_deep_stack_is_no_trouble() -> None:
    deep = {"fio;" + ";".join(f"f{depth}" for depth in range(3000)): 5}
    found = cells_of(
        [Profile("1", "a", {"n": 1}, deep), Profile("2", "a", {"n": 2}, deep)], "a", ["a"]
    )
    assert [(cell.title, len(cell.parts)) for cell in found] == [("n=1", 3001), ("n=2", 3001)]


@pytest.mark.parametrize(
    ("stack", "idle"),
    [
        ("swapper;do_idle_[k];default_idle_[k]", True),
        ("swapper/3;cpu_startup_entry_[k]", True),
        ("swapper;x_[k];acpi_idle_enter_[k]", True),
        ("swapper;x_[k];intel_idle_irq_[k]", True),
        ("swapper;pv_native_safe_halt_[k]", True),
        ("swapper;do_idle_[k];schedule_idle_[k]", False),
        ("swapper;default_idle_[k];common_interrupt_[k]", False),
        ("fio;default_idle_[k]", False),
        ("swapper", False),
    ],
)
def test_idle_is_the_idle_process_in_a_function_that_waits(stack: str, idle: bool) -> None:
    assert is_idle(stack) is idle


def test_words_tell_what_was_sampled_and_how_it_was_spent(cell: CellProfiles) -> None:
    plain = cell.profiles[0]
    assert sampling_text(plain) == "200 samples, 99 Hz, 2 s, 2 CPUs, cpu-clock"
    assert spent(plain) == "idle 40.0 %; of the rest 91.7 % in the kernel, 8.3 % in user programs"
    [remark] = remarks(plain)
    assert remark.startswith("200 of 396 possible samples were taken")
    assert (percent(0.1234), percent(0.0012), points(0.02), points(-0.002)) == (
        "12.3 %",
        "0.12 %",
        "+2.0 points",
        "-0.20 points",
    )


def test_a_kernel_without_names_and_lost_samples_are_said() -> None:
    one = Profile("1", "a", {}, {"fio;[unknown]_[k]": 5, "fio;main": 5}, lost=3, damaged=2)
    assert remarks(one) == [
        "perf lost 3 chunks of samples",
        "2 samples could not be read",
        "functions of the kernel have no names: measure as root, or with kernel.kptr_restrict=0",
    ]
