# SPDX-License-Identifier: Apache-2.0
"""Which format a file is of: by content first, by name where the content doesn't tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import FormatError
from iolab.formats.detect import detect, read

DATA = Path(__file__).parents[2] / "data" / "formats"
ILLUMOS = (
    b"        extended device statistics\n r/s w/s kr/s kw/s wait actv wsvc_t asvc_t %w %b device\n"
)
ROW = b"sdb 0.00 0.00 0.00 134.00 0.00 1064.50 15.89 1.19 8.81 0.00 8.81 5.04 67.60\n"


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_sample_files_are_told_by_their_content(path: Path) -> None:
    if path.name.startswith(("arcstats-", "txgs-", "zpool-")):
        assert detect(path.read_bytes(), "a") == path.name.rpartition("-")[0]
        return
    expected = {
        "fio-3.33-terse": "fio-terse",
        "iostat-12.6.1": "iostat-text",
        "fio-3.33": "fio-json",
    }
    kind = next(name for start, name in expected.items() if path.name.startswith(start))
    if path.suffix == ".log":
        assert detect(path.read_bytes(), path.name.replace("fio", "x")) == "fio-log"
    elif path.name.endswith("iostat-12.6.1-x.json"):
        assert detect(path.read_bytes(), "a") == "iostat-json"
    else:
        assert detect(path.read_bytes(), "a") == kind


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"", "fio.json", "fio-json"),
        (b"", "iostat.txt", "iostat-text"),
        (b"", "iostat.json", "iostat-json"),
        (b"", "diskstats.log", "diskstats"),
        (b"", "load_bw.1.log", "fio-log"),
        (b"", "anything", None),
        (b"fio: failed\n", "fio.json", "fio-json"),
        (b'error first\n{\n  "fio version" : "fio-3.1"', "x", "fio-json"),
        (
            b'{"sysstat": {"hosts": [{"statistics": [{"disk": [{"disk_device": "a"',
            "x",
            "iostat-json",
        ),
        (b'{"a": 1}', "fio.json", None),
        (ROW * 3, "x", "iostat-text"),
        (ROW * 3, "fio.json", "iostat-text"),
        (ILLUMOS, "x", "iostat-illumos"),
        (b"# iolab diskstats 1\n@ 1 2\n", "x", "diskstats"),
        (b"3;fio-3.33;load;0;0;1\n", "x", "fio-terse"),
        (b"1, 2, 1, 4096\n2, 3, 1, 4096\n", "load_iops.1.log", "fio-log"),
        (b"1, 2, 1, 4096\n2, 3, 1, 4096\n", "table.csv", None),
        (b"\x7fELF\0\0\0\0", "fio.json", None),
        (b"variant,jobs,metric,value,unit\nmaster,1,write.iops,5,1/s\n" * 3, "table.csv", None),
    ],
)
def test_content_counts_before_the_name(data: bytes, name: str, expected: str | None) -> None:
    assert detect(data, name) == expected


def test_a_file_longer_than_what_is_looked_at() -> None:
    assert detect(ROW * 5000, "x") == "iostat-text"
    assert detect(b"io_u error\n" * 3000 + b'{\n "fio version": "fio-3.1",', "x") == "fio-json"


def test_reading_names_the_format_or_says_what_is_known() -> None:
    name, table = read(ROW * 3, "some/where/rows.txt")
    assert (name, list(table.devices)) == ("iostat-text", ["sdb"])
    with pytest.raises(
        FormatError, match=r"some/where: no known format; iolab reads fio-json, fio-terse"
    ):
        read(b"a,b\n1,2\n", "some/where")
