# SPDX-License-Identifier: Apache-2.0
"""The wings of ARCHITECTURE.md: a wing imports only the wings to its left, and only cli prints and
exits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

WINGS = ("base", "formats", "hosts", "recordings", "studies", "output", "cli")
"""From left to right; what imports what is decided by this order alone."""
OPEN = {
    "__init__": "cli",
    "__main__": "cli",
    "api": "output",
    "notebook": "output",
    "_core": "base",
}
"""Modules at the top of the package, and the wing with whose rights they import."""
SUBJECTS = {
    "recordings": {
        "store": {"store"},
        "archive": {"store", "archive"},
        "ask": {"store", "archive", "ask"},
        "heatmap": {"store", "ask", "heatmap"},
        "record": {"store", "archive", "ask", "record"},
    },
    "studies": {
        "results": {"results"},
        "compare": {"results", "compare"},
        "history": {"results", "compare", "history"},
        "workloads": {"results", "workloads"},
        "targets": {"targets"},
        "sources": {"sources"},
        "plan": {"compare", "workloads", "plan"},
    },
    "output": {
        "charts": {"charts"},
        "report": {"charts", "report"},
        "server": {"report", "server"},
    },
}
"""Wing, then one of its packages, to the packages of that wing that it may import. `studies/run` may
import all."""


def modules(root: Path) -> list[Path]:
    return sorted((root / "python/iolab").rglob("*.py"))


def wing_of(name: str) -> str:
    """The wing of a module by its first name below the package."""
    return OPEN.get(name, name)


def imports(root: Path, path: Path) -> set[tuple[str, ...]]:
    """Names below the package that a module imports, in parts, those inside functions included."""
    package = list(path.relative_to(root / "python").parent.parts)
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "iolab" and len(parts) > 1 and parts[1] not in ("__version__", "open"):
                imported.add(tuple(parts[1:]))
    return imported


@pytest.mark.slow
def test_wings_import_only_the_wings_to_their_left(root: Path) -> None:
    wrong = []
    for path in modules(root):
        first = path.relative_to(root / "python/iolab").parts[0].removesuffix(".py")
        assert wing_of(first) in WINGS, f"{path} belongs to no wing: see ARCHITECTURE.md"
        wrong += [
            f"{path.relative_to(root)} imports {'.'.join(name)}"
            for name in imports(root, path)
            if WINGS.index(wing_of(name[0])) > WINGS.index(wing_of(first))
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("wing", list(SUBJECTS))
def test_packages_of_a_wing_import_only_those_they_may(root: Path, wing: str) -> None:
    allowed = SUBJECTS[wing]
    for subject, others in allowed.items():
        paths = list((root / "python/iolab" / wing / subject).rglob("*.py"))
        assert paths, subject
        wrong = [
            f"{path.relative_to(root)} imports {'.'.join(name)}"
            for path in paths
            for name in imports(root, path)
            if name[0] == wing and name[1] not in others
        ]
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "group",
    [
        "formats",
        "hosts",
        "recordings",
        "recordings/ask",
        "recordings/store",
        "output",
        "output/report",
        "output/server",
        "studies/results",
    ],
)
def test_packages_of_a_group_form_no_circle(root: Path, group: str) -> None:
    """What a sub-package imports, directly or through others, never imports it."""
    package = root / "python/iolab" / group
    needs: dict[str, set[str]] = {}
    depth = len(package.relative_to(root / "python/iolab").parts)
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).parts
        if len(parts) > 1:
            needs.setdefault(parts[0], set()).update(
                name[depth]
                for name in imports(root, path)
                if name[:depth] == package.relative_to(root / "python/iolab").parts
                and len(name) > depth
                and (package / name[depth]).is_dir()
                and name[depth] != parts[0]
            )
    assert any(needs.values())
    reached = {name: set(others) for name, others in needs.items()}
    for _ in needs:
        for others in reached.values():
            others.update(*(reached.get(other, set()) for other in list(others)))
    assert not [name for name, others in reached.items() if name in others], needs


@pytest.mark.slow
def test_only_cli_prints_and_exits(root: Path) -> None:
    wrong = []
    for path in modules(root):
        if path.is_relative_to(root / "python/iolab/cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            text = ast.unparse(node.func)
            if text in (
                "print",
                "sys.exit",
                "exit",
                "sys.stdout.write",
                "sys.stderr.write",
                "click.echo",
            ):
                wrong.append(f"{path.relative_to(root)}:{node.lineno} calls {text}")
    assert not wrong, "\n".join(wrong)


def test_what_is_printed_goes_through_one_door(root: Path) -> None:
    """It spells names of others, which a terminal would obey."""
    wrong = []
    for path in (root / "python/iolab/cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            text = ast.unparse(node.func)
            if path.stem != "output" and text in (
                "print",
                "sys.stdout.write",
                "sys.stderr.write",
                "click.echo",
                "click.secho",
            ):
                wrong.append(f"{path.relative_to(root)}:{node.lineno} calls {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "module",
    ["numpy", "scipy", "pyarrow", "duckdb", "altair", "vl_convert", "pydantic", "rich", "PIL"],
)
def test_help_loads_nothing_heavy(module: str) -> None:
    import subprocess
    import sys

    code = f"import sys; from iolab.cli.main import run; run(['--help']); sys.exit({module!r} in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )


@pytest.mark.parametrize("module", ["scipy", "altair", "vl_convert", "PIL", "iolab.output.report"])
def test_the_wire_form_of_heat_maps_loads_nothing_of_charts_and_reports(module: str) -> None:
    import subprocess
    import sys

    code = f"import sys; import iolab.recordings.heatmap.wire; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
