# SPDX-License-Identifier: Apache-2.0
"""Did all clients of the run measure at the same time, and did each one?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from statistics import median

from iolab.base.units import format_number
from iolab.base.verdict import Reason

from ..evidence.clients import ClientRun
from ..facts.run_facts import RunFacts
from .base import invalid, note, suspect

APART = 0.02
"""Share of the time in which not all clients measured, from which a run is SUSPECT: as little as
the runtime gate allows a run to be short."""
FAR_APART = 0.1
"""The same, from which it is INVALID."""
SLOW = 0.8
"""Share of the median client's rate below which a client is slower than the others."""
OFF_SECONDS = 0.1
"""A clock that is off by more is noted."""


class ClientsGate:
    """Of a load from several clients: INVALID if a client failed, or if for more than 10 % of the
    time not all of them measured.

    SUSPECT from 2 % on, if a client's window is unknown, or if its clock is not known well enough.

    The rates of the clients are summed, each over its own window. While one has not begun or has
    ended, the others have the server for themselves: the sum is then too large by up to this
    share. Times are compared after each clock was corrected by its offset to the server's.
    """

    name = "clients"

    def judge(self, facts: RunFacts) -> Iterable[Reason]:
        """Failures, overlap, clocks, then clients that were slower than the others."""
        clients = facts.clients
        for client in clients:
            if client.status == "failed":
                yield invalid(
                    "client-failed", f"client {client.name}: {client.reason}", client=client.name
                )
        if clients and facts.fio is not None:
            yield from chain(_overlap(clients), _clocks(clients), _slower(facts.client_iops))


def _overlap(clients: tuple[ClientRun, ...]) -> Iterable[Reason]:
    windows = {client.name: client.window for client in clients if client.window is not None}
    for client in clients:
        if client.window is None:
            yield suspect(
                "client-window",
                f"when client {client.name} measured is unknown",
                client=client.name,
            )
    if len(windows) < 2 or len(windows) < len(clients):
        return
    first = min(windows, key=lambda name: windows[name][1])
    last = max(windows, key=lambda name: windows[name][0])
    span_ns = max(end for _, end in windows.values()) - min(begin for begin, _ in windows.values())
    common = windows[first][1] - windows[last][0]
    share = 1 - max(common, 0) / span_ns if span_ns > 0 else 0.0
    if share <= APART:
        return
    speak = invalid if share > FAR_APART else suspect
    began = (windows[last][0] - min(begin for begin, _ in windows.values())) / 1e9
    ended = (max(end for _, end in windows.values()) - windows[first][1]) / 1e9
    yield speak(
        "clients-apart",
        f"not all clients measured for {format_number(100 * share, 3)} % of the time: {last} began "
        f"{began:.3f} s after the first, {first} ended {ended:.3f} s before the last",
        share=share,
        began_seconds=began,
        ended_seconds=ended,
    )


def _clocks(clients: tuple[ClientRun, ...]) -> Iterable[Reason]:
    for client in clients:
        offset, uncertainty = client.clock_offset_ns / 1e9, client.clock_uncertainty_ns / 1e9
        length = 0.0 if client.window is None else (client.window[1] - client.window[0]) / 1e9
        data = {
            "client": client.name,
            "offset_seconds": offset,
            "uncertainty_seconds": uncertainty,
            "change_seconds": client.clock_change_ns / 1e9,
        }
        if length and uncertainty > APART * length:
            changed = (
                f"it changed by {data['change_seconds']:.3f} s during the run"
                if abs(client.clock_change_ns) > client.clock_uncertainty_ns
                else "the connection is slow"
            )
            yield suspect(
                "client-clock",
                f"the clock of client {client.name} is known to {uncertainty:.3f} s only: {changed}",
                **data,
            )
        elif abs(offset) > OFF_SECONDS:
            side = "ahead of" if offset > 0 else "behind"
            yield note(
                "client-clock",
                f"the clock of client {client.name} is {abs(offset):.3f} s {side} the server's; "
                f"its times are corrected, within {1e3 * uncertainty:.1f} ms",
                **data,
            )


def _slower(rates: dict[str, float]) -> Iterable[Reason]:
    if len(rates) < 2:
        return
    usual = median(rates.values())
    for name, rate in rates.items():
        if rate < SLOW * usual:
            yield note(
                "client-slower",
                f"client {name} did {format_number(rate)} I/Os per second, the median client {format_number(usual)}",
                client=name,
                iops=rate,
                median_iops=usual,
            )
