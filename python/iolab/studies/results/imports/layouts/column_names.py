# SPDX-License-Identifier: Apache-2.0
"""Names of the columns of paths: by keys in the paths, by fio's echoed options, by what the texts
are."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

from .options import UNNAMED_FOLDER, telling_options
from .path_columns import Column, PathClass, Unit, option_of
from .path_words import MEDIA, SIZES, Token, identifier, is_baseline, key_of_word
from .places import clusters

MAX_VARIANTS = 64
"""More variants show that the inference failed."""

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

_UNITS = {"kib": 1 << 10, "mib": 1 << 20}
"""Units of sizes that paths give as numbers: `bs_4` where fio echoes `4k`."""


def name_columns(classes: list[PathClass]) -> None:
    """Name every column that is a field; the others stay without a name."""
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


def _name_keyed(columns: list[Column], units: list[Unit]) -> None:
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

    def worth(pairs: Sequence[tuple[Column, Column]]) -> tuple[int, int, int]:
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


def _bind(value: Column, key: Column, name: str, kind: str, contradicts: str) -> None:
    value.name, value.kind, value.contradicts, key.is_key = name, kind, contradicts, True


def _binding(
    value: Column, key: Column, units: list[Unit], *, is_any: bool = False
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


def _agrees(name: str, column: Column, units: list[Unit], scale: int = 1) -> bool | None:
    """Whether fio echoed a field's values wherever it echoed any; None where it echoed none."""
    answers = {
        unit.agrees(name, text, scale) for unit, text in zip(units, column.values, strict=True)
    } - {None}
    return None if not answers else False not in answers


def _is_unlikely(name: str, column: Column, units: list[Unit]) -> bool:
    """Whether fio, which echoes `numjobs` and `iodepth` where they aren't 1, echoed others than a
    letter would name."""
    option = option_of(name)
    return option in ("numjobs", "iodepth") and any(
        "section" not in unit.sample.options
        and unit.sample.options
        and not (unit.agrees(option, text) or (option not in unit.sample.options and text == "1"))
        for unit, text in zip(units, column.values, strict=True)
    )


def _name_by_options(shape: PathClass) -> None:
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


def _merge_columns(columns: list[Column]) -> list[Column]:
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
                joined_column = Column(
                    columns[0].level, [Token(text, "word") for text in texts], is_rest
                )
                return [*columns[:first], joined_column, *columns[last + 1 :]]
    return columns


def _tells(first: Column, second: Column) -> bool:
    return len(set(zip(first.values, second.values, strict=True))) == len(set(first.values))


def _name_known(shape: PathClass) -> None:
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


def _name_repetition(shape: PathClass) -> None:
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


def _ran_at_once(shape: PathClass, column: Column) -> bool:
    """Whether results that differ by that column alone ran at the same time."""
    alike: dict[tuple[str, ...], list[tuple[int, int] | None]] = defaultdict(list)
    for place, unit in enumerate(shape.units):
        rest = tuple(other.values[place] for other in shape.columns if other is not column)
        alike[rest].append(unit.sample.window)
    return any(len(cluster) > 1 for windows in alike.values() for cluster in clusters(windows))


def _same_options(shape: PathClass, column: Column) -> bool:
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


def _name_rest(classes: list[PathClass]) -> None:
    """The rest: one column of text is the variant, the others are factors named by the words
    next to them, else by their place."""
    for shape in classes:
        for column in shape.columns:
            column.is_order = _counts_files(shape, column)
    _open_constant_levels(classes)
    _open_constant_words(classes)
    choices: dict[tuple[int, int], list[tuple[PathClass, Column]]] = defaultdict(list)
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


def _is_open(column: Column) -> bool:
    return (
        column.tokens[0].kind != "glue"
        and (column.varies or column.is_field)
        and not column.is_order
    )


def _counts_files(shape: PathClass, column: Column) -> bool:
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


def _open_constant_levels(classes: list[PathClass]) -> None:
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
                    Column(level, [Token(text, "word")] * len(shape.units), True, is_field=True)
                ]


def _open_constant_words(classes: list[PathClass]) -> None:
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
                        Column(
                            level, [Token(text, "word")] * len(shape.units), False, is_field=True
                        )
                    ]
                    break
                before += column.values[0]


def _is_folder(shape: PathClass, level: int) -> bool:
    return level < len(shape.levels) - 1 or not shape.units[0].is_file


def _plain_name(shape: PathClass, column: Column) -> str:
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
        identifier(_neighbouring_words(reversed(columns[:place]))[::-1])
        or identifier(_neighbouring_words(columns[place + 1 :]))
        or by_place
    )


def _neighbouring_words(columns: Iterable[Column]) -> list[str]:
    """Constant words up to the next field or number."""
    words = []
    for column in columns:
        if column.name is not None or column.is_key or column.varies or column.is_number:
            break
        if column.tokens[0].kind in ("word", "key"):
            words.append(column.values[0])
    return words


def _number_twins(shape: PathClass) -> None:
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
