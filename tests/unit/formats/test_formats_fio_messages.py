# SPDX-License-Identifier: Apache-2.0
"""Text that fio prints beside its results: ordinary notes, trouble."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.formats.detect import detect
from iolab.formats.fio.json_output import FioJson
from iolab.formats.fio.messages import Messages, messages_in
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from support.fio_files import job, output, write_run

SYNC = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"
BANNER = """one: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=4
...
fio-3.33
Starting 2 processes and 1 thread
one: Laying out IO file (1 file / 1MiB)
"""
REPORT = """
one: (groupid=0, jobs=2): err= 0: pid=7580: Sun Nov 22 22:40:37 2026
  read: IOPS=5636, BW=22.0MiB/s (23.1MB/s)(496KiB/22msec)
    clat (nsec): min=34269, max=7256832, avg=170971.27, stdev=736202.26
     |  1.00th=[   33],  5.00th=[   36], 10.00th=[   39], 20.00th=[   43],

Run status group 0 (all jobs):
   READ: bw=38.8MiB/s (40.6MB/s), 20.6MiB/s-20.6MiB/s (21.6MB/s-21.6MB/s), io=992KiB (1016kB), run=22-25msec

Disk stats (read/write):
  vda: ios=0/0, merge=0/0, ticks=0/0, in_queue=0, util=0.00%
"""
CLIENT = """hostname=perf84, be=0, 64-bit, os=Linux, arch=x86-64, fio=fio-3.7, flags=1
Jobs: 10 (f=0)
Jobs: 10 (f=10): [R(5)][46.2%][r=14.3M,w=0k][r=3566,w=0 IOPS][eta 00m:14s]\rJobs: 5 (f=5): [E(3),_(1)][31.6%][eta 01m:31s]

Disk stats (read/write):
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        SYNC,
        f"<vm> {SYNC}\n<vm> {SYNC}",
        BANNER,
        BANNER + REPORT,
        CLIENT,
        "3;fio-3.33;one;0;0;1;2;3",
    ],
)
def test_ordinary_notes_are_no_trouble(text: str) -> None:
    assert messages_in(text) == Messages()


@pytest.mark.parametrize(
    "line",
    [
        "fio: terminating on signal 2",
        "fio: io_u error on file /dev/full: No space left on device: write offset=0, buflen=4096",
        "fio: pid=7591, err=5/file:io_u.c:1889, func=io_u error, error=Input/output error",
        "verify: bad header rand 1, wanted 2",
        "one: (groupid=0, jobs=2): err= 5 (file:io_u.c:1889, func=io_u error, error=Input/output error): pid=7580",
        "<vm> fio: failed to connect",
    ],
)
@pytest.mark.parametrize("around", ["", SYNC + "\n", BANNER, BANNER + REPORT])
def test_trouble_is_found_among_notes(line: str, around: str) -> None:
    assert messages_in(f"{around}{line}\n{around}") == Messages(trouble=(line,))


@pytest.mark.parametrize(
    "line",
    [
        "fio: this platform does not support process shared mutexes, "
        "forcing use of threads. Use the 'thread' option to get rid of this warning.",
        "native_fallocate call failed: Operation not supported",
        "fio: native_fallocate call failed: Operation not supported",
        "fio: posix_fallocate fails: Invalid argument",
        "fio: Any use of blockalign= turns off randommap",
        "fio: multiple writers may overwrite blocks that belong to other jobs. This can cause verification failures.",
        "fio: file f exceeds 32-bit tausworthe random generator.",
        "fio: Switching to tausworthe64. Use the random_generator= option to get rid of this warning.",
        "fio: Use the random_generator= option to switch to lfsr or tausworthe64.",
        "fio: only root may flush block devices. Cache flush bypassed!",
        "fio: cache invalidation of f failed: Invalid argument",
        "fio: limiting mlocked memory to 64MiB",
        "Option zero_buffers is deprecated",
    ],
)
def test_notices_of_fio_are_no_trouble(tmp_path: Path, line: str) -> None:
    assert messages_in(f"<vm> {line}\n{BANNER}") == Messages(notices=(f"<vm> {line}",))
    assert _codes(tmp_path, f"{line}\n") == {"fio-notice": Level.OK}


@pytest.mark.parametrize(
    "line",
    [
        "Warning: Permanently added 'db1' (ED25519) to the list of known hosts.",
        "sudo: unable to resolve host box",
        "+ mkfs.ext4 -q /dev/sdb",
        "3+0 records in",
    ],
)
def test_text_of_other_programs_is_not_blamed_on_fio(tmp_path: Path, line: str) -> None:
    assert messages_in(f"{line}\n{BANNER}") == Messages(others=(line,))
    assert _codes(tmp_path, f"{line}\n") == {"other-text": Level.OK}
    both = f"{line}\nfio: terminating on signal 2\n"
    assert _codes(tmp_path, both) == {"other-text": Level.OK, "text-in-json": Level.SUSPECT}


def _codes(place: Path, text: str) -> dict[str, Level]:
    plan = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
    write_run(place, text + output(job(jobs=1)), plan=plan)
    verdict = derive(place, plan).verdict
    codes = {"fio-notice", "other-text", "text-in-json"}
    return {reason.code: reason.level for reason in verdict.reasons if reason.code in codes}


def test_notes_leave_a_run_as_it_is(tmp_path: Path) -> None:
    plan = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
    write_run(tmp_path, f"{SYNC}\n{BANNER}{output(job(jobs=1))}", plan=plan)
    assert derive(tmp_path, plan).verdict.level == Level.OK
    write_run(tmp_path, f"{SYNC}\nfio: terminating on signal 2\n{output(job(jobs=1))}", plan=plan)
    verdict = derive(tmp_path, plan).verdict
    assert verdict.level == Level.SUSPECT
    assert "'fio: terminating on signal 2'" in verdict.reasons[0].text


@pytest.mark.parametrize("name", ["fio.json", "result.out"])
def test_a_result_in_json_counts_more_than_its_text(tmp_path: Path, name: str) -> None:
    plan = RunPlan(run="0001-aaaaaaaa", variant="a", factors={}, status="imported")
    write_run(tmp_path, None, plan=plan)
    (tmp_path / name).write_text(BANNER + REPORT + output(job(jobs=1)))
    assert detect((tmp_path / name).read_bytes(), name) == "fio-json"
    assert derive(tmp_path, plan).verdict.level == Level.OK


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("formats", ["normal", "json,normal", "json,terse,normal"])
def test_against_fio_itself(tmp_path: Path, formats: str) -> None:
    (tmp_path / "jobs.fio").write_text(
        "[global]\nioengine=psync\niodepth=4\nrw=randrw\nsize=1m\n[a]\nnumjobs=2\n[b]\nstonewall\n"
    )
    done = subprocess.run(
        ["fio", f"--output-format={formats}", "--eta=always", "jobs.fio"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    assert detect(done.stdout, "out") == ("fio-text" if formats == "normal" else "fio-json")
    if formats != "normal":
        read = FioJson().read(done.stdout, "fio.json")
        assert "Starting 3 processes" in read.leading_text
        assert messages_in(read.leading_text) == Messages()
