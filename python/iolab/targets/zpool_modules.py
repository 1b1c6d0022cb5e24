"""Which OpenZFS is loaded: builds that stand side by side, parameters of the modules, and their loading anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import RunError
from ..hosts.base.host import Host, text_or_none
from .commands import do

SWITCH = "openzfs-use"
"""Loads one of several builds: `openzfs-use BRANCH [PARAMETER=VALUE...]`, `--list` prints `* 2.1 2.1.11-1`, the loaded one starred."""
_PARAMETERS = "/sys/module/zfs/parameters"

_NOTE = "/run/iolab-openzfs"
"""What iolab loaded last in this boot: the inode of /sys/module/zfs, another one after each loading, and how it was loaded."""


@dataclass(frozen=True)
class Build:
    """A build that the host has."""

    branch: str
    version: str
    loaded: bool


def builds(host: Host) -> list[Build]:
    """Those that `openzfs-use` knows; none where the host has no such thing."""
    if host.which(SWITCH) is None:
        return []
    found = []
    for line in do(host, [SWITCH, "--list"]).stdout.splitlines():
        loaded = line.startswith("*")
        fields = line.lstrip("* ").split()
        if len(fields) == 2:
            found.append(Build(fields[0], fields[1], loaded))
    return found


def check_build(host: Host, build: str | None) -> None:
    """RunError where the host doesn't have the build."""
    if build is None:
        return
    known = builds(host)
    if not known:
        raise RunError(f"'{host.name}' has no builds of OpenZFS to choose from", where="target.build",
                       hint=f"take a host with {SWITCH} (iolab rig up openzfs), or load your own build by a variant's setup")
    if build not in [one.branch for one in known]:
        raise RunError(f"'{host.name}' has no OpenZFS {build}", where="target.build",
                       hint=f"there are: {', '.join(one.branch for one in known)}")


def is_loaded(host: Host) -> bool:
    """Whether any OpenZFS is loaded."""
    return text_or_none(host, "/sys/module/zfs/version") is not None or host.is_directory("/sys/module/zfs")


def version(host: Host) -> str:
    """Of the loaded modules; empty where none are."""
    return text_or_none(host, "/sys/module/zfs/version") or ""


def parameters(host: Host) -> dict[str, str]:
    """Every parameter of the zfs module with its value."""
    # One program for all: a slow or far host would need many seconds to be asked for each of some hundred.
    lines = host.run(["grep", "-rsH", "", _PARAMETERS], timeout=120).stdout.splitlines()
    return dict(line.removeprefix(f"{_PARAMETERS}/").split(":", 1) for line in lines if ":" in line)


def as_wanted(host: Host, build: str | None, wanted: Mapping[str, str]) -> bool:
    """Whether the loaded modules are of that build (any, for None) and have these parameters, and no others that iolab set."""
    if not is_loaded(host):
        return False
    loaded = next((one.branch for one in builds(host) if one.loaded), None)
    if build is not None and loaded != build:
        return False
    inode, _, how = (text_or_none(host, _NOTE) or "").partition(" ")
    if inode and inode == _inode(host):
        return how == _how(wanted)
    return not wanted  # loaded by somebody else, with whatever he wanted


def _how(wanted: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(wanted.items()))


def _inode(host: Host) -> str:
    return host.run(["stat", "-c", "%i", "/sys/module/zfs"]).stdout.strip()


def load(host: Host, build: str | None, wanted: Mapping[str, str]) -> None:
    """Load a build's modules (the loaded one's, or the host's own) anew with these parameters; RunError where that can't be done.

    No pool may be imported; pools of others are never exported for it.
    """
    words = [f"{name}={value}" for name, value in wanted.items()]
    known = builds(host)
    if known:
        branch = build or next((one.branch for one in known if one.loaded), known[0].branch)
        do(host, [SWITCH, branch, *words], where=f"OpenZFS {branch}", timeout=300)
    else:
        if is_loaded(host):
            others = do(host, ["zpool", "list", "-H", "-o", "name"]).stdout.split()
            if others:
                raise RunError(f"the modules can't be loaded anew: pools are imported: {', '.join(others)}", where=host.name,
                               hint="export them, or leave module_parameters and reload out")
            do(host, ["modprobe", "-r", "zfs"], where=host.name, hint="something still uses the modules", timeout=120)
        do(host, ["modprobe", "zfs", *words], where=host.name, hint="'dmesg' has the kernel's words", timeout=120)
    note = f"{_inode(host)} {_how(wanted)}"
    do(host, ["sh", "-c", 'printf "%s\\n" "$1" > "$0"', _NOTE, note], where=_NOTE)
    for name, value in wanted.items():
        here = text_or_none(host, f"/sys/module/{'spl' if name.startswith('spl_') else 'zfs'}/parameters/{name}")
        if here is None:
            raise RunError(f"OpenZFS {version(host)} has no parameter {name}", where="target.module_parameters")
        if here != value:
            raise RunError(f"the parameter {name} is {here} instead of {value}", where="target.module_parameters",
                           hint="the module has limits of its own; write the value that it takes")
