# SPDX-License-Identifier: Apache-2.0
"""Layouts inferred from the paths of results: what varies between them, named by the keys in the
paths and by fio's echoed options.

The answer is text that `layout.parse_layout` reads, so that it can be shown, repeated and
corrected. Everything afterwards goes by it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .column_names import name_columns
from .layout import parse_layout
from .options import telling_options
from .path_columns import PathClass, Sample, Unit, classes_of, divide_units, option_of
from .places import clusters
from .zfs_tests import suite_layout

MAX_LAYOUTS, MAX_LENGTH = 12, 1000
"""More layouts, or characters of all of them, show that the inference failed."""

_NUMBERED = re.compile(
    r"(?P<name>.+?)(?P<between>[-_.])(?P<number>\d{1,6})(?P<ending>(?:\.[a-z]\w*)*)"
)
"""A name with a number at its end."""

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


def infer_layouts(samples: Sequence[Sample]) -> Inferred:
    """The layouts of some results, the most particular first; none without results."""
    if suite := _suite_layouts(samples):
        return Inferred(suite)
    if repeated := _layouts_of_repetitions(samples):
        return Inferred(repeated)
    units = divide_units(samples)
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
    units = divide_units([replace(s, path=f"{s.path.rpartition('/')[0]}/result") for s in repeated])
    return tuple(f"{layout}/{name}" for layout in _texts(_named_classes(units)))


def _layouts_of_repetitions(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Layouts of folders of which each has the repetitions of one cell, numbered at the end of
    their names (`reads-0`, `reads-1`), where the folders have names of their own for them."""
    by_folder: dict[str, list[tuple[Sample, re.Match[str]]]] = defaultdict(list)
    for sample in samples:
        folder, _, name = sample.path.rpartition("/")
        match = _NUMBERED.fullmatch(name)
        if match is None:
            return ()
        by_folder[folder].append((sample, match))
    names = {match["name"] for own in by_folder.values() for _, match in own}
    ends = {(match["between"], match["ending"]) for own in by_folder.values() for _, match in own}
    if len(by_folder) < 2 or len(names) < 2 or len(ends) > 1:
        return ()
    if not all(_are_repetitions(own) for own in by_folder.values()):
        return ()
    units = divide_units(
        [replace(own[0][0], path=f"{folder}/result") for folder, own in by_folder.items()]
    )
    between, ending = ends.pop()
    return tuple(
        f"{layout}/*{between}{{repetition:int}}{ending}" for layout in _texts(_named_classes(units))
    )


def _are_repetitions(files: Sequence[tuple[Sample, re.Match[str]]]) -> bool:
    """Whether files are numbered from 0 or 1 on, have one name and the same options of fio, and ran
    one after another."""
    numbers = sorted(int(match["number"]) for _, match in files)
    options = [telling_options(sample.options) for sample, _ in files]
    return (
        len(files) > 1
        and len({match["name"] for _, match in files}) == 1
        and numbers[0] in (0, 1)
        and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        and bool(options[0].keys() - {"section"})
        and all(other == options[0] for other in options)
        and all(len(cluster) == 1 for cluster in clusters([sample.window for sample, _ in files]))
    )


def _named_classes(units: list[Unit]) -> list[PathClass]:
    classes = classes_of(units)
    name_columns(classes)
    return classes


def _doubts(classes: list[PathClass], layouts: Sequence[str]) -> Iterable[str]:
    """What shows that the layouts are not what the paths mean."""
    contradicting: dict[tuple[str, str], list[str]] = defaultdict(list)
    for shape in classes:
        for column in shape.columns:
            if column.contradicts:
                contradicting[column.contradicts, column.name or ""] += [
                    f"'{text}' of {unit.path}, where fio echoed "
                    f"{option_of(column.contradicts)}={unit.sample.echo(column.contradicts)}"
                    for unit, text in zip(shape.units, column.values, strict=True)
                    if unit.agrees(column.contradicts, text) is False
                ]
    for (key, name), examples in contradicting.items():
        yield (
            f"{key} in the paths is not fio's {option_of(key)}: {len(examples)} "
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


def _texts(classes: list[PathClass], only: set[str] | None = None) -> tuple[str, ...]:
    texts = {
        _layout_text(shape): None
        for shape in classes
        if only is None or all(unit.path in only for unit in shape.units)
    }
    return tuple(sorted(texts, key=lambda text: (-text.count("/"), text.count("{"), -len(text))))


def _layout_text(shape: PathClass) -> str:
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
