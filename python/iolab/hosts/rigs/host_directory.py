# SPDX-License-Identifier: Apache-2.0
"""The directory of builds on a host that is reached by ssh, `/opt/iolab/builds`: files that are sent
there, and its lock. Nothing outside it is written."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.base.errors import RunError
from iolab.base.untrusted_text import visible

from ..base.host import Process
from ..ssh.host import SshHost
from .build import first_error, last_words

WAIT = 0.2
"""Seconds between looks at a process of the host."""
LOCKED = 75
"""Exit code of flock for a lock that is held."""
_DIRECTORY = re.compile(r"(/[A-Za-z0-9._-]+)+")
_SHORT = 600.0
"""Seconds for moving and deleting a build."""
_PREPARE = "\n".join(
    (
        "umask 022",
        'mkdir -p "$1" || exit',
        'if [ ! -d "$1/.work" ] && [ -n "$(ls -A "$1")" ]; then',
        '  echo "$1 has files of other programs" >&2',
        "  exit 1",
        "fi",
        'mkdir -p "$1/.work" "$1/.bin"',
    )
)


class HostDirectory:
    """The directory of builds of a host.

    Attributes:
        path: on the host.
    """

    def __init__(self, host: SshHost) -> None:
        self.host, self.path = host, str(host.far["builds"])
        if not _DIRECTORY.fullmatch(self.path):
            raise RunError(
                f"'{visible(self.path)}' is not a directory for builds",
                where=host.name,
                hint="correct IOLAB_BUILDS in the environment there",
            )

    def prepare(self) -> None:
        """Make it. RunError where that is impossible, or it has files of other programs."""
        self.run(
            _PREPARE,
            f"{self.path} can't be used",
            hint=f"connect as root, or give the directory to the user: sudo install -d -o USER {self.path}",
        )

    def run(self, script: str, failure: str, *words: str, hint: str | None = None) -> None:
        """Run a script of the shell; its arguments are the directory and `words`. RunError with the
        failure and the last line where it fails."""
        exit_code, reason = self.try_script(script, *words)
        if exit_code:
            raise RunError(f"{failure}: {reason}", where=self.host.name, hint=hint)

    def try_script(self, script: str, *words: str) -> tuple[int, str]:
        """As `run`: the exit code, and the last line of its errors. RunError while another iolab
        has the lock."""
        completed = self.host.run(["sh", "-c", script, "sh", self.path, *words], timeout=_SHORT)
        if completed.exit_code == LOCKED:
            raise self._lock_error()
        return completed.exit_code, visible(last_words(completed.stderr))

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a text to a file. OSError where that fails."""
        data = text.encode("utf-8", "surrogateescape")
        self.host.call_files("put", data, path=path, mode=mode)

    @contextlib.contextmanager
    def lock(self, scratch: Path) -> Iterator[Process]:
        """A process that has the lock; the host ends it if the connection is lost. RunError where
        another iolab has the lock.

        `scratch`: an empty directory of this machine.
        """
        file = f"{self.path}/.work/lock"
        process = self.host.start(
            ["flock", "-n", "-E", str(LOCKED), file, "sleep", "infinity"],
            cwd=scratch,
            stdout=scratch / "lock.out",
            stderr=scratch / "lock.err",
        )
        try:
            code = process.wait(2 * WAIT)
            if code == LOCKED:
                raise self._lock_error()
            if code is not None:
                reason = last_words((scratch / "lock.err").read_text("utf-8", "replace"))
                raise RunError(f"{file} can't be locked: {visible(reason)}", where=self.host.name)
            yield process
        finally:
            with contextlib.suppress(RunError):
                process.end()

    def send(
        self, tree: Path, names: Sequence[str], target: str, lock: Process, *, is_new: bool
    ) -> None:
        """Send files of a tree to a directory there. `is_new`: they keep their times, otherwise
        they are newer than all that exists. RunError where the disk is full, for instance."""
        touch = [] if is_new else ["-m"]
        unpack = ["tar", "-x", "-f", "-", "-C", target, "--no-same-owner", "-p", *touch]
        self._pipe(unpack, names, tree, lock)

    def delete(self, names: Sequence[str], target: str, lock: Process) -> None:
        """Delete files of a directory there."""
        script = 'cd "$1" && xargs -0 rm -f --'
        self._pipe(["sh", "-c", script, "sh", target], names, None, lock)

    def _pipe(
        self, command: list[str], names: Sequence[str], tree: Path | None, lock: Process
    ) -> None:
        """Run a command on the host. Its input: the names, or an archive of these files of a
        tree."""
        with tempfile.TemporaryFile() as listing, tempfile.TemporaryFile() as errors:
            listing.write(
                b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
            )
            listing.seek(0)
            pack = None
            if tree is not None:
                words = ["tar", "-c", "-f", "-", "-C", str(tree), "--no-recursion"]
                pack = subprocess.Popen(
                    [*words, "--null", "--verbatim-files-from", "-T", "-"],
                    stdin=listing,
                    stdout=subprocess.PIPE,
                )
            remote = subprocess.Popen(
                self.host.session(*command),
                stdin=listing if pack is None else pack.stdout,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            try:
                if pack is not None and pack.stdout is not None:
                    pack.stdout.close()
                while remote.poll() is None:
                    lock.wait(WAIT)  # the host counts as lost if it is silent for a minute
                packed = 0 if pack is None else pack.wait()
            finally:
                for process in (remote, pack):
                    if process is not None and process.poll() is None:
                        process.kill()
                        process.wait()
            if remote.returncode or packed:
                errors.seek(0)
                text = errors.read().decode("utf-8", "replace")
                raise RunError(
                    f"the sources can't be sent: {visible(first_error(text) or last_words(text))}",
                    where=self.host.name,
                )

    def _lock_error(self) -> RunError:
        return RunError(
            "another iolab makes or deletes builds there", where=self.host.name, hint="wait for it"
        )
