"""The profiles of results, for `iolab show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def profile_lines(path: Path) -> list[str]:
    """A line for each profile, with what was sampled; and what was to be one."""
    from ..compare.axes import axis_text
    from ..compare.profile_words import remarks, sampled, spent
    from ..results.open.profiles import read_profiles

    found, notes = read_profiles(path)
    if not found and not notes:
        return []
    lines = ["profiles  in runs of their own, which enter no estimate; iolab report draws them"]
    for one in found:
        head = " ".join(
            part
            for part in (
                one.run,
                one.variant,
                axis_text(one.factors.keys(), tuple(one.factors.values())),
            )
            if part
        )
        lines.append(f"  {head}: {sampled(one)}; {spent(one)}")
        lines += [f"    {text}" for text in remarks(one)]
    return [*lines, *(f"  {note}" for note in notes)]


def profiles_json(path: Path) -> dict[str, Any]:
    """`{"profiles": [...]}`, empty where there are none."""
    from ..results.open.profiles import read_profiles

    found, notes = read_profiles(path)
    if not found and not notes:
        return {}
    return {
        "profiles": [
            {
                "run": one.run,
                "variant": one.variant,
                "factors": dict(one.factors),
                "host": one.host,
                "samples": one.samples,
                "busy_samples": one.busy_samples,
                "kernel_samples": one.kernel_samples,
                "frequency": one.frequency,
                "seconds": one.seconds,
                "cpus": one.cpus,
                "event": one.event,
                "lost_chunks": one.lost,
                "damaged_samples": one.damaged,
                "stacks": str(one.evidence / one.file),
            }
            for one in found
        ],
        "profiles_missing": notes,
    }
