# SPDX-License-Identifier: Apache-2.0
"""fio's options as a study writes them: what is wrong with them, and the job file that they
make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from iolab.base.errors import RunError, UsageError
from iolab.base.units import parse_fio_size
from iolab.hosts.base.options import OptionProblem

from ...results.facts.run_facts import SYNC_ENGINES
from .names import (
    BARRED_ENGINES,
    CHECKED,
    FILE_ENGINES,
    HARMLESS,
    INCLUDE,
    KNOWN,
    RESERVED,
    TRUSTED,
    UNKNOWN,
)

Scalar = str | int | float | bool

_DIRECTIONS = {
    "read": 1,
    "randread": 1,
    "write": 1,
    "randwrite": 1,
    "trim": 1,
    "randtrim": 1,
    "rw": 2,
    "readwrite": 2,
    "randrw": 2,
    "trimwrite": 2,
    "randtrimwrite": 2,
}
"""Operations that a load of this kind does; a single rate holds for each of them."""
_PLACES = {
    "read": (0,),
    "randread": (0,),
    "write": (1,),
    "randwrite": (1,),
    "trim": (2,),
    "randtrim": (2,),
    "rw": (0, 1),
    "readwrite": (0, 1),
    "randrw": (0, 1),
    "trimwrite": (2, 1),
    "randtrimwrite": (2, 1),
}
_PLAIN = {"filename_format", "write_lat_log", "write_hist_log", "mem", "iomem"}
"""Options with a value that becomes (part of) a file's name."""
_MEMORY = re.compile(r"malloc|shm|shmhuge|mmap|mmaphuge|mmapshared|cudamalloc")
LONGEST_LINE = 4000
"""Bytes of a line of a job file. fio 3.33 takes what follows 8,191 bytes as another line, with any
option. Older versions have smaller buffers."""
_PATTERNS = ("buffer_pattern", "verify_pattern")
"""Options with a pattern. fio reads a part of it in single quotes from the file of that name."""
_FILE_NAME = re.compile(r"[\w.+=@%-]+(?:/[\w.+=@%-]+)*")
"""What `filename` may be: no quotes, blanks, colons (fio separates files by them), backslashes."""
SMALL_BLOCK = 4096
"""Bytes below which writing files out block by block takes so long that it is done in larger ones:
a job at `bs=1` never begins."""
LAYOUT_BLOCK = 1 << 20
_COUNTS = ("numjobs", "iodepth")
_BLOCK_SIZE = ("a block size", "write it as fio does: 4k, 64KiB, 8192; 4k,64k for reads,writes")
_BLOCK_RANGE = ("a range of block sizes", "write it as fio does: 4k-64k")
_BLOCKS = {
    "bs": _BLOCK_SIZE,
    "blocksize": _BLOCK_SIZE,
    "ba": _BLOCK_SIZE,
    "blockalign": _BLOCK_SIZE,
    "bsrange": _BLOCK_RANGE,
    "blocksize_range": _BLOCK_RANGE,
    "bssplit": ("a split of block sizes", "write it as fio does: 4k/60:64k/40"),
}
"""Options with block sizes: what they contain, and valid forms. fio reads `4q` as 4."""
_RATES = ("rate", "rate_min", "rate_iops", "rate_iops_min")


def problems(options: Mapping[str, Any]) -> list[OptionProblem]:
    """Everything that can be said to be wrong with the options that are there, without asking
    fio."""
    problem_list = []
    for name, value in options.items():
        problem = _name_problem(name) or _kind_problem(name, value) or _value_problem(name, value)
        if problem is not None:
            problem_list.append(problem)
    return problem_list


def consent_to(options: Mapping[str, Scalar]) -> tuple[tuple[str, str], ...]:
    """(key, `cgroup=x (changes control groups of the machine)`) for each option that is not known to
    be harmless, as `Options.consent` has them."""
    return tuple(
        (f"options.{name}", f"{name}={value} ({TRUSTED.get(name) or _unknown(name)})")
        for name, value in options.items()
        if name not in HARMLESS and name not in CHECKED
    )


def _unknown(name: str) -> str:
    similar = get_close_matches(name, sorted(KNOWN), 1, 0.75)
    return f"{UNKNOWN}; did you mean '{similar[0]}'?" if similar else UNKNOWN


def job_text(options: Mapping[str, Scalar], *, section: str) -> str:
    """A job file of one section; true and false become 1 and 0.

    RunError for a line that fio would read as something else. A line break in the target's path
    begins another option, a `;` a comment.
    """
    lines = [f"[{section}]"]
    for name, value in options.items():
        line = f"{name}={int(value) if isinstance(value, bool) else value}"
        is_replaced = name in ("directory", "filename") and re.search(r"[;#]|\$[{pmn]", line)
        if is_replaced or _has_control(line) or _is_long(line):
            raise RunError(
                f"fio would read {name} of the job as something else",
                hint="use a shorter path, without control characters, ';', '#' and '${'",
            )
        lines.append(line)
    return "\n".join(lines) + "\n"


def offered_iops(options: Mapping[str, Scalar], jobs: int) -> float | None:
    """Rate of an open loop over all jobs, 1/s, or None for a closed loop.

    `rate_iops` is per job; one number holds for every operation, `read,write,trim` gives each its
    own (fio(1)).
    """
    rate_text = str(options.get("rate_iops", "")).strip()
    kind = direction(options)
    if not rate_text or kind not in _PLACES:
        return None
    parts = [_number(part) for part in rate_text.split(",")]
    used = (
        [parts[0]] * _DIRECTIONS[kind]
        if len(parts) == 1
        else [parts[at] for at in _PLACES[kind] if at < len(parts)]
    )
    total = sum(rate for rate in used if rate is not None)
    return float(total * jobs) if total > 0 else None


def space_bytes(options: Mapping[str, Scalar], jobs: int) -> int:
    """Room that these jobs may take: their size each, once where they share a file; 0 for a share
    of a device."""
    size = _number(str(options.get("size", ""))) or 0
    shared = "filename" in options or "$job" not in str(options.get("filename_format", "$jobname"))
    return size if shared else size * jobs


def direction(options: Mapping[str, Scalar]) -> str:
    """`read`, `randwrite`...: without what may follow a colon; fio reads where nothing is said."""
    return str(options.get("rw", options.get("readwrite", "read"))).partition(":")[0]


def laid_out(options: Mapping[str, Scalar]) -> bool:
    """Whether fio writes the files out before it begins: for reads, overwrites, and engines that
    can't extend a file."""
    reads = direction(options) in ("read", "randread", "rw", "readwrite", "randrw")
    return (
        reads
        or str(options.get("overwrite", 0)) not in ("0", "False")
        or str(options.get("ioengine")) == "mmap"
    )


def largest_block(options: Mapping[str, Scalar]) -> int:
    """Bytes of the largest block of a load, in which fio writes its files out; 4096, fio's own,
    where nothing is said."""
    texts = [str(options[name]) for name in ("bs", "bsrange", "bssplit") if name in options]
    sizes = [
        size
        for text in texts
        for part in re.split(r"[,:-]", text)
        if (size := _number(part.partition("/")[0])) is not None
    ]
    return max(sizes, default=4096)


def synchronous(options: Mapping[str, Scalar]) -> bool:
    """Whether the engine holds one I/O at a time whatever iodepth says."""
    return str(options.get("ioengine", "psync")) in SYNC_ENGINES


def switched_on(options: Mapping[str, Scalar], name: str) -> bool:
    """Whether an option that may be set to 0 is set and on."""
    return name in options and str(options[name]) not in ("0", "False", "none")


def depth(options: Mapping[str, Scalar]) -> int:
    """I/Os in flight per job, as the engine does them."""
    return 1 if synchronous(options) else int(options.get("iodepth", 1))


def _number(text: str) -> int | None:
    try:
        return int(text, 16) if text.strip().lower().startswith("0x") else parse_fio_size(text)
    except (UsageError, ValueError):
        return None


def _is_blocks(name: str, text: str) -> bool:
    """Whether block sizes have a form that fio reads: up to three parts (reads, writes, trims), of
    which some may be empty."""
    parts = text.split(",")
    blocks = [part for part in parts if part.strip()]
    if len(parts) > 3 or not blocks:
        return False
    if name in ("bsrange", "blocksize_range"):
        return all(re.fullmatch("[^-:]+[-:][^-:]+", part) for part in blocks) and all(
            _number(end) for part in blocks for end in re.split("[-:]", part)
        )
    if name == "bssplit":
        pairs = [pair.partition("/") for part in blocks for pair in part.split(":")]
        return all(
            _number(size) and (not share.strip() or share.strip().isdigit())
            for size, _, share in pairs
        )
    return all(map(_number, blocks))


def _has_control(text: str) -> bool:
    return any(ord(char) < 32 or ord(char) == 127 for char in text)


def _is_long(line: str) -> bool:
    return len(line.encode(errors="surrogatepass")) > LONGEST_LINE


def _name_problem(name: str) -> OptionProblem | None:
    if name.strip().lower().startswith(INCLUDE):
        return OptionProblem(
            (name,), "includes another file, with unknown options", "write its lines here"
        )
    if name in RESERVED:
        return OptionProblem((name,), "can't be set here", RESERVED[name])
    if not name.replace("_", "").replace("-", "").isalnum() or not name.isascii():
        return OptionProblem(
            (name,), "is not a fio option", "names have letters, digits, '_' and '-'"
        )
    return None


def _kind_problem(name: str, value: Any) -> OptionProblem | None:
    if isinstance(value, str | int | float):
        return None
    kind = (
        "a list"
        if isinstance(value, list)
        else "a table"
        if isinstance(value, dict)
        else f"a {type(value).__name__}"
    )
    return OptionProblem(
        (name,),
        f"is {kind}",
        "a text, a number, true or false; levels to sweep are listed in [factors]",
    )


def _value_problem(name: str, value: Scalar) -> OptionProblem | None:
    text = str(value)
    if _has_control(text):
        return OptionProblem((name,), "has control characters", "an option is one line")
    if _is_long(f"{name}={text}"):
        return OptionProblem((name,), "is too long", f"at most {LONGEST_LINE} bytes with its name")
    if "$" in text and name != "filename_format":
        # ${NAME} is read from the environment; for $ncpus, $pagesize and $mb_memory fio runs bc(1)
        return OptionProblem((name,), "has a '$', which fio replaces", "write the value itself")
    if name in _PATTERNS and "'" in text:
        return OptionProblem(
            (name,), "has a single quote, by which fio reads a file", 'write 0x... or "text"'
        )
    if name == "size":
        return _size_problem(text)
    if name in _BLOCKS and not _is_blocks(name, text):
        return OptionProblem((name,), f"'{text}' is not {_BLOCKS[name][0]}", _BLOCKS[name][1])
    if name in _COUNTS and not (text.isdigit() and int(text) > 0 and not isinstance(value, bool)):
        return OptionProblem((name,), f"is {text}", "a whole number from 1")
    if name in _RATES and any(
        part.strip().startswith("-") for part in text.split(",")
    ):  # fio takes it for a huge one
        return OptionProblem((name,), f"is {text}", "no less than nothing")
    if name == "filename" and (".." in text.split("/") or not _FILE_NAME.fullmatch(text)):
        return OptionProblem(
            (name,),
            f"'{text}' leads out of the target",
            "a name without '/' in front, '..', ':', blanks and quotes",
        )
    if name in _PLAIN and "/" in text:
        return OptionProblem((name,), f"'{text}' leads elsewhere by its '/'", "a plain name")
    if name in ("mem", "iomem") and not _MEMORY.fullmatch(text):
        return OptionProblem((name,), f"'{text}' is not a kind of memory", "malloc, shm, mmap, ...")
    return _engine_problem(text) if name == "ioengine" else None


def _engine_problem(text: str) -> OptionProblem | None:
    if text in FILE_ENGINES:
        return None
    engine = text.partition(":")[0].strip().strip("\"'")
    why = BARRED_ENGINES.get(engine, "iolab doesn't know that it stays in the files it is given")
    return OptionProblem(
        ("ioengine",),
        f"'{text}' can't be used: {why}",
        "an engine that works on files, such as psync, libaio, io_uring, mmap",
    )


def _size_problem(text: str) -> OptionProblem | None:
    allowed = "write it as fio does: 64m, 1g, 8192; 100% of a device"
    share = text.removesuffix("%").strip()
    if text.endswith("%") and share.isdigit() and 0 < int(share) <= 100:
        return None
    try:
        size = parse_fio_size(text)
    except UsageError:
        return OptionProblem(("size",), f"'{text}' is not a size", allowed)
    return OptionProblem(("size",), "is zero", allowed) if size == 0 else None
