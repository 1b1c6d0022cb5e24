# SPDX-License-Identifier: Apache-2.0
"""The profiles of results, for `iolab show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def profile_lines(path: Path) -> list[str]:
    """A line for each profile, with what was sampled; and what was to be one."""
    from ...compare.axes import axis_text
    from ...compare.profile_words import remarks, sampling_text, spent
    from ...results.open.profiles import read_profiles

    profiles, notes = read_profiles(path)
    if not profiles and not notes:
        return []
    lines = ["profiles  in runs of their own, which enter no estimate; iolab report draws them"]
    for profile in profiles:
        head = " ".join(
            part
            for part in (
                profile.run,
                profile.variant,
                axis_text(profile.factors.keys(), tuple(profile.factors.values())),
            )
            if part
        )
        lines.append(f"  {head}: {sampling_text(profile)}; {spent(profile)}")
        lines += [f"    {text}" for text in remarks(profile)]
    return [*lines, *(f"  {note}" for note in notes)]


def profiles_json(path: Path) -> dict[str, Any]:
    """`{"profiles": [...]}`, empty where there are none."""
    from ...results.open.profiles import read_profiles

    profiles, notes = read_profiles(path)
    if not profiles and not notes:
        return {}
    return {
        "profiles": [
            {
                "run": profile.run,
                "variant": profile.variant,
                "factors": dict(profile.factors),
                "host": profile.host,
                "samples": profile.samples,
                "busy_samples": profile.busy_samples,
                "kernel_samples": profile.kernel_samples,
                "frequency": profile.frequency,
                "seconds": profile.seconds,
                "cpus": profile.cpus,
                "event": profile.event,
                "lost_chunks": profile.lost,
                "damaged_samples": profile.damaged,
                "stacks": str(profile.evidence / profile.file),
            }
            for profile in profiles
        ],
        "profiles_missing": notes,
    }
