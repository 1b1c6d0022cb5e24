# SPDX-License-Identifier: Apache-2.0
"""A results directory, opened: its runs with observations and verdicts, series on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import ResultsError
from iolab.base.metrics import find, sort_key
from iolab.base.verdict import Level, Reason, Verdict
from iolab.formats.core.tables import FioOutput

from ..evidence.completeness import Standing, joined_standing, open_runs, standing
from ..evidence.files import known_plan, read_environment, run_directories
from ..evidence.journal import FILE as JOURNAL_FILE
from ..evidence.journal import examine_journal
from ..evidence.lock import is_locked
from ..evidence.manifest import Manifest, read_manifest
from ..evidence.model import NO_PLAN, Derived, Histogram, Run, Series
from ..imports.table import published_runs
from .cache import FILE as CACHE_FILE
from .cache import evidence_key, notes_and_table, read_cache, table_of, write_caches
from .cache_details import Details, detail_tables, read_details
from .multi_host import begun_on, joined_manifest, joined_runs, read_hosts

if TYPE_CHECKING:
    from .profiles import Profile

Progress = Callable[[int, int], None]
"""Called with (runs read, runs in all) while evidence is read."""


class Results:
    """Runs of one study, imported tree or published table.

    Attributes:
        path: the results directory; manifest: its manifest; runs: in order of their number.

    Where the directory has `hosts.json`, the runs are those of all its hosts, each under
    `<host>/<run>`; see `hosts`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        progress: Progress | None = None,
        outputs: Mapping[str, FioOutput] | None = None,
    ) -> None:
        """Open; ResultsError where it is not a results directory. Evidence is read again only where
        the cache is stale, and what `outputs` has (as `derive` takes it) is not read again."""
        path = Path(path)
        self.path = path
        hosts = read_hosts(path)
        self._parts = (
            {}
            if hosts is None
            else {name: Results(path / name, progress=progress) for name in begun_on(path, hosts)}
        )
        self._absent_hosts = [
            name for name in (hosts.words if hosts is not None else ()) if name not in self._parts
        ]
        self.manifest: Manifest = (
            read_manifest(path)
            if hosts is None
            else joined_manifest(hosts, [part.manifest for part in self._parts.values()])
        )
        self._derived: dict[str, Derived] = {}
        self.runs: list[Run] = self._load(progress, outputs)
        if not self._parts and is_locked(path) and (path / JOURNAL_FILE).exists():
            self._omit_open_runs()

    def _omit_open_runs(self) -> None:
        """Leave out the run that is being executed: half of its evidence would be INVALID. Caches
        keep it, so that a study that is killed has it with the reason."""
        try:
            under_way = open_runs(examine_journal(self.path)[0])
        except ResultsError:
            return  # `standing` says so
        self.runs = [run for run in self.runs if run.id not in under_way]

    def _load(
        self, progress: Progress | None, outputs: Mapping[str, FioOutput] | None
    ) -> list[Run]:
        if self._parts:
            return joined_runs({name: part.runs for name, part in self._parts.items()})
        if self.manifest.origin == "table":
            return published_runs(self.path, self.manifest.files)
        key = self._key = evidence_key(self.path)
        cached = read_cache(self.path, key)
        if cached is not None:
            return cached
        runs = []
        for number, (run, of) in enumerate(self._read(outputs), 1):
            runs.append(run)
            if progress is not None:
                progress(number, of)
        write_caches(
            self.path, {CACHE_FILE: notes_and_table(runs), **detail_tables(self._derived)}, key
        )
        return runs

    def _read(self, outputs: Mapping[str, FioOutput] | None) -> Iterator[tuple[Run, int]]:
        """Each run from its evidence, with how many there are."""
        from ..derive.derive_all import derive_all

        plans = [(run_dir, *known_plan(run_dir)) for run_dir in run_directories(self.path)]
        derived_runs = derive_all(
            [(run_dir, plan) for run_dir, plan, problem in plans if problem is None], outputs
        )
        for run_dir, plan, problem in plans:
            if problem is not None:
                yield (
                    Run(
                        plan,
                        run_dir,
                        {},
                        Verdict.of([Reason(NO_PLAN, Level.INVALID, problem.message)]),
                    ),
                    len(plans),
                )
                continue
            derived = self._derived[plan.run] = next(derived_runs)
            observations = {observation.metric: observation for observation in derived.observations}
            yield (
                Run(
                    plan,
                    run_dir,
                    observations,
                    derived.verdict,
                    derived.environment,
                    derived.assumptions,
                    derived.options,
                    derived.window,
                    derived.boot,
                ),
                len(plans),
            )

    @cached_property
    def _by_id(self) -> dict[str, Run]:
        return {run.id: run for run in self.runs}

    def run(self, run_id: str) -> Run | None:
        """The run of that name, or None."""
        return self._by_id.get(run_id)

    @cached_property
    def standing(self) -> Standing | None:
        """How much of its study or import is there; None where that is unknown (tables)."""
        if self._parts:
            parts = {name: part.standing for name, part in self._parts.items()}
            return joined_standing(parts, self._absent_hosts)
        return standing(self.path, self.manifest)

    def metrics(self) -> list[str]:
        """Metrics that at least one run has, in the order in which reports list them."""
        return metrics_of(self.runs)

    @property
    def baseline(self) -> str | None:
        """The study's baseline, where it is among the runs."""
        name = self.manifest.baseline
        return name if any(run.variant == name for run in self.runs) else None

    def default_metric(self) -> str:
        """What to look at first: the rate of the operation that did most, else the first headline
        metric there is.

        ResultsError where no run has any observation.
        """
        return default_metric(self.runs, self.path)

    def observations(self) -> Any:
        """All observations as a `pyarrow.Table` (`.to_pandas()` where pandas is there), one row
        each; see `cache.table_of`."""
        return table_of(self.runs)

    def series(self, run_id: str) -> tuple[Series, ...]:
        """Per-second series of a run, read from its evidence."""
        return self._details(run_id)[0]

    def histograms(self, run_id: str) -> tuple[Histogram, ...]:
        """Latency histograms of a run, read from its evidence; empty unless fio wrote json+."""
        return self._details(run_id)[1]

    def _details(self, run_id: str) -> tuple[tuple[Series, ...], tuple[Histogram, ...]]:
        """From what was just derived, else from the cache, else from the evidence."""
        if self._parts:
            name, _, own = run_id.partition("/")
            return self._parts[name]._details(own)
        run = self._by_id[run_id]
        if run.plan.status == "published" or run.plan.variant == "?":
            return (), ()
        if run_id not in self._derived and run_id in self._cached_details:
            return self._cached_details[run_id]
        if run_id not in self._derived:
            from ..derive.derive import derive

            self._derived[run_id] = derive(run.evidence, run.plan)
        return self._derived[run_id].series, self._derived[run_id].histograms

    @cached_property
    def _cached_details(self) -> Details:
        return read_details(self.path, self._key) or {}

    def window_runs(self) -> list[Run]:
        """The windows between marks, as runs (see `windows`); ResultsError where no run has
        marks."""
        from ..derive.windows import window_runs

        runs = window_runs(self.runs, self.series, self.baseline)
        if not runs:
            raise ResultsError(
                "no run has marks with seconds between them",
                where=self.path,
                hint="a study's [[actions]] make marks",
            )
        return runs

    def step_runs(self) -> list[Run]:
        """The steps of loads that rise within a run, as runs (see `steps`); ResultsError where no
        load rises."""
        from ..derive.steps import read_steps, step_runs

        steps = [step for run in self.runs for step in step_runs(run, read_steps(run))]
        if not steps:
            raise ResultsError(
                "no run's load rises in steps",
                where=self.path,
                hint="a study's [workload.steps] makes it rise",
            )
        return steps

    def client_runs(self) -> list[Run]:
        """Each client's part of every run, as runs with the factor `client` (see
        `derive.clients`). ResultsError if no run's load came from several hosts."""
        from ..derive.clients import client_runs

        parts = [part for run in self.runs for part in client_runs(run)]
        if not parts:
            raise ResultsError(
                "no run's load came from several clients",
                where=self.path,
                hint="a study's [load] names client hosts",
            )
        return parts

    def home(self, run: Run) -> Path:
        """The results directory of a run: that of its host, where results are of several hosts."""
        return self.path / run.id.rpartition("/")[0]

    def profiles(self) -> tuple[list[Profile], list[str]]:
        """Profiles in order of their runs, and notes on those that cannot be read."""
        from .profiles import read_profiles

        return read_profiles(self.path)

    def manifests(self) -> dict[str, Manifest]:
        """The manifest under an empty name."""
        return {"": self.manifest}

    def environment(self) -> dict[str, Any]:
        """`environment.json` of the results, else of the first run that has one: `{"fingerprint",
        "facts"}`, or empty."""
        document = read_environment(
            next(iter(self._parts.values())).path if self._parts else self.path
        )
        return document or next(
            (
                facts
                for run in self.runs
                if (facts := read_environment(run.evidence, run.plan.files))
            ),
            {},
        )

    def environments(self) -> dict[str, dict[str, Any]]:
        """`environment()` of each host, by the name before its runs'; that of results of a single
        host under an empty name."""
        return {name: part.environment() for name, part in self._parts.items()} or {
            "": self.environment()
        }


def metrics_of(runs: Iterable[Run]) -> list[str]:
    """Metrics that at least one run has, in the order in which reports list them."""
    return sorted({name for run in runs for name in run.observations}, key=sort_key)


def default_metric(runs: Sequence[Run], where: str | Path) -> str:
    """As `Results.default_metric`; `where` names the results in the error."""
    have = metrics_of(runs)
    rates = [
        name
        for name in have
        if name.endswith(".iops") and not name.startswith(("device.", "offered"))
    ]
    if rates:
        return max(rates, key=lambda name: sum(run.value(name) or 0.0 for run in runs))
    if not have:
        raise ResultsError(
            "no run has a usable result",
            where=where,
            hint="iolab show says why, run by run",
        )
    return next(
        (name for name in have if (metric := find(name)) is not None and metric.headline), have[0]
    )
