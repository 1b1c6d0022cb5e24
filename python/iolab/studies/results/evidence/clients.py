# SPDX-License-Identifier: Apache-2.0
"""The clients of a run with a load from several hosts: what `run.json` says of each.

`extra["clients"]` has an entry for each; its files are in `clients/<name>/` of the run's directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.errors import FormatError

from .files import CLIENTS, PLAN_FILE, measured_files
from .model import RunPlan

KEY = "clients"
"""Of `RunPlan.extra`."""

_KINDS: Mapping[str, Any] = {
    "name": str,
    "host": str,
    "status": str,
    "reason": str,
    "exit_code": int | None,
    **dict.fromkeys(("clock_offset_ns", "clock_uncertainty_ns", "clock_change_ns"), int),
}


@dataclass(frozen=True)
class ClientRun:
    """One client's part in a run.

    Attributes:
        name: of the client and of its directory; host: what names the host on a command line.
        status: `finished`; `failed`, or `ended` with the others, then with a `reason`. exit_code:
        None if it was lost.
        window: its measured window by the server's clock, realtime nanoseconds; None if unknown.
        clock_offset_ns: its clock minus the server's, the mean of two measurements, before and
        after the run. clock_uncertainty_ns: of that mean. clock_change_ns: second minus first.
        recording: of its host, see `run.recording.StudyRecorder.end`; empty if nothing is recorded
        there, or if that is the server's own recording.
    """

    name: str
    host: str
    status: str = "finished"
    reason: str = ""
    exit_code: int | None = None
    window: tuple[int, int] | None = None
    clock_offset_ns: int = 0
    clock_uncertainty_ns: int = 0
    clock_change_ns: int = 0
    recording: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """As plain data for `run.json`."""
        data = asdict(self)
        if not self.recording:
            del data["recording"]
        return data


def clients_of(plan: RunPlan) -> tuple[ClientRun, ...]:
    """The clients of a run; none for a load on one host. FormatError if the entries are damaged."""
    listed = plan.extra.get(KEY)
    if listed is None:
        return ()
    try:
        clients = tuple(_client(data) for data in listed)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
        raise FormatError("the entries of 'clients' are damaged", where=PLAN_FILE) from None
    if not clients or len({client.name for client in clients}) < len(clients):
        raise FormatError("'clients' names none, or one twice", where=PLAN_FILE)
    return clients


def _client(data: Mapping[str, Any]) -> ClientRun:
    values = {name: data[name] for name in _KINDS}
    name = values["name"]
    if not all(isinstance(value, _KINDS[key]) for key, value in values.items()):
        raise TypeError
    if not name or "/" in name or name.startswith(".") or "\0" in name:
        raise ValueError
    window = data["window"]
    if window is not None:
        window = (int(window[0]), int(window[1]))
        if not all(abs(end) < 2**63 for end in window) or window[0] > window[1]:
            raise ValueError
    if any(abs(values[key]) >= 2**63 for key in _KINDS if key.endswith("_ns")):
        raise ValueError
    recording = data.get("recording", {})
    if not isinstance(recording, dict):
        raise TypeError
    return ClientRun(**values, window=window, recording=recording)


def client_files(run_dir: Path, client: str) -> Iterator[str]:
    """Paths below a run's directory of the files that the tools left on a client, sorted."""
    own = run_dir / CLIENTS / client
    if own.is_dir():
        yield from (f"{CLIENTS}/{client}/{path.name}" for path in measured_files(own))


def client_of(path: str) -> str | None:
    """The client that a file of a run belongs to, by its path; None for the run's own files."""
    parts = path.split("/")
    return parts[1] if len(parts) == 3 and parts[0] == CLIENTS else None


def common_window(clients: tuple[ClientRun, ...]) -> tuple[int, int] | None:
    """The time in which all clients measured, realtime nanoseconds by the server's clock; None if
    there is none, or a window is unknown."""
    windows = [client.window for client in clients if client.window is not None]
    if not windows or len(windows) < len(clients):
        return None
    begin, end = max(window[0] for window in windows), min(window[1] for window in windows)
    return (begin, end) if begin < end else None
