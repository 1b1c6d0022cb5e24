# SPDX-License-Identifier: Apache-2.0
"""Modules form no circle, and an import inside a function or for types alone hides none."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

LEGITIMATE = {
    (
        "iolab",
        "iolab.api",
    ): "iolab.open is the package's door, loaded on demand; modules take its version"
}
"""(module, what it imports) that may close a circle, and why. What the registry loads by name is no
import."""


def imported(package: Path) -> dict[str, set[str]]:
    """The package's modules, each with those of the package that it imports anywhere in its text."""
    paths = {name_of(package, path): path for path in package.rglob("*.py")}
    return {name: needs(name, path, paths) for name, path in paths.items()}


def name_of(package: Path, path: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def needs(name: str, path: Path, known: Mapping[str, Path]) -> set[str]:
    around = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = around[: len(around) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # a name of a package is a module of it, the compiled one included, or something that
            # the package itself defines
            found |= {
                whole
                if (whole := f"{base}.{alias.name}") in known or alias.name == "_core"
                else base
                for alias in node.names
            }
    return found & known.keys() - {name}


def in_circles(needed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The modules that are left when all are gone that import none of the rest or are imported by
    none of it."""
    left = dict(needed)
    while True:
        wanted = set().union(*left.values()) if left else set()
        kept = {
            name: others & left.keys()
            for name, others in left.items()
            if others & left.keys() and name in wanted
        }
        if kept == left:
            return left
        left = kept


def test_modules_form_no_circle(root: Path) -> None:
    needed = imported(root / "python/iolab")
    assert len(needed) > 300
    for name, other in LEGITIMATE:
        assert other in needed[name], f"{name} no longer imports {other}: remove it from LEGITIMATE"
        needed[name] = needed[name] - {other}
    found = in_circles(needed)
    assert not found, "\n".join(
        f"{name} imports {', '.join(sorted(others))}" for name, others in sorted(found.items())
    )


def test_circles_are_found_wherever_the_import_stands(tmp_path: Path) -> None:
    package = tmp_path / "made"
    (package / "inner").mkdir(parents=True)
    texts = {
        "__init__": "",
        "first": "from . import inner, last\n",
        "last": "import made.inner.low\n",
        "inner/__init__": "",
        "inner/low": "def later():\n    from ..middle import name\n",
        "middle": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .inner.low import Name\n",
    }
    for name, text in texts.items():
        (package / f"{name}.py").write_text(text)
    needed = imported(package)
    assert needed["made.first"] == {"made.inner", "made.last"}
    assert in_circles(needed) == {
        "made.inner.low": {"made.middle"},
        "made.middle": {"made.inner.low"},
    }
    assert in_circles({**needed, "made.middle": set()}) == {}
