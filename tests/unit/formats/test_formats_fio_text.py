# SPDX-License-Identifier: Apache-2.0
"""fio's normal output: texts of fio 2 and 3, as terminals, mails and forums leave them."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from iolab.base.errors import FormatError
from iolab.base.verdict import Level
from iolab.formats.core.tables import FioOutput
from iolab.formats.detect import detect
from iolab.formats.fio.groups import groups_of
from iolab.formats.fio.text_output import FioText
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.files import write_plan
from iolab.studies.results.evidence.model import RunPlan
from support.fio_texts import HEADER, NEW, OLD, STATUS, report


def read(text: str | bytes) -> FioOutput:
    data = text.encode() if isinstance(text, str) else text
    assert detect(data, "anything") == "fio-text"
    return FioText().read(data, "text")


def test_a_text_of_fio_2() -> None:
    output = read(OLD)
    assert output.version == "fio-2.2.10"
    writer, reader = output.jobs
    assert (writer.name, writer.group, writer.deepest, writer.asked_depth) == ("seq-write", 0, 8, 8)
    assert writer.options == {"rw": "write", "bs": "64k", "ioengine": "libaio", "iodepth": "8"}
    assert reader.options["numjobs"] == "2"
    assert (reader.user_cpu, reader.system_cpu) == (0.03, 0.12)
    write, random_read = writer.directions["write"], reader.directions["read"]
    assert (write.ios, write.size_bytes, write.runtime) == (16384, 2**30, 10.25)
    assert write.iops == pytest.approx(16384 / 10.25)
    assert write.bw == pytest.approx(2**30 / 10.25)
    assert (random_read.ios, random_read.size_bytes) == (600_000, 600_000 * 4096)
    assert random_read.iops == pytest.approx(600_000 / 30.001)
    clat, lat, slat = (write.latencies[kind] for kind in ("clat", "lat", "slat"))
    assert (clat.mean, clat.maximum, lat.mean) == pytest.approx((4.99e-3, 45e-3, 5.00e-3))
    assert slat.mean == pytest.approx(9.21e-6)
    assert clat.percentiles == pytest.approx(
        {1: 3.12e-3, 5: 3.504e-3, 10: 3.76e-3, 50: 4.96e-3, 99: 9.024e-3, 99.99: 44.288e-3}
    )
    assert any("means to 0.01 ms" in text for text in output.assumptions)
    assert [group.name for group in groups_of(output)] == ["seq-write", "rand-read"]


@pytest.mark.parametrize(
    ("line", "iops", "bw", "size"),
    [
        # without the total, what is printed counts; the size has more digits than the rate
        ("read: IOPS=30.7k, BW=120MiB/s (126MB/s)(1199.5MiB/10001msec)", 30700, 125764114.8, None),
        (
            "write: IOPS=8, BW=33.0KiB/s (33.8kB/s)(332KiB/10059msec); 0 zone resets",
            8,
            None,
            339968,
        ),
        (
            "read: IOPS=256000, BW=8388608kbit/s (8192000Kibit/s)(1048576B/1msec)",
            256e3,
            None,
            2**20,
        ),
        ("trim: IOPS=1.5M, BW=5859MiB/s (6144MB/s)(57.2GiB/10000msec)", 1.5e6, 6143606784, None),
        ("mixed: IOPS=100, BW=400Ki (410k)(4000KiB/10000msec)", 100, 409600, 4096000),
        ("read : io=10.0GB, bw=1024.0MB/s, iops=8192, runt= 10000msec", 8192, 2**30, 10 * 2**30),
        ("write: io=312KB, bw=31948B/s, iops=7, runt= 10000msec", 7, 31948, 319480),
        ("read : io=4096MiB, bw=409MiB/s, iops=409, runt= 10014msec", 409, None, 2**32),
    ],
)
def test_rates_in_any_unit(line: str, iops: float, bw: float | None, size: int | None) -> None:
    output = read(f"j: (groupid=0, jobs=1): err= 0: pid=1: Sat\n  {line}\n")
    (direction,) = output.jobs[0].directions.values()
    assert direction.iops == iops
    assert bw is None or direction.bw == pytest.approx(bw, rel=1e-6)
    assert size is None or direction.size_bytes == size
    assert any(
        text.endswith(f"IOPS={line.partition('IOPS=')[2].partition(',')[0]}")
        or "iops is known to" in text
        for text in output.assumptions
    )


def noisy(text: str) -> str:
    """With progress between the lines, as a terminal shows it."""
    eta = "Jobs: 1 (f=1): [r(1)][50.0%][r=31.2MiB/s][r=8000 IOPS][eta 00m:05s]"
    return text.replace("Starting", f"\x1b[K{eta}\r{eta}\r\x1b[2K\x1b]0;title\x07Starting")


def wrapped(text: str) -> str:
    """Long lines broken at a blank, as mail does."""
    return re.sub(r"(?m)^(.{60,76}) (?=\S)(?!.*th=)", r"\1\n", text)


WAYS: dict[str, Callable[[str], str | bytes]] = {
    "quoted": lambda text: re.sub("(?m)^", "> ", text),
    "quoted twice": lambda text: re.sub("(?m)^", ">> > ", text),
    "as HTML": lambda text: re.sub("(?m)^", "&gt; ", text.replace(">=", "&gt;=")),
    "indented": lambda text: re.sub("(?m)^", "        ", text),
    "not indented": lambda text: re.sub("(?m)^ +", "", text),
    "single blanks": lambda text: re.sub(" +", " ", text),
    "time stamps": lambda text: re.sub("(?m)^", "2026-03-01T12:00:05.1234567Z ", text),
    "clock": lambda text: re.sub("(?m)^", "[12:00:05] ", text),
    "container": lambda text: re.sub("(?m)^", "fio-1  | ", text),
    "build": lambda text: re.sub("(?m)^", "#12 34.567 ", text),
    "journal": lambda text: re.sub("(?m)^", "Mar  1 12:00:05 box bench[77]: ", text),
    "job and step": lambda text: re.sub("(?m)^", "bench\tRun fio\t2026-03-01T12:00:05Z ", text),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "trailing blanks": lambda text: text.replace("\n", "   \n"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "progress": noisy,
    "colours": lambda text: re.sub("(?m)^", "\x1b[0;32m", text).replace("\n", "\x1b[0m\n"),
    "wrapped": wrapped,
    "prose": lambda text: f"Hi all,\nread: this is slow!\n\n{text}\n-- \nwrite: IOPS= what?\n",
    "huge lines": lambda text: text.replace("\n", "\n" + "x" * 100_000 + "\n", 5),
}


@pytest.mark.parametrize("text", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("way", WAYS)
def test_texts_that_have_travelled_say_the_same(way: str, text: str) -> None:
    output = read(WAYS[way](text))
    assert output.jobs == read(text).jobs
    assert output.version == read(text).version


@pytest.mark.parametrize("text", [OLD, NEW], ids=["old", "new"])
def test_cut_texts_have_right_numbers_or_none(text: str) -> None:
    """A number whose last digits are missing is not read."""
    whole = {job.name: job for job in read(text).jobs}
    readable = 0
    for at in range(0, len(text), 7):
        for part in (text[:at], text[at:]):
            try:
                output = FioText().read(part.encode(), "part")
            except FormatError:
                continue
            for job in output.jobs:
                truths = [
                    truth.directions[name]
                    for truth in whole.values()
                    for name in job.directions
                    if name in truth.directions
                ]
                for direction, truth in zip(job.directions.values(), truths, strict=False):
                    readable += 1
                    assert direction.runtime == truth.runtime
                    assert direction.iops == pytest.approx(truth.iops, rel=1e-3)
                    assert direction.bw == pytest.approx(truth.bw, rel=5e-3)
                    for kind, latency in direction.latencies.items():
                        exact = truth.latencies[kind]
                        assert (latency.mean, latency.stddev) == (exact.mean, exact.stddev)
                        assert latency.percentiles.items() <= exact.percentiles.items()
    assert readable > len(text) / 14


def test_an_end_that_is_cut_off_is_stated() -> None:
    output = read(NEW[: NEW.index("  cpu  ")])
    assert output.jobs[0].directions["read"].iops == 8000
    assert any("cut off in the report of job 'load'" in text for text in output.assumptions)


def test_a_beginning_without_report_is_an_error() -> None:
    with pytest.raises(FormatError, match="no report of it"):
        FioText().read(HEADER.encode(), "text")


def test_mixed_outputs_are_refused() -> None:
    a, b = (report(pid=pid, name=name).splitlines() for pid, name in ((1, "a"), (2, "b")))
    mixed = "\n".join(line for pair in zip(a, b, strict=True) for line in pair)
    with pytest.raises(FormatError, match=r"text:\d+.*several outputs are mixed"):
        FioText().read(mixed.encode(), "text")


# --- several runs


def test_later_reports_of_a_run_replace_earlier_ones() -> None:
    reports = [report(ios=8000 * n, runtime=1000 * n, second=n) + STATUS for n in (1, 2, 3)]
    output = read(HEADER + "".join(reports))
    assert [job.directions["read"].ios for job in output.jobs] == [24_000]
    assert any("3 reports of 1 run" in text for text in output.assumptions)


@pytest.mark.parametrize("header", ["", HEADER], ids=["reports alone", "with headers"])
def test_runs_that_follow_each_other_are_apart(header: str) -> None:
    runs = [
        header
        + report(ios=80_000 + 100 * n, runtime=10_000 + n, pid=n + 50, second=20 * n)
        + STATUS
        for n in range(3)
    ]
    output = read(HEADER + "".join(runs)[len(header) :])
    assert [job.run for job in output.jobs] == [0, 1, 2]
    assert [group.name for group in groups_of(output)] == ["load"] * 3


def test_clones_of_a_job_are_one_run() -> None:
    output = read(HEADER + report(pid=1) + report(pid=2).lstrip() + STATUS)
    assert len(output.jobs) == 2
    assert {job.options["numjobs"] for job in output.jobs} == {"2"}
    assert len(groups_of(output)) == 1


# --- hostile


@pytest.mark.parametrize("number", ["9" * 400, "9" * 30 + "E", "1" * 19, "0"])
def test_absurd_numbers_do_no_harm(number: str) -> None:
    for pattern in (
        r"(?<=IOPS=)[\d.]+",
        r"\d+(?=MiB/)",
        r"\d+(?=msec)",
        r"(?<=max=)\d+",
        r"(?<=total=)\d+",
        r"(?<=jobs=)\d+",
        r"(?<=depth=)\d+",
        r"(?<=groupid=)\d+",
        r"(?<=\[ )\d+",
    ):
        try:
            output = FioText().read(re.sub(pattern, number, NEW).encode(), "text")
        except FormatError:
            continue
        groups_of(output)


def test_damaged_bytes_do_no_harm() -> None:
    chance = random.Random(7)
    data = (OLD + NEW).encode()
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 40)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            groups_of(FioText().read(bytes(damaged), "text"))
        except FormatError:
            continue


def test_long_logs_without_results_take_no_time() -> None:
    line = "read: IOPS=" + "9" * 2000 + ", BW=" + "1 " * 500 + "\n"
    begin = time.process_time()
    FioText().read((NEW + line * 300).encode(), "text")
    # a pattern that backtracks takes minutes
    assert time.process_time() - begin < 20


def test_a_run_with_a_text_alone_is_judged(tmp_path: Path) -> None:
    plan = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
    (tmp_path / "out.txt").write_text(NEW)
    write_plan(tmp_path, plan, durable=False)
    derived = derive(tmp_path, plan)
    values = {observation.metric: observation.value for observation in derived.observations}
    assert derived.verdict.level == Level.OK, derived.verdict
    assert values["read.iops"] == 8000
    assert values["read.clat.p99"] == pytest.approx(2.1e-3)
    assert values["littles_law"] == pytest.approx(1, rel=1e-3)
