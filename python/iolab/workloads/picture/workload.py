# SPDX-License-Identifier: Apache-2.0
"""A picture as the workload: real I/O with a heat map of offset, size or latency that shows a text
or an image."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from ...errors import FormatError
from ...hosts.base.host import Host, need
from ...hosts.base.options import Options
from ...hosts.base.target_path import Place
from ...results.evidence.marks import Mark
from ..base import Job, Load, Workload
from ..fio.check import check_jobs
from ..fio.ios import FOLDER
from ..fio.job import LAYOUT_FILE, LAYOUT_OUTPUT
from ..fio.jobfile import Section
from ..fio.options import job_text
from ..fio.workload import SLOWEST_LAYOUT, SPARE_SECONDS, FioWorkload
from . import job as files
from .model import PictureOptions
from .plan import PICTURE_FILE

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
            sections[name] = (Section(files.NAME, workload._options("/nowhere")),)
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
        fields, path = self._given, files.where(place)
        job_files = {
            files.JOB_FILE: job_text(self._options(path), section=files.NAME),
            files.SCRIPT_FILE: files.script_text(
                place, latency=self._latency, readonly=fields.op == "read"
            ),
            PICTURE_FILE: json.dumps({**self._canvas.as_data(), "ios": self._ios}, indent=1) + "\n",
        }
        if place.kind == "directory":
            job_files[files.PREPARE_FILE] = files.prepare_text(place, fields.room)
        planned = self._canvas.plan(fields.ios_per_pixel)
        if self._latency:
            job_files |= {
                files.CALIBRATE_FILE: job_text(files.calibrate_options(path), section="calibrate"),
                files.CALIBRATE_LIST: files.calibrate_text(fields.room),
                files.PLAN_FILE: files.plan_text(planned),
                files.AWK_FILE: files.awk_text(fields.room, fields.step, fields.runtime),
            }
        else:
            job_files[files.LIST_FILE] = files.list_text(
                self._canvas,
                planned,
                op=fields.op,
                bs=fields.step,
                size=fields.room,
                runtime=fields.runtime,
            )
        return Job(("sh", files.SCRIPT_FILE), job_files, files.JOB_FILE, self._limit, (FOLDER,))

    def layout(self, place: Place) -> Job | None:
        """The file, written out; devices have none."""
        if place.kind == "device":
            return None
        return Job(
            ("fio", f"--output={LAYOUT_OUTPUT}", LAYOUT_FILE),
            {LAYOUT_FILE: files.prepare_text(place, self._given.room)},
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
        from ...formats.fio.json_output import (
            FioJson,  # here: readers are needed after a run, not to plan one
        )

        try:
            output = FioJson().read((run_dir / files.OUTPUT_FILE).read_bytes(), files.OUTPUT_FILE)
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
        return files.drawing_options(
            path, self._ios, direct=self._given.is_direct, runtime=self._given.runtime
        )
