# SPDX-License-Identifier: Apache-2.0
"""Real clients at one directory: over ssh with clocks of their own, with fio, on a loop device with
traced requests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolab.base.verdict import Level
from iolab.hosts.base.host import Host
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.ssh.host import SshHost, SshOptions
from iolab.output.server.base.store import Store
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.store.read.recording import Recording
from iolab.studies.results.evidence.clients import clients_of
from iolab.studies.results.open.results import Results
from iolab.studies.run.study import How, run_study
from support.acting import Listener
from support.direct_reads import direct_reads, mounted_device
from support.disks import need_loops
from support.probe import need_probe, need_tracing
from support.sshd import sshd

pytestmark = pytest.mark.fio

STUDY = """
[study]
repetitions = 1
[target]
{target}
[load]
hosts = {load}
[workload]
kind = "fio"
runtime = "{seconds}s"
[workload.options]
rw = "randread"
bs = "4k"
size = "4m"
direct = 1
{options}
"""
SHIFT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
#define SECONDS 3
int clock_gettime(clockid_t clock, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, t);
    if (clock == CLOCK_REALTIME) t->tv_sec += SECONDS;
    return done;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


def done(
    tmp_path: Path, hosts: dict[str, Host], listener: Listener | None = None, **words: Any
) -> Results:
    given = {
        "load": json.dumps(list(hosts)),
        "target": f'path = "{tmp_path / "served"}"',
        "seconds": 3,
        "options": "",
        **words,
    }
    (tmp_path / "served").mkdir(exist_ok=True)
    study = tmp_path / "many.toml"
    study.write_text(STUDY.format(**given))
    run_study(
        study,
        tmp_path / "out",
        listener=listener or Listener(),
        how=How(trusted=True, destructive=True),
        open_host=lambda word: hosts[word],
    )
    return Results(tmp_path / "out")


def named(name: str) -> LocalHost:
    host = LocalHost()
    host.name = name
    return host


@pytest.mark.loops
@pytest.mark.tracing
@pytest.mark.parametrize("clients", [2, 4])
def test_the_sum_is_what_the_block_layer_read(tmp_path: Path, fio: str, clients: int) -> None:
    """Direct reads of files that were laid out before: every byte comes from the device, once."""
    need_loops()
    need_tracing()
    hosts: dict[str, Host] = {f"ssh:c{number}": named(f"c{number}") for number in range(clients)}
    target = 'kind = "filesystem"\nfs = "ext4"\nloop = {size = "256m"}'
    with direct_reads() as reads:

        class Follower(Listener):
            def begin_run(self, *words: Any) -> None:
                super().begin_run(*words)
                reads.follow(mounted_device(tmp_path))

        results = done(tmp_path, hosts, Follower(), target=target, options='thinktime = "2ms"')
        issued = reads.bytes()
    run = results.runs[0]
    assert run.plan.status == "finished"
    assert len(clients_of(run.plan)) == clients
    read = sum(int(part.value("read.bytes") or 0) for part in results.client_runs())
    assert run.value("read.bytes") == read
    print(f"{clients} clients read {read} bytes, the block layer issued {issued}")
    assert issued == read


def test_clients_are_recorded_with_the_server(tmp_path: Path, fio: str) -> None:
    need_probe()
    hosts: dict[str, Host] = {"ssh:a": named("a"), "ssh:b": named("b")}
    words = json.dumps(list(hosts)) + '\nsources = ["counters"]'
    run = done(tmp_path, hosts, load=words).runs[0]
    assert run.plan.status == "finished"
    for client in clients_of(run.plan):
        assert client.window is not None
        recording = Recording(tmp_path / "out" / client.recording["path"])
        [mark] = recording.marks()
        assert mark["label"] == run.plan.run
        assert mark["from_ns"] < client.window[0] < client.window[1] < mark["until_ns"]
        begin, end = snapshot(recording, "samples").bounds("cpu") or (0, 0)
        assert begin < client.window[1]
        assert end > client.window[0]
    assert Store([tmp_path / "out"]).names


def test_a_client_that_is_killed_costs_the_run(tmp_path: Path, fio: str) -> None:
    hosts: dict[str, Host] = {"ssh:a": named("a"), "ssh:b": named("b")}

    class Killer(Listener):
        killed = 0

        def update_run(self, run: Any, seconds: float, *_: Any) -> None:
            if seconds > 4.0 and not self.killed:
                for entry in Path("/proc").iterdir():
                    with contextlib.suppress(OSError):
                        if (
                            entry.name.isdecimal()
                            and (entry / "comm").read_text().strip() == "fio"
                            and str((entry / "cwd").readlink()).endswith("/clients/b")
                        ):
                            os.kill(int(entry.name), signal.SIGKILL)
                            self.killed += 1

    listener = Killer()
    results = done(tmp_path, hosts, listener, seconds=8)
    assert listener.killed
    (number, status, reason) = listener.runs[0]
    assert (number, status) == (1, "failed")
    assert reason.startswith("client b: ")
    run = results.runs[0]
    assert run.verdict.level is Level.INVALID
    assert run.value("read.iops") is None
    assert {one.name: one.status for one in clients_of(run.plan)} == {"a": "ended", "b": "failed"}
    assert not list((tmp_path / "served").iterdir())


def test_a_client_that_is_slower_is_named(tmp_path: Path, fio: str) -> None:
    """One client has its fio behind a script that adds a rate."""
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "fio").write_text(
        '#!/bin/sh\ncase "$*" in *job.fio*) sed -i "s/^rw=/rate_iops=20\\nrw=/" job.fio;; esac\n'
        f'exec {shutil.which("fio")} "$@"\n'
    )
    (slow / "fio").chmod(0o755)

    class Slow(LocalHost):
        def start(self, command: Any, **more: Any) -> Any:
            return super().start([str(slow / command[0]), *command[1:]], **more)

    throttled = Slow()
    throttled.name = "slow"
    hosts: dict[str, Host] = {"ssh:a": named("a"), "ssh:b": named("b"), "ssh:slow": throttled}
    run = done(tmp_path, hosts, options='thinktime = "2ms"').runs[0]
    slower = [reason for reason in run.verdict.reasons if reason.code == "client-slower"]
    assert [reason.data["client"] for reason in slower] == ["slow"]
    assert slower[0].data["iops"] == pytest.approx(20, rel=0.3)


@pytest.fixture
def shifted(tmp_path: Path) -> Iterator[SshOptions]:
    """A host whose programs see a clock that is 3 s ahead."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "shift.c").write_text(SHIFT)
    library = tmp_path / "shift.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "shift.c"), "-ldl"],
        check=True,
    )
    with sshd(tmp_path / "sshd", f"SetEnv LD_PRELOAD={library}") as options:
        yield options


def test_a_clock_that_is_3_s_ahead_is_corrected(
    tmp_path: Path, fio: str, shifted: SshOptions
) -> None:
    far = SshHost(shifted.model_copy(update={"name": "ahead"}))
    hosts: dict[str, Host] = {"ssh:near": named("near"), "ssh:ahead": far}
    run = done(tmp_path, hosts, seconds=6, options='thinktime = "2ms"').runs[0]
    near, ahead = clients_of(run.plan)
    assert ahead.clock_offset_ns / 1e9 == pytest.approx(3.0, abs=0.05)
    assert abs(ahead.clock_offset_ns - 3_000_000_000) <= ahead.clock_uncertainty_ns
    assert near.clock_offset_ns == 0
    assert near.window is not None
    assert ahead.window is not None
    apart = abs(near.window[0] - ahead.window[0]) / 1e9
    print(
        f"the windows began {apart:.3f} s apart, the clocks are {ahead.clock_offset_ns / 1e9:.6f} s apart, "
        f"known to {ahead.clock_uncertainty_ns / 1e6:.3f} ms"
    )
    assert apart < 1.5  # of 3 s that the clocks are apart
    notes = [reason for reason in run.verdict.reasons if reason.code == "client-clock"]
    assert [(reason.level, reason.data["client"]) for reason in notes] == [(Level.OK, "ahead")]
    assert (run.evidence / "clients/ahead/fio.json").exists()
