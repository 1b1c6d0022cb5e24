# SPDX-License-Identifier: Apache-2.0
"""qemu's command line for a rig, and whether KVM works here: having /dev/kvm doesn't mean that a
kernel boots with it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import RunError

from ..facts.host_facts import boot_id
from ..kinds.local import LocalHost
from ..kinds.rig import KERNELS, OWN_KERNEL, rig_home
from .build import IMAGE, INITRD, KERNEL, image_version
from .kernels import find_kernel
from .network import Link, card

PROGRAM = "qemu-system-x86_64"
COUNTED = "icount"
"""An accelerator: emulation with a clock that counts instructions, 1 ns each. Idle time passes as
on the host, so that timers and the network keep their pace."""
PROBE_SECONDS = 40.0
"""For a boot with KVM up to the first program: working KVM needs a few seconds of them."""
_OWN_SLOTS, _OWN_THREADS = 24, 32
"""Disks up to these numbers have a slot of the bus, and a thread of qemu, each to itself."""
_FIRST_SLOT = 0x8
"""Slots below are left to the other devices; 17 from here on hold the most disks there can be, 8 to
a slot."""
_PROBE_WORD = "rig-probe: booted"
_ACCELERATOR = "accelerator"
"""File of a rig with the result of the last probe."""


@dataclass(frozen=True)
class Disks:
    """Data disks: how many, how large each, and what each may do; None for no limit. `fast`: how
    many more there are without any."""

    count: int
    size_bytes: int
    iops: int | None = None
    bytes_per_s: int | None = None
    fast: int = 0

    @property
    def names(self) -> list[str]:
        """Their serial numbers: in the machine they are /dev/disk/by-id/virtio-<name>."""
        return [
            f"{kind}{number}"
            for kind, count in (("disk", self.count), ("fast", self.fast))
            for number in range(count)
        ]


@dataclass(frozen=True)
class MachineOptions:
    """What a machine has.

    Attributes:
        cpus: None for those of this machine, at most 4. link: to a private network, None for none.
        can_reboot: whether a reboot starts it again, with its files; otherwise it ends.
        kernel: the name of the kernel to boot. counts_instructions: whether its clock counts
        instructions (`COUNTED`) instead of time.
    """

    disks: Disks
    memory_bytes: int
    cpus: int | None = None
    link: Link | None = None
    can_reboot: bool = False
    kernel: str = OWN_KERNEL
    counts_instructions: bool = False

    @property
    def cpu_count(self) -> int:
        """The CPUs that it gets. Emulated CPUs that count instructions take turns, so one is the
        default of these."""
        if self.counts_instructions:
            return self.cpus or 1
        return self.cpus or min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Choice:
    """How the CPU is had. `why`: for people, empty where it is the fast way."""

    accelerator: str
    why: str


def check_program() -> None:
    """RunError where machines can't be started here at all."""
    if platform.machine() != "x86_64":
        raise RunError(f"rigs are machines of x86_64, this one is {platform.machine()}")
    if shutil.which(PROGRAM) is None:
        raise RunError(
            f"{PROGRAM} is not installed", hint="install it: apt install qemu-system-x86"
        )


def remembered_accelerator(rig: str) -> str | None:
    """`kvm` or `tcg`, as a probe of this image found since this machine booted; None without a
    probe."""
    try:
        text = (rig_home(rig) / _ACCELERATOR).read_text("utf-8", "replace")
    except OSError:
        return None
    word, _, result = text.strip().rpartition(" ")
    is_current = word == f"{image_version(rig)} {boot_id(LocalHost())}"
    return result if is_current and result in ("kvm", "tcg") else None


def choose_accelerator(rig: str, counts_instructions: bool = False) -> Choice:
    """KVM where a probe booted this rig's kernel with it in time; remembered for this image and
    this boot of the machine."""
    if counts_instructions:
        return Choice(COUNTED, "")
    if not os.path.exists("/dev/kvm"):  # noqa: PTH110
        return Choice("tcg", "there is no /dev/kvm here: the CPU is emulated, several times slower")
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Choice(
            "tcg",
            "/dev/kvm may not be opened by this user (group kvm): the CPU is emulated, several times slower",
        )
    result = remembered_accelerator(rig)
    if result is None:
        result = "kvm" if _boots_with_kvm(rig) else "tcg"
        text = f"{image_version(rig)} {boot_id(LocalHost())} {result}\n"
        (rig_home(rig) / _ACCELERATOR).write_text(text, "utf-8")
    if result == "kvm":
        return Choice("kvm", "")
    return Choice(
        "tcg",
        f"/dev/kvm is there, but the rig's kernel did not boot with it (it was given {PROBE_SECONDS:.0f} s): "
        "the CPU is emulated, several times slower",
    )


def command(
    rig: str, accelerator: str, options: MachineOptions, *, port: int, home: Path, address: str = ""
) -> list[str]:
    """The command line of a machine.

    The image stays as it is, and what is written to it is deleted at the machine's end. Data disks
    are sparse files with limits each. They write to the host's page cache and complete a flush at
    once: their speed is that of the limits, not of this machine's disk.

    Args:
        port: of ssh, on 127.0.0.1. home: directory of the machine. address: in its private network.
    """
    disks = options.disks
    words = [
        *_base(rig, accelerator, options.memory_bytes, options.cpu_count),
        *kernel_words(rig, options.kernel),
        *([] if options.can_reboot else ["-no-reboot"]),
        "-name",
        f"iolab-rig-{home.name}",
        "-serial",
        f"file:{home / 'console.log'}",
        "-netdev",
        f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        "virtio-net-pci,netdev=net,romfile=",
        *(card(options.link, address) if options.link else []),
        "-append",
        _append(accelerator),
    ]
    held_back = "".join(
        f",throttling.{key}={value}"
        for key, value in (("iops-total", disks.iops), ("bps-total", disks.bytes_per_s))
        if value is not None
    )
    names = disks.names
    threads = min(len(names), _OWN_THREADS)
    words += [
        word for number in range(threads) for word in ("-object", f"iothread,id=thread-{number}")
    ]
    for place, name in enumerate(names):
        words += [
            "-drive",
            f"file={_escape(disk_file(home, name))},if=none,id={name},format=raw,cache=unsafe,aio=threads,"
            f"discard=unmap{held_back if place < disks.count else ''}",
            "-device",
            f"virtio-blk-pci,drive={name},serial={name},iothread=thread-{place % threads}{_address(place, len(names))}",
        ]
    return words


def kernel_words(rig: str, kernel: str) -> list[str]:
    """The words that name a kernel and its initial RAM disk."""
    home = rig_home(rig)
    if kernel == OWN_KERNEL:
        return ["-kernel", str(home / KERNEL), "-initrd", str(home / INITRD)]
    release = find_kernel(home, kernel).release
    boot = home / KERNELS / kernel / "root/boot"
    return ["-kernel", f"{boot}/vmlinuz-{release}", "-initrd", f"{boot}/initrd.img-{release}"]


def _address(place: int, count: int) -> str:
    """Few disks have a slot of the bus each; more share slots, as functions of one device, with a
    queue each to spare interrupts."""
    if count <= _OWN_SLOTS:
        return ""
    slot, function = divmod(place, 8)
    return f",addr={_FIRST_SLOT + slot:#x}.{function:x},num-queues=1{',multifunction=on' if function == 0 else ''}"


def disk_file(home: Path, name: str) -> Path:
    """The file of a data disk."""
    return home / f"{name}.raw"


def _base(rig: str, accelerator: str, memory_bytes: int, cpus: int) -> list[str]:
    home = rig_home(rig)
    # kernel 6.12 uses cmpxchg16b for its allocator, where qemu 7.2 ends in double faults
    threads = "single" if accelerator == COUNTED else "multi"
    emulated = ["-accel", f"tcg,thread={threads},tb-size=512", "-cpu", "max,la57=off,cx16=off"]
    accel = ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else emulated
    if accelerator == COUNTED:
        accel += ["-icount", "shift=0,sleep=on"]
    return [
        PROGRAM,
        "-machine",
        "q35,usb=off,vmport=off",
        *accel,
        "-m",
        f"{memory_bytes >> 20}M",
        "-smp",
        str(cpus),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-rtc",
        "base=utc",
        "-device",
        "virtio-rng-pci",
        "-drive",
        f"file={_escape(home / IMAGE)},if=none,id=system,format=raw,snapshot=on",
        "-device",
        "virtio-blk-pci,drive=system",
    ]


def _append(accelerator: str, more: str = "") -> str:
    # Guards against attacks between its own programs cost an emulated CPU much, and guard nothing
    # in a machine that is deleted after use. The kernel's test of its timer (10 ticks in a loop of
    # fixed length) fails where the emulation gets little CPU time, and then the kernel panics.
    slow = " mitigations=off no_timer_check" if accelerator != "kvm" else ""
    return f"root=LABEL=rig rw console=ttyS0 quiet panic=-1 net.ifnames=0 systemd.show_status=0{slow}{more}"


def _escape(path: Path) -> str:
    return str(path).replace(",", ",,")


def _boots_with_kvm(rig: str) -> bool:
    """Boot up to the first program and off again, with a time limit."""
    with tempfile.TemporaryDirectory(prefix="iolab-rig-") as directory:
        console = Path(directory, "console")
        words = [
            *_base(rig, "kvm", 512 << 20, 1),
            *kernel_words(rig, OWN_KERNEL),
            "-no-reboot",
            "-serial",
            f"file:{console}",
            "-append",
            _append("kvm", " init=/usr/local/sbin/rig-probe"),
        ]
        try:
            subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
                env={**os.environ, "TMPDIR": directory},
            )
        except subprocess.TimeoutExpired:
            pass
        except OSError as error:
            raise RunError(
                f"{PROGRAM} can't be started: {error.strerror or error}",
                hint="install it: apt install qemu-system-x86",
            ) from None
        return console.exists() and _PROBE_WORD in console.read_text("utf-8", "replace")
