# SPDX-License-Identifier: Apache-2.0
"""Changes to a study from outside its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.studies.plan.adapt import Changes, adapt, parse_only, parse_target
from iolab.studies.plan.cells.plan import plan_runs
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.acting import study_text


def read(tmp_path: Path, text: str, changes: Changes) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(text, "utf-8")
    return load_study(path, changes)


def test_without_changes_nothing_changes(tmp_path: Path) -> None:
    plain, same = (read(tmp_path, study_text(), changes) for changes in (Changes(), Changes()))
    assert plain == same
    assert not Changes()
    assert plain.as_data()["changes"] == {}


def test_repetitions_seed_and_runtime_take_the_files_place(tmp_path: Path) -> None:
    text = study_text(extra='workload.runtime = "7s"\n')
    study = read(tmp_path, text, Changes(repetitions=5, seed=9, runtime="3s"))
    assert (study.repetitions, study.seed) == (5, 9)
    assert {cell.as_data()["workload"]["runtime"] for cell in study.cells} == {3.0}
    assert study.text == text


def test_a_runtime_that_is_swept_or_wrong(tmp_path: Path) -> None:
    text = (
        study_text().replace('"2s"', '"{seconds}s"').replace("numjobs = [1, 4]", "seconds = [1, 2]")
    )
    with pytest.raises(UsageError, match="choose a level with --only"):
        read(tmp_path, text, Changes(runtime="3s"))
    with pytest.raises(StudyProblems, match=r"workload\.runtime: 'soon' is not a duration"):
        read(tmp_path, study_text(), Changes(runtime="soon"))


def test_variants_can_be_chosen_and_the_baseline_follows(tmp_path: Path) -> None:
    text = study_text(extra="[variants.third]\n").replace(
        'name = "small"', 'name = "small"\nbaseline = "plain"'
    )
    study = read(tmp_path, text, Changes(variants=("third", "synced")))
    assert (study.variants, study.baseline) == (("synced", "third"), "synced")
    assert read(tmp_path, text, Changes(variants=("third", "plain"))).baseline == "plain"
    with pytest.raises(UsageError, match="no variant is called 'syncd'; did you mean 'synced'"):
        read(tmp_path, text, Changes(variants=("syncd",)))


def test_again_adds_an_arm_equal_to_the_baseline_that_takes_its_turn(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        study_text(repetitions=6).replace('name = "small"', 'baseline = "synced"'),
        Changes(again=True),
    )
    assert (study.variants, study.baseline) == (("plain", "synced", "synced-again"), "synced")
    by_arm = {
        name: [cell.as_data() for cell in study.cells if cell.variant == name]
        for name in study.variants
    }
    assert by_arm["synced-again"] == by_arm["synced"] != by_arm["plain"]
    runs = plan_runs(study, lambda cell: 1.0).runs
    firsts = [next(run.cell.variant for run in runs if run.block == block) for block in range(1, 7)]
    assert set(firsts) == set(study.variants)
    with pytest.raises(UsageError, match="has a variant 'plain-again' of its own"):
        read(tmp_path, study_text(extra='[variants."plain-again"]\n'), Changes(again=True))


def test_a_study_without_variants_has_its_baseline_again(tmp_path: Path) -> None:
    text = '[workload]\nkind = "fio"\nruntime = "2s"\noptions.size = "1m"\n'
    assert read(tmp_path, text, Changes(again=True)).variants == ("baseline", "baseline-again")


def target(data: dict[str, Any], **changes: str) -> Any:
    return adapt(
        data, Changes(target={key.replace("__", "."): value for key, value in changes.items()})
    ).get("target")


def test_target_keys_are_set_taken_out_and_typed() -> None:
    data = {"target": {"kind": "filesystem", "fs": "ext4", "loop": {"size": "2g", "count": 1}}}
    assert target(data, loop__count="4") == {
        "kind": "filesystem",
        "fs": "ext4",
        "loop": {"size": "2g", "count": 4},
    }
    assert target(data, loop="", device="/dev/disk/by-id/x") == {
        "kind": "filesystem",
        "fs": "ext4",
        "device": "/dev/disk/by-id/x",
    }
    assert target(data, mkfs_options='["-O", "^has_journal"]')["mkfs_options"] == [
        "-O",
        "^has_journal",
    ]
    assert target(data, fs="2024-01-01")["fs"] == "2024-01-01"
    assert target(data, fs='a\nb = "c"')["fs"] == 'a\nb = "c"'
    assert target({}, path="/mnt/x") == {"path": "/mnt/x"}
    assert data == {
        "target": {"kind": "filesystem", "fs": "ext4", "loop": {"size": "2g", "count": 1}}
    }


def test_another_kind_of_target_starts_empty() -> None:
    data = {"target": {"kind": "filesystem", "fs": "ext4"}}
    assert target(data, kind="directory", path="/mnt") == {"kind": "directory", "path": "/mnt"}
    assert target(data, kind="filesystem", fs="xfs") == {"kind": "filesystem", "fs": "xfs"}
    assert target({"target": {"path": "/a"}}, kind="directory") == {
        "kind": "directory",
        "path": "/a",
    }


def test_what_variants_compare_is_not_changed_under_them() -> None:
    data = {"variants": {"a": {"target": {"path": "/a"}}}}
    with pytest.raises(UsageError, match=r"variant 'a' sets target\.path itself"):
        target(data, path="/b")


def test_a_wrong_key_is_told_as_the_files_own_would_be(tmp_path: Path) -> None:
    with pytest.raises(StudyProblems, match=r"target\.paht: is unknown; did you mean 'path'"):
        read(tmp_path, study_text(), Changes(target={"paht": "/tmp"}))


def test_flags_are_read_as_typed() -> None:
    assert parse_only(["numjobs=1,8", "bs=4k", "numjobs=16"]) == {
        "numjobs": ("1", "8", "16"),
        "bs": ("4k",),
    }
    assert parse_target(["path=/mnt/a=b", "loop.size=2g", "device="]) == {
        "path": "/mnt/a=b",
        "loop.size": "2g",
        "device": "",
    }
    for wrong in ("numjobs", "=1", "numjobs=", "numjobs=1,,2"):
        with pytest.raises(UsageError, match="names no level"):
            parse_only([wrong])
    for wrong in ("path", "=x", "a..b=1"):
        with pytest.raises(UsageError, match="is not a key=value"):
            parse_target([wrong])
    with pytest.raises(UsageError, match="is given twice"):
        parse_target(["a=1", "a=2"])


words = st.text("abcdefgh0123", min_size=1, max_size=5)
changes = st.builds(
    Changes,
    only=st.dictionaries(words, st.lists(words, min_size=1).map(tuple), max_size=2),
    variants=st.lists(words, max_size=2).map(tuple),
    repetitions=st.none() | st.integers(1, 9),
    runtime=st.none() | st.just("5s"),
    seed=st.none() | st.integers(0, 9),
    target=st.dictionaries(words, words, max_size=2),
    again=st.booleans(),
)


@given(changes)
def test_changes_survive_the_manifest_and_the_command_line(given_changes: Changes) -> None:
    assert Changes.from_data(given_changes.as_data()) == given_changes
    arguments = given_changes.arguments()
    values = {
        flag: [arguments[at + 1] for at, each in enumerate(arguments) if each == flag]
        for flag in ("--only", "--target")
    }
    assert parse_only(values["--only"]) == given_changes.only
    assert parse_target(values["--target"]) == given_changes.target
    assert ("--a-a" in arguments, bool(given_changes)) == (
        given_changes.again,
        given_changes != Changes(),
    )
    assert (given_changes.seed is None) == ("--seed" not in arguments)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda below: (
            st.lists(below, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "study",
                        "variants",
                        "target",
                        "workload",
                        "factors",
                        "runtime",
                        "baseline",
                        "a",
                    ]
                ),
                below,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_tables_of_any_shape_are_left_to_the_checks(data: Any) -> None:
    if not isinstance(data, dict):
        return
    try:
        found = adapt(
            data,
            Changes(repetitions=2, seed=1, runtime="1s", target={"a.b": "1", "c": ""}, again=True),
        )
    except UsageError:
        return
    assert isinstance(found, dict)


REDUCED = """
[reduced]
repetitions = 1
runtime = "1s"
only = { numjobs = [4] }
target = { path = "/mnt/x" }
workload = { options.size = "2m", options.direct = true }
"""


def test_the_reduced_form_applies_and_flags_override_it(tmp_path: Path) -> None:
    text = study_text(extra=REDUCED)
    study = read(tmp_path, text, Changes(reduced=True))
    workloads = [cell.as_data()["workload"] for cell in study.cells]
    assert study.repetitions == 1
    assert [dict(cell.factors) for cell in study.cells] == [{"numjobs": 4}] * 2
    assert {work["runtime"] for work in workloads} == {1.0}
    assert {(work["options"]["size"], work["options"]["direct"]) for work in workloads} == {
        ("2m", True)
    }
    assert study.as_data()["changes"] == {"reduced": True}
    other = read(
        tmp_path,
        text,
        Changes(
            reduced=True, repetitions=3, only={"numjobs": ("1",)}, workload={"options.size": "8m"}
        ),
    )
    assert (other.repetitions, {cell.factors["numjobs"] for cell in other.cells}) == (3, {1})
    assert {cell.as_data()["workload"]["options"]["size"] for cell in other.cells} == {"8m"}
    assert {cell.as_data()["workload"]["runtime"] for cell in other.cells} == {1.0}


def test_a_reduced_table_that_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    for wrong, name in (
        ("only = 3", "reduced.only"),
        ('repetitions = "x"', "reduced.repetitions"),
        ("runtime = -1", "reduced.runtime"),
        ("colour = 1", "reduced.colour"),
        ("[rig]\ndisks = 1000", "rig.disks"),
    ):
        with pytest.raises(StudyProblems, match=name):
            read(tmp_path, study_text(extra=f"[reduced]\n{wrong}\n"), Changes())
    with pytest.raises(UsageError, match=r"no \[reduced\] table"):
        read(tmp_path, study_text(), Changes(reduced=True))
    with pytest.raises(UsageError, match="only a target of kind zpool has builds"):
        read(tmp_path, study_text(), Changes(builds=("a", "b")))


def test_builds_and_reduced_survive_as_data_and_as_arguments() -> None:
    changes = Changes(builds=("old", "new"), reduced=True)
    assert Changes.from_data(changes.as_data()) == changes
    assert changes.arguments() == ["--build", "old", "--build", "new", "--reduced"]
