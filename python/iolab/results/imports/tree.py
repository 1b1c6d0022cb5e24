# SPDX-License-Identifier: Apache-2.0
"""Importing other people's fio results: each measurement in them becomes a run, and every file is
accounted for."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import __version__
from ...errors import FormatError, IolabError, ResultsError, UsageError
from ...formats.fio.groups import FioGroup, window_of
from ...untrusted_text import writable
from ..derive.sections import PROCESSES
from ..evidence.files import RUNS, write_plan
from ..evidence.manifest import Manifest, write_manifest
from ..evidence.model import RunPlan
from .account import Imported, account
from .layout import RESERVED, Layout, parse_layout
from .layout_inference import Sample, infer_layouts
from .options import (
    Told,
    complete_factors,
    drop_explained_folders,
    split_by_options,
    telling_options,
    unlike_arms,
)
from .own_results import copy_own_results, is_own_results
from .path_words import is_baseline
from .places import Place, number_repetitions
from .processes import clusters
from .reading import FioResult, Reading, folder_of, join_files, kind_of, options_of, read_source
from .source import (
    MAX_BYTES,
    Source,
    SourceFile,
    free_name,
    is_archive,
    open_source,
    put_file,
)

CONCURRENCY = ("numjobs", "jobs", "threads")
"""Factors that name how many jobs ran at once."""

_MOST_LOOKED_AT = 200
"""Files that are looked at to name what a source has where it has no fio result."""

SECTION = "section"
"""The factor that separates the sections of one fio result."""


@dataclass(frozen=True)
class _Taken:
    """A result with what its path says: `fields` of the layout, and the `rest` of the path."""

    result: FioResult
    fields: Mapping[str, Any]
    rest: str


@dataclass
class _Run(Told):
    """A measurement on its way to be a run."""

    main: _Taken = field(kw_only=True)
    group: FioGroup | None = None
    section: str | None = None
    other_results: list[_Taken] = field(default_factory=list)

    @property
    def parts(self) -> list[_Taken]:
        """The results of all processes that ran at once."""
        return [self.main, *self.other_results]


def import_tree(
    source: Path,
    layout_text: str | Sequence[str] | None,
    output: Path,
    *,
    link: bool = False,
    baseline: str | None = None,
    reproduce: list[str] | None = None,
    max_bytes: int = MAX_BYTES,
    devices: Sequence[str] = (),
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
        devices: those that sums over devices hold; by default those that are counted
        (`device_choice`). max_bytes: bound on what an archive has unpacked.
        extra: goes into the plan of every run.

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
        importing = _Import(opened, read_source(opened), source)
        importing.assign(layouts)
        return importing.write(
            work_dir,
            output.name,
            how,
            baseline=baseline,
            reproduce=reproduce or [],
            extra={**(extra or {}), **({"devices": list(devices)} if devices else {})},
        )


def import_files(
    files: Sequence[Path],
    output: Path,
    *,
    link: bool = False,
    reproduce: list[str] | None = None,
    baseline: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Imported:
    """Make a results directory from fio results, each a variant named after its file. The first one
    is the baseline unless `baseline` names another. Errors as `import_tree` has them."""
    refuse_taken(output)
    names = _file_names(files)
    opened = Source(output.name)
    for name, file in zip(names, files, strict=True):
        try:
            opened.files.append(SourceFile(f"{name}{file.suffix}", file, file.stat().st_size))
        except OSError as error:
            raise UsageError(f"can't be read: {error.strerror}", where=file) from None
    with _output_directory(output) as work_dir:
        importing = _Import(opened, read_source(opened), files[0])
        importing.assign_variants(
            {source_file.path: name for source_file, name in zip(opened.files, names, strict=True)}
        )
        return importing.write(
            work_dir,
            output.name,
            "link" if link else "copy",
            baseline=baseline,
            reproduce=reproduce or [],
            extra=extra or {},
        )


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
    """The steps from files to runs; `files` collects what becomes of each."""

    def __init__(self, source: Source, reading: Reading, where: Path) -> None:
        self._source, self._reading, self._where = source, reading, where
        self._taken: list[_Taken] = []
        self._layouts: tuple[Layout, ...] = ()
        self._is_inferred = False
        self._suggestions: tuple[str, ...] = ()
        self._empty: tuple[str, ...] = ()
        self._files: dict[str, list[str]] = {}
        self._notes: list[str] = []
        self._unlike: list[str] = []
        self._variants: tuple[str, ...] = ()  # in the order that the user gave
        self._sampled: dict[str, Sample] = {}

    # --- which results are taken, and what their paths say

    def assign(self, layouts: tuple[Layout, ...] | None) -> None:
        """Match every result; without layouts, infer them first."""
        results = self._reading.results
        if not results:
            raise self._nothing()
        own = [result for result in results if result.plan is not None]
        foreign_results = [result for result in results if result.plan is None]
        unmatched: list[FioResult] = []
        if layouts is None:
            sound = [result for result in foreign_results if result.groups] or foreign_results
            inferred = infer_layouts(self._samples(sound))
            self._is_inferred = True
            self._notes += inferred.doubts
            self._suggestions = inferred.copies
            self._layouts = tuple(map(parse_layout, inferred.layouts))
            unmatched = [result for result in foreign_results if result.path in inferred.copy_paths]
            foreign_results = [
                result for result in foreign_results if result.path not in inferred.copy_paths
            ]
            level = ""
        else:
            self._layouts = layouts
            level = self._level(foreign_results + own)
        for result in foreign_results:
            match = self._match(result, level)
            if match is None:
                unmatched.append(result)
            else:
                self._taken.append(match)
        for result in own:
            self._taken.append(self._match(result, level) or _Taken(result, {}, ""))
        if not self._taken:
            raise self._matches_nothing(unmatched, level)
        self._note_contradictions()
        if unmatched and not self._suggestions:
            self._suggestions = infer_layouts(self._samples(unmatched)).layouts
        self._count("unmatched", (result.path for result in unmatched))
        self._empty = () if self._is_inferred else self._empty_folders(level)

    def _note_contradictions(self) -> None:
        contradicting: dict[str, list[_Taken]] = {}
        for match in self._taken:
            for name in self._contradictions(match):
                contradicting.setdefault(name, []).append(match)
        for name, results in contradicting.items():
            first = results[0]
            echo = self._sample(first.result).echo(name)
            self._notes.append(
                f"the layout contradicts fio's options: {name} of {len(results)} "
                f"result{'s' if len(results) > 1 else ''}, such as {first.fields[name]} of "
                f"{first.result.path}, where fio echoed {echo}"
            )

    def assign_variants(self, names: Mapping[str, str]) -> None:
        """Take every file as the variant of that name; FormatError for a file that is not a fio
        result."""
        result_paths = {result.path for result in self._reading.results}
        stranger = next(
            (file for file in self._source.files if file.path not in result_paths), None
        )
        if stranger is not None:
            raise FormatError(
                "is not a fio result",
                where=stranger.place,
                hint="fio writes one with --output-format=json",
            )
        self._variants = tuple(names.values())
        self._taken = [
            _Taken(result, {"variant": names[result.path]}, "") for result in self._reading.results
        ]

    def _level(self, results: Sequence[FioResult]) -> str:
        """The part of the folders that were stepped into with which most results match: none of it
        unless that is better."""
        parts = self._source.prefix.rstrip("/").split("/") if self._source.prefix else []
        levels = [
            "".join(f"{part}/" for part in parts[place:]) for place in range(len(parts), -1, -1)
        ]
        return max(
            levels,
            key=lambda level: sum(self._match(result, level) is not None for result in results),
        )

    def _samples(self, results: Sequence[FioResult]) -> list[Sample]:
        return [self._sample(result) for result in results]

    def _sample(self, result: FioResult) -> Sample:
        if result.path not in self._sampled:
            self._sampled[result.path] = _sample_of(result)
        return self._sampled[result.path]

    def _match(self, result: FioResult, level: str) -> _Taken | None:
        """What the first layout says that matches a result and agrees with what fio echoed; else
        the first that matches."""
        path = f"{level}{result.path}"
        folder, _, name = path.rpartition("/")
        fallback: _Taken | None = None
        for layout in self._layouts:
            if folder and (fields := layout.match(folder)) is not None:
                match = _Taken(result, fields, f"{layout.rest(folder)}\0{name}")
                if len(self._layouts) == 1 or not self._contradictions(match):
                    return match
                fallback = fallback or match
        for layout in self._layouts:
            if (fields := layout.match(path)) is not None:
                match = _Taken(result, fields, layout.rest(path))
                if len(self._layouts) == 1 or not self._contradictions(match):
                    return match
                fallback = fallback or match
        return fallback

    def _contradictions(self, match: _Taken) -> list[str]:
        """Fields of a path that are options of which fio echoed other values."""
        sample = self._sample(match.result)
        return [
            name for name, value in match.fields.items() if sample.agrees(name, str(value)) is False
        ]

    def _empty_folders(self, level: str) -> tuple[str, ...]:
        """Folders with files that a layout names and that have no result."""
        used_folders = {match.result.folder for match in self._taken}
        folders = {f"{level}{file.path}".rpartition("/")[0] for file in self._reading.other_files}
        return tuple(
            sorted(
                folder
                for folder in folders
                if folder
                and folder.removeprefix(level) not in used_folders
                and any(layout.match(folder) is not None for layout in self._layouts)
                and not any(
                    used.startswith(f"{folder.removeprefix(level)}/") for used in used_folders
                )
            )
        )

    def _nothing(self) -> IolabError:
        many = len(self._source.files)
        kind = UsageError if self._where.is_dir() else FormatError
        if self._reading.normal_output:
            return kind(
                f"{len(self._reading.normal_output)} of {many} files are fio's normal output, such as "
                f"{self._reading.normal_output[0]}, which is for people",
                where=self._where,
                hint="run fio with --output-format=json",
            )
        kinds = {file.path: kind_of(file) for file in self._source.files[:_MOST_LOOKED_AT]}
        trace = next((path for path, name in kinds.items() if name == "trace"), None)
        if trace is not None:
            return kind(
                f"has no fio result; {trace} is a trace of I/O",
                where=self._where,
                hint=f"iolab import {self._command_path(trace)} -o DIR makes a recording of it",
            )
        reading = next((path for path, name in kinds.items() if name is not None), None)
        if reading is not None:
            return kind(
                f"has no fio result; {reading} is {kinds[reading]}, which counts next to the result of its load",
                where=self._where,
                hint="put fio's JSON output into the same folder, then iolab import FOLDER -o DIR",
            )
        skipped = sum(map(len, self._source.skipped.values()))
        more = (
            f" ({skipped} more were skipped: {', '.join(self._source.skipped)})" if skipped else ""
        )
        looked = f"{many} file{'' if many == 1 else 's'} looked at{more}"
        return kind(
            f"is neither a fio result nor a directory or archive that has one: {looked}",
            where=self._where,
            hint="results are fio's JSON or terse output; traces of I/O are imported as files of their own",
        )

    def _command_path(self, path: str) -> str:
        """A file of a directory as a command line names it."""
        if not self._where.is_dir():
            return path if is_archive(self._where) else shlex.quote(str(self._where))
        return shlex.quote(str(self._where / f"{self._source.prefix}{path}"))

    def _matches_nothing(self, unmatched: Sequence[FioResult], level: str) -> UsageError:
        texts = ", ".join(f"'{layout.text}'" for layout in self._layouts)
        depth = self._layouts[0].text.count("/") + 1
        deep = next(
            (result.path for result in unmatched if result.path.count("/") >= depth),
            unmatched[0].path,
        )
        example = "/".join(f"{level}{deep}".split("/")[:depth])
        would = infer_layouts(self._samples(unmatched)).layouts
        return UsageError(
            f"the layout {texts} matches nothing below the tree; a path at that depth is '{example}'",
            where=self._where,
            hint=f"--layout '{would[0]}' would match"
            if would
            else "leave --layout out to have it inferred",
        )

    # --- runs

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
        runs = self._make_runs()
        self._complete(runs)
        self._differences(runs)
        runs = self._without_copies(runs)
        runs.sort(key=self._order)
        runs = self._join_processes(runs)
        variants = list(dict.fromkeys(run.variant for run in runs))
        if self._variants:
            variants.sort(key=self._variants.index)
        if baseline is not None and baseline not in variants:
            raise UsageError(
                f"there is no variant '{baseline}'", hint=f"variants are {', '.join(variants)}"
            )
        plans = self._plans(runs, extra)
        evidence = self._evidence(runs)
        placed: dict[Path, Path] = {}
        for run, plan in zip(runs, plans, strict=True):
            _put(made / RUNS / plan.run, run, plan, evidence.get(id(run), []), how, placed)
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
            tuple(layout.text for layout in self._layouts),
            self._is_inferred,
            self._files,
            self._source.skipped,
            tuple(self._notes),
            self._suggestions,
            self._empty,
            tuple(self._unlike),
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
                or next(filter(is_baseline, variants if self._is_inferred else ()), variants[0]),
                variants=variants,
                factors=factors,
                source=writable(self._where.name),
                layout=_one_or_list(imported.layouts),
                imported=account(imported),
                reproduce=[writable(word) for word in reproduce],
            ),
        )
        return imported

    def _complete(self, runs: Sequence[_Run]) -> None:
        """Where several layouts name different factors, take what they leave out from fio's
        options."""
        if len(self._layouts) < 2:
            return
        for name, many in complete_factors(runs).items():
            self._notes.append(
                f"{name} of {many} run{'s' if many > 1 else ''} is taken from fio's options: the path doesn't name it"
            )
        self._notes += [
            f"{name} is not a factor: the other factors explain it"
            for name in drop_explained_folders(runs)
        ]

    def _make_runs(self) -> list[_Run]:
        """A run for each group of each result."""
        sections = {
            group.name
            for match in self._taken
            for group in _groups(match.result)
            if len(_groups(match.result)) > 1
        }
        runs: list[_Run] = []
        for match in self._taken:
            many = len(_groups(match.result)) > 1
            for group in _groups(match.result) or (None,):
                run = self._run(match, group, many)
                if group is not None and group.name in sections:
                    run.factors[SECTION] = run.section = group.name
                runs.append(run)
        if not sections:
            return runs
        split = sum(len(_groups(match.result)) > 1 for match in self._taken)
        self._notes.append(
            f"{split} result{'s have' if split > 1 else ' has'} several sections that ran one after another: each is a run, "
            f"distinguished by the factor '{SECTION}'"
        )
        return runs

    def _run(self, taken: _Taken, group: FioGroup | None, many: bool) -> _Run:
        plan = taken.result.plan
        fields = taken.fields
        variant = str(
            fields.get("variant", plan.variant if plan is not None else self._source.name)
        )
        factors = dict[str, object](plan.factors if plan is not None else {})
        factors |= {name: _plain(fields[name]) for name in fields if name not in RESERVED}
        host = str(fields.get("host", plan.host if plan is not None else "imported"))
        all_options = {} if group is None or plan is not None else options_of(group)
        options = {
            name: text
            for name, text in telling_options(all_options).items()
            if not (many and name == SECTION)
        }
        return _Run(
            writable(variant),
            factors,
            options,
            all_options,
            writable(host),
            main=taken,
            group=group if many else None,
        )

    def _differences(self, runs: list[_Run]) -> None:
        """What fio echoed differently within a cell becomes a factor; what else differs between the
        arms of a cell is said."""
        runs_with_options = [run for run in runs if run.options]
        for factor, example in split_by_options(runs_with_options).items():
            self._notes.append(
                f"runs of one cell differ in what fio echoed, so they are not repetitions: '{factor}' became a factor "
                f"({example})"
            )
        if all(run.main.result.plan is None for run in runs):
            self._unlike = [
                f"variants differ in fio's {name} ({example})"
                for name, example in unlike_arms(runs_with_options).items()
            ]

    def _without_copies(self, runs: list[_Run]) -> list[_Run]:
        """Runs with the same bytes as another run of the same cell and variant are not
        repetitions.

        A layout that was given says that they are runs: then they stay, and it is said.
        """
        first_paths: dict[tuple[object, ...], str] = {}
        kept, copies = [], dict[str, str]()
        for run in sorted(
            runs, key=lambda run: (run.main.result.path.count("/"), run.main.result.path)
        ):
            key = (run.main.result.digest, run.variant, run.host, _cell(run), run.section)
            if (
                run.main.result.digest
                and first_paths.setdefault(key, run.main.result.path) != run.main.result.path
            ):
                copies[run.main.result.path] = first_paths[key]
            else:
                kept.append(run)
        if not copies:
            return runs
        copy, original = next(iter(copies.items()))
        many = "s are copies" if len(copies) > 1 else " is a copy"
        fate = (
            "which is not a repetition: left out"
            if self._is_inferred
            else "which is not a repetition of it, but counts as the layout says"
        )
        self._notes.append(
            f"{len(copies)} result{many}, byte by byte, of another of the same cell, {fate}: such as {copy} of {original}"
        )
        if not self._is_inferred:
            return runs
        self._count("copies", copies)
        return kept

    def _join_processes(self, runs: Sequence[_Run]) -> list[_Run]:
        """Runs of one cell and variant that ran at the same time as one run of several processes.

        Where they have sections, each is a run, distinguished by the factor `process`.
        """
        alike: dict[tuple[object, ...], list[_Run]] = {}
        for run in runs:
            is_own = run.main.result.plan is not None
            key = id(run) if is_own else (run.variant, run.host, _cell(run))
            alike.setdefault((key,), []).append(run)
        dropped: set[int] = set()
        joined, apart = 0, 0
        for members in alike.values():
            windows = [_window(run) for run in members]
            together_at = clusters(windows)
            if all("process" in run.main.fields for run in members) and (
                sum(windows[cluster[0]] is not None for cluster in together_at) < 2
            ):
                # results that are damaged or don't say when they ran, of the only run there is
                together_at = [list(range(len(members)))]
            for together in together_at:
                first, *other_members = _distinct([members[place] for place in together])
                if not other_members:
                    continue
                if first.section is not None or any(run.group is not None for run in other_members):
                    for number, run in enumerate([first, *other_members]):
                        run.factors["process"] = number
                    apart += 1 + len(other_members)
                    continue
                first.other_results = [run.main for run in other_members]
                dropped |= set(map(id, other_members))
                joined += 1
        if joined:
            self._notes.append(
                f"{joined + len(dropped)} results ran at the same time as others of their cell, so they are not "
                f"repetitions: they are the processes of {joined} run{'s' if joined > 1 else ''}, with rates summed "
                "and latencies pooled"
            )
        if apart:
            self._notes.append(
                f"{apart} sections ran at the same time as others of their cell, so they are not repetitions: "
                "'process' became a factor"
            )
        return [run for run in runs if id(run) not in dropped]

    def _order(self, run: _Run) -> tuple[object, ...]:
        fields = run.main.fields
        if not fields and run.main.result.plan is not None:
            return (-1, run.main.result.path)
        place = next(
            (
                number
                for number, layout in enumerate(self._layouts)
                if set(layout.fields) == set(fields)
            ),
            0,
        )
        keys = tuple((str(type(fields[name])), fields[name]) for name in fields)
        return (
            place,
            keys,
            _natural(run.main.rest),
            run.group.index if run.group is not None else 0,
        )

    def _plans(self, runs: Sequence[_Run], extra: Mapping[str, Any]) -> list[RunPlan]:
        every = list(dict.fromkeys(name for run in runs for name in run.factors))
        blocks = self._numbers(runs, "block", "repetition")
        repetitions = (
            self._numbers(runs, "repetition", "block")
            if any("repetition" in run.main.fields for run in runs)
            else blocks
        )
        plans = []
        for number, (run, block, repetition) in enumerate(
            zip(runs, blocks, repetitions, strict=True), 1
        ):
            result, own = run.main.result, run.main.result.plan
            section = f"#{run.group.index}" if run.group is not None else ""
            digest = hashlib.sha256(os.fsencode(f"{result.path}{section}")).hexdigest()[:8]
            factors = {
                name: run.factors[name] for name in every if run.factors.get(name) is not None
            }
            jobs = next(
                (
                    factors[key]
                    for key in CONCURRENCY
                    if isinstance(factors.get(key), int) and key in run.main.fields
                ),
                None,
            )
            more: dict[str, Any] = {
                **extra,
                "imported_from": writable(f"{self._source.prefix}{result.path}"),
            }
            if run.group is not None:
                more["section"] = {"index": run.group.index, "name": run.group.name}
            name = f"{number:04d}-{digest}"
            if own is None:
                plans.append(
                    RunPlan(
                        name,
                        run.variant,
                        factors,
                        repetition,
                        block,
                        "imported",
                        run.host,
                        jobs=self._jobs(run, jobs) if isinstance(jobs, int) else None,
                        extra=more,
                    )
                )
            else:
                kept = (
                    own
                    if "repetition" not in run.main.fields and "block" not in run.main.fields
                    else None
                )
                plans.append(
                    _of_own(
                        own,
                        name,
                        run,
                        factors,
                        kept.repetition if kept else repetition,
                        kept.block if kept else block,
                        more,
                    )
                )
        return plans

    def _jobs(self, run: _Run, named: int) -> int:
        """Jobs of all processes of a run, where its path names those of one or of all."""
        echoed = [self._sample(part.result).options.get("numjobs", "1") for part in run.parts]
        total = sum(int(text) if text.isdecimal() else 1 for text in echoed)
        return named if named == total else named * len(run.parts)

    def _numbers(self, runs: Sequence[_Run], first: str, second: str) -> list[int]:
        places = []
        for run in runs:
            named = run.main.fields.get(first, run.main.fields.get(second))
            places.append(
                Place(
                    (run.host, _cell(run)),
                    run.variant,
                    None if named is None else str(named),
                    run.main.rest,
                )
            )
        numbers, notes = number_repetitions(places)
        self._notes += [note for note in notes if note not in self._notes]
        return numbers

    # --- files

    def _evidence(self, runs: Sequence[_Run]) -> dict[int, list[SourceFile]]:
        """Further files of each run, without its result; all others are counted."""
        own_folders = {result.folder for result in self._reading.results if result.plan is not None}
        own = [file for file in self._reading.other_files if folder_of(file.path) in own_folders]
        other_files = [
            file for file in self._reading.other_files if folder_of(file.path) not in own_folders
        ]
        joined, rest = join_files(self._reading.results, other_files)
        for file in own:
            owner = next(
                result for result in self._reading.results if result.folder == folder_of(file.path)
            )
            joined.setdefault(owner.path, []).append(file)
        by_result: dict[str, list[_Run]] = {}
        for run in runs:
            for part in run.parts:
                by_result.setdefault(part.result.path, []).append(run)
        files_of_run: dict[int, list[SourceFile]] = {}
        for path, files in joined.items():
            for file in files:
                self._count("evidence" if path in by_result else "beside-others", [file.path])
                for run in by_result.get(path, ()):
                    files_of_run.setdefault(id(run), []).append(file)
        for file in rest:
            kind = kind_of(file)
            self._count(
                "unknown" if kind is None else "traces" if kind == "trace" else "unattached",
                [file.path],
            )
        self._count("normal-output", self._reading.normal_output)
        compressed = [
            file.path for file in self._reading.other_files if file.path.endswith(".log.fz")
        ]
        if compressed:
            self._notes.append(
                f"{len(compressed)} log{'s' if len(compressed) > 1 else ''} that fio compressed (log_store_compressed): not "
                f"read; 'fio --inflate-log=FILE > LOG' makes a plain one, such as of {compressed[0]}"
            )
        return files_of_run

    def _count_results(self, runs: Sequence[_Run]) -> None:
        results = {part.result.path: part.result for run in runs for part in run.parts}
        for path, result in results.items():
            self._count("damaged" if result.damage else "results", [path])

    def _count(self, what: str, paths: Any) -> None:
        listed = list(paths)
        if listed:
            self._files.setdefault(what, []).extend(listed)


def _groups(result: FioResult) -> tuple[FioGroup, ...]:
    """The measurements of a result; of iolab's own runs none is apart, as their plan says what they
    are."""
    return result.groups if result.plan is None else ()


def _sample_of(result: FioResult) -> Sample:
    """What the inference goes by. Options in which sections differ have each value."""
    if result.plan is not None or not result.groups:
        return Sample(result.path)
    options_of_groups = [options_of(group) for group in result.groups]
    options = {
        name: "+".join(dict.fromkeys(options.get(name, "absent") for options in options_of_groups))
        for name in dict.fromkeys(name for options in options_of_groups for name in options)
        if len(options_of_groups) == 1 or name != SECTION
    }
    jobs = {job.options.get("numjobs") for group in result.groups for job in group.jobs}
    echoed = jobs.pop() if len(jobs) == 1 else None
    return Sample(
        result.path,
        options,
        {} if echoed is None else {"numjobs": echoed},
        None if result.output is None else window_of(result.output, result.groups),
    )


def _window(run: _Run) -> tuple[int, int] | None:
    result = run.main.result
    if run.group is not None:
        return run.group.window
    return None if result.output is None else window_of(result.output, result.groups)


def _distinct(runs: Sequence[_Run]) -> list[_Run]:
    """Runs without those of a copy, byte by byte, of another."""
    return list({run.main.result.digest or str(id(run)): run for run in reversed(runs)}.values())[
        ::-1
    ]


def _plain(value: Any) -> object:
    return writable(value) if isinstance(value, str) else value


def _cell(run: Told) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((name, repr(value)) for name, value in run.factors.items() if value is not None)
    )


def _natural(text: str) -> list[tuple[int, int, str]]:
    return [
        (0, int(part), "") if part.isdecimal() and len(part) <= 18 else (1, 0, part)
        for part in re.split(r"(\d+)", text)
    ]


def _of_own(
    own: RunPlan,
    name: str,
    run: _Run,
    factors: dict[str, object],
    repetition: int,
    block: int,
    extra: dict[str, Any],
) -> RunPlan:
    """iolab's own plan of a run, under its new name."""
    return replace(
        own,
        run=name,
        variant=run.variant,
        factors=factors,
        repetition=repetition,
        block=block,
        host=run.host,
        extra={**own.extra, **extra},
    )


def _put(
    run_dir: Path,
    run: _Run,
    plan: RunPlan,
    files: Sequence[SourceFile],
    how: str,
    placed: dict[Path, Path],
) -> None:
    """The run's directory. A file that several runs share is written once and linked."""
    run_dir.mkdir(parents=True)
    names_in_use = {"run.json"}
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
