# SPDX-License-Identifier: Apache-2.0
"""Layouts inferred from the paths of results: what varies between them, named by the keys in the
paths and by fio's echoed options.

The answer is text that `layout.parse_layout` reads, so that it can be shown, repeated and
corrected. Everything afterwards goes by it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from .layout import parse_layout
from .options import UNNAMED_FOLDER, is_same_value, telling_options
from .path_words import (
    MEDIA,
    SIZES,
    Token,
    identifier,
    is_baseline,
    key_of_word,
    words_of,
)
from .processes import clusters
from .zfs_tests import suite_layout

_OPTIONS = (
    "rw",
    "iodepth",
    "numjobs",
    "bs",
    "rwmixread",
    "ioengine",
    "rate_iops",
    "size",
    "runtime",
    "direct",
    "fsync",
    "nrfiles",
)
"""Options that a column of values is held against, the likely ones first."""

MAX_LAYOUTS, MAX_LENGTH, MAX_VARIANTS = 12, 1000, 64
"""More layouts, characters of all of them, or variants show that the inference failed."""

_UNITS = {"kib": 1 << 10, "mib": 1 << 20}
"""Units of sizes that paths give as numbers: `bs_4` where fio echoes `4k`."""

_COPIES = {
    "results",
    "result",
    "old",
    "backup",
    "backups",
    "bak",
    "copy",
    "copies",
    "prev",
    "previous",
    "archive",
    "archived",
    "tmp",
    "saved",
}
"""Folders that hold other measurements of the files next to them."""


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
        option = _option_of(name)
        echoes = [options[option] for options in (self.options, self.echoed) if option in options]
        return any(is_same_value(option, echo, text) for echo in echoes) if echoes else None

    def echo(self, name: str) -> str | None:
        """What fio echoed of a field."""
        return self.options.get(_option_of(name))


@dataclass(frozen=True)
class Inferred:
    """Layouts of a tree.

    Attributes:
        layouts: those that take the results.
        copies: those that would take the copies next to the results; copy_paths: of the copies.
        doubts: what shows that the layouts are not what the paths mean, in words.
    """

    layouts: tuple[str, ...]
    copies: tuple[str, ...] = ()
    copy_paths: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()


class _Part(list[Token]):
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
class _Unit:
    """What a layout is to match: a folder with one result, or a result."""

    sample: Sample
    path: str
    is_file: bool
    parts: list[_Part] = field(default_factory=list)

    def agrees(self, option: str, text: str, scale: int = 1) -> bool | None:
        """`Sample.agrees` with a number in units of `scale` bytes."""
        return self.sample.agrees(option, str(int(text) * scale) if scale > 1 else text)


@dataclass
class _Column:
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
class _Class:
    """Units with paths of the same shape, as columns."""

    units: list[_Unit]
    levels: list[list[_Column]]

    @property
    def columns(self) -> list[_Column]:
        return [column for level in self.levels for column in level]


def infer_layouts(samples: Sequence[Sample]) -> Inferred:
    """The layouts of some results, the most particular first; none without results."""
    if suite := _suite_layouts(samples):
        return Inferred(suite)
    units = _units(samples)
    paths = {unit.path for unit in units}
    copies = {unit.path for unit in units if _is_copy(unit.path, paths)}
    classes = _named_classes([unit for unit in units if unit.path not in copies])
    layouts = _texts(classes)
    return Inferred(
        layouts,
        _texts(_named_classes(units), copies) if copies else (),
        frozenset(
            sample.path
            for sample in samples
            if sample.path in copies or sample.path.rpartition("/")[0] in copies
        ),
        tuple(_doubts(classes, layouts)),
    )


def _suite_layouts(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Layouts of results of OpenZFS's performance suite, of one or several runs of it."""
    by_name: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_name[sample.path.rpartition("/")[2]].append(sample)
    name = suite_layout(list(by_name))
    if name is None:
        return ()
    folders = {sample.path.rpartition("/")[0] for sample in samples}
    if len(folders) == 1:
        return (f"{folders.pop()}/{name}".lstrip("/"),)
    # folders are named by what varies between results of equal names
    repeated = max(by_name.values(), key=len)
    units = _units([replace(s, path=f"{s.path.rpartition('/')[0]}/result") for s in repeated])
    return tuple(f"{layout}/{name}" for layout in _texts(_named_classes(units)))


def _named_classes(units: list[_Unit]) -> list[_Class]:
    classes = _classes(units)
    _name(classes)
    return classes


def _doubts(classes: list[_Class], layouts: Sequence[str]) -> Iterable[str]:
    """What shows that the layouts are not what the paths mean."""
    contradicting: dict[tuple[str, str], list[str]] = defaultdict(list)
    for shape in classes:
        for column in shape.columns:
            if column.contradicts:
                contradicting[column.contradicts, column.name or ""] += [
                    f"'{text}' of {unit.path}, where fio echoed "
                    f"{_option_of(column.contradicts)}={unit.sample.echo(column.contradicts)}"
                    for unit, text in zip(shape.units, column.values, strict=True)
                    if unit.agrees(column.contradicts, text) is False
                ]
    for (key, name), examples in contradicting.items():
        yield (
            f"{key} in the paths is not fio's {_option_of(key)}: {len(examples)} "
            f"contradict{'' if len(examples) > 1 else 's'} it, such as {examples[0]}; "
            f"the factor is called {name}"
        )
    if len(layouts) > MAX_LAYOUTS or sum(map(len, layouts)) > MAX_LENGTH:
        yield (
            f"the inference is uncertain: the paths have {len(layouts)} forms; "
            "--layout PATTERN states what they mean, or import one folder at a time"
        )
    many = next(
        (
            (column, values)
            for shape in classes
            for column in shape.columns
            if column.is_crowded and (values := len(set(column.values)))
        ),
        None,
    )
    if many is not None:
        yield (
            f"the inference is uncertain: {many[1]} names such as '{many[0].values[0]}' are not "
            f"taken as variants, but as the factor {many[0].name}; --layout PATTERN states what "
            "they mean"
        )


def _is_copy(path: str, paths: set[str]) -> bool:
    parts = path.split("/")
    return any(
        part.lower() in _COPIES and "/".join(parts[:place] + parts[place + 1 :]) in paths
        for place, part in enumerate(parts[:-1])
    )


def _units(samples: Sequence[Sample]) -> list[_Unit]:
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
            for word in _Part(words_of(name, is_file=True)).shape
        )
        if depth and max(folders.values()) == 1 and not telling:
            units += [_Unit(sample, sample.path.rpartition("/")[0], False) for sample in group]
        else:
            units += [_Unit(sample, sample.path, True) for sample in group]
    return units


def _texts(classes: list[_Class], only: set[str] | None = None) -> tuple[str, ...]:
    texts = {
        _text(shape): None
        for shape in classes
        if only is None or all(unit.path in only for unit in shape.units)
    }
    return tuple(sorted(texts, key=lambda text: (-text.count("/"), text.count("{"), -len(text))))


# --- classes of one shape


def _classes(units: list[_Unit]) -> list[_Class]:
    groups: dict[tuple[bool, int], list[_Unit]] = defaultdict(list)
    part_of_name: dict[tuple[str, bool], _Part] = {}
    for unit in units:
        names = unit.path.split("/")
        unit.parts = []
        for place, name in enumerate(names):
            is_file = unit.is_file and place == len(names) - 1
            if (name, is_file) not in part_of_name:
                part_of_name[name, is_file] = _Part(words_of(name, is_file=is_file))
            unit.parts.append(part_of_name[name, is_file])
        groups[unit.is_file, len(names)].append(unit)
    classes = []
    for group in groups.values():
        depth = range(len(group[0].parts))
        is_constant = [_is_whole([unit.parts[level] for unit in group]) for level in depth]
        alike: dict[tuple[object, ...], list[_Unit]] = defaultdict(list)
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
            by_shape: dict[tuple[object, ...], list[_Unit]] = defaultdict(list)
            for unit in members:
                by_shape[
                    tuple(() if is_constant[level] else unit.parts[level].shape for level in depth)
                ].append(unit)
            classes += [_columns(same, is_constant) for same in by_shape.values()]
    return classes


def _skeleton(shape: Sequence[str]) -> tuple[str, ...]:
    """What of a name's shape is neither a plain word nor glue."""
    return tuple(kind for kind in shape if kind != "word" and not kind.startswith("="))


def _align(names: Sequence[list[_Part]], level: int) -> None:
    """Give names of one level one shape, where they differ in the words between two separators:
    `mq-deadline` is one word in `nvme0n1_mq-deadline_4k`, as `bfq` is in `nvme0n1_bfq_4k`."""
    parts = list({id(parts[level]): parts[level] for parts in names}.values())
    if len({part.shape for part in parts}) == 1:
        return
    glue = Counter(
        text for part in parts for text in {word.text for word in part if word.kind == "glue"}
    )
    common = [text for text, count in glue.items() if count == len(parts)][:4]
    best: dict[int, _Part] = {}
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


def _segments(part: _Part, separators: Iterable[str]) -> list[_Part]:
    """A name cut at separators, which are segments of their own."""
    segments = [_Part()]
    for word in part:
        if word.kind == "glue" and word.text in separators:
            segments += [_Part([word]), _Part()]
        else:
            segments[-1].append(word)
    return segments


def _joined_segments(names: Sequence[list[_Part]]) -> list[_Part] | None:
    """Names of one shape, in which plain segments that differ in shape are one word; None where
    there is no such shape."""
    if len({len(segments) for segments in names}) > 1:
        return None
    joined = [_Part() for _ in names]
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


def _is_whole(parts: list[_Part]) -> bool:
    """Whether names of one level have no common form, nor keys, so that each counts as a whole."""
    shapes = {part.shape for part in parts}
    keyed = any(token.kind in ("key", "rw", "size", "date") for part in parts for token in part)
    endings = {part[-1].text if part and part[-1].kind == "glue" else "" for part in parts}
    return len(shapes) > 1 and not keyed and len(endings) == 1


def _columns(units: list[_Unit], whole: list[bool]) -> _Class:
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
            columns = [_Column(level, [Token(text, "word") for text in texts], True)]
            levels.append(
                [*columns, *([_Column(level, [ending] * len(units), False)] if ends else [])]
            )
        else:
            width = len(units[0].parts[level])
            words = sum(token.kind != "glue" for token in units[0].parts[level])
            levels.append(
                [
                    _Column(level, [unit.parts[level][place] for unit in units], words == 1)
                    for place in range(width)
                ]
            )
    return _Class(units, levels)


# --- names of columns


def _name(classes: list[_Class]) -> None:
    for shape in classes:
        for columns in shape.levels:
            _name_keyed(columns, shape.units)
        _name_by_options(shape)
        for level, columns in enumerate(shape.levels):
            shape.levels[level] = _merge_columns(columns)
        _name_known(shape)
        _name_repetition(shape)
    _name_rest(classes)
    for shape in classes:
        _number_twins(shape)


def _name_keyed(columns: list[_Column], units: list[_Unit]) -> None:
    """Name values next to a key: `iodepth-8`, `8-jobs`, `bs=4k`, `engine=libaio`.

    A key without glue between it and a value is that value's. Other keys precede all values of
    a name or follow them: whichever agrees with fio more often, then whichever names more.
    """
    words = [column for column in columns if column.tokens[0].kind != "glue"]
    for column in words:
        if {token.kind for token in column.tokens} <= {"date"}:
            column.name = "repetition"
    for first, second in itertools.pairwise(columns):
        for value, key in ((second, first), (first, second)):
            if (binding := _binding(value, key, units)) is not None:
                _bind(value, key, *binding)
                break
    for value, key in zip(words[1:], words, strict=False):
        glue = columns[columns.index(value) - 1].values[0].strip()
        if glue == "=" and (binding := _binding(value, key, units, is_any=True)) is not None:
            _bind(value, key, *binding)
    before = [(value, key) for key, value in itertools.pairwise(words)]
    after = list(itertools.pairwise(words))

    def worth(pairs: Sequence[tuple[_Column, _Column]]) -> tuple[int, int, int]:
        bindings = [
            (value, binding)
            for value, key in pairs
            if (binding := _binding(value, key, units)) is not None
        ]
        agreeing = sum(
            any(unit.agrees(key, text) for unit, text in zip(units, value.values, strict=True))
            and not contradicts
            for value, (key, _, contradicts) in bindings
        )
        return (
            agreeing,
            -sum(bool(contradicts) for _, (_, _, contradicts) in bindings),
            len(bindings),
        )

    for pairs in (after, before) if worth(after) > worth(before) else (before, after):
        for value, key in pairs:
            if (binding := _binding(value, key, units)) is not None:
                _bind(value, key, *binding)


def _bind(value: _Column, key: _Column, name: str, kind: str, contradicts: str) -> None:
    value.name, value.kind, value.contradicts, key.is_key = name, kind, contradicts, True


def _option_of(field_name: str) -> str:
    """The option of fio of a field."""
    return {"threads": "numjobs"}.get(field_name, field_name)


def _binding(
    value: _Column, key: _Column, units: list[_Unit], *, is_any: bool = False
) -> tuple[str, str, str] | None:
    """Name and type of a value by the key next to it, and the key's meaning where fio echoed other
    values; None where the key doesn't name the value. `is_any`: any word is a key, any text a
    value.
    """
    kinds = {token.kind for token in value.tokens}
    if (
        value.name is not None
        or key.name is not None
        or key.is_key
        or key.varies
        or value.is_key
        or "glue" in kinds
        or not (is_any or kinds <= {"number", "size"})
    ):
        return None
    word = key.tokens[0]
    name = key_of_word(word.text) if word.kind == "key" or len(word.text) == 1 else None
    if name is not None and len(word.text) == 1 and _is_unlikely(name, value, units):
        name = None
    if name is None and is_any:
        name = identifier([word.text])
    if name is None or (not is_any and "size" in kinds and name not in SIZES):
        return None
    kind = "int" if value.is_number and name not in SIZES | {"host"} else "str"
    if _agrees(name, value, units) is not False:
        return name, kind, ""
    if name in SIZES and value.is_number:
        for unit_name, scale in _UNITS.items():
            if _agrees(name, value, units, scale):
                return f"{name}_{unit_name}", "int", ""
    return f"path_{name}", kind, name


def _agrees(name: str, column: _Column, units: list[_Unit], scale: int = 1) -> bool | None:
    """Whether fio echoed a field's values wherever it echoed any; None where it echoed none."""
    answers = {
        unit.agrees(name, text, scale) for unit, text in zip(units, column.values, strict=True)
    } - {None}
    return None if not answers else False not in answers


def _is_unlikely(name: str, column: _Column, units: list[_Unit]) -> bool:
    """Whether fio, which echoes `numjobs` and `iodepth` where they aren't 1, echoed others than a
    letter would name."""
    option = _option_of(name)
    return option in ("numjobs", "iodepth") and any(
        "section" not in unit.sample.options
        and unit.sample.options
        and not (unit.agrees(option, text) or (option not in unit.sample.options and text == "1"))
        for unit, text in zip(units, column.values, strict=True)
    )


def _name_by_options(shape: _Class) -> None:
    """Values that are those that fio echoed of an option."""
    names_in_use = {column.name for column in shape.columns}
    for column in shape.columns:
        kinds = {token.kind for token in column.tokens}
        if column.name or kinds <= {"glue", "key"}:
            continue
        if not column.varies and not (
            kinds <= {"rw"} and any(other.name for other in shape.levels[column.level])
        ):
            continue
        for option in _OPTIONS:
            if option not in names_in_use and all(
                unit.agrees(option, text)
                for unit, text in zip(shape.units, column.values, strict=True)
            ):
                column.name = option
                column.kind = "int" if column.is_number and option not in SIZES else "str"
                names_in_use.add(option)
                break
        else:
            if (
                kinds <= {"rw"}
                and "rw" not in names_in_use
                and not any("rw" in unit.sample.options for unit in shape.units)
            ):
                column.name = "rw"
                names_in_use.add("rw")


def _merge_columns(columns: list[_Column]) -> list[_Column]:
    """Columns that determine each other are merged: the parts of a product's name."""
    open_ = [
        place
        for place, column in enumerate(columns)
        if column.varies and column.name is None and column.tokens[0].kind != "glue"
    ]
    for first in open_:
        for last in reversed(open_):
            between = columns[first : last + 1]
            if last <= first or any(column.name for column in between):
                continue
            if _tells(columns[first], columns[last]) or _tells(columns[last], columns[first]):
                texts = [
                    "".join(parts)
                    for parts in zip(*(column.values for column in between), strict=True)
                ]
                is_rest = first == 0 and all(
                    column.tokens[0].kind == "glue" for column in columns[last + 1 :]
                )
                joined_column = _Column(
                    columns[0].level, [Token(text, "word") for text in texts], is_rest
                )
                return [*columns[:first], joined_column, *columns[last + 1 :]]
    return columns


def _tells(first: _Column, second: _Column) -> bool:
    return len(set(zip(first.values, second.values, strict=True))) == len(set(first.values))


def _name_known(shape: _Class) -> None:
    """Media, and the number of disks before or after them."""
    for columns in shape.levels:
        for place, column in enumerate(columns):
            if (
                column.name is None
                and column.varies
                and {text.lower() for text in column.values} <= MEDIA
            ):
                column.name = "media"
            if column.name is None and column.varies and column.is_number:
                near = [
                    other for other in columns[max(0, place - 2) : place + 3] if other is not column
                ]
                if any({text.lower() for text in other.values} <= MEDIA for other in near):
                    column.name, column.kind = "disks", "int"


def _name_repetition(shape: _Class) -> None:
    """A number from 0 or 1 on at the end of a name, where fio echoes the same options for its runs,
    counts repetitions; processes where those ran at the same time."""
    has_repetition = any(column.name == "repetition" for column in shape.columns)
    for columns in () if has_repetition else reversed(shape.levels):
        words = [column for column in columns if column.tokens[0].kind != "glue"]
        column = words[-1] if words else None
        if column is None or column.name or not column.varies or not column.is_number:
            continue
        numbers = sorted({int(text) for text in column.values})
        if (
            numbers[0] in (0, 1)
            and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            and _same_options(shape, column)
        ):
            column.name, column.kind = "repetition", "int"
            break
    for column in shape.columns:
        if column.name == "repetition" and _ran_at_once(shape, column):
            column.name = "process"


def _ran_at_once(shape: _Class, column: _Column) -> bool:
    """Whether results that differ by that column alone ran at the same time."""
    alike: dict[tuple[str, ...], list[tuple[int, int] | None]] = defaultdict(list)
    for place, unit in enumerate(shape.units):
        rest = tuple(other.values[place] for other in shape.columns if other is not column)
        alike[rest].append(unit.sample.window)
    return any(len(cluster) > 1 for windows in alike.values() for cluster in clusters(windows))


def _same_options(shape: _Class, column: _Column) -> bool:
    """Whether what fio echoed is there, and is the same wherever all but this column is; of a name
    that is nothing but the number the jobs' names do."""
    options_of_rest: dict[tuple[str, ...], dict[str, str]] = {}
    for place, unit in enumerate(shape.units):
        rest = tuple(other.values[place] for other in shape.columns if other is not column)
        options = telling_options(unit.sample.options)
        known_options = options if column.is_whole else options.keys() - {"section"}
        if not known_options or options_of_rest.setdefault(rest, options) != options:
            return False
    return True


def _name_rest(classes: list[_Class]) -> None:
    """The rest: one column of text is the variant, the others are factors named by the words
    next to them, else by their place."""
    for shape in classes:
        for column in shape.columns:
            column.is_order = _counts_files(shape, column)
    _open_constant_levels(classes)
    _open_constant_words(classes)
    choices: dict[tuple[int, int], list[tuple[_Class, _Column]]] = defaultdict(list)
    for shape in classes:
        for column in shape.columns:
            column.is_crowded = (
                column.name is None
                and _is_open(column)
                and not column.is_number
                and len(set(column.values)) > MAX_VARIANTS
            )
            if (
                column.name is None
                and _is_open(column)
                and not column.is_number
                and not column.is_crowded
            ):
                choices[column.level, shape.levels[column.level].index(column)].append(
                    (shape, column)
                )
    if choices:

        def worth(place: tuple[int, int]) -> tuple[int, int, int, int]:
            columns = [column for _, column in choices[place]]
            values = {text for column in columns for text in column.values}
            return (
                -any(map(is_baseline, values)),
                -all(column.is_whole for column in columns),
                *place,
            )

        for _, column in choices[min(choices, key=worth)]:
            column.name = "variant"
    for shape in classes:
        for column in shape.columns:
            if column.name is None and _is_open(column):
                column.name = _plain_name(shape, column)
                column.kind = "int" if column.is_number else "str"


def _is_open(column: _Column) -> bool:
    return (
        column.tokens[0].kind != "glue"
        and (column.varies or column.is_field)
        and not column.is_order
    )


def _counts_files(shape: _Class, column: _Column) -> bool:
    """Whether a number says in which order fio ran: it belongs to other values of an option in each
    arm, though all arms have the same values."""
    if column.name is not None or not column.varies or not column.is_number:
        return False
    arms: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place in range(len(shape.units)):
        rest = tuple(other.values[place] for other in shape.columns if other is not column)
        arms[rest].append(place)
    for option in _OPTIONS:
        values = [
            {column.values[place]: shape.units[place].sample.options.get(option) for place in arm}
            for arm in arms.values()
        ]
        if (
            len(values) > 1
            and all(
                len(set(arm.values())) == len(arm) > 1 and None not in arm.values()
                for arm in values
            )
            and len({frozenset(arm.values()) for arm in values}) == 1
            and any(arm != values[0] for arm in values)
        ):
            return True
    return False


def _open_constant_levels(classes: list[_Class]) -> None:
    """A folder that is the same in one class and differs between classes is a field in all of them,
    unless it has keys in one."""
    folders: dict[int, set[str]] = defaultdict(set)
    named: set[int] = set()
    for shape in classes:
        for level, columns in enumerate(shape.levels):
            if _is_folder(shape, level):
                folders[level] |= {
                    "".join(texts)
                    for texts in zip(*(column.values for column in columns), strict=True)
                }
                named |= {level} if any(column.name for column in columns) else set()
    for shape in classes:
        for level, columns in enumerate(shape.levels):
            if (
                _is_folder(shape, level)
                and level not in named
                and len(folders[level]) > 1
                and not any(column.varies for column in columns)
            ):
                text = "".join(column.values[0] for column in columns)
                shape.levels[level] = [
                    _Column(level, [Token(text, "word")] * len(shape.units), True, is_field=True)
                ]


def _open_constant_words(classes: list[_Class]) -> None:
    """A word that is the same in one class, where another class has a field between the same words,
    is that field in both: `mq-deadline` of `sda_mq-deadline_zones-4`, as of `sda_{}_qd-{}`."""
    fields: dict[tuple[bool, int, int, str], str] = {}
    for shape in classes:
        for level, columns in enumerate(shape.levels):
            before = ""
            for column, after in itertools.pairwise(columns):
                if column.varies:
                    if column.name is None and _is_open(column) and not column.is_number:
                        place = (shape.units[0].is_file, len(shape.levels), level, before)
                        fields.setdefault(place, after.values[0])
                    break
                before += column.values[0]
    for shape in classes:
        for level, columns in enumerate(shape.levels):
            before = ""
            for first, column in enumerate(columns):
                if column.varies or column.name is not None:
                    break
                place = (shape.units[0].is_file, len(shape.levels), level, before)
                last = first
                while last < len(columns) and columns[last].values[0] != fields.get(place):
                    last += 1
                words = columns[first:last]
                if (
                    words
                    and last < len(columns)
                    and all(
                        not word.varies
                        and word.name is None
                        and not word.is_key
                        and word.tokens[0].kind in ("word", "glue")
                        for word in words
                    )
                ):
                    text = "".join(word.values[0] for word in words)
                    columns[first:last] = [
                        _Column(
                            level, [Token(text, "word")] * len(shape.units), False, is_field=True
                        )
                    ]
                    break
                before += column.values[0]


def _is_folder(shape: _Class, level: int) -> bool:
    return level < len(shape.levels) - 1 or not shape.units[0].is_file


def _plain_name(shape: _Class, column: _Column) -> str:
    """A name made of the words that belong to no other field: those before the column, else those
    after it, else the column's place."""
    columns = [
        other
        for other in shape.levels[column.level]
        if other.tokens[0].kind != "glue" or other is column
    ]
    place = columns.index(column)
    is_file = shape.units[0].is_file and column.level == len(shape.levels) - 1
    by_place = (
        f"name{shape.levels[column.level].index(column) // 2 + 1}"
        if is_file
        else f"{UNNAMED_FOLDER}{column.level + 1}"
    )
    return (
        identifier(_words_beside(reversed(columns[:place]))[::-1])
        or identifier(_words_beside(columns[place + 1 :]))
        or by_place
    )


def _words_beside(columns: Iterable[_Column]) -> list[str]:
    """Constant words up to the next field or number."""
    words = []
    for column in columns:
        if column.name is not None or column.is_key or column.varies or column.is_number:
            break
        if column.tokens[0].kind in ("word", "key"):
            words.append(column.values[0])
    return words


def _number_twins(shape: _Class) -> None:
    """No field comes twice: a second one takes the number of its place."""
    names_in_use: set[str] = set()
    for column in shape.columns:
        if column.name is None:
            continue
        name, number = column.name, 1
        while column.name in names_in_use:
            number += 1
            column.name = f"{name}{number}"
        names_in_use.add(column.name)


def _text(shape: _Class) -> str:
    parts = []
    for columns in shape.levels:
        part = ""
        for column in columns:
            if column.name is not None:
                part += f"{{{column.name}{':int' if column.kind == 'int' else ''}}}"
            else:
                part += (
                    column.values[0].replace("{", "*").replace("}", "*")
                    if not column.varies
                    else "*"
                )
        parts.append(part)
    text = "/".join(parts)
    parse_layout(text)
    return text
