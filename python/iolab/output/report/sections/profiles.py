# SPDX-License-Identifier: Apache-2.0
"""Profiles for the report's page: each cell's tree of functions, the profiles on it, and each
variant's difference from the baseline."""

from __future__ import annotations

from iolab.studies.compare.profile_words import percent, points, remarks, sampling_text, spent
from iolab.studies.compare.profiles import LEAST_SHARE, CellProfiles, cells_of, change
from iolab.studies.results.open.profiles import Profile

from ..model.profile_payload import (
    ProfileCell,
    ProfileChange,
    ProfileFunction,
    ProfileInfo,
    ProfileParts,
    Profiles,
)
from ..model.source import Source

METHOD = (
    "A wide part is a function in which CPUs spent much time, alone or in what it called; the parts above it are what it called. Time does "
    "not run to the right.",
    "Shares are of the samples in which a CPU had something to do, on the whole host. Idle samples are counted and not drawn; neither are "
    f"parts below {percent(LEAST_SHARE)} in every profile.",
    "Each profile is one capture in a run of its own, which enters no estimate: small differences may be chance, and none is tested.",
)


def run_profiles(results: Source) -> Profiles | None:
    """The profiles of the results; None where there are none and none was to be."""
    profile_list, notes = results.profiles()
    if not profile_list and not notes:
        return None
    cells = cells_of(profile_list, results.manifest.baseline, results.manifest.variants)
    return Profiles(
        cells=[_cell(cell, results.manifest.baseline) for cell in cells],
        notes=notes,
        method=list(METHOD),
    )


def _cell(cell: CellProfiles, baseline: str | None) -> ProfileCell:
    names = {
        name: place for place, name in enumerate(dict.fromkeys(part.name for part in cell.parts))
    }
    parts = ProfileParts(
        names=list(names),
        name=[names[part.name] for part in cell.parts],
        parent=[-1 if part.parent is None else part.parent for part in cell.parts],
        kernel=[int(part.kernel) for part in cell.parts],
    )
    infos = [_info(cell, place, profile, baseline) for place, profile in enumerate(cell.profiles)]
    changes = [
        _change(cell, 0, place)
        for place, profile in enumerate(cell.profiles)
        if place > 0
        and profile.variant != cell.profiles[0].variant
        and cell.profiles[0].busy_samples
        and profile.busy_samples
    ]
    return ProfileCell(title=cell.title, parts=parts, profiles=infos, changes=changes)


def _info(cell: CellProfiles, place: int, profile: Profile, baseline: str | None) -> ProfileInfo:
    return ProfileInfo(
        run=profile.run,
        variant=profile.variant,
        baseline=profile.variant == baseline,
        sampled=sampling_text(profile),
        spent=spent(profile),
        remarks=remarks(profile),
        busy=profile.busy_samples,
        samples=[part.samples[place] for part in cell.parts],
        shares=[round(part.shares[place], 6) for part in cell.parts],
    )


def _change(cell: CellProfiles, before: int, after: int) -> ProfileChange:
    differences = [change(part, before, after) for part in cell.parts]
    functions = [
        ProfileFunction(
            name=function.name,
            kernel=function.kernel,
            before=percent(function.shares[before]),
            after=percent(function.shares[after]),
            change=points(change(function, before, after)),
            more=change(function, before, after) > 0,
        )
        for function in cell.differing(before, after)
    ]
    return ProfileChange(
        before=before,
        after=after,
        changes=[round(difference, 6) for difference in differences],
        functions=functions,
    )
