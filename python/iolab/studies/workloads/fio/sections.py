# SPDX-License-Identifier: Apache-2.0
"""From a study's words to the sections of the job file that fio gets, apart from what depends on
the place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import model_validator

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_time
from iolab.hosts.base.options import OptionProblem, problems_error

from ..compressibility import DECIDED, data_options
from .fields import FioFields
from .ios import log_notes, log_problems
from .jobfile import KEY, Section, read_job_file
from .names import ALIASES, OBSOLETE, SET_BY_IOLAB
from .options import Scalar, consent_to, problems, synchronous
from .sizes import as_fio_reads, as_meant, in_bytes
from .steps import Step, plan_steps

NAME = "iolab"
"""Section of a study that brings no job file."""
_ONE_AFTER_ANOTHER = ("stonewall", "wait_for", "startdelay")
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


@dataclass(frozen=True)
class Resolved:
    """What a workload will do.

    Attributes:
        sections: every job with all its options; runtime, ramp: seconds; time_based: as in the
        model, defaults filled in. steps: of a load that rises, in order; `apart` says that its
        sections run one after the other, not together. log_ios: whether fio logs every I/O.
        job_file: whether the sections are a job file's, with unchanged sizes.
        notes: what was changed about the study's words, for the user. problems: why this can't be
        run.
    """

    sections: tuple[Section, ...]
    runtime: float
    ramp: float
    time_based: bool
    steps: tuple[Step, ...] = ()
    apart: bool = False
    log_ios: bool = False
    notes: tuple[str, ...] = ()
    problems: list[OptionProblem] = field(default_factory=list)
    job_file: bool = False


@dataclass
class _Timing:
    """What a job file says of time; the longest of its sections counts."""

    runtime: float | None = None
    ramp: float | None = None
    time_based: bool = False


def resolve(given: FioFields) -> Resolved:
    """The sections and how long they run; problems are keyed as in the workload's table."""
    notes: dict[str, None] = {}
    timing = _Timing(time_based=given.job is None)
    sections, problem_list = _given_sections(given, timing, notes)
    if not problem_list:
        sections, problem_list = _laid_over(given, sections, notes)
    notes.update(dict.fromkeys(_depth_notes(sections)))
    runtime = given.runtime if given.runtime is not None else timing.runtime
    steps: tuple[Step, ...] = ()
    apart = False
    if given.steps is not None and not problem_list:
        planned = plan_steps(given.steps, sections, runtime)
        sections, steps, apart = list(planned.sections), planned.steps, planned.apart
        problem_list += planned.problems
        runtime = steps[-1].end if steps else runtime
    if (
        runtime is None
        and given.steps is None
        and not any(problem.key[0] in (KEY, "section") for problem in problem_list)
    ):
        problem_list.append(
            OptionProblem(
                ("runtime",), "is missing", 'length of the measured window, such as runtime = "60s"'
            )
        )
    ramp = given.ramp if given.ramp is not None else timing.ramp or 0.0
    time_based = timing.time_based if given.time_based is None else given.time_based
    if given.log_ios:
        problem_list += log_problems(sections, job_file=given.job is not None)
        notes.update(
            dict.fromkeys(log_notes(sections, (runtime or 0.0) / (len(steps) if apart else 1)))
        )
    return Resolved(
        tuple(sections),
        runtime or 0.0,
        ramp,
        time_based or bool(steps),
        steps,
        apart,
        given.log_ios,
        tuple(notes),
        problem_list,
        given.job is not None,
    )


def _depth_notes(sections: Sequence[Section]) -> list[str]:
    """A note on each iodepth that has no effect."""
    return [
        f"iodepth={section.options['iodepth']} has no effect: "
        f"{section.options.get('ioengine', 'psync')} keeps one I/O in flight (io_uring and libaio keep more)"
        for section in sections
        if synchronous(section.options)
        and section.options.get("io_submit_mode") != "offload"
        and str(section.options.get("iodepth", 1)) != "1"
    ]


def _given_sections(
    given: FioFields, timing: _Timing, notes: dict[str, None]
) -> tuple[list[Section], list[OptionProblem]]:
    """The job file's sections without what iolab or the target decides, or one without options."""
    if given.job is None:
        missing = (
            [OptionProblem(("section",), "is set without a job file", "name one in job_file")]
            if given.section
            else []
        )
        return [Section(NAME)], missing
    read, problem_list = read_job_file(given.job)
    sections = list(read)
    names = [section.name for section in sections]
    if given.section is not None and not problem_list:
        sections = [section for section in sections if section.name == given.section]
        if not sections:
            problem_list.append(
                OptionProblem(
                    ("section",),
                    f"the job file has no section '{given.section}'",
                    f"there are: {', '.join(names)}",
                )
            )
    if len(sections) > 1:
        late = [
            section
            for section in sections[1:]
            if any(str(section.options.get(name, 0)) != "0" for name in _ONE_AFTER_ANOTHER)
        ]
        if late:
            problem_list.append(
                OptionProblem(
                    (KEY,),
                    f"[{late[0].name}] runs after the others, not with them",
                    'choose with section = "...", or sweep them: a factor section = '
                    f"[{', '.join(repr(name) for name in names)}]",
                )
            )
    return [_trim(section, timing, notes, problem_list) for section in sections], problem_list


def _trim(
    section: Section, timing: _Timing, notes: dict[str, None], found: list[OptionProblem]
) -> Section:
    kept: dict[str, Scalar] = {}
    for name, value in section.options.items():
        if name in ("runtime", "ramp_time"):
            _take_time(name, value, timing, found)
        elif name == "time_based":
            timing.time_based |= str(value) != "0"
        elif name in SET_BY_IOLAB:
            notes[f"{name} of the job file is left out: {SET_BY_IOLAB[name]}"] = None
        elif name == "filename" and str(value).startswith("/"):
            notes[f"filename={value} of the job file is left out: the target says where"] = None
        elif name in _ONE_AFTER_ANOTHER:
            continue  # alone, or refused before
        elif isinstance(value, str) and value.lower() in _TRUTH:
            kept[name] = _TRUTH[value.lower()]
            notes[
                f"{name}={value} of the job file is written {name}={kept[name]}, as fio 3 reads it"
            ] = None
        else:
            kept[name] = value
    return replace(section, options=kept)


def _take_time(name: str, value: Scalar, timing: _Timing, found: list[OptionProblem]) -> None:
    try:
        seconds = parse_fio_time(str(value))
    except UsageError as error:
        found.append(OptionProblem((KEY,), f"{name}: {error.message}", error.hint or ""))
        return
    if name == "runtime":
        timing.runtime = max(seconds, timing.runtime or 0.0)
    else:
        timing.ramp = max(seconds, timing.ramp or 0.0)


def _laid_over(
    given: FioFields, sections: Sequence[Section], notes: dict[str, None]
) -> tuple[list[Section], list[OptionProblem]]:
    """The study's options over each section's, then its compressibility; checked as the job that
    comes of it."""
    problem_list: list[OptionProblem] = []
    options: Mapping[str, Scalar] = given.options
    if given.job is not None:
        options = {ALIASES.get(name, name): value for name, value in given.options.items()}
    if given.compressibility is not None:
        problem_list += [
            OptionProblem(
                ("options", name),
                "is set as well as workload.compressibility",
                "leave one of them out",
            )
            for name in DECIDED
            if name in options
        ]
    options = as_meant(options)
    if given.job is not None:
        options = in_bytes(options)  # whose own sizes are fio's to read
    sections_with_options = []
    for section in sections:
        merged = _without_obsolete(
            {**as_fio_reads({**section.options, **_keep(options, "kb_base")}), **options}, notes
        )
        if given.compressibility is not None:
            replaced = [name for name in DECIDED if name in section.options]
            notes.update(
                {
                    f"{name} of the job file gives way to workload.compressibility": None
                    for name in replaced
                }
            )
            chunk = {
                name: value for name, value in merged.items() if name == "buffer_compress_chunk"
            }
            merged = {name: value for name, value in merged.items() if name not in DECIDED}
            merged.update({**data_options(given.compressibility), **chunk})
        sections_with_options.append(replace(section, options=merged))
        problem_list += _section_problems(
            section.name, merged, options, job_file=given.job is not None
        )
    return sections_with_options, problem_list


def _keep(options: Mapping[str, Scalar], name: str) -> dict[str, Scalar]:
    return {name: options[name]} if name in options else {}


def _without_obsolete(options: Mapping[str, Scalar], notes: dict[str, None]) -> dict[str, Scalar]:
    notes.update(
        {f"{name} is left out: {OBSOLETE[name]}": None for name in options if name in OBSOLETE}
    )
    return {name: value for name, value in options.items() if name not in OBSOLETE}


def _section_problems(
    name: str, merged: Mapping[str, Scalar], own: Mapping[str, Scalar], *, job_file: bool
) -> list[OptionProblem]:
    """Of options of the job file (the study's own were looked at before), and of what is
    missing."""
    problem_list = [
        OptionProblem((KEY,), f"[{name}]: {problem.key[0]} {problem.wrong}", problem.allowed)
        for problem in problems(merged)
        if problem.key[0] not in own
    ]
    if "size" not in merged:
        where = (
            f"is missing, and so it is in [{name}] of the job file" if job_file else "is missing"
        )
        problem_list.append(
            OptionProblem(
                ("options", "size"),
                where,
                'a size is required, such as size = "1g": the room each job may use; '
                '"100%" of a device',
            )
        )
    # fio names files after it, and reads 255 characters of it
    if re.search(r"[\x00-\x1f\x7f\[\]]", name) or ".." in name.split("/") or len(name) > 255:
        problem_list.append(
            OptionProblem((KEY,), f"{name[:80]!r} is not a name for a section", "plain words")
        )
    return problem_list


class FioOptions(FioFields):
    """`[workload]` of kind `fio`."""

    def consent(self) -> tuple[tuple[str, str], ...]:
        """Options of all sections that are not known to be harmless."""
        return tuple(
            dict.fromkeys(
                item for section in resolve(self).sections for item in consent_to(section.options)
            )
        )

    @model_validator(mode="after")
    def _check_sections(self) -> FioOptions:
        problems = resolve(self).problems
        if problems and self.job_file is not None:
            problems = [
                OptionProblem(("job_file", *problem.key[1:]), problem.wrong, problem.allowed)
                if problem.key[0] == KEY
                else problem
                for problem in problems
            ]
        if problems:
            raise problems_error(problems)
        return self
