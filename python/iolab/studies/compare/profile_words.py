# SPDX-License-Identifier: Apache-2.0
"""Profiles in words: how much was sampled, how much of it was idle, kernel or user; the same
wherever a profile is shown."""

from __future__ import annotations

from ..results.open.profiles import Profile


def percent(share: float) -> str:
    """`12.3 %`, `0.12 %`."""
    return f"{100 * share:.2f} %" if abs(share) < 0.01 else f"{100 * share:.1f} %"


def points(change: float) -> str:
    """`+1.3 points`: a difference of two shares, in points of per cent."""
    return f"{100 * change:+.2f} points" if abs(change) < 0.01 else f"{100 * change:+.1f} points"


def sampling_text(profile: Profile) -> str:
    """`3960 samples, 99 Hz, 20 s, 2 CPUs, cpu-clock`: as much of it as is known."""
    parts = [f"{profile.samples} samples"]
    if profile.frequency is not None:
        parts.append(f"{profile.frequency} Hz")
    if profile.seconds is not None:
        parts.append(f"{profile.seconds:.3g} s")
    if profile.cpus is not None:
        parts.append(f"{profile.cpus:g} CPU{'' if profile.cpus == 1 else 's'}")
    if profile.event:
        parts.append(profile.event.partition(":")[0])
    return ", ".join(parts)


def spent(profile: Profile) -> str:
    """`idle 12.0 %, of the rest 80.1 % kernel and 19.9 % user`."""
    if not profile.samples:
        return "nothing was sampled"
    idle = 1 - profile.busy_samples / profile.samples
    busy = max(profile.busy_samples, 1)
    kernel = profile.kernel_samples / busy
    return f"idle {percent(idle)}; of the rest {percent(kernel)} in the kernel, {percent(1 - kernel)} in user programs"


def remarks(profile: Profile) -> list[str]:
    """What a reader should know of how it was made; empty where all went well."""
    lines = []
    possible = profile.possible
    if possible is not None and profile.samples < 0.9 * possible:
        lines.append(
            f"{profile.samples} of {possible} possible samples were taken: some events give none while a CPU sleeps, so the "
            "idle share is too low; a machine that is out of CPU time misses some"
        )
    if profile.lost:
        lines.append(f"perf lost {profile.lost} chunks of samples")
    if profile.damaged:
        lines.append(f"{profile.damaged} samples could not be read")
    unnamed = sum(
        count
        for stack, count in profile.busy.items()
        if stack.endswith(("[unknown]_[k]", "[kernel.kallsyms]_[k]"))
    )
    if unnamed > 0.05 * max(profile.busy_samples, 1):
        lines.append(
            "functions of the kernel have no names: measure as root, or with kernel.kptr_restrict=0"
        )
    return lines
