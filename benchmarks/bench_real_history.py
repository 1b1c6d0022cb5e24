# SPDX-License-Identifier: Apache-2.0
"""A history of small real studies on a loop device, with a change on the way.

Each study measures an ext4 file system, which is mounted again before it. From study `--change` on
a control group limits the writes of the load (`--inject limit`), or the file system is mounted with
`data=journal` (`--inject journal`). `iolab history` must report changes of the writes between the
studies before and after, and no other change. Needs root, fio, and the block controller of control
groups, version 1 or 2.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STUDY = """\
[study]
baseline = "now"
repetitions = 3

[target]
kind = "directory"
path = "{path}"

[workload]
kind = "fio"
runtime = "1s"
ramp = "200ms"

[workload.options]
bs = "4k"
size = "16m"
direct = 1
overwrite = 1
randrepeat = 0
thinktime = "1ms"

[factors]
rw = ["randread", "randwrite"]

[variants.now]
workload.options.fsync = 1
"""
CGROUPS = Path("/sys/fs/cgroup")
IMAGE_BYTES = 256 << 20
METRICS = ("write.iops", "read.iops", "sync.lat.mean", "read.lat.mean")


def iolab(*words: str) -> str:
    """Standard output of a command; its messages where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "iolab", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"iolab {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


@contextmanager
def loop_device(image: Path) -> Iterator[str]:
    """A loop device with an empty ext4."""
    image.write_bytes(b"\0" * IMAGE_BYTES)  # allocated, so that no study pays for allocation
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    try:
        subprocess.run(
            ["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", device], check=True
        )
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def mounted(device: str, place: Path, option: str) -> Iterator[None]:
    """The device's file system, mounted for a study."""
    subprocess.run(["mount", "-o", option, device, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@contextmanager
def control_group() -> Iterator[Path]:
    """A control group of the block controller."""
    home = CGROUPS / "blkio" if (CGROUPS / "blkio").is_dir() else CGROUPS
    group = home / f"iolab-history-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()


def limit_writes(group: Path, device: str, per_second: int) -> None:
    """Limit the writes to a device of all that runs in a control group."""
    number = Path(device).stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    version1 = group / "blkio.throttle.write_iops_device"
    if version1.exists():
        version1.write_text(f"{name} {per_second}\n")
    else:
        (group / "io.max").write_text(f"{name} wiops={per_second}\n")


def measure(home: Path, options: argparse.Namespace) -> None:
    """Run the studies in a control group, and add each to the history."""
    place = home / "mnt"
    place.mkdir(parents=True)
    (home / "study.toml").write_text(STUDY.format(path=place))
    with loop_device(home / "disk.img") as device, control_group() as group:
        for number in range(1, options.studies + 1):
            is_changed = number >= options.change
            if is_changed and options.inject == "limit":
                limit_writes(group, device, options.limit)
            mount = "data=journal" if is_changed and options.inject == "journal" else "data=ordered"
            results = home / "results" / f"{number:02d}"
            run = [sys.executable, "-m", "iolab", "run", str(home / "study.toml")]
            with mounted(device, place, mount):
                subprocess.run(
                    [*run, "-o", str(results), "--seed", str(number)],
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
                )
            words = ["--history", str(home / "history"), "--revision", f"r{number}"]
            iolab("history", "add", str(results), *words)
            state = options.inject if is_changed else "as before"
            print(
                f"{number} of {options.studies}: {state}, load {os.getloadavg()[0]:.1f}", flush=True
            )
    (home / "disk.img").unlink()


def report(home: Path, change: int) -> bool:
    """Print every change that the history finds. Whether they are those that were injected."""
    show = ["history", "show", "--history", str(home / "history")]
    metrics = [word for metric in METRICS for word in ("--metric", metric)]
    document: dict[str, Any] = json.loads(iolab(*show, *metrics, "--format", "json"))
    print(iolab(*show, *metrics))
    hits, others = set(), 0
    for series in document["series"]:
        kind = f"{series['metric']} {series['factors']}"
        for finding in (*series["changes"], *series["noise_changes"]):
            is_injected = "change" in finding and finding["after"] == change
            words = f"between {finding['before']} and {finding['after']}, q {finding['q']:.2g}"
            if is_injected and series["metric"].startswith(("write.", "sync.")):
                hits.add(series["metric"])
                print(f"injected: {kind}: {finding['change']:+.1f} {finding['unit']} {words}")
            else:
                others += 1
                what = "mean" if "change" in finding else "noise"
                print(f"other: {kind}: {what} {words}")
    print(
        f"{len(document['series'])} series of {len(document['entries'])} studies: injected change "
        f"found in {', '.join(sorted(hits)) or 'none'}, other changes: {others}"
    )
    return "write.iops" in hits and others == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--change", type=int, default=24, help="first study with the change")
    parser.add_argument("--inject", choices=("limit", "journal"), default="limit")
    parser.add_argument(
        "--limit", type=int, default=80, help="writes a second that are let through"
    )
    parser.add_argument("--home", type=Path, help="directory to keep; default: a temporary one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = (options.home or Path(scratch) / "home").resolve()
        start = time.monotonic()
        if not (home / "history").exists():
            measure(home, options)
        print(f"{options.studies} studies in {time.monotonic() - start:.0f} s")
        sys.exit(0 if report(home, options.change) else 1)


if __name__ == "__main__":
    main()
