# SPDX-License-Identifier: Apache-2.0
"""`iolab rig`: throw-away machines to measure on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ..base.completion import complete_rigs
from ..base.options import format_option
from ..base.output import say, tell, tell_json
from ..base.signals import signals_interrupt

if TYPE_CHECKING:
    from iolab.hosts.kinds.rig import RigState
    from iolab.hosts.rigs.builds import BuildRecord
    from iolab.hosts.rigs.kernels import KernelRecord
    from iolab.hosts.rigs.network import Link


class _Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes as fio writes them."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A size of more than nothing."""
        from iolab.base.errors import UsageError
        from iolab.base.units import parse_fio_size

        try:
            size = parse_fio_size(value)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        if size <= 0:
            self.fail(f"'{value}' is not a size", param, ctx)
        return size


class _Delay(click.ParamType):  # type: ignore[type-arg]
    """A duration, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds, more than none and at most 10."""
        from iolab.base.errors import UsageError
        from iolab.base.units import parse_fio_time

        try:
            seconds = parse_fio_time(value)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        if not 1e-6 <= seconds <= _MOST_DELAY_S:
            self.fail(f"'{value}' is not a delay from 1us to {_MOST_DELAY_S} s", param, ctx)
        return seconds


_MOST_DELAY_S = 10


_NAME = click.argument("name", metavar="NAME", default="openzfs")


@click.group("rig")
def command() -> None:
    """Disposable virtual machines with disks of a chosen speed: built once, started when needed,
    then deleted.

    'iolab run STUDY --host rig:NAME' measures on one.
    """


_RIG = click.argument("rig", metavar="RIG", default="openzfs", shell_complete=complete_rigs)
_FORMAT = format_option("text", "json")


@command.command()
@_RIG
@click.option(
    "--build",
    "builds",
    metavar="NAME=SOURCES",
    multiple=True,
    help="An additional build: NAME=DIRECTORY, NAME=REPOSITORY@REVISION, NAME=TARBALL or NAME=2.3, each with "
    "+FILE.patch for patches on top. Several are allowed; the second time compiles what has changed.",
)
@click.option(
    "--kernel",
    "kernels",
    metavar="NAME=PACKAGE|TREE",
    multiple=True,
    help="An additional kernel: NAME=PACKAGE[/SUITE] of Debian, or NAME=DIRECTORY to compile it; NAME alone is an "
    "existing one. Each --build is compiled for these too. Several are allowed.",
)
@click.option(
    "--host",
    metavar="USER@MACHINE",
    help="Make the builds on this machine, below /opt/iolab/builds, for its kernel.",
)
def build(rig: str, builds: tuple[str, ...], kernels: tuple[str, ...], host: str | None) -> int:
    """Build what is missing of a rig; needs root. The same command continues an interrupted build.

    With --host only the builds are made, on that machine, by the scripts of the rig.
    """
    from iolab.hosts.kinds.parse import ssh_host_named
    from iolab.hosts.rigs.builds import build_rig
    from iolab.hosts.rigs.host_builds import HostBuildMaker
    from iolab.hosts.rigs.kernels import parse_kernel
    from iolab.hosts.rigs.recipe import find_rig
    from iolab.hosts.rigs.source_tree import parse_request

    requests = [parse_request(text) for text in builds]
    kernel_requests = [parse_kernel(text) for text in kernels]
    if host is not None:
        _check_host_options(builds, kernels)
        with ssh_host_named(host) as machine:
            maker = HostBuildMaker(find_rig(rig), machine, say)
            for request in requests:
                record = maker.make(request)
                tell(f"{record.name:<16}{record.seconds:.0f} s")
        return 0
    stages = build_rig(
        find_rig(rig),
        requests,
        say,
        lambda record: tell(f"{record.name:<16}{record.seconds:.0f} s"),
        kernel_requests,
        lambda record: tell(f"{record.name:<16}{record.release}, {record.seconds:.0f} s"),
    )
    for stage in stages:
        tell(f"{stage.name:<16}{'existing' if stage.seconds is None else f'{stage.seconds:.0f} s'}")
    return 0


def _check_host_options(builds: tuple[str, ...], kernels: tuple[str, ...]) -> None:
    from iolab.base.errors import UsageError

    if kernels:
        raise UsageError(
            "builds are made for the kernel that the machine runs",
            where="--kernel",
            hint="leave it out with --host",
        )
    if not builds:
        raise UsageError("has no build to make", where="--host", hint="name it: --build NAME=TREE")


@command.command()
@_RIG
@click.option(
    "--delete",
    metavar="NAME",
    help="Delete a build with its sources; the next 'rig build' takes it out of the image.",
)
@click.option("--host", metavar="USER@MACHINE", help="The builds on this machine instead.")
@_FORMAT
def builds(rig: str, delete: str | None, host: str | None, style: str) -> int:
    """List builds of your own: sources, patches, version, compiler, and how the sources were
    configured."""
    from iolab.hosts.kinds.parse import ssh_host_named
    from iolab.hosts.kinds.rig import rig_home
    from iolab.hosts.rigs.builds import delete_build, records
    from iolab.hosts.rigs.host_builds import HostBuilds
    from iolab.hosts.rigs.recipe import find_rig

    programs: dict[str, list[str]] = {}
    if host is not None:
        with ssh_host_named(host) as machine:
            host_builds = HostBuilds(machine)
            if delete is not None:
                host_builds.delete(delete)
            rows, programs = host_builds.records(), host_builds.programs()
    else:
        home = rig_home(find_rig(rig).name)
        if delete is not None:
            delete_build(home, delete)
        rows = list(records(home))
    if style == "json":
        _tell_json_list("builds", rows, **({} if host is None else {"programs": programs}))
        return 0
    lines = [f"{record.name:<16}{_build_words(record)}" for record in rows]
    lines += [f"{key}  {', '.join(names)}" for key, names in programs.items()]
    tell(*(lines or ["there is no build of your own"]))
    return 0


def _tell_json_list(
    kind: str, rows: Iterable[BuildRecord | KernelRecord | RigState], **more: Any
) -> None:
    """A list of a kind as JSON, and `more` keys."""
    data = [record.as_data() for record in rows]
    tell_json({"schema": 1, "kind": kind, kind: data, **more})


def _build_words(record: BuildRecord) -> str:
    revision = f"; revision {record.revision[:12]}" if record.revision else ""
    kernels = ", ".join([record.kernel, *(kernel.release for kernel in record.kernels.values())])
    return (
        f"{record.version}; {record.sources}{revision}; sources {record.digest[:12]}; "
        f"kernel {kernels}; {record.compiler}; {record.seconds:.0f} s; {record.configure}"
    )


@command.command()
@_RIG
@click.option(
    "--delete",
    metavar="NAME",
    help="Delete a kernel; the next 'rig build' takes its modules out of the image.",
)
@_FORMAT
def kernels(rig: str, delete: str | None, style: str) -> int:
    """List the kernels that were added to a rig."""
    from iolab.hosts.kinds.rig import rig_home
    from iolab.hosts.rigs.kernels import delete_kernel, kernel_records
    from iolab.hosts.rigs.recipe import find_rig

    home = rig_home(find_rig(rig).name)
    if delete is not None:
        delete_kernel(home, delete)
    rows = list(kernel_records(home))
    if style == "json":
        _tell_json_list("kernels", rows)
        return 0
    lines = [f"{row.name:<16}{row.release}; {row.sources}; {row.seconds:.0f} s" for row in rows]
    tell(*(lines or ["no kernel was added"]))
    return 0


@command.command()
@_RIG
def check(rig: str) -> int:
    """Check whether a rig is built, or can be built here; changes nothing. Exit code 1 with the
    reason if it cannot."""
    from iolab.hosts.rigs.build import Builder
    from iolab.hosts.rigs.qemu import check_program
    from iolab.hosts.rigs.recipe import find_rig

    check_program()
    missing = Builder(find_rig(rig), say).check()
    tell(
        f"{rig} can be built: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        if missing
        else f"{rig} is built"
    )
    return 0


@command.command()
@_RIG
@click.option("--name", metavar="NAME", help="The machine's name. Default: the rig's.")
@click.option(
    "--disks",
    type=click.IntRange(0, 128),
    default=4,
    show_default=True,
    help="Data disks: /dev/disk/by-id/virtio-disk0...",
)
@click.option(
    "--disk-size",
    type=_Size(),
    default="8g",
    show_default=True,
    metavar="SIZE",
    help="Size of each; sparse files here.",
)
@click.option(
    "--disk-iops",
    type=click.IntRange(1),
    metavar="N",
    help="I/Os a second that each can do. Default: no limit.",
)
@click.option(
    "--disk-mbps",
    type=click.IntRange(1),
    metavar="N",
    help="MB/s (10^6 bytes) that each can do. Default: no limit.",
)
@click.option(
    "--fast-disks",
    type=click.IntRange(0, 8),
    default=0,
    metavar="N",
    help="Additional disks without a limit, for a cache or a log: /dev/disk/by-id/virtio-fast0...",
)
@click.option("--memory", type=_Size(), metavar="SIZE", help="Memory. Default: the recipe's.")
@click.option(
    "--cpus",
    type=click.IntRange(1, 64),
    metavar="N",
    help="CPUs. Default: this machine's, at most 4.",
)
@click.option(
    "--count",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Start N machines: NAME1, NAME2 and so on.",
)
@click.option(
    "--network",
    metavar="NETWORK",
    help="A private network, in which machines reach each other by name. The first machine starts it.",
)
@click.option(
    "--mbps",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Rate of the link to the network, in each direction, in 10^6 bits a second. Default: no limit.",
)
@click.option(
    "--delay",
    type=_Delay(),
    metavar="TIME",
    help="Delay of the link in each direction, such as 20ms. Default: none.",
)
@click.option(
    "--kernel",
    metavar="NAME",
    default="default",
    show_default=True,
    help="A kernel that 'iolab rig build --kernel' added; 'default' is the recipe's.",
)
@click.option(
    "--allow-reboot",
    is_flag=True,
    help="A reboot starts the machine again, with its files. Without it, the machine ends.",
)
@click.option(
    "--count-instructions",
    is_flag=True,
    help="The machine's clock counts instructions, 1 ns each: other work here does not change what is measured there. Its CPU is emulated.",
)
def up(rig: str, name: str | None, count: int | None, **more: Any) -> int:
    """Start a machine, or several, and wait until they accept connections."""
    from iolab.base.errors import UsageError
    from iolab.hosts.rigs.machine import up as start
    from iolab.hosts.rigs.recipe import find_rig
    from iolab.studies.plan.file.rig_tables import RigTable
    from iolab.studies.run.builds.ab import machine_options

    recipe = find_rig(rig)
    if count is not None and name is None:
        raise UsageError("needs a name for its machines", where="--count", hint="--name client")
    machine_name = _check_name(name or recipe.name, "machine")
    table = RigTable(**{key: more[key] for key in RigTable.model_fields if key in more})
    options = replace(
        machine_options(table, recipe),
        link=_link(more["network"], more["mbps"], more["delay"]),
        can_reboot=more["allow_reboot"],
        kernel=more["kernel"],
        counts_instructions=more["count_instructions"],
    )
    names = (
        [f"{machine_name}{number}" for number in range(1, count + 1)] if count else [machine_name]
    )
    with signals_interrupt():
        states = start(recipe.name, names, options, say)
    for state in states:
        address = f" at {state.address}" if state.address else ""
        tell(f"{state.name} is up{address}: iolab run STUDY --host rig:{state.name}")
    return 0


def _check_name(name: str, kind: str) -> str:
    """The name; UsageError where it is none."""
    from iolab.base.errors import UsageError

    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum()) or name.startswith((".", "-")) or len(name) > 48:
        raise UsageError(
            f"'{name}' is not a name of a {kind}", hint="up to 48 letters, digits, '-', '_' and '.'"
        )
    return name


def _link(network: str | None, mbps: int | None, delay: float | None) -> Link | None:
    """The link that the options describe; None without a network."""
    from iolab.base.errors import UsageError
    from iolab.hosts.rigs.network import Link

    if network is None:
        if mbps is not None or delay is not None:
            raise UsageError(
                "limits the link to a private network",
                where="--delay" if mbps is None else "--mbps",
                hint="name the network: --network lab",
            )
        return None
    _check_name(network, "network")
    return Link(network, mbps * 1_000_000 if mbps else None, delay or 0.0)


@command.command("list")
@_FORMAT
def list_machines(style: str) -> int:
    """List the machines that were started, and their networks."""
    from iolab.hosts.kinds.rig import machines
    from iolab.hosts.rigs.network import networks

    states, nets = machines(), networks()
    if style == "json":
        tell_json(
            {
                "schema": 1,
                "kind": "rigs",
                "machines": [state.as_data() for state in states],
                "networks": [network.as_data() for network in nets],
            }
        )
        return 0
    if not states:
        tell("no machine is up")
    for state in states:
        tell(_machine_line(state))
    for network in nets:
        names = ", ".join(f"{state.name} {state.address}" for state in network.members())
        ended = (
            "" if network.running else "; ended unexpectedly: 'iolab rig down --network' deletes it"
        )
        tell(f"network {network.name}: {names or 'no machine'}{ended}")
    return 0


def _machine_line(state: RigState) -> str:
    from iolab.base.units import format_quantity
    from iolab.hosts.kinds.rig import OWN_KERNEL

    limits = [
        f"{state.disk_iops} IOPS" if state.disk_iops else "",
        format_quantity(state.disk_bytes_per_s, "B/s", 3) if state.disk_bytes_per_s else "",
    ]
    limit_text = ", ".join(filter(None, limits)) or "no limit"
    link = [
        f"network {state.network}" if state.network else "",
        f"{state.link_bits_per_s / 1e6:g} Mbit/s" if state.link_bits_per_s else "",
        f"delay {state.link_delay_s * 1e3:g} ms" if state.link_delay_s else "",
    ]
    alive = "up" if state.running else "ended unexpectedly: 'iolab rig down' deletes its files"
    parts = [
        f"{state.disks} disks of {format_quantity(state.disk_bytes, 'B', 3)} ({limit_text})"
        f"{f' and {state.fast_disks} without a limit' if state.fast_disks else ''}",
        format_quantity(state.memory_bytes, "B", 3),
        f"{state.cpus} CPUs",
        state.accelerator,
        f"kernel {state.kernel}" if state.kernel != OWN_KERNEL else "",
        f"port {state.port}",
        *link,
    ]
    return f"{state.name:<16}{state.rig:<12}{alive}; {', '.join(filter(None, parts))}"


@command.command(context_settings={"ignore_unknown_options": True})
@_NAME
@click.argument("words", metavar="[COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def ssh(name: str, words: tuple[str, ...]) -> int:
    """Run a command in a machine, or a shell."""
    import subprocess

    from iolab.hosts.rigs.machine import command_line_of

    return subprocess.run(command_line_of(name, words), check=False, env=os.environ).returncode


@command.command()
@click.argument("names", metavar="[NAME...]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every machine.")
@click.option("--network", metavar="NETWORK", help="Every machine of a private network.")
def down(names: tuple[str, ...], everything: bool, network: str | None) -> int:
    """Stop machines and delete their disks. A network ends with its last machine."""
    from iolab.base.errors import UsageError
    from iolab.hosts.kinds.rig import machines
    from iolab.hosts.rigs.machine import down as end
    from iolab.hosts.rigs.network import end_unused, find_network

    members: list[str] = []
    if everything:
        members = [state.name for state in machines()]
    elif network is not None:
        members = [state.name for state in find_network(network).members()]
    else:
        names = names or ("openzfs",)
    for name in dict.fromkeys([*names, *members]):
        try:
            is_ended = end(name)
        except UsageError:
            if name in names:
                raise
            continue  # an interrupted 'rig up' has deleted it meanwhile
        tell(f"{name} {'is down' if is_ended else 'had ended unexpectedly; its files are deleted'}")
    end_unused()
    return 0
