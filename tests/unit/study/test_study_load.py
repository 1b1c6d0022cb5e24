# SPDX-License-Identifier: Apache-2.0
"""Study files: what they mean, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import IolabError, StudyError
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.acting import study_text
from support.golden import Golden

WORKLOAD = '[workload]\nkind = "fio"\nruntime = "2s"\n[workload.options]\nsize = "1m"\n'


RICH = """
setup = [["true"], "false"]
[target]
kind = "filesystem"
fs = "ext4"
loop = {size = "memory / 64"}
[hooks.run]
before = "true"
[[actions]]
at = "1s"
mark = "m"
"""


def read(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "my study.toml"
    path.write_text(text, "utf-8")
    return load_study(path)


def problems(tmp_path: Path, text: str) -> list[tuple[int, str, str, str]]:
    with pytest.raises(StudyProblems) as caught:
        read(tmp_path, text)
    return [(each.line, each.key, each.wrong, each.allowed) for each in caught.value.problems]


def as_lines(found: list[tuple[int, str, str, str]]) -> str:
    return "\n".join(
        f"line {line}: {key}: {wrong}; {allowed}" for line, key, wrong, allowed in found
    )


def test_the_smallest_study_has_defaults(tmp_path: Path) -> None:
    study = read(tmp_path, WORKLOAD)
    assert (study.name, study.baseline, study.repetitions, study.order) == (
        "my-study",
        "baseline",
        6,
        "balanced",
    )
    assert list(study.sources) == ["diskstats", "cpu", "memory"]
    [cell] = study.cells
    assert (cell.variant, dict(cell.factors), cell.target_kind, cell.workload_kind) == (
        "baseline",
        {},
        "directory",
        "fio",
    )
    workload = cell.as_data()["workload"]
    assert (workload["kind"], workload["runtime"], workload["options"]) == (
        "fio",
        2.0,
        {"size": "1m"},
    )


def test_cells_are_variants_by_levels_in_the_files_order(tmp_path: Path) -> None:
    study = read(tmp_path, study_text() + '\n[target]\npath = "/tmp"\n')
    assert [(cell.variant, cell.factors["numjobs"]) for cell in study.cells] == [
        ("plain", 1),
        ("plain", 4),
        ("synced", 1),
        ("synced", 4),
    ]
    options = [cell.as_data()["workload"]["options"] for cell in study.cells]
    assert [each.get("sync") for each in options] == [None, None, "dsync", "dsync"]
    assert [each["numjobs"] for each in options] == [
        1,
        4,
        1,
        4,
    ]  # a factor named as a fio option becomes it
    assert study.baseline == "plain"


def test_a_mentioned_factor_goes_where_it_is_mentioned_and_nowhere_else(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        WORKLOAD
        + 'rw = "rand{op}"\nbs = "{kib}k"\nbuffer_pattern = "{{x}}"\niodepth = "{numjobs}"\n'
        '[factors]\nop = ["read"]\nkib = [4]\nnumjobs = [3]\n',
    )
    assert study.cells[0].as_data()["workload"]["options"] == {
        "size": "1m",
        "rw": "randread",
        "bs": "4k",
        "buffer_pattern": "{x}",
        "iodepth": 3,
    }


def test_factors_reach_the_plugins_own_keys(tmp_path: Path) -> None:
    text = (
        WORKLOAD.replace('"2s"', '"{seconds}"')
        + '[target]\npath = "/mnt/{disk}"\n[factors]\nseconds = [1, "2m"]\ndisk = ["a"]\n'
    )
    study = read(tmp_path, text)
    assert [cell.as_data()["workload"]["runtime"] for cell in study.cells] == [1.0, 120.0]
    assert study.cells[0].as_data()["target"]["path"] == "/mnt/a"


def test_all_problems_are_told_at_once_with_their_lines(tmp_path: Path, golden: Golden) -> None:
    found = problems(
        tmp_path,
        """[study]
name = "a/b"
baseline = "mastr"
repititions = 3
order = "random"
[workload]
kind = "fio"
runtime = "2 parsecs"
rampp = 1
[workload.options]
filename = "/dev/sda"
rate = [1, 2]
[sources.diskstat]
[factors]
numjobs = [1, 1]
value = [2]
colour = ["red"]
[variants.master]
[variants.patched]
workload.options.directory = "/tmp"
workload.options.thinktime = "{think}"
""",
    )
    assert [(line, key) for line, key, _, _ in found] == [
        (2, "study.name"),
        (3, "study.baseline"),
        (4, "study.repititions"),
        (5, "study.order"),
        (8, "workload.runtime"),
        (9, "workload.rampp"),
        (11, "workload.options.filename"),
        (12, "workload.options.rate"),
        (13, "sources.diskstat"),
        (15, "factors.numjobs"),
        (16, "factors.value"),
        (17, "factors.colour"),
        (20, "variants.patched.workload.options.directory"),
        (21, "variants.patched.workload.options.thinktime"),
    ]
    golden("study/load-all-problems", as_lines(found))


def test_a_problem_prints_as_file_line_key_wrong_allowed(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[study]\norder = 'random'\nseed = -1\n" + WORKLOAD, "utf-8")
    with pytest.raises(StudyProblems) as caught:
        load_study(path)
    assert str(caught.value).splitlines() == [
        f"{path}:2: study.order: is 'random'; one of 'balanced', 'as-written' or 'sessions'",
        f"{path}:3: study.seed: is -1; at least 0",
    ]
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "workload"),
        ("workload = 3", "workload"),
        (WORKLOAD + "[study]\nrepetitions = '6'", "study.repetitions"),
        (WORKLOAD + "[study]\nseed = true", "study.seed"),
        ("[workload]\nruntime = 1\n[workload.options]\nsize = 1", "workload.kind"),
        ('[workload]\nkind = "foi"\n', "workload.kind"),
        (WORKLOAD + '[target]\nkind = "directry"', "target.kind"),
        (WORKLOAD + '[target]\npath = ""', "target.path"),
        (WORKLOAD + "[target]\npath = 3", "target.path"),
        (WORKLOAD + "[factors]\nnumjobs = []", "factors.numjobs"),
        (WORKLOAD + "[factors]\nnumjobs = 3", "factors.numjobs"),
        (WORKLOAD + "[factors]\nnumjobs = [[1]]", "factors.numjobs.0"),
        (WORKLOAD + "[factors]\n'a b' = [1]", "factors.a b"),
        (WORKLOAD + "[variants]", "variants"),
        (WORKLOAD + "[variants.a]\nworkloat.runtime = 1", "variants.a.workloat"),
        (WORKLOAD + "[sources.diskstats]\ninterval = 0", "sources.diskstats.interval"),
        ("sources = ['blok']\n" + WORKLOAD, "sources.blok"),
        (WORKLOAD + "runtime = 3", "workload.options.runtime"),
        (WORKLOAD + 'exec_prerun = "rm -rf /"', "workload.options.exec_prerun"),
        (WORKLOAD + 'ioengine = "exec"', "workload.options.ioengine"),
        (WORKLOAD + 'ioengine = "http"', "workload.options.ioengine"),
        (WORKLOAD + 'ioengine = "none_such"', "workload.options.ioengine"),
        (WORKLOAD + 'ioengine = "external:/tmp/x.so"', "workload.options.ioengine"),
        (WORKLOAD + 'write_lat_log = "../../x"', "workload.options.write_lat_log"),
        (WORKLOAD + 'filename = "a/../../b"', "workload.options.filename"),
        (WORKLOAD + 'bs = "4k\\n[evil]"', "workload.options.bs"),
        (WORKLOAD + "numjobs = true", "workload.options.numjobs"),
        (
            WORKLOAD + "[factors]\nbs = ['4k']\n[variants.a]\nworkload.options.bs = '8k'",
            "factors.bs",
        ),
        *(
            (WORKLOAD + f"{name} = {value}", f"workload.options.{name}")
            for name, value in (
                ("bs", "'4q'"),
                ("bs", "0"),
                ("bs", "'4k-64k'"),
                ("blocksize", "'1,2,3,4'"),
                ("bsrange", "'4k'"),
                ("bsrange", "'4k-64q'"),
                ("bssplit", "'4k/60:64q/40'"),
                ("bssplit", "'4k/many'"),
            )
        ),
        (WORKLOAD.replace('"1m"', '"lots"'), "workload.options.size"),
        (WORKLOAD.replace('"1m"', "0"), "workload.options.size"),
        (WORKLOAD + "rate_iops = -3\n", "workload.options.rate_iops"),
        (WORKLOAD + "rate = '1m,-1'\n", "workload.options.rate"),
        (WORKLOAD.replace('"2s"', "0"), "workload.runtime"),
        (WORKLOAD.replace('"2s"', "true"), "workload.runtime"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, key: str, golden: Golden) -> None:
    found = problems(tmp_path, text)
    assert key in [each[1] for each in found]
    golden("study/load-wrong", as_lines(found))


@pytest.mark.parametrize(
    "option",
    [
        "bs = 4096",
        "bs = '4k'",
        "bs = '64KiB'",
        "bs = '0x1000'",
        "bs = '4k,,64k'",
        "bs = ',8k'",
        "bsrange = '4k-64k'",
        "bsrange = '4k-8k,16k-64k'",
        "bssplit = '4k/60:64k/40'",
        "bssplit = '4k/50:8k/,2k'",
    ],
)
def test_forms_of_block_sizes_that_fio_reads_are_valid(tmp_path: Path, option: str) -> None:
    assert read(tmp_path, WORKLOAD + option).cells


def test_an_option_of_fio_outside_of_options_is_named_with_its_place(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, WORKLOAD + '[variants.a]\nworkload.ioengine = "psync"\n')
    assert problem[1:3] == ("variants.a.workload.ioengine", "is unknown")
    assert problem[3].startswith("an option of the program is written options.ioengine; there are")


def test_bad_levels_point_at_the_factor(tmp_path: Path) -> None:
    found = problems(tmp_path, WORKLOAD + "[factors]\nnumjobs = [1,\n 0]\n")
    assert found == [(7, "workload.options.numjobs", "is 0", "a whole number from 1")]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"[a\n", ":1"),
        (b"a = 1\nb = \n", ":2"),
        (b"a = 1\na = 2", ":2"),
        (b'a = """', ":1"),
        (b"a = [" * 3000, ""),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path, data: bytes, line: str) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(data)
    with pytest.raises(StudyError, match="not valid TOML") as caught:
        load_study(path)
    assert str(caught.value).startswith(f"{path}{line}")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x00\x80"])
def test_binary_files_and_absent_ones_are_errors(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(data)
    with pytest.raises(StudyError, match="UTF-8"):
        load_study(path)
    with pytest.raises(StudyError, match="can't be read"):
        load_study(tmp_path / "absent.toml")
    with pytest.raises(StudyError, match="can't be read"):
        load_study(tmp_path)


def test_a_file_whose_name_gives_no_study_name_needs_one(tmp_path: Path) -> None:
    path = tmp_path / "…"
    path.write_text(WORKLOAD, "utf-8")
    with pytest.raises(StudyProblems, match="can't be taken from the file's name"):
        load_study(path)


@given(st.data())
def test_damage_raises_the_projects_errors_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = study_text() + RICH
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    damaged = text[:start] + data.draw(st.text("[]{}=\"'\n.#a1-", max_size=4)) + text[end:]
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(damaged, "utf-8")
    said = ""
    try:
        said = str(path) if load_study(path).cells else ""
    except IolabError as error:
        said = str(error)
    assert said.startswith(str(path))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('sources = ["block"]', ["diskstats", "cpu", "memory", "block"]),
        ('sources = ["block", "syscall"]', ["diskstats", "cpu", "memory", "block", "syscall"]),
        ('sources = ["pressure", "block"]', ["pressure", "block"]),
        ('sources = ["cpu"]', ["cpu"]),
        ("sources = []", []),
    ],
)
def test_sources_may_be_a_list_of_names_and_recorded_ones_replace_nothing(
    given: str, expected: list[str], tmp_path: Path
) -> None:
    assert list(read(tmp_path, f"{given}\n{WORKLOAD}").sources) == expected


def test_a_recorded_source_as_a_table_replaces_nothing_either(tmp_path: Path) -> None:
    study = read(tmp_path, f'{WORKLOAD}[sources.block]\ndevices = ["sdb"]\n')
    assert list(study.sources) == ["diskstats", "cpu", "memory", "block"]
    assert study.sources["block"].devices == ["sdb"]  # type: ignore[attr-defined]


def test_what_stands_in_lists_and_named_tables_has_its_near_misses(
    tmp_path: Path, golden: Golden
) -> None:
    found = problems(
        tmp_path,
        WORKLOAD
        + """
[[actions]]
at = "1s"
markk = "x"
[variants.a]
targett = {}
[hooks.run]
befor = "true"
""",
    )
    assert {"actions.0.markk", "variants.a.targett", "hooks.run.befor"} <= {
        key for _, key, _, _ in found
    }
    golden("study/load-near-misses", as_lines(found))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[study]\nname = "x"\noptions = {a = 1\n', ":3:17: not valid TOML"),
        ("[study]\nname = x\n", ":2:8: not valid TOML"),
        ('[study]\nname = "x"\n\n[variant.xfs]\nx = 1\n', ":4: variant: is unknown"),
        ('[study]\nname = "x"\n\n[[variant.xfs]]\nx = 1\n', ":4: variant: is unknown"),
    ],
)
def test_an_error_names_its_own_place(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        read(tmp_path, text)
    assert place in str(caught.value)
