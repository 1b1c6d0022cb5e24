# SPDX-License-Identifier: Apache-2.0
"""One ssh connection with a far end of iolab's own: requests go out, answers come back, and a loss
is reported as such."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import RunError

from ..base.host import FROZEN, HungError

OLDEST_PYTHON = (3, 9)
"""Of the far side: earlier ones lack pidfd (os.pidfd_open)."""
CONNECT_SECONDS = 15
PATIENCE = 60.0
"""Seconds beyond what a request may take, after which the far side counts as lost."""
_MODULES = ("base.orphans", "base.kmsg", "ssh.remote_agent")
"""Modules that make up the far end, in the order in which they import each other."""
_READY = "iolab-far-ready"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

_BOOTSTRAP = f"""
import json, os, sys, types
def take(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit(1)
        data += more
    return data
head = b""
while not head.endswith(b"\\n"):
    head += take(1)
whole = types.ModuleType("iolab_far")
whole.__path__ = []
sys.modules["iolab_far"] = whole
for name, text in json.loads(take(int(head))):
    module = types.ModuleType("iolab_far." + name)
    module.__package__ = module.__name__.rpartition(".")[0]
    if module.__package__ not in sys.modules:
        sys.modules[module.__package__] = types.ModuleType(module.__package__)
        sys.modules[module.__package__].__path__ = []
    sys.modules[module.__name__] = module
    exec(compile(text, "iolab " + name, "exec"), module.__dict__)
os.write(1, ("{_READY} " + sys.argv[1] + "\\n").encode())
sys.modules["iolab_far.ssh.remote_agent"].main()
"""
"""Reads the far end's modules, by their length and as JSON, and lets the last one serve. It needs
no file there."""


@dataclass(frozen=True)
class Destination:
    """Where to and how.

    Attributes:
        name: for messages, such as `root@zeno1` or `rig:openzfs`.
        address: what ssh is given, a host or `user@host` or a name of ~/.ssh/config. port: None for
        ssh's own choice. identity: private key to use alone; known_hosts: file that alone says
        which host keys are right; then the user's ssh
            configuration is left out.
    """

    name: str
    address: str
    port: int | None = None
    identity: Path | None = None
    known_hosts: Path | None = None

    def arguments(self, control: Path) -> list[str]:
        """ssh with every option up to the address. `control`: the socket by which further sessions
        share the connection."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(CONNECT_SECONDS),
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "ControlPath": str(control),
        }
        arguments = ["ssh", "-T"]
        if self.known_hosts is not None:
            arguments += ["-F", "/dev/null"]
            options.update(
                {
                    "UserKnownHostsFile": str(self.known_hosts),
                    "GlobalKnownHostsFile": "/dev/null",
                    "StrictHostKeyChecking": "yes",
                }
            )
        if self.identity is not None:
            arguments += ["-i", str(self.identity)]
            options["IdentitiesOnly"] = "yes"
        if self.port is not None:
            arguments += ["-p", str(self.port)]
        return [
            *arguments,
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
        ]


class HostLost(RunError):
    """The connection to a host ended unexpectedly."""


class Channel:
    """A connection from its making to its end. It is never mended: a new one is another channel."""

    def __init__(self, destination: Destination, directory: Path) -> None:
        """Connect; RunError with the way out where that fails. `directory`: of ours alone, for the
        socket and ssh's words."""
        self._to, self._control, self._errors = destination, directory / "s", directory / "words"
        self._control.unlink(missing_ok=True)
        self._buffer = b""
        self.lost = False
        word = secrets.token_hex(8)
        try:
            with self._errors.open("wb") as errors:
                self._ssh = subprocess.Popen(
                    [
                        *destination.arguments(self._control),
                        "-o",
                        "ControlMaster=yes",
                        "--",
                        destination.address,
                        _remote(word),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    process_group=0,
                    preexec_fn=_die_with(os.getpid()),
                )
        except OSError as error:
            raise RunError(
                f"ssh can't be started: {error.strerror or error}",
                where=destination.name,
                hint="install it: apt install openssh-client",
            ) from None
        try:
            self._hand_over(word)
            self.far: dict[str, Any] = self.call("hello")[0]
        except HostLost:
            raise self._connection_error() from None
        if tuple(map(int, str(self.far["python"]).split(".")[:2])) < OLDEST_PYTHON:
            self.close()
            raise RunError(
                f"its Python is {self.far['python']}",
                where=destination.name,
                hint="Python 3.9 or newer must be there",
            )

    def command(self, *words: str) -> list[str]:
        """The argument list that runs a command over this very connection, in a session of its
        own."""
        return [
            *self._to.arguments(self._control),
            "-o",
            "ControlMaster=no",
            "--",
            self._to.address,
            shlex.join(words),
        ]

    def call(
        self, do: str, data: bytes = b"", *, allow: float = 0.0, **values: Any
    ) -> tuple[Any, bytes]:
        """Send a request that takes at most `allow` seconds: the answer and its raw
        bytes.

        Raises OSError as the far side's system did, ValueError for what else went wrong there,
        HungError where a command waits in the kernel there, HostLost where no answer comes.
        """
        request = {"do": do, "with": values, **({"bytes": len(data)} if data else {})}
        try:
            self._send(json.dumps(request).encode() + b"\n" + data)
            deadline = time.monotonic() + allow + PATIENCE
            answer = json.loads(self._line(deadline))
            payload = self._take(int(answer.get("bytes", 0)), deadline)
        except ValueError:
            raise self._loss() from None
        except (
            BaseException
        ):  # an answer that is still to come would be taken for that to the next request
            self._loss()
            raise
        if "os" in answer:
            number, path = answer["os"]
            raise OSError(number, os.strerror(number) if number else answer["wrong"], path)
        if "hung" in answer:
            raise HungError(answer["hung"], where=self._to.name, hint=FROZEN)
        if "wrong" in answer:
            raise ValueError(answer["wrong"])
        return answer["ok"], payload

    def close(self) -> None:
        """Hang up; the far end ends what still runs. Safe to call twice."""
        self.lost = True
        if self._ssh.stdin is not None and not self._ssh.stdin.closed:
            with contextlib.suppress(OSError):
                self._ssh.stdin.close()
            try:
                self._ssh.wait(CONNECT_SECONDS)
            except subprocess.TimeoutExpired:
                self._ssh.kill()
                self._ssh.wait()
            if self._ssh.stdout is not None:
                self._ssh.stdout.close()

    def _hand_over(self, word: str) -> None:
        package = Path(__file__).parent.parent
        text = json.dumps(
            [
                [name, (package / f"{name.replace('.', '/')}.py").read_text("utf-8")]
                for name in _MODULES
            ]
        ).encode()
        self._send(f"{len(text)}\n".encode() + text)
        deadline = time.monotonic() + CONNECT_SECONDS + PATIENCE
        while self._line(deadline).strip() != f"{_READY} {word}".encode():
            pass  # what a shell's start-up files print

    def _connection_error(self) -> RunError:
        """ssh's own words, with what helps."""
        self.close()
        words = self._words()
        hint = "see that 'ssh' gets there without a question, by keys (ssh-copy-id) and a known host key"
        if "iolab: no python" in words:
            return RunError(
                "has no Python of 3.9 or newer, through which iolab works there",
                where=self._to.name,
                hint="install it: apt install python3 (Debian, Ubuntu), dnf install python3 (Fedora)",
            )
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        return RunError(
            f"can't be reached: {lines[-1][:200] if lines else 'ssh ended without a word'}",
            where=self._to.name,
            hint=hint,
        )

    def _words(self) -> str:
        try:
            return self._errors.read_text("utf-8", "replace")
        except OSError:
            return ""

    def _send(self, data: bytes) -> None:
        if self.lost or self._ssh.stdin is None:
            raise self._loss()
        try:
            self._ssh.stdin.write(data)
            self._ssh.stdin.flush()
        except OSError:
            raise self._loss() from None

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            self._fill(deadline)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _take(self, size: int, deadline: float) -> bytes:
        if len(self._buffer) < size:
            parts = [self._buffer]
            have, self._buffer = len(self._buffer), b""
            while have < size:
                self._fill(deadline)
                parts.append(self._buffer)
                have, self._buffer = have + len(self._buffer), b""
            self._buffer = b"".join(parts)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _fill(self, deadline: float) -> None:
        assert self._ssh.stdout is not None
        ready, _, _ = select.select(
            [self._ssh.stdout], [], [], max(0.0, deadline - time.monotonic())
        )
        data = os.read(self._ssh.stdout.fileno(), 1 << 20) if ready else b""
        if not data:
            raise self._loss()
        self._buffer += data

    def _loss(self) -> HostLost:
        already, self.lost = self.lost, True
        if not already:
            self._ssh.kill()
            self._ssh.wait()
        return HostLost(
            "the connection to the host is lost",
            where=self._to.name,
            hint="check that the host is up; --resume runs what is missing",
        )


def _remote(word: str) -> str:
    """What the far side's shell runs: the first Python that is new enough, with a text that reads
    the rest from standard input."""
    newest, oldest = 20, OLDEST_PYTHON[1]
    names = " ".join(["python3", *(f"python3.{minor}" for minor in range(newest, oldest - 1, -1))])
    test = f"import sys; sys.exit(sys.version_info < (3, {oldest}))"
    script = (
        f'for python in {names}; do if "$python" -I -S -c "{test}" 2>/dev/null; then exec "$python" -I -S -c "$0" {word}; fi; done; '
        'echo "iolab: no python" >&2; exit 127'
    )
    return shlex.join(["sh", "-c", script, _BOOTSTRAP])


def _die_with(parent: int) -> Callable[[], None]:
    """ssh ends when iolab dies, whatever it dies of: then the far end hears it."""

    def ask() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)

    return ask
