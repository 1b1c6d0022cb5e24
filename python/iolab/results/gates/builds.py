# SPDX-License-Identifier: Apache-2.0
"""Did each arm run the build that it was to run?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...verdict import Reason
from ..facts.run_facts import RunFacts
from .base import invalid, note


class BuildsGate:
    """INVALID when the loaded modules are not those of the requested build, or are those
    of a run that requests another build.

    Builds that were made of the same sources may be equal: a note.
    """

    name = "builds"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """The run's own modules against the files they should come from, then against those of each
        other build of the study."""
        own = facts.target.get("build")
        if not isinstance(own, Mapping):
            return
        build_name, modules = own.get("asked"), own.get("modules")
        if not isinstance(modules, Mapping) or not modules:
            return
        expected = own.get("expected")
        if isinstance(expected, Mapping) and expected:
            wrong = ", ".join(
                sorted(
                    name
                    for name in {*expected, *modules}
                    if _source(modules, name) != expected.get(name)
                )
            )
            if wrong:
                yield invalid(
                    "wrong-build",
                    f"the loaded modules ({wrong}) are not of the build '{build_name}' that was requested",
                    asked=build_name,
                )
                return
        for other in facts.builds:
            if other.get("asked") == build_name or other.get("modules") != modules:
                continue
            names = f"'{build_name or 'the default'}' and '{other.get('asked') or 'the default'}'"
            if _digest(own) is not None and _digest(own) == _digest(other):
                yield note("same-sources", f"the builds {names} were made of the same sources")
            else:
                yield invalid(
                    "same-build",
                    f"both variants ran the same build: {names} loaded the same modules",
                    asked=build_name,
                )


def _source(modules: Mapping[str, Any], name: str) -> Any:
    module = modules.get(name)
    return module.get("srcversion") if isinstance(module, Mapping) else None


def _digest(build: Mapping[str, Any]) -> Any:
    record = build.get("record")
    return record.get("digest") if isinstance(record, Mapping) else None
