# SPDX-License-Identifier: Apache-2.0
"""An installed package with plugins, as pip would leave it: a module, and metadata with entry
points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NAME = "iolab_thirdparty"


def install_package(
    directory: Path, module: str, entry_points: Mapping[str, Mapping[str, str]]
) -> Path:
    """Write the package into a directory that is then put on the module path.

    Args:
        directory: where; module: the source of `iolab_thirdparty`; entry_points: group, then name,
        to the attribute of the module.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{NAME}.py").write_text(module)
    info = directory / f"{NAME}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.2\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (
            f"[{group}]",
            *(f"{name} = {NAME}:{attribute}" for name, attribute in points.items()),
        )
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return directory
