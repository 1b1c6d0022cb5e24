# SPDX-License-Identifier: Apache-2.0
"""The layers of ARCHITECTURE.md: a group imports only what stands on its left, and only cli prints
and exits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BASE = {
    "units",
    "errors",
    "verdict",
    "clock",
    "registry",
    "metrics",
    "glossary",
    "untrusted_text",
    "integrity",
    "files",
    "documents",
    "_core",
    "stats",
    "__init__",
}
READING = BASE | {"formats", "recording", "archive", "statistics"}
JUDGING = READING | {"results", "compare"}
ACTING = {"hosts", "rigs", "targets", "workloads", "sources", "study", "recorder", "run"}
SHOWING = {"heatmap", "charts", "report"}
ALLOWED = {
    **dict.fromkeys(BASE, BASE),
    "formats": BASE | {"formats"},
    "recording": READING - {"archive", "statistics"},
    "archive": READING - {"statistics"},
    "statistics": READING,
    "results": READING | {"results"},
    "compare": JUDGING,
    "history": JUDGING | {"history"},
    "hosts": JUDGING | {"hosts"},
    **{name: JUDGING | {"hosts", name} for name in ("rigs", "targets", "workloads", "sources")},
    "study": JUDGING | ACTING - {"recorder", "run"},
    "recorder": READING | {"hosts", "sources", "recorder"},
    "run": JUDGING | ACTING,
    "heatmap": READING | {"heatmap"},
    "charts": JUDGING | {"charts", "heatmap"},
    "report": JUDGING | SHOWING,
    "server": JUDGING | SHOWING | {"history", "server"},
    "notebook": JUDGING | SHOWING,
    "api": JUDGING | SHOWING | {"notebook"},
    "__main__": {"cli"},
    "cli": JUDGING | ACTING | SHOWING | {"api", "cli", "history", "server"},
}
"""Group (a folder or a top-level file of the package) to the groups that it may import."""


def modules(root: Path) -> list[Path]:
    return sorted((root / "python/iolab").rglob("*.py"))


def group_of(root: Path, path: Path) -> str:
    first = path.relative_to(root / "python/iolab").parts[0]
    return first.removesuffix(".py")


def imports(root: Path, path: Path) -> set[str]:
    """Groups that a module imports, those inside functions included."""
    package = list(path.relative_to(root / "python").parent.parts)
    found = set()
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
            if parts[0] == "iolab" and len(parts) > 1:
                found.add("__init__" if parts[1] in ("__version__", "open") else parts[1])
    return found


@pytest.mark.slow
def test_groups_import_only_what_stands_left_of_them(root: Path) -> None:
    wrong = []
    for path in modules(root):
        group = group_of(root, path)
        assert group in ALLOWED, (
            f"{path.name} belongs to no layer: name its place in ARCHITECTURE.md and here"
        )
        exempt = {"api"} if group == "__init__" else set()
        wrong += [
            f"{path.relative_to(root)} imports {name}"
            for name in imports(root, path) - ALLOWED[group] - exempt
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "group", ["formats", "hosts", "recording", "report", "results", "server", "statistics"]
)
def test_rooms_of_a_group_form_no_circle(root: Path, group: str) -> None:
    """A room is a sub-package; what it imports, directly or through others, never imports it."""
    package = root / "python/iolab" / group
    needs: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).parts
        if len(parts) > 1:
            needs.setdefault(parts[0], set()).update(rooms(path, package) - {parts[0]})
    assert any(needs.values())
    reached = {room: set(others) for room, others in needs.items()}
    for _ in needs:
        for others in reached.values():
            others.update(*(reached.get(other, set()) for other in list(others)))
    assert not [room for room, others in reached.items() if room in others], needs


def rooms(path: Path, package: Path) -> set[str]:
    """Rooms of the package that a module imports from, those inside functions included."""
    above = list(path.parent.relative_to(package.parent.parent).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*above[: len(above) - node.level + 1], *(node.module or "").split(".")]
            names = [".".join([*filter(None, base), alias.name]).split(".") for alias in node.names]
            found |= {
                name[2]
                for name in names
                if name[:2] == ["iolab", package.name] and (package / name[2]).is_dir()
            }
    return found


@pytest.mark.slow
def test_only_cli_prints_and_exits(root: Path) -> None:
    wrong = []
    for path in modules(root):
        if group_of(root, path) == "cli":
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


@pytest.mark.parametrize("module", ["scipy", "altair", "vl_convert", "PIL", "iolab.report"])
def test_the_wire_form_of_heat_maps_loads_nothing_of_charts_and_reports(module: str) -> None:
    import subprocess
    import sys

    code = f"import sys; import iolab.heatmap.wire; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
