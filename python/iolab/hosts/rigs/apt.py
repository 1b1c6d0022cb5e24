# SPDX-License-Identifier: Apache-2.0
"""Where packages come from: the mirror that this machine's own apt uses, read from its sources
(sources.list(5))."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import RunError

_KEPT = re.compile(
    r'^(Acquire::(?:(?:http|https)::Proxy\S*|Check-Valid-Until|Check-Date|Retries) ".*";)$',
    re.MULTILINE,
)
"""Settings without which a mirror may not be reached or trusted the way it is here."""

_HELPER = "/usr/lib/apt/apt-helper"
_PATIENCE = 60.0

_FIELD = re.compile(r"^([A-Za-z-]+):(.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """One line of sources: binary packages of a suite."""

    uri: str
    suite: str
    components: tuple[str, ...]


@dataclass(frozen=True)
class Mirror:
    """URIs of Debian's archive and, where apt has one, of its security updates; settings for
    apt.conf."""

    archive: str
    security: str | None
    settings: str

    def lines(self, suite: str, more: tuple[str, ...], components: tuple[str, ...]) -> str:
        """A sources.list."""
        suites_by_uri = [(self.archive, name) for name in (suite, *more)]
        if self.security is not None:
            suites_by_uri.append((self.security, f"{suite}-security"))
        return "".join(f"deb {uri} {name} {' '.join(components)}\n" for uri, name in suites_by_uri)


def find_mirror(root: Path = Path("/")) -> Mirror:
    """The mirror of Debian that apt is configured with; RunError where it has none."""
    entries = list(sources(root))
    archive = next(
        (
            entry.uri
            for entry in entries
            if "main" in entry.components and entry.uri.rstrip("/").endswith("/debian")
        ),
        None,
    )
    security = next(
        (
            entry.uri
            for entry in entries
            if entry.suite.endswith("-security") and "debian-security" in entry.uri
        ),
        None,
    )
    if archive is None:
        raise RunError(
            "apt is configured with no mirror of Debian",
            where="/etc/apt",
            hint="add one to /etc/apt/sources.list.d, or build the rig on a Debian machine",
        )
    return Mirror(archive, security, _settings())


def check_reachable(mirror: Mirror, suite: str) -> None:
    """RunError where apt itself can't fetch the list of a suite from the mirror now: its proxies
    and settings count."""
    with tempfile.TemporaryDirectory(prefix="iolab-rig-") as directory:
        command = [
            _HELPER,
            "download-file",
            f"{mirror.archive.rstrip('/')}/dists/{suite}/InRelease",
            f"{directory}/InRelease",
        ]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE,
                cwd=directory,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunError(f"the mirror of Debian can't be asked: {error}") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise RunError(
            f"the mirror of Debian can't be reached: {said[-1][:200] if said else 'apt-helper says nothing'}",
            hint="'apt-get update' must work here",
        )


def sources(root: Path) -> Iterator[Source]:
    """Every source of binary packages, in both styles, files in apt's order."""
    base = root / "etc/apt"
    files = [base / "sources.list", *sorted((base / "sources.list.d").glob("*"))]
    for path in files:
        if path.suffix not in (".list", ".sources") or not path.is_file():
            continue
        text = path.read_text("utf-8", "replace")
        yield from _deb822(text) if path.suffix == ".sources" else _one_line(text)


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s*(.*)", line.partition("#")[0])
        if match:
            yield Source(match[1], match[2], tuple(match[3].split()))


def _deb822(text: str) -> Iterator[Source]:
    for paragraph in re.split(
        r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    ):
        fields = {match[1].lower(): match[2].split() for match in _FIELD.finditer(paragraph)}
        if "deb" not in fields.get("types", []) or fields.get("enabled", ["yes"])[0].lower() in (
            "no",
            "false",
            "0",
        ):
            continue
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield Source(uri, suite, tuple(fields.get("components", [])))


def _settings() -> str:
    try:
        dump = subprocess.run(
            ["apt-config", "dump"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""
    return "".join(f"{line}\n" for line in _KEPT.findall(dump))
