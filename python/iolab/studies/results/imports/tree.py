# SPDX-License-Identifier: Apache-2.0
"""Importing other people's fio results: each measurement in them becomes a run, and every file is
accounted for."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from iolab import __version__
from iolab.base.errors import ResultsError, UsageError
from iolab.base.untrusted_text import parse_json, writable

from ..derive.sections import PROCESSES
from ..evidence.files import ENVIRONMENT_FILE, PLAN_FILE, RUNS, write_plan
from ..evidence.manifest import FILE, Manifest, read_manifest, write_manifest
from ..evidence.model import RunPlan
from .account import Imported, Tally, account
from .assignment import Assignment
from .layouts.layout import parse_layout
from .layouts.path_words import is_baseline
from .layouts.places import natural
from .layouts.zfs_tests import CONFIG, MOST_CONFIG, read_config, result_name
from .reading import FioResult, folder_of, join_files, kind_of, read_source
from .runs import Run, RunBuilder
from .source import MAX_BYTES, Source, SourceFile, free_name, open_source, put_file, walk


def import_tree(
    source: Path,
    layout_text: str | Sequence[str] | None,
    output: Path,
    *,
    link: bool = False,
    baseline: str | None = None,
    reproduce: list[str] | None = None,
    max_bytes: int = MAX_BYTES,
    extra: Mapping[str, Any] | None = None,
) -> Imported:
    """Make a results directory from a tree, an archive of one (tar, zip) or a single result.

    Args:
        source: what `open_source` opens; single top folders are stepped into.
        layout_text: see `layout`; matched against the whole path below the tree, of a result's
        folder first, then of its file.
            Of several the first that matches counts. None infers them.
        output: the results directory; must not exist or be empty.
        link: symbolic links to the files instead of copies (not for archives).
        max_bytes: bound on what an archive has unpacked.
        extra: goes into the plan of every run, such as `devices`: those that sums over devices
        hold, by default those that are counted (`device_choice`).

    Raises UsageError when nothing matches, ResultsError when the output is taken. Either a whole
    import is left behind, or nothing.
    """
    layouts = (
        None
        if layout_text is None
        else tuple(
            map(parse_layout, [layout_text] if isinstance(layout_text, str) else layout_text)
        )
    )
    refuse_taken(output)
    with (
        open_source(source, output.parent, link=link, max_bytes=max_bytes) as opened,
        _output_directory(output) as work_dir,
    ):
        how = "link" if link else "move" if opened.may_move else "copy"
        if layouts is None and is_own_results(opened):
            runs = copy_own_results(
                opened, work_dir, output.name, how, baseline=baseline, reproduce=reproduce or []
            )
            return Imported(
                runs,
                files={"own": [file.path for file in opened.files]},
                skipped=opened.skipped,
                is_results=True,
            )
        importing = _Import(opened, source)
        importing.assignment.match_layouts(layouts)
        return importing.write(
            work_dir,
            output.name,
            how,
            baseline=baseline,
            reproduce=reproduce or [],
            extra=extra or {},
        )


def import_files(
    files: Sequence[Path],
    output: Path,
    *,
    arms: Sequence[str] | None = None,
    link: bool = False,
    reproduce: list[str] | None = None,
    baseline: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Imported:
    """Make a results directory from fio results, each of the variant that `arms` has for it.

    Without `arms` each is a variant named after its file, or a repetition of one (see
    `Assignment.match_names`). The first variant is the baseline unless `baseline` names another.
    Errors as `import_tree` has them.
    """
    refuse_taken(output)
    names = _file_names(files)
    opened = Source(output.name)
    for name, file in zip(names, files, strict=True):
        try:
            opened.files.append(SourceFile(f"{name}{file.suffix}", file, file.stat().st_size))
        except OSError as error:
            raise UsageError(f"can't be read: {error.strerror}", where=file) from None
    paths = [file.path for file in opened.files]
    with _output_directory(output) as work_dir:
        importing = _Import(opened, files[0])
        importing.assignment.match_names(
            dict(zip(paths, names, strict=True)),
            None if arms is None else dict(zip(paths, arms, strict=True)),
        )
        return importing.write(
            work_dir,
            output.name,
            "link" if link else "copy",
            baseline=baseline,
            reproduce=reproduce or [],
            extra=extra or {},
        )


def fio_files(place: Path) -> list[Path]:
    """A file, or the fio results in a folder and the folders below it, `run2` before `run10`.

    UsageError for a folder without any.
    """
    if not place.is_dir():
        return [place]
    source = Source(place.name)
    walk(place, source)
    found = [result.file.place for result in read_source(source).results]
    if not found:
        raise UsageError(
            "has no fio result", where=place, hint="fio's JSON, terse and normal output are one"
        )
    return sorted(found, key=lambda path: natural(str(path)))


def _file_names(files: Sequence[Path]) -> list[str]:
    """A name for each file: its own, with the fewest of its folders that tell it from the others;
    equal ones are numbered."""
    paths = [file.resolve() for file in files]
    most = max(len(path.parts) for path in paths) - 1
    tries = (
        [
            "-".join((*path.parts[1:-1][len(path.parts) - 2 - depth :], path.stem))
            if depth
            else path.stem
            for path in paths
        ]
        for depth in range(min(most, 6))
    )
    names = next(
        (names for names in tries if len(set(names)) == len(set(paths))),
        [path.stem for path in paths],
    )
    unique_names: list[str] = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in itertools.count(1))
        unique_names.append(
            next(candidate for candidate in numbered if candidate not in unique_names)
        )
    return unique_names


def refuse_taken(output: Path) -> None:
    """ResultsError unless `output` is free or an empty directory; evidence is never written
    over."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ResultsError("exists already", where=output, hint="choose another -o, or remove it")
    output.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def _output_directory(output: Path) -> Iterator[Path]:
    """A directory that becomes `output` at the end, and nothing where something fails."""
    work_dir = Path(tempfile.mkdtemp(prefix=f".{output.name[:40]}.importing-", dir=output.parent))
    work_dir.chmod(0o755)
    try:
        yield work_dir
        if output.exists():
            output.rmdir()
        work_dir.rename(output)
    except BaseException:
        shutil.rmtree(work_dir, ignore_errors=True)
        raise


class _Import:
    """Writes the runs of a source, with their evidence. `where`: what the user named."""

    def __init__(self, source: Source, where: Path) -> None:
        self._source, self._where = source, where
        self._reading = read_source(source)
        self._tally = Tally()
        self._environments: dict[str, dict[str, Any]] = {}
        self.assignment = Assignment(source, self._reading, where, self._tally)

    def write(
        self,
        made: Path,
        name: str,
        how: str,
        *,
        baseline: str | None,
        reproduce: list[str],
        extra: Mapping[str, Any],
    ) -> Imported:
        """Make runs of what was taken, and the manifest."""
        builder = RunBuilder(self._source, self.assignment, self._tally)
        runs = builder.runs()
        variants = list(dict.fromkeys(run.variant for run in runs))
        if self.assignment.variants:
            variants.sort(key=self.assignment.variants.index)
        if baseline is not None and baseline not in variants:
            raise UsageError(
                f"there is no variant '{baseline}'", hint=f"variants are {', '.join(variants)}"
            )
        plans = builder.plans(runs, extra)
        evidence = self._evidence(runs)
        placed: dict[Path, Path] = {}
        for run, plan in zip(runs, plans, strict=True):
            environment = self._environments.get(run.main.result.folder)
            run_dir, files = made / RUNS / plan.run, evidence.get(id(run), [])
            _put(run_dir, run, plan, files, how, placed, environment)
        self._count_results(runs)
        factors = list(dict.fromkeys(factor for plan in plans for factor in plan.factors))
        outputs = {
            part.result.digest: part.result.output
            for run in runs
            for part in run.parts
            if part.result.output is not None
        }
        imported = Imported(
            len(runs),
            tuple(layout.text for layout in self.assignment.layouts),
            self.assignment.is_inferred,
            self._tally.files,
            self._source.skipped,
            tuple(self._tally.notes),
            self.assignment.suggestions,
            self.assignment.empty,
            builder.differences,
            outputs=outputs,
        )
        write_manifest(
            made,
            Manifest(
                name=name,
                origin="tree",
                created_ns=time.time_ns(),
                iolab=__version__,
                baseline=baseline
                or next(
                    filter(is_baseline, variants if self.assignment.is_inferred else ()),
                    variants[0],
                ),
                variants=variants,
                factors=factors,
                source=writable(self._where.name),
                layout=_one_or_list(imported.layouts),
                imported=account(imported),
                runs=[plan.run for plan in plans],
                reproduce=[writable(word) for word in reproduce],
            ),
        )
        return imported

    def _evidence(self, runs: Sequence[Run]) -> dict[int, list[SourceFile]]:
        """Further files of each run, without its result; all others are counted."""
        own_folders = {result.folder for result in self._reading.results if result.plan is not None}
        own = [file for file in self._reading.other_files if folder_of(file.path) in own_folders]
        other_files = [
            file for file in self._reading.other_files if folder_of(file.path) not in own_folders
        ]
        joined, rest = join_files(self._reading.results, other_files)
        result_of_folder: dict[str, FioResult] = {}
        for result in self._reading.results:
            result_of_folder.setdefault(result.folder, result)
        for file in own:
            owner = result_of_folder[folder_of(file.path)]
            joined.setdefault(owner.path, []).append(file)
        by_result: dict[str, list[Run]] = {}
        for run in runs:
            for part in run.parts:
                by_result.setdefault(part.result.path, []).append(run)
        files_of_run: dict[int, list[SourceFile]] = {}
        for path, files in joined.items():
            for file in files:
                self._tally.count("evidence" if path in by_result else "beside-others", [file.path])
                for run in by_result.get(path, ()):
                    files_of_run.setdefault(id(run), []).append(file)
        for file in rest:
            if owners := self._runs_of_config(file, runs):
                self._tally.count("evidence", [file.path])
                for run in owners:
                    files_of_run.setdefault(id(run), []).append(file)
                continue
            kind = kind_of(file)
            self._tally.count(
                "unknown" if kind is None else "traces" if kind == "trace" else "unattached",
                [file.path],
            )
        compressed = [
            file.path for file in self._reading.other_files if file.path.endswith(".log.fz")
        ]
        if compressed:
            self._tally.notes.append(
                f"{len(compressed)} log{'s' if len(compressed) > 1 else ''} that fio compressed (log_store_compressed): not "
                f"read; 'fio --inflate-log=FILE > LOG' makes a plain one, such as of {compressed[0]}"
            )
        return files_of_run

    def _runs_of_config(self, file: SourceFile, runs: Sequence[Run]) -> list[Run]:
        """The runs of OpenZFS's performance suite that a file describes the machine of; the
        environment is kept."""
        folder, _, name = file.path.rpartition("/")
        if name != CONFIG or file.size > MOST_CONFIG:
            return []
        owners = [
            run
            for run in runs
            if run.main.result.folder == folder
            and run.main.result.plan is None
            and result_name(run.main.result.path.rpartition("/")[2])
        ]
        if not owners:
            return []
        try:
            environment = read_config(file.place.read_bytes())
        except OSError:
            return []
        if environment is None:
            return []
        self._environments[folder] = environment
        return owners

    def _count_results(self, runs: Sequence[Run]) -> None:
        results = {part.result.path: part.result for run in runs for part in run.parts}
        for path, result in results.items():
            self._tally.count("damaged" if result.damage else "results", [path])


def _put(
    run_dir: Path,
    run: Run,
    plan: RunPlan,
    files: Sequence[SourceFile],
    how: str,
    placed: dict[Path, Path],
    environment: Mapping[str, Any] | None,
) -> None:
    """The run's directory. A file that several runs share is written once and linked."""
    run_dir.mkdir(parents=True)
    names_in_use = {"run.json"}
    if environment is not None:
        names_in_use.add(ENVIRONMENT_FILE)
        text = json.dumps(environment, indent=1) + "\n"
        (run_dir / ENVIRONMENT_FILE).write_text(text, "utf-8")
    folder = run.main.result.folder
    results = [part.result.file for part in run.parts]
    names: list[str] = []
    for file in (*results, *files):
        if file.path.rpartition("/")[2] == "run.json" and run.main.result.plan is not None:
            continue
        below = (
            file.path[len(folder) + 1 :]
            if folder and file.path.startswith(f"{folder}/")
            else file.path.rpartition("/")[2]
        )
        names.append(free_name(below.replace("/", "-")[-180:], names_in_use))
        _share(file, run_dir / names[-1], how, placed)
    if run.other_results:
        plan = replace(plan, extra={**plan.extra, PROCESSES: names[: len(results)]})
    write_plan(run_dir, plan, durable=False)


def _share(file: SourceFile, place: Path, how: str, placed: dict[Path, Path]) -> None:
    """Bring a file to its place; once more, as a hard link to the first where the file system has
    such."""
    first = placed.get(file.place)
    if first is not None and how != "link":
        try:
            os.link(first, place)
        except OSError:
            shutil.copy2(first, place)
        return
    put_file(file, place, how)
    placed[file.place] = place


def _one_or_list(layouts: Sequence[str]) -> str | list[str] | None:
    return (
        None
        if not layouts
        else writable(layouts[0])
        if len(layouts) == 1
        else [writable(text) for text in layouts]
    )


_MADE_ANEW = {"observations.parquet", "series.parquet", "histograms.parquet", "lock", ".lock"}
"""Files that are derived from the evidence, or belong to a process."""


def is_own_results(source: Source) -> bool:
    """Whether the source as a whole is one results directory that can be opened, of one host or
    several."""
    paths = {file.path: file for file in source.files}
    manifest = paths.get(FILE) or paths.get("hosts.json")
    if manifest is None or not any(
        path.startswith(f"{RUNS}/") or f"/{RUNS}/" in path or path.startswith("tables/")
        for path in paths
    ):
        return False
    try:
        data: Any = parse_json(manifest.place.read_bytes()) if manifest.size < 64 << 20 else None
    except (OSError, ValueError):
        return False
    if manifest.path == "hosts.json":
        return isinstance(data, dict | list)
    return isinstance(data, dict) and data.get("kind") == "results"


def copy_own_results(
    source: Source, output: Path, name: str, how: str, *, baseline: str | None, reproduce: list[str]
) -> int:
    """Write all of its files but caches below `output`; returns how many runs it has.

    The manifest is the source's, with what it was imported from. UsageError for a baseline that it
    hasn't, ResultsError for a manifest that can't be read.
    """
    runs = 0
    for file in source.files:
        parts = file.path.split("/")
        if parts[-1] in _MADE_ANEW or file.path == "report.html":
            continue
        place = output.joinpath(*map(writable, parts))
        place.parent.mkdir(parents=True, exist_ok=True)
        put_file(
            file, place, "copy" if how == "link" and parts[-1] in (FILE, "hosts.json") else how
        )
        runs += len(parts) >= 3 and parts[-3] == RUNS and parts[-1] == PLAN_FILE
    if (output / FILE).exists():
        manifest = read_manifest(output)
        if baseline is not None and baseline not in manifest.variants:
            raise UsageError(
                f"there is no variant '{baseline}'",
                hint=f"variants are {', '.join(manifest.variants)}",
            )
        (output / FILE).unlink()
        write_manifest(
            output,
            Manifest(
                **{
                    **manifest.model_dump(),
                    "name": manifest.name or name,
                    "source": writable(source.name),
                    "baseline": baseline or manifest.baseline,
                    "reproduce": [writable(word) for word in reproduce],
                }
            ),
        )
    elif baseline is not None:
        raise ResultsError(
            "results of several hosts keep their baseline",
            where=source.name,
            hint="compare --baseline chooses another",
        )
    return runs
