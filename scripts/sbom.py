# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release as CycloneDX 1.6 (JSON): what a wheel holds and what it asks
pip for. From the committed locks.

sbom.py FILE
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import cargo_lock

ROOT = Path(__file__).resolve().parent.parent


def bill(root: Path) -> dict[str, Any]:
    """The document. It has no serial number and no time, so that equal sources have equal bills."""
    version = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))["workspace"]["package"][
        "version"
    ]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    main = {
        "type": "application",
        "bom-ref": "iolab",
        "name": "iolab",
        "version": version,
        "purl": f"pkg:pypi/iolab@{version}",
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
    }
    parts = [*_crates(root), *_npm(root), *_python(root)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": parts,
        "dependencies": [{"ref": "iolab", "dependsOn": [each["bom-ref"] for each in parts]}],
    }


def _part(
    kind: str, name: str, version: str, digests: list[dict[str, str]], where: str
) -> dict[str, Any]:
    purl = f"pkg:{kind}/{name.replace('@', '%40', 1) if name.startswith('@') else name}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": digests,
        "properties": [{"name": "iolab:where", "value": where}],
    }


def _crates(root: Path) -> list[dict[str, Any]]:
    """Crates that the extension or the probe is made with: those that iolab's own crates reach
    without their tests' dependencies."""
    crates = {
        name if not several else f"{name} {version}": (name, version, checksum, depends)
        for name, version, checksum, depends, several in _listed(root)
    }
    own = {
        name: root / "crates" / name / "Cargo.toml"
        for name in ("iolab-core", "iolab-probe", "iolab-py")
    }
    reached: set[str] = set()
    ways = [
        key
        for file in own.values()
        for key in tomllib.loads(file.read_text("utf-8"))["dependencies"]
    ]
    while ways:
        key = ways.pop()
        if key in reached or key in own:
            continue
        reached.add(key)
        ways += crates[key][3]
    return [
        _part("cargo", name, version, [{"alg": "SHA-256", "content": checksum}], "linked in")
        for name, version, checksum, _ in (crates[key] for key in sorted(reached))
    ]


def _listed(root: Path) -> list[tuple[str, str, str, list[str], bool]]:
    listed = cargo_lock.read((root / cargo_lock.LIST).read_text("utf-8"))
    names = [name for name, *_ in listed]
    return [(*each, names.count(each[0]) > 1) for each in listed]


BUNDLER = "vite"
"""The package that builds the pages and is not in them; it is no devDependency, so that `npm ci
--omit=dev` installs it."""


def _npm(root: Path) -> list[dict[str, Any]]:
    """Packages that the pages contain: those that their dependencies reach, without the bundler."""
    packages = json.loads((root / "web/package-lock.json").read_text("utf-8"))["packages"]
    reached: set[str] = set()
    queue = [("", name) for name in packages[""]["dependencies"] if name != BUNDLER]
    while queue:
        above, name = queue.pop()
        # the nearest directory node_modules upwards that has the package (Node's own rule)
        while (place := f"{above}/node_modules/{name}".lstrip("/")) not in packages and above:
            above = above.rpartition("/node_modules/")[0]
        if place in packages and place not in reached:
            reached.add(place)
            queue += [(place, below) for below in packages[place].get("dependencies", {})]
    found = []
    for place, package in sorted(packages.items()):
        if place in reached:
            algorithm, _, digest = package["integrity"].partition("-")
            content = base64.b64decode(digest).hex()
            found.append(
                _part(
                    "npm",
                    place.rpartition("node_modules/")[2],
                    package["version"],
                    [{"alg": f"SHA-{algorithm.removeprefix('sha')}", "content": content}],
                    "bundled in the pages",
                )
            )
    return found


def _python(root: Path) -> list[dict[str, Any]]:
    """Packages that pip installs beside iolab, in the versions that its tests ran with."""
    text = (root / "requirements/run.lock").read_text("utf-8").replace("\\\n", " ")
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE)
    return [_part("pypi", name, version, [], "installed by pip") for name, version in found]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(bill(ROOT), indent=1) + "\n", "utf-8")
