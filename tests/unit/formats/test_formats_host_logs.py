# SPDX-License-Identifier: Apache-2.0
"""iolab's logs of /proc/stat, meminfo, vmstat and pressure: shares, rates and levels, what kernels
lack, torn ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iolab.base.errors import FormatError
from iolab.base.registry import load
from iolab.formats.core.tables import HostTable
from iolab.formats.detect import detect
from iolab.formats.host.counters_log import read_log

START = 1_700_000_000_000_000_000
SECOND = 10**9
KINDS = ("cpu", "memory", "vmstat", "pressure", "network")


def log(kind: str, *readings: str, step: float = 1.0) -> str:
    """Readings `step` seconds apart."""
    return f"# iolab {kind} 1\n" + "".join(
        f"@ {START + round(k * step * SECOND)} {50 * SECOND + round(k * step * SECOND)}\n{text}"
        for k, text in enumerate(readings)
    )


def read(kind: str, text: str) -> HostTable:
    table = load("format", kind)().read(text.encode(), f"{kind}.log")
    assert isinstance(table, HostTable)
    return table


def cpu(*ticks: int, name: str = "cpu ") -> str:
    return f"{name} {' '.join(map(str, ticks))}\n"


WHOLE = {
    "cpu": log(
        "cpu",
        *[
            cpu(10 * k, 0, 5 * k, 100 * k, k, 0, 0, 0, 0, 0)
            + cpu(9 * k, 0, 5 * k, 40 * k, k, 0, 0, 0, 0, 0, name="cpu0")
            + f"intr {500 * k}\nctxt {900 * k}\nprocs_running 2\nprocs_blocked {k}\n"
            for k in range(5)
        ],
    ),
    "memory": log(
        "memory",
        *[
            f"MemTotal:  1000 kB\nMemAvailable:  {900 - k} kB\nDirty:  {k} kB\nSwapTotal:  10 kB\nSwapFree:  8 kB\n"
            for k in range(5)
        ],
    ),
    "vmstat": log(
        "vmstat",
        *[
            f"nr_dirtied {100 * k}\npgpgout {4 * k}\nallocstall_normal {k}\nallocstall_movable {k}\n"
            for k in range(5)
        ],
    ),
    "pressure": log(
        "pressure",
        *[
            f"io some avg10=1.00 avg60=0.50 avg300=0.00 total={250000 * k}\n"
            f"io full avg10=0.00 avg60=0.00 avg300=0.00 total={100000 * k}\n"
            for k in range(5)
        ],
    ),
    "network": log(
        "network",
        *[
            f"  eth0: {50_000 * k} {zeros} {100_000 * k} {zeros}\n"
            f"eth1.7: {1000 * k} {zeros} {2000 * k} {zeros}\nspeed eth0 1\n"
            for k in range(5)
            for zeros in ["0 0 0 0 0 0 0"]
        ],
    ),
}


def test_throughput_of_links_and_the_share_of_their_speed() -> None:
    columns = read("network", WHOLE["network"]).columns
    assert columns["net.in"].tolist() == [51_000.0] * 4
    assert columns["net.out"].tolist() == [102_000.0] * 4
    assert columns["net.util"].tolist() == pytest.approx([0.8] * 4)
    unknown = WHOLE["network"].replace("speed eth0 1\n", "")
    assert "net.util" not in read("network", unknown).columns
    restarted = WHOLE["network"].replace("eth0: 100000", "eth0: 1")
    assert np.isnan(read("network", restarted).columns["net.in"]).tolist() == [
        False, True, False, False,
    ]  # fmt: skip


def test_cpu_time_is_shared_out() -> None:
    table = read("cpu", log("cpu", cpu(0, 0, 0, 0, 0, 0, 0, 0), cpu(30, 10, 20, 100, 20, 4, 6, 10)))
    expected = {"busy": 0.4, "user": 0.2, "system": 0.15, "iowait": 0.1, "steal": 0.05}
    for name, value in expected.items():
        assert table.columns[f"cpu.{name}"].tolist() == pytest.approx([value]), name
    assert table.units["cpu.busy"] == "1"
    assert table.time_ns.tolist() == [START + SECOND]


def test_the_busiest_cpu_is_found_in_each_interval() -> None:
    readings = [
        cpu(0, 0, 0, 0) + cpu(0, 0, 0, 0, name="cpu0") + cpu(0, 0, 0, 0, name="cpu1"),
        cpu(90, 0, 0, 110) + cpu(90, 0, 0, 10, name="cpu0") + cpu(0, 0, 0, 100, name="cpu1"),
        cpu(170, 0, 0, 230) + cpu(90, 0, 0, 110, name="cpu0") + cpu(80, 0, 0, 120, name="cpu1"),
    ]
    assert read("cpu", log("cpu", *readings)).columns["cpu.busiest"].tolist() == pytest.approx(
        [0.9, 0.8]
    )


def test_idle_time_that_goes_back_is_no_time() -> None:
    busy = read("cpu", log("cpu", cpu(0, 0, 0, 100, 50), cpu(50, 0, 0, 150, 49))).columns[
        "cpu.busy"
    ]
    assert busy.tolist() == pytest.approx([0.5])


def test_a_clock_tick_without_time_is_unknown_not_zero() -> None:
    assert np.isnan(
        read("cpu", log("cpu", cpu(1, 0, 1, 5), cpu(1, 0, 1, 5))).columns["cpu.busy"]
    ).all()


def test_an_old_kernels_four_states_will_do() -> None:
    columns = read("cpu", log("cpu", cpu(0, 0, 0, 0), cpu(10, 10, 20, 60))).columns
    assert columns["cpu.busy"].tolist() == pytest.approx([0.4])
    assert columns["cpu.steal"].tolist() == [0]


def test_switches_and_interrupts_are_rates_and_tasks_are_levels() -> None:
    columns = read(
        "cpu",
        log(
            "cpu",
            *[
                f"{cpu(k, 0, 0, k)}ctxt {1000 * k}\nintr {500 * k}\nprocs_running 3\nprocs_blocked {k}\n"
                for k in range(3)
            ],
            step=2.0,
        ),
    ).columns
    assert columns["context_switches"].tolist() == [500, 500]
    assert columns["interrupts"].tolist() == [250, 250]
    assert columns["tasks.blocked"].tolist() == [1, 2]


def test_memory_is_in_bytes_as_it_stood_at_the_end_of_each_interval() -> None:
    table = read("memory", WHOLE["memory"])
    assert table.columns["memory.dirty"].tolist() == [1024, 2048, 3072, 4096]
    assert table.columns["memory.available"].tolist() == [(900 - k) * 1024 for k in (1, 2, 3, 4)]
    assert table.columns["memory.swapped"].tolist() == [2048] * 4
    assert table.source_fields["memory.dirty"] == ("Dirty", "kB")


def test_pages_are_rates_and_what_the_kernel_lacks_is_missing() -> None:
    columns = read("vmstat", WHOLE["vmstat"]).columns
    assert columns["vmstat.dirtied"].tolist() == [100] * 4
    assert columns["vmstat.write.bw"].tolist() == [4096] * 4
    assert columns["vmstat.direct_reclaim"].tolist() == [2] * 4
    assert "vmstat.swap_in" not in columns


def test_pressure_is_the_share_of_time_from_the_totals() -> None:
    columns = read("pressure", WHOLE["pressure"]).columns
    assert columns["pressure.io.some"].tolist() == pytest.approx([0.25] * 4)
    assert columns["pressure.io.full"].tolist() == pytest.approx([0.1] * 4)


def test_a_counter_that_goes_back_or_is_missing_costs_its_interval() -> None:
    readings = [
        "nr_dirtied 100\nnr_written 1\n",
        "nr_dirtied 50\nnr_written 2\n",
        "nr_written 3\n",
        "nr_dirtied 9\nnr_written 4\n",
    ]
    columns = read("vmstat", log("vmstat", *readings)).columns
    assert np.isnan(columns["vmstat.dirtied"]).all()
    assert columns["vmstat.written"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_torn_end_is_dropped_and_said(kind: str) -> None:
    whole = WHOLE[kind]
    last = whole.rindex("@")
    for cut in (len(whole) - 1, whole.rindex("\n", 0, -1) + 3, last + 5):
        table = read(kind, whole[:cut])
        assert len(table.time_ns) == 3
        assert table.damaged
    assert read(kind, whole).damaged == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_never_changes_a_value(kind: str) -> None:
    whole = read(kind, WHOLE[kind])
    for cut in range(len(WHOLE[kind])):
        try:
            table = read(kind, WHOLE[kind][:cut])
        except FormatError as error:
            assert str(error).startswith(f"{kind}.log")  # noqa: PT017 - either is right
            continue
        for name, values in table.columns.items():
            assert values.tolist() == whole.columns[name][: len(values)].tolist(), (cut, name)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_bytes_knocked_over_are_survived(kind: str, data: st.DataObject) -> None:
    sample = bytearray(WHOLE[kind].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(sample) - 1))
        sample[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    try:
        table = load("format", kind)().read(bytes(sample), "x")
    except FormatError as error:
        assert str(error).startswith("x")  # noqa: PT017 - either is right
        return
    assert {len(values) for values in table.columns.values()} <= {len(table.time_ns)}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "cpu 1 2 3 4\n",
                "cpu0 1\n",
                "cpu  x\n",
                "Dirty: 4 kB\n",
                "Dirty: 4 MB\n",
                "ctxt 9999999999999999999999\n",
                "nr_dirtied 5\n",
                "io some total=9\n",
                "@ 1 2\n",
                "@ 2 3\n",
                "@ 3\n",
                "ctxt ²\n",
                "\n",
                "junk",
            ]
        ),
        max_size=12,
    )
)
@example(["@ 1 2\n", "cpu 0 0 0 0\n", "@ 2 2000000002\n", "cpu 0 0 0 0\n"])
def test_odd_lines_are_listed_or_the_file_refused(kind: str, lines: list[str]) -> None:
    text = f"# iolab {kind} 1\n" + "".join(lines)
    try:
        table = load("format", kind)().read(text.encode(), "x")
    except FormatError:
        return
    assert all(1 < number <= len(lines) + 1 for number, _ in table.damaged)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "file is empty"),
        ("something else\n", "is not a header of this log"),
        ("# iolab {kind} 2\n@ 1 2\n", "log of a newer kind"),
        ("# iolab {kind} 1\n", "no whole reading"),
        ("# iolab {kind} 1\n@ 1 2\n", "no whole reading"),
    ],
)
def test_a_log_without_readings_says_why(kind: str, text: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(kind, text.format(kind=kind))
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_content_tells_the_kind_whatever_the_name(kind: str) -> None:
    assert detect(WHOLE[kind].encode(), "x") == kind
    assert detect(b"", f"{kind}.log") == kind


def test_any_kind_of_counters_has_the_same_frame() -> None:
    readings, damaged = read_log(
        "own",
        log("own", "a 1\n", "a 2\nb\n").encode(),
        "x",
        lambda line: ("a", [int(line[2:])]) if line.startswith("a ") else None,
        "an a",
    )
    assert [reading.counters for reading in readings] == [{"a": [1]}, {"a": [2]}]
    assert damaged == [(6, "neither a reading's time nor an a")]
