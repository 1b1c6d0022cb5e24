"""The tables of a study file that iolab itself reads. What stands in `[target]`, `[workload]` and `[sources]` belongs to
plugins, whose own models check it once variants and factors are filled in."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from ..hosts.options import OptionProblem, problems_error

Scalar = str | int | float | bool
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]

RESERVED_FACTORS = {"variant", "run", "block", "repetition", "metric", "value", "unit", "verdict", "status"}
"""Words that tables of results use for something else."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StudyTable(_Table):
    """`[study]`: what it is, how often and in which order."""

    name: Annotated[Name | None, Field(
        description="names the results directory: letters, digits, '.', '_' and '-'; default: the file's name")] = None
    description: Annotated[str, Field(description="what is compared and why, for the report")] = ""
    baseline: Annotated[str | None, Field(description="the variant that others are compared with; default: the first")] = None
    repetitions: Annotated[int, Field(ge=1, le=10_000, description="blocks; each holds every cell once per variant")] = 6
    seed: Annotated[int, Field(ge=0, description="of the order of cells within blocks")] = 1
    order: Annotated[Literal["balanced", "as-written"], Field(
        description="balanced: variants AB, BA, BA, AB over the blocks and cells in seeded order; "
                    "as-written: as in the file")] = "balanced"


class VariantTable(_Table):
    """`[variants.NAME]`: what differs from the study's own tables."""

    target: dict[str, Any] = Field(default_factory=dict, description="keys of [target] with this variant's values")
    workload: dict[str, Any] = Field(default_factory=dict, description="keys of [workload] with this variant's values")


def _default_sources() -> dict[str, dict[str, Any]]:
    return {"diskstats": {}}


class StudyFile(_Table):
    """A study file."""

    study: StudyTable = Field(default_factory=StudyTable, description="what it is, how often and in which order")
    target: dict[str, Any] = Field(default_factory=lambda: {"kind": "directory"}, description="what is measured")
    workload: dict[str, Any] = Field(description="a table: what drives the target, such as kind = \"fio\"")
    sources: dict[str, dict[str, Any]] = Field(default_factory=_default_sources,
                                               description="what is watched meanwhile, a table each")
    factors: dict[str, list[Scalar]] = Field(default_factory=dict, description="what is swept: name = [levels]")
    variants: dict[str, VariantTable] = Field(default_factory=lambda: {"baseline": VariantTable()},
                                              description="arms of the comparison")

    @field_validator("target")
    @classmethod
    def _directory_by_default(cls, target: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "directory", **target}

    @field_validator("factors")
    @classmethod
    def _factors_sound(cls, factors: dict[str, list[Scalar]]) -> dict[str, list[Scalar]]:
        found = []
        for name, levels in factors.items():
            if not name.isascii() or not name.replace("-", "_").isidentifier():
                found.append(OptionProblem((name,), "is no name for a factor", "letters, digits, '_' and '-'"))
            elif name in RESERVED_FACTORS:
                found.append(OptionProblem((name,), "is a word of iolab's own",
                                           f"not one of {', '.join(sorted(RESERVED_FACTORS))}"))
            elif not levels:
                found.append(OptionProblem((name,), "has no levels", "at least one, such as [1, 2, 4]"))
            elif len({(type(level) is bool, level) for level in levels}) < len(levels):
                found.append(OptionProblem((name,), f"has a level twice: {levels}",
                                           "each level once; repetitions make runs repeat"))
        if found:
            raise problems_error(found)
        return factors

    @field_validator("variants")
    @classmethod
    def _variants_sound(cls, variants: dict[str, VariantTable]) -> dict[str, VariantTable]:
        if not variants:
            raise problems_error([OptionProblem((), "has no variant", "one table per arm, such as [variants.patched]")])
        bad = [name for name in variants if not name.strip() or any(ord(char) < 32 for char in name)]
        if bad:
            raise problems_error([OptionProblem((name,), "is no name for a variant", "a word or more") for name in bad])
        return variants
