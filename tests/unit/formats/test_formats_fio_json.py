# SPDX-License-Identifier: Apache-2.0
"""fio's JSON of every version: one meaning from many shapes, and a reason for every file that can't
be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import FormatError
from iolab.formats.fio.json_output import FioJson
from support.golden import Golden

DATA = Path(__file__).parents[2] / "data" / "formats"


def sample(name: str) -> bytes:
    return (DATA / name).read_bytes()


def latency(scale: int = 1000, **more: Any) -> dict[str, Any]:
    return {
        "min": 10 * scale,
        "max": 500 * scale,
        "mean": 45.5 * scale,
        "stddev": 5.25 * scale,
        **more,
    }


def job(name: str = "load", **more: Any) -> dict[str, Any]:
    return {
        "jobname": name,
        "groupid": 0,
        "error": 0,
        "elapsed": 11,
        "usr_cpu": 2.5,
        "sys_cpu": 12.5,
        **more,
    }


def written(**more: Any) -> dict[str, Any]:
    """A write direction as fio 3.x has it: 1,000 I/Os of 8 KiB in 10 s."""
    return {
        "io_bytes": 8192000,
        "io_kbytes": 8000,
        "bw_bytes": 819200,
        "bw": 800,
        "iops": 100.0,
        "runtime": 10000,
        "total_ios": 1000,
        "short_ios": 0,
        "drop_ios": 0,
        "lat_ns": latency(N=1000),
        **more,
    }


def read(document: Any, where: str = "fio.json") -> Any:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return FioJson().read(data, where)


def output(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "fio version": "fio-3.33",
        "timestamp": 1700000000,
        "timestamp_ms": 1700000000123,
        "jobs": list(jobs),
        **more,
    }


def test_a_file_of_fio_3_33_has_jobs_rates_latencies_percentiles_and_bins() -> None:
    document = json.loads(sample("fio-3.33-two-jobs.json"))
    result = read(sample("fio-3.33-two-jobs.json"))
    assert (result.version, len(result.jobs), result.documents, result.leading_text) == (
        "fio-3.33",
        2,
        1,
        "",
    )
    assert result.end_ns == document["timestamp_ms"] * 1_000_000
    for got, raw in zip(result.jobs, document["jobs"], strict=True):
        write = got.directions["write"]
        assert write.iops == raw["write"]["iops"]
        assert (write.bw, write.bw_field, write.bw_unit) == (
            raw["write"]["bw_bytes"],
            "bw_bytes",
            "B/s",
        )
        assert write.ios + got.directions["read"].ios == 150
        clat = write.latencies["clat"]
        assert clat.mean == pytest.approx(raw["write"]["clat_ns"]["mean"] * 1e-9)
        assert sum(clat.bins.values()) == clat.count == write.ios
        assert clat.percentiles[99.0] == pytest.approx(
            raw["write"]["clat_ns"]["percentile"]["99.000000"] * 1e-9
        )
        assert got.system_cpu == pytest.approx(raw["sys_cpu"] / 100)
        assert "slat" not in write.latencies, (
            "psync has no submission step: all zeros are not latency"
        )
        assert "trim" not in got.directions


def test_before_2_99_latencies_are_microseconds_and_io_bytes_are_kibibytes() -> None:
    old = {
        "io_bytes": 8000,
        "bw": 800,
        "iops": 100.0,
        "runtime": 10000,
        "total_ios": 1000,
        "lat": latency(1),
        "clat": latency(1, percentile={"1.00": 12, "99.00": 480, "0.00": 0}),
    }
    result = read({"fio version": "fio-2.20", "jobs": [job(write=old)]})
    write = result.jobs[0].directions["write"]
    assert write.size_bytes == 8192000
    assert (write.bw, write.bw_source, write.bw_unit) == (819200, 800, "KiB/s")
    assert write.latencies["lat"].mean == pytest.approx(45.5e-6)
    assert (write.latencies["lat"].source_field, write.latencies["lat"].source_scale) == (
        "lat",
        1e-6,
    )
    assert write.latencies["clat"].percentiles == pytest.approx({1.0: 12e-6, 99.0: 480e-6})
    assert any("KiB" in note for note in result.assumptions)


def test_between_2_99_and_3_1_bytes_are_told_from_kibibytes() -> None:
    with_kbytes = written()
    del with_kbytes["bw_bytes"]
    without = {key: value for key, value in with_kbytes.items() if key != "io_kbytes"}
    for direction in (with_kbytes, without):
        write = read(output(job(write=direction))).jobs[0].directions["write"]
        assert (write.size_bytes, write.bw, write.bw_field) == (8192000, 819200, "io_bytes/runtime")


def test_bandwidth_falls_back_to_the_coarse_field_without_a_runtime() -> None:
    direction = written(runtime=0, bw=800)
    del direction["bw_bytes"]
    write = read(output(job(write=direction))).jobs[0].directions["write"]
    assert (write.bw, write.bw_field, write.bw_source, write.bw_unit) == (
        819200,
        "bw",
        800,
        "KiB/s",
    )


def test_the_first_fio_with_json_counted_no_ios() -> None:
    direction = {"io_bytes": 8000, "bw": 800, "iops": 100, "runtime": 10000, "lat": latency(1)}
    result = read(output(job(write=direction)))
    assert result.jobs[0].directions["write"].ios == 1000
    assert any("total_ios" in note for note in result.assumptions)


def test_bins_of_fio_2_are_indices_and_become_nanoseconds() -> None:
    # index 127 is the last bucket of one microsecond; 128 spans 128 and 129, 192 spans 256 to 259
    bins = {
        "FIO_IO_U_PLAT_BITS": 6,
        "FIO_IO_U_PLAT_VAL": 64,
        "FIO_IO_U_PLAT_NR": 1216,
        "0": 0,
        "127": 5,
        "128": 3,
        "192": 2,
    }
    clat = (
        read(output(job(write=written(clat=latency(1, bins=bins)))))
        .jobs[0]
        .directions["write"]
        .latencies["clat"]
    )
    assert clat.bins == {127000: 5, 129000: 3, 258000: 2}
    assert clat.count == 10


def test_bins_beyond_the_grid_are_damage() -> None:
    clat = latency(bins={"46000": 3, "99999999999999999999": 1, "47000": 10**30, "x": 1, "-5": 1})
    assert read(output(job(write=written(clat_ns=clat)))).jobs[0].directions["write"].latencies[
        "clat"
    ].bins == {46000: 3}


def test_padding_percentiles_are_dropped_though_they_come_thrice() -> None:
    text = json.dumps(
        output(job(write=written(clat_ns=latency(percentile={"99.000000": 480000}, N=1000))))
    )
    text = text.replace(
        '"99.000000": 480000', '"99.000000": 480000, "0.00": 0, "0.00": 0, "0.00": 0'
    )
    assert read(text.encode()).jobs[0].directions["write"].latencies[
        "clat"
    ].percentiles == pytest.approx({99.0: 480e-6})


def test_gtod_reduce_leaves_no_latency_rather_than_zero() -> None:
    result = read(sample("fio-3.33-gtod-reduce.json"))
    assert [dict(entry.directions["write"].latencies) for entry in result.jobs] == [{}, {}]
    assert result.jobs[0].directions["write"].ios == 150


def test_fsync_latency_is_an_operation_of_its_own() -> None:
    raw = json.loads(sample("fio-3.33-fsync.json"))["jobs"][0]
    entry = read(sample("fio-3.33-fsync.json")).jobs[0]
    sync = entry.directions["sync"]
    assert sync.ios == raw["sync"]["total_ios"] == 18
    assert sync.latencies["lat"].mean == pytest.approx(raw["sync"]["lat_ns"]["mean"] * 1e-9)
    assert sync.iops == pytest.approx(18 / entry.directions["write"].runtime)
    assert (sync.bw, sync.bw_field, sync.size_bytes) == (0, "", 0)


def test_unified_reporting_gives_mixed_alone_or_beside_the_others() -> None:
    assert list(read(sample("fio-3.33-mixed.json")).jobs[0].directions) == ["mixed"]
    both = read(sample("fio-3.33-both.json")).jobs[0].directions
    assert list(both) == ["read", "write", "mixed"]
    assert both["mixed"].ios == both["read"].ios + both["write"].ios


def test_of_cumulative_documents_the_last_counts() -> None:
    result = read(sample("fio-3.33-status-interval.json"))
    assert result.documents == 4
    assert result.jobs[0].directions["write"].runtime == pytest.approx(3.0, abs=0.05)


def test_a_torn_last_document_leaves_the_one_before_and_says_so() -> None:
    data = sample("fio-3.33-status-interval.json")
    result = read(data[:-200])
    assert result.documents == 3
    assert result.jobs[0].directions["write"].runtime < 2.95
    assert any("cut off" in note for note in result.assumptions)


def test_text_before_and_after_the_json_is_kept_apart() -> None:
    text = (
        b"fio: io_u error on file x: No space left on device: write offset=0\n  {odd\n"
        + json.dumps(output(job(write=written())), indent=2).encode()
        + b"\n\nfio: terminating on signal 2\n"
    )
    result = read(text)
    assert result.leading_text.startswith("fio: io_u error")
    assert result.jobs[0].directions["write"].iops == 100.0


def test_one_line_json_and_utf_16_are_read_as_well() -> None:
    document = json.dumps(output(job(write=written())))
    assert read(document.encode()).jobs[0].directions["write"].ios == 1000
    assert (
        read(document.replace(", ", ",\r\n").encode("utf-16")).jobs[0].directions["write"].ios
        == 1000
    )


def test_values_that_are_no_number_are_absent_and_the_rest_is_read() -> None:
    text = json.dumps(output(job(write=written(lat_ns=latency(), clat_ns=latency())))).replace(
        '"mean": 45500.0', '"mean": -nan', 1
    )
    result = read(text.encode())
    write = result.jobs[0].directions["write"]
    assert set(write.latencies) == {"clat"}
    assert any("not numbers" in note for note in result.assumptions)
    infinite = read(
        json.dumps(output(job(write=written()))).replace('"iops": 100.0', '"iops": inf').encode()
    )
    assert infinite.jobs[0].directions["write"].iops == pytest.approx(100.0)


def test_options_are_global_below_job_and_may_be_absent() -> None:
    entry = job(write=written()) | {"job options": {"rw": "randwrite", "bs": "4k"}}
    result = read(
        output(entry, **{"global options": {"bs": "8k", "numjobs": "4", "time_based": ""}})
    )
    assert result.jobs[0].options == {
        "bs": "4k",
        "numjobs": "4",
        "time_based": "",
        "rw": "randwrite",
    }
    assert read(output(job(write=written()))).jobs[0].options == {}


def client(hosts: list[str], global_options: Any, *, together: bool = True) -> dict[str, Any]:
    entries = [
        job(hostname=host, port=8765, write=written()) | {"job options": {"name": "load"}}
        for host in hosts
    ]
    if together:
        entries.append(job("All clients", write=written(total_ios=1000 * len(hosts))))
    return {
        "fio version": "fio-3.33",
        "timestamp": 1700000000,
        "global options": global_options,
        "client_stats": entries,
    }


def test_client_mode_keeps_hosts_apart_and_takes_out_the_sum() -> None:
    result = read(client(["one", "two"], [{"bs": "4k"}, {"bs": "8k"}]))
    assert [entry.hostname for entry in result.jobs] == ["one", "two"]
    assert [entry.options["bs"] for entry in result.jobs] == ["4k", "8k"]
    assert result.all_clients is not None
    assert result.all_clients.directions["write"].ios == 2000
    assert result.end_ns == 1_700_000_000_000_000_000


def test_client_mode_with_equal_options_per_host_and_with_a_single_host() -> None:
    same = read(client(["one", "two"], [{"bs": "4k"}, {"bs": "4k"}]))
    assert same.global_options == {"bs": "4k"}
    alone = read(client(["one"], [{"bs": "4k"}], together=False))
    assert alone.all_clients is None
    assert alone.jobs[0].options["bs"] == "4k"


def test_a_local_job_may_be_called_all_clients() -> None:
    assert len(read(output(job("All clients", write=written()))).jobs) == 1


def test_an_error_in_one_job_and_failed_ios_are_told() -> None:
    result = read(
        output(job(error=28, total_err=7, first_error=28, job_start=1700000000000, write=written()))
    )
    assert (result.jobs[0].error, result.jobs[0].total_errors) == (28, 7)
    assert result.jobs[0].start_ns == 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\n",
        b"fio: failed to open /x\n",
        b'{"a": 1}',
        b'{"jobs": [3]}',
        b'{\n"fio version": "fio-3.33",\n"jobs": [\n',
        b'{\n"fio version": "fio-3.33",\n"jobs": [}\n]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jobs": [], "a": ' + b"9" * 5000 + b"}",
        b'{"jobs": [{"job options": {"iodepth": "' + b"9" * 309 + b'"}}]}',
        b'{"global options": {"size": "' + b"9" * 5000 + b'k"}, "jobs": []}',
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, golden: Golden) -> None:
    with pytest.raises(FormatError) as caught:
        read(data)
    golden("formats/fio-json-unreadable", str(caught.value))
    assert str(caught.value).startswith("fio.json")


def test_fields_of_the_wrong_type_cost_themselves_and_nothing_else() -> None:
    odd = written(
        total_ios="many",
        iops=None,
        lat_ns=[1],
        clat_ns={"mean": "x", "max": 1, "bins": {"a": 1, "5": "x"}},
        runtime=True,
        bw_bytes=10**400,
    )
    result = read(
        output(job(error="x", usr_cpu=None, groupid=[], write=odd, read=[1], sync=3, trim=None))
    )
    assert result.jobs[0].error == 0
    assert result.jobs[0].directions["write"].size_bytes == 8192000
    assert result.jobs[0].directions["write"].latencies == {}


def test_no_job_reported_is_a_file_without_jobs() -> None:
    assert read(output()).jobs == ()
