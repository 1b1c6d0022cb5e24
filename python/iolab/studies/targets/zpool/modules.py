# SPDX-License-Identifier: Apache-2.0
"""The loaded OpenZFS: installed builds, parameters of the modules, and reloading them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, text_or_none

from ..commands import do

SWITCH = "openzfs-use"
"""Loads one of several builds: `openzfs-use BRANCH [PARAMETER=VALUE...]`, `--list` prints `* 2.1
2.1.11-1`, the loaded one starred."""
MODULES = ("spl", "zavl", "znvpair", "zunicode", "zlua", "zzstd", "icp", "zcommon", "zfs")
"""Modules of OpenZFS in the order of loading; from 2.2 on there are spl and zfs alone."""
_PARAMETERS = "/sys/module/zfs/parameters"

RECORD = "build.json"
"""In the directory of a build that iolab made."""

_IDENTIFY = (
    'for module; do cd "/sys/module/$module" 2>/dev/null || continue; echo "$module $(cat srcversion) '
    '$(od -An -v -tx1 -j16 notes/.note.gnu.build-id 2>/dev/null | tr -d " \\n")"; done'
)
"""Of a note of ELF the first 16 bytes are its lengths, its type and its name, GNU."""

_NOTE = "/run/iolab-openzfs"
"""What iolab loaded last in this boot: the inode of /sys/module/zfs, another one after each
loading, and how it was loaded."""


@dataclass(frozen=True)
class Build:
    """A build that the host has."""

    branch: str
    version: str
    loaded: bool


@dataclass(frozen=True)
class ModuleState:
    """What is loaded.

    Attributes:
        build: of `openzfs-use`, None for others. is_installed: whether modprobe loads the same.
    """

    is_loaded: bool
    build: str | None
    is_installed: bool


def builds(host: Host) -> list[Build]:
    """Those that `openzfs-use` knows; none where the host has no such thing."""
    if host.which(SWITCH) is None:
        return []
    build_list = []
    for line in do(host, [SWITCH, "--list"]).stdout.splitlines():
        loaded = line.startswith("*")
        fields = line.lstrip("* ").split()
        if len(fields) == 2:
            build_list.append(Build(fields[0], fields[1], loaded))
    return build_list


def directory_of(host: Host, build: str) -> str:
    """The directory of a build that `openzfs-use` knows."""
    directory, is_host, _ = (host.which(SWITCH) or "").rpartition(f"/.bin/{SWITCH}")
    return f"{directory if is_host else '/opt/openzfs'}/{build}"


def check_build(host: Host, build: str | None) -> None:
    """RunError where the host doesn't have the build."""
    if build is None:
        return
    if build.startswith("/"):
        directory_modules(host, build)
        return
    build_list = builds(host)
    if not build_list:
        raise RunError(
            f"'{host.name}' has no builds of OpenZFS to choose from",
            where="target.build",
            hint="make them there (iolab rig build --host), take a rig (iolab rig up openzfs), "
            'or name the directory of a build: target.build = "/path/to/zfs"',
        )
    if build not in [known_build.branch for known_build in build_list]:
        raise RunError(
            f"'{host.name}' has no OpenZFS {build}",
            where="target.build",
            hint=f"there are: {', '.join(known_build.branch for known_build in build_list)}",
        )


def is_loaded(host: Host) -> bool:
    """Whether any OpenZFS is loaded."""
    return text_or_none(host, "/sys/module/zfs/version") is not None or host.is_directory(
        "/sys/module/zfs"
    )


def version(host: Host) -> str:
    """Of the loaded modules; empty where none are."""
    return text_or_none(host, "/sys/module/zfs/version") or ""


def parameters(host: Host) -> dict[str, str]:
    """Every parameter of the zfs module with its value."""
    # One program for all: a slow or far host would need many seconds to be asked for each of some
    # hundred.
    lines = host.run(["grep", "-rsH", "", _PARAMETERS], timeout=120).stdout.splitlines()
    return dict(line.removeprefix(f"{_PARAMETERS}/").split(":", 1) for line in lines if ":" in line)


def loaded_by_iolab(host: Host) -> bool:
    """Whether iolab loaded the modules that are loaded now; False where somebody else did since,
    such as a variant's set-up."""
    inode = (text_or_none(host, _NOTE) or "").partition(" ")[0]
    return bool(inode) and inode == _inode(host)


def as_wanted(host: Host, build: str | None, before: str | None, wanted: Mapping[str, str]) -> bool:
    """Whether the loaded modules are those of a build, with these parameters and no others that
    iolab set.

    Without a build: whatever a set-up loaded, else what was loaded when the study began (`before`).
    """
    if not is_loaded(host):
        return False
    ours = loaded_by_iolab(host)
    expected = build or (before if ours else None)
    if expected is not None and not is_loaded_build(host, expected):
        return False
    if ours:
        return (text_or_none(host, _NOTE) or "").partition(" ")[2] == _how(wanted)
    return not wanted


def is_loaded_build(host: Host, build: str) -> bool:
    """Whether the modules of a build, named or given by its directory, are the loaded ones."""
    if build.startswith("/"):
        return _same_modules(host, directory_modules(host, build))
    return any(candidate.branch == build and candidate.loaded for candidate in builds(host))


def _how(wanted: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(wanted.items()))


def _inode(host: Host) -> str:
    return host.run(["stat", "-c", "%i", "/sys/module/zfs"]).stdout.strip()


def load(host: Host, build: str | None, wanted: Mapping[str, str]) -> None:
    """Reload a build's modules (for None the loaded ones) with these parameters; RunError if that
    is impossible.

    No pool may be imported; other pools are never exported for it. If the loaded modules are not
    the host's own, and their files are unknown, they cannot be reloaded: RunError. The host's own
    are never loaded instead.
    """
    words = [f"{name}={value}" for name, value in wanted.items()]
    if build is not None and build.startswith("/"):
        _load_directory(host, build, words)
    elif build_list := builds(host):
        branch = build or next(
            (known_build.branch for known_build in build_list if known_build.loaded), None
        )
        if branch is None and is_loaded(host):
            raise _unknown_source(host)
        branch = branch or build_list[0].branch
        do(host, [SWITCH, branch, *words], where=f"OpenZFS {branch}", timeout=300)
    else:
        if is_loaded(host):
            if not _is_installed(host):
                raise _unknown_source(host)
            _check_no_pools(host)
            do(
                host,
                ["modprobe", "-r", "zfs"],
                where=host.name,
                hint="something still uses the modules",
                timeout=120,
            )
        do(
            host,
            ["modprobe", "zfs", *words],
            where=host.name,
            hint="'dmesg' has the kernel's words",
            timeout=120,
        )
    note = f"{_inode(host)} {_how(wanted)}"
    do(host, ["sh", "-c", 'printf "%s\\n" "$1" > "$0"', _NOTE, note], where=_NOTE)
    for name, value in wanted.items():
        current = text_or_none(
            host, f"/sys/module/{'spl' if name.startswith('spl_') else 'zfs'}/parameters/{name}"
        )
        if current is None:
            raise RunError(
                f"OpenZFS {version(host)} has no parameter {name}", where="target.module_parameters"
            )
        if current != value:
            raise RunError(
                f"the parameter {name} is {current} instead of {value}",
                where="target.module_parameters",
                hint="the module has limits of its own; write the value that it takes",
            )


def state(host: Host) -> ModuleState:
    """What is loaded now."""
    build = next((build.branch for build in builds(host) if build.loaded), None)
    return ModuleState(is_loaded(host), build, _is_installed(host))


def restore(host: Host, before: ModuleState) -> None:
    """Have the modules that were loaded when a study began: a build, the host's own, or none.

    RunError while pools are imported, or something else uses the modules: they stay loaded.
    """
    try:
        if before.build is not None:
            load(host, before.build, {})
            return
        if before.is_loaded and not before.is_installed:
            raise _unknown_source(host)
        if builds(host):
            do(host, [SWITCH, "--none"], timeout=300)
        else:
            _unload(host)
        do(host, ["sh", "-c", 'rm -f -- "$0"', _NOTE])
        if before.is_loaded:
            do(host, ["modprobe", "zfs"], timeout=120)
    except RunError as error:
        raise RunError(
            f"the modules of OpenZFS are not as they were before the study: {error.message}",
            where=host.name,
            hint=error.hint,
        ) from None


def directory_modules(host: Host, directory: str) -> dict[str, str]:
    """Modules of OpenZFS below a directory, by name in the order of loading: a source tree that was
    built, or a tree for modprobe -d.

    RunError where zfs and spl aren't among them.
    """
    modules: dict[str, str] = {}
    for path in host.run(
        ["find", directory, "-name", "*.ko", "-not", "-path", "*/tests/*"], timeout=120
    ).stdout.splitlines():
        modules.setdefault(path.rpartition("/")[2].removesuffix(".ko"), path)
    if not {"spl", "zfs"} <= set(modules):
        raise RunError(
            "has no modules zfs.ko and spl.ko",
            where=directory,
            hint="build them there first, or name another directory",
        )
    return {name: modules[name] for name in MODULES if name in modules}


def loaded_modules(host: Host) -> dict[str, dict[str, str]]:
    """What identifies each loaded module of OpenZFS: its `srcversion`, and its `build_id` where it
    has one."""
    said = host.run(["sh", "-c", _IDENTIFY, "sh", *MODULES]).stdout.splitlines()
    versions = {}
    for line in said:
        name, _, rest = line.partition(" ")
        source, _, build_id = rest.partition(" ")
        if name in MODULES and source:
            versions[name] = {"srcversion": source, **({"build_id": build_id} if build_id else {})}
    return versions


def build_sources(host: Host, build: str) -> dict[str, str]:
    """The srcversion of each module of a build's files for the kernel that runs, by name; empty if
    they don't exist."""
    release = text_or_none(host, "/proc/sys/kernel/osrelease") or ""
    build_directory = build if build.startswith("/") else directory_of(host, build)
    directory = f"{build_directory}/lib/modules/{release}"
    if build.startswith("/") or not host.is_directory(directory):
        directory = build_directory
    try:
        files = directory_modules(host, directory)
    except RunError:
        return {}
    return {name: source for name, path in files.items() if (source := _srcversion(host, path))}


def build_record(host: Host, build: str) -> dict[str, Any]:
    """`build.json` of a build that iolab made: its sources, patches, compiler and build-ids; empty
    where there is none."""
    text = text_or_none(host, f"{directory_of(host, build)}/{RECORD}")
    try:
        record = json.loads(text or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def loaded_sources(host: Host) -> dict[str, str]:
    """The srcversion of each loaded module of OpenZFS, by name."""
    sources = {name: text_or_none(host, f"/sys/module/{name}/srcversion") for name in MODULES}
    return {name: text.strip() for name, text in sources.items() if text}


def _load_directory(host: Host, directory: str, words: Sequence[str]) -> None:
    files = directory_modules(host, directory)
    _unload(host)
    for name, path in files.items():
        own = (
            [word for word in words if word.startswith("spl_") == (name == "spl")]
            if name in ("spl", "zfs")
            else []
        )
        do(
            host,
            ["insmod", path, *own],
            where=path,
            hint="'dmesg' has the kernel's words",
            timeout=120,
        )
    if not _same_modules(host, files):
        raise RunError("the loaded modules aren't those of this directory", where=directory)


def _unload(host: Host) -> None:
    _check_no_pools(host)
    for name in reversed(MODULES):
        if host.is_directory(f"/sys/module/{name}"):
            do(
                host,
                ["rmmod", name],
                where=host.name,
                hint="something still uses the modules",
                timeout=120,
            )


def _same_modules(host: Host, files: Mapping[str, str]) -> bool:
    loaded = loaded_sources(host)
    return bool(loaded) and loaded == {
        name: _srcversion(host, path) for name, path in files.items()
    }


def _is_installed(host: Host) -> bool:
    """Whether modprobe would load the loaded zfs; True if that is unknown."""
    loaded, own = loaded_sources(host).get("zfs"), _srcversion(host, "zfs")
    return not loaded or not own or loaded == own


def _srcversion(host: Host, module: str) -> str:
    return host.run(["modinfo", "-F", "srcversion", module]).stdout.strip()


def _check_no_pools(host: Host) -> None:
    pools = (
        do(host, ["zpool", "list", "-H", "-o", "name"]).stdout.split() if is_loaded(host) else []
    )
    if pools:
        raise RunError(
            f"the modules can't be reloaded: pools are imported: {', '.join(pools)}",
            where=host.name,
            hint="export them, or leave module_parameters and reload out",
        )


def _unknown_source(host: Host) -> RunError:
    return RunError(
        "the loaded OpenZFS is not the installed one, which would be loaded in its place",
        where=host.name,
        hint='name the directory of its modules: target.build = "/path/to/zfs"',
    )
