# SPDX-License-Identifier: Apache-2.0
"""Rigs without a virtual machine: recipes, mirrors, the state of machines, and words where
something is missing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.base.errors import RunError, UsageError
from iolab.cli.main import run
from iolab.hosts.base.orphans import start_ticks
from iolab.hosts.facts.host_facts import boot_id
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.kinds.rig import (
    RigHost,
    RigOptions,
    RigState,
    cache_home,
    machine_home,
    machines,
    running_machine,
)
from iolab.hosts.rigs.apt import Mirror, find_mirror, sources
from iolab.hosts.rigs.build import Builder, image_version
from iolab.hosts.rigs.machine import _check_start, down, up
from iolab.hosts.rigs.process import cpu_wait, end_process
from iolab.hosts.rigs.qemu import (
    COUNTED,
    Choice,
    Disks,
    MachineOptions,
    choose_accelerator,
    command,
)
from iolab.hosts.rigs.recipe import find_rig
from support.waiting import PATIENCE, until

RECIPE = """
name = "small"
suite = "bookworm"
components = ["main", "contrib"]
packages = ["fio"]
[[stages]]
name = "one"
run = ["one.sh", "word"]
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path / "cache"


def state(**more: object) -> RigState:
    found = RigState(
        rig="small",
        name="one",
        pid=os.getpid(),
        started=start_ticks(os.getpid()) or 0,
        port=1,
        accelerator="tcg",
        begun_ns=0,
        disks=2,
        disk_bytes=1 << 30,
        disk_iops=170,
        disk_bytes_per_s=None,
        memory_bytes=1 << 30,
        cpus=2,
        version="v",
    )
    return replace(found, **more)  # type: ignore[arg-type]


def keep(one: RigState) -> Path:
    home = machine_home(one.rig, one.name)
    home.mkdir(parents=True)
    data = one.as_data()
    del data["running"]
    (home / "state.json").write_text(json.dumps(data))
    return home


def recipe(tmp_path: Path, text: str = RECIPE) -> Path:
    directory = tmp_path / "rig"
    directory.mkdir(exist_ok=True)
    (directory / "rig.toml").write_text(text)
    (directory / "one.sh").write_text("echo one\n")
    return directory


def test_the_shipped_rig_is_whole(root: Path) -> None:
    rig = find_rig(str(root / "rigs/openzfs"))
    assert rig.recipe.suite == "bookworm"
    assert [stage.name for stage in rig.recipe.stages] == [
        "openzfs-2.1",
        "openzfs-2.3",
        "tools",
        "services",
        "settle",
    ]
    for stage in rig.recipe.stages:
        assert rig.files(stage)
    for path in (root / "rigs/openzfs").iterdir():
        text = path.read_text()
        assert "http" not in text
        if text.startswith("#!/bin/sh"):
            assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0


def test_a_changed_script_is_another_stage(tmp_path: Path) -> None:
    directory = recipe(tmp_path)
    rig = find_rig(str(directory))
    before = rig.digest(rig.recipe.stages[0])
    (directory / "one.sh").write_text("echo two\n")
    assert rig.digest(rig.recipe.stages[0]) != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RECIPE.replace("one.sh", "none.sh"), "is missing.*stage 'one'"),
        ("name = ", "is no TOML"),
        (RECIPE + "odd = 1", "odd"),
        (RECIPE.replace('"small"', '"../up"'), "name"),
    ],
)
def test_a_wrong_recipe_is_told(tmp_path: Path, text: str, words: str) -> None:
    def read() -> None:
        rig = find_rig(str(recipe(tmp_path, text)))
        rig.files(rig.recipe.stages[0])

    with pytest.raises(UsageError, match=words):
        read()


def test_an_unknown_rig_is_told() -> None:
    with pytest.raises(UsageError, match="there is no rig 'nothing'"):
        find_rig("nothing")


ONE_LINE = """# comment
deb [arch=amd64 signed-by=/x] http://mirror.example/debian bookworm main contrib # more
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian-security bookworm-security main
"""
DEB822 = """Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /x

Types: deb
URIs: http://other.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""


@pytest.mark.parametrize(
    ("name", "text"), [("sources.list", ONE_LINE), ("sources.list.d/debian.sources", DEB822)]
)
def test_the_mirror_is_the_one_of_apt(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "etc/apt" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    mirror = find_mirror(tmp_path)
    assert mirror.archive == "http://mirror.example/debian"
    assert mirror.lines("bookworm", ("bookworm-backports",), ("main", "contrib")).splitlines() == [
        "deb http://mirror.example/debian bookworm main contrib",
        "deb http://mirror.example/debian bookworm-backports main contrib",
        "deb http://mirror.example/debian-security bookworm-security main contrib",
    ]


def test_without_a_mirror_of_debian_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/apt/sources.list").write_text("deb http://mirror.example/other focal main\n")
    assert [source.suite for source in sources(tmp_path)] == ["focal"]
    with pytest.raises(RunError, match="no mirror of Debian"):
        find_mirror(tmp_path)


def test_machines_are_known_by_pid_and_start_time() -> None:
    keep(state())
    keep(state(name="gone", started=1))
    assert [(one.name, one.running) for one in machines()] == [("gone", False), ("one", True)]
    assert running_machine("one").port == 1
    with pytest.raises(RunError, match="has ended unexpectedly"):
        running_machine("gone")
    with pytest.raises(RunError, match="no rig 'other' is up; there are: one"):
        running_machine("other")
    with pytest.raises(RunError, match="no rig 'other' is up"):
        RigHost(RigOptions(name="other")).run(["true"])


def test_going_down_ends_the_recorded_process_alone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    try:
        ours = start_ticks(process.pid)
        assert ours is not None
        stranger = keep(state(name="stranger", pid=process.pid, started=ours - 1))
        assert down("stranger") is False
        assert not stranger.exists()
        assert process.poll() is None
        home = keep(state(name="mine", pid=process.pid, started=ours))
        assert down("mine") is True
        assert not home.exists()
        assert start_ticks(process.pid) != ours
    finally:
        process.kill()
        process.wait()
    for name in ("mine", "../small", ""):
        with pytest.raises(UsageError, match="is up"):
            down(name)


@pytest.mark.parametrize(
    ("elapsed", "starved", "fails"),
    [(299, 0, False), (301, 0, True), (1000, 710, False), (1000, 690, True), (1801, 1800, True)],
)
def test_time_without_a_cpu_does_not_count_toward_the_start(
    monkeypatch: pytest.MonkeyPatch, elapsed: float, starved: float, fails: bool
) -> None:
    machine = state()
    home = keep(machine)
    (home / "console.log").write_text("one\n\nlast line\n")
    monkeypatch.setattr("iolab.hosts.rigs.machine.cpu_wait", lambda pid: starved)
    with (
        pytest.raises(RunError, match=f"{starved} s.*no answer; console: last line")
        if fails
        else contextlib.nullcontext()
    ):
        _check_start(machine, time.monotonic() - elapsed, "no answer")


def test_a_machine_that_ends_while_it_starts() -> None:
    machine = state(started=1)
    (keep(machine) / "qemu.log").write_text("qemu: no memory\n")
    with pytest.raises(RunError, match="ended while it started: qemu: no memory"):
        _check_start(machine, time.monotonic(), "no answer")


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_kernel_that_panics_is_an_error_at_once(has_ended: bool) -> None:
    machine = state(started=1) if has_ended else state()
    lines = ["one", "two", "three", "VFS: Cannot open root device", "\x1b[2JPlease append root="]
    panic = "[    2.1] Kernel panic - not syncing: VFS: Unable to mount root fs"
    after = ["CPU: 0 PID: 1", "Call Trace:", *(f"frame {number}" for number in range(40))]
    (keep(machine) / "console.log").write_text("\n".join([*lines, panic, *after]))
    with pytest.raises(RunError) as error:
        _check_start(machine, time.monotonic(), "no answer")
    message = str(error.value)
    assert "kernel panicked" in message
    assert f"VFS: Cannot open root device | \\x1b[2JPlease append root= | {panic} | CPU" in message
    assert "frame 39" not in message
    assert "\n" not in message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_start_that_is_ended_leaves_no_machine(
    tmp_path: Path, cache: Path, number: signal.Signals
) -> None:
    home = cache / "iolab/rigs/small"
    (home / "stamps").mkdir(parents=True)
    (home / "stamps/image.json").write_text('{"digest": "v"}')
    (home / "image.raw").touch()
    (home / "host_key.pub").write_text("ssh-ed25519 AAAA rig\n")
    # remembered: otherwise a probe of KVM waits for its time
    (home / "accelerator").write_text(f"{image_version('small')} {boot_id(LocalHost())} tcg\n")
    (tmp_path / "qemu-system-x86_64").write_text("#!/bin/sh\nexec sleep 1000\n")
    (tmp_path / "qemu-system-x86_64").chmod(0o755)
    starting = subprocess.Popen(
        [sys.executable, "-m", "iolab", "rig", "up", str(recipe(tmp_path)), "--disks", "1"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stderr=subprocess.PIPE,
        # below nohup the signal is ignored
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    try:
        until(lambda: bool(machines()), "the machine to start")
        pid = machines()[0].pid
        starting.send_signal(number)
        assert starting.wait(PATIENCE) == 130
        assert not machine_home("small", "small").exists()
        assert start_ticks(pid) is None
    finally:
        starting.kill()
        starting.communicate()
        for one in machines():
            end_process(one.pid, one.started)


def test_a_start_reports_its_own_error_where_its_machines_are_deleted(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cache / "iolab/rigs/small"
    home.mkdir(parents=True)
    monkeypatch.setattr("iolab.hosts.rigs.machine.image_version", lambda rig: "v")
    monkeypatch.setattr(
        "iolab.hosts.rigs.machine.choose_accelerator", lambda rig, counted: Choice("tcg", "")
    )

    def start(planned: RigState, options: MachineOptions) -> RigState:
        keep(planned)
        return planned

    def delete(one: RigState) -> None:
        down(one.name)
        raise RunError("the machine ended while it started")

    monkeypatch.setattr("iolab.hosts.rigs.machine._start", start)
    monkeypatch.setattr("iolab.hosts.rigs.machine.await_machine", delete)
    options = MachineOptions(Disks(0, 1), 1 << 30)
    with pytest.raises(RunError, match="ended while it started"):
        up("small", ["one", "two"], options, lambda said: None)
    assert machines() == []


def test_waiting_for_a_cpu_is_counted() -> None:
    assert cpu_wait(os.getpid()) >= 0
    assert cpu_wait(2**22 + 1) == 0  # above the largest pid


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"rig": "small"}'])
def test_a_damaged_state_is_no_machine_and_can_be_taken_down(damage: str) -> None:
    home = keep(state())
    (home / "state.json").write_text(damage)
    assert machines() == []
    assert down("one") is False
    assert not home.exists()


def test_disks_get_their_limits_and_serial_numbers(tmp_path: Path) -> None:
    disks = Disks(2, 1 << 30, 170, 120_000_000)
    words = command(
        "small", "tcg", MachineOptions(disks, 1 << 30, 2), port=2222, home=tmp_path / "a,b"
    )
    text = " ".join(words)
    assert "throttling.iops-total=170,throttling.bps-total=120000000" in text
    assert "serial=disk0" in text
    assert "serial=disk1" in text
    assert "a,,b/disk1.raw" in text
    assert "restrict=on,hostfwd=tcp:127.0.0.1:2222-:22" in text
    words = command(
        "small",
        "tcg",
        MachineOptions(Disks(1, 1 << 30, 170, fast=1), 1 << 30, 2),
        port=1,
        home=tmp_path,
    )
    limited, free = (
        next(word for word in words if f",id={name}," in word) for name in ("disk0", "fast0")
    )
    assert "throttling" in limited
    assert "throttling" not in free
    unlimited = command(
        "small", "kvm", MachineOptions(Disks(1, 1 << 30), 1 << 30, 2), port=1, home=tmp_path
    )
    assert "throttling" not in " ".join(unlimited)


def test_many_disks_share_slots_and_threads(tmp_path: Path) -> None:
    disks = Disks(128, 1 << 30, 170, fast=8)
    words = command("small", "tcg", MachineOptions(disks, 1 << 30, 2), port=2222, home=tmp_path)
    devices = [
        word for word in words if word.startswith("virtio-blk-pci,drive=") and "serial=" in word
    ]
    addresses = [dict(part.split("=") for part in word.split(",")[1:])["addr"] for word in devices]
    assert len(set(addresses)) == len(addresses) == 136
    assert all(
        0x8 <= int(address.partition(".")[0], 16) < 0x1F for address in addresses
    )  # 0x1f is the chip set's own
    assert sum("multifunction=on" in word for word in devices) == 17
    threads = {word.partition("id=")[2] for word in words if word.startswith("iothread,")}
    assert {
        dict(part.split("=") for part in word.split(",")[1:])["iothread"] for word in devices
    } == threads
    few = command(
        "small", "tcg", MachineOptions(Disks(24, 1 << 30), 1 << 30, 2), port=2222, home=tmp_path
    )
    assert "addr=" not in " ".join(few)


def test_what_is_not_built_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert image_version("small") is None
    assert run(["rig", "up", str(root / "rigs/openzfs")]) == 5
    assert "iolab rig build openzfs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_mirror_that_cannot_be_reached_is_said_before_anything_is_made(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "http://127.0.0.1:1/debian"
    monkeypatch.setattr(Builder, "_check", lambda self: None)
    monkeypatch.setattr("iolab.hosts.rigs.build.find_mirror", lambda: Mirror(nobody, None, ""))
    with pytest.raises(RunError, match=r"the mirror of Debian can't be (asked|reached)"):
        Builder(find_rig(str(recipe(tmp_path))), lambda text: None).check()
    assert not (cache_home() / "small").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may build")
def test_building_takes_root(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"root|missing"):
        Builder(find_rig(str(recipe(tmp_path))), lambda text: None).build()


def test_a_stage_that_was_done_is_not_done_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of stages, what a change does, and going on after a failure; the programs
    themselves are left out."""
    said: list[str] = []
    ran: list[str] = []
    fail: set[str] = set()

    def pretend(self: Builder, words: list[str], what: str, log: Path | None = None) -> None:
        ran.append(what)
        if what in fail:
            raise RunError(f"{what} failed")
        if what == "debootstrap":
            for name in (
                "etc/apt/apt.conf.d",
                "usr/sbin",
                "var/lib/apt/lists",
                "root/.ssh",
                "etc/ssh",
                "boot",
            ):
                (self._tree / name).mkdir(parents=True)
            (self._tree / "boot/vmlinuz-1").write_text("kernel")
            (self._tree / "boot/initrd.img-1").write_text("initrd")
            (self._tree / "var/lib/apt/lists/x_Packages").write_text("")
        if what == "ssh-keygen":
            key = Path(words[-1])
            key.write_text("private")
            key.with_suffix(".pub").write_text("ssh-ed25519 AAAA x\n")

    monkeypatch.setattr(Builder, "_run", pretend)
    monkeypatch.setattr(Builder, "_check", lambda self: None)
    monkeypatch.setattr(
        "iolab.hosts.rigs.build.find_mirror", lambda: Mirror("http://a/debian", None, "")
    )
    directory = recipe(tmp_path)

    def build() -> list[str]:
        said.clear()
        foreseen = Builder(find_rig(str(directory)), said.append).missing()
        try:
            Builder(find_rig(str(directory)), said.append).build()
        finally:
            found = [word.partition(": ")[2] for word in said]
            assert foreseen[: len(found)] == found
        return found

    fail.add("one")
    with pytest.raises(RunError, match="one failed"):
        build()
    fail.clear()
    assert build() == ["one", "image"]
    assert build() == []
    assert image_version("small")
    (cache_home() / "small/image.raw").unlink()
    assert build() == ["image"]
    (directory / "one.sh").write_text("echo changed\n")
    assert build() == ["one", "image"]
    recipe(tmp_path, RECIPE.replace('"contrib"', '"non-free"'))
    assert build() == ["base", "packages", "one", "image"]
    assert "http://a/debian" in (cache_home() / "small/tree/etc/apt/sources.list").read_text()


def test_the_list_tells_what_is_up_and_what_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rig", "list"]) == 0
    assert "no machine is up" in capsys.readouterr().out
    keep(state())
    keep(state(name="gone", started=1))
    assert run(["rig", "list"]) == 0
    out = capsys.readouterr().out
    assert "170 IOPS" in out
    assert "ended unexpectedly" in out
    assert run(["rig", "list", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["running"]) for one in data["machines"]] == [
        ("gone", False),
        ("one", True),
    ]


def test_kvm_is_not_taken_for_granted(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    (cache / "iolab/rigs/small").mkdir(parents=True)
    monkeypatch.setattr("os.path.exists", lambda path: path != "/dev/kvm")
    assert choose_accelerator("small").accelerator == "tcg"
    assert "no /dev/kvm" in choose_accelerator("small").why
    monkeypatch.setattr("os.path.exists", lambda path: True)
    monkeypatch.setattr("os.access", lambda path, mode: True)
    tried: list[str] = []

    def does_not_boot(rig: str) -> bool:
        tried.append(rig)
        return False

    monkeypatch.setattr("iolab.hosts.rigs.qemu._boots_with_kvm", does_not_boot)
    assert "did not boot" in choose_accelerator("small").why
    assert choose_accelerator("small").accelerator == "tcg"
    assert tried == ["small"]  # remembered for this boot


def test_a_machine_that_counts_instructions_is_emulated_with_one_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: pytest.fail("KVM was asked for"))
    choice = choose_accelerator("small", True)
    assert (choice.accelerator, choice.why) == (COUNTED, "")
    options = MachineOptions(Disks(0, 1), 1 << 30, counts_instructions=True)
    words = command("small", COUNTED, options, port=1, home=tmp_path)
    assert words[words.index("-icount") + 1].startswith("shift=0")
    assert "thread=single" in words[words.index("-accel") + 1]
    assert words[words.index("-smp") + 1] == "1"
    assert "no_timer_check" in words[words.index("-append") + 1]
    more = MachineOptions(Disks(0, 1), 1 << 30, 2, counts_instructions=True)
    words = command("small", COUNTED, more, port=1, home=tmp_path)
    assert words[words.index("-smp") + 1] == "2"
    assert "-icount" not in command("small", "tcg", more, port=1, home=tmp_path)


def test_a_machines_session_gets_the_callers_niceness() -> None:
    own = Path("/proc/self/autogroup")
    if (
        not own.exists()
        or Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() != "1"
    ):
        pytest.skip("this kernel doesn't share time among sessions")
    with subprocess.Popen(
        [
            "nice",
            "-n",
            "3",
            sys.executable,
            "-c",
            """
import subprocess
from pathlib import Path
from iolab.hosts.rigs.machine import _pass_on_niceness
with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
    _pass_on_niceness(child.pid)
    print(Path(f"/proc/{child.pid}/autogroup").read_text())
    child.kill()
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    ) as asked:
        said = asked.communicate(timeout=60)[0]
    assert said.strip().endswith(f"nice {min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)}")
