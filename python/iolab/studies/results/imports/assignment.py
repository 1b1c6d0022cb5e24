# SPDX-License-Identifier: Apache-2.0
"""Matching fio results with layouts: which results of a source are imported, and what their paths
say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.formats.fio.groups import window_of

from .account import Tally
from .layouts.inference import infer_layouts
from .layouts.layout import Layout, parse_layout
from .layouts.options import telling_options
from .layouts.path_columns import Sample
from .reading import FioResult, Reading, kind_of, options_of
from .source import Source, is_archive

SECTION = "section"
"""The factor that separates the sections of one fio result."""

_NUMBER_AT_END = re.compile(r"[-_. ]*\d+$")

_MOST_LOOKED_AT = 200
"""Files that are looked at to name what a source has where it has no fio result."""


@dataclass(frozen=True)
class Match:
    """A result with what its path says: `fields` of the layout, and the `rest` of the path."""

    result: FioResult
    fields: Mapping[str, Any]
    rest: str


class Assignment:
    """Which results of a source are imported, with what their paths say.

    Attributes:
        matches: the imported results.
        layouts: those that matched.
        is_inferred: whether the layouts were found here.
        suggestions: layouts that would match what is unmatched.
        empty: folders that a layout names and that have no fio result.
        variants: in the order that the user gave.
    """

    def __init__(self, source: Source, reading: Reading, where: Path, tally: Tally) -> None:
        self._source, self._reading, self._where, self._tally = source, reading, where, tally
        self.matches: list[Match] = []
        self.layouts: tuple[Layout, ...] = ()
        self.is_inferred = False
        self.suggestions: tuple[str, ...] = ()
        self.empty: tuple[str, ...] = ()
        self.variants: tuple[str, ...] = ()
        self._sampled: dict[str, Sample] = {}

    def match_layouts(self, layouts: tuple[Layout, ...] | None) -> None:
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
            self.is_inferred = True
            self._tally.notes += inferred.doubts
            self.suggestions = inferred.copies
            self.layouts = tuple(map(parse_layout, inferred.layouts))
            unmatched = [result for result in foreign_results if result.path in inferred.copy_paths]
            foreign_results = [
                result for result in foreign_results if result.path not in inferred.copy_paths
            ]
            level = ""
        else:
            self.layouts = layouts
            level = self._level(foreign_results + own)
        for result in foreign_results:
            match = self._match(result, level)
            if match is None:
                unmatched.append(result)
            else:
                self.matches.append(match)
        for result in own:
            self.matches.append(self._match(result, level) or Match(result, {}, ""))
        if not self.matches:
            raise self._matches_nothing(unmatched, level)
        self._note_contradictions()
        if unmatched and not self.suggestions:
            self.suggestions = infer_layouts(self._samples(unmatched)).layouts
        self._tally.count("unmatched", (result.path for result in unmatched))
        self.empty = () if self.is_inferred else self._empty_folders(level)

    def _note_contradictions(self) -> None:
        contradicting: dict[str, list[Match]] = {}
        for match in self.matches:
            for name in self._contradictions(match):
                contradicting.setdefault(name, []).append(match)
        for name, results in contradicting.items():
            first = results[0]
            echo = self.sample(first.result).echo(name)
            self._tally.notes.append(
                f"the layout contradicts fio's options: {name} of {len(results)} "
                f"result{'s' if len(results) > 1 else ''}, such as {first.fields[name]} of "
                f"{first.result.path}, where fio echoed {echo}"
            )

    def match_names(self, names: Mapping[str, str], arms: Mapping[str, str] | None = None) -> None:
        """Take every file as the variant that `arms` has for it, else as one of its own name.

        Files named alike but for a number at the end, such as before1 and before2, are repetitions
        of one variant where fio had the same options, and two variants are left. FormatError for a
        file that is not a fio result.
        """
        result_paths = {result.path for result in self._reading.results}
        stranger = next(
            (file for file in self._source.files if file.path not in result_paths), None
        )
        if stranger is not None:
            raise FormatError(
                "is not a fio result",
                where=stranger.place,
                hint="fio's JSON, terse and normal output are one",
            )
        if arms is None:
            arms = self._repeated_arms(names) or names
        self.variants = tuple(dict.fromkeys(arms[path] for path in names))
        self.matches = [
            Match(
                result,
                {"variant": arms[result.path]},
                names[result.path].removeprefix(arms[result.path]),
            )
            for result in self._reading.results
        ]

    def _repeated_arms(self, names: Mapping[str, str]) -> dict[str, str] | None:
        """The variant of each file; None where no files repeat one, or they all repeat the same."""
        results = {result.path: result for result in self._reading.results}
        alike: dict[str, list[str]] = {}
        for path, name in names.items():
            alike.setdefault(_NUMBER_AT_END.sub("", name) or name, []).append(path)
        arms = dict(names)
        for arm, paths in alike.items():
            options = [
                [telling_options(options_of(group)) for group in results[path].groups]
                for path in paths
            ]
            if len(paths) > 1 and options[0] and all(other == options[0] for other in options):
                arms |= dict.fromkeys(paths, arm)
        if len(set(arms.values())) in (1, len(names)):
            return None
        self._tally.notes.append(
            "files named alike but for a number at the end are repetitions: "
            + ", ".join(dict.fromkeys(arms.values()))
        )
        return arms

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
        return [self.sample(result) for result in results]

    def sample(self, result: FioResult) -> Sample:
        if result.path not in self._sampled:
            self._sampled[result.path] = _sample_of(result)
        return self._sampled[result.path]

    def _match(self, result: FioResult, level: str) -> Match | None:
        """What the first layout says that matches a result and agrees with what fio echoed; else
        the first that matches."""
        path = f"{level}{result.path}"
        folder, _, name = path.rpartition("/")
        fallback: Match | None = None
        for layout in self.layouts:
            if folder and (fields := layout.match(folder)) is not None:
                match = Match(result, fields, f"{layout.rest(folder)}\0{name}")
                if len(self.layouts) == 1 or not self._contradictions(match):
                    return match
                fallback = fallback or match
        for layout in self.layouts:
            if (fields := layout.match(path)) is not None:
                match = Match(result, fields, layout.rest(path))
                if len(self.layouts) == 1 or not self._contradictions(match):
                    return match
                fallback = fallback or match
        return fallback

    def _contradictions(self, match: Match) -> list[str]:
        """Fields of a path that are options of which fio echoed other values."""
        sample = self.sample(match.result)
        return [
            name for name, value in match.fields.items() if sample.agrees(name, str(value)) is False
        ]

    def _empty_folders(self, level: str) -> tuple[str, ...]:
        """Folders with files that a layout names and that have no result."""
        used_folders = {match.result.folder for match in self.matches}
        folders = {f"{level}{file.path}".rpartition("/")[0] for file in self._reading.other_files}
        return tuple(
            sorted(
                folder
                for folder in folders
                if folder
                and folder.removeprefix(level) not in used_folders
                and any(layout.match(folder) is not None for layout in self.layouts)
                and not any(
                    used.startswith(f"{folder.removeprefix(level)}/") for used in used_folders
                )
            )
        )

    def _nothing(self) -> IolabError:
        many = len(self._source.files)
        kind = UsageError if self._where.is_dir() else FormatError
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
            hint="results are fio's JSON, terse or normal output; traces of I/O are imported as files of their own",
        )

    def _command_path(self, path: str) -> str:
        """A file of a directory as a command line names it."""
        if not self._where.is_dir():
            return path if is_archive(self._where) else shlex.quote(str(self._where))
        return shlex.quote(str(self._where / f"{self._source.prefix}{path}"))

    def _matches_nothing(self, unmatched: Sequence[FioResult], level: str) -> UsageError:
        texts = ", ".join(f"'{layout.text}'" for layout in self.layouts)
        depth = self.layouts[0].text.count("/") + 1
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
