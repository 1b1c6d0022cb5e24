# SPDX-License-Identifier: Apache-2.0
"""Profiles read from evidence: of runs made for them, of imported trees, damaged ones and those
that never came to be."""

from __future__ import annotations

import json
from pathlib import Path

from iolab.studies.results.evidence.files import read_plan, write_plan
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.profiles import read_profiles
from support.fio_files import job, output
from support.profiles import BEFORE, add_profile


def test_a_profile_bears_what_it_was_made_with(tmp_path: Path) -> None:
    add_profile(tmp_path, 3, "plain", BEFORE)
    [one] = read_profiles(tmp_path)[0]
    assert (one.run, one.variant, one.factors, one.frequency, one.seconds, one.cpus) == (
        "0003-00000000",
        "plain",
        {"numjobs": 4},
        99,
        2.0,
        2,
    )
    assert one.commands == (("perf", "record"), ("perf", "script"))
    assert one.possible == 396
    assert one.stacks == BEFORE


def test_results_without_profiles_have_none(tmp_path: Path) -> None:
    assert read_profiles(tmp_path) == ([], [])


def test_damage_costs_a_profile_and_is_said(tmp_path: Path) -> None:
    add_profile(tmp_path, 1, "a", "nothing of the kind\n")
    (add_profile(tmp_path, 2, "b", BEFORE) / "profile.folded").unlink()
    (add_profile(tmp_path, 3, "c", BEFORE) / "run.json").unlink()
    add_profile(
        tmp_path,
        4,
        "d",
        BEFORE,
        status="failed",
        extra={"failure": "no profile: perf sampled nothing"},
    )
    (add_profile(tmp_path, 5, "e", BEFORE) / "profile.json").write_text("{", "utf-8")
    found, notes = read_profiles(tmp_path)
    assert [(one.variant, one.frequency, one.possible) for one in found] == [("e", None, None)]
    assert "0005-00000000: profile.json is not as the run left it" in notes.pop()
    assert [note.split(":")[0] for note in notes] == [
        "run 0001-00000000 has no profile that can be read",
        "run 0002-00000000 has no profile that can be read",
        "run 0003-00000000, made for a profile, has none",
        "run 0004-00000000, made for a profile, has none",
    ]
    assert notes[3].endswith("no profile: perf sampled nothing")


def test_facts_that_are_nonsense_are_not_taken(tmp_path: Path) -> None:
    place = add_profile(tmp_path, 1, "a", BEFORE)
    (place / "profile.json").write_text(
        json.dumps({"frequency": -1, "seconds": "x", "cpus": True, "commands": 3, "event": None}),
        "utf-8",
    )
    write_plan(place, read_plan(place))
    [one] = read_profiles(tmp_path)[0]
    assert (one.frequency, one.seconds, one.cpus, one.commands, one.event) == (
        None,
        None,
        None,
        (),
        "",
    )


def test_an_imported_tree_may_have_folded_stacks_or_text_of_perf(tmp_path: Path) -> None:
    for variant, name, text in (
        ("master", "out.folded", "fio;main 3\n"),
        ("project", "perf-script.txt", "fio 1 2.5: cycles:\n\t1 main (/bin/fio)\n\n"),
    ):
        place = tmp_path / "tree" / variant
        place.mkdir(parents=True)
        (place / "fio.json").write_text(output(job(jobs=1, runtime=2.0)), "utf-8")
        (place / name).write_text(text, "utf-8")
        (place / "haystacks.txt").write_text("hello\n", "utf-8")
    import_tree(tmp_path / "tree", "{variant}", tmp_path / "out")
    found, notes = read_profiles(tmp_path / "out")
    assert not notes
    assert [(one.variant, one.samples, one.event, one.host) for one in found] == [
        ("master", 3, "", "imported"),
        ("project", 1, "cycles", "imported"),
    ]
