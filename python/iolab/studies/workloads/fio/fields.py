# SPDX-License-Identifier: Apache-2.0
"""The fields of `[workload]` of kind `fio`, each for itself."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from iolab.base.files import read_regular
from iolab.hosts.base.options import Duration, OptionProblem, Options, problems_error

from .options import Scalar, problems

SHORTEST_STEP = 2.0
"""Seconds below which a step has no second of its own in per-second logs."""
MOST_STEPS = 100


class StepOptions(Options):
    """`[workload.steps]`: a load that rises within one run."""

    factor: Annotated[
        str,
        Field(
            min_length=1,
            description="what rises: numjobs, devices, compressibility, or any other fio option",
        ),
    ]
    levels: Annotated[
        list[Scalar],
        Field(
            min_length=2, max_length=MOST_STEPS, description="its levels, one step each, in order"
        ),
    ]
    every: Annotated[
        Duration | None,
        Field(
            default=None,
            gt=0,
            description="length of each step; default, and where both are given: the runtime in equal parts",
        ),
    ] = None

    @field_validator("levels")
    @classmethod
    def _no_two_in_a_row(cls, levels: list[Scalar]) -> list[Scalar]:
        twice = [str(after) for before, after in pairwise(levels) if before == after]
        if twice:
            raise problems_error(
                [OptionProblem((), f"has {twice[0]} twice in a row", "a step changes the level")]
            )
        return levels


class FioFields(Options):
    """What a study says of fio, each field sound; whether all of it can be run is `fio_model`'s."""

    runtime: Annotated[
        Duration | None,
        Field(
            gt=0,
            description="length of the measured window of every run (fio's runtime, time_based); default: the job file's, or "
            "the length of all steps",
        ),
    ] = None
    ramp: Annotated[
        Duration | None,
        Field(
            ge=0,
            description="load before the window that isn't measured (fio's ramp_time); default: the job file's, or none",
        ),
    ] = None
    time_based: Annotated[
        bool | None,
        Field(
            description="whether a run lasts its runtime whatever it has moved; default: yes, or as the job file says"
        ),
    ] = None
    options: Annotated[
        dict[str, Scalar],
        Field(
            default_factory=dict,
            description="any fio options; a size is required here or in the job file",
        ),
    ]
    job_file: Annotated[
        str | None,
        Field(
            description="an fio job file to run as it is, relative to the study; options go over what it says"
        ),
    ] = None
    job: Annotated[str | None, Field(description="the text of a job file, instead of job_file")] = (
        None
    )
    section: Annotated[
        str | None,
        Field(description="the one section of the job file to run; default: all of them at once"),
    ] = None
    compressibility: Annotated[
        float | None,
        Field(ge=0, le=100, description="share of the data that can be compressed away, per cent"),
    ] = None
    steps: Annotated[
        StepOptions | None, Field(description="raise a factor within the run, step by step")
    ] = None
    log_ios: Annotated[
        bool,
        Field(
            description="keep every I/O of every run (latency, offset, size) in a recording, for heat maps; fio's memory holds them "
            "until the run ends"
        ),
    ] = False

    @model_validator(mode="before")
    @classmethod
    def _read_job_file(cls, given: Any, info: ValidationInfo) -> Any:
        """The file's text becomes `job`, so that what ran is in the record whatever becomes of the
        file.

        It is below the study's directory. A study from elsewhere could otherwise print lines of any
        file, as problems or for consent."""
        name = given.get("job_file") if isinstance(given, dict) else None
        if not isinstance(name, str) or given.get("job") is not None:
            return given
        directory = Path((info.context or {}).get("directory", "."))
        path = directory / name
        try:
            if not path.resolve().is_relative_to(directory.resolve()):
                raise problems_error(
                    [OptionProblem(("job_file",), "is not below the study", "copy it there")]
                )
            return {**given, "job": read_regular(path).decode("utf-8")}
        except UnicodeDecodeError:
            wrong = f"{path} is not UTF-8 text"
        except (OSError, ValueError) as error:
            wrong = f"{path} can't be read: {getattr(error, 'strerror', None) or error}"
        raise problems_error(
            [OptionProblem(("job_file",), wrong, "a path that starts where the study file is")]
        )

    @field_validator("options", mode="before")
    @classmethod
    def _sound(cls, options: Any) -> Any:
        """Before the values' types are looked at, so that all problems are reported at once."""
        problem_list = problems(options) if isinstance(options, dict) else []
        if problem_list:
            raise problems_error(problem_list)
        return options
