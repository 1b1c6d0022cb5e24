# SPDX-License-Identifier: Apache-2.0
"""Every chart that results have, a method each: what `results.chart` is in a notebook and `report
--charts` writes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from iolab.base.errors import IolabError, UsageError
from iolab.base.metrics import find
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.compare.load.curves import curves
from iolab.studies.compare.model import Comparison
from iolab.studies.results.evidence.marks import seconds_of
from iolab.studies.results.evidence.model import Histogram, Run, Series
from iolab.studies.results.gates.stall import stalls

from .bars import bars
from .base.model import Chart
from .before_after import before_after
from .change import change
from .distributions import distributions
from .hockey_stick import hockey_stick
from .matrix import matrix
from .over_load import over_load
from .reference import Reference
from .series import series

Names = str | Sequence[str] | None


class Source(Protocol):
    """Results, opened: what charts need of them."""

    @property
    def runs(self) -> list[Run]: ...
    @property
    def baseline(self) -> str | None: ...
    def metrics(self) -> list[str]: ...
    def default_metric(self) -> str: ...
    def run(self, run_id: str) -> Run | None: ...
    def series(self, run_id: str) -> tuple[Series, ...]: ...
    def histograms(self, run_id: str) -> tuple[Histogram, ...]: ...
    def step_runs(self) -> list[Run]: ...


class ChartBook:
    """Charts of one results directory. `operation` is read, write...; default the operation that
    the results are about.

    Every method takes the projection of `compare` (`rows`, `cols`, `where`) as keywords where it
    draws one.
    """

    def __init__(self, results: Source) -> None:
        self._results = results

    def iops(
        self, operation: str | None = None, *, lines: str | None = None, **projection: object
    ) -> Chart:
        """IOPS against the load."""
        return self.over_load(f"{self._operation(operation)}.iops", lines=lines, **projection)

    def latency(
        self, operation: str | None = None, *, lines: str | None = None, **projection: object
    ) -> Chart:
        """Mean latency against the load."""
        return self.over_load(f"{self._operation(operation)}.lat.mean", lines=lines, **projection)

    def busy(self, *, lines: str | None = None, **projection: object) -> Chart:
        """Device utilization, mean over all devices, against the load."""
        return self.over_load("device.util", lines=lines, **projection)

    def over_load(self, metric: str, *, lines: str | None = None, **projection: object) -> Chart:
        """Any metric against the load, a line per variant, or per level of the factor `lines` (then
        a panel per variant)."""
        return over_load(self._compare(metric, projection), lines)

    def change(self, metric: str | None = None, **projection: object) -> Chart:
        """Change of each variant against the baseline, with its interval."""
        return change(self._compare(metric or self._results.default_metric(), projection))

    def before_after(self, metric: str | None = None, **projection: object) -> Chart:
        """Before, after and change as a coloured table."""
        return before_after(self._compare(metric or self._results.default_metric(), projection))

    def bars(
        self, operation: str | None = None, *, lines: str | None = None, **projection: object
    ) -> Chart:
        """IOPS as bars with the mean latency on a second axis, a bar per variant, or per level of
        the factor `lines`."""
        name = self._operation(operation)
        return bars(
            self._compare(f"{name}.iops", projection),
            self._compare(f"{name}.lat.mean", projection),
            lines,
        )

    def matrix(self, operation: str | None = None, **projection: object) -> Chart:
        """Throughput @ latency in each cell."""
        name = self._operation(operation)
        return matrix(
            self._compare(f"{name}.bw", projection), self._compare(f"{name}.lat.mean", projection)
        )

    def hockey_stick(
        self, operation: str | None = None, *, references: Sequence[Reference] = ()
    ) -> Chart:
        """Throughput against latency as the load rises, with each variant's knee.

        `references` are rated figures to hold it against, such as `parse_reference("10 GbE
        link=1192MiB/s")`; one in bytes makes the throughput bytes per second.
        """
        name = self._operation(operation)
        throughput = throughput_for(
            references, {f"{name}.iops", f"{name}.bw"} & set(self._results.metrics())
        )
        curve_set = curves(
            self._results.runs,
            operation=name,
            throughput=throughput,
            baseline=self._results.baseline,
        )
        return hockey_stick(curve_set, references)

    def steps(self, *, references: Sequence[Reference] = ()) -> Chart:
        """Throughput against latency over the steps of loads that rise within a run, with each
        variant's knee."""
        return hockey_stick(
            curves(self._results.step_runs(), baseline=self._results.baseline), references
        )

    def percentiles(self, operation: str | None = None, **projection: object) -> list[Chart]:
        """Latency histograms and percentiles per cell, counts of all repetitions added.

        Without counts (fio's json+ has them) there is a histogram alone, made of fio's percentiles;
        the list is empty where there are fewer than four of them.
        """
        name = self._operation(operation)
        return list(distributions(self._results, name, self._compare(f"{name}.iops", projection)))

    def series(self, run_id: str) -> Chart:
        """A run's per-second series, with its stalls. UsageError for a run that isn't there."""
        run = self._results.run(run_id)
        if run is None:
            raise UsageError(f"there is no run '{run_id}'", hint="iolab show --runs lists them")
        lines = self._results.series(run_id)
        moved = next((line for line in lines if line.name == "device.bw"), None)
        spans = (
            [] if moved is None else [(start, start + length) for start, length in stalls(moved)]
        )
        drawn_lines = [
            line
            for line in lines
            if "[" not in line.name and line.name not in ("device.bw", "load.bw")
        ]
        marked = seconds_of(run.evidence, run.plan.window, run.plan.files)
        return series(
            drawn_lines, title=f"Run {run_id}: {run.variant}", stalls=spans, marked=marked
        )

    def all(
        self, references: Sequence[Reference] = (), lines: str | None = None
    ) -> Iterator[Chart]:
        """Every chart that these results have: each headline metric over load and its change, then
        the views of both.

        `lines`: the factor with a line over the load for each level (see `over_load`).
        """
        for name in self._results.metrics():
            metric = find(name)
            if metric is None or not metric.headline:
                continue
            compared = self._compare(name, {})
            yield from metric_charts(compared, lines)
        with contextlib.suppress(IolabError):  # no load rises in steps
            yield self.steps(references=references)
        for operation in ("read", "write", "mixed", "trim"):
            have = set(self._results.metrics())
            if f"{operation}.lat.mean" not in have or not have & {
                f"{operation}.bw",
                f"{operation}.iops",
            }:
                continue
            # where nothing rises in load there is no curve to draw
            with contextlib.suppress(UsageError):
                yield self.hockey_stick(operation, references=references)
            if f"{operation}.bw" in have:
                yield self.matrix(operation)
            if f"{operation}.iops" in have:
                with contextlib.suppress(UsageError):  # not measured over the same factors
                    yield self.bars(operation, lines=lines)
                yield from self.percentiles(operation)

    def _operation(self, asked: str | None) -> str:
        if asked is not None:
            return asked
        first = self._results.default_metric().partition(".")[0]
        have = [
            name.partition(".")[0]
            for name in self._results.metrics()
            if name.endswith((".lat.mean", ".iops", ".bw"))
        ]
        return (
            first if first in have or not have else next(name for name in have if name != "device")
        )

    def _compare(self, metric: str, projection: Mapping[str, object]) -> Comparison:
        arguments: dict[str, object] = {"baseline": self._results.baseline}
        for name, value in projection.items():
            arguments[name] = [value] if isinstance(value, str) and name != "baseline" else value
        if isinstance(where := arguments.get("where"), Mapping):
            arguments["where"] = {
                name: [
                    str(level)
                    for level in (levels if isinstance(levels, list | tuple) else [levels])
                ]
                for name, levels in where.items()
            }
        axes = {
            name: arguments.pop(name)
            for name in ("rows", "cols", "tables", "ignore")
            if name in arguments
        }
        layout = Layout(**axes)  # type: ignore[arg-type]
        return compare(self._results.runs, metric, layout=layout, **arguments)  # type: ignore[arg-type]


def throughput_for(references: Sequence[Reference], have: Collection[str]) -> str:
    """`iops` or `bw`: what a hockey stick's axis shows: bytes where a reference is in bytes, or no
    rate is there."""
    in_bytes = any(reference.unit == "B/s" for reference in references) and any(
        name.endswith(".bw") for name in have
    )
    return "bw" if in_bytes or not any(name.endswith(".iops") for name in have) else "iops"


def metric_charts(comparison: Comparison, lines: str | None = None) -> list[Chart]:
    """The charts of one metric: over the load, the change where there is one, before and after
    where rows are no load."""
    if not any(cell.estimate.value is not None for cell in comparison.cells):
        return []
    charts = [over_load(comparison, lines)]
    if any(cell.change is not None for cell in comparison.cells):
        charts.append(change(comparison))
    if comparison.metric.name.endswith("time") and len(comparison.variants) > 1:
        charts.append(before_after(comparison))
    return charts
