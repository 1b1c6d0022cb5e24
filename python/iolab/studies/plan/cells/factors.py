# SPDX-License-Identifier: Apache-2.0
"""Factors and their combinations: cartesian sets, factors walked in step, combinations left out,
sets joined."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size
from iolab.hosts.base.options import OptionProblem, problems_error

from ...compare.axes import level_text
from ...workloads.fio.sizes import SIZES
from ..file.problems import near
from .expressions import takes_size

Scalar = str | int | float | bool

RESERVED_FACTORS = {
    "variant",
    "run",
    "block",
    "repetition",
    "metric",
    "value",
    "unit",
    "verdict",
    "status",
}
"""Words that tables of results use for something else."""
RESERVED_NAMES = {"memory", "cpus"}
"""Words that expressions use for the host's facts."""


class FactorSet(BaseModel):
    """Factors with all combinations of their levels: `name = [levels]`."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"propertyNames": {"pattern": r"^[A-Za-z_][A-Za-z0-9_-]*$"}},
    )
    __pydantic_extra__: dict[str, list[Scalar]]

    zip: list[list[str]] = Field(
        default_factory=list,
        description="groups of factors with parallel levels, the first of one with the first of "
        'the others: [["recordsize", "bs"]]',
    )
    exclude: list[dict[str, Scalar | list[Scalar]]] = Field(
        default_factory=list,
        description='combinations left out, each a table of levels: [{numjobs = 64, bs = "1m"}]; a list '
        "means any of these; factors not named may be anything",
    )

    @field_validator("exclude", mode="after")
    @classmethod
    def _exclude_something(
        cls, exclude: list[dict[str, Scalar | list[Scalar]]]
    ) -> list[dict[str, Scalar | list[Scalar]]]:
        if not all(exclude):
            raise problems_error(
                [
                    OptionProblem(
                        (), "has an empty table, which would leave out everything", "name levels"
                    )
                ]
            )
        return exclude

    @model_validator(mode="after")
    def _sound(self) -> FactorSet:
        problems = [
            problem
            for name, levels in self.levels.items()
            if (problem := _problem(name, levels)) is not None
        ]
        if not problems:
            problems = [*self._zip_problems(), *self._exclude_problems()]
        if not problems:
            problems = [*self._repeated_levels(), *self._nothing_left()]
        if problems:
            raise problems_error(problems)
        return self

    @property
    def levels(self) -> dict[str, list[Scalar]]:
        """Factor to levels, in the file's order."""
        return dict(self.__pydantic_extra__ or {})

    def combinations(self) -> Iterator[dict[str, Scalar]]:
        """Combinations of levels in the file's order, the first factor slowest; zipped factors move
        together.

        A group has the place of its first factor.
        """
        group_of = {name: group for group in self.zip for name in group}
        axes: list[list[dict[str, Scalar]]] = []
        placed: set[str] = set()
        for name, levels in self.levels.items():
            if name in placed:
                continue
            group = group_of.get(name, [name])
            placed.update(group)
            columns = [self.levels[factor] for factor in group] if name in group_of else [levels]
            axes.append([dict(zip(group, row, strict=True)) for row in zip(*columns, strict=True)])
        for parts in itertools.product(*axes):
            merged = {name: level for part in parts for name, level in part.items()}
            combination = {name: merged[name] for name in self.levels}
            if not any(matches(combination, table) for table in self.exclude):
                yield combination

    def _repeated_levels(self) -> Iterator[OptionProblem]:
        zipped = {name for group in self.zip for name in group}
        for name, levels in self.levels.items():
            if name not in zipped and _repeats([_as_size(name, level)] for level in levels):
                yield OptionProblem(
                    (name,),
                    f"has a level twice: {levels}",
                    "each level once; repetitions make runs repeat",
                )
        for place, group in enumerate(self.zip):
            if _repeats(zip(*(self.levels[name] for name in group), strict=True)):
                yield OptionProblem(
                    ("zip", str(place)),
                    "has a combination twice",
                    "each once; repetitions make runs repeat",
                )

    def _nothing_left(self) -> Iterator[OptionProblem]:
        if next(self.combinations(), None) is None:
            yield OptionProblem(("exclude",), "leaves no combination", "take less out")

    def _zip_problems(self) -> Iterator[OptionProblem]:
        names: set[str] = set()
        for place, group in enumerate(self.zip):
            key = ("zip", str(place))
            unknown = [name for name in group if name not in self.levels]
            if unknown:
                yield OptionProblem(
                    key,
                    f"names '{unknown[0]}', which is not a factor of this set",
                    near(unknown[0], list(self.levels)),
                )
            elif len(group) < 2 or len(set(group)) < len(group):
                yield OptionProblem(
                    key, "names fewer than two different factors", "the factors that go in step"
                )
            elif names & set(group):
                yield OptionProblem(
                    key,
                    f"names '{min(names & set(group))}' again",
                    "each factor in one group at most",
                )
            elif len({len(self.levels[name]) for name in group}) > 1:
                counts = ", ".join(f"{name} {len(self.levels[name])}" for name in group)
                yield OptionProblem(
                    key, f"has factors of different length: {counts}", "as many levels for each"
                )
            names.update(group)

    def _exclude_problems(self) -> Iterator[OptionProblem]:
        for place, table in enumerate(self.exclude):
            for name, levels in table.items():
                if name not in self.levels:
                    yield OptionProblem(
                        ("exclude", str(place), name),
                        "is not a factor of this set",
                        near(name, list(self.levels)),
                    )
                    continue
                for level in levels if isinstance(levels, list) else [levels]:
                    if not any(_same(name, level, existing) for existing in self.levels[name]):
                        yield OptionProblem(
                            ("exclude", str(place), name),
                            f"is {level!r}, which is not a level of it",
                            f"one of {', '.join(level_text(existing) for existing in self.levels[name])}",
                        )


@dataclass(frozen=True)
class Sweep:
    """One set's part of the cells: the combinations that are to be measured.

    Attributes:
        key: place of the set in the file, `("factors",)` or `("factors", "1")`.
        names: its factors.
    """

    key: tuple[str, ...]
    names: tuple[str, ...]
    combinations: tuple[Mapping[str, Scalar], ...]


def sweeps(
    sets: Sequence[FactorSet], only: Mapping[str, Sequence[str]], *, plain: bool
) -> list[Sweep]:
    """The combinations of every set, each once over all sets: what an earlier set has is not
    measured again for a later.

    Args:
        only: factor to the levels to keep, as typed. A combination without that factor is left out.
        plain: whether the file has one `[factors]` table, not `[[factors]]`.

    Raises UsageError where `only` names a factor or level that isn't there, or leaves nothing.
    """
    spelt: dict[tuple[str, Scalar], Scalar] = {}
    everything = [
        (
            place,
            factor_set,
            [_one_spelling(combination, spelt) for combination in factor_set.combinations()],
        )
        for place, factor_set in enumerate(sets)
    ]
    _check_only(
        only,
        [
            combination
            for _, _, combinations_of_set in everything
            for combination in combinations_of_set
        ],
    )
    identities: set[str] = set()
    result = []
    for place, factor_set, combinations_of_set in everything:
        kept = []
        for combination in combinations_of_set:
            identity = repr(sorted(combination.items()))
            if identity not in identities and all(
                _is_among(name, combination[name], levels) if name in combination else False
                for name, levels in only.items()
            ):
                identities.add(identity)
                kept.append(combination)
        key = ("factors",) if plain else ("factors", str(place))
        result.append(Sweep(key, tuple(factor_set.levels), tuple(kept)))
    if only and not any(sweep.combinations for sweep in result):
        raise UsageError(
            "leaves nothing of the study",
            where="--only",
            hint="the study has these levels, but no combination of them",
        )
    return result


def levels_of(found: Iterable[Sweep]) -> dict[str, tuple[Scalar, ...]]:
    """Factor to the levels that are measured, in order of appearance."""
    levels: dict[str, dict[tuple[bool, Scalar], None]] = {}
    for sweep in found:
        for combination in sweep.combinations:
            for name, level in combination.items():
                levels.setdefault(name, {})[isinstance(level, bool), level] = None
    return {name: tuple(level for _, level in values) for name, values in levels.items()}


def _check_only(
    only: Mapping[str, Sequence[str]], combinations: Sequence[Mapping[str, Scalar]]
) -> None:
    levels_of_factor = {
        name: {
            level_text(combination[name]): None
            for combination in combinations
            if name in combination
        }
        for name in dict.fromkeys(name for combination in combinations for name in combination)
    }
    for name, levels in only.items():
        if name not in levels_of_factor:
            raise UsageError(
                f"'{name}' is not a factor of the study",
                where="--only",
                hint=near(name, list(levels_of_factor)) if levels_of_factor else "it has none",
            )
        for level in levels:
            if not any(
                _is_among(name, level_of_study, [level])
                for level_of_study in levels_of_factor[name]
            ):
                raise UsageError(
                    f"there is no {name}={level}",
                    where="--only",
                    hint=f"{name} is one of {', '.join(levels_of_factor[name])}",
                )


def _problem(name: str, levels: list[Scalar]) -> OptionProblem | None:
    if not name.isascii() or not name.replace("-", "_").isidentifier():
        return OptionProblem((name,), "is not a name for a factor", "letters, digits, '_' and '-'")
    if name in RESERVED_FACTORS | RESERVED_NAMES:
        return OptionProblem(
            (name,),
            "is a word of iolab's own",
            f"not one of {', '.join(sorted(RESERVED_FACTORS | RESERVED_NAMES))}",
        )
    if not levels:
        return OptionProblem((name,), "has no levels", "at least one, such as [1, 2, 4]")
    return None


def _one_spelling(
    combination: Mapping[str, Scalar], spelt: dict[tuple[str, Scalar], Scalar]
) -> dict[str, Scalar]:
    """The combination with equal sizes written alike, so that they are one level: in fio's shortest
    form, or like the first of them.

    Args:
        spellings: (factor, bytes) to the form; grows.
    """
    spellings = {}
    for name, level in combination.items():
        size = _size(name, level)
        if size is None:
            spellings[name] = level
        else:
            spellings[name] = spelt.setdefault(
                (name, size),
                _shortest(size) if isinstance(level, str) and not level.isdecimal() else level,
            )
    return spellings


def _shortest(size: int) -> str:
    """`4k` for 4096."""
    power = next((power for power in range(5, 0, -1) if size and size % 1024**power == 0), 0)
    return f"{size // 1024**power}{' kmgtp'[power].strip()}"


def _is_among(name: str, level: Scalar, texts: Sequence[str]) -> bool:
    """Whether a level is one of those that were typed; sizes are compared in bytes."""
    return level_text(level) in texts or any(
        _as_size(name, level) == _as_size(name, text) for text in texts
    )


def _repeats(rows: Iterable[Sequence[Scalar]]) -> bool:
    keys = [tuple((isinstance(level, bool), level) for level in row) for row in rows]
    return len(set(keys)) < len(keys)


def _as_size(name: str, level: Scalar) -> Scalar:
    """Bytes where the factor's option takes sizes, so that 4k and 4096 are the same; else the
    level."""
    size = _size(name, level)
    return level if size is None else size


def _size(name: str, level: Scalar) -> int | None:
    """The bytes of a level; None if the factor's option is not a size, or the level is an
    expression or a range."""
    if isinstance(level, bool | float) or not (takes_size(name) or name in SIZES):
        return None
    try:
        return parse_fio_size(str(level))
    except UsageError:
        return None


def matches(combination: Mapping[str, Scalar], table: Mapping[str, Scalar | list[Scalar]]) -> bool:
    """Whether a combination has one of the levels that a table names, for each factor in it; all of
    these are in the combination."""
    return all(
        any(
            _same(name, combination[name], level_of_filter)
            for level_of_filter in (levels if isinstance(levels, list) else [levels])
        )
        for name, levels in table.items()
    )


def _same(name: str, one: Scalar, other: Scalar) -> bool:
    """Whether two levels of a factor are equal in TOML (true is not 1); sizes in bytes."""
    return isinstance(one, bool) == isinstance(other, bool) and (
        one == other or _as_size(name, one) == _as_size(name, other)
    )
