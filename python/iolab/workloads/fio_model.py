# SPDX-License-Identifier: Apache-2.0
"""What a study says in `[workload]` of kind `fio`: fields that can be run together."""

from __future__ import annotations

from pydantic import model_validator

from ..hosts.base.options import OptionProblem, problems_error
from .fio_fields import FioFields
from .fio_jobfile import KEY
from .fio_sections import resolve


class FioOptions(FioFields):
    """`[workload]` of kind `fio`."""

    @model_validator(mode="after")
    def _whole(self) -> FioOptions:
        found = resolve(self).problems
        if found and self.job_file is not None:
            found = [
                OptionProblem(("job_file", *each.key[1:]), each.wrong, each.allowed)
                if each.key[0] == KEY
                else each
                for each in found
            ]
        if found:
            raise problems_error(found)
        return self
