# SPDX-License-Identifier: Apache-2.0
"""A systemd unit that resumes a study after a restart of its host. It is removed once the study is
done."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.base.errors import RunError
from iolab.base.files import write_atomically
from iolab.hosts.base.host import Host

from .resume import begun

BOOTED = "/run/systemd/system"
"""A directory that exists where systemd is the init system, see sd_booted(3)."""
MARK = "# written by iolab run --install-resume for "


_VARIABLES = ("HOME", "PATH", "PYTHONPATH", "XDG_STATE_HOME")
"""What iolab is found by, and where it keeps that the study's commands were agreed to."""


class ResumeUnit:
    """The unit of one results directory: of the system for root, else of the user."""

    def __init__(
        self, host: Host, results: Path, *, units: Path | None = None, is_root: bool | None = None
    ) -> None:
        """`units`: directory of units; systemd's own for the user unless given."""
        self._host, self._results = host, results.absolute()
        self._is_root = os.geteuid() == 0 if is_root is None else is_root
        self._units = units or (Path("/etc/systemd/system") if self._is_root else _user_units())
        digest = hashlib.sha256(str(self._results).encode()).hexdigest()[:8]
        self.name = f"iolab-resume-{digest}.service"
        self.path = self._units / self.name

    def install(
        self, arguments: Sequence[str], directory: Path, targets: Sequence[str] = ()
    ) -> None:
        """Write and enable the unit.

        Args:
            arguments: of iolab. directory: where it runs.
            targets: paths that are measured. The study waits for the file systems of these, of the
            results and of `directory`, which systemd else mounts at any time (nofail, systemd.mount(5)).

        Raises RunError where the host has no systemd, the unit's file belongs to another study, or it
        cannot be written or enabled.
        """
        if not self._host.is_directory(BOOTED):
            raise RunError(
                "this host has no systemd, which would resume the study",
                where="--install-resume",
                hint="leave it out, and run iolab run --resume after each restart",
            )
        if self.path.exists() and not self._is_own():
            raise RunError("is not a unit of this study", where=self.path, hint="remove it first")
        command = [sys.executable, "-m", "iolab", *arguments]
        paths = (self._results, directory, *(directory / path for path in targets))
        mounts = dict.fromkeys(os.path.normpath(path) for path in paths)
        text = _text(self._results, command, directory, list(mounts), self._target)
        try:
            self._units.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, text)
        except OSError as error:
            raise RunError(
                f"can't be written: {error.strerror or error}", where=self.path
            ) from None
        for words in (["daemon-reload"], ["enable", self.name]):
            try:
                failure = self._systemctl(words)
            except RunError as error:
                failure = str(error)
            if failure:
                self.remove()
                raise RunError(f"the unit can't be enabled: {failure}", where="--install-resume")

    def remove(self) -> bool:
        """Disable and delete the unit; False where this study has none. A failure to disable
        leaves a dangling link at worst, which systemd ignores."""
        if not self.path.is_file() or not self._is_own():
            return False
        with contextlib.suppress(RunError):
            self._systemctl(["disable", self.name])
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(
                f"can't be removed: {error.strerror or error}", where=self.path
            ) from None
        with contextlib.suppress(RunError):
            self._systemctl(["daemon-reload"])
        return True

    @contextlib.contextmanager
    def remove_unless_begun(self, results: Path) -> Iterator[None]:
        """Remove the unit where the study did not begin."""
        try:
            yield
        except Exception:
            if not begun(results):
                self.remove()
            raise

    @property
    def _target(self) -> str:
        return "multi-user.target" if self._is_root else "default.target"

    def _is_own(self) -> bool:
        """Whether the file was written for these results: no other file is ever deleted."""
        try:
            return self.path.read_text("utf-8").startswith(f"{MARK}{_escape(str(self._results))}\n")
        except (OSError, UnicodeDecodeError):
            return False

    def _systemctl(self, words: Sequence[str]) -> str:
        """The failure of a command in words; empty where it worked."""
        user = [] if self._is_root else ["--user"]
        done = self._host.run(["systemctl", *user, *words])
        lines = done.stderr.strip().splitlines()
        return (lines[-1] if lines else f"exit code {done.exit_code}") if done.exit_code else ""


def resume_arguments(study: Path, results: Path, *, destructive: bool) -> list[str]:
    """Arguments of iolab that resume a study from any directory."""
    flags = ["--destructive"] if destructive else []
    return ["run", str(study.absolute()), "-o", str(results.absolute()), "--resume", *flags]


def _user_units() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if config.startswith("/") else Path.home() / ".config"
    return base / "systemd" / "user"


def _text(
    results: Path, command: Sequence[str], directory: Path, mounts: Sequence[str], target: str
) -> str:
    paths = " ".join(_quote(path).replace("$$", "$") for path in mounts)
    words = " ".join(_quote(word) for word in command)
    environment = " ".join(
        _quote(f"{name}={os.environ[name]}").replace("$$", "$")
        for name in _VARIABLES
        if os.environ.get(name)
    )
    return f"""{MARK}{_escape(str(results))}
[Unit]
Description=Resume an iolab study: {_escape(results.name)}
After=local-fs.target network-online.target
Wants=network-online.target
RequiresMountsFor={paths}

[Service]
Type=exec
WorkingDirectory={_escape(str(directory))}
Environment={environment}
ExecStart={words}
KillSignal=SIGTERM
TimeoutStopSec=60

[Install]
WantedBy={target}
"""


def _escape(text: str) -> str:
    """Text of a unit: no line breaks, and no specifiers (systemd.unit(5))."""
    return "".join(char if char.isprintable() else "?" for char in text).replace("%", "%%")


def _quote(word: str) -> str:
    """A word of ExecStart, as systemd.service(5) reads it: no variables, specifiers or escapes."""
    if not all(char.isprintable() for char in word):
        raise RunError(
            f"{word!r} has a character that a unit cannot have", where="--install-resume"
        )
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("%", "%%")
    return f'"{escaped}"'
