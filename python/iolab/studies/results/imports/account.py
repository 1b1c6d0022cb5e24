# SPDX-License-Identifier: Apache-2.0
"""What became of every file of an import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iolab.base.untrusted_text import writable
from iolab.formats.core.tables import FioOutput


@dataclass
class Tally:
    """What each file counts as, and notes on decisions, during an import."""

    files: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: str, paths: Iterable[str]) -> None:
        """Count files as that kind."""
        listed = list(paths)
        if listed:
            self.files.setdefault(kind, []).extend(listed)


@dataclass(frozen=True)
class Imported:
    """What became of an import.

    Attributes:
        runs: their number. layouts: those that matched, as text. is_inferred: whether the layouts
        were found here. files: kinds of files, to the paths: `results`, `damaged`, `copies`,
        `unmatched`, `evidence`, `beside-others`, `unattached`, `traces`,
        `unknown`, `own`. A file counts once.
        skipped: why something was never read, to the paths.
        notes: decisions, in words. suggestions: layouts that would match what is unmatched.
        empty: folders that the layout names and that have no fio result. differences: of the
        variants' options, in words. is_results: whether the source was a results directory of
        iolab, taken as it is. outputs: the fio results, by the SHA-256 of their bytes.
    """

    runs: int
    layouts: tuple[str, ...] = ()
    is_inferred: bool = False
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    is_results: bool = False
    outputs: Mapping[str, FioOutput] = field(default_factory=dict, repr=False)

    @property
    def unmatched_files(self) -> tuple[str, ...]:
        """Result files that no layout takes."""
        return tuple(self.files.get("unmatched", ()))


def account(imported: Imported, most: int = 5) -> dict[str, Any]:
    """What became of every file, as plain data: counts with examples, layouts, notes."""

    def count_paths(paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        return {
            name: {
                "count": len(paths_of_kind),
                "examples": [writable(path) for path in paths_of_kind[:most]],
            }
            for name, paths_of_kind in paths.items()
        }

    return {
        "runs": imported.runs,
        "layouts": [writable(text) for text in imported.layouts],
        "inferred": imported.is_inferred,
        "files": count_paths(imported.files),
        "skipped": count_paths(imported.skipped),
        "notes": [writable(note) for note in imported.notes],
        "unmatched_layouts": [writable(text) for text in imported.suggestions],
        "whole": imported.is_results,
        "differences": [writable(text) for text in imported.differences],
        "folders_without_result": {
            "count": len(imported.empty),
            "examples": [writable(path) for path in imported.empty[:most]],
        },
    }
