# SPDX-License-Identifier: Apache-2.0
"""A machine in memory with ZFS: pools, file systems and builds as far as the target asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iolab.base.clock import FakeClock
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram

DISKS = {f"disk{number}": f"vd{letter}" for number, letter in enumerate("bcdefghijkl")}
FREE = 8 << 30


@dataclass
class FakeZfs:
    """What the programs know.

    Attributes:
        pools: name to (mount point, words of the layout); datasets: names; labels: device node to
        pool's name. loaded: branch of the build; reloads: how it was loaded each time. said: every
        command, in order. refuse: words that zpool create ends with. loads: how often modules were
        loaded. directories: path of a module's file to its srcversion; a module that is loaded from
        there has it.
    """

    pools: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    datasets: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    loaded: str = "2.1"
    reloads: list[list[str]] = field(default_factory=list)
    said: list[list[str]] = field(default_factory=list)
    refuse: str = ""
    exported: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    loads: int = 0
    directories: dict[str, str] = field(default_factory=dict)

    def host(self, *, builds: bool = True) -> FakeHost:
        """A machine with eleven disks."""
        files = {
            "/proc/self/mountinfo": "1 0 254:0 / / rw - ext4 /dev/vda rw\n",
            "/sys/class/block/vda/size": "100\n",
            "/sys/module/zfs/version": "2.1.11\n",
            "/proc/swaps": "Filename\n",
            **{f"/sys/class/block/{name}/size": f"{FREE // 512}\n" for name in DISKS.values()},
            **{
                f"/sys/class/block/{name}/dev": f"254:{16 * (place + 1)}\n"
                for place, name in enumerate(DISKS.values())
            },
        }
        links = {f"/dev/disk/by-id/virtio-{disk}": f"/dev/{name}" for disk, name in DISKS.items()}
        names = [
            "zpool",
            "zfs",
            "zinject",
            "id",
            "wipefs",
            "stat",
            "grep",
            "sh",
            "udevadm",
            "sleep",
            "modprobe",
            "modinfo",
            "find",
            "insmod",
            "rmmod",
        ]
        programs = {
            name: FakeProgram(seconds=0.0, output=self.answer)
            for name in [*names, *(["openzfs-use"] if builds else [])]
        }
        self.machine = FakeHost(FakeClock(), programs, files, links=links)
        self.machine.directories.add("/dev/disk/by-id")
        return self.machine

    def answer(self, command: Sequence[str]) -> Completed:
        """What a program says."""
        words = list(command)
        self.said.append(words)
        out, error = self._do(words)
        return Completed(tuple(command), 1 if error else 0, out, error)

    def _do(self, words: list[str]) -> tuple[str, str]:
        match words:
            case ["id", "-u"]:
                return "0\n", ""
            case ["zpool", "list", *_]:
                return "".join(f"{name}\n" for name in self.pools), ""
            case ["zpool", "create", *rest]:
                return self._create(rest)
            case ["zpool", "destroy", *_, name]:
                del self.pools[name]
                self.datasets = {one for one in self.datasets if not one.startswith(f"{name}/")}
            case ["zpool", "export", name]:
                self.exported[name] = self.pools.pop(name)
            case ["zpool", "import", *_, name]:
                self.pools[name] = self.exported.pop(name)
            case ["zfs", "create", name]:
                self.datasets.add(name)
            case ["zfs", "destroy", "-r", name]:
                self.datasets.remove(name)
            case ["zfs" | "zpool" as kind, "get", *_, name]:
                return self._get(kind, name), ""
            case ["openzfs-use", "--list"]:
                return "".join(
                    f"{'*' if branch == self.loaded else ' '} {branch} {branch}.9-1\n"
                    for branch in ("2.1", "2.3")
                ), ""
            case ["openzfs-use", branch, *parameters]:
                if self.pools:
                    return "", f"pools are imported: {' '.join(self.pools)}"
                if branch == "--none":
                    self.unload()
                    return "", ""
                self.load(branch)
                self.reloads.append([branch, *parameters])
                for word in parameters:
                    name, _, value = word.partition("=")
                    self.machine.files[f"/sys/module/zfs/parameters/{name}"] = f"{value}\n"
            case ["stat", *_]:
                return f"{1000 + self.loads}\n", ""
            case ["modprobe", "-r", "zfs"] | ["rmmod", "zfs"]:
                self.unload()
            case ["modprobe", "zfs", *_]:
                self.load("installed")
            case ["find", directory, *_]:
                return "".join(
                    f"{path}\n" for path in self.directories if path.startswith(f"{directory}/")
                ), ""
            case ["modinfo", "-F", "srcversion", path]:
                return f"{self.directories.get(path, 'INSTALLED')}\n", ""
            case ["insmod", path, *_]:
                self.load(self.directories[path], path.rpartition("/")[2].removesuffix(".ko"))
            case ["sh", "-c", _, "sh", "spl", *_]:
                return f"zfs {self.loaded}-source {self.loaded}-id\n", ""
            case ["sh", "-c", _, path, text]:
                self.machine.files[path] = text + "\n"
            case ["wipefs", *_, node] if self.unreadable.intersection(words):
                return "", f"wipefs: error: {node}: probing initialization failed"
            case ["wipefs", "--no-act", _, _, "DEVICE,TYPE,LABEL", *nodes]:
                lines = [
                    f"{node.rpartition('/')[2]} zfs_member {self.labels[node]}\n"
                    for node in nodes
                    if node in self.labels
                ]
                return "".join(lines), ""
            case ["wipefs", "--all", "--force", *nodes]:
                for node in nodes:
                    self.labels.pop(node, None)
            case ["zinject", "-d", *_]:
                return f"Added handler {len(self.said)} with the following properties:\n", ""
        return "", ""

    def unload(self) -> None:
        """Have no modules loaded."""
        assert not self.pools, "modules are in use"
        self.loaded = ""
        for file in ("version", "srcversion"):
            self.machine.files.pop(f"/sys/module/zfs/{file}", None)

    def load(self, build: str, module: str = "zfs") -> None:
        """Have modules of a build loaded, by whomever."""
        assert not self.pools, "modules are in use"
        self.loaded = build
        self.loads += 1
        self.machine.files[f"/sys/module/{module}/version"] = "2.1.11\n"
        self.machine.files[f"/sys/module/{module}/srcversion"] = (
            f"{'INSTALLED' if build == 'installed' else build}\n"
        )

    def _create(self, words: list[str]) -> tuple[str, str]:
        if self.refuse:
            return "", self.refuse
        point, rest = "", list(words)
        while rest[0].startswith("-"):
            if rest[0] == "-f":
                del rest[0]
                continue
            if rest[0] == "-O" and rest[1].startswith("mountpoint="):
                point = rest[1].partition("=")[2]
            del rest[:2]
        name, layout = rest[0], rest[1:]
        self.pools[name] = (point, layout)
        for word in layout:
            if word.startswith("/"):
                self.labels[self.machine.resolve(word)] = name
        return "", ""

    def _get(self, kind: str, name: str) -> str:
        if kind == "zpool":
            found = {"size": str(FREE), "allocated": str(FREE // 4)}
        else:
            found = {
                "available": str(FREE),
                "used": "1000",
                "logicalused": "1960",
                "compressratio": "1.96",
                "mountpoint": self.pools[name.partition("/")[0]][0],
            }
        return "".join(f"{key}\t{value}\n" for key, value in found.items())
