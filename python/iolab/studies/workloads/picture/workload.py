# SPDX-License-Identifier: Apache-2.0
"""A picture as the workload: real I/O with a heat map of offset, size or latency that shows a text
or an image.

The files of a run are fio's replay of a list of I/Os with their times (fio(1),
"Trace File Format v2").

In a list of version 2 `wait` takes milliseconds since fio's start, so that delays never add up. The
list names the file `picture`, and `replay_redirect` says where that is. Files that a replay reads
aren't laid out by fio, so a first fio does.

A latency picture needs to know how long reads of each size take here and now: a second fio measures
them, and `sizes.awk` turns times and latencies into the list.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import ClassVar

from iolab.base.errors import FormatError, RunError
from iolab.hosts.base.host import Host, Place, need
from iolab.hosts.base.options import Options

from ...results.evidence.marks import Mark
from ..base import Job, Load, Workload
from ..fio.check import check_jobs
from ..fio.ios import FOLDER, log_options
from ..fio.job import LAYOUT_FILE, LAYOUT_OUTPUT, LOG_PREFIX
from ..fio.jobfile import Section
from ..fio.options import Scalar, job_text
from ..fio.steps import duration
from ..fio.workload import SLOWEST_LAYOUT, SPARE_SECONDS, FioWorkload
from .model import PictureOptions
from .plan import PICTURE_FILE, Canvas, Planned

CALIBRATION = 3.0
"""Seconds that a latency picture takes to measure reads before it draws."""


class PictureWorkload:
    """A text or an image drawn into the offset, size or latency map, by fio.

    Each column of the picture is a span of time, each row a range of the value; each lit pixel gets
    the same number of I/Os. Offsets and sizes are those that are requested; latency is that of
    reads from the page cache, with sizes chosen by what reads of each size were measured to take
    just before. fio keeps the times (replay with absolute waits).
    """

    name: ClassVar[str] = "picture"
    options: ClassVar[type[Options]] = PictureOptions
    waits: ClassVar[bool] = False

    def __init__(self, options: PictureOptions) -> None:
        self._given = options
        self._canvas = options.canvas()

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """A factor named as one of its keys is that key."""
        return (factor,) if factor in PictureOptions.model_fields else None

    @classmethod
    def factors(cls) -> Collection[str]:
        """Its keys."""
        return PictureOptions.model_fields.keys()

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """fio's version."""
        return FioWorkload.tools(host)

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Have fio parse the jobs; a latency picture needs awk as well."""
        sections: dict[str, tuple[Section, ...]] = {}
        for name, workload in jobs.items():
            assert isinstance(workload, PictureWorkload)
            if workload._latency:
                need(host, "awk", "mawk")
            sections[name] = (Section(NAME, workload._options("/nowhere")),)
        check_jobs(host, sections)

    def load(self) -> Load:
        """One job that begins each I/O at its time."""
        fields = self._given
        return Load(
            jobs=1,
            depth=1,
            runtime=fields.runtime,
            ramp=CALIBRATION if self._latency else 0.0,
            offered_iops=self._ios / fields.runtime,
            space_bytes=fields.room,
            options={
                "rw": f"rand{fields.op}",
                "size": fields.room,
                "direct": int(fields.is_direct),
                "ioengine": "psync",
            },
            writes=fields.op == "write",
            facts={"time_based": False, "log_ios": True},
        )

    def job(self, place: Place) -> Job:
        """The list of I/Os, fio's job that replays it, and a script that prepares the file,
        measures and draws."""
        fields, path = self._given, where(place)
        job_files = {
            JOB_FILE: job_text(self._options(path), section=NAME),
            SCRIPT_FILE: script_text(place, latency=self._latency, readonly=fields.op == "read"),
            PICTURE_FILE: json.dumps({**self._canvas.as_data(), "ios": self._ios}, indent=1) + "\n",
        }
        if place.kind == "directory":
            job_files[PREPARE_FILE] = prepare_text(place, fields.room)
        planned = self._canvas.plan(fields.ios_per_pixel)
        if self._latency:
            job_files |= {
                CALIBRATE_FILE: job_text(calibrate_options(path), section="calibrate"),
                CALIBRATE_LIST: calibrate_text(fields.room),
                PLAN_FILE: plan_text(planned),
                AWK_FILE: awk_text(fields.room, fields.step, fields.runtime),
            }
        else:
            job_files[LIST_FILE] = list_text(
                self._canvas,
                planned,
                op=fields.op,
                bs=fields.step,
                size=fields.room,
                runtime=fields.runtime,
            )
        return Job(("sh", SCRIPT_FILE), job_files, JOB_FILE, self._limit, (FOLDER,))

    def layout(self, place: Place) -> Job | None:
        """The file, written out; devices have none."""
        if place.kind == "device":
            return None
        return Job(
            ("fio", f"--output={LAYOUT_OUTPUT}", LAYOUT_FILE),
            {LAYOUT_FILE: prepare_text(place, self._given.room)},
            LAYOUT_FILE,
            self._limit,
        )

    def marks(self, window: tuple[int, int]) -> tuple[Mark, ...]:
        """None: a picture doesn't rise."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """By fio's own clock: its start time where it has one (3.36 and later), else back from the
        end of its job."""
        from iolab.formats.fio.json_output import FioJson

        try:
            output = FioJson().read((run_dir / OUTPUT_FILE).read_bytes(), OUTPUT_FILE)
        except (OSError, FormatError):
            return None
        length = round(
            max(
                (direction.runtime for job in output.jobs for direction in job.directions.values()),
                default=0.0,
            )
            * 1e9
        )
        if length <= 0:
            return None
        starts = [job.start_ns for job in output.jobs if job.start_ns is not None]
        begin = min(starts) if starts else None if output.end_ns is None else output.end_ns - length
        return None if begin is None else (begin, begin + length)

    @property
    def _latency(self) -> bool:
        return self._given.map == "latency"

    @cached_property
    def _ios(self) -> int:
        return len(self._canvas.bitmap.lit) * self._given.ios_per_pixel

    @property
    def _limit(self) -> float:
        return self._given.runtime + CALIBRATION + self._given.room / SLOWEST_LAYOUT + SPARE_SECONDS

    def _options(self, path: str) -> dict[str, str | int | float | bool]:
        return drawing_options(
            path, self._ios, direct=self._given.is_direct, runtime=self._given.runtime
        )


NAME = "picture"
"""Of the file in the target's directory, and of fio's job and logs."""
JOB_FILE, OUTPUT_FILE, LIST_FILE, SCRIPT_FILE = "job.fio", "fio.json", "picture.iolog", "picture.sh"
PREPARE_FILE, CALIBRATE_FILE, CALIBRATE_LIST, PLAN_FILE, AWK_FILE = (
    "prepare.fio",
    "calibrate.fio",
    "calibrate.iolog",
    "picture.plan",
    "sizes.awk",
)
REPETITIONS, CALIBRATING = 15, 2.4
"""Reads of each size that is measured, and seconds for all of them."""
SMALLEST = 4096
_WARM, _WARM_MS = 1 << 20, 600
"""Bytes of each read that brings the file into the cache, and when that should be done."""
LATE = 0.3
"""Seconds after fio's start within which its job has begun (a tenth was seen)."""
_HEAD = ["fio version 2 iolog", f"{NAME} add", f"{NAME} open"]


def where(place: Place) -> str:
    """The file or device that is drawn on; RunError where there are several devices."""
    if place.kind == "directory":
        return f"{place.path}/{NAME}"
    if ":" in place.path:
        raise RunError(
            "a picture is drawn on one device, and the target has several",
            hint="leave one in the target",
        )
    return place.path


def prepare_text(place: Place, size: int) -> str:
    """A job that writes the file out, where it isn't there yet, and ends."""
    directory = place.path.replace("\\", "\\\\").replace(":", "\\:")
    return job_text(
        {
            "directory": directory,
            "filename": NAME,
            "size": size,
            "rw": "write",
            "bs": "1m",
            "overwrite": 1,
            "create_only": 1,
        },
        section="prepare",
    )


def drawing_options(path: str, ios: int, *, direct: bool, runtime: float) -> dict[str, Scalar]:
    """fio's options for the replay that draws; its log has every I/O with time, latency, size and
    offset, as `log_ios` has it."""
    return {
        **_replay(path, LIST_FILE),
        "direct": int(direct),
        "runtime": duration(runtime),
        "group_reporting": 1,
        "disable_slat": 1,
        **log_options(Section(NAME), LOG_PREFIX),
        "log_entries": max(1024, ios),
    }


def calibrate_options(path: str) -> dict[str, Scalar]:
    """fio's options for the replay that measures reads."""
    return {
        **_replay(path, CALIBRATE_LIST),
        "disable_slat": 1,
        "disable_clat": 1,
        "write_lat_log": "calibrate",
        "per_job_logs": 0,
    }


def _replay(path: str, entries: str) -> dict[str, Scalar]:
    return {"replay_redirect": path, "read_iolog": entries, "ioengine": "psync", "invalidate": 0}


def list_text(
    canvas: Canvas, planned: Iterable[Planned], *, op: str, bs: int, size: int, runtime: float
) -> str:
    """The I/Os of an offset or size picture as fio replays them."""
    chance = random.Random(0)
    lines = list(_HEAD)
    for at_ms, group in groupby(planned, lambda each: each.at_ms):
        lines.append(f"{NAME} wait {at_ms} 0")
        for item in group:
            if canvas.map == "offset":
                offset, length = (
                    min(_multiple(item.value, bs, canvas.edges), (size - bs) // bs * bs),
                    bs,
                )
            else:
                length = max(bs, _multiple(item.value, bs, canvas.edges))
                offset = chance.randrange((size - length) // bs + 1) * bs
            lines.append(f"{NAME} {op} {offset} {length}")
    return "\n".join([*lines, *_end(runtime)]) + "\n"


def plan_text(planned: Iterable[Planned]) -> str:
    """The I/Os of a latency picture for `sizes.awk`: milliseconds, nanoseconds."""
    return "".join(f"{item.at_ms} {item.value:.0f}\n" for item in planned)


def calibrate_text(size: int) -> str:
    """Reads that bring the file into the cache, then reads of each size, a while apart as a
    picture's are."""
    chance = random.Random(0)
    lines = [
        *_HEAD,
        *(f"{NAME} read {offset} {min(_WARM, size - offset)}" for offset in range(0, size, _WARM)),
    ]
    sizes = calibrated_sizes(size)
    pace = CALIBRATING * 1000 / (REPETITIONS * len(sizes))
    order = [length for _ in range(REPETITIONS) for length in chance.sample(sizes, len(sizes))]
    for number, length in enumerate(order):
        lines.append(f"{NAME} wait {_WARM_MS + round(pace * number)} 0")
        lines.append(
            f"{NAME} read {chance.randrange((size - length) // SMALLEST + 1) * SMALLEST} {length}"
        )
    return "\n".join([*lines, f"{NAME} close"]) + "\n"


def calibrated_sizes(size: int) -> list[int]:
    """Two an octave, from 4 KiB to the whole file."""
    sizes: list[int] = []
    step = 0
    while (length := int(SMALLEST * 2 ** (step / 2)) // SMALLEST * SMALLEST) <= size:
        sizes += [length] if not sizes or length > sizes[-1] else []
        step += 1
    return sizes


def script_text(place: Place, *, latency: bool, readonly: bool) -> str:
    """What is run, in the run's directory."""
    lines = ["set -e", "export LC_ALL=C"]
    if place.kind == "directory":
        lines.append(f"fio --output=prepare.txt {PREPARE_FILE}")
    if latency:
        lines.append(f"fio --readonly --output=calibrate.txt {CALIBRATE_FILE}")
        lines.append(f"awk -f {AWK_FILE} calibrate_lat.log {PLAN_FILE} > {LIST_FILE}")
    lines.append(
        f"exec fio {'--readonly ' if readonly else ''}--output-format=json+ --output={OUTPUT_FILE} {JOB_FILE}"
    )
    return "\n".join(lines) + "\n"


def awk_text(size: int, bs: int, runtime: float) -> str:
    """A program that reads the log of the calibration and the plan, and writes the list."""
    values: Mapping[str, object] = {
        "WARM": -(-size // _WARM),
        "ROOM": size,
        "STEP": bs,
        "NAME": NAME,
        "HEAD": "\\n".join(_HEAD),
        "END": "\\n".join(_end(runtime)),
    }
    text = _AWK
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _end(runtime: float) -> Sequence[str]:
    """The last wait makes the run as long as it is planned: fio's start, from which it counts, is a
    little before the job's."""
    return [f"{NAME} wait {round((runtime + LATE) * 1000)} 0", f"{NAME} close"]


def _multiple(value: float, step: int, edges: Sequence[float]) -> int:
    """The multiple of `step` nearest to a value in the same row."""
    low, high = next(
        (low, high) for low, high in pairwise(edges) if value < high or high == edges[-1]
    )
    first, last = math.ceil(low / step), math.ceil(high / step) - 1
    return max(first, min(last, round(value / step))) * step


_AWK = r"""# Sizes of reads for latencies: the median of each size measured, and a straight line between their logarithms.
BEGIN { FS = "[, ]+"; seed = 1; print "@HEAD@" }
FILENAME == ARGV[1] {
    if (FNR > @WARM@) {
        if (!(($4 + 0) in count)) sizes[++known] = $4 + 0
        value[$4 + 0, ++count[$4 + 0]] = $2 + 0
    }
    next
}
FNR == 1 {
    if (known < 2) { print "the calibration has too few reads" > "/dev/stderr"; failed = 1; exit 1 }
    for (i = 2; i <= known; i++) {
        one = sizes[i]
        for (k = i - 1; k > 0 && sizes[k] > one; k--) sizes[k + 1] = sizes[k]
        sizes[k + 1] = one
    }
    for (i = 1; i <= known; i++) {
        n = count[sizes[i]]
        for (j = 2; j <= n; j++) {
            one = value[sizes[i], j]
            for (k = j - 1; k > 0 && value[sizes[i], k] > one; k--) value[sizes[i], k + 1] = value[sizes[i], k]
            value[sizes[i], k + 1] = one
        }
        middle = log(value[sizes[i], int((n + 1) / 2)] + 1)
        # a larger read that seems faster is noise
        latency[i] = i > 1 && middle <= latency[i - 1] ? latency[i - 1] + 0.000001 : middle
        printf "%d %.0f\n", sizes[i], exp(latency[i]) > "calibrated.txt"
    }
}
{
    wanted = log($2)
    if (wanted < latency[1] || wanted > latency[known]) beyond++
    for (i = 1; i < known - 1 && wanted > latency[i + 1]; i++) ;
    share = (wanted - latency[i]) / (latency[i + 1] - latency[i])
    if (share < 0) share = 0
    if (share > 1) share = 1
    length_ = int(exp(log(sizes[i]) + share * (log(sizes[i + 1]) - log(sizes[i]))) / @STEP@ + 0.5) * @STEP@
    if (length_ < @STEP@) length_ = @STEP@
    if (length_ > @ROOM@) length_ = @ROOM@
    seed = (seed * 16807) % 2147483647
    offset = int(seed / 2147483647 * (int((@ROOM@ - length_) / @STEP@) + 1)) * @STEP@
    if ($1 != last) { print "@NAME@ wait " $1 " 0"; last = $1 }
    printf "@NAME@ read %.0f %.0f\n", offset, length_
}
END {
    if (failed) exit 1
    if (beyond) print beyond " of " FNR " latencies can't be had from the cache here: the nearest replace them" > "/dev/stderr"
    print "@END@"
}
"""
