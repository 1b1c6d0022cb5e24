# SPDX-License-Identifier: Apache-2.0
"""Files cut anywhere, with bytes knocked over, or of noise: read as far as they go, or refused with
a FormatError."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.base.registry import built_in, load
from iolab.formats.detect import detect, read
from support.depth import depth

DATA = Path(__file__).parents[2] / "data" / "formats"
FORMATS = {name: load("format", name)() for name in built_in("format")}

ILLUMOS = b"""                    extended device statistics
    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device
  100.0  200.0  800.0 3200.0  0.5  1.0    1.5    3.5   5  40 c1t0d0
    0.0    0.0    0.0    0.0  0.0  0.0    0.0    0.0   0   0 c1t1d0
"""
DISKSTATS = b"# iolab diskstats 1\n" + b"".join(
    b"@ %d %d\n   8 0 sda %d 0 %d 9 %d 0 %d 9 0 9 9 0 0 0 0 0 0\n   8 16 sdb 1 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n"
    % (10**18 + k * 10**9, k * 10**9 + 5, k, k * 8, k * 3, k * 24)
    for k in range(5)
)
ROWS = b"sdb 0.00 0.00 0.00 134.00 0.00 1064.50 15.89 1.19 8.81 0.00 8.81 5.04 67.60\n" * 6
SAMPLES = {path.name: path.read_bytes() for path in sorted(DATA.iterdir())} | {
    "illumos.txt": ILLUMOS * 3,
    "diskstats.log": DISKSTATS,
    "rows.txt": ROWS,
}


def accepted(data: bytes, name: str) -> Any:
    """The table of a file, or None where its format refuses it; anything but a FormatError fails
    the test."""
    kind = detect(SAMPLES[name], name)
    assert kind is not None
    return read_or_refuse(lambda: FORMATS[kind].read(data, name), name)


def read_or_refuse(reading: Callable[[], object], where: str) -> object | None:
    """What `reading` gives, or None for a FormatError that says where."""
    caught = None
    try:
        return reading()
    except FormatError as error:
        caught = error
    assert str(caught).startswith(where)
    return None


@pytest.mark.parametrize("name", list(SAMPLES))
def test_whole_files_are_read(name: str) -> None:
    assert accepted(SAMPLES[name], name) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SAMPLES))
@settings(deadline=None)
@given(data=st.data())
def test_a_cut_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    sample = SAMPLES[name]
    accepted(sample[: data.draw(st.integers(0, len(sample)))], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SAMPLES))
@settings(deadline=None)
@given(data=st.data())
def test_a_file_with_bytes_knocked_over_is_read_or_refused(name: str, data: st.DataObject) -> None:
    sample = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(sample) - 1))
        sample[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    accepted(bytes(sample), name)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.binary(max_size=300)
    | st.text('{}[]",:;%.\n @#-0123456789eEnaif fioDevice/sktr', max_size=300).map(str.encode)
)
@example(b"\xff\xfe{")
@example(b"Device:\n")
@example(b"Device r/s\nsda 1e999\n")
@example(b"# iolab diskstats 1\n@ 99999999999999999999 1\n")
@example(b"2;;;\n")
@example(b"2;" + b"\xc2\xb2;" * 80)
@example(b'{"jobs": [{"write": {"io_bytes": 1e308, "runtime": 1e308, "iops": 1e308}}]}')
@example(b'{"jobs": [{"write": {"io_bytes": 1e308, "io_kbytes": 1e308, "total_ios": 1e308}}]}')
@example(
    b'{"jobs": [{"write": {"total_ios": 1, "lat": {"mean": 1, "max": 1, "bins": {"FIO_IO_U_PLAT_BITS": 6, "99999": 5}}}}]}'
)
def test_noise_is_read_or_refused_by_every_format(data: bytes) -> None:
    for name in ("", "fio.json", "iostat.txt", "x_bw.1.log"):
        assert detect(data, name) is None or detect(data, name) in FORMATS
    for reader in FORMATS.values():
        read_or_refuse(partial(reader.read, data, "noise"), "noise")
    read_or_refuse(partial(read, data, "noise"), "noise")


IN_TIME = [
    name for name in SAMPLES if name.endswith((".log", "rows.txt", "illumos.txt")) or "-x." in name
]


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TIME)
def test_whatever_a_cut_leaves_agrees_with_the_whole(name: str) -> None:
    """A cut may take values away, never change one."""
    whole = series(accepted(SAMPLES[name], name))
    for cut in range(1, len(SAMPLES[name]), depth(29, 7)):
        table = accepted(SAMPLES[name][:cut], name)
        if table is None or (hasattr(table, "devices") and table.skipped_first != skips(name)):
            continue  # of a single report the mean since boot is kept
        for column, values in series(table).items():
            assert values == whole[column][: len(values)], (cut, column)


def skips(name: str) -> bool:
    return bool(accepted(SAMPLES[name], name).skipped_first)


def series(table: Any) -> dict[object, list[float]]:
    if hasattr(table, "devices"):
        return {
            (device, name): values.tolist()
            for device, samples in table.devices.items()
            for name, values in samples.columns.items()
        }
    if hasattr(table, "columns"):  # a release's "no I/O here" is nan, which equals nothing
        return {
            name: np.where(np.isnan(values), -1.0, values).tolist()
            for name, values in table.columns.items()
        }
    return {"time": table.time.tolist(), "value": table.value.tolist()}
