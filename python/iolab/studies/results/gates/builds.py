# SPDX-License-Identifier: Apache-2.0
"""Did each arm run the build that it was to run?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iolab.base.verdict import Reason

from ..evidence.model import PROGRAM_BUILD
from ..facts.run_facts import RunFacts
from .base import invalid, note, suspect

MODULES, PROGRAMS = "modules", "programs"
"""Keys of a build that say what ran: loaded modules of the kernel, or programs of the load."""
_SHOWN = 12
"""Digits of a build-id or a digest in a message."""


class BuildsGate:
    """INVALID when the loaded modules, or the program of the load, are not of the requested build,
    or are those of a run that requests another build. SUSPECT when the program is unknown.

    Builds that were made of the same sources may be equal: a note.
    """

    name = "builds"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The run's own modules and programs against the build's files, then against those of each
        other build of the study."""
        yield from self._judge(facts, facts.target.get("build"), MODULES)
        yield from self._judge(facts, facts.plan.extra.get(PROGRAM_BUILD), PROGRAMS)

    def _judge(self, facts: RunFacts, own: Any, kind: str) -> Iterable[Reason]:
        if not isinstance(own, Mapping):
            return
        build_name = own.get("asked")
        if not _identities(own, kind):
            if kind == PROGRAMS and build_name is not None:
                yield suspect(
                    "unknown-build",
                    f"the program that ran is unknown, so it may not be of the build '{build_name}'",
                    asked=build_name,
                )
            return
        if wrong := _wrong_names(own, kind):
            yield invalid("wrong-build", _wrong_words(own, kind, wrong), asked=build_name)
            return
        for other in facts.builds:
            if other.get("asked") == build_name or _ran(other, kind) != _ran(own, kind):
                continue
            names = f"'{build_name or 'the default'}' and '{other.get('asked') or 'the default'}'"
            if _digest(own) is not None and _digest(own) == _digest(other):
                yield note("same-sources", f"the builds {names} were made of the same sources")
            else:
                what = "loaded the same modules" if kind == MODULES else "ran the same program"
                yield invalid(
                    "same-build",
                    f"both variants ran the same build: {names} {what}",
                    asked=build_name,
                )


def same_build(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs requested one build and ran the same."""
    return one.get("asked") == other.get("asked") and all(
        _ran(one, kind) == _ran(other, kind) for kind in (MODULES, PROGRAMS)
    )


def _ran(build: Mapping[str, Any], kind: str) -> Any:
    """What two builds have in common if they ran the same; of programs the path does not count."""
    return build.get(kind) if kind == MODULES else _identities(build, kind)


def _identities(build: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Name to what identifies it: the srcversion of a module, build-id or digest of a program."""
    items = build.get(kind)
    if not isinstance(items, Mapping):
        return {}
    keys = ("srcversion",) if kind == MODULES else ("build_id", "sha256")
    return {
        name: next((item[key] for key in keys if key in item), None)
        if isinstance(item, Mapping)
        else None
        for name, item in items.items()
    }


def _wrong_names(build: Mapping[str, Any], kind: str) -> list[str]:
    """Modules or programs that ran and are not those of the build's files."""
    expected = build.get("expected")
    if not isinstance(expected, Mapping) or not expected:
        return []
    expected_programs = dict(expected) if kind == MODULES else _identities({kind: expected}, kind)
    ran = _identities(build, kind)
    return sorted(
        name for name in {*expected_programs, *ran} if ran.get(name) != expected_programs.get(name)
    )


def _wrong_words(own: Mapping[str, Any], kind: str, wrong: list[str]) -> str:
    build_name = own.get("asked")
    if kind == MODULES:
        return (
            f"the loaded modules ({', '.join(wrong)}) are not of the build '{build_name}' that was "
            "requested"
        )
    programs = own[PROGRAMS]
    name = next((name for name in wrong if name in programs), next(iter(programs)))
    item = programs[name] if isinstance(programs[name], Mapping) else {}
    identity = str(item.get("build_id") or item.get("sha256") or "unknown")[:_SHOWN]
    return (
        f"the program that ran, {item.get('path', name)} ({identity}), is not of the build "
        f"'{build_name}' that was requested"
    )


def _digest(build: Mapping[str, Any]) -> Any:
    record = build.get("record")
    return record.get("digest") if isinstance(record, Mapping) else None
