# SPDX-License-Identifier: Apache-2.0
"""Paths of results as columns: paths of one shape form a class, in which each word of the names is a
column of texts."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .options import is_same_value
from .path_words import Token, words_of


@dataclass(frozen=True)
class Sample:
    """A result of a tree.

    Attributes:
        path: below the tree.
        options: what fio echoed, in which `numjobs` counts all jobs (`options_of`); `section`, the
        name of the job, where fio echoed nothing.
        echoed: options that all jobs echo alike, where they differ from `options`: `numjobs` of one
        host of several.
        window: realtime nanoseconds in which fio ran; None where the file doesn't say.
    """

    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    echoed: Mapping[str, str] = field(default_factory=dict)
    window: tuple[int, int] | None = None

    def agrees(self, name: str, text: str) -> bool | None:
        """Whether fio echoed that value of a field; None where it echoed none."""
        option = option_of(name)
        echoes = [options[option] for options in (self.options, self.echoed) if option in options]
        return any(is_same_value(option, echo, text) for echo in echoes) if echoes else None

    def echo(self, name: str) -> str | None:
        """What fio echoed of a field."""
        return self.options.get(option_of(name))


def option_of(field_name: str) -> str:
    """The option of fio of a field."""
    return {"threads": "numjobs"}.get(field_name, field_name)


class PathPart(list[Token]):
    """A folder's or file's name, cut into words."""

    @cached_property
    def shape(self) -> tuple[str, ...]:
        """What names of the same form have in common: glue, keys next to a value, and
        kinds of words."""
        forms = []
        for place, token in enumerate(self):
            kinds = [token.kind for token in self[max(0, place - 2) : place + 3]]
            keyed = token.kind == "key" and ("number" in kinds or "size" in kinds)
            forms.append(
                f"={token.text}"
                if token.kind == "glue"
                else f"key {token.text.lower()}"
                if keyed
                else {"number": "number", "size": "number", "date": "date"}.get(token.kind, "word")
            )
        return tuple(forms)


@dataclass
class Unit:
    """What a layout is to match: a folder with one result, or a result."""

    sample: Sample
    path: str
    is_file: bool
    parts: list[PathPart] = field(default_factory=list)

    def agrees(self, option: str, text: str, scale: int = 1) -> bool | None:
        """`Sample.agrees` with a number in units of `scale` bytes."""
        return self.sample.agrees(option, str(int(text) * scale) if scale > 1 else text)


@dataclass
class Column:
    """One place of the paths of a class: its texts by unit, and the field that it is.

    Attributes:
        is_field: it is one though its text is the same in all of this class.
        is_key: it names the field next to it.
        contradicts: what its key names, where fio echoed other values.
        is_order: it numbers the files of an arm, and means nothing else.
        is_crowded: it has more texts than a comparison has variants.
    """

    level: int
    tokens: list[Token]
    is_whole: bool
    name: str | None = None
    kind: str = "str"
    is_field: bool = False
    is_key: bool = False
    contradicts: str = ""
    is_crowded: bool = False
    is_order: bool = False

    @property
    def values(self) -> list[str]:
        return [token.text for token in self.tokens]

    @property
    def varies(self) -> bool:
        return len(set(self.values)) > 1

    @property
    def is_number(self) -> bool:
        return all(token.kind == "number" for token in self.tokens)


@dataclass
class PathClass:
    """Units with paths of the same shape, as columns."""

    units: list[Unit]
    levels: list[list[Column]]

    @property
    def columns(self) -> list[Column]:
        return [column for level in self.levels for column in level]


def divide_units(samples: Sequence[Sample]) -> list[Unit]:
    """Folders where each holds one result and names of files tell nothing, else files; decided for
    each depth."""
    by_depth: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_depth[sample.path.count("/")].append(sample)
    units = []
    for depth, group in sorted(by_depth.items()):
        folders = Counter(sample.path.rpartition("/")[0] for sample in group)
        names = {sample.path.rpartition("/")[2] for sample in group}
        telling = len(names) > 1 and any(
            word in ("number", "date") or word.startswith("key ")
            for name in names
            for word in PathPart(words_of(name, is_file=True)).shape
        )
        if depth and max(folders.values()) == 1 and not telling:
            units += [Unit(sample, sample.path.rpartition("/")[0], False) for sample in group]
        else:
            units += [Unit(sample, sample.path, True) for sample in group]
    return units


def classes_of(units: list[Unit]) -> list[PathClass]:
    groups: dict[tuple[bool, int], list[Unit]] = defaultdict(list)
    part_of_name: dict[tuple[str, bool], PathPart] = {}
    for unit in units:
        names = unit.path.split("/")
        unit.parts = []
        for place, name in enumerate(names):
            is_file = unit.is_file and place == len(names) - 1
            if (name, is_file) not in part_of_name:
                part_of_name[name, is_file] = PathPart(words_of(name, is_file=is_file))
            unit.parts.append(part_of_name[name, is_file])
        groups[unit.is_file, len(names)].append(unit)
    classes = []
    for group in groups.values():
        depth = range(len(group[0].parts))
        is_constant = [_is_whole([unit.parts[level] for unit in group]) for level in depth]
        alike: dict[tuple[object, ...], list[Unit]] = defaultdict(list)
        for unit in group:
            alike[
                tuple(
                    () if is_constant[level] else _skeleton(unit.parts[level].shape)
                    for level in depth
                )
            ].append(unit)
        for members in alike.values():
            for level in depth:
                if not is_constant[level]:
                    _align([unit.parts for unit in members], level)
            by_shape: dict[tuple[object, ...], list[Unit]] = defaultdict(list)
            for unit in members:
                by_shape[
                    tuple(() if is_constant[level] else unit.parts[level].shape for level in depth)
                ].append(unit)
            classes += [_columns(same, is_constant) for same in by_shape.values()]
    return classes


def _skeleton(shape: Sequence[str]) -> tuple[str, ...]:
    """What of a name's shape is neither a plain word nor glue."""
    return tuple(kind for kind in shape if kind != "word" and not kind.startswith("="))


def _align(names: Sequence[list[PathPart]], level: int) -> None:
    """Give names of one level one shape, where they differ in the words between two separators:
    `mq-deadline` is one word in `nvme0n1_mq-deadline_4k`, as `bfq` is in `nvme0n1_bfq_4k`."""
    parts = list({id(parts[level]): parts[level] for parts in names}.values())
    if len({part.shape for part in parts}) == 1:
        return
    glue = Counter(
        text for part in parts for text in {word.text for word in part if word.kind == "glue"}
    )
    common = [text for text, count in glue.items() if count == len(parts)][:4]
    best: dict[int, PathPart] = {}
    for size in range(len(common), 0, -1):
        for separators in itertools.combinations(common, size):
            cuts = [_segments(part, separators) for part in parts]
            aligned = _joined_segments(cuts)
            if aligned is not None and (
                not best or len(aligned[0]) > len(next(iter(best.values())))
            ):
                best = {id(part): new for part, new in zip(parts, aligned, strict=True)}
    if best:
        for name in names:
            name[level] = best[id(name[level])]


def _segments(part: PathPart, separators: Iterable[str]) -> list[PathPart]:
    """A name cut at separators, which are segments of their own."""
    segments = [PathPart()]
    for word in part:
        if word.kind == "glue" and word.text in separators:
            segments += [PathPart([word]), PathPart()]
        else:
            segments[-1].append(word)
    return segments


def _joined_segments(names: Sequence[list[PathPart]]) -> list[PathPart] | None:
    """Names of one shape, in which plain segments that differ in shape are one word; None where
    there is no such shape."""
    if len({len(segments) for segments in names}) > 1:
        return None
    joined = [PathPart() for _ in names]
    for column in zip(*names, strict=True):
        if len({segment.shape for segment in column}) == 1:
            words: Iterable[list[Token]] = column
        elif any(not segment or _skeleton(segment.shape) for segment in column):
            return None
        else:
            words = [[Token("".join(word.text for word in segment), "word")] for segment in column]
        for part, segment in zip(joined, words, strict=True):
            part.extend(segment)
    return joined if len({part.shape for part in joined}) == 1 else None


def _is_whole(parts: list[PathPart]) -> bool:
    """Whether names of one level have no common form, nor keys, so that each counts as a whole."""
    shapes = {part.shape for part in parts}
    keyed = any(token.kind in ("key", "rw", "size", "date") for part in parts for token in part)
    endings = {part[-1].text if part and part[-1].kind == "glue" else "" for part in parts}
    return len(shapes) > 1 and not keyed and len(endings) == 1


def _columns(units: list[Unit], whole: list[bool]) -> PathClass:
    levels = []
    for level, is_whole in enumerate(whole):
        if is_whole:
            ending = units[0].parts[level][-1]
            ends = (
                units[0].is_file
                and level == len(whole) - 1
                and ending.kind == "glue"
                and all(len(unit.parts[level]) > 1 for unit in units)
            )
            texts = [
                "".join(
                    token.text for token in (unit.parts[level][:-1] if ends else unit.parts[level])
                )
                for unit in units
            ]
            columns = [Column(level, [Token(text, "word") for text in texts], True)]
            levels.append(
                [*columns, *([Column(level, [ending] * len(units), False)] if ends else [])]
            )
        else:
            width = len(units[0].parts[level])
            words = sum(token.kind != "glue" for token in units[0].parts[level])
            levels.append(
                [
                    Column(level, [unit.parts[level][place] for unit in units], words == 1)
                    for place in range(width)
                ]
            )
    return PathClass(units, levels)
