# SPDX-License-Identifier: Apache-2.0
"""Layouts inferred from paths and echoed options: what people keep, and what their names mean."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.studies.results.imports.layouts.inference import infer_layouts
from iolab.studies.results.imports.layouts.layout import parse_layout
from iolab.studies.results.imports.layouts.path_columns import Sample


def _samples(
    template: str, options: Iterable[str] = (), **levels: Iterable[object]
) -> list[Sample]:
    """A sample for each combination of levels, with those of `options` echoed."""
    found = []
    for combination in itertools.product(*levels.values()):
        named = dict(zip(levels, map(str, combination), strict=True))
        found.append(
            Sample(
                template.format(**named),
                {"ioengine": "libaio", **{name: named[name] for name in options}},
            )
        )
    return found


@pytest.mark.parametrize(
    ("samples", "layouts"),
    [
        # bench-fio, of one and of several devices, with and without keys in the names
        (
            _samples(
                "{rw}-iodepth-{iodepth}-numjobs-{numjobs}.json",
                ("rw", "iodepth", "numjobs"),
                rw=["randread", "write"],
                iodepth=[1, 8],
                numjobs=[1, 4],
            ),
            ["{rw}-iodepth-{iodepth:int}-numjobs-{numjobs:int}.json"],
        ),
        (
            _samples(
                "{device}/{rw}-iodepth-{iodepth}-numjobs-{numjobs}.json",
                (),
                device=["nvme0n1", "sda"],
                rw=["randread", "write"],
                iodepth=[1, 8],
                numjobs=[1, 4],
            ),
            ["{variant}/{rw}-iodepth-{iodepth:int}-numjobs-{numjobs:int}.json"],
        ),
        (
            _samples(
                "{device}/{rw}-{iodepth}-{numjobs}.json",
                ("rw", "iodepth", "numjobs"),
                device=["A_1", "B_2"],
                rw=["read", "write"],
                iodepth=[1, 8],
                numjobs=[1, 4],
            ),
            ["{variant}/{rw}-{iodepth:int}-{numjobs:int}.json"],
        ),
        # a result for each directory
        (
            _samples(
                "{submit}-rate-submit/{v}/{disks}-{media}/fio-{numjobs}-jobs/fio.json",
                (),
                submit=["max", "fixed"],
                v=["master", "project"],
                disks=[1, 2, 4, 8],
                media=["hdd", "ssd"],
                numjobs=[1, 2, 4],
            ),
            ["{rate_submit}-rate-submit/{variant}/{disks:int}-{media}/fio-{numjobs:int}-jobs"],
        ),
        (
            _samples(
                "{v}/bs={bs},qd={qd}/out.json", (), v=["ext4", "xfs"], bs=["4k", "128k"], qd=[1, 16]
            ),
            ["{variant}/bs={bs},qd={iodepth:int}"],
        ),
        (
            _samples("{v}/4k/{numjobs}jobs/fio.json", (), v=["ext4", "xfs"], numjobs=[1, 16]),
            ["{variant}/4k/{numjobs:int}jobs"],
        ),
        (
            _samples(
                "{v}/{bs}/{numjobs}jobs/fio.json",
                ("bs",),
                v=["ext4", "xfs"],
                bs=["4k", "64k"],
                numjobs=[1, 16],
            ),
            ["{variant}/{bs}/{numjobs:int}jobs"],
        ),
        # repetitions: dates, run1, rep-2, a number at the end of names whose options are the same
        (
            _samples(
                "{date}/{v}/fio.json", (), date=["2026-01-01", "2026-01-02"], v=["before", "after"]
            ),
            ["{repetition}/{variant}"],
        ),
        (
            _samples(
                "{v}/{date}/fio.json",
                (),
                date=["20260101-1200", "20260102-1300"],
                v=["before", "after"],
            ),
            ["{variant}/{repetition}"],
        ),
        (
            _samples("{v}/run{r}/fio.json", (), v=["old", "new"], r=[1, 2, 10]),
            ["{variant}/run{repetition:int}"],
        ),
        (
            _samples("{v}-rep-{r}.json", (), v=["old", "new"], r=[1, 2]),
            ["{variant}-rep-{repetition:int}.json"],
        ),
        (
            _samples("{v}/{r}.json", (), v=["old", "new"], r=[1, 2, 3]),
            ["{variant}/{repetition:int}.json"],
        ),
        (
            _samples("{v}-{r}.json", (), v=["old", "new"], r=[1, 2, 3]),
            ["{variant}-{repetition:int}.json"],
        ),
        (
            [Sample(f"{v}/{r}.json", {"section": "job"}) for v in ("p", "q") for r in (1, 2, 3)],
            ["{variant}/{repetition:int}.json"],
        ),
        (
            [Sample(f"{v}-{r}.json", {"section": "job"}) for v in ("p", "q") for r in (1, 2, 3)],
            ["{variant}-{name2:int}.json"],
        ),
        (
            [
                Sample(f"{v}/{r}.json", {"section": f"job{r}"})
                for v in ("p", "q")
                for r in (1, 2, 3)
            ],
            ["{variant}/{name1:int}.json"],
        ),
        # a number at the end that fio echoes is no repetition, nor is one that doesn't count
        (
            _samples("{v}-{iodepth}.json", ("iodepth",), v=["old", "new"], iodepth=[1, 2, 3]),
            ["{variant}-{iodepth:int}.json"],
        ),
        (
            _samples("{v}-{x}.json", (), v=["old", "new"], x=[1, 2, 8]),
            ["{variant}-{name2:int}.json"],
        ),
        # a letter is an abbreviation unless fio echoed another number of jobs
        (
            _samples("{v}/t{numjobs}/fio.json", ("numjobs",), v=["old", "new"], numjobs=[2, 16]),
            ["{variant}/t{threads:int}"],
        ),
        (_samples("{v}/q{x}/fio.json", (), v=["old", "new"], x=[7, 16]), ["{variant}/q{q:int}"]),
        (
            [Sample(f"{v}/t{n}/fio.json", {"section": "job"}) for v in ("p", "q") for n in (2, 16)],
            ["{variant}/t{threads:int}"],
        ),
        # hosts
        (
            _samples("node{h}/{v}.json", (), h=[1, 2], v=["base", "tuned"]),
            ["node{host}/{variant}.json"],
        ),
        # names as wholes, in parts, and in words
        (
            _samples("{device}/fio.json", (), device=["INTEL_D3_S4610", "FLOPPY", "SAMSUNG_970"]),
            ["{variant}"],
        ),
        (_samples("zfs-{v}/fio.json", (), v=["2.1", "2.2"]), ["zfs-{variant}"]),
        (_samples("{product}/fio.json", (), product=["INTEL_D3", "SAMSUNG_970"]), ["{variant}"]),
        (_samples("{rw}.json", ("rw",), rw=["randread", "randwrite", "read"]), ["{rw}.json"]),
        (
            _samples("{v}/{rw}.json", ("rw",), v=["a", "b"], rw=["randread", "randwrite", "read"]),
            ["{variant}/{rw}.json"],
        ),
        (
            [
                Sample(f"{v}/{name}.json", {"rw": rw})
                for v in ("a", "b")
                for name, rw in (("rand-read", "randread"), ("seq-write", "write"))
            ],
            ["{variant}/{rw}.json"],
        ),
        (
            _samples("engine={ioengine}/fio.json", ("ioengine",), ioengine=["io_uring", "libaio"]),
            ["engine={ioengine}"],
        ),
        # one result alone
        ([Sample("fio.json")], ["fio.json"]),
        (
            [Sample("randread-iodepth-8-numjobs-4.json", {"rw": "randread"})],
            ["{rw}-iodepth-{iodepth:int}-numjobs-{numjobs:int}.json"],
        ),
        # mixed depth: each shape its own layout
        (
            [
                *_samples(
                    "x/p/{rw}-{iodepth}-1.json",
                    ("rw", "iodepth"),
                    rw=["read", "write"],
                    iodepth=[1, 2, 8],
                ),
                *_samples(
                    "x/q/{w}/{rw}-{iodepth}-1.json",
                    ("rw", "iodepth"),
                    w=["w"],
                    rw=["read", "write"],
                    iodepth=[1, 2, 8],
                ),
                Sample("alone/fio.json"),
            ],
            [
                "{variant}/{folder2}/w/{rw}-{iodepth:int}-1.json",
                "{variant}/{folder2}/{rw}-{iodepth:int}-1.json",
                "{variant}",
            ],
        ),
    ],
)
def test_a_layout_is_found(samples: list[Sample], layouts: list[str]) -> None:
    found = infer_layouts(samples)
    assert list(found.layouts) == layouts
    assert not found.copies
    compiled = [parse_layout(text) for text in found.layouts]
    for sample in samples:
        assert any(
            layout.match(path) is not None
            for layout in compiled
            for path in (sample.path, sample.path.rpartition("/")[0])
        )


@pytest.mark.parametrize(
    ("samples", "layouts", "doubts"),
    [
        # a size is no number of jobs, a key belongs to the value after it
        (
            [
                Sample(
                    f"nvme2n2_none_4Ki_numjobs-{jobs}.json",
                    {"rw": "randread", "bs": "4Ki", "numjobs": str(jobs), "iodepth": "1"},
                )
                for jobs in (1, 12)
            ],
            ["nvme2n2_none_4Ki_numjobs-{numjobs:int}.json"],
            0,
        ),
        (
            [
                Sample(f"none_4Ki_iodepth-{depth}.json", {"bs": "4Ki", "iodepth": str(depth)})
                for depth in (4, 8)
            ],
            ["none_4Ki_iodepth-{iodepth:int}.json"],
            0,
        ),
        # three keys, each before its value; fio echoes sizes with their unit
        (
            [
                Sample(
                    f"bs_{size}_proc_{processes}_qd_{depth}.txt",
                    {"bs": f"{size}k", "iodepth": str(depth), "ioengine": "libaio"},
                )
                for size, processes, depth in itertools.product((4, 64), (1, 10), (4, 32))
            ],
            ["bs_{bs_kib:int}_proc_{proc:int}_qd_{iodepth:int}.txt"],
            0,
        ),
        # keys after their values, keys on both sides, keys without glue
        (
            [
                Sample(
                    f"{depth}-qd_{jobs}-jobs.json", {"iodepth": str(depth), "numjobs": str(jobs)}
                )
                for depth, jobs in itertools.product((1, 8), (2, 4))
            ],
            ["{iodepth:int}-qd_{numjobs:int}-jobs.json"],
            0,
        ),
        (
            [
                Sample(f"{jobs}jobs-qd-{depth}.json", {"iodepth": str(depth), "numjobs": str(jobs)})
                for depth, jobs in itertools.product((1, 8), (2, 4))
            ],
            ["{numjobs:int}jobs-qd-{iodepth:int}.json"],
            0,
        ),
        # a key that fio contradicts names no option of fio's
        (
            [
                Sample(f"{v}/jobs-{n}.json", {"numjobs": "4", "iodepth": "1"})
                for v in ("old", "new")
                for n in (4, 8)
            ],
            ["{variant}/jobs-{path_numjobs:int}.json"],
            1,
        ),
        # a level of two words is one level next to those of one word
        (
            [
                Sample(
                    f"nvme2n2_{scheduler}_4Ki_{key}-{n}.json",
                    {"bs": "4Ki", "iodepth": "1", "numjobs": "1", key: str(n)},
                )
                for scheduler in ("none", "bfq", "kyber", "mq-deadline")
                for key in ("iodepth", "numjobs")
                for n in (4, 12)
            ],
            [
                "nvme2n2_{variant}_4Ki_iodepth-{iodepth:int}.json",
                "nvme2n2_{variant}_4Ki_numjobs-{numjobs:int}.json",
            ],
            0,
        ),
        (
            [
                Sample(f"{folder}/{scheduler}_qd-{n}.json", {"iodepth": str(n)})
                for folder, scheduler in (("x", "bfq"), ("x", "kyber"), ("y", "mq-deadline"))
                for n in (4, 12)
            ],
            ["{variant}/{name1}_qd-{iodepth:int}.json"],
            0,
        ),
        (
            [
                *_samples(
                    "nvme2n2_{v}_iodepth-{iodepth}.json",
                    ("iodepth",),
                    v=["none", "bfq", "mq-deadline"],
                    iodepth=[1, 8],
                ),
                *_samples("nvme2n2_mq-deadline_active_zones-{zones}.json", (), zones=[1, 14]),
            ],
            [
                "nvme2n2_{variant}_active_zones-{active_zones:int}.json",
                "nvme2n2_{variant}_iodepth-{iodepth:int}.json",
            ],
            0,
        ),
        # fio counts the jobs of both hosts, the path those of each
        (
            [
                Sample(f"{v}/jobs-{n}.json", {"numjobs": str(2 * n)}, {"numjobs": str(n)})
                for v in ("old", "new")
                for n in (4, 8)
            ],
            ["{variant}/jobs-{numjobs:int}.json"],
            0,
        ),
    ],
)
def test_the_options_of_fio_decide(samples: list[Sample], layouts: list[str], doubts: int) -> None:
    found = infer_layouts(samples)
    assert list(found.layouts) == layouts
    assert len(found.doubts) == doubts
    for sample in samples:
        fields = next(
            fields
            for layout in map(parse_layout, found.layouts)
            if (fields := layout.match(sample.path)) is not None
        )
        assert all(sample.agrees(name, str(value)) is not False for name, value in fields.items())


def test_folders_of_copies_are_named_and_left_out() -> None:
    runs = _samples("{v}/fio-{numjobs}-jobs/fio.json", (), v=["master", "project"], numjobs=[1, 2])
    copies = _samples("{v}/results/fio-{numjobs}-jobs/fio.json", (), v=["master"], numjobs=[1, 2])
    found = infer_layouts([*runs, *copies])
    assert found.layouts == ("{variant}/fio-{numjobs:int}-jobs",)
    assert found.copies == ("{variant}/results/fio-{numjobs:int}-jobs",)
    assert found.copy_paths == {sample.path for sample in copies}


_PART = st.text(st.sampled_from("ab1248k-_=.{}*\u00e9 \udcff"), min_size=1, max_size=8).filter(
    lambda part: part.strip(". ")
)


@given(
    st.lists(
        st.lists(_PART, min_size=1, max_size=3).map("/".join), min_size=1, max_size=12, unique=True
    )
)
def test_any_paths_have_layouts_that_can_be_read(paths: list[str]) -> None:
    check_layouts(paths)


def test_a_name_of_glue_alone_has_a_layout() -> None:
    check_layouts(["1/11", "-", "1/1", "1-"])


def check_layouts(paths: list[str]) -> None:
    options: Mapping[str, str] = {"rw": "read"}
    layouts = [
        parse_layout(text)
        for text in infer_layouts([Sample(path, options) for path in paths]).layouts
    ]
    for path in paths:
        assert any(
            layout.match(each) is not None
            for layout in layouts
            for each in (path, path.rpartition("/")[0])
        )


def test_an_inference_that_failed_says_so() -> None:
    keys = [
        "qd",
        "jobs",
        "bs",
        "size",
        "runtime",
        "fsync",
        "direct",
        "nrfiles",
        "disks",
        "vdevs",
        "rs",
        "thr",
        "compression",
        "rw",
    ]
    names = [
        Sample("_".join(f"{key}-{place}" for key in keys[:place]) + ".json")
        for place in range(1, 15)
    ]
    forms = infer_layouts(names)
    assert (len(forms.layouts), len(forms.doubts)) == (14, 1)
    ids = [
        Sample(f"{n:x}{n * 7919:x}abc_qd-{n % 4}.json", {"iodepth": str(n % 4)})
        for n in range(1000)
    ]
    found = infer_layouts(ids)
    assert found.layouts == ("{name1}_qd-{iodepth:int}.json",)
    assert len(found.doubts) == 1


def test_numbers_at_the_end_count_repetitions_in_folders_with_own_names() -> None:
    def samples(options_of: dict[str, str]) -> list[Sample]:
        return [
            Sample(f"{folder}/{name}-{number}", {"rw": options_of.get(str(number), rw)})
            for folder, name, rw in (
                ("t1-rand", "out-50rw32k.fio", "randrw"),
                ("t1-reads", "reads-100", "randread"),
                ("t2-rand", "out-50rw32k.fio", "randrw"),
                ("t2-reads", "out-read32k.fio", "randread"),
            )
            for number in range(3)
        ]

    assert infer_layouts(samples({})).layouts == ("t{t:int}-{variant}/*-{repetition:int}",)
    assert "repetition" not in " ".join(infer_layouts(samples({"2": "write"})).layouts)
