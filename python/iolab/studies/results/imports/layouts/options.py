# SPDX-License-Identifier: Apache-2.0
"""Options that fio echoes of a run: which of them say what was measured, and what differs between
runs that look alike.

Runs with different options are not repetitions of one measurement. What differs becomes a factor,
unless the variant alone explains it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size, parse_fio_time

from .path_words import same_value

INCIDENTAL = {
    # where the load lay and where its output went
    "filename",
    "directory",
    "filename_format",
    "unique_filename",
    "opendir",
    "output",
    "output-format",
    "mountpoint",
    "hostname",
    "port",
    "listen",
    "interface",
    "clustername",
    "rbdname",
    "aux-path",
    "state_save_path",
    "read_iolog",
    "write_iolog",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "log_alternate_epoch",
    "log_prio",
    "log_store_compressed",
    "log_compression",
    "per_job_logs",
    "log_entries",
    "log_window_value",
    "log_hist_coarseness",
    "bwavgtime",
    "iopsavgtime",
    # names and how results are told
    "name",
    "description",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for",
    "percentile_list",
    "status-interval",
    "eta",
    "significant_figures",
    "uid",
    "gid",
    "exitall",
    "exitall_on_error",
    # chance
    "randseed",
    "allrandrepeat",
    "randrepeat",
}
"""Options that differ between repetitions without making them different measurements."""

UNNAMED_FOLDER = "folder"
"""How factors begin that are named after a folder's depth alone."""

_FIRST = (
    "rw",
    "readwrite",
    "iodepth",
    "numjobs",
    "bs",
    "blocksize",
    "rwmixread",
    "rwmixwrite",
    "rate_iops",
    "rate",
    "ioengine",
    "direct",
    "sync",
    "fsync",
    "size",
    "runtime",
)
"""Options that are taken first where several differ at once: what people sweep."""

_SIZES = {
    "bs",
    "blocksize",
    "size",
    "io_size",
    "filesize",
    "file_size",
    "ba",
    "offset",
    "offset_increment",
    "rate",
}
_TIMES = {"runtime", "timeout", "ramp_time", "startdelay", "time"}


@dataclass
class MeasuredRun:
    """A measurement that becomes a run, as its path and its file describe it.

    Attributes:
        factors: as far as known; is changed where options become factors.
        options: those that say what was measured, in one spelling; original: as fio has them.
    """

    variant: str
    factors: dict[str, object]
    options: Mapping[str, str]
    original: Mapping[str, str] = field(default_factory=dict)
    host: str = ""


def telling_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that say what was measured, by name, in one spelling: `4k` as `4096`, flags
    without a value as `1`."""
    return {
        name: option_value(name, text) for name, text in options.items() if name not in INCIDENTAL
    }


def option_value(name: str, text: str) -> str:
    """An option's value in one spelling: sizes in bytes, times in seconds, `randread` for
    `random-read`."""
    if name in ("rw", "readwrite"):
        return same_value(name, text)
    try:
        if name in _SIZES:
            return str(parse_fio_size(text))
        if name in _TIMES:
            return f"{parse_fio_time(text):g}"
    except UsageError:
        pass
    return {"": "1", "true": "1", "false": "0"}.get(text.strip().lower(), text.strip())


def is_same_value(name: str, text: str, other: str) -> bool:
    """Whether two texts are one value of an option: `4Ki` and `4k`, `60` and `1m`, `08` and `8`."""
    return option_value(name, text) == option_value(name, other) or same_value(
        name, text
    ) == same_value(name, other)


def complete_factors(runs: Sequence[MeasuredRun]) -> dict[str, int]:
    """Fill factors that the paths of some runs don't name from the options that fio echoed of them;
    returns how many of each.

    Trees of several shapes name different factors: `randread-8-1.json` leaves out what
    `randread-8-4.json` states.
    """
    factors: dict[str, int] = {}
    for name in dict.fromkeys(name for run in runs for name in run.factors):
        levels = [run.factors[name] for run in runs if run.factors.get(name) is not None]
        are_numbers = all(isinstance(level, int) for level in levels)
        for run in runs:
            text = run.options.get(name)
            if (
                run.factors.get(name) is not None
                or text is None
                or (are_numbers and not text.isdecimal())
            ):
                continue
            spelt = next(
                (
                    level
                    for level in levels
                    if same_value(name, str(level)) == same_value(name, text)
                ),
                run.original.get(name, text),
            )
            run.factors[name] = int(text) if are_numbers else spelt
            factors[name] = factors.get(name, 0) + 1
    return factors


def drop_explained_folders(runs: Sequence[MeasuredRun]) -> list[str]:
    """Remove factors of unnamed folders that only some runs have and that their named factors
    explain; returns their names.

    A folder `random` above `randread` adds nothing, and keeps runs of other trees out of its
    cells.
    """
    dropped = []
    for name in [
        name
        for name in dict.fromkeys(name for run in runs for name in run.factors)
        if name.startswith(UNNAMED_FOLDER)
    ]:
        having = [run for run in runs if run.factors.get(name) is not None]
        if len(having) == len(runs):
            continue
        levels: dict[tuple[object, ...], set[object]] = defaultdict(set)
        for run in having:
            named = sorted(
                (other, str(level))
                for other, level in run.factors.items()
                if not other.startswith(UNNAMED_FOLDER)
            )
            levels[run.variant, run.host, *named].add(run.factors[name])
        if all(len(values) == 1 for values in levels.values()):
            for run in runs:
                run.factors.pop(name, None)
            dropped.append(name)
    return dropped


def split_by_options(runs: Sequence[MeasuredRun]) -> dict[str, str]:
    """Make factors of the options in which runs of one cell differ; returns each new factor with an
    example, in words.

    A cell is one variant at one combination of factor levels. Options of which one explains the
    other become one factor. What only the variant explains stays the variant's own.
    """
    texts: dict[str, str] = {}
    while True:
        differing = _differing(runs)
        name = next(
            iter(
                sorted(
                    differing,
                    key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name),
                )
            ),
            None,
        )
        if name is None:
            return texts
        factor = _factor_name(name, runs)
        is_numeric = all(
            (text := run.options.get(name)) is None or text.isdecimal() for run in runs
        )
        spelt: dict[str, object] = {}
        for run in runs:
            text = run.options.get(name)
            if text is not None:
                spelt.setdefault(
                    text,
                    int(text)
                    if is_numeric and name not in _SIZES
                    else run.original.get(name) or text,
                )
            run.factors[factor] = None if text is None else spelt[text]
        texts[factor] = differing[name]


def _differing(runs: Sequence[MeasuredRun]) -> dict[str, str]:
    """Options of which runs of one cell have several values, each with those of one cell."""
    cells: dict[tuple[object, ...], list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        cells[
            run.variant,
            run.host,
            *(
                (name, str(value))
                for name, value in sorted(run.factors.items())
                if value is not None
            ),
        ].append(run)
    texts: dict[str, str] = {}
    for cell in cells.values():
        names = {name for run in cell for name in run.options} if len(cell) > 1 else set()
        for name in names - texts.keys():
            values = dict.fromkeys(run.options.get(name, "absent") for run in cell)
            if len(values) > 1:
                texts[name] = ", ".join(list(values)[:6]) + (", ..." if len(values) > 6 else "")
    return texts


def _factor_name(option: str, runs: Sequence[MeasuredRun]) -> str:
    """The option's name; `fio_<name>` where the layout has a factor of that name that says
    otherwise."""
    name = option.replace("-", "_")
    return f"fio_{name}" if any(name in run.factors for run in runs) else name


def unlike_arms(runs: Sequence[MeasuredRun]) -> dict[str, str]:
    """Options that differ between the variants of one cell, with their values."""
    cells: dict[tuple[object, ...], list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        cells[
            tuple(
                (name, str(value))
                for name, value in sorted(run.factors.items())
                if value is not None
            )
        ].append(run)
    texts: dict[str, str] = {}
    for cell in cells.values():
        for name in {name for run in cell for name in run.options}:
            values = {run.variant: run.options.get(name, "absent") for run in cell}
            if len(set(values.values())) > 1:
                texts.setdefault(
                    name,
                    ", ".join(f"{variant}: {value}" for variant, value in list(values.items())[:4]),
                )
    return dict(sorted(texts.items()))
