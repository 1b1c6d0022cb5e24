# SPDX-License-Identifier: Apache-2.0
"""Sizes among fio's options as plain bytes, so that fio reads what the study means.

fio reads `4KiB` as 4,000 bytes unless `kb_base=1000` (fio(1), "Parameter types": the units are
swapped for the sake of old scripts), and `4 k` as 4. A study means 4,096 by both, as everywhere in
iolab. A job file means what fio reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from iolab.base.units import parse_fio_size

Scalar = str | int | float | bool

SIZES = frozenset(
    {
        "ba",
        "blockalign",
        "blocksize",
        "blocksize_range",
        "bs",
        "bsrange",
        "bssplit",
        "buffer_compress_chunk",
        "filesize",
        "hugepage-size",
        "io_limit",
        "io_size",
        "iomem_align",
        "mem_align",
        "offset",
        "offset_align",
        "offset_increment",
        "random_distribution",
        "rate",
        "rate_iops",
        "rate_iops_min",
        "rate_min",
        "replay_align",
        "size",
        "sync_file_range",
        "verify_interval",
        "verify_offset",
        "zonecapacity",
        "zonerange",
        "zonesize",
        "zoneskip",
    }
)
"""Options with sizes, alone or in lists (`4k-64k`, `4k/50:8k/50`, `1m,500k`, `zoned_abs:60/20g`),
and rates written with the same units."""

_SIZE = re.compile(r"(?<![\w.])(\d+)([ \t]*)([kmgtp])(ib|b|i|)(?![\w])", re.IGNORECASE)


def in_bytes(options: Mapping[str, Scalar], base: int = 1024) -> dict[str, Scalar]:
    """Options with every size in bytes, as iolab reads them."""
    return {
        name: _plain(value, lambda match: parse_fio_size(match[0], kb_base=base))
        if name in SIZES
        else value
        for name, value in options.items()
    }


def as_meant(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Options of a study as iolab reads them: in bytes where `kb_base = 1000` is among them, by
    which units without an i are decimal."""
    base = _base(options)
    return dict(options) if base == 1024 else in_bytes(options, base)


def as_fio_reads(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Options of a job file: as they are, but sizes that fio takes for others than they seem are in
    the bytes that it takes them for."""
    base = _base(options)

    def read(match: re.Match[str]) -> int:
        if match[2]:
            return int(match[1])  # fio stops at the blank
        unit = 1000 if (base == 1000) != (match[4].lower() == "ib") else 1024
        return int(match[1]) * int(unit ** ("kmgtp".index(match[3].lower()) + 1))

    settings: dict[str, Scalar] = {}
    for name, value in options.items():
        seems = _plain(value, lambda match: parse_fio_size(match[0])) if name in SIZES else value
        reads = _plain(value, read) if name in SIZES else value
        settings[name] = value if seems == reads else reads
    return settings


def _plain(value: Scalar, size: Callable[[re.Match[str]], int]) -> Scalar:
    """A value with its sizes replaced; a number where nothing else is in it."""
    if not isinstance(value, str):
        return value
    text = _SIZE.sub(lambda match: str(size(match)), value.strip())
    return int(text) if text.isdecimal() and text != value.strip() else text


def _base(options: Mapping[str, Scalar]) -> int:
    return 1000 if str(options.get("kb_base", "")).strip() == "1000" else 1024
