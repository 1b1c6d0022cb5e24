# SPDX-License-Identifier: Apache-2.0
"""Stories of the guides: loads of which is known what they do, made by the guides' own commands,
recorded, and found on the worksheet."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from support.answers import Cells, answer, cells, lines, span
from support.browser import expect
from support.gestures import as_lines, asked_on, chosen, closed, marked, shown, value
from support.host_names import names_from
from support.network import need_network, network
from support.probe import need_probe
from support.stories import RENEW, kept, need_limits, played, recorded_server, worksheet
from support.worksheet import drawn, frame

pytestmark = [pytest.mark.browser, pytest.mark.tracing, pytest.mark.figures]

FILE_LATENCY, FILE_OFFSET, LATENCY = "file.ops[latency]", "file.ops[offset]", "io.ops[latency]"
READS = "file.ops[op=read][process=fio][size=8KiB..]"
"""Without fio's reads of its own libraries, which are smaller. Under load their names are unknown,
so that they can be files of the recorded file system."""
MIB = 1 << 20
BLOCK = 8192
"""Bytes of each of the reader's reads."""

UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
LEVELS = (1, 2, 4, 8, 16)
SECOND = 10**9


def jobs(place: Path) -> dict[str, dict[str, Any]]:
    """What fio says of the reads of each of its jobs."""
    return {
        job["jobname"]: job["read"] for job in json.loads((place / "fio.json").read_text())["jobs"]
    }


def straight(part: Cells) -> tuple[float, float]:
    """How well offsets follow time, by rank, from -1 to 1; and bytes a second by which they grow."""
    time, offset = (
        np.repeat(values, part.count)
        for values in ((part.time_ns - part.time_ns.min()) / 1e9, part.value)
    )
    return float(spearmanr(time, offset).statistic), float(np.polyfit(time, offset, 1)[0])


def test_sequential_and_random_reads_are_told_apart_by_offset(browser: Any, tmp_path: Path) -> None:
    with (
        played("offsets", tmp_path) as place,
        worksheet(browser, place / "offsets", tmp_path) as page,
    ):
        # the first look offers it, of the device
        page.locator('[data-choice="io.ops[offset]"]').click()
        drawn(page, "io.ops[offset]")
        frame(page, "io.ops[offset]").get_by_role("button", name="Close io.ops[offset]").click()
        shown(page, FILE_OFFSET, "file.ops[latency]")
        kept(page, "offsets")
        said = jobs(place)
        found = cells(page, f"{READS}[offset]", interval="50ms")
        assert found.events == pytest.approx(
            sum(each["total_ios"] for each in said.values()), abs=10
        )
        *rising, random = found.parts(*(each["total_ios"] for each in said.values()))
        for part, job in zip(rising, said.values(), strict=False):
            follows, slope = straight(part)
            assert follows > 0.9
            assert slope == pytest.approx(job["bw_bytes"], rel=0.3)
        assert abs(straight(random)[0]) < 0.1
        for share in (0.25, 0.5, 0.75):
            assert random.quantile(share) == pytest.approx(64 * MIB * share, abs=4 * MIB)
        print(
            "sequential: "
            + ", ".join(
                f"{straight(part)[1] / 1e6:.2f} MB/s by the slope, fio {job['bw_bytes'] / 1e6:.2f}"
                for part, job in zip(rising, said.values(), strict=False)
            )
        )


def valley(map_: Cells, low: float, high: float) -> tuple[float, Cells]:
    """The emptiest half octave between two values: its middle, and what lies there."""
    edges = low * 2 ** np.arange(0, np.log2(high / low) - 0.5, 0.25)
    parts = [map_.between(edge, edge * 2**0.5) for edge in edges]
    emptiest = int(np.argmin([part.events for part in parts]))
    return float(edges[emptiest] * 2**0.25), parts[emptiest]


def rows_below(page: Any, statistic: str, bound: float) -> Any:
    """Choose the values beside a map of latency up to a bound, in ns: a click on the lowest, with
    Shift on the highest of them."""
    rows = frame(page, statistic).locator(".values .value")
    expect(rows.first).to_be_visible()
    ends = [
        float(number) * UNITS[unit]
        for number, unit in (each.split()[3:5] for each in rows.all_inner_texts())
    ]
    within = [place for place, end in enumerate(ends) if end <= 1.5 * bound]
    rows.nth(max(within)).click()
    rows.nth(min(within)).click(modifiers=["Shift"])
    return rows.nth(min(within))


@pytest.mark.deep
@pytest.mark.exclusive
def test_memory_and_disk_are_two_bands(browser: Any, tmp_path: Path) -> None:
    with played("bands", tmp_path) as place, worksheet(browser, place / "bands", tmp_path) as page:
        shown(page, FILE_LATENCY, LATENCY)
        kept(page, "bands")
        reads = jobs(place)["reader"]["total_ios"]
        found = cells(page, f"{READS}[latency]")
        assert found.events == pytest.approx(reads, abs=10)
        # what the disk was asked for is what memory did not have; by bytes, for a read may be two
        # requests. fio itself, read in from the machine's own disk, is no part of it
        devices = answer(page, "io.bytes[op=read][process=fio][device]", interval="whole")["keys"]
        asked = sum(each["total"] for each in devices if each["key"].startswith("loop")) / BLOCK
        hits = 1 - asked / reads
        low, high = found.quantile(hits / 2), found.quantile((1 + hits) / 2)
        bound, between = valley(found, low, high)
        below = found.between(0, bound)
        print(
            f"two bands: medians {low / 1e3:.1f} and {high / 1e3:.1f} us, {between.events} of {reads} reads around {bound / 1e3:.0f} us; "
            f"below {100 * below.events / reads:.1f} %, not asked of the disk {100 * hits:.1f} %"
        )
        assert high > 3 * low
        assert all(
            between.events < found.between(each / 2**0.25, each * 2**0.25).events / 3
            for each in (low, high)
        )
        # no more than was read before, and less where the kernel gave some of that memory to others
        assert 0.15 < hits < 0.26
        # no disk is that fast, and only a hit that waited for a processor is slower
        assert 0.6 * hits < below.events / reads < hits + 0.02
        # the fast ones, by the values beside the map: where in the file they are
        fast = rows_below(page, FILE_LATENCY, bound)
        where = asked_on(page, fast, "by offset")
        closed(page, LATENCY)
        kept(page, "bands-offset")
        assert cells(page, where).quantile(0.98) < 50 * MIB
        assert cells(page, f"{READS}[latency>={round(bound)}ns][offset]").quantile(0.2) > 48 * MIB


@pytest.mark.deep
@pytest.mark.exclusive
def test_latency_plummets_when_a_cache_is_switched_on(browser: Any, tmp_path: Path) -> None:
    with played("cache", tmp_path) as place, worksheet(browser, place / "cache", tmp_path) as page:
        shown(page, FILE_LATENCY, "io.ops[op=read]")
        # percentiles over the map
        frame(page, FILE_LATENCY).locator("h2").click()
        page.keyboard.press("o")
        kept(page, "cache")
        said = jobs(place)
        before, after = (said[name]["total_ios"] for name in ("without", "with"))
        found = cells(page, f"{READS}[latency]", interval="50ms")
        assert found.events == pytest.approx(before + after, abs=10)
        without, warming = found.parts(before, after)
        begin, end = int(warming.time_ns.min()), int(warming.time_ns.max())
        warm = warming.within((begin + end) // 2, end)
        medians = [part.quantile(0.5) for part in (without, warm)]
        assert medians[0] > 3 * medians[1]
        # what was read without the cache, and then each part of the table once: of N parts n reads
        # at random touch N (1 - exp(-n / N))
        parts = 32 * MIB // 8192
        asked = answer(page, "io.ops[op=read][process=fio]", interval="whole")["total"]
        assert asked == pytest.approx(before + parts * (1 - np.exp(-after / parts)), rel=0.03)
        print(
            f"a cache switched on: medians {medians[0] / 1e3:.1f} and {medians[1] / 1e3:.1f} us; the disk was asked for {asked} of "
            f"{before + after} reads, {after} of them through the cache"
        )
        # compared with the time before: the last of it, less as much without the cache
        closed(page, "io.ops[op=read]")
        frame(page, FILE_LATENCY).locator("h2").click()
        page.keyboard.press("o")
        length = (end - begin) // 2
        chosen(page, end - length, end)
        page.locator("#compare").click()
        middle = (int(without.time_ns.min()) + int(without.time_ns.max()) - length) // 2
        for _ in range(round((end - 2 * length - middle) / (length / 2))):
            page.locator("#other-back").click()
        expect(page.locator("#other-back")).to_be_visible()
        frame(page, FILE_LATENCY).locator(".difference canvas").wait_for()
        kept(page, "cache-compared")


@pytest.mark.deep
@pytest.mark.exclusive
def test_one_slow_disk_stands_out_among_its_equals(browser: Any, tmp_path: Path) -> None:
    need_limits()
    with (
        played("slow-disk", tmp_path) as place,
        worksheet(browser, place / "disks", tmp_path) as page,
    ):
        document = json.loads((place / "fio.json").read_text())
        used = {each["name"]: each["util"] for each in document["disk_util"]}
        slow = max(used, key=lambda name: used[name])
        equals = sorted(set(used) - {slow})
        busy = f"io.utilization[device={','.join(sorted(used))}][device]"
        shown(page, "io.ops[device]", busy)
        as_lines(page, "io.ops[device]", busy)
        kept(page, "slow-disk")
        # all four do the same, and less than before
        totals = {each["key"]: each["total"] for each in answer(page, "io.ops[device]")["keys"]}
        assert set(totals) == set(used)
        assert sum(totals.values()) == pytest.approx(
            document["jobs"][0]["read"]["total_ios"], abs=10
        )
        assert np.ptp(list(totals.values())) <= 10
        times, ops = lines(page, "io.ops", interval="1s")
        begin, end = (int(times[place]) for place in np.flatnonzero(ops[""] > 20)[[0, -1]])
        late = {"from": str(end - 4 * SECOND), "to": str(end)}
        [early_ops], [late_ops] = (
            answer(page, "io.ops", interval="whole", **window)["values"]
            for window in ({"from": str(begin + SECOND), "to": str(begin + 3 * SECOND)}, late)
        )
        assert late_ops < 0.6 * early_ops
        # one of them is busy all the time, the others sit together
        shares = {
            each["key"]: each["mean"]
            for each in answer(page, busy, interval="whole", **late)["keys"]
        }
        others = [shares[each] for each in equals]
        assert shares[slow] > 2 * max(others)
        assert shares[slow] - max(others) > 2 * np.ptp(others)
        medians = {
            each: cells(page, f"io.ops[device={each}][latency]", **late).quantile(0.5)
            for each in used
        }
        assert medians[slow] > 3 * max(medians[each] for each in equals)
        print(
            f"a slow disk: {early_ops:.0f} reads a second, then {late_ops:.0f}, of each disk as many; busy {100 * shares[slow]:.0f} % "
            f"against {', '.join(f'{100 * each:.1f}' for each in others)} %; medians {medians[slow] / 1e6:.1f} ms against "
            f"{', '.join(f'{medians[each] / 1e6:.3f}' for each in equals)} ms"
        )
        # what it does to each of its reads, and one of its equals
        for name in (slow, equals[0]):
            asked_on(page, value(page, "io.ops[device]", name), "by latency")
        closed(page, "io.ops[device]", busy)
        kept(page, "slow-disk-latency")


@pytest.mark.deep
@pytest.mark.exclusive
def test_a_load_that_grows_by_steps_is_a_staircase(browser: Any, tmp_path: Path) -> None:
    with (
        played("steps", tmp_path, shorter=('every = "5s"', 'every = "3s"')) as place,
        worksheet(browser, place / "results", tmp_path) as page,
    ):
        shown(page, "app.ops", "app.ops[latency]")
        kept(page, "steps")
        # each step is what it asks for, in its own middle
        begin, end = span(page)
        step = (end - begin) / len(LEVELS)
        rates = []
        for number, jobs_ in enumerate(LEVELS):
            middle = {
                "from": str(int(begin + (number + 0.3) * step)),
                "to": str(int(begin + (number + 0.8) * step)),
            }
            [rate] = answer(page, "app.ops", interval="whole", **middle)["values"]
            rates.append(rate)
            assert rate == pytest.approx(100 * jobs_, rel=0.5)
        assert all(later > 1.3 * earlier for earlier, later in pairwise(rates))
        whole, latency = (
            answer(page, "app.ops", interval="whole")["total"],
            cells(page, "app.ops[latency]"),
        )
        assert latency.events == whole
        # whose the last step is: all jobs alike
        marked(page, "app.ops[latency]", (0.85, 0.0), (0.98, 1.0))
        who = frame(page, "app.ops[latency]").locator(".who")
        told = who.locator("table").filter(
            has=page.locator("thead th", has_text=re.compile("^job$"))
        )
        expect(told.locator("tbody tr").first).to_be_visible()
        shares = [
            float(share.removesuffix("%"))
            for share in told.locator("tbody td:nth-child(3)").all_inner_texts()
        ]
        assert 0 < max(shares) < 15, shares
        print(f"a stepped load: {', '.join(f'{rate:.0f}' for rate in rates)} reads a second")


@pytest.mark.deep
@pytest.mark.exclusive
def test_a_client_behind_a_slow_link_is_found_by_its_line(browser: Any, tmp_path: Path) -> None:
    need_probe()
    need_network()
    slow = 3
    clients = "ip.bytes[direction=out][peer]"
    with network(4, slow={slow: "32mbit"}) as lab, lab.serving(16_000_000):
        recorded_server(lab, tmp_path / "server", 8)
        address = lab.addresses[slow]
    with worksheet(browser, tmp_path / "server", tmp_path) as page:
        shown(page, clients)
        as_lines(page, clients)
        _, moved = lines(page, clients, interval="1s")
        reading = np.flatnonzero((np.nan_to_num(np.array(list(moved.values()))) > 0).all(axis=0))[
            1:-1
        ]
        means = {key: float(values[reading].mean()) for key, values in moved.items()}
        assert set(means) == set(lab.addresses[1:])
        least, *others = sorted(means.values())
        assert least == means[address] < 4.2e6
        assert min(others) > 2 * least
        assert max(others) < 2 * min(others)
        print(
            "a slow link: "
            + ", ".join(f"{key} {mean / 1e6:.2f} MB/s" for key, mean in means.items())
        )
        alone = asked_on(page, value(page, clients, address), "as one number")
        assert alone == f"ip.bytes[direction=out][peer={address}]"
        kept(page, "network")


@pytest.mark.rig
@pytest.mark.deep
def test_slow_operations_lead_to_a_client_its_file_and_a_disk(browser: Any, tmp_path: Path) -> None:
    if not os.environ.get(RENEW):
        pytest.skip("takes minutes to start machines: scripts/stories -k slow_operations")
    latency, disk_latency = "nfs.ops[op=read][latency]", "io.ops[op=read][latency]"
    with played("clients", tmp_path, is_on_rig=True) as place:
        near = {job["jobname"]: job["read"] for job in fio_jobs(place / "near.json")}
        [far] = fio_jobs(place / "far.json")
        with names_from(place / "names"), worksheet(browser, place / "served", tmp_path) as page:
            shown(page, latency, disk_latency)
            kept(page, "clients")
            reads = {key["key"]: key["total"]
                     for key in answer(page, "nfs.ops[op=read][client]")["keys"]}  # fmt: skip
            archive = near["archive"]["total_ios"]
            assert reads == {
                "near": near["home"]["total_ios"] + archive,
                "far": far["read"]["total_ios"],
            }
            files = {key["key"]: key["total"]
                     for key in answer(page, "nfs.ops[op=read][client=near][file]")["keys"]}  # fmt: skip
            assert sorted(files.values()) == sorted(
                [near["home"]["total_ios"], near["archive"]["total_ios"]]
            )
            [slow_file] = [name for name, total in files.items() if total == archive]
            times, ops = lines(page, f"nfs.ops[op=read][file={slow_file}]", interval="1s")
            begin, end = span(page)
            first, last = ((times[place] - begin) / (end - begin)
                           for place in np.flatnonzero(ops[""] > 0)[[0, -1]])  # fmt: skip
            marked(page, latency, (float(first), 0.0), (float(last), 0.3))
            who = frame(page, latency).locator(".who")
            expect(who.locator("tbody tr").first).to_be_visible()
            kept(page, "clients-who")
            # each read of that file was one read of the slow disk
            disks = {key["key"]: key["total"]
                     for key in answer(page, "io.ops[op=read][device]")["keys"]}  # fmt: skip
            loads = {"near": near["home"], "near, archive": near["archive"], "far": far["read"]}
            for name, job in loads.items():
                fastest_ms, mean_ms = (job["clat_ns"][key] / 1e6 for key in ("min", "mean"))
                print(
                    f"{name}: {job['total_ios']} reads, fastest {fastest_ms:.1f} ms, mean {mean_ms:.1f} ms"
                )
            print(f"reads of disks: {disks}")
            assert disks["vdb"] == pytest.approx(archive, abs=5)
            closed(page, latency, disk_latency)
            by_file, by_device = "nfs.ops[op=read][client=near][file]", "io.ops[op=read][device]"
            shown(page, by_file, by_device)
            as_lines(page, by_file, by_device)
            kept(page, "clients-disk")


def fio_jobs(path: Path) -> list[dict[str, Any]]:
    """The jobs of a result of fio."""
    jobs: list[dict[str, Any]] = json.loads(path.read_text())["jobs"]
    return jobs
