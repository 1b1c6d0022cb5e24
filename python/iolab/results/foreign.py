"""Importing a tree of other people's fio and iostat files: each matching folder becomes a run, its files the evidence."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .. import __version__
from ..errors import FormatError, ResultsError, UsageError
from .evidence import RUNS, write_plan
from .layout import Layout, parse_layout
from .manifest import Manifest, write_manifest
from .model import RunPlan

CONCURRENCY = ("numjobs", "jobs", "threads")
"""Factors that name how many jobs ran at once."""


@dataclass(frozen=True)
class Imported:
    """What an import found: runs taken, and folders with evidence that the layout doesn't name."""

    runs: int
    unmatched: tuple[str, ...]


def import_tree(source: Path, layout_text: str, output: Path, *, link: bool = False, baseline: str | None = None,
                reproduce: list[str] | None = None, devices: Sequence[str] = ()) -> Imported:
    """Make a results directory from a tree or a tar archive of one.

    Args:
        source: a directory, or an archive that `tarfile` reads (a single top folder is stepped into).
        layout_text: see `layout`; matched against the whole path below the tree, of folders first, then of files.
        output: the results directory; must not exist or be empty.
        devices: those that sums over devices hold; by default those that stand for themselves (`device_choice`).
        link: symbolic links to the files instead of copies (not for archives).

    Raises UsageError when nothing matches, ResultsError when the output is taken. Either a whole import is left
    behind, or nothing.
    """
    layout = parse_layout(layout_text)
    refuse_taken(output)
    with _opened(source, output.parent, layout, link) as (tree, skipped):
        found, unmatched = _matches(tree, layout)
        if not found:
            raise UsageError(_nothing_matched(tree, layout), where=source,
                             hint="write the path from the tree to one run's folder, with {name} or {name:int} for what varies")
        temporary = output.with_name(f".{output.name}.importing")
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            variants = _write(temporary, found, layout, source.stem, _PLACE["link" if link else "copy" if tree == source else "move"],
                              {"devices": list(devices)} if devices else {})
            if baseline is not None and baseline not in variants:
                raise UsageError(f"there is no variant '{baseline}'", hint=f"variants are {', '.join(variants)}")
            write_manifest(temporary, Manifest(
                name=output.name, origin="tree", created_ns=time.time_ns(), iolab=__version__,
                baseline=baseline or variants[0], variants=variants, factors=list(layout.factors), source=source.name,
                layout=layout.text, reproduce=reproduce or []))
            if output.exists():
                output.rmdir()
            temporary.rename(output)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return Imported(len(found), tuple(sorted({*unmatched, *skipped})))


def refuse_taken(output: Path) -> None:
    """ResultsError unless `output` is free or an empty directory; evidence is never written over."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ResultsError("exists already", where=output, hint="choose another -o, or remove it")
    output.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def _opened(source: Path, beside: Path, layout: Layout, link: bool) -> Iterator[tuple[Path, list[str]]]:
    """The tree, and folders of an archive left out for not matching.

    What an archive has for the layout is unpacked `beside` the output, so that its files need only be moved.
    """
    if source.is_dir():
        yield source, []
        return
    if not source.exists():
        raise UsageError("no such file or directory", where=source)
    if link:
        raise UsageError("--link needs a directory, not an archive", where=source)
    with tempfile.TemporaryDirectory(prefix=".iolab-import-", dir=beside) as directory:
        try:
            with tarfile.open(source) as archive:
                skipped = _unpack(archive, directory, layout)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise FormatError(f"is neither a directory nor a readable tar archive: {error}", where=source) from None
        yield Path(directory), skipped


def _unpack(archive: tarfile.TarFile, directory: str, layout: Layout) -> list[str]:
    """Extract the files of runs, found with or without a single top folder; returns folders with fio results left out.

    Only regular files are written, each below the directory whatever its name says. Of an archive of which nothing
    matches the folders alone are made, so that the error can show one of its paths.
    """
    skipped: dict[str, None] = {}
    folders: dict[PurePosixPath, None] = {}
    taken = 0
    for member in archive:
        path = PurePosixPath(member.name)
        if not member.isfile() or path.is_absolute() or ".." in path.parts:
            continue
        folders[path.parent] = None
        inner = PurePosixPath(*path.parts[1:])
        if any(layout.match(str(each)) is not None for each in (path.parent, inner.parent, path, inner)):
            _extract(archive, member, Path(directory, path))
            taken += 1
        elif _is_fio_result(path.name):
            skipped[str(inner.parent)] = None
    if taken:
        return list(skipped)
    for folder in folders:
        Path(directory, folder).mkdir(parents=True, exist_ok=True)
    return []


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write one file with its time. `extract(filter=...)` would do, but came with Python 3.11.4 only."""
    content = archive.extractfile(member)
    assert content is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    with content, place.open("wb") as file:
        shutil.copyfileobj(content, file)
    os.utime(place, (member.mtime, member.mtime))


def _is_fio_result(name: str) -> bool:
    return "fio" in name and name.endswith(".json")


def _matches(tree: Path, layout: Layout) -> tuple[list[tuple[dict[str, object], list[Path], str]], list[str]]:
    """(fields, files, relative path) per run in path order with numbers as numbers; folders with fio files left over."""
    found, unmatched = _walk(tree, layout)
    entries = [entry for entry in tree.iterdir() if not entry.name.startswith(".")]
    if not found and len(entries) == 1 and entries[0].is_dir():
        found, unmatched = _walk(entries[0], layout)
    return found, unmatched


def _walk(tree: Path, layout: Layout) -> tuple[list[tuple[dict[str, object], list[Path], str]], list[str]]:
    found, unmatched = [], []
    for folder, folders, names in os.walk(tree):
        folders.sort()
        relative = Path(folder).relative_to(tree).as_posix()
        fields = layout.match(relative)
        if fields is not None:
            found.append((fields, [Path(folder, name) for name in sorted(names)], relative))
            continue
        single = [(layout.match(name if relative == "." else f"{relative}/{name}"), name) for name in sorted(names)]
        matched = [(fields, [Path(folder, name)], f"{relative}/{name}") for fields, name in single if fields is not None]
        found += matched
        if not matched and any(map(_is_fio_result, names)):
            unmatched.append(relative)
    found.sort(key=lambda item: tuple((str(type(value)), value) for value in item[0].values()))
    return found, sorted(unmatched)


def _nothing_matched(tree: Path, layout: Layout) -> str:
    depth = layout.text.count("/") + 1
    samples = (Path(folder).relative_to(tree).as_posix() for folder, _, _ in os.walk(tree))
    sample = next((path for path in samples if path.count("/") + 1 == depth and path != "."), None)
    seen = f"; a path at that depth is '{sample}'" if sample else ""
    return f"the layout '{layout.text}' matches nothing below the tree{seen}"


def _link(file: Path, place: Path) -> None:
    place.symlink_to(file.resolve())


_PLACE: dict[str, Callable[[Path, Path], object]] = {"link": _link, "copy": shutil.copy2, "move": os.replace}
"""How a file of the tree gets into the results."""


def _write(output: Path, found: list[tuple[dict[str, object], list[Path], str]], layout: Layout, name: str,
           put: Callable[[Path, Path], object], extra: Mapping[str, object]) -> list[str]:
    variants: list[str] = []
    for number, (fields, files, relative) in enumerate(found, 1):
        variant = str(fields.get("variant", name))
        if variant not in variants:
            variants.append(variant)
        factors = {key: fields[key] for key in layout.factors}
        repetition = int(str(fields.get("repetition", fields.get("block", 1))))
        jobs = next((factors[key] for key in CONCURRENCY if isinstance(factors.get(key), int)), None)
        digest = hashlib.sha256(relative.encode()).hexdigest()[:8]
        plan = RunPlan(run=f"{number:04d}-{digest}", variant=variant, factors=factors, repetition=repetition,
                       block=int(str(fields.get("block", repetition))), status="imported", host="imported",
                       jobs=jobs if isinstance(jobs, int) else None, extra={"imported_from": relative, **extra})
        run_dir = output / RUNS / plan.run
        run_dir.mkdir(parents=True)
        for file in files:
            put(file, run_dir / file.name)
        write_plan(run_dir, plan, durable=False)
    return variants
