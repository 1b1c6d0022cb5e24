# SPDX-License-Identifier: Apache-2.0
"""An hour of recording with ten statistics kept: 10 thousand I/Os a second, and a kill -9 of the
probe, the recorder and the service.

While a device in memory is under a steady load, the device is recorded, ten statistics are kept,
and a service answers two of them every few seconds. A sixth into the time the probe is killed, at a
half the recorder (and begun again into the same recording), at two thirds the service (and begun
again). Meanwhile the memory of all three is looked at. At the end:

- each kill has its gap, and outside the gaps there is every I/O: as many events as fio counted,
  less those that fall into gaps;
- nothing was lost to an overrun, and what is kept holds every event once;
- the memory of probe, recorder and service in the last quarter of their time is no larger than in
  the second, within a tenth and 32 MiB;
- kept statistics take no more than they should, and the recording no more than ten bytes an I/O and
  as much as its own maps take.

Prints what it found; exits with 1 where one of these does not hold. IOLAB_BENCH_SECONDS (3600) and
IOLAB_BENCH_RATE (10000) make it shorter or another. Needs root.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet as pq
from surroundings import (
    begin_recording,
    device,
    load,
    measured,
    memory,
    missing,
    probe_of,
    serve,
    status,
    until,
)

from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.files.paths import TIERS, files, folder_name
from iolab.recordings.store.read.recording import Recording

SECONDS = float(os.environ.get("IOLAB_BENCH_SECONDS", "3600"))
RATE = int(os.environ.get("IOLAB_BENCH_RATE", "10000"))
KEPT = (
    "io.ops[op]",
    "io.bytes[op]",
    "io.ops[latency]",
    "io.ops[process]",
    "io.bytes[process]",
    "io.ops[process=fio][latency]",
    "io.ops[op=write][latency]",
    "io.ops[op=read][size]",
    "io.ops[offset]",
    "cpu.utilization[mode]",
)
ASKED = ("io.ops[latency]", "io.bytes[process]")
ASK_EVERY = 5.0
LOGGED_MS = 100
MIB = 2**20


@dataclass
class Soak:
    """A recording under load, and what befalls it."""

    node: str
    place: Path
    recorder: subprocess.Popen[bytes]
    service: subprocess.Popen[str]
    address: str
    token: str
    answered: int = 0
    unanswered: int = 0
    killed: list[str] = field(default_factory=list)
    sizes: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def recording(self) -> Path:
        """Where it is."""
        return self.place / "recording"

    def ask(self) -> None:
        """Ask the service, as a page would."""
        for name in ASKED:
            words = urlencode({"statistic": name, "from": "-60s", "interval": "1s"})
            request = urllib.request.Request(
                f"{self.address}/api/v1/query?{words}",
                headers={"Authorization": f"Bearer {self.token}"},
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    answer.read()
                self.answered += 1
            except (OSError, urllib.error.URLError):
                # before the first second is there, there is nothing to answer
                self.unanswered += self.answered > 0

    def look(self, second: float) -> None:
        """Note the memory of all three."""
        pids = {
            "probe": probe_of(self.recorder.pid),
            "recorder": self.recorder.pid,
            "service": self.service.pid,
        }
        for name, pid in pids.items():
            if pid and (size := memory(pid)):
                self.sizes.setdefault(f"{name} {pid}", []).append((second, size))

    def kill_probe(self) -> None:
        """The recorder begins another one."""
        before = until(lambda: probe_of(self.recorder.pid), 60, "the probe")
        os.kill(before, signal.SIGKILL)
        until(lambda: probe_of(self.recorder.pid) not in (None, before), 60, "another probe")
        self.killed.append("probe")

    def kill_recorder(self) -> None:
        """Another one goes on with the recording."""
        self.recorder.kill()
        self.recorder.wait()
        self.recorder = begin_recording(self.recording, self.node)
        self.killed.append("recorder")

    def kill_service(self) -> None:
        """Another one serves; the recorder does not notice."""
        self.service.kill()
        self.service.communicate()
        self.service, self.address, self.token = serve(self.recording)
        self.killed.append("service")

    def end(self) -> None:
        """End what was begun."""
        self.service.terminate()
        self.service.communicate()
        self.recorder.send_signal(signal.SIGINT)
        self.recorder.wait()

    def hold(self, holds: bool, words: str) -> None:
        """Say what was found, and note what does not hold."""
        print(f"  {'ok' if holds else 'NOT SO'}: {words}", flush=True)
        if not holds:
            self.problems.append(words)


def run(node: str, scratch: Path) -> Soak:
    """The load with all that happens meanwhile; on return all has ended."""
    recorder = begin_recording(
        scratch / "recording", node, [word for name in KEPT for word in ("--statistic", name)]
    )
    soak = Soak(node, scratch, recorder, *serve(scratch / "recording"))
    due = [
        (SECONDS / 6, soak.kill_probe),
        (SECONDS / 2, soak.kill_recorder),
        (SECONDS * 2 / 3, soak.kill_service),
    ]
    logged = [
        f"--write_iops_log={scratch / 'fio'}",
        f"--log_avg_msec={LOGGED_MS}",
        "--log_unix_epoch=1",
    ]
    fio = subprocess.Popen(
        [*load(node, scratch / "fio.json", RATE, SECONDS, mixed=True), *logged],
        stdout=subprocess.DEVNULL,
    )
    begin = time.monotonic()
    try:
        while fio.poll() is None:
            passed = time.monotonic() - begin
            if due and passed >= due[0][0]:
                due.pop(0)[1]()
            soak.look(passed)
            soak.ask()
            time.sleep(max(0.0, min(ASK_EVERY, SECONDS / 40) - (time.monotonic() - begin - passed)))
    finally:
        if fio.poll() is None:
            fio.terminate()
            fio.wait()
        # what fio did last has been recorded by then
        time.sleep(2)
        soak.end()
    return soak


def nothing_is_lost(soak: Soak) -> None:
    """Every event outside the gaps."""
    recording = Recording(soak.recording)
    _, _, done = measured(soak.place / "fio.json")
    events = sum(segment.sources.get("block", 0) for segment in recording.segments())
    noted = [
        loss
        for loss in recording.losses()
        if loss["kind"] == "gap" and loss["source"] in ("", "block")
    ]
    gaps = sorted({(loss["from_ns"], loss["until_ns"]) for loss in noted})
    for first, until_ns in gaps:
        print(f"  gap of {(until_ns - first) / 1e9:.2f} s")
    soak.hold(len(gaps) == 2, f"{len(gaps)} gaps for the kills of the probe and the recorder")
    in_gaps = sum(done_within(soak.place / "fio_iops.1.log", *gap) for gap in gaps)
    # a gap's ends are known to a tenth of a second or so, and I/Os in flight there have no pair
    room = 0.5 * RATE * len(gaps) + 100
    soak.hold(
        abs(done - in_gaps - events) <= room,
        f"{events:,} events of {done:,} I/Os; in the gaps were about {in_gaps:,.0f}",
    )
    lost = sum(
        loss["count"] or 0
        for loss in recording.losses()
        if loss["kind"] in ("overrun", "missed", "damaged")
    )
    soak.hold(lost == 0, f"{lost} lost to overruns, damage or late readings")
    kept = sum(
        _sum(each.path, "amount")
        for each in files(soak.recording, TIERS[0], folder_name("io.ops[op]"))
    )
    soak.hold(kept == events, f"{kept:,} of them are in what was kept as io.ops[op]")
    mapped = sum(
        _sum(each.path, "count")
        for each in files(soak.recording, TIERS[0], folder_name("io.ops[latency]"))
    )
    soak.hold(mapped == events, f"{mapped:,} in io.ops[latency]")


def done_within(log: Path, from_ns: int, until_ns: int) -> float:
    """I/Os that fio did meanwhile, by its own log: after a second in which a busy machine held it
    up it does more than its rate."""
    done, before = 0.0, dict[str, float]()
    for line in log.read_text().splitlines():
        time_ms, rate, way = line.split(", ")[:3]
        end = int(time_ms) * 1e6
        begin = before.get(way, end - LOGGED_MS * 1e6)
        before[way] = end
        done += int(rate) * max(0.0, min(end, until_ns) - max(begin, from_ns)) / 1e9
    return done


def _sum(path: Path, column: str) -> int:
    return int(sum(pq.read_table(path, columns=[column])[column].to_pylist()))


def memory_is_flat(soak: Soak) -> None:
    """Of each process that lived long enough, late against early."""
    for name, found in sorted(soak.sizes.items()):
        first, last = found[0][0], found[-1][0]
        parts = [
            [
                size
                for second, size in found
                if low <= (second - first) / max(last - first, 1e-9) <= high
            ]
            for low, high in ((0.25, 0.5), (0.75, 1.0))
        ]
        if any(len(part) < 3 for part in parts):
            continue
        early, late = (statistics.median(part) for part in parts)
        most = max(size for _, size in found)
        soak.hold(
            late <= 1.1 * early + 32 * MIB,
            f"{name}: {early / MIB:.0f} MiB early, {late / MIB:.0f} late, at most {most / MIB:.0f}",
        )


def sizes_are_as_stated(soak: Soak) -> None:
    """Of what is kept, and of the recording."""
    rows = {row["statistic"]: row for row in manage.list_kept(soak.recording)}
    soak.hold(
        {row["state"] for row in rows.values()} == {"kept"}, f"{len(rows)} statistics are kept"
    )
    for name, row in rows.items():
        fine = row["tiers"][0]
        # a file takes about 2 kB of its own; random offsets fill buckets one by one
        each = 3 if "offset" in name else 1.05 if row["kind"] == "heat" else 40
        room = each * fine["rows"] + 4000 * fine["files"]
        soak.hold(
            fine["bytes"] <= room,
            f"{name}: {fine['bytes'] / 1000:.0f} kB, {fine['rows']:,} rows, {fine['files']} files, "
            f"CPU {row['cpu_ns'] / 1e9:.1f} s",
        )
    summary = Recording(soak.recording).summary()
    # what a file takes of its own shows where there are few I/Os
    room = 10 * summary.rows + 16384 * summary.segments["sealed"]
    sizes = {name: size / MIB for name, size in summary.bytes.items()}
    soak.hold(
        summary.bytes["events"] <= room,
        f"{summary.bytes_per_io or 0:.2f} bytes an I/O, {sizes['all']:.0f} MiB in all, of that "
        f"{sizes['histograms']:.1f} maps and kept statistics",
    )


def main() -> int:
    """Exit code."""
    why = missing()
    if why:
        print(f"bench_soak: left out: {why}")
        return 0
    print(f"{RATE:,} I/Os a second for {SECONDS:g} s, {len(KEPT)} statistics kept", flush=True)
    with tempfile.TemporaryDirectory() as scratch, device() as node:
        soak = run(node, Path(scratch))
        last = status(soak.recording)
        shares = {
            name: last[f"{name}_cpu_ns"] / 1e7 / max(last["seconds"], 1.0)
            for name in ("probe", "recorder")
        }
        print(
            f"  CPU of one, since the recorder's last start: {', '.join(f'{name} {share:.1f} %' for name, share in shares.items())}"
        )
        soak.hold(
            soak.killed == ["probe", "recorder", "service"],
            f"killed and begun again: {', '.join(soak.killed)}",
        )
        soak.hold(
            soak.answered > 0 and soak.unanswered <= 2 * len(ASKED),
            f"{soak.answered} answers of the service, {soak.unanswered} not given",
        )
        nothing_is_lost(soak)
        memory_is_flat(soak)
        sizes_are_as_stated(soak)
    print(json.dumps({"problems": soak.problems}))
    return 1 if soak.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
