# SPDX-License-Identifier: Apache-2.0
"""A device that is slower than its peers: found by latency or by busy share, never for being asked
to do more."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.facts.device_outliers import DeviceLoad, device_outliers
from support.fio_files import job, output, write_run

SECOND = 10**9
EVEN = [DeviceLoad(f"sd{letter}", 0.2, 1e-3, 1e6) for letter in "abcd"]


def odd(**changes: float) -> list[DeviceLoad]:
    """Four devices of which the last is otherwise."""
    return [*EVEN[:3], dataclasses.replace(EVEN[3], **changes)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (EVEN, None),
        (odd(await_=2.9e-3), None),
        (odd(await_=3.1e-3), ("sdd", "await")),
        (odd(await_=5e-3, bw=0.7e6), ("sdd", "await")),  # the slow one of a stripe that adapts
        (odd(await_=5e-3, bw=0.001e6), None),  # a handful of I/Os has no mean
        (odd(await_=5e-3, util=0.9, bw=2e6), None),  # it is asked to do more
        (odd(util=0.59), None),
        (odd(util=0.61), ("sdd", "util")),
        (odd(util=0.7)[1:], None),  # two peers can't say who is odd
        (
            [*odd(util=0.7)[1:], DeviceLoad("sde", 0.0, None, 0.0)],
            None,
        ),  # nor can one that did nothing
        (
            [DeviceLoad(f"nvme{k}n1", 0.05, 20e-6 * (4 if k == 0 else 1), 1e9) for k in range(8)],
            None,
        ),  # 80 µs is no reason
        (
            [DeviceLoad(f"nvme{k}n1", 0.05 * (4 if k == 0 else 1), None, 1e9) for k in range(8)],
            None,
        ),  # nor 20 % busy
        (
            [*EVEN[:2], *(DeviceLoad(name, 0.2, 9e-3, 1e6) for name in ("hd0", "hd1"))],
            None,
        ),  # two kinds, and no saying which is odd
        (odd(await_=0.5e-3, util=0.01), None),  # faster than its peers
    ],
)
def test_who_is_slow(devices: list[DeviceLoad], expected: tuple[str, str] | None) -> None:
    found = device_outliers(devices)
    assert [(one.device, one.quantity) for one in found] == ([] if expected is None else [expected])


def test_the_slowest_of_many_stands_first() -> None:
    devices = [DeviceLoad(f"sd{k}", 0.2, 1e-3, 1e6) for k in range(62)]
    devices += [DeviceLoad("slow", 0.2, 5e-3, 1e6), DeviceLoad("slower", 0.2, 9e-3, 1e6)]
    found = device_outliers(devices)
    assert [one.device for one in found] == ["slower", "slow"]
    assert found[0].times == pytest.approx(9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1e-6, 10), st.floats(1, 1e10)), max_size=12))
def test_outliers_are_a_minority(values: list[tuple[float, float, float]]) -> None:
    devices = [DeviceLoad(str(k), *one) for k, one in enumerate(values)]
    assert device_outliers(devices) == [] or 2 * len(device_outliers(devices)) < len(devices)


@given(st.lists(st.floats(0.7, 1.4), min_size=4, max_size=12))
def test_devices_that_differ_by_less_than_half_are_never_outliers(factors: list[float]) -> None:
    assert (
        device_outliers(
            [DeviceLoad(str(k), 0.4 * one, 1e-3 * one, 1e6) for k, one in enumerate(factors)]
        )
        == []
    )


def four_devices(slow: float) -> str:
    """diskstats of four devices at 100 writes a second and 2 ms each, the last `slow` times slower."""
    text = "# iolab diskstats 1\n"
    for k in range(15):
        text += f"@ {1_700_000_000 * SECOND + (k - 2) * SECOND} {(50 + k) * SECOND}\n"
        for number, name in enumerate(("loop0", "loop1", "loop2", "loop3")):
            waited = round(200 * k * (slow if number == 3 else 1))
            text += f"   7 {number} {name} 0 0 0 0 {100 * k} 0 {1600 * k} {waited} 0 {min(waited, 950 * k)} {waited}\n"
    return text


@pytest.mark.parametrize(("slow", "expected"), [(1.0, None), (2.5, None), (4.5, "loop3")])
def test_a_run_with_a_slow_device_is_suspect_and_names_it(
    tmp_path: Path, slow: float, expected: str | None
) -> None:
    plan = RunPlan(
        run="0001-a",
        variant="v",
        factors={},
        jobs=4,
        runtime=10.0,
        exit_code=0,
        window=(1_700_000_000 * SECOND, 1_700_000_010 * SECOND),
    )
    write_run(tmp_path, output(job()), plan=plan, diskstats_log=four_devices(slow))
    result = derive(tmp_path, plan)
    if expected is None:
        assert result.verdict.level is Level.OK
        return
    [reason] = result.verdict.reasons
    assert (reason.code, reason.level, reason.data["device"]) == (
        "slow-device",
        Level.SUSPECT,
        expected,
    )
    assert reason.text == "loop3 took 9.00 ms for an I/O, 4.5 times its peers' median"
