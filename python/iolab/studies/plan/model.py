# SPDX-License-Identifier: Apache-2.0
"""The tables of a study file that iolab itself reads. `[target]`, `[workload]` and `[sources]`
belong to plugins, `[load]` to `client_hosts`; their models check them when variants and factors are
filled in.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from iolab.hosts.base.options import Duration, OptionProblem, problems_error

from ..compare.rules.rules import ALPHA, AT_MOST
from .builds import NAME as BUILD_NAME
from .builds import BuildTable
from .cells.factors import FactorSet
from .commands import LEVELS, Action, Command, CommandList, Hooks, Level, OneCommand
from .file.rig_tables import ReducedTable, RigTable
from .profile import ProfileTable

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StudyTable(_Table):
    """`[study]`: what it is, how often and in which order."""

    name: Annotated[
        Name | None,
        Field(
            description="names the results directory: letters, digits, '.', '_' and '-'; default: the file's name"
        ),
    ] = None
    description: Annotated[str, Field(description="what is compared and why, for the report")] = ""
    baseline: Annotated[
        str | None,
        Field(description="the variant that others are compared with; default: the first"),
    ] = None
    repetitions: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            strict=True,
            description="blocks; each holds every cell once per variant",
        ),
    ] = 6
    seed: Annotated[
        int, Field(ge=0, strict=True, description="of the order of cells within blocks")
    ] = 1
    order: Annotated[
        Literal["balanced", "as-written", "sessions"],
        Field(
            description="balanced: variants AB, BA, BA, AB over the blocks and cells in seeded order; "
            "as-written: as in the file. sessions: one variant on each boot, AB, BA, BA, AB over boots, "
            "see [session]"
        ),
    ] = "balanced"
    revisions: Annotated[
        dict[str, str],
        Field(
            description='git work trees, to record their revisions with the results: name = "path"'
        ),
    ] = Field(default_factory=dict)


class SessionTable(_Table):
    """`[session]`: what brings a variant about in a study with order = "sessions"."""

    count: Annotated[
        int, Field(ge=1, le=1000, strict=True, description="sessions of each variant")
    ] = 3
    begin: CommandList = Field(
        default=(),
        description="commands that bring the variant about before each of its sessions, IOLAB_VARIANT "
        "and IOLAB_SESSION in their environment; without any it is done by hand",
    )
    reboot: Annotated[
        bool,
        Field(
            strict=True,
            description="whether the commands restart the host: they run last, when everything else is "
            "ended, and the session begins when the study is resumed on another boot",
        ),
    ] = False

    @model_validator(mode="after")
    def _restarts_by_commands(self) -> SessionTable:
        if self.reboot and not self.begin:
            raise problems_error(
                [OptionProblem(("reboot",), "has no command that restarts the host", "give begin")]
            )
        return self


class UntilTable(_Table):
    """`[until]`: the study ends once these rules are decided."""

    rules: Annotated[
        list[str],
        Field(
            min_length=1,
            description="what must pass or fail, as `iolab check` takes it, such as "
            '"write.iops within 5 %"; a text or a list',
        ),
    ]
    at_most: Annotated[
        int,
        Field(
            ge=2,
            le=500,
            strict=True,
            description="blocks at which it ends undecided; takes the place of study.repetitions",
        ),
    ] = AT_MOST
    alpha: Annotated[
        float,
        Field(
            ge=0.0001,
            le=0.25,
            description="chance of a wrong pass, and of a wrong fail, over all looks",
        ),
    ] = ALPHA
    spending: Annotated[
        Literal["pocock", "obrien-fleming"],
        Field(
            description="how the chance is used up: pocock ends early more often; obrien-fleming keeps "
            "most of it for the last look"
        ),
    ] = "pocock"

    @field_validator("rules", mode="before")
    @classmethod
    def _single_rule(cls, rules: Any) -> Any:
        return [rules] if isinstance(rules, str) else rules


class VariantTable(_Table):
    """`[variants.NAME]`: what differs from the study's own tables, and what brings the arm about."""

    target: dict[str, Any] = Field(
        default_factory=dict, description="keys of [target] with this variant's values"
    )
    workload: dict[str, Any] = Field(
        default_factory=dict, description="keys of [workload] with this variant's values"
    )
    load: dict[str, Any] = Field(
        default_factory=dict, description="keys of [load] with this variant's values"
    )
    build: Annotated[
        str | None,
        Field(description="name of the build in [builds] that this variant runs; default: none"),
    ] = None
    setup: CommandList = Field(
        default=(),
        description="commands run whenever the study comes to this variant from "
        "another: a text for the shell, or a list of commands",
    )
    teardown: CommandList = Field(
        default=(), description="commands run whenever the study leaves this variant, as setup"
    )


class HookTable(_Table):
    """`[hooks.LEVEL]`: commands around something."""

    before: CommandList = Field(
        default=(),
        description="commands run before it: a text for the shell, or a list of them, each a "
        "text or a list of arguments. Where one fails, the runs behind it fail",
    )
    after: CommandList = Field(
        default=(), description="commands run after it, as before; a failure is noted"
    )


class HooksTable(_Table):
    """`[hooks]`: commands around the study and its parts."""

    study: HookTable = Field(default_factory=HookTable, description="around the whole study")
    variant: HookTable = Field(
        default_factory=HookTable,
        description="whenever the study comes to any variant from another, and leaves it",
    )
    block: HookTable = Field(default_factory=HookTable, description="around each block")
    run: HookTable = Field(default_factory=HookTable, description="around each run")


class ActionTable(_Table):
    """`[[actions]]`: something done inside every run, a command or a mark."""

    at: Duration = Field(
        description='time from the start of the measured window: seconds, or with a unit such as "60s"'
    )
    mark: Annotated[
        str | None,
        Field(
            max_length=200,
            description="its name: the windows before and after it can be compared; default: the command's text",
        ),
    ] = None
    command: Annotated[
        OneCommand | None,
        Field(
            description="what is run: a text for the shell, or a list of arguments; without one only the mark is set"
        ),
    ] = None

    @model_validator(mode="after")
    def _does_something(self) -> ActionTable:
        if self.mark is not None and not self.mark.strip():
            raise problems_error([OptionProblem(("mark",), "is empty", "a word or more")])
        if self.mark is None and self.command is None:
            raise problems_error(
                [OptionProblem((), "does nothing", "give a command, a mark or both")]
            )
        return self

    def action(self) -> Action:
        """As the runner takes it."""
        return Action(
            self.at, self.mark or (self.command.text[:200] if self.command else ""), self.command
        )


RECORDED = frozenset({"block", "syscall", "nfs", "counters"})
"""Sources that record events. If a study names no others, the default ones, which the gates need,
are added."""


def _default_sources() -> dict[str, dict[str, Any]]:
    return {"diskstats": {}, "cpu": {}, "memory": {}}


class StudyFile(_Table):
    """A study file."""

    study: StudyTable = Field(
        default_factory=StudyTable, description="what it is, how often and in which order"
    )
    target: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "directory"}, description="what is measured"
    )
    load: dict[str, Any] = Field(
        default_factory=dict,
        description="client hosts that put the load on the target; default: the load runs where the target is",
    )
    workload: dict[str, Any] = Field(
        description='a table: what drives the target, such as kind = "fio"'
    )
    sources: dict[str, dict[str, Any]] = Field(
        default_factory=_default_sources,
        description="what is watched meanwhile, a table each, or a list of names",
    )
    factors: list[FactorSet] = Field(
        default_factory=lambda: [FactorSet()],
        description="what is swept, name = [levels]; [[factors]] gives several sets with joined cells",
    )
    variants: dict[str, VariantTable] = Field(
        default_factory=lambda: {"baseline": VariantTable()}, description="arms of the comparison"
    )
    builds: dict[str, BuildTable] = Field(
        default_factory=dict,
        description="programs that are compiled before the runs that use them, a table each; a "
        "variant or the factor 'build' names one",
    )
    hooks: HooksTable = Field(
        default_factory=HooksTable, description="commands around the study and its parts"
    )
    actions: list[ActionTable] = Field(
        default_factory=list, description="what is done inside every run, by time"
    )
    until: UntilTable | None = Field(
        default=None,
        description="rules that end the study once they are decided, instead of a fixed number of blocks",
    )
    session: SessionTable | None = Field(
        default=None,
        description='what brings a variant about in a study with order = "sessions"',
    )
    profile: ProfileTable | None = Field(
        default=None,
        description="what is profiled by perf, in runs of their own after the measured ones",
    )
    reduced: ReducedTable | None = Field(
        default=None, description="what --reduced changes, so that the study takes minutes"
    )
    rig: RigTable | None = Field(
        default=None, description="the disposable machine on which 'iolab ab' runs the study"
    )

    @field_validator("target")
    @classmethod
    def _directory_by_default(cls, target: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "directory", **target}

    @field_validator("sources", mode="before")
    @classmethod
    def _names_alone(cls, sources: Any) -> Any:
        return (
            {name: {} for name in sources}
            if isinstance(sources, list) and all(isinstance(name, str) for name in sources)
            else sources
        )

    @field_validator("sources")
    @classmethod
    def _beside_the_usual(cls, sources: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return (
            {**_default_sources(), **sources} if sources and sources.keys() <= RECORDED else sources
        )

    @field_validator("builds")
    @classmethod
    def _names_of_builds(cls, builds: dict[str, BuildTable]) -> dict[str, BuildTable]:
        wrong = "is not a name for a build"
        allowed = "letters, digits, '.', '_' and '-'"
        bad = [
            OptionProblem((name,), wrong, allowed)
            for name in builds
            if not BUILD_NAME.fullmatch(name)
        ]
        if bad:
            raise problems_error(bad)
        return builds

    @field_validator("factors")
    @classmethod
    def _one_set_at_least(cls, factors: list[FactorSet]) -> list[FactorSet]:
        return factors or [FactorSet()]

    @field_validator("variants")
    @classmethod
    def _variants_sound(cls, variants: dict[str, VariantTable]) -> dict[str, VariantTable]:
        if not variants:
            raise problems_error(
                [
                    OptionProblem(
                        (), "has no variant", "one table per arm, such as [variants.patched]"
                    )
                ]
            )
        bad = [
            name for name in variants if not name.strip() or any(ord(char) < 32 for char in name)
        ]
        if bad:
            raise problems_error(
                [
                    OptionProblem((name,), "is not a name for a variant", "a word or more")
                    for name in bad
                ]
            )
        return variants

    def hooks_given(self) -> Hooks:
        """Hooks as the runner takes them."""
        tables: dict[Level, HookTable] = {level: getattr(self.hooks, level) for level in LEVELS}
        return Hooks(
            before={level: table.before for level, table in tables.items() if table.before},
            after={level: table.after for level, table in tables.items() if table.after},
        )

    def variant_hooks(self) -> dict[str, tuple[tuple[Command, ...], tuple[Command, ...]]]:
        """Variant to (setup, teardown), for those that have any."""
        return {
            name: (table.setup, table.teardown)
            for name, table in self.variants.items()
            if table.setup or table.teardown
        }
