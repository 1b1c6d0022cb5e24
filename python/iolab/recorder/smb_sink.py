# SPDX-License-Identifier: Apache-2.0
"""A sink that adds share and user to the system calls of Samba's processes.

They are in the columns `job` and `device`, which system calls do not have otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from .host_shell import HostShell
from .intake import Sink
from .passing_sink import PassingSink
from .smb_sessions import LONGEST, SILENT, Sessions, parse_answer

SOURCE, PROCESS = "syscall", "smbd"
_WAIT_S = 0.3
"""The longest wait for the answer on a new connection: its first calls have its user too."""
_SOON_S, _LATER_S = 1.0, 30.0
"""Between two calls of smbstatus: for connections without a user, and for the others."""
_PATIENCE_S = 25.0
"""Without an answer for this time the shell is ended."""
_MOST = 1 << 14
"""Processes without a user that are remembered."""


class SmbSink(PassingSink):
    """Adds share and user to events. The shell on the host starts at the first event of Samba."""

    def __init__(
        self,
        sink: Sink,
        begin: Callable[[], Sequence[str]],
        notice: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begin`: the argument list of a shell that runs `smb_sessions.SCRIPT` on the recorded
        host; `notice`: takes what a user should know, each once."""
        super().__init__(sink)
        self._begin, self._notice, self._now = begin, notice, now
        self._sessions = Sessions()
        self._shell: HostShell | None = None
        self._text = b""
        self._waits = True
        self._asked_at: float | None = None
        """When the question was sent that has no answer yet."""
        self._again_at = self._refresh_at = 0.0
        self._retries: dict[int, tuple[float, float]] = {}
        """By number of a process without a user: when to ask again, and the wait after that."""
        self._said: set[str] = set()

    def append_events(self, batch: pa.RecordBatch) -> None:
        """Add share and user where the batch has calls of Samba, then see `Sink`."""
        self._sink.append_events(self._fill(batch))

    def close(self) -> None:
        """End the shell, then see `Sink`."""
        try:
            self._end()
        finally:
            self._sink.close()

    def _fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        processes = batch["process"].dictionary.to_pylist()
        if PROCESS not in processes or batch["source"].dictionary.to_pylist() != [SOURCE]:
            return batch
        numbers = batch["process"].indices.fill_null(-1).to_numpy()
        rows = np.flatnonzero(numbers == processes.index(PROCESS))
        if not len(rows):
            return batch
        pids, pid = np.unique(
            batch["pid"].fill_null(0).to_numpy()[rows].astype(np.int64), return_inverse=True
        )
        clients, client = _names(batch["client"], rows)
        files, file = _names(batch["file"], rows)
        kinds, place = np.unique(
            (pid * len(clients) + client) * len(files) + file, return_inverse=True
        )
        calls = [
            (int(pids[kind // len(files) // len(clients)]),
             clients[kind // len(files) % len(clients)],
             files[kind % len(files)])
            for kind in kinds.tolist()
        ]  # fmt: skip
        self._ask({(number, address) for number, address, _ in calls if address})
        for name, values in (
            ("job", [self._sessions.share(*call) for call in calls]),
            ("device", [self._sessions.user(*call[:2]) if call[1] else None for call in calls]),
        ):
            at = batch.schema.get_field_index(name)
            column = _column(batch.num_rows, rows, place, values)
            batch = batch.set_column(at, batch.schema.field(at), column)
        return batch

    def _ask(self, connections: set[tuple[int, str]]) -> None:
        """Ask about a process where it is unanswered, and take the answer if it comes soon."""
        self._take()
        now = self._now()
        unanswered = [
            pid
            for pid, client in connections
            if self._sessions.user(pid, client) is None
            and max(self._again_at, self._retries.get(pid, (0.0, 0.0))[0]) <= now
        ]
        if (
            self._asked_at is not None
            or not connections
            or not (unanswered or now >= self._refresh_at)
        ):
            return
        pid = min(unanswered or [pid for pid, _ in connections])
        try:
            if self._shell is None:
                self._shell = HostShell(self._begin(), has_input=True)
            self._shell.send(str(pid))
        except OSError:
            self._end()
            self._again_at = self._refresh_at = now + _LATER_S
            return
        self._asked_at = now
        self._again_at, self._refresh_at = now + _SOON_S, now + _LATER_S
        if len(self._retries) > _MOST:
            self._retries = {}
        for other in unanswered:
            # a process may have no session for long: questions about it become rarer
            wait_s = self._retries.get(other, (0.0, _SOON_S))[1]
            self._retries[other] = (now + wait_s, min(2 * wait_s, _LATER_S))
        if unanswered and self._waits:
            self._take(_WAIT_S)

    def _take(self, patience_s: float = 0.0) -> None:
        """Take what the shell printed."""
        if self._shell is None or self._asked_at is None:
            return
        until = self._now() + patience_s
        while True:
            data = self._shell.read(max(0.0, until - self._now()))
            if data is None:
                if self._now() < until:
                    continue
                break
            if not data or len(self._text) > LONGEST:
                self._fail()
                return
            self._text += data
            if self._text.endswith(b"\n=end\n"):
                self._learn()
                return
        if self._now() - self._asked_at > _PATIENCE_S:
            self._fail()

    def _learn(self) -> None:
        answer = parse_answer(self._text.decode("utf-8", "replace").removesuffix("\n=end\n"))
        self._text, self._asked_at = b"", None
        self._sessions.learn(answer)
        # without users there is nothing to wait for; shares may change
        self._waits = answer.trouble is None
        if answer.trouble is not None:
            self._again_at = self._refresh_at
            self._say(answer.trouble)

    def _fail(self) -> None:
        """The shell ended, or does not answer."""
        self._end()
        self._again_at = self._refresh_at = self._now() + _LATER_S
        self._say(SILENT)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._notice(text)

    def _end(self) -> None:
        shell, self._shell, self._text, self._asked_at = self._shell, None, b"", None
        if shell is not None:
            shell.end(1.0)


def _names(column: pa.DictionaryArray, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """(names, the place of each row's name); the first name is "", of rows without a name."""
    indices = column.indices.fill_null(-1).to_numpy()[rows].astype(np.int64) + 1
    return ["", *column.dictionary.to_pylist()], indices


def _column(
    length: int, rows: np.ndarray, place: np.ndarray, values: Sequence[str | None]
) -> pa.DictionaryArray:
    """A column of names: `values[place]` at these rows, null elsewhere."""
    names = sorted({value for value in values if value is not None})
    numbers = np.array([-1 if value is None else names.index(value) for value in values])
    indices = np.full(length, -1, dtype=np.int32)
    indices[rows] = numbers[place.ravel()]
    return pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(indices, 0), mask=indices < 0), pa.array(names, pa.string())
    )
