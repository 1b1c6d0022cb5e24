# SPDX-License-Identifier: Apache-2.0
"""How a running recording is spoken to: a socket in its directory, a JSON object a line each way.

Words: `status`; `cut` (seals what came up to now; with `label` it leaves a mark of that name);
`mark` (`label`, `from_ns`, `until_ns`, `link`, `facts`; `own`: by the recording's time, as `now_ns`
of an answer); `take` (`path`: a recording on the same file system, and its segments move into this
one; `label`, `from_ns`, `until_ns` by the recording's time: their label and time, instead of what
it holds of that label); `stop`. An answer has `ok`, and `error` where that is false.
Only the recorder's own user and root are heard."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from iolab.base.errors import RunError
from iolab.base.files import open_folder, read_regular
from iolab.base.untrusted_text import writable

from .status import FILE as STATUS

NAME = "control"
_MOST_CLIENTS = 16
_LONGEST_LINE = 1 << 16
_PEER = struct.Struct("iII")  # ucred: pid, uid, gid (unix(7), SO_PEERCRED)


class Client:
    """One connection. `answer` may come later than the request."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._in = b""
        self._out = b""
        self.gone = False

    def fileno(self) -> int:
        """Descriptor of its socket."""
        return self._channel.fileno()

    def requests(self) -> list[dict[str, Any]]:
        """Whole requests that came; a line that is none is answered here."""
        try:
            data = self._channel.recv(_LONGEST_LINE)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if not data or len(self._in) > _LONGEST_LINE:
            self.close()
            return []
        *lines, self._in = (self._in + data).split(b"\n")
        request_list = []
        for line in lines:
            try:
                request = json.loads(line)
            except (ValueError, RecursionError):
                request = None
            if isinstance(request, dict):
                request_list.append(request)
            else:
                self.answer({"ok": False, "error": "no JSON object"})
        return request_list

    def answer(self, words: Mapping[str, Any]) -> None:
        """Send an answer, as far as the peer takes it now; a peer that never reads is dropped."""
        self._out += json.dumps(words).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send the rest."""
        if self.gone or not self._out:
            return
        try:
            self._out = self._out[self._channel.send(self._out) :]
        except (BlockingIOError, InterruptedError):
            if len(self._out) > 16 * _LONGEST_LINE:
                self.close()
        except OSError:
            self.close()

    def close(self) -> None:
        """Hang up."""
        self.gone = True
        self._channel.close()


class Control:
    """Listens in a recording's directory."""

    def __init__(self, directory: Path) -> None:
        """RunError where no socket can be made there."""
        self._path = directory / NAME
        self._clients: list[Client] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        try:
            # whoever holds the recording's lock is the only one: a socket that is there was left by
            # a kill
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
            with _short(directory) as name:
                before = os.umask(0o177)
                try:
                    self._listener.bind(name)
                finally:
                    os.umask(before)
            self._listener.listen(_MOST_CLIENTS)
        except OSError as error:
            self._listener.close()
            raise RunError(
                f"no control socket can be made: {error.strerror or error}", where=self._path
            ) from None

    def files(self) -> list[int]:
        """Descriptors to wait for."""
        return [self._listener.fileno(), *(client.fileno() for client in self._clients)]

    def serve(self, obey: Callable[[dict[str, Any], Client], None]) -> None:
        """Hand each request to `obey`, those of new connections too."""
        self._hear(obey)
        # now that those who hung up are gone there is room
        self._accept(obey)
        self._hear(obey)

    def close(self) -> None:
        """Hang up and remove the socket."""
        for client in self._clients:
            client.close()
        self._clients = []
        self._listener.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _hear(self, obey: Callable[[dict[str, Any], Client], None]) -> None:
        for client in self._clients:
            for request in client.requests():
                obey(request, client)
            client.flush()
        self._clients = [client for client in self._clients if not client.gone]

    def _accept(self, obey: Callable[[dict[str, Any], Client], None]) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                return
            if len(self._clients) >= _MOST_CLIENTS:
                self._hear(obey)  # some may have hung up meanwhile
            _, uid, _ = _PEER.unpack(
                channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            )
            if uid in (0, os.geteuid()) and len(self._clients) < _MOST_CLIENTS:
                self._clients.append(Client(channel))
            else:
                channel.close()


def _connect(channel: socket.socket, name: str, timeout: float) -> None:
    """Connect; a recorder with a full queue takes the next ones within a moment."""
    limit = time.monotonic() + timeout
    while True:
        try:
            channel.connect(name)
            return
        except BlockingIOError:
            if time.monotonic() >= limit:
                raise
            time.sleep(0.02)


def say(directory: Path, words: Mapping[str, Any], *, timeout: float = 10.0) -> dict[str, Any]:
    """Say something to the recorder of a recording; its answer. RunError where there is none, or it
    can't do it."""
    where = directory / NAME
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(timeout)
            with _short(directory) as name:
                _connect(channel, name, timeout)
            channel.sendall(json.dumps(words).encode() + b"\n")
            data = b""
            while not data.endswith(b"\n"):
                more = channel.recv(_LONGEST_LINE)
                if not more:
                    raise RunError("the recorder hung up", where=where)
                data += more
        answer: dict[str, Any] = json.loads(data)
    except (TimeoutError, ValueError):
        raise RunError(f"the recorder doesn't answer within {timeout:g} s", where=where) from None
    except OSError as error:
        raise RunError(f"no recorder listens: {error.strerror or error}", where=where) from None
    if not answer.get("ok"):
        raise RunError(str(answer.get("error", "the recorder can't do it")), where=where)
    return answer


def end_recorder(directory: Path, timeout: float) -> dict[str, Any]:
    """Have the recorder of a recording end, and wait until it has; its last status. RunError where
    none is there, or it doesn't end."""
    status = say(directory, {"word": "status"})
    say(directory, {"word": "stop"})
    limit = time.monotonic() + timeout
    while (directory / NAME).exists():
        with contextlib.suppress(RunError):
            status = say(directory, {"word": "status"})
        if time.monotonic() >= limit:
            raise RunError(
                f"the recorder (process {status.get('pid')}) did not end within {timeout:g} s",
                where=directory,
            )
        time.sleep(0.1)
    with contextlib.suppress(OSError, ValueError):  # counts go on until all was taken in
        status |= json.loads(read_regular(directory / STATUS))
    return status


@contextlib.contextmanager
def _short(directory: Path) -> Any:
    """A name of the socket that fits into the 108 bytes of an address (unix(7)), however deep the
    directory is."""
    number = open_folder(directory)
    try:
        yield f"/proc/self/fd/{number}/{NAME}"
    finally:
        os.close(number)


_DEEPEST = 16
"""Lists and objects within each other that facts may have."""


@dataclass(frozen=True)
class Mark:
    """A named span of time; see `recording.writer.RecordingWriter.mark`. `own`: by the recording's
    own time, not by the machine's clock."""

    label: str
    from_ns: int
    until_ns: int | None
    kind: Literal["run", "user"] = "user"
    link: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False


def mark_of(request: Mapping[str, Any]) -> Mark:
    """The mark that a request asks for. ValueError says what of it is not what it should be."""
    facts, link, until = request.get("facts"), request.get("link"), request.get("until_ns")
    if not isinstance(facts, dict | None):
        raise ValueError("facts is not an object")
    return Mark(
        label=_text("label", request.get("label")),
        from_ns=_time("from_ns", request.get("from_ns")),
        until_ns=None if until is None else _time("until_ns", until),
        kind="run" if request.get("kind") == "run" else "user",
        link=None if link is None else _text("link", link),
        facts=_sound(facts or {}),
        own=request.get("own") is True,
    )


def _text(name: str, value: Any) -> str:
    """A text that every reader can take: what is no character, as a name of a file may hold, is
    escaped."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return writable(value)


def _time(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{name} is not a time in nanoseconds")
    return value


def _sound(value: Any, depth: int = 0) -> Any:
    """Plain data, its texts as by `_text`; ValueError where it is nested too deep or holds a number
    that JSON has not."""
    if depth > _DEEPEST:
        raise ValueError("facts are nested too deep")
    if isinstance(value, dict):
        return {_text("a name", name): _sound(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_sound(item, depth + 1) for item in value]
    if isinstance(value, str):
        return _text("facts", value)
    if isinstance(value, int | float) and not (
        math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**64
    ):
        raise ValueError("facts hold a number that is too large")
    return value
