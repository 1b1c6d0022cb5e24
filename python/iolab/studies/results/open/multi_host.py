# SPDX-License-Identifier: Apache-2.0
"""Results of one study on several hosts: `hosts.json`, and for each host a whole results directory
next to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from iolab.base.errors import ResultsError
from iolab.base.files import read_regular, write_atomically
from iolab.base.integrity import has_own_digest, with_own_digest
from iolab.base.untrusted_text import parse_json

from ..evidence.manifest import FILE as MANIFEST_FILE
from ..evidence.manifest import Manifest, read_manifest
from ..evidence.model import Run

FILE = "hosts.json"
SCHEMA = 2
"""From 2 on it has a digest of itself."""


@dataclass(frozen=True)
class Hosts:
    """What `hosts.json` says.

    Attributes:
        words: of each host, by its directory: what names it on a command line. reproduce: the
        command that makes all of it again.
    """

    words: Mapping[str, str]
    reproduce: Sequence[str] = ()


def read_hosts(directory: Path) -> Hosts | None:
    """The hosts of a directory, None where it has no such file; ResultsError where that is damaged
    or of a newer iolab."""
    path = directory / FILE
    try:
        content = read_regular(path)
        data, has_digest = parse_json(content), has_own_digest(content)
        if data["schema"] > SCHEMA:
            raise ResultsError(
                f"written by a newer iolab (schema {data['schema']}, this one reads {SCHEMA})",
                where=path,
                hint="open it with that version",
            )
        if has_digest is False or (has_digest is None and data["schema"] > 1):
            raise ResultsError(
                "is damaged: its content is not what its digest is of",
                where=path,
                hint="put it back from a copy",
            )
        words = {str(name): str(word) for name, word in data["hosts"].items()}
        reproduce = [str(word) for word in data["reproduce"]]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"is damaged: {error!r}"[:200], where=path) from None
    if not words or any(not name or "/" in name or name in (".", "..") for name in words):
        raise ResultsError("is damaged: no names of hosts", where=path)
    return Hosts(words, reproduce)


def host_words(directory: Path) -> tuple[str, ...]:
    """What names, on a command line, the hosts that a study was begun on, by `hosts.json` or the
    command that made the results.

    Empty where none was named: begun on this machine, or not at all. ResultsError where either file
    is damaged.
    """
    hosts = read_hosts(directory)
    if hosts is not None:
        return tuple(hosts.words.values())
    if not (directory / MANIFEST_FILE).exists():
        return ()
    return tuple(
        word for flag, word in pairwise(read_manifest(directory).reproduce) if flag == "--host"
    )


def write_hosts(directory: Path, hosts: Hosts) -> None:
    """Write it whole or not at all."""
    data = {
        "schema": SCHEMA,
        "kind": "hosts",
        "hosts": dict(hosts.words),
        "reproduce": list(hosts.reproduce),
    }
    write_atomically(directory / FILE, with_own_digest(json.dumps(data, indent=1)))


def begun_on(directory: Path, hosts: Hosts) -> list[str]:
    """Hosts on which the study was begun; ResultsError where it was on none."""
    begun = [name for name in hosts.words if (directory / name / MANIFEST_FILE).exists()]
    if not begun:
        raise ResultsError(
            "holds results of no host: the study was begun on none",
            where=directory,
            hint=f"of {', '.join(hosts.words)}; continue with --resume",
        )
    return begun


def parts_of(path: Path) -> list[Path]:
    """The results directories of those hosts on which a study was begun; the path itself where it
    is not a directory of several hosts."""
    hosts = read_hosts(path) if path.is_dir() else None
    return [path] if hosts is None else [path / name for name in begun_on(path, hosts)]


def joined_manifest(hosts: Hosts, manifests: Sequence[Manifest]) -> Manifest:
    """One for all: arms and factors of any host."""
    variants, factors = (
        [name for manifest in manifests for name in getattr(manifest, key)]
        for key in ("variants", "factors")
    )
    return manifests[0].model_copy(
        update={
            "variants": list(dict.fromkeys(variants)),
            "factors": list(dict.fromkeys(factors)),
            "reproduce": list(hosts.reproduce),
            "host": None,
            "baseline": next(
                (manifest.baseline for manifest in manifests if manifest.baseline), None
            ),
        }
    )


def joined_runs(parts: Mapping[str, Sequence[Run]]) -> list[Run]:
    """The runs of all hosts, each under `<host>/<run>`."""
    return [
        replace(run, plan=replace(run.plan, run=f"{name}/{run.plan.run}"))
        for name, runs in parts.items()
        for run in runs
    ]
