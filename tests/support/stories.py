# SPDX-License-Identifier: Apache-2.0
"""The stories of the guides: their own commands run as they stand there, and the worksheet opened
on what these recorded."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from iolab.hosts.kinds.rig import cache_home
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import state_in
from iolab.recordings.store.read.recording import Recording, is_recording
from support.disks import attached, mounted, need_loops
from support.network import Network
from support.probe import need_tracing
from support.recorded import MEMORY
from support.service import serving
from support.worksheet import picture, settled, visited

GUIDES = Path(__file__).parents[2] / "docs/guides"
IMAGES = Path(__file__).parents[2] / "docs/images"
RENEW = "IOLAB_PICTURES"
"""Variable that has the stories write the pictures of their guides; `scripts/stories` sets it."""
WAIT_MS = 60_000
LONGEST_S = 240
"""What a story's commands may take on a busy machine."""
LONGEST_ON_RIG_S = 1800
"""The same with emulated machines, of which each takes a minute or more to start."""

_BLOCK = re.compile(
    r"^<!-- story: (make|load|ask|away) -->\n```sh\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def commands(story: str) -> dict[str, str]:
    """The commands that a story's guide tells: `make` and `away` set up and take down what `load`
    needs, `ask` asks its recording."""
    found: dict[str, str] = {}
    for part, text in _BLOCK.findall((GUIDES / f"story-{story}.md").read_text("utf-8")):
        found[part] = found.get(part, "") + text
    assert "load" in found, f"story-{story}.md tells no load"
    return found


@cache
def why_no_limits() -> str | None:
    """Why this machine can't hold back a device for a control group, or None where it can; tried,
    once."""
    second = Path("/sys/fs/cgroup/cgroup.controllers")
    place, file = (
        (Path("/sys/fs/cgroup"), "")
        if second.exists()
        else (Path("/sys/fs/cgroup/blkio"), "blkio.throttle.read_iops_device")
    )
    if second.exists() and "io" not in second.read_text().split():
        return "control groups here can't hold back devices (no controller io)"
    group = place / f"iolab-test-{os.getpid()}"
    try:
        group.mkdir()
        try:
            return (
                None
                if not file or (group / file).exists()
                else f"control groups here have no {file}"
            )
        finally:
            group.rmdir()
    except OSError as error:
        return f"no control group can be made: {error}"


def need_limits() -> None:
    """Leave the test out, with the reason, where no device can be held back."""
    if (reason := why_no_limits()) is not None:
        pytest.skip(reason)


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep processors out of deep idle states, whose end takes longer than a read of a disk in
    memory (the kernel's pm_qos_interface)."""
    try:
        held = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    except OSError:
        yield
        return
    try:
        os.write(held, (0).to_bytes(4, "little"))
        yield
    finally:
        os.close(held)


@contextlib.contextmanager
def played(
    story: str, tmp_path: Path, shorter: tuple[str, str] = ("", ""), *, is_on_rig: bool = False
) -> Iterator[Path]:
    """A directory, in memory where that is to be had, in which the guide's commands were run. The
    test is left out where they can't be.

    All are one script, so that names set by one are known to the next; `away` is run however it
    ends.

    Args:
        shorter: words of the load and their replacement, unless pictures are renewed.
        is_on_rig: whether the commands use machines of a rig, and nothing of this machine.
    """
    if not is_on_rig:
        need_tracing()
        need_loops("fio")
    parts = commands(story)
    assert shorter[0] in parts["load"]
    if shorter[0] and not os.environ.get(RENEW):
        parts["load"] = parts["load"].replace(*shorter)
    script = "\n".join(
        [
            "set -eu",
            "away() { set +e",
            ":",
            parts.get("away", ""),
            "}",
            "trap away EXIT",
            parts.get("make", ""),
            parts["load"],
            parts.get("ask", ""),
        ]
    )
    with (
        awake(),
        tempfile.TemporaryDirectory(
            dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path, prefix="iolab-"
        ) as name,
    ):
        place = Path(name)
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "HOME": name,
                **({"XDG_CACHE_HOME": str(cache_home().parents[1])} if is_on_rig else {}),
            },
        )
        try:
            said, _ = process.communicate(timeout=LONGEST_ON_RIG_S if is_on_rig else LONGEST_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.communicate(timeout=60)
            left = _swept(place)
        assert process.returncode == 0, said
        assert not left, f"story-{story}.md leaves {left} behind"
        yield place


def _swept(place: Path) -> list[str]:
    """Take away what is still mounted or attached below a directory, and tell it. A loop device
    goes with the last who looks at it, which may be after it was let go."""
    until = time.monotonic() + 20
    while not mounted(place) and attached(place) and time.monotonic() < until:
        time.sleep(0.1)
    points, loops = mounted(place), attached(place)
    for point in points:
        subprocess.run(["umount", point], check=False, capture_output=True)
    for line in attached(place):
        subprocess.run(["losetup", "--detach", line.split()[0]], check=False, capture_output=True)
    return [*points, *loops]


@contextlib.contextmanager
def worksheet(browser: Any, recording: Path, home: Path, *, height: int = 800) -> Iterator[Any]:
    """The worksheet on a recording, as the guide's reader opens it."""
    with (
        serving(state_in(Store([recording]), home / "data", home / "alerts.jsonl")) as listener,
        visited(browser, listener.url, width=1400, height=height) as page,
    ):
        page.set_default_timeout(WAIT_MS)
        page.locator("#add, .page-head").first.wait_for()
        if page.locator(".page-head").count():
            # results are listed on the start page
            page.get_by_role("link", name="Recording").first.click()
            page.locator("#add").wait_for()
        yield page


def kept(page: Any, name: str) -> None:
    """Keep what is seen now from the top, with nothing under the pointer; when pictures are renewed
    it is the guide's picture `name`."""
    page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0); }")
    page.mouse.move(2, 2)
    settled(page)
    path = picture(page, f"story-{name}")
    if os.environ.get(RENEW):
        (IMAGES / f"story-{name}.png").write_bytes(path.read_bytes())


def recorded_server(lab: Network, folder: Path, seconds: int) -> Recording:
    """The counters of a network's server, made by `iolab record`, while all of its clients read for
    so many seconds. The test is left out where the kernel does not tell what connections moved."""
    words = [
        sys.executable,
        "-m",
        "iolab.cli",
        "record",
        "counters",
        "--quiet",
        "--duration",
        f"{seconds + 2}s",
        "--budget",
        "none",
        "-o",
        str(folder),
    ]
    recorder = subprocess.Popen(lab.within(0, words), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not is_recording(folder) and recorder.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    clients = [lab.reading(place, seconds) for place in range(1, len(lab.spaces))]
    for client in clients:
        assert client.wait(seconds + 60) == 0
    _, said = recorder.communicate(timeout=seconds + 60)
    assert recorder.returncode == 0, said.decode()
    recording = Recording(folder)
    if "tcp" not in {name for segment in recording.sample_segments() for name in segment.sources}:
        pytest.skip("this kernel does not tell what connections moved (inet_diag)")
    return recording
