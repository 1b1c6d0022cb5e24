# SPDX-License-Identifier: Apache-2.0
"""Factor sets: products, factors in step, combinations left out, sets joined, cells that lack a
factor."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.studies.compare.axes import level_text
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.cells.factors import FactorSet, levels_of, sweeps
from iolab.studies.plan.cells.plan import plan_runs
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.golden import Golden

WORKLOAD = '[workload]\nkind = "fio"\nruntime = "2s"\n[workload.options]\nsize = "1m"\n'


def read(tmp_path: Path, text: str, changes: Changes | None = None) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(WORKLOAD + text, "utf-8")
    return load_study(path, changes)


def told(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(StudyProblems) as caught:
        read(tmp_path, text)
    return [f"{each.line - 5} {each.key}: {each.wrong}" for each in caught.value.problems]


def levels(study: Study) -> list[tuple[object, ...]]:
    return [tuple(cell.factors.values()) for cell in study.cells]


def test_zipped_factors_go_in_step_where_the_first_of_them_stands(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        '[factors]\nbs = ["4k", "8k"]\nnumjobs = [1, 2]\niodepth = [32, 16]\nzip = [["bs", "iodepth"]]\n',
    )
    assert levels(study) == [("4k", 1, 32), ("4k", 2, 32), ("8k", 1, 16), ("8k", 2, 16)]
    assert study.cells[0].as_data()["workload"]["options"] == {
        "size": "1m",
        "bs": "4k",
        "numjobs": 1,
        "iodepth": 32,
    }
    assert study.factors == {"bs": ("4k", "8k"), "numjobs": (1, 2), "iodepth": (32, 16)}


def test_zipped_factors_may_repeat_a_level_but_no_combination(tmp_path: Path) -> None:
    study = read(
        tmp_path, '[factors]\nbs = ["4k", "4k"]\niodepth = [1, 2]\nzip = [["bs", "iodepth"]]\n'
    )
    assert levels(study) == [("4k", 1), ("4k", 2)]
    assert told(
        tmp_path, '[factors]\nbs = ["4k", "4k"]\niodepth = [1, 1]\nzip = [["bs", "iodepth"]]\n'
    ) == ["4 factors.zip.0: has a combination twice"]


def test_excluded_combinations_are_left_out(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        '[factors]\nbs = ["4k", "1m"]\nnumjobs = [1, 8, 64]\nexclude = [{bs = "1m", numjobs = [8, 64]}]\n',
    )
    assert levels(study) == [("4k", 1), ("4k", 8), ("4k", 64), ("1m", 1)]


def test_sets_are_joined_and_what_both_have_is_measured_once(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        "[[factors]]\nnumjobs = [1, 2]\niodepth = [1]\n[[factors]]\nnumjobs = [2]\niodepth = [1, 4]\n",
    )
    assert levels(study) == [(1, 1), (2, 1), (2, 4)]


def test_a_cell_lacks_the_factors_that_its_set_lacks(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        "[[factors]]\nnumjobs = [1, 2]\n[[factors]]\niodepth = [8]\n[variants.a]\n[variants.b]\n"
        "workload.options.sync = 1\n",
    )
    assert [dict(cell.factors) for cell in study.cells] == [
        {"numjobs": 1},
        {"numjobs": 2},
        {"iodepth": 8},
    ] * 2
    assert study.cells[2].as_data()["workload"]["options"] == {"size": "1m", "iodepth": 8}
    assert len({cell.identity() for cell in study.cells}) == 6
    assert len(plan_runs(study, lambda cell: 1.0).runs) == 36


def test_a_set_lacks_a_factor_that_an_option_mentions(tmp_path: Path) -> None:
    text = "[[factors]]\nnumjobs = [1]\nkib = [4]\n[[factors]]\nnumjobs = [2]\n"
    path = tmp_path / "s.toml"
    path.write_text(WORKLOAD + 'bs = "{kib}k"\n' + text, "utf-8")
    with pytest.raises(
        StudyProblems, match=r"has no factor 'kib', which workload\.options\.bs mentions"
    ) as caught:
        load_study(path)
    assert caught.value.where == f"{path}:10"


@pytest.mark.parametrize(
    "text",
    [
        '[factors]\nbs = ["4k"]\nnumjobs = [1, 2]\nzip = [["bs", "numjobs"]]\n',
        '[factors]\nbs = ["4k"]\nzip = [["bs"]]\n',
        '[factors]\nbs = ["4k"]\nzip = [["bs", "b"]]\n',
        '[factors]\na = [1]\nb = [1]\nc = [1]\nzip = [["a", "b"], ["b", "c"]]\n',
        '[factors]\nbs = ["4k"]\nzip = "bs"\n',
        "[factors]\nnumjobs = [1]\nexclude = [{numjobs = 2}]\n",
        "[factors]\nnumjobs = [1]\nexclude = [{numjobs = true}]\n",
        "[factors]\nnumjobs = [1]\nexclude = [{threads = 1}]\n",
        "[factors]\nnumjobs = [1]\nexclude = [{numjobs = {a = 1}}]\n",
        "[factors]\nnumjobs = [1]\nexclude = [{}]\n",
        "[factors]\nnumjobs = [1]\nexclude = [{numjobs = 1}]\n",
        "[[factors]]\nnumjobs = [1]\n[[factors]]\nnumjobs = []\n",
        "[[factors]]\nnumjobs = [1]\n[[factors]]\ncolour = [1]\n",
        '[factors]\nbs = ["4k", 4096]\n',
        '[factors]\nsize = ["1m", "2m", "1024ki"]\n',
        "[factors]\nmemory = [1]\n",
    ],
)
def test_what_is_wrong_is_named_where_it_stands(tmp_path: Path, text: str, golden: Golden) -> None:
    golden("study/factors-wrong", "\n".join(told(tmp_path, text)))


def test_a_factor_that_looks_like_an_option_is_guessed_at(tmp_path: Path) -> None:
    with pytest.raises(StudyProblems) as caught:
        read(tmp_path, "[factors]\nnumjob = [1]\n")
    assert [each.allowed for each in caught.value.problems] == [
        "did you mean 'numjobs'? write \"{numjob}\" in an option"
    ]


def test_only_keeps_levels_and_drops_cells_without_the_factor(tmp_path: Path) -> None:
    text = '[[factors]]\nnumjobs = [1, 2, 4]\nbs = ["4k", "8k"]\n[[factors]]\niodepth = [8]\n'
    study = read(tmp_path, text, Changes(only={"numjobs": ("4", "1"), "bs": ("4k",)}))
    assert [dict(cell.factors) for cell in study.cells] == [
        {"numjobs": 1, "bs": "4k"},
        {"numjobs": 4, "bs": "4k"},
    ]
    assert study.factors == {"numjobs": (1, 4), "bs": ("4k",)}


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ({"numjobs": ("3",)}, "there is no numjobs=3; numjobs is one of 1, 2"),
        ({"jobs": ("1",)}, "'jobs' is not a factor of the study; did you mean 'numjobs'"),
        ({"numjobs": ("1",), "iodepth": ("8",)}, "leaves nothing of the study"),
    ],
)
def test_only_what_is_there_can_be_kept(
    tmp_path: Path, only: dict[str, tuple[str, ...]], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(
            tmp_path,
            "[[factors]]\nnumjobs = [1, 2]\n[[factors]]\niodepth = [8]\n",
            Changes(only=only),
        )
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "spelling", ['"4k"', '"4K"', '"4kb"', '"4KiB"', '"4 KiB"', "4096", '"4096"']
)
def test_equal_sizes_are_one_level_with_one_label(tmp_path: Path, spelling: str) -> None:
    sets = f'[[factors]]\nbs = [{spelling}, "64KiB"]\nnumjobs = [1]\n[[factors]]\nbs = ["4k", 65536]\nnumjobs = [1, 2]\n'
    study = read(tmp_path, sets)
    assert len(study.cells) == 4
    first = {"4096": 4096, '"4096"': "4096"}.get(spelling, "4k")
    assert study.factors["bs"] == (first, "64k")
    for typed in ("4k", "4KiB", "4096"):
        assert len(read(tmp_path, sets, Changes(only={"bs": (typed,)})).cells) == 2
    excluded = read(tmp_path, f'[factors]\nbs = [{spelling}, "64k"]\nexclude = [{{bs = "4096"}}]\n')
    assert excluded.factors["bs"] == ("64k",)
    with pytest.raises(StudyProblems, match="has a level twice"):
        read(tmp_path, f'[factors]\nbs = [{spelling}, "4Ki"]\n')


@pytest.mark.parametrize(
    ("level", "text"), [(4, "4"), (4.0, "4"), (0.5, "0.5"), (True, "true"), ("4k", "4k")]
)
def test_a_level_is_typed_as_it_reads(level: object, text: str) -> None:
    assert level_text(level) == text


_names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)


@given(
    _names.flatmap(
        lambda names: st.fixed_dictionaries(
            {
                name: st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)
                for name in names
            }
        )
    ),
    st.data(),
)
def test_combinations_are_the_product_less_what_is_excluded(
    given_levels: dict[str, list[int]], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(given_levels)))
    out = data.draw(st.sampled_from(given_levels[name]))
    whole = [
        dict(zip(given_levels, row, strict=True))
        for row in itertools.product(*given_levels.values())
    ]
    assert list(FactorSet.model_validate(given_levels).combinations()) == whole
    if len(given_levels[name]) > 1:
        fewer = FactorSet.model_validate({**given_levels, "exclude": [{name: out}]})
        assert list(fewer.combinations()) == [each for each in whole if each[name] != out]
        joined = sweeps([fewer, FactorSet.model_validate(given_levels)], {}, plain=False)
        assert sorted(
            sorted(each.items()) for sweep in joined for each in sweep.combinations
        ) == sorted(sorted(each.items()) for each in whole)
        assert {key: set(values) for key, values in levels_of(joined).items()} == {
            key: set(values) for key, values in given_levels.items()
        }
