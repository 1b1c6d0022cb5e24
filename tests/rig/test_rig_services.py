# SPDX-License-Identifier: Apache-2.0
"""File services of the rig: what clients of its NFS server count themselves, and what is recorded
of it on both sides."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iolab.cli.main import run as iolab
from iolab.hosts.kinds.rig import RigHost, RigOptions, machines, running_machine
from iolab.hosts.rigs.machine import down, up
from iolab.hosts.rigs.network import Link
from iolab.hosts.rigs.qemu import Disks, MachineOptions
from iolab.hosts.ssh.remote_paths import scratch_on
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.engine.snapshot import snapshot
from iolab.recordings.ask.query import query
from iolab.recordings.store.base.counts import HeatCounts
from iolab.recordings.store.read.recording import Recording
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.zpool.options import ZpoolOptions
from iolab.studies.targets.zpool.target import ZpoolTarget
from support.host_names import names_from
from support.waiting import until

pytestmark = pytest.mark.rig

RIG = "IOLAB_TEST_RIG"


@dataclass(frozen=True)
class Client:
    """A network namespace with an address of its own, a mount from there, and its load.

    Attributes:
        name: of the namespace. options: of the mount. version: as the source names it. block,
        amount: bytes of each operation, and of all.
    """

    name: str
    number: int
    options: str
    version: str
    block: int
    amount: int

    @property
    def address(self) -> str:
        return f"10.9.{self.number}.2"

    @property
    def server(self) -> str:
        return f"10.9.{self.number}.1"

    @property
    def mount(self) -> str:
        return f"/mnt/{self.name}"


CLIENTS = (
    Client("three", 3, "vers=3,nolock", "v3", 8192, 1 << 20),
    Client("four", 4, "vers=4.2", "v4", 16384, 2 << 20),
)
JOIN = """
set -e
ip netns add "$1"
ip link add "veth-$1" type veth peer name eth0 netns "$1"
ip address add "$2/24" dev "veth-$1"; ip link set "veth-$1" up
ip -n "$1" address add "$3/24" dev eth0; ip -n "$1" link set eth0 up; ip -n "$1" link set lo up
mkdir -p "/mnt/$1"
"""
LEAVE = """
for name in three four; do
  umount -f -l "/mnt/$name"; ip netns delete "$name"; ip link delete "veth-$name"; rmdir "/mnt/$name"
done
exit 0
"""


@dataclass(frozen=True)
class Service:
    """A server of files. Scripts: `start` and `mount` get the directory; `mount` then the client's
    name, the server's address and the options for this client. `programs`: what they need."""

    programs: tuple[str, ...]
    start: str
    mount: str
    stop: str


SERVICES = {
    "nfs": Service(
        ("exportfs", "mount.nfs"),
        """
set -e
mkdir -p /etc/nfs.conf.d
printf '[nfsd]\\nthreads=4\\ngrace-time=10\\nlease-time=10\\n' > /etc/nfs.conf.d/iolab-test.conf
systemctl start nfs-server
for network in 10.9.0.0/16 192.168.77.0/24; do
  exportfs -o rw,sync,no_subtree_check,no_root_squash,insecure,fsid=1 "$network:$1"
done
""",
        'nsenter --net="/run/netns/$2" mount -t nfs -o "$4,hard,noatime,actimeo=600" "$3:$1" "/mnt/$2"',
        """
exportfs -ua
systemctl stop nfs-server nfs-mountd rpc-statd rpcbind.socket rpcbind nfs-idmapd nfsdcld
rm -f /etc/nfs.conf.d/iolab-test.conf
exit 0
""",
    ),
    "smb": Service(
        ("smbd", "smbstatus", "testparm", "mount.cifs"),
        """
set -e
cat > /run/iolab-smb.conf <<END
[global]
server role = standalone server
map to guest = Bad User
load printers = no
disable spoolss = yes
smb ports = 445
[share]
path = $1
read only = no
guest ok = yes
force user = root
END
systemd-run --quiet --unit=iolab-smbd smbd --foreground --no-process-group -s /run/iolab-smb.conf
until ss -Hltn 'sport = 445' | grep -q .; do sleep 0.5; done
""",
        'nsenter --net="/run/netns/$2" mount -t cifs -o username=iolab,password=iolab,vers=3.1.1,cache=none "//$3/share" "/mnt/$2"',
        "systemctl stop iolab-smbd; systemctl reset-failed iolab-smbd; rm -f /run/iolab-smb.conf; exit 0",
    ),
}


def shell(host: RigHost, script: str, *arguments: str, seconds: float = 300) -> str:
    done = host.run(["sh", "-c", script, "sh", *arguments], timeout=seconds)
    assert done.exit_code == 0, (script, done.stderr)
    return done.stdout


@pytest.fixture
def far(host: RigHost) -> Iterator[RigHost]:
    """A machine of its own behind a slow link to the server, in the server's network."""
    server = running_machine(os.environ[RIG])
    if not server.network:
        pytest.skip("the machine is in no private network: 'make rig-test' starts one that is")
    name = f"{server.name}-far"
    if any(state.name == name and state.running for state in machines()):
        with RigHost(RigOptions(name=name)) as machine:  # kept from an earlier call, by hand
            yield machine
        return
    link = Link(server.network, FAR_BITS_PER_S, FAR_DELAY_S)
    up(server.rig, [name], MachineOptions(Disks(0, 1), 768 << 20, 1, link), print)
    try:
        with RigHost(RigOptions(name=name)) as machine:
            yield machine
    finally:
        down(name)


@pytest.fixture
def served(host: RigHost, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A data set that a server of the rig (the parameter) has, mounted by every client."""
    service = SERVICES[request.param]
    for program in service.programs:
        if host.run(["sh", "-c", f"command -v {program}"]).exit_code != 0:
            pytest.skip(f"the rig has no {program}: build it again ('iolab rig build')")
    options = ZpoolOptions.model_validate(
        {"layout": "mirror:2", "devices": "/dev/disk/by-id/virtio-disk*"}
    )
    scratch = scratch_on(host, tmp_path / "scratch")
    with contextlib.ExitStack() as stack:
        target = ZpoolTarget(options, host, scratch, Permissions(destructive=True))
        stack.callback(target.close)
        target.open(1 << 24)
        path = target.begin(RunContext("0001-aa", "cell", 1, 1 << 24)).path
        stack.callback(lambda: host.run(["sh", "-c", service.stop], timeout=120))
        shell(host, service.start, path)
        stack.callback(lambda: host.run(["sh", "-c", LEAVE], timeout=120))
        for client in CLIENTS:
            shell(host, JOIN, client.name, client.server, client.address)
            shell(host, service.mount, path, client.name, client.server, client.options)
            # the file is there beforehand, so that fio needs no other operation to make it
            shell(host, 'head -c "$2" /dev/urandom > "$1"', f"{path}/{client.name}", "4194304")
        yield path


def samples_until(place: Path, source: str) -> int:
    """When counters of a source were last read, 0 before."""
    if not (place / "recording.json").exists():
        return 0
    ends = snapshot(Recording(place), "samples").bounds(source)
    return 0 if ends is None else ends[1]


@contextlib.contextmanager
def recording_of(host: RigHost, place: Path, events: str, samples: str) -> Iterator[None]:
    """Record a source of events of the rig, and counters of which some are `samples`, from before
    the block until after it."""
    recorder = subprocess.Popen(
        [
            *(sys.executable, "-m", "iolab", "record", events, "counters", "--host", host.name),
            *("--budget", "none", "--duration", "900s", "-q", "-o", str(place)),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: samples_until(place, samples) > 0, "a reading of counters", 300)
        yield
        after = host.clock.realtime_ns()
        until(
            lambda: samples_until(place, samples) > after + 2 * 10**9,
            "readings after the load",
            300,
        )
    finally:
        assert iolab(["record", "--stop", str(place)]) == 0
        _, errors = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, errors


def load(host: RigHost) -> list[dict[str, Any]]:
    """Put every client's load on the server; the clients' jobs of fio."""
    words = [f"{client.name}:{client.block}:{client.amount}" for client in CLIENTS]
    text = shell(host, LOAD, *words, seconds=600)
    jobs = []
    while text.strip():
        job, end = json.JSONDecoder().raw_decode(text.lstrip())
        jobs.append(job["jobs"][0])
        text = text.lstrip()[end:]
    return jobs


def totals(recording: Recording, statistic: str) -> dict[str, int]:
    """Totals by key, of a series under ""; what is 0 is left out."""
    answer = query(recording, statistic)
    if isinstance(answer, Series):
        return {"": answer.total}
    assert isinstance(answer, Stack)
    return {key: sum for key, sum in zip(answer.keys, answer.totals, strict=True) if sum}


def mean_latency(recording: Recording, statistic: str) -> tuple[float, float]:
    """The mean of a map of latency lies between these (low, high), in ns."""
    heat = query(recording, f"{statistic}[latency]")
    assert isinstance(heat, HeatCounts)
    bounds = heat.grid.bounds(0, int(heat.index.max()))
    low, high = (float((heat.count * bounds[heat.index + end]).sum()) for end in (0, 1))
    return low / heat.total, high / heat.total


FAR_BITS_PER_S = 20_000_000
FAR_DELAY_S = 0.02
FAR_MOUNT = (
    'mkdir -p /mnt/lab && mount -t nfs -o vers=4.2,hard,noatime,actimeo=600 "$1:$2" /mnt/lab'
)
FAR_LOAD = """
fio --name=far --filename=/mnt/lab/far --rw=randread --bs=16k --size=4m --io_size=1m --direct=1 \\
  --ioengine=psync --output-format=json
"""
CONNECT = """
import socket, sys, time
begin = time.monotonic()
with socket.create_connection((sys.argv[1], 22), timeout=60):
    print(time.monotonic() - begin)
"""
LOAD = """
for client in "$@"; do
  name=${client%%:*}; rest=${client#*:}
  fio --name="$name" --filename="/mnt/$name/$name" --rw=randrw --bs="${rest%%:*}" --size=4m \
    --io_size="${rest#*:}" --direct=1 --ioengine=psync --output-format=json --output="/tmp/$name.json" \
    >/dev/null 2>&1 &
done
wait
for client in "$@"; do cat "/tmp/${client%%:*}.json"; rm "/tmp/${client%%:*}.json"; done
"""


COLD_READS = 4
COLD = """
sync; echo 3 > /proc/sys/vm/drop_caches
dd "if=$1" of=/dev/null "bs=$2" count="$3" iflag=direct status=none
"""


@pytest.mark.parametrize("served", ["nfs"], indirect=True)
def test_operations_by_client_are_those_that_fio_counted(
    host: RigHost, served: str, tmp_path: Path
) -> None:
    place = tmp_path / "r"
    with recording_of(host, place, "nfs", "nfs-client"):
        jobs = load(host)
        # a client of NFS 3 reads by the handle that it has: a server that was started again, and has
        # forgotten the file's directory, may know no name
        shell(host, "systemctl stop nfs-server")
        shell(host, SERVICES["nfs"].start, served)
        three = CLIENTS[0]
        file = f"{three.mount}/{three.name}"
        shell(host, COLD, file, str(three.block), str(COLD_READS))
    recording = Recording(place)
    # a server that ends leaves requests without a reply
    assert not [
        loss
        for loss in recording.losses()
        if loss["source"] in ("nfs", "nfs-client") and loss["kind"] != "unpaired"
    ]
    assert set(totals(recording, "nfs.ops[client]")) == {client.address for client in CLIENTS}
    for client, job in zip(CLIENTS, jobs, strict=True):
        of_client = f"[client={client.address}]"
        assert set(totals(recording, f"nfs.ops{of_client}[version]")) == {client.version}
        of_mount = f"[server={client.server}][mount={client.mount}]"
        for op in ("read", "write"):
            cold = COLD_READS if (client, op) == (three, "read") else 0
            ops, moved = job[op]["total_ios"] + cold, job[op]["io_bytes"] + cold * client.block
            assert ops > 20
            server = f"nfs.ops{of_client}[version={client.version}][op={op}]"
            assert totals(recording, server) == {"": ops}
            assert totals(recording, f"nfs.bytes{of_client}[op={op}]") == {"": moved}
            # newer clients of NFS 4.2 read by READ_PLUS; the kernel counts all data under READ
            used = totals(recording, f"nfs.client.ops{of_mount}[procedure]")
            name = "READ_PLUS" if op == "read" and "READ_PLUS" in used else op.upper()
            procedure = f"{of_mount}[procedure={name}]"
            assert used[name] == ops
            assert totals(recording, f"nfs.client.bytes{of_mount}[op={op}]") == {"": moved}
            sizes = query(recording, f"{server}[size]")
            assert isinstance(sizes, HeatCounts)
            assert sizes.total == ops
            # the server's part is in what the client's mount waited, and that in what fio did
            latency = query(recording, f"nfs.client.latency{procedure}")
            assert isinstance(latency, Series)
            waited = latency.mean
            low, high = mean_latency(recording, server)
            mean: float = job[op]["clat_ns"]["mean"]
            print(f"{client.version} {op}: {ops} of {ops}; server {low / 1e6:.1f}..{high / 1e6:.1f}"
                  f" ms, mount {waited / 1e6:.1f} ms, fio {mean / 1e6:.1f} ms")  # fmt: skip
            assert 0 < low < mean
            assert low - 2e6 < waited < mean + 1e6  # the kernel counts whole milliseconds
        files = totals(recording, f"nfs.ops{of_client}[op=read,write][file]")
        named, cold = files.pop(f"{served}/{client.name}"), sum(files.values())
        print(f"{client.version}: {named} operations with the path, {cold} with a hash")
        assert all(name.startswith("fh:") for name in files), files
        assert cold <= (COLD_READS if client == three else 0), files
        assert named + cold == sum(
            totals(recording, f"nfs.ops{of_client}[op={op}]")[""] for op in ("read", "write")
        )
        procedures = [
            totals(recording, f"nfs.client.ops{of_mount}[procedure]"),
            totals(recording, f"nfs.ops{of_client}[procedure]"),
        ]
        # of a compound of NFS 4 the client counts the one operation that it is named after, and OPEN
        # without attributes under a name of its own
        same = procedures[0].keys() | procedures[1].keys()
        if client.version == "v4":
            same = {"READ", "READ_PLUS", "WRITE", "CLOSE"}
        mounted, served_ops = ({key: side.get(key) for key in same} for side in procedures)
        assert mounted == served_ops


@pytest.mark.parametrize("served", ["smb"], indirect=True)
def test_calls_of_samba_by_client_are_those_that_fio_counted(
    host: RigHost, served: str, tmp_path: Path
) -> None:
    place = tmp_path / "r"
    shell(host, 'head -c 65536 /dev/urandom > "$1/first"', served)

    def has_shares() -> bool:
        # calls before the first answer of smbstatus and testparm have neither share nor user
        for client in CLIENTS:
            shell(host, 'dd "if=$1/first" of=/dev/null bs=4k iflag=direct count=1', client.mount)
        known = totals(Recording(place), "smb.ops[op=read][share=share][client]")
        return {client.address for client in CLIENTS} <= known.keys()

    with recording_of(host, place, "syscall", "cpu"):
        until(has_shares, "shares of both clients", 300)
        jobs = load(host)
    recording = Recording(place)
    assert not [
        loss
        for loss in recording.losses()
        if loss["source"] == "syscall" and loss["kind"] in ("overrun", "gap")
    ]
    for client, job in zip(CLIENTS, jobs, strict=True):
        of_process = f"[process=smbd][client={client.address}]"
        of_share = f"[client={client.address}][share=share]"
        for op in ("read", "write"):
            expected = (job[op]["total_ios"], job[op]["io_bytes"])
            assert expected[0] > 20
            ops = totals(recording, f"file.ops{of_process}[op={op}][file]")
            [file] = [name for name in ops if name.endswith(f"/0001-aa/{client.name}")]
            of_file = f"{of_share}[file={file}][op={op}]"
            counted = [
                (ops[file], totals(recording, f"file.bytes{of_process}[op={op}][file]")[file]),
                (totals(recording, f"smb.ops{of_file}")[""],
                 totals(recording, f"smb.bytes{of_file}")[""]),
            ]  # fmt: skip
            print(f"smb {client.name} {op}: {counted}, fio {expected}")
            assert counted == [expected] * 2
            # no other client has this file
            assert set(totals(recording, f"smb.ops[op={op}][file={file}][client]")) == {
                client.address
            }


@pytest.mark.parametrize("served", ["nfs"], indirect=True)
def test_a_client_behind_a_slow_link_is_named(
    host: RigHost, far: RigHost, served: str, tmp_path: Path
) -> None:
    server = running_machine(os.environ[RIG])
    own = running_machine(f"{server.name}-far")
    # A round trip takes two delays. No other machine answers.
    trips = [float(shell(far, 'python3 -c "$1" "$2"', CONNECT, server.name)) for _ in range(3)]
    assert min(trips) >= 2 * FAR_DELAY_S
    assert far.run(["timeout", "5", "python3", "-c", CONNECT, "10.0.2.2"]).exit_code != 0
    shell(host, 'head -c 4194304 /dev/urandom > "$1/far"', served)
    shell(far, FAR_MOUNT, server.name, served)
    place = tmp_path / "r"
    try:
        with recording_of(host, place, "nfs", "nfs-client"):
            near_jobs = load(host)
            [far_job] = json.loads(shell(far, FAR_LOAD, seconds=600))["jobs"]
    finally:
        far.run(["umount", "-f", "-l", "/mnt/lab"], timeout=120)
    names = tmp_path / "names"
    near = CLIENTS[1]
    names.write_text(f"{own.address} far\n{near.address} near\n", "utf-8")
    recording = Recording(place)
    assert not [loss for loss in recording.losses() if loss["source"] == "nfs"]
    read = far_job["read"]
    with names_from(names):
        assert totals(recording, "nfs.ops[client=far][op=read]") == {"": read["total_ios"]}
        assert totals(recording, "nfs.bytes[client=far][op=read]") == {"": read["io_bytes"]}
        assert {"far", "near"} <= totals(recording, "nfs.ops[client]").keys()
        latency = query(recording, "nfs.ops[client=far][op=read][latency]")
    # The server answers both alike; a reply takes longer to `far`, by the link. The fastest reads
    # show it: the others also wait for emulated CPUs.
    fastest = {name: job["read"]["clat_ns"]["min"] / 1e9
               for name, job in (("far", far_job), ("near", near_jobs[1]))}  # fmt: skip
    assert isinstance(latency, HeatCounts)
    served_s = latency.grid.bounds(0, int(latency.index.max()))[latency.index.min() + 1] / 1e9
    print(f"fastest reads: far {fastest['far']:.3f} s, near {fastest['near']:.3f} s, "
          f"the server's part of far's below {served_s:.4f} s")  # fmt: skip
    transfer_s = 16384 * 8 / FAR_BITS_PER_S
    assert fastest["far"] >= 2 * FAR_DELAY_S + transfer_s
    assert max(fastest["near"], served_s) < fastest["far"]
