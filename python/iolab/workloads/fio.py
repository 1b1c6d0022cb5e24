"""fio as the workload: any of its options passes through a job file that stays with the run's evidence."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from ..errors import FormatError, RunError, UsageError
from ..hosts.base import Host, need
from ..hosts.options import Duration, OptionProblem, Options, problems_error
from ..results.facts import SYNC_ENGINES
from ..units import parse_fio_size
from .base import Job, Load, Workload
from .fio_names import KNOWN, RESERVED
from .fio_options import Scalar, job_text, offered_iops, problems

JOB_FILE = "job.fio"
OUTPUT_FILE = "fio.json"
LOG_PREFIX = "fio"
"""Logs are `fio_bw.log` and `fio_iops.log`."""

SHORTEST_LOGGED = 2.0
"""Seconds below which a run has no per-second logs: fio often ends before it has written a job's last second."""
SPARE_SECONDS = 60.0
SLOWEST_LAYOUT = 10e6
"""Bytes per second below which laying out files counts as hanging."""
_MOST_CHECKED = 1000


class FioOptions(Options):
    """`[workload]` of kind `fio`."""

    runtime: Annotated[Duration, Field(
        gt=0, description="length of the measured window of every run (fio's runtime, time_based)")]
    ramp: Annotated[Duration, Field(ge=0, description="load before the window that isn't measured (fio's ramp_time)")] = 0.0
    options: Annotated[dict[str, Scalar], Field(description="any fio options; a size is required")]

    @field_validator("options", mode="before")
    @classmethod
    def _sound(cls, options: Any) -> Any:
        found: list[OptionProblem] = problems(options) if isinstance(options, dict) else []
        if found:
            raise problems_error(found)
        return options


class FioWorkload:
    """fio with one job section, `numjobs` times.

    iolab adds: directory, runtime and time_based, ramp_time, group_reporting, and per-second logs of rate and bandwidth,
    one file each over all jobs, stamped with the wall clock (runs of two seconds and more).
    """

    name: ClassVar[str] = "fio"
    options: ClassVar[type[Options]] = FioOptions

    def __init__(self, options: FioOptions) -> None:
        self._given = options

    @classmethod
    def place_of(cls, factor: str) -> tuple[str, ...] | None:
        """A factor named as a fio option becomes that option."""
        return ("options", factor) if factor in KNOWN and factor not in RESERVED else None

    @classmethod
    def tools(cls, host: Host) -> Mapping[str, str]:
        """fio's version as it writes it: `fio-3.33`."""
        need(host, "fio", "fio")
        answer = host.run(["fio", "--version"])
        version = answer.stdout.strip()
        if answer.exit_code or not re.fullmatch(r"fio-[\w.-]+", version):
            said = (version or answer.stderr.strip())[:80]
            raise RunError(f"'fio --version' says '{said}' (exit code {answer.exit_code})", where=host.name,
                           hint="check the fio that is first in PATH")
        return {"fio": version}

    @classmethod
    def check(cls, host: Host, jobs: Mapping[str, Workload]) -> None:
        """Have fio parse every distinct job (`--parse-only`), all in one file: bad options cost nothing but a second."""
        names: list[str] = []
        sections: list[str] = []
        seen: set[str] = set()
        for name, workload in jobs.items():
            assert isinstance(workload, FioWorkload)
            # fio counts numjobs against its limit of jobs per file even when it only parses.
            options = {key: value for key, value in workload._given.options.items() if key != "numjobs" or not _whole(value)}
            body = job_text(options, section=f"cell{len(names)}")
            if body.partition("\n")[2] in seen:
                continue
            seen.add(body.partition("\n")[2])
            names.append(name)
            sections.append(body)
            if len(names) == _MOST_CHECKED:
                break
        with tempfile.TemporaryDirectory(prefix="iolab-") as directory:
            path = Path(directory) / JOB_FILE
            path.write_text("\n".join(sections), "utf-8")
            answer = host.run(["fio", "--parse-only", str(path)], timeout=300)
        if answer.exit_code:
            raise RunError(_refusal(answer.stdout + "\n" + answer.stderr, names),
                           hint="`fio --cmdhelp` lists what this fio knows")

    def load(self) -> Load:
        """Jobs, depth and room from the options, read as fio reads them."""
        options = self._given.options
        jobs = int(options.get("numjobs", 1))
        engine = str(options.get("ioengine", "psync"))
        depth = 1 if engine in SYNC_ENGINES else int(options.get("iodepth", 1))
        return Load(jobs=jobs, depth=depth, runtime=self._given.runtime, ramp=self._given.ramp,
                    offered_iops=offered_iops(options, jobs), space_bytes=self._space(jobs), options=dict(options))

    def job(self, directory: str) -> Job:
        """The job file and the command that runs it in the evidence directory."""
        options = self._given.options
        own: dict[str, Scalar] = {
            "directory": directory.replace("\\", "\\\\").replace(":", "\\:"),  # a bare colon separates directories
            "runtime": _time(self._given.runtime), "time_based": 1, "group_reporting": 1,
        }
        if self._given.runtime >= SHORTEST_LOGGED:
            own.update({"write_bw_log": LOG_PREFIX, "write_iops_log": LOG_PREFIX, "log_avg_msec": 1000, "log_unix_epoch": 1,
                        "per_job_logs": 0})
        if self._given.ramp:
            own["ramp_time"] = _time(self._given.ramp)
        text = job_text({**own, **options}, section="iolab")
        layout = self._space(int(options.get("numjobs", 1))) / SLOWEST_LAYOUT
        return Job(("fio", "--output-format=json+", f"--output={OUTPUT_FILE}", JOB_FILE), {JOB_FILE: text}, JOB_FILE,
                   self._given.runtime + self._given.ramp + layout + SPARE_SECONDS)

    def window(self, run_dir: Path) -> tuple[int, int] | None:
        """By fio's own clock: from its start time where it tells (3.36 and later), else back from the end of its jobs."""
        from ..formats.fio_json import FioJson  # here: readers are needed after a run, not to plan one

        try:
            found = FioJson().read((run_dir / OUTPUT_FILE).read_bytes(), OUTPUT_FILE)
        except (OSError, FormatError):
            return None
        lengths = [direction.runtime for job in found.jobs for direction in job.directions.values()]
        if not lengths or max(lengths) <= 0:
            return None
        length = round(max(lengths) * 1e9)
        starts = [job.start_ns for job in found.jobs if job.start_ns is not None]
        if starts:
            begin = min(starts) + round(self._given.ramp * 1e9)
            return begin, begin + length
        return None if found.end_ns is None else (found.end_ns - length, found.end_ns)

    def _space(self, jobs: int) -> int:
        options = self._given.options
        try:
            one = parse_fio_size(str(options["size"]))
        except UsageError:  # pragma: no cover - validated
            return 0
        return one if "filename" in options else one * jobs


def _time(seconds: float) -> str:
    """A duration in the largest of fio's units that holds it exactly."""
    micros = round(seconds * 1e6)
    for unit, scale in (("s", 1_000_000), ("ms", 1000)):
        if micros % scale == 0:
            return f"{micros // scale}{unit}"
    return f"{micros}us"


def _whole(value: Any) -> bool:
    return str(value).isdigit()


def _refusal(output: str, names: list[str]) -> str:
    """fio's complaint with the cell it is about, from `Bad option <rwx=3>`, `fio: job cell3 dropped`."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    dropped = re.search(r"job cell(\d+) dropped", output)
    cell = f" of {names[int(dropped[1])]}" if dropped and int(dropped[1]) < len(names) else ""
    words = [line for line in lines if "dropped" not in line and "valid values" not in line and not line.startswith(":")]
    return f"fio refuses the job{cell}: {'. '.join(words[:3]) or 'no reason given'}"
