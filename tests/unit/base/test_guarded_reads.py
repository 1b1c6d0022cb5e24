# SPDX-License-Identifier: Apache-2.0
"""Files of recordings and results are opened by `iolab.base.files` alone, which refuses FIFOs, devices,
endless files and links of other users."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import iolab

PACKAGE = Path(iolab.__file__).parent

READERS = (
    "recording",
    "statistics",
    "results/open",
    "results/evidence",
    "results/facts",
    "results/derive",
    "results/gates",
    "server",
    "recorder",
    "report",
    "compare",
    "heatmap",
)
"""Packages that read recordings and results."""

OTHER_FILES = {
    ("recording/base/lock.py", "holder_of"): "/proc/locks",
    ("recording/base/layout.py", "sync_folder"): "a directory",
    ("statistics/engine/engine.py", "_plain"): "a directory",
    ("report/page/html.py", "bundle_file"): "a file of the package",
    ("recorder/probe/remote.py", "__init__"): "a file of the package",
    ("recorder/probe/starter.py", "open_program"): "a program, with checks of its own",
    ("server/base/json_store.py", "read"): "a file of the service's state, through no link",
}
"""(module, function) that open something else, with what that is."""

TEXTS = {"read_text", "read_bytes"}
PARQUET = {"read_table", "read_metadata", "read_schema", "ParquetFile", "ParquetDataset", "dataset"}
MAPPED = {"memory_map", "OSFile", "memmap", "fromfile", "load_table"}

OWN_OPENERS = {
    *("iolab", "store", "self._store", "self"),
    *("archive", "Archive", "self.archives", "store.archives"),
}
"""Objects of iolab with a method `open`."""


def unguarded(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(function, line) of calls that open a path for reading without `iolab.base.files`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and _opens(call):
                    yield function.name, call.lineno


def _opens(call: ast.Call) -> bool:
    name = call.func
    if isinstance(name, ast.Name):
        return name.id == "open"
    if not isinstance(name, ast.Attribute):
        return False
    owner = ast.unparse(name.value)
    if name.attr in TEXTS:
        return True
    if name.attr == "open" and owner == "os":
        return not {"O_WRONLY", "O_EXCL", "O_PATH"} & _names(call)
    if name.attr == "open" and owner.partition("[")[0] not in OWN_OPENERS:
        mode = next((ast.literal_eval(word) for word in call.args if _is_text(word)), "r")
        return not set(mode) & set("wxa")
    if name.attr in PARQUET and owner in ("pq", "ds"):
        return "BufferReader" not in ast.unparse(call)
    return name.attr in MAPPED


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names(call: ast.Call) -> set[str]:
    return {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("package", READERS)
def test_files_of_recordings_and_results_are_opened_guarded(package: str) -> None:
    unguarded_calls = {
        f"{name}:{line} {function}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        if (name := str(path.relative_to(PACKAGE)))
        for function, line in unguarded(ast.parse(path.read_text("utf-8")))
        if (name, function) not in OTHER_FILES
    }
    assert not unguarded_calls


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "path.open('rb')",
        "path.open()",
        "path.read_text('utf-8')",
        "pq.read_table(path, columns=[])",
        "pq.ParquetFile(str(path))",
        "pa.memory_map(str(path))",
        "os.open(path, os.O_RDONLY)",
    ],
)
def test_every_other_way_is_found(line: str) -> None:
    assert list(unguarded(ast.parse(f"def read(path):\n    return {line}"))) == [("read", 2)]
