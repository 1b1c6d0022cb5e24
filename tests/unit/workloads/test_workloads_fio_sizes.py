# SPDX-License-Identifier: Apache-2.0
"""Sizes reach fio as bytes: it reads the units of 1,024 as those of 1,000 and the other way round."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping

import pytest

from iolab.hosts.base.host import Place
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.sizes import as_fio_reads, as_meant, in_bytes
from iolab.studies.workloads.fio.workload import FioWorkload


def rendered(load: FioWorkload) -> str:
    made = load.job(Place("/x"))
    return made.files[made.main]


@pytest.mark.parametrize(
    "size", ["4k", "4K", "4kb", "4KB", "4ki", "4KiB", "4kib", " 4 KiB ", 4096, "4096"]
)
def test_every_spelling_of_a_size_is_the_same_job(size: str | int) -> None:
    load = FioWorkload(
        FioOptions(
            runtime=2,
            options={"size": "1MiB", "bs": size, "ba": size, "offset": size, "io_size": size},
        )
    )
    text = rendered(load)
    assert {f"{name}={4096}" for name in ("bs", "ba", "offset", "io_size")} | {
        "size=1048576"
    } <= set(text.splitlines())
    assert load.load().options["bs"] == size
    assert load.load().space_bytes == 1 << 20


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"bssplit": "4KiB/50:64k/50,1m/100"}, {"bssplit": "4096/50:65536/50,1048576/100"}),
        ({"bsrange": "4KiB-64KiB"}, {"bsrange": "4096-65536"}),
        ({"rate": "1MiB,500k"}, {"rate": "1048576,512000"}),
        ({"size": "50%"}, {"size": "50%"}),
        ({"filesize": "1k-2Ki"}, {"filesize": "1024-2048"}),
        ({"sync_file_range": "write:1MiB"}, {"sync_file_range": "write:1048576"}),
        ({"zonesize": "3z"}, {"zonesize": "3z"}),
        (
            {"random_distribution": "zoned_abs:60/20GiB:40/0"},
            {"random_distribution": f"zoned_abs:60/{20 << 30}:40/0"},
        ),
        ({"random_distribution": "zipf:1.2"}, {"random_distribution": "zipf:1.2"}),
        ({"description": "4KiB"}, {"description": "4KiB"}),
        ({"kb_base": 1000, "bs": "4k", "ba": "4KiB"}, {"kb_base": 1000, "bs": 4000, "ba": 4096}),
        ({"direct": True}, {"direct": True}),
    ],
)
def test_sizes_in_lists(options: dict[str, str | int], found: dict[str, str | int]) -> None:
    assert in_bytes(as_meant(options)) == found
    assert in_bytes(as_meant(found)) == found


def test_a_job_file_means_what_fio_reads() -> None:
    assert as_fio_reads({"bs": "4KiB", "ba": "4k", "size": "1g", "bsrange": "4KiB-8k"}) == {
        "bs": 4000,
        "ba": "4k",
        "size": "1g",
        "bsrange": "4000-8192",
    }
    assert as_fio_reads({"kb_base": "1000", "bs": "4KiB", "ba": "4k", "offset": "4ki"}) == {
        "kb_base": "1000",
        "bs": "4KiB",
        "ba": 4000,
        "offset": 4000,
    }
    load = FioWorkload(FioOptions.model_validate({"job": "[a]\nsize=1m\nbs=4KiB\n", "runtime": 1}))
    assert load.load().options["bs"] == 4000
    assert load.job(Place("/x")).files["given.fio"] == "[a]\nsize=1m\nbs=4KiB\n"
    laid_over = FioWorkload(
        FioOptions.model_validate(
            {"job": "[a]\nsize=1m\nbs=4KiB\nba=4k\n", "runtime": 1, "options": {"bs": "4KiB"}}
        )
    )
    assert laid_over.load().options["bs"] == 4096
    assert laid_over.load().options["ba"] == "4k"


def test_steps_are_sizes_too() -> None:
    steps = {"factor": "bs", "levels": ["4KiB", "8k"], "every": 2}
    load = FioWorkload(FioOptions.model_validate({"options": {"size": "1m"}, "steps": steps}))
    assert re.findall(r"^bs=(.*)$", rendered(load), re.MULTILINE) == ["4096", "8192"]


SPELLINGS = [
    (size, base)
    for base in (None, 1000)
    for size in ("4k", "4KiB", "4ki", "4kb", "4 k", "4 KiB", "4096", "1MiB")
]


def given(size: str, base: int | None) -> dict[str, str | int | float | bool]:
    """Options of a job with this size."""
    return {"bs": size, **({"kb_base": base} if base else {})}


@pytest.fixture(scope="module")
def block_size(
    fio: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Mapping[str, object]], str]:
    """The block size that fio prints for options. All of them are sections of one job file."""
    wanted: list[Mapping[str, object]] = [{"bs": 4096}]
    for size, base in SPELLINGS:
        options = given(size, base)
        wanted += [options, in_bytes(as_fio_reads(options)), in_bytes(as_meant(options))]
    sections = [
        f"[s{number}]\n" + "".join(f"{name}={value}\n" for name, value in options.items())
        for number, options in enumerate(wanted)
    ]
    job = tmp_path_factory.mktemp("sizes") / "job"
    job.write_text("[global]\nioengine=null\nsize=8m\nnumber_ios=1\n" + "".join(sections))
    text = subprocess.run([fio, str(job)], capture_output=True, text=True, check=True).stdout
    printed = dict(re.findall(r"^s(\d+): .*?bs=\(R\) (\S+)-", text, re.MULTILINE))
    return lambda options: str(printed[str(wanted.index(options))])


@pytest.mark.fio
@pytest.mark.parametrize(("size", "base"), SPELLINGS)
def test_fio_reads_it_so(
    block_size: Callable[[Mapping[str, object]], str], size: str, base: int | None
) -> None:
    options = given(size, base)
    assert block_size(in_bytes(as_fio_reads(options))) == block_size(options)
    if size != "1MiB" and not (base and size in ("4k", "4kb", "4 k")):
        assert block_size(in_bytes(as_meant(options))) == block_size({"bs": 4096})
