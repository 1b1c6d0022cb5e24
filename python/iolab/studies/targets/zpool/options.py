# SPDX-License-Identifier: Apache-2.0
"""`[target]` of kind `zpool`: its options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from iolab.base.units import parse_fio_time
from iolab.hosts.base.options import OptionProblem, Options, problems_error

from ..cache import CacheOption

_WORD = r"[A-Za-z0-9][A-Za-z0-9_.:@-]*"


def _layout(value: Any) -> Any:
    if isinstance(value, str):
        parse_layout(value)
        return value
    if (
        not isinstance(value, list | tuple)
        or not value
        or not all(isinstance(word, str) and word for word in value)
    ):
        raise ValueError(f"is not a layout; {FORM}")
    if any(word.startswith("-") for word in value):
        raise ValueError(
            "has an option of zpool create in it; pool = {...} and properties = {...} are for these"
        )
    if not any(word.startswith("/dev/") for word in value):
        raise ValueError(
            "names no device; in a list of words devices are given as /dev/disk/by-id/..."
        )
    return tuple(value)


def _devices(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            'names no device; write "/dev/disk/by-id/virtio-*" or a list of such names'
        )
    if any(not name.startswith("/dev/") or any(ord(char) < 33 for char in name) for name in names):
        raise ValueError("names no device; a device's name starts with /dev/")
    return tuple(names)


def _settings(value: Any) -> Any:
    """Names to texts: TOML's numbers and truths as ZFS writes them."""
    if not isinstance(value, dict):
        raise ValueError('is not a table; write { name = "value" }')
    settings = {}
    for name, setting in value.items():
        if not re.fullmatch(_WORD, str(name)):
            raise ValueError(f"'{name}' is not a name of a property")
        if isinstance(setting, bool):
            setting = "on" if setting else "off"
        if (
            not isinstance(setting, str | int | float)
            or not str(setting)
            or any(ord(char) < 32 for char in str(setting))
        ):
            raise ValueError(f"'{name}' has no value that can be set")
        settings[str(name)] = str(setting)
    return settings


def _parameters(value: Any) -> Any:
    """Module parameters hold no blanks, and truths are 1 and 0."""
    if isinstance(value, dict):
        value = {
            name: int(setting) if isinstance(setting, bool) else setting
            for name, setting in value.items()
        }
    settings = _settings(value)
    for name, setting in settings.items():
        if re.search(r"\s", setting):
            raise ValueError(f"'{name}' has blanks in its value")
    return settings


_TEXTS = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
_TABLE = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
    },
}
Table = Annotated[dict[str, str], BeforeValidator(_settings), WithJsonSchema(_TABLE)]


class ZpoolOptions(Options):
    """`[target]` of kind `zpool`."""

    layout: Annotated[
        str | tuple[str, ...],
        BeforeValidator(_layout),
        WithJsonSchema(_TEXTS),
        Field(
            description='vdevs over the devices in their order: "stripe:4", "mirror:2 x 7", "raidz2:10 + log mirror:2 + cache stripe:1"; '
            "or a list of words as zpool create takes them"
        ),
    ]
    devices: Annotated[
        tuple[str, ...],
        BeforeValidator(_devices),
        WithJsonSchema(_TEXTS),
        Field(
            description="block devices by stable names, with * and ? for several (disk2 comes before disk10); what is on those that the "
            "layout takes is overwritten, which needs --destructive"
        ),
    ] = ()
    pool: Annotated[
        Table,
        Field(
            description="properties of the pool, as after zpool create -o, such as { ashift = 12 }",
            default_factory=dict,
        ),
    ]
    properties: Annotated[
        Table,
        Field(
            description='properties of the file system, as after zfs create -o, such as { recordsize = "8k", compression = "lz4" }',
            default_factory=dict,
        ),
    ]
    fresh: Annotated[
        Literal["run", "cell", "block", "study"],
        Field(
            description="when a new pool is made: for every run; when another cell's turn comes; at every block's start; once. "
            "If targets of a study share devices or modules, each makes a new pool before its runs"
        ),
    ] = "run"
    build: Annotated[
        str | None,
        Field(
            pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*|/[^\s'\"]+)$",
            description='which build of OpenZFS to load: a name, such as "2.3", on hosts that have openzfs-use (the '
            "rig openzfs has), or the directory of a source tree that was built, or of its modules; "
            "default: the build that is loaded",
        ),
    ] = None
    module_parameters: Annotated[
        dict[str, str],
        BeforeValidator(_parameters),
        WithJsonSchema(_TABLE),
        Field(
            description="parameters for loading the modules, such as { zfs_dirty_data_max = 67108864 }; they are reloaded",
            default_factory=dict,
        ),
    ]
    reload: Annotated[
        bool,
        Field(description="reload the modules before each new pool, which empties the ARC"),
    ] = False
    delay: Annotated[
        str | None,
        Field(
            description='a delay of every I/O at every device, by zinject -D: "10ms", or "10ms:4" for four '
            "at a time"
        ),
    ] = None
    cache: CacheOption = "warm"

    @field_validator("delay")
    @classmethod
    def _a_delay(cls, delay: str | None) -> str | None:
        if delay is None or delay in ("", "0"):
            return None
        time, _, lanes = delay.partition(":")
        if parse_fio_time(time) < 0.001 or (lanes and not lanes.isdecimal()):
            raise ValueError(
                'is not a delay; write a time of 1ms and more, with :N for N I/Os at a time: "10ms", "10ms:4"'
            )
        return delay

    @model_validator(mode="after")
    def _fits(self) -> ZpoolOptions:
        if not self.devices and not isinstance(self.layout, tuple):
            raise problems_error(
                [OptionProblem(("devices",), "is missing", 'devices = "/dev/disk/by-id/..."')]
            )
        if self.devices and isinstance(self.layout, tuple):
            raise problems_error(
                [
                    OptionProblem(
                        ("devices",),
                        "cannot be combined with a layout that names its devices",
                        "one of both",
                    )
                ]
            )
        if "mountpoint" in self.properties or "canmount" in self.properties:
            raise problems_error(
                [
                    OptionProblem(
                        ("properties",),
                        "say where to mount, which iolab does",
                        "no mountpoint, no canmount",
                    )
                ]
            )
        return self

    def to_layout(self) -> Layout:
        """The layout as an object."""
        return (
            parse_layout(self.layout)
            if isinstance(self.layout, str)
            else Layout(literal=self.layout)
        )

    def zinject_delay(self) -> str | None:
        """As zinject takes it: milliseconds and lanes."""
        if self.delay is None:
            return None
        time, _, lanes = self.delay.partition(":")
        return f"{round(parse_fio_time(time) * 1000)}:{lanes or 1}"


# How a pool is laid out over devices: `raidz2:10 x 7 + log mirror:2` becomes the words that zpool-
# create(8) takes.

CLASSES = ("log", "cache", "special", "dedup", "spare")
_LEAST = {"stripe": 1, "mirror": 2, "raidz1": 2, "raidz2": 3, "raidz3": 4}
_GROUP = re.compile(
    rf"(?:({'|'.join(CLASSES)})\s+)?(stripe|mirror|raidz[123]?):(\d+)(?:\s*x\s*(\d+))?"
)
FORM = 'write such as "mirror:2 x 7" or "raidz2:10 + log mirror:2", or a list of words as zpool create takes them'


@dataclass(frozen=True)
class Group:
    """`count` vdevs of one kind, each of `width` devices. `of`: the class of vdev, empty for data."""

    of: str
    kind: str
    width: int
    count: int

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return self.width * self.count


@dataclass(frozen=True)
class Layout:
    """Groups that take devices in their order, or words as given; devices begin with a slash."""

    groups: tuple[Group, ...] = ()
    literal: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return (
            sum(group.devices for group in self.groups)
            if self.groups
            else sum(word.startswith("/") for word in self.literal)
        )

    def words(self, devices: Sequence[str]) -> list[str]:
        """What zpool create gets after the pool's name."""
        if self.literal:
            return list(self.literal)
        parts: list[str] = []
        names = list(devices)
        for group in self.groups:
            parts += [group.of] if group.of else []
            for _ in range(group.count):
                parts += ([] if group.kind == "stripe" else [group.kind]) + names[: group.width]
                del names[: group.width]
        return parts


def parse_layout(text: str) -> Layout:
    """The layout that a text means; ValueError with what is wrong."""
    groups = []
    for part in text.split("+"):
        match = _GROUP.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"'{part.strip()}' is not a layout; {FORM}")
        kind = "raidz1" if match[2] == "raidz" else match[2]
        group = Group(match[1] or "", kind, int(match[3]), int(match[4] or 1))
        if group.width < _LEAST[kind] or group.count < 1:
            raise ValueError(
                f"'{part.strip()}' has too few devices; {kind} takes {_LEAST[kind]} or more"
            )
        if group.of in ("cache", "spare") and kind != "stripe":
            raise ValueError(
                f"'{part.strip()}': {group.of} devices have no redundancy; write {group.of} stripe:{group.devices}"
            )
        groups.append(group)
    if not any(not group.of for group in groups):
        raise ValueError("has no vdev for data")
    return Layout(tuple(groups))
