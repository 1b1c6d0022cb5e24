# SPDX-License-Identifier: Apache-2.0
"""sysstat's JSON: whole, torn, with a comma too many, in the wrong unit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import FormatError
from iolab.formats.core.tables import DeviceTable
from iolab.formats.iostat.json_output import IostatJson
from iolab.formats.iostat.text_output import IostatText
from support.golden import Golden

SAMPLE = (Path(__file__).parents[2] / "data" / "formats" / "iostat-12.6.1-x.json").read_text()


def read(text: str) -> DeviceTable:
    return IostatJson().read(text.encode(), "iostat.json")


def disk(name: str = "sda", **more: float) -> dict[str, object]:
    return {
        "disk_device": name,
        "r/s": 100.0,
        "w/s": 200.0,
        "rkB/s": 800.0,
        "wkB/s": 3200.0,
        "r_await": 2.0,
        "w_await": 5.0,
        "rareq-sz": 8.0,
        "wareq-sz": 16.0,
        "aqu-sz": 1.2,
        "util": 40.0,
        **more,
    }


def document(*reports: list[dict[str, object]]) -> str:
    statistics = [{"disk": disks} for disks in reports]
    return json.dumps(
        {"sysstat": {"hosts": [{"nodename": "box", "statistics": statistics}]}}, indent=1
    )


def test_json_of_12_6_1() -> None:
    table = read(SAMPLE)
    samples = table.devices["vda"]
    raw = json.loads(SAMPLE)["sysstat"]["hosts"][0]["statistics"]
    assert len(raw) == 4
    assert samples.columns["write.iops"].tolist() == [
        report["disk"][0]["w/s"] for report in raw[1:]
    ]
    assert samples.columns["write.bw"] == pytest.approx(
        [report["disk"][0]["wkB/s"] * 1024 for report in raw[1:]]
    )
    assert samples.columns["util"] == pytest.approx(
        [report["disk"][0]["util"] / 100 for report in raw[1:]]
    )
    assert samples.time_ns is not None
    assert (samples.interval, np.diff(samples.time_ns).tolist()) == (1.0, [10**9, 10**9])
    assert table.skipped_first
    assert not table.damaged


def test_both_of_iostats_forms_mean_the_same() -> None:
    text = (
        "Device r/s w/s rkB/s wkB/s r_await w_await rareq-sz wareq-sz aqu-sz %util\n"
        "sda 100.00 200.00 800.00 3200.00 2.00 5.00 8.00 16.00 1.20 40.00\n\n"
    )
    from_text = IostatText().read((text * 3).encode(), "t").devices["sda"]
    from_json = read(document([disk()], [disk()], [disk()])).devices["sda"]
    assert from_text.columns.keys() == from_json.columns.keys()
    for name, values in from_text.columns.items():
        assert values.tolist() == from_json.columns[name].tolist()


def test_every_cut_keeps_the_whole_reports_before_it() -> None:
    ends = [place for place in range(len(SAMPLE)) if SAMPLE.startswith("\n\t\t\t\t}", place)]
    assert len(ends) == 4
    for whole, end in enumerate(ends[1:], 2):
        for cut in (end + 6, min(end + 40, len(SAMPLE) - 14)):
            table = read(SAMPLE[:cut])
            assert len(table.devices["vda"].columns["util"]) == whole - 1
            assert any("isn't closed" in note for note in table.assumptions)


def test_the_comma_of_old_versions_with_y_is_passed_over() -> None:
    table = read(document([disk()], [disk()]).replace('"statistics": [', '"statistics": [,', 1))
    assert len(table.devices["sda"].columns["util"]) == 1
    assert any("comma" in note for note in table.assumptions)


def test_a_unit_that_the_request_sizes_contradict_is_put_right() -> None:
    table = read(document(*[[disk() | {"rkB/s": 0.78, "wkB/s": 3.12}]] * 3))
    assert table.devices["sda"].columns["write.bw"] == pytest.approx([3200 * 1024] * 2, rel=0.005)
    assert any("another unit" in note for note in table.assumptions)


def test_a_column_that_a_report_lacks_is_unknown_there() -> None:
    short = disk()
    del short["w/s"]
    values = read(document([disk()], [disk()], [short])).devices["sda"].columns["write.iops"]
    assert values[0] == 200
    assert np.isnan(values[1])


def test_without_x_only_bandwidth_is_known() -> None:
    plain = {
        "disk_device": "sda",
        "tps": 300.0,
        "kB_read/s": 800.0,
        "kB_wrtn/s": 3200.0,
        "kB_read": 800,
        "kB_wrtn": 3200,
    }
    samples = read(document([plain], [plain])).devices["sda"]
    assert {name: values.tolist() for name, values in samples.columns.items()} == {
        "read.bw": [819200.0],
        "write.bw": [3276800.0],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        SAMPLE[:100],
        document(),
        document([]),
        '{"sysstat": {"hosts": [{"statistics": [{"disk": [3, {"disk_device": 4}, {"disk_device": "a", "x": 1}]}]}]}}',
        '{"sysstat": {"hosts": [{"statistics": [' + "[" * 100_000,
    ],
)
def test_a_file_without_readings_says_why(text: str, golden: Golden) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)
    golden("formats/iostat-json-unreadable", str(caught.value))


def test_processors_alone_are_named() -> None:
    table = read(
        '{"sysstat": {"hosts": [{"statistics": [{"timestamp": "x", "avg-cpu": {"user": 1.0}}, {"avg-cpu": {"user": 2.0}}]}]}}'
    )
    assert (dict(table.devices), "avg-cpu alone" in table.assumptions[0]) == ({}, True)
