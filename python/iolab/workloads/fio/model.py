# SPDX-License-Identifier: Apache-2.0
"""What a study says in `[workload]` of kind `fio`: fields that can be run together."""

from __future__ import annotations

from pydantic import model_validator

from ...hosts.base.options import OptionProblem, problems_error
from .fields import FioFields
from .jobfile import KEY
from .sections import resolve


class FioOptions(FioFields):
    """`[workload]` of kind `fio`."""

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
