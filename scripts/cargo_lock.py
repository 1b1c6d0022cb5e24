# SPDX-License-Identifier: Apache-2.0
"""Cargo.lock from `crates.lock`, and back.

`crates.lock` is committed: a line per crate with its name, version, SHA-256 and the crates that it
depends on. It names no registry. Cargo.lock, which does, is not committed: `make` writes it from
the list, and cargo holds every crate that it fetches to it.

    cargo_lock.py            write Cargo.lock
    cargo_lock.py --renew    resolve the newest allowed versions, and write crates.lock
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

LIST, LOCK = "crates.lock", "Cargo.lock"
_HEAD = "# name, version, SHA-256 (- for a crate of this repository), and what it depends on; renewed by `make lock`\n"


class LockError(Exception):
    """crates.lock can't be used, or cargo failed."""


def read(text: str) -> list[tuple[str, str, str, list[str]]]:
    """Crates of a list: name, version, checksum (empty: of this repository), dependencies as
    Cargo.lock writes them."""
    crates = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, version, checksum, *depends = line.split() if len(line.split()) >= 3 else ["", "", ""]
        if not (
            re.fullmatch(r"[A-Za-z0-9_-]+", name)
            and re.fullmatch(r"\d+\.\d+\.\d+[0-9A-Za-z.+-]*", version)
            and re.fullmatch(r"-|[0-9a-f]{64}", checksum)
        ):
            raise LockError(f"{LIST}:{number}: expected: name version SHA-256 [dependency...]")
        crates.append(
            (name, version, checksum.replace("-", ""), [each.replace("@", " ") for each in depends])
        )
    if not crates:
        raise LockError(f"{LIST}: lists no crates")
    return crates


def write(lock: str) -> str:
    """The list of a Cargo.lock's text."""
    lines = []
    for crate in tomllib.loads(lock)["package"]:
        depends = [each.replace(" ", "@") for each in crate.get("dependencies", [])]
        # the version of this repository's crates has one source, which is Cargo.toml
        lines.append(
            " ".join(
                [
                    crate["name"],
                    crate["version"] if "source" in crate else "0.0.0",
                    crate.get("checksum", "-"),
                    *depends,
                ]
            )
        )
    return _HEAD + "\n".join(lines) + "\n"


def cargo_lock(text: str, registry: str, own_version: str) -> str:
    """Cargo.lock of a list. `registry`: its `source` entry; `own_version`: of the crates of this
    repository."""
    parts = ["# Written from crates.lock by scripts/cargo_lock.py.\nversion = 4\n"]
    for name, version, checksum, depends in read(text):
        lines = [
            "[[package]]",
            f'name = "{name}"',
            f'version = "{version if checksum else own_version}"',
        ]
        if checksum:
            lines += [f'source = "{registry}"', f'checksum = "{checksum}"']
        if depends:
            lines += ["dependencies = [", *(f' "{each}",' for each in depends), "]"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def registry_source(crate: tuple[str, str]) -> str:
    """How this machine's cargo calls its registry: it resolves a package that depends on one known
    crate."""
    name, version = crate
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "lib.rs").touch()
        (place / "Cargo.toml").write_text(
            f'[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
            f'[dependencies]\n{name} = "={version}"\n',
            "utf-8",
        )
        _cargo(place, "generate-lockfile")
        for each in tomllib.loads((place / LOCK).read_text("utf-8"))["package"]:
            if each["name"] == name:
                return str(each["source"])
    raise LockError(f"cargo did not resolve {name} {version}")


def make(root: Path) -> None:
    """Write Cargo.lock where it is absent or is not what the list says."""
    text = (root / LIST).read_text("utf-8")
    crates = read(text)
    own = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
    place = root / LOCK
    try:
        before = place.read_text("utf-8")
        known = next(
            each["source"] for each in tomllib.loads(before)["package"] if "source" in each
        )
    except (OSError, tomllib.TOMLDecodeError, StopIteration):
        before, known = "", ""
    if not known:
        # a crate without dependencies resolves at once
        known = registry_source(
            next(
                (name, version)
                for name, version, checksum, depends in crates
                if checksum and not depends
            )
        )
    made = cargo_lock(text, known, own)
    if made != before:
        place.write_text(made, "utf-8")


def _cargo(place: Path, *words: str) -> None:
    path = f"{os.environ.get('PATH', '')}:{Path.home() / '.cargo/bin'}"
    done = subprocess.run(
        ["cargo", "--quiet", *words],
        cwd=place,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise LockError(f"cargo {words[0]} failed: {done.stderr.strip()}")


def main(words: list[str]) -> int:
    """Exit code."""
    root = Path(__file__).resolve().parent.parent
    try:
        if words == ["--renew"]:
            (root / LOCK).unlink(missing_ok=True)
            _cargo(root, "generate-lockfile")
            (root / LIST).write_text(write((root / LOCK).read_text("utf-8")), "utf-8")
        make(root)
    except (LockError, OSError) as error:
        print(f"cargo_lock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
