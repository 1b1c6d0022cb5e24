# SPDX-License-Identifier: Apache-2.0
"""`[load]` of a study: client hosts that put the load on one target together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from iolab.base.errors import UsageError
from iolab.hosts.base.options import OptionProblem, Options, problems_error
from iolab.hosts.kinds.parse import host_named

FACTOR = "clients"
"""A factor of this name is `load.clients`."""
MOST = 64
"""Client hosts of a study."""


class ClientHosts(Options):
    """Which hosts put load on the target of a cell, and where they see it."""

    hosts: Annotated[
        list[str],
        Field(
            min_length=1,
            max_length=MOST,
            description="client hosts, written as after --host; a host that is listed twice is two clients",
        ),
    ]
    path: Annotated[
        str | None,
        Field(
            description="where the clients see the target: the mount point of the file service, or "
            "a directory; default: the target's own path"
        ),
    ] = None
    export: Annotated[
        str | None,
        Field(
            description="the directory of the server that the clients see at path; default: target.path"
        ),
    ] = None
    clients: Annotated[
        int | None,
        Field(
            ge=1,
            description="how many of the hosts take part, from the first on; default: all. Mostly a factor: clients = [1, 2, 4]",
        ),
    ] = None

    sources: Annotated[
        list[Literal["counters", "syscall"]],
        Field(
            default_factory=list,
            description="what is recorded on every client host: counters, syscall. Those of [sources] are of the server",
        ),
    ]

    @field_validator("hosts")
    @classmethod
    def _name_hosts(cls, hosts: list[str]) -> list[str]:
        wrong = []
        for place, word in enumerate(hosts):
            try:
                name = host_named(word).name
            except UsageError as error:
                wrong.append(OptionProblem((str(place),), error.message, error.hint or ""))
                continue
            if "/" in name or name.startswith(".") or any(ord(char) < 32 for char in name):
                wrong.append(
                    OptionProblem(
                        (str(place),), f"'{name}' cannot name a directory", "give it another name"
                    )
                )
        if wrong:
            raise problems_error(wrong)
        return hosts

    @field_validator("path", "export")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        if path is not None and (
            not path.startswith("/") or any(ord(char) < 32 for char in path) or "/../" in f"{path}/"
        ):
            raise ValueError("is not an absolute path; such as /mnt/lab")
        return path

    @model_validator(mode="after")
    def _enough_hosts(self) -> ClientHosts:
        if self.clients is not None and self.clients > len(self.hosts):
            raise problems_error(
                [
                    OptionProblem(
                        ("clients",),
                        f"is {self.clients}, and load.hosts has {len(self.hosts)}",
                        "list more hosts, or take fewer clients",
                    )
                ]
            )
        return self

    def taking_part(self) -> Mapping[str, str]:
        """Name of each client that takes part to what names its host, in the order of the file.

        Names are those of the hosts. A host that is listed again gets a number: `local-2`.
        """
        named: dict[str, str] = {}
        for word in self.hosts[: self.clients]:
            first = name = host_named(word).name
            number = 1
            while name in named:
                number += 1
                name = f"{first}-{number}"
            named[name] = word
        return named
