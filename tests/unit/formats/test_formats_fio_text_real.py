# SPDX-License-Identifier: Apache-2.0
"""fio's normal output and its JSON of the same run say the same, as far as the text has digits."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.formats.core.tables import FioDirection, FioOutput, Latency
from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.text_output import FioText
from support.depth import depth

pytestmark = [
    pytest.mark.fio,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]

_RW = ("read", "write", "randread", "randwrite", "rw", "randrw")
_BASES = {
    "one job": "",
    "two jobs": "--numjobs=2",
    "grouped": "--numjobs=3 --group_reporting",
    "deep": "--ioengine=libaio --iodepth=16 --slat_percentiles=1",
    "total percentiles": "--lat_percentiles=1 --clat_percentiles=0",
    "both percentiles": "--lat_percentiles=1 --clat_percentiles=1",
    "fsync": "--fsync=4",
    "percentile list": "--percentile_list=0.5:50:90:99.999:100",
}
_MORE = {
    "mixed": "--rw=randrw --unified_rw_reporting=1",
    "mixed grouped": "--rw=randrw --unified_rw_reporting=1 --numjobs=2 --group_reporting",
    "no clock": "--rw=randrw --gtod_reduce=1",
    "no percentiles": "--rw=randrw --clat_percentiles=0 --lat_percentiles=0",
    "bits": "--rw=randrw --unit_base=1",
    "decimal": "--rw=randrw --kb_base=1000",
    "digits": "--rw=randrw --significant_figures=8",
    "few digits": "--rw=randrw --significant_figures=2",
    "range": "--rw=randrw --bsrange=1k-16k --bs_unaligned",
    "three sizes": "--rw=randrw --bs=1k,8k",
    "odd size": "--rw=write --bs=1000",
    "stonewall": "--rw=read --name=second --size=64k --rw=write --bs=16k --stonewall",
    "groups": "--rw=read --numjobs=2 --group_reporting --name=second --size=64k --rw=write --new_group",
    "described": "--rw=read --description='two: words (g=7): rw=write'",
    "ramp": "--rw=read --time_based --runtime=1 --ramp_time=1 --rate_iops=500",
    "null engine": "--rw=read --ioengine=null --size=64g --bs=1m",
}
CASES = {
    **{f"{rw}, {name}": f"--rw={rw} {options}" for rw in _RW for name, options in _BASES.items()},
    **_MORE,
}


def run_fio(directory: Path, options: str) -> tuple[str, bytes]:
    """The normal output of a run, and its JSON, as one --output-format=normal,json writes them."""
    import shlex

    done = subprocess.run(
        [
            "fio",
            f"--directory={directory}",
            "--name=load",
            "--size=512k",
            "--bs=4k",
            *shlex.split(options),
            "--output-format=normal,json",
        ],
        cwd=directory,
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    begin = done.stdout.index("{\n")
    end = done.stdout.index("\n}\n") + 3
    assert detect(done.stdout.encode(), "x") == "fio-json"
    return done.stdout[:begin] + done.stdout[end:], done.stdout[begin:end].encode()


@pytest.mark.parametrize("name", list(CASES)[:: depth(7, 1)])
def test_text_and_json_of_a_run_are_equal(tmp_path: Path, name: str) -> None:
    text, document = run_fio(tmp_path, CASES[name])
    assert detect(text.encode(), "x") == "fio-text"
    rounded, exact = FioText().read(text.encode(), "text"), FioJson().read(document, "json")
    assert rounded.version == exact.version
    assert [job.name for job in rounded.jobs] == [job.name for job in exact.jobs]
    for mine, truth in zip(rounded.jobs, exact.jobs, strict=True):
        for field in ("error", "total_errors", "group", "deepest", "asked_depth", "is_steady"):
            assert getattr(mine, field) == getattr(truth, field), field
        assert mine.user_cpu == pytest.approx(truth.user_cpu, abs=5.1e-5)
        assert mine.system_cpu == pytest.approx(truth.system_cpu, abs=5.1e-5)
        assert mine.directions.keys() == truth.directions.keys()
        for operation, direction in truth.directions.items():
            check_direction(mine.directions[operation], direction, name, rounded)


def check_direction(mine: FioDirection, truth: FioDirection, name: str, output: FioOutput) -> None:
    assert (mine.ios, mine.runtime) == (truth.ios, truth.runtime)
    assert mine.iops == pytest.approx(truth.iops, rel=1e-6)
    assert (mine.short_ios, mine.drop_ios) == (truth.short_ios, truth.drop_ios)
    rounded = any("bw is known to" in text for text in output.assumptions)
    assert mine.size_bytes == pytest.approx(truth.size_bytes, rel=0.06 if rounded else 0)
    assert mine.bw == pytest.approx(truth.bw, rel=0.06 if rounded else 1e-6, abs=1)
    assert rounded or truth.size_bytes == mine.size_bytes
    assert mine.latencies.keys() == truth.latencies.keys()
    for kind, latency in truth.latencies.items():
        check_latency(mine.latencies[kind], latency, few="few digits" in name)


def check_latency(mine: Latency, truth: Latency, *, few: bool) -> None:
    unit = mine.source_scale
    assert mine.mean == pytest.approx(truth.mean, abs=0.0051 * unit)
    assert mine.stddev == pytest.approx(truth.stddev, abs=0.0051 * unit)
    # long ones have a suffix, and four digits
    assert mine.minimum == pytest.approx(truth.minimum, abs=unit, rel=0.06 if few else 1e-3)
    assert mine.maximum == pytest.approx(truth.maximum, abs=unit, rel=0.06 if few else 1e-3)
    assert list(mine.percentiles) == pytest.approx(list(truth.percentiles), abs=0.005)
    for (_, value), (_, exact) in zip(
        mine.percentiles.items(), truth.percentiles.items(), strict=True
    ):
        # fio chooses the unit of percentiles by themselves, and rounds up
        assert -1e-12 <= value - exact <= max(unit, 1e-3 if exact > 2e-3 else 1e-6)
