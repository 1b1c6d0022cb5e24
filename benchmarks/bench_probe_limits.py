# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU of the probe beside a process that wants to exhaust it.

Each case runs a probe of its own: a command line of 1 GiB (`PR_SET_MM_MAP` needs no capability),
two million reads of descriptors that do not exist, a FUSE file system that never answers, counters
every 10 ms and a reader that stops reading. Prints the largest resident memory, CPU time, and how
long the probe took to end after SIGTERM. Needs root, to trace.

bench_probe_limits.py [PROBE...]: binaries to compare (default: the one of this tree).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TERM_SECONDS = 10
LONG_COMMAND = """
import ctypes, mmap, os, struct, sys
size = 1 << 30
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
start = libc.mmap(None, size, 3, 0x4022, -1, 0)  # private, anonymous, without reserve
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
at = lambda number: int(fields[number - 3])
auxv = open('/proc/self/auxv', 'rb').read()
buffer = ctypes.create_string_buffer(auxv)
code = (at(26), at(27), at(45), at(46), at(47), at(47), at(28))
memory = struct.pack('11Q', *code, start, start + size, start + size, start + size)
memory += struct.pack('QIi', ctypes.addressof(buffer), len(auxv), -1)
if libc.prctl(35, 14, ctypes.c_char_p(memory), len(memory), 0):
    sys.exit(os.strerror(ctypes.get_errno()))
print(len(open('/proc/self/cmdline', 'rb').read(1 << 21)), flush=True)
for _ in range(20):
    with open(sys.argv[1], 'w') as file:
        file.write('x')
sys.stdin.read()
"""
BOGUS_READS = """
import ctypes
read = ctypes.CDLL(None).read
for number in range(1000, 2_001_000):
    read(number, None, 0)
"""


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@contextlib.contextmanager
def silent_fuse() -> Iterator[Path]:
    """A FUSE file system that answers INIT alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    channel = os.open("/dev/fuse", os.O_RDWR)
    with tempfile.TemporaryDirectory() as place:
        options = f"fd={channel},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"silent", place.encode(), b"fuse.silent", 0, options):
            raise OSError(ctypes.get_errno(), "mount")

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    request = os.read(channel, 1 << 17)
                    unique = struct.unpack_from("Q", request, 8)[0]
                    if struct.unpack_from("I", request, 4)[0] == 26:
                        init = struct.pack("IIIIHHI", 7, 31, 0, 0, 12, 9, 4096).ljust(64, b"\0")
                        os.write(channel, struct.pack("IiQ", 16 + len(init), 0, unique) + init)

        threading.Thread(target=answer, daemon=True).start()
        try:
            yield Path(place)
        finally:
            # MNT_FORCE aborts the connection, which ends every wait
            libc.umount2(place.encode(), 1)
            os.close(channel)


def measure(probe: Path, arguments: list[str], load: Callable[[], None], reads: bool = True) -> str:
    process = subprocess.Popen(
        [str(probe), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    output = process.stdout
    started = threading.Event()
    written = [0]

    def read() -> None:
        while part := os.read(output.fileno(), 1 << 16):
            written[0] += len(part)
            started.set()
            if not reads:
                return

    threading.Thread(target=read, daemon=True).start()
    has_started = started.wait(TERM_SECONDS)
    load()
    time.sleep(0.5)
    most = resident_kib(process.pid) / 1024
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    process.send_signal(signal.SIGTERM)
    before = time.monotonic()
    try:
        process.wait(TERM_SECONDS)
        end = f"ended {time.monotonic() - before:.2f} s after SIGTERM"
    except subprocess.TimeoutExpired:
        end = f"still running {TERM_SECONDS} s after SIGTERM"
        process.kill()
    begin = "started" if has_started else f"not started within {TERM_SECONDS} s"
    return f"{most:7.1f} MiB  {cpu:6.2f} s CPU  {written[0] / 1e6:6.1f} MB  {begin}, {end}"


def long_command() -> None:
    with tempfile.NamedTemporaryFile() as file:
        child = subprocess.Popen(
            [sys.executable, "-c", LONG_COMMAND, file.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(4)
        child.communicate()


def bogus_reads() -> None:
    subprocess.run([sys.executable, "-c", BOGUS_READS], check=True)
    time.sleep(1)


def main() -> None:
    probes = [Path(name) for name in sys.argv[1:]] or [ROOT / "python/iolab/_probe/iolab-probe"]
    stall = float(os.environ.get("IOLAB_BENCH_SECONDS", "54"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for probe in probes:
        print(probe)
        syscall = ["--source", "syscall"]
        print("  1 GiB command line ", measure(probe, syscall, long_command))
        print("  2 M bogus reads    ", measure(probe, syscall, bogus_reads))
        counters = ["--source", "counters", "--interval-ms", "10"]
        label = f"  {stall:.0f} s stalled reader"
        print(label, measure(probe, counters, lambda: time.sleep(stall), reads=False))
        both = ["--source", "syscall", "--ring-kib", "65536"]
        print("  stalled, 2 M reads ", measure(probe, both, bogus_reads, reads=False))
        with silent_fuse():
            print("  silent FUSE        ", measure(probe, syscall, lambda: time.sleep(1)))


if __name__ == "__main__":
    main()
