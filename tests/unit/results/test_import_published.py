# SPDX-License-Identifier: Apache-2.0
"""Published results, imported without a layout: every factor that is an option of fio equals what
fio echoed."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path

import pytest

from iolab.base.verdict import Level
from iolab.studies.results.imports.layouts.options import is_same_value
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results


def _factors(results: Results) -> Counter[str]:
    """How many factors of runs equal what fio echoed; AssertionError for one that doesn't."""
    equal: Counter[str] = Counter()
    for run in results.runs:
        for name, value in run.factors.items():
            if name in run.options:
                assert is_same_value(name, run.options[name], str(value)), (run.id, name, value)
                equal[name] += 1
    return equal


@pytest.mark.figures
def test_every_factor_of_published_results_is_what_fio_echoed(
    zol_archive: Path, foreign_archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(foreign_archive) as archive:
        archive.extractall(tmp_path / "foreign", filter="data")
    plot = next((tmp_path / "foreign").rglob("fio-plot-tree"))
    sources = {
        "zfsonlinux-6566": (zol_archive, 352),
        "fio-plot": (plot, 126),
        "fio-plot, one device": (plot / "INTEL_D3_S4610", 98),
        "all foreign": (tmp_path / "foreign", 133),
    }
    for name, (source, runs) in sources.items():
        found = import_tree(source, None, tmp_path / name.replace(" ", "-"))
        results = Results(tmp_path / name.replace(" ", "-"))
        equal = _factors(results)
        assert found.runs == len(results.runs) == runs
        assert not any("contradict" in note or "uncertain" in note for note in found.notes)
        assert sum(run.verdict.level is Level.INVALID for run in results.runs) <= (
            1 if name == "all foreign" else 0
        )
        counts = ", ".join(f"{factor} {count}" for factor, count in sorted(equal.items()))
        print(
            f"import of {name}: {runs} runs, {len(found.layouts)} layouts, "
            f"{equal.total()} factors equal to fio's echo ({counts or 'fio echoed none'}), 0 unequal"
        )
