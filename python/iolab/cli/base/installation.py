# SPDX-License-Identifier: Apache-2.0
"""What this installation consists of: the commit and the probe that it was built with, and the
studies, tables, schemas and documents in it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

from iolab import __version__

_PACKAGE = Path(__file__).resolve().parents[2]
_CLONE = _PACKAGE.parent.parent
"""The repository, where this is an editable installation of it."""
SHIPPED = {"studies", "schemas", "docs"}
"""Directories of the repository that a wheel contains."""


def find_shipped(name: Path) -> Path | None:
    """Path of a file of this installation (`studies/quickstart.toml`, `docs/guides/live.md`); None
    if it does not exist."""
    if name.is_absolute() or ".." in name.parts or not name.parts or name.parts[0] not in SHIPPED:
        return None
    for place in (_PACKAGE / "shipped", _CLONE):
        if (place / name).exists():
            return place / name
    return None


def commit() -> str:
    """The commit of this build, followed by `+` if files were changed; empty if it is unknown."""
    try:
        built = json.loads((_PACKAGE / "_build.json").read_text("utf-8"))
        return f"{built['commit'][:12]}{'+' if built['changes'] and built['commit'] else ''}"
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if not (_CLONE / "crates/iolab-py").is_dir():
        return ""
    try:
        done = subprocess.run(
            [
                "git",
                "-C",
                str(_CLONE),
                "describe",
                "--always",
                "--abbrev=12",
                "--exclude=*",
                "--dirty=+",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def describe() -> str:
    """Version, commit, and the probe's version and SHA-256: `iolab 0.2.0, commit 1a2b..., probe
    0.2.0 (sha256 3c4d...)`."""
    from iolab.base.errors import IolabError
    from iolab.recordings.record.probe.program import probe_path

    parts = [f"iolab {__version__}"]
    if made_of := commit():
        parts.append(f"commit {made_of}")
    try:
        probe = probe_path()
        said = subprocess.run(
            [str(probe), "--version"], capture_output=True, text=True, timeout=10
        ).stdout.split()
        digest = hashlib.sha256(probe.read_bytes()).hexdigest()
        parts.append(
            f"probe {said[-1] if said else 'of an unknown version'} (sha256 {digest[:12]})"
        )
    except (IolabError, OSError, subprocess.SubprocessError):
        parts.append("no probe")
    return ", ".join(parts)
