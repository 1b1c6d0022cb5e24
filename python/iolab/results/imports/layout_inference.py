"""Layouts inferred from the paths of results: what varies between them, named by the keys in the
paths and by fio's echoed options.

The answer is text that `layout.parse_layout` reads, so that it can be shown, repeated and
corrected. Everything afterwards goes by it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .layout import parse_layout
from .options import UNNAMED_FOLDER, telling_options
from .path_words import (
    MEDIA,
    SIZES,
    Token,
    identifier,
    is_baseline,
    key_of_word,
    same_value,
    words_of,
)

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
"""Folders that hold other measurements of what lies beside them."""


@dataclass(frozen=True)
class Sample:
    """A result: its path below the tree, and what fio echoed of its options where it reports one
    group (`section`, the job's name, where it echoed nothing)."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Inferred:
    """Layouts that take the results; those that would take the copies beside them; whose paths the
    copies are."""

    layouts: tuple[str, ...]
    copies: tuple[str, ...] = ()
    copy_paths: frozenset[str] = frozenset()


class _Part(list[Token]):
    """A folder's or file's name, cut into words."""

    @cached_property
    def shape(self) -> tuple[str, ...]:
        """What names of the same form have in common: glue, keys with a value beside them, and
        kinds of words."""
        found = []
        for place, token in enumerate(self):
            beside = [token.kind for token in self[max(0, place - 2) : place + 3]]
            keyed = token.kind == "key" and ("number" in beside or "size" in beside)
            found.append(
                f"={token.text}"
                if token.kind == "glue"
                else f"key {token.text.lower()}"
                if keyed
                else {"number": "number", "size": "number", "date": "date"}.get(token.kind, "word")
            )
        return tuple(found)


@dataclass
class _Unit:
    """What a layout is to match: a folder with one result, or a result."""

    path: str
    is_file: bool
    options: Mapping[str, str]
    parts: list[_Part] = field(default_factory=list)


@dataclass
class _Column:
    """One place of the paths of a class: its texts by unit, and the field that it is. `is_field`
    says that it is one though its text is the same in all of this class."""

    level: int
    tokens: list[Token]
    whole: bool
    name: str | None = None
    kind: str = "str"
    is_field: bool = False

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
    """Units whose paths have the same shape, as columns."""

    units: list[_Unit]
    levels: list[list[_Column]]

    @property
    def columns(self) -> list[_Column]:
        return [column for level in self.levels for column in level]


def infer_layouts(samples: Sequence[Sample]) -> Inferred:
    """The layouts of some results, the most particular first; none without results."""
    units = _units(samples)
    paths = {unit.path for unit in units}
    copies = {unit.path for unit in units if _is_copy(unit.path, paths)}
    taken = _texts([unit for unit in units if unit.path not in copies])
    return Inferred(
        taken,
        _texts(units, copies) if copies else (),
        frozenset(
            sample.path
            for sample in samples
            if sample.path in copies or sample.path.rpartition("/")[0] in copies
        ),
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
            units += [
                _Unit(sample.path.rpartition("/")[0], False, sample.options) for sample in group
            ]
        else:
            units += [_Unit(sample.path, True, sample.options) for sample in group]
    return units


def _texts(units: list[_Unit], only: set[str] | None = None) -> tuple[str, ...]:
    classes = _classes(units)
    _name(classes)
    texts = {
        _text(each): None
        for each in classes
        if only is None or all(unit.path in only for unit in each.units)
    }
    return tuple(sorted(texts, key=lambda text: (-text.count("/"), text.count("{"), -len(text))))


# --- classes of one shape


def _classes(units: list[_Unit]) -> list[_Class]:
    groups: dict[tuple[bool, int], list[_Unit]] = defaultdict(list)
    known: dict[tuple[str, bool], _Part] = {}
    for unit in units:
        names = unit.path.split("/")
        unit.parts = []
        for place, name in enumerate(names):
            is_file = unit.is_file and place == len(names) - 1
            if (name, is_file) not in known:
                known[name, is_file] = _Part(words_of(name, is_file=is_file))
            unit.parts.append(known[name, is_file])
        groups[unit.is_file, len(names)].append(unit)
    found = []
    for group in groups.values():
        whole = [
            _is_whole([unit.parts[level] for unit in group]) for level in range(len(group[0].parts))
        ]
        by_shape: dict[tuple[object, ...], list[_Unit]] = defaultdict(list)
        for unit in group:
            by_shape[
                tuple(
                    "" if is_whole else part.shape
                    for is_whole, part in zip(whole, unit.parts, strict=True)
                )
            ].append(unit)
        found += [_columns(members, whole) for members in by_shape.values()]
    return found


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
    for each in classes:
        for columns in each.levels:
            _name_keyed(columns, each.units)
        _name_by_options(each)
        for level, columns in enumerate(each.levels):
            each.levels[level] = _merged(columns)
        _name_known(each)
        _name_repetition(each)
    _name_rest(classes)
    for each in classes:
        _number_twins(each)


def _name_keyed(columns: list[_Column], units: list[_Unit]) -> None:
    """Values beside a key of theirs: `iodepth-8`, `8-jobs`, `bs=4k`, `engine=libaio`; `t8` unless
    fio echoed another number of jobs."""
    words = [column for column in columns if column.tokens[0].kind != "glue"]
    used: set[int] = set()
    for place, column in enumerate(words):
        kinds = {token.kind for token in column.tokens}
        if kinds <= {"date"}:
            column.name = "repetition"
            continue
        equals = place and columns[columns.index(column) - 1].values[0].strip() == "="
        if not (kinds <= {"number", "size"} or equals):
            continue
        for near in (place - 1, place + 1):
            if (
                not 0 <= near < len(words)
                or near in used
                or words[near].varies
                or (equals and near > place)
            ):
                continue
            token = words[near].tokens[0]
            key = key_of_word(token.text) if token.kind == "key" or len(token.text) == 1 else None
            if key is not None and len(token.text) == 1 and _contradicts(key, column, units):
                key = None
            if key is not None or (equals and (key := identifier([token.text]))):
                column.name = key
                column.kind = "int" if column.is_number and key not in SIZES | {"host"} else "str"
                used.add(near)
                break


def _contradicts(name: str, column: _Column, units: list[_Unit]) -> bool:
    """Whether fio echoed other values of a field than the column has: it echoes `numjobs` and
    `iodepth` where they aren't 1."""
    option = {"threads": "numjobs"}.get(name, name)
    return option in ("numjobs", "iodepth") and any(
        "section" not in unit.options
        and unit.options
        and same_value(option, unit.options.get(option, "1")) != same_value(option, text)
        for unit, text in zip(units, column.values, strict=True)
    )


def _name_by_options(each: _Class) -> None:
    """Values that are those that fio echoed of an option."""
    taken = {column.name for column in each.columns}
    for column in each.columns:
        kinds = {token.kind for token in column.tokens}
        if column.name or kinds <= {"glue", "key"}:
            continue
        if not column.varies and not (
            kinds <= {"rw"} and any(other.name for other in each.levels[column.level])
        ):
            continue
        for option in _OPTIONS:
            if option not in taken and all(
                option in unit.options
                and same_value(option, unit.options[option]) == same_value(option, text)
                for unit, text in zip(each.units, column.values, strict=True)
            ):
                column.name = option
                column.kind = "int" if column.is_number and option not in SIZES else "str"
                taken.add(option)
                break
        else:
            if (
                kinds <= {"rw"}
                and "rw" not in taken
                and not any("rw" in unit.options for unit in each.units)
            ):
                column.name = "rw"
                taken.add("rw")


def _merged(columns: list[_Column]) -> list[_Column]:
    """Columns of which one tells the other are one: the parts of a product's name."""
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
                whole = first == 0 and all(
                    column.tokens[0].kind == "glue" for column in columns[last + 1 :]
                )
                one = _Column(columns[0].level, [Token(text, "word") for text in texts], whole)
                return [*columns[:first], one, *columns[last + 1 :]]
    return columns


def _tells(first: _Column, second: _Column) -> bool:
    return len(set(zip(first.values, second.values, strict=True))) == len(set(first.values))


def _name_known(each: _Class) -> None:
    """Media, and the number of disks before or after them."""
    for columns in each.levels:
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


def _name_repetition(each: _Class) -> None:
    """A number from 0 or 1 on at the end of a name, whose runs fio echoes the same options for,
    counts repetitions."""
    if any(column.name == "repetition" for column in each.columns):
        return
    for columns in reversed(each.levels):
        words = [column for column in columns if column.tokens[0].kind != "glue"]
        column = words[-1] if words else None
        if column is None or column.name or not column.varies or not column.is_number:
            continue
        numbers = sorted({int(text) for text in column.values})
        if (
            numbers[0] in (0, 1)
            and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            and _same_options(each, column)
        ):
            column.name, column.kind = "repetition", "int"
            return


def _same_options(each: _Class, column: _Column) -> bool:
    """Whether what fio echoed is there, and is the same wherever all but this column is; of a name
    that is nothing but the number the jobs' names do."""
    seen: dict[tuple[str, ...], dict[str, str]] = {}
    for place, unit in enumerate(each.units):
        rest = tuple(other.values[place] for other in each.columns if other is not column)
        options = telling_options(unit.options)
        known = options if column.whole else options.keys() - {"section"}
        if not known or seen.setdefault(rest, options) != options:
            return False
    return True


def _name_rest(classes: list[_Class]) -> None:
    """What is left: one column of text is the variant, the others are factors named by the words
    beside them, else by their place."""
    _open_constant_levels(classes)
    choices: dict[tuple[int, int], list[tuple[_Class, _Column]]] = defaultdict(list)
    for each in classes:
        for column in each.columns:
            if column.name is None and _is_open(column) and not column.is_number:
                choices[column.level, each.levels[column.level].index(column)].append(
                    (each, column)
                )
    if choices:

        def worth(place: tuple[int, int]) -> tuple[int, int, int, int]:
            columns = [column for _, column in choices[place]]
            values = {text for column in columns for text in column.values}
            return (
                -any(map(is_baseline, values)),
                -all(column.whole for column in columns),
                *place,
            )

        for _, column in choices[min(choices, key=worth)]:
            column.name = "variant"
    for each in classes:
        for column in each.columns:
            if column.name is None and _is_open(column):
                column.name = _plain_name(each, column)
                column.kind = "int" if column.is_number else "str"


def _is_open(column: _Column) -> bool:
    return column.tokens[0].kind != "glue" and (column.varies or column.is_field)


def _open_constant_levels(classes: list[_Class]) -> None:
    """A folder that is the same in one class and differs between classes is a field in all of them,
    unless it has keys in one."""
    folders: dict[int, set[str]] = defaultdict(set)
    named: set[int] = set()
    for each in classes:
        for level, columns in enumerate(each.levels):
            if _is_folder(each, level):
                folders[level] |= {
                    "".join(texts)
                    for texts in zip(*(column.values for column in columns), strict=True)
                }
                named |= {level} if any(column.name for column in columns) else set()
    for each in classes:
        for level, columns in enumerate(each.levels):
            if (
                _is_folder(each, level)
                and level not in named
                and len(folders[level]) > 1
                and not any(column.varies for column in columns)
            ):
                text = "".join(column.values[0] for column in columns)
                each.levels[level] = [
                    _Column(level, [Token(text, "word")] * len(each.units), True, is_field=True)
                ]


def _is_folder(each: _Class, level: int) -> bool:
    return level < len(each.levels) - 1 or not each.units[0].is_file


def _plain_name(each: _Class, column: _Column) -> str:
    columns = each.levels[column.level]
    words = [
        other.values[0]
        for other in columns
        if other.tokens[0].kind in ("word", "key") and not other.varies and other is not column
    ]
    is_file = each.units[0].is_file and column.level == len(each.levels) - 1
    return identifier(words) or (
        f"name{columns.index(column) // 2 + 1}"
        if is_file
        else f"{UNNAMED_FOLDER}{column.level + 1}"
    )


def _number_twins(each: _Class) -> None:
    """No field comes twice: a second one takes the number of its place."""
    seen: set[str] = set()
    for column in each.columns:
        if column.name is None:
            continue
        name, number = column.name, 1
        while column.name in seen:
            number += 1
            column.name = f"{name}{number}"
        seen.add(column.name)


def _text(each: _Class) -> str:
    parts = []
    for columns in each.levels:
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
