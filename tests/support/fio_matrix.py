# SPDX-License-Identifier: Apache-2.0
"""Sound loads of fio: engines and options in combination, each a short run on a small file."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

_COMMON = "--size=8m --bs=4k"
_SYNC = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
_ASYNC = ("libaio", "io_uring", "posixaio")
_MODES = ("read", "randread", "write", "randwrite", "randrw")

_ENGINES_ALONE = (
    "--ioengine=null --rw=randread --runtime=1 --time_based",
    "--ioengine=null --rw=write --iodepth=8 --size=1g --runtime=1",
    "--ioengine=splice --rw=read --runtime=1 --time_based",
    "--ioengine=splice --rw=write --runtime=1",
    "--ioengine=ftruncate --rw=write --runtime=1 --number_ios=2000",
    "--ioengine=falloc --rw=write --number_ios=500",
    "--ioengine=filecreate --nrfiles=50 --size=200k --filesize=4k --openfiles=1 --create_on_open=1"
    " --fallocate=none --rw=write",
    "--ioengine=filestat --nrfiles=50 --size=200k --filesize=4k --rw=write",
    "--ioengine=filedelete --nrfiles=50 --size=200k --filesize=4k --rw=write",
)

_OPTIONS = (
    # the depth that a job keeps
    "--iodepth_low=4",
    "--iodepth_batch=8",
    "--iodepth_batch=8 --iodepth_batch_complete_min=8 --iodepth_low=8",
    "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=16",
    "--iodepth_batch_complete_min=0",
    "--latency_target=20ms --latency_window=200ms --latency_percentile=95",
    "--serialize_overlap=1 --rw=randwrite",
    "--max_latency=10s",
    # pauses and rates
    "--thinktime=1ms",
    "--thinktime=5ms --thinktime_blocks=16",
    "--thinktime=20ms --thinktime_iotime=50ms",
    "--thinktime=5ms --thinktime_blocks=4 --thinktime_blocks_type=issue",
    "--rate=2m",
    "--rate=2m --rate_process=poisson",
    "--rate=1m,512k --rw=randrw",
    "--rate_iops=300",
    "--rate_iops=300 --rate_process=poisson",
    "--rate_iops=100,50 --rw=randrw",
    "--rate_iops=,50 --rw=randrw",
    "--rate_iops=200 --rate_ignore_thinktime=1 --thinktime=1ms",
    "--rate=1m --rate_cycle=500",
    "--rate_iops=200 --rate_iops_min=1",
    # syncs
    "--rw=randwrite --fsync=1",
    "--rw=randwrite --fsync=4",
    "--rw=randwrite --fdatasync=8",
    "--rw=write --sync_file_range=write:8",
    "--rw=write --sync_file_range=wait_before,write,wait_after:16",
    "--rw=randwrite --end_fsync=1",
    "--rw=randwrite --fsync_on_close=1",
    "--rw=randwrite --sync=1",
    "--rw=randwrite --sync=dsync",
    "--rw=randwrite --write_barrier=8",
    "--rw=randrw --fsync=8 --rwmixread=50",
    "--rw=randwrite --fsync=16 --numjobs=2 --group_reporting",
    "--rw=randwrite --fsync=2 --thinktime=1ms",
    # how a load ends
    "--io_size=2m --runtime=20",
    "--io_size=50% --runtime=20",
    "--io_size=16m --runtime=20",
    "--size=10% --filesize=8m --runtime=20",
    "--size=25% --filesize=8m --runtime=20",
    "--number_ios=500 --runtime=20",
    "--number_ios=300 --runtime=20 --numjobs=2 --group_reporting",
    "--number_ios=300 --runtime=20 --numjobs=2",
    "--number_ios=200",
    "--loops=3 --runtime=20",
    "--loops=2 --io_size=2m --runtime=20",
    "--size=4m --runtime=20 --numjobs=2 --group_reporting",
    "--offset=2m --size=4m --filesize=8m --runtime=20",
    "--offset=25% --filesize=8m --size=4m --runtime=20",
    "--offset=4m --filesize=8m --size=8m --runtime=20",
    "--bsrange=4k-64k --runtime=20",
    "--nrfiles=4 --runtime=20",
    "--size=2m --nrfiles=4 --openfiles=2 --file_service_type=sequential --runtime=20",
    "--filesize=1m-2m --nrfiles=4 --runtime=20",
    # jobs and groups
    "--numjobs=2",
    "--numjobs=2 --group_reporting",
    "--numjobs=3 --thread",
    "--numjobs=3 --thread --group_reporting",
    "--numjobs=2 --new_group --group_reporting",
    "--numjobs=2 --offset_increment=4m --size=4m --filesize=8m --filename=shared",
    "--startdelay=300ms --numjobs=2",
    "--startdelay=300ms --numjobs=2 --group_reporting",
    "--ramp_time=300ms",
    "--ramp_time=300ms --numjobs=2 --group_reporting",
    # choice of blocks
    "--rw=read:4k",
    "--rw=randread:8",
    "--rw=write:8k",
    "--rw=rw --rwmixread=70",
    "--rw=randrw --rwmixwrite=10",
    "--rw=randread --norandommap",
    "--rw=randread --random_distribution=zipf:1.2",
    "--rw=randread --random_distribution=pareto:0.9",
    "--rw=randread --random_distribution=normal:10",
    "--rw=randread --random_distribution=zoned:60/10:30/20:10/70",
    "--rw=randread --random_generator=tausworthe64",
    "--rw=randrw --percentage_random=50",
    "--bssplit=4k/50:64k/50",
    "--bs=4k,64k --rw=randrw",
    "--bs=64k --blockalign=4k",
    "--zonemode=strided --zonesize=512k --zoneskip=512k --rw=read",
    "--zonemode=strided --zonesize=1m --zonerange=2m --rw=randread",
    # data that is checked
    "--rw=write --verify=crc32c --size=2m --runtime=20",
    "--rw=randwrite --verify=md5 --size=2m --runtime=20",
    "--rw=randwrite --verify=crc32c --verify_backlog=64 --size=2m --runtime=20",
    "--rw=write --verify=xxhash --do_verify=0 --size=4m --runtime=20",
    "--rw=randwrite --verify=crc32c --verify_async=2 --size=2m --runtime=20",
    # what fio reports
    "--unified_rw_reporting=1 --rw=randrw",
    "--unified_rw_reporting=both --rw=randrw",
    "--percentile_list=50:99:99.9",
    "--lat_percentiles=1 --clat_percentiles=0",
    "--slat_percentiles=1",
    "--disable_lat=1",
    "--disable_clat=1",
    "--disable_slat=1",
    "--disable_lat=1 --disable_clat=1 --disable_slat=1",
    "--disable_bw_measurement=1",
    "--gtod_reduce=1",
    "--clocksource=gettimeofday",
    "--gtod_cpu=0",
    "--significant_figures=8",
    "--disk_util=0",
    "--log_avg_msec=100",
    # buffers and files
    "--rw=write --refill_buffers",
    "--rw=write --buffer_compress_percentage=50",
    "--rw=write --scramble_buffers=0 --zero_buffers",
    "--rw=write --dedupe_percentage=50",
    "--rw=write --overwrite=1",
    "--rw=write --fallocate=none",
    "--rw=write --create_on_open=1",
    "--invalidate=0",
    "--pre_read=1 --direct=0",
    "--lockmem=1m",
    "--fadvise_hint=sequential --rw=read",
    "--nice=5",
    "--cpus_allowed=0",
    "--continue_on_error=all",
    "--steadystate=iops:50% --steadystate_duration=2 --runtime=8",
)

_TWO_JOBS = (
    ("--rate_iops=100", ""),
    ("--rate=1m", ""),
    ("", "--thinktime=2ms"),
    ("--thinktime=20ms --thinktime_iotime=50ms", ""),
    ("", "--iodepth_low=2 --iodepth=16 --ioengine=libaio"),
    ("--rw=randwrite --fsync=2", "--rw=randread"),
    ("--ioengine=psync", "--ioengine=io_uring --iodepth=8"),
    ("--rw=read", "--stonewall --rw=write"),
    ("--number_ios=200", "--number_ios=100"),
    ("--size=2m", "--size=4m"),
    ("--startdelay=300ms", ""),
    ("--flow=1", "--flow=-1"),
    ("--latency_target=20ms --latency_window=200ms --iodepth=16 --ioengine=libaio", ""),
    ("--group_reporting", "--thinktime=2ms --group_reporting"),
    ("--group_reporting", "--rate_iops=100 --group_reporting"),
    ("--group_reporting --rw=randwrite --fsync=1", "--group_reporting --rw=randread"),
    ("--exitall --runtime=1", "--runtime=1"),
    ("--prioclass=2", ""),
)


def _bounded(options: str) -> str:
    """The options with the end of a second of time, unless they say how the load ends."""
    if any(f"--{name}" in options for name in ("runtime=", "number_ios=", "loops=")):
        return options
    return f"{options} --runtime=1 --time_based"


def combinations() -> Iterator[tuple[str, ...]]:
    """Each combination: the options of its jobs, one string a job."""
    for engine, mode in itertools.product(_SYNC, _MODES):
        direct = " --direct=1" if engine != "mmap" and mode.startswith("rand") else ""
        yield (_bounded(f"--ioengine={engine} --rw={mode}{direct}"),)
    for engine, mode in itertools.product(_ASYNC, _MODES):
        for number, depth in enumerate((1, 16)):
            is_direct = number if mode.startswith("rand") else 1 - number
            yield (
                _bounded(f"--ioengine={engine} --rw={mode} --iodepth={depth} --direct={is_direct}"),
            )
    for options in _ENGINES_ALONE:
        yield (options,)
    for number, options in enumerate(_OPTIONS):
        engine = ("--ioengine=libaio --iodepth=16", "--ioengine=io_uring --iodepth=8")[number % 2]
        yield (_bounded(f"{engine} --rw=randread --direct=1 {options}"),)
        if "iodepth" not in options:
            yield (_bounded(f"--ioengine=psync --rw=randread --direct=1 {options}"),)
    for first, second in _TWO_JOBS:
        base = "--ioengine=libaio --iodepth=4 --rw=randread --direct=1"
        yield _bounded(f"{base} {first}"), _bounded(f"{base} {second}")


def run_fio(jobs: tuple[str, ...], directory: Path) -> bytes | None:
    """The JSON of one combination, run in an empty directory; None where fio refuses it here, or
    does not end."""
    directory.mkdir(parents=True)
    words = ["fio", "--output-format=json", "--output=fio.json"]
    for number, options in enumerate(jobs):
        words += [f"--name=j{number}", *_COMMON.split(), *options.split()]
    try:
        ended = subprocess.run(
            words, cwd=directory, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return None
    output = directory / "fio.json"
    return output.read_bytes() if ended.returncode == 0 and output.exists() else None
