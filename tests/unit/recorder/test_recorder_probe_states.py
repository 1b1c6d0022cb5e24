# SPDX-License-Identifier: Apache-2.0
"""The supervisor's state machine: every state with every event."""

from __future__ import annotations

import pytest

from iolab.recordings.record.probe.supervisor import TRANSITIONS, ProbeEvent, ProbeState

EVENTS = ("START", "SUSPEND_ALL", "CHANGE_SOURCES", "END", "FAIL", "STOP", "CLOSE")
TABLE = {
    "IDLE": ("RUNNING", "IDLE", "WAITING", "IDLE", "IDLE", "CLOSED", "CLOSED"),
    "RUNNING": ("RUNNING", "RUNNING", "RUNNING", "WAITING", "WAITING", "STOPPING", "CLOSED"),
    "WAITING": ("RUNNING", "IDLE", "WAITING", "WAITING", "WAITING", "CLOSED", "CLOSED"),
    "STOPPING": ("STOPPING", "STOPPING", "STOPPING", "CLOSED", "CLOSED", "STOPPING", "CLOSED"),
    "CLOSED": ("CLOSED",) * 7,
}


def test_the_table_names_every_state_and_event() -> None:
    assert list(TABLE) == [state.name for state in ProbeState]
    assert list(EVENTS) == [event.name for event in ProbeEvent]


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        (state, event, after)
        for state, row in TABLE.items()
        for event, after in zip(EVENTS, row, strict=True)
    ],
)
def test_an_event_leads_to_the_state_of_the_table(state: str, event: str, expected: str) -> None:
    before = ProbeState[state]
    assert TRANSITIONS[before].get(ProbeEvent[event], before) is ProbeState[expected]
