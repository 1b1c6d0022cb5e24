# SPDX-License-Identifier: Apache-2.0
"""Words of paths that people give their results: what is a key (`iodepth-8`, `8jobs`, `bs=4k`), a
value, a date, a repetition."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size

_ALIASES = {
    "iodepth": (
        "iodepth",
        "io_depth",
        "qd",
        "qdepth",
        "queuedepth",
        "queue_depth",
        "queue-depth",
        "depth",
        "iod",
    ),
    "numjobs": ("numjobs", "num_jobs", "num-jobs", "jobs", "job", "nj", "njobs"),
    "threads": ("threads", "thread", "thr"),
    "bs": ("bs", "blocksize", "block_size", "block-size", "blk"),
    "rw": ("rw", "readwrite"),
    "rwmixread": ("rwmixread", "rwmix", "mixread"),
    "rwmixwrite": ("rwmixwrite", "mixwrite"),
    "rate_iops": ("rate_iops", "rate-iops"),
    "ioengine": ("ioengine", "engine"),
    "direct": ("direct",),
    "size": ("size", "filesize", "file_size"),
    "runtime": ("runtime",),
    "fsync": ("fsync",),
    "nrfiles": ("nrfiles",),
    "recordsize": ("recordsize", "record_size", "rs"),
    "compression": ("compression", "compress"),
    "repetition": (
        "run",
        "rep",
        "repeat",
        "repetition",
        "iteration",
        "iter",
        "trial",
        "pass",
        "round",
        "attempt",
        "sample",
        "try",
    ),
    "host": ("host", "hostname", "node", "server", "client"),
    "disks": ("disks", "disk", "drives", "drive", "devices", "devs"),
    "vdevs": ("vdevs",),
}
ABBREVIATIONS = {"t": "threads", "j": "numjobs", "q": "iodepth", "r": "repetition"}
"""Letters that mean a field where nothing says otherwise."""

KEYS = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
"""What people write to what the field is called: fio's own names where it has one."""

SIZES = {"bs", "size", "recordsize"}
"""Fields with sizes as values."""

MEDIA = {
    "hdd",
    "ssd",
    "nvme",
    "sata",
    "sas",
    "optane",
    "flash",
    "sd",
    "usb",
    "floppy",
    "ramdisk",
    "zram",
}

_DULL = {
    "fio",
    "test",
    "tests",
    "bench",
    "benchmark",
    "result",
    "results",
    "output",
    "out",
    "data",
    "log",
    "logs",
    "json",
}
"""Words that name nothing about a run."""

_BASELINES = {
    "baseline",
    "master",
    "trunk",
    "before",
    "original",
    "control",
    "vanilla",
    "stock",
    "upstream",
    "unpatched",
    "reference",
}
"""Words in names of arms that others are compared with."""

_BASELINE_NAMES = {"base", "main", "old", "orig", "default", "ref", "off", "without", "a", "none"}
"""Whole names of such."""

_SEQUENCE = (
    r"(?:rand(?:om)?|seq(?:uential)?)[-_ ]?(?:readwrite|read|write|rw|trim)|trimwrite|readwrite"
)
_MANY = sorted((alias for alias in KEYS if re.search(r"[-_]", alias)), key=len, reverse=True)
_TOKEN = re.compile(
    r"(?P<date>(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)|(?<!\d)(?:19|20)\d\d[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T_\- ]?[0-2]\d[-_:.h]?[0-5]\d(?:[-_:.m]?[0-5]\d)?Z?)?(?!\d))"
    rf"|(?P<rw>(?<![A-Za-z])(?:{_SEQUENCE})(?![A-Za-z]))"
    rf"|(?P<many>(?<![A-Za-z])(?:io_uring_cmd|io_uring|{'|'.join(map(re.escape, _MANY))})(?![A-Za-z]))"
    r"|(?P<glue>[-_=+,@:;()\[\] ]+)"
    r"|(?P<word>[^-_=+,@:;()\[\] ]+)",
    re.IGNORECASE,
)
_GLUED = re.compile(r"([A-Za-z]+)(\d+[kmgt]?i?b?)|(\d+)([A-Za-z]+)", re.IGNORECASE)
_SIZE = re.compile(r"\d+[kmgt]i?b?", re.IGNORECASE)
_INT = re.compile(r"\d{1,9}")
_RW = {
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "readwrite",
    "randrw",
    "trim",
    "randtrim",
    "trimwrite",
    "randtrimwrite",
}
_ENDING = re.compile(r"(?:\.(?:json|txt|out|log|fio|dat|terse|result|results))+$", re.IGNORECASE)


@dataclass(frozen=True)
class Token:
    """A word of a path: `kind` is `date`, `number`, `size`, `rw`, `key`, `glue` or `word`."""

    text: str
    kind: str


def words_of(part: str, *, is_file: bool) -> list[Token]:
    """A path's part cut into words and what glues them; the ending of a file's name is glue."""
    ending = _ENDING.search(part) if is_file else None
    stem, suffix = (
        (part[: ending.start()], part[ending.start() :])
        if ending is not None and ending.start()
        else (part, "")
    )
    tokens: list[Token] = []
    for match in _TOKEN.finditer(stem):
        text, kind = match[0], match.lastgroup or "word"
        if kind == "word":
            tokens += _cut(text)
        elif kind == "many":
            tokens.append(Token(text, "key" if text.lower() in KEYS else "word"))
        else:
            tokens.append(Token(text, kind))
    return [*tokens, *([Token(suffix, "glue")] if suffix else [])]


def _cut(text: str) -> list[Token]:
    """`8jobs`, `qd32` and `4kbs` are two words, `sda1` and `v2` one."""
    if _INT.fullmatch(text):
        return [Token(text, "number")]
    if _SIZE.fullmatch(text):
        return [Token(text, "size")]
    match = _GLUED.fullmatch(text)
    if match is not None:
        word, number = (match[1], match[2]) if match[1] else (match[4], match[3])
        name = KEYS.get(word.lower()) or ABBREVIATIONS.get(word.lower())
        if name is not None or (match[4] and word.lower() in MEDIA):
            value = Token(number, "number" if _INT.fullmatch(number) else "size")
            key = Token(word, "key" if name else "word")
            if value.kind == "number" or name in SIZES:
                return [key, value] if match[1] else [value, key]
    lower = text.lower()
    return [Token(text, "rw" if lower in _RW else "key" if lower in KEYS else "word")]


def key_of_word(text: str) -> str | None:
    """The field that a key word names."""
    return KEYS.get(text.lower()) or ABBREVIATIONS.get(text.lower())


def identifier(words: list[str]) -> str | None:
    """A field's name made of a path's words; None where they name nothing."""
    telling = [word.lower() for word in words if word.lower() not in _DULL]
    name = re.sub(r"\W+", "_", "_".join(telling)).strip("_")
    is_reserved = name in ("variant", "repetition", "block", "host", "section", "process")
    return (
        None
        if is_reserved or not name.isidentifier() or not name.isascii() or len(name) > 40
        else name
    )


def is_baseline(text: str) -> bool:
    """Whether a name is common for a baseline."""
    lower = text.lower()
    return lower in _BASELINE_NAMES or any(
        word in _BASELINES for word in re.split(r"[^a-z0-9]+", lower)
    )


def same_value(option: str, text: str) -> str:
    """An option's value in one spelling: sizes in bytes, `randread` for `random_read`, numbers
    without zeros before them."""
    lower = text.strip().lower()
    if option in ("rw", "readwrite"):
        lower = (
            re.sub(r"[-_ ]", "", lower)
            .replace("random", "rand")
            .replace("sequential", "")
            .replace("readwrite", "rw")
        )
        return lower.removeprefix("seq")
    try:
        return str(parse_fio_size(lower)) if not lower.isdigit() else str(int(lower))
    except UsageError:
        return lower
