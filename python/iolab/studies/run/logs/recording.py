# SPDX-License-Identifier: Apache-2.0
"""The recording of a study: one recorder for all runs. Each run is a mark on it, and segments end
at the boundaries of runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock
from iolab.base.errors import RunError
from iolab.hosts.base.host import Host, Process
from iolab.hosts.kinds.local import LocalHost
from iolab.hosts.ssh.remote import elsewhere
from iolab.recordings.record.control import NAME as CONTROL
from iolab.recordings.record.control import say
from iolab.recordings.record.devices import find_devices
from iolab.recordings.record.probe.privilege import need_root_for
from iolab.recordings.record.probe.program import NAME, check_sources, probe_path
from iolab.recordings.record.probe.remote import check_far
from iolab.recordings.record.settings import COUNTERS

from ...sources.recorded import RecordedSource
from ...targets.base import Target

RECORDINGS = "recordings"
"""Below the results: a recording for each host."""
_BEGIN = 30.0
"""Seconds that a recorder has to begin: the recorder of a killed study may still be sealing."""
_BEGIN_FAR = 120.0
"""The same, where the probe must first be brought to another host."""
_SETTLE = 30.0
"""Seconds within which everything up to a run's end must be there."""


@dataclass(frozen=True)
class Wanted:
    """What is recorded: sources, and the devices and mount points that the study names for them
    (none: the targets')."""

    sources: tuple[str, ...]
    devices: tuple[str, ...]
    mounts: tuple[str, ...]

    @classmethod
    def of(cls, sources: Mapping[str, Any], plugins: Mapping[str, type]) -> Wanted | None:
        """From a study's sources with their options; None where nothing is recorded."""
        recorded = {
            name: options
            for name, options in sources.items()
            if issubclass(plugins[name], RecordedSource)
        }
        if not recorded:
            return None
        return cls(
            tuple(recorded),
            *(
                tuple(word for options in recorded.values() for word in getattr(options, key, ()))
                for key in ("devices", "fs")
            ),
        )


class StudyRecorder:
    """Begins a recorder once the targets are there, marks each run, ends it.

    The recorder runs on this machine, the `keeper`, wherever the study does; on another host it has
    a probe over a connection of its own.
    """

    def __init__(
        self,
        wanted: Wanted,
        host: Host,
        clock: Clock,
        results: Path,
        environment: Mapping[str, str],
        notice: Callable[[str], None],
    ) -> None:
        self._wanted, self._host, self._clock, self._notice = wanted, host, clock, notice
        self._environment = environment
        self._far = elsewhere(host)
        self.keeper: Host = host if self._far is None else LocalHost()
        self.directory = results.absolute() / RECORDINGS / host.name
        self._link = f"{RECORDINGS}/{host.name}"
        self._process: Process | None = None
        self._targets: Sequence[Target] = ()
        self._before: dict[str, Any] = {}
        self._begun_ns = 0

    def check(self) -> None:
        """RunError where nothing can be recorded here: not root, no probe, a kernel that doesn't
        tell."""
        sources = self._wanted.sources
        if self._far is not None:
            check_far(self._far, sources)
            check_sources(
                self._far, self._far.keep_program(NAME, probe_path().read_bytes()), sources
            )
        elif isinstance(self._host, LocalHost):
            need_root_for(sources)
            check_sources(self._host, str(probe_path()), sources)
        else:
            raise RunError(
                f"{' and '.join(sources)} can't be recorded on host '{self._host.name}'",
                hint="leave them out of the study's sources",
            )

    def start(self, targets: Sequence[Target]) -> None:
        """Begin to record; RunError with the recorder's words where that fails."""
        self._targets = targets
        command = [
            sys.executable,
            "-m",
            "iolab.cli",
            "record",
            *self._wanted.sources,
            "-o",
            str(self.directory),
            "--quiet",
            "--keep",
            "all",
            "--keep-for",
            "ever",
            # a source that is suspended costs the run; what recording takes is judged instead
            "--budget",
            "none",
            *self._of_host(),
        ]
        for device in self._devices(targets):
            command += ["--device", device]
        for mount in self._mounts(targets):
            command += ["--fs", mount]
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        words = self.directory.parent / f"{self.directory.name}.log"
        limit = self._clock.monotonic() + (_BEGIN if self._far is None else _BEGIN_FAR)
        while True:
            # SUDO_UID: a study as root has a recorder as root, since their files are together
            self._process = self.keeper.start(
                command,
                cwd=self.directory.parent,
                stdout=Path(os.devnull),
                stderr=words,
                environment={**self._environment, "SUDO_UID": ""},
            )
            said = self._await(self._process, words, limit)
            if said is None:
                break
            if "is being recorded" not in said or self._clock.monotonic() >= limit:
                raise RunError(f"recording can't begin: {said}")
            self._clock.sleep(0.5)
        for line in _lines(words):
            if line.startswith("note: "):
                self._notice(line.removeprefix("note: "))

    def begin(self) -> None:
        """A run's load is about to start: what came before is sealed. A recorder that died since is
        begun again."""
        if self._process is not None and (code := self._process.wait(0)) is not None:
            self._notice(f"the recorder died with exit code {code}; it is begun again")
            try:
                self.start(self._targets)
            except RunError as error:
                self._notice(str(error))
        self._before = self._cut()
        self._begun_ns = self._clock.realtime_ns()

    def end(
        self, run: str, window: tuple[int, int] | None, facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A run's load ended: its mark, and what `run.json` says of it: where it is, its span,
        events and losses by source, the share of all CPU time that recording took (`cpu_share`),
        and in words what interrupted it, if anything did.

        The span is by the recording's time; `ahead_ns`: how far that is ahead of the clock of
        `window`. A problem does not affect the measurement: it is reported, and the gate sees it.
        """
        report: dict[str, Any] = {
            "path": self._link,
            "mark": run,
            "from_ns": self._begun_ns,
            "until_ns": self._clock.realtime_ns(),
        }
        sent = self._clock.monotonic()
        try:
            now = say(self.directory, {"word": "status"})
            late_ns = round((self._clock.monotonic() - sent) * 1e9)
            before = (
                self._before
                if "now_ns" in self._before
                else {**now, "now_ns": self._begun_ns + int(now["ahead_ns"])}
            )
            from_ns = int(before["now_ns"])
            until_ns = max(from_ns, int(now["now_ns"]) - late_ns)
            ahead_ns = _ahead(
                window, (from_ns, until_ns), (int(before["ahead_ns"]), int(now["ahead_ns"]))
            )
            report |= {
                "from_ns": from_ns,
                "until_ns": until_ns,
                **({"ahead_ns": ahead_ns} if ahead_ns else {}),
            }
            own = {"window": [time_ns + ahead_ns for time_ns in window]} if window else {}
            say(
                self.directory,
                {
                    "word": "mark",
                    "label": run,
                    "from_ns": from_ns,
                    "until_ns": until_ns,
                    "own": True,
                    "kind": "run",
                    "link": f"runs/{run}",
                    "facts": {**facts, **own},
                },
            )
        except RunError as error:
            return {**report, "problem": str(error)}
        after = self._cut()
        problem = after.get("problem") or self._before.get("problem")
        if problem:
            return {**report, "problem": problem}
        counted = [name for name in self._wanted.sources if name != COUNTERS]
        away = int(after.get("deaths", 0)) - int(self._before.get("deaths", 0))
        if away > 0:
            report["interrupted"] = [str(words) for words in after.get("troubles", [])][-away:]
        if (share := _cpu_share(self._before, after)) is not None:
            report["cpu_share"] = share
        return {
            **report,
            **{
                key: {
                    name: _of(after, key, name) - _of(self._before, key, name) for name in counted
                }
                for key in ("events", "lost")
            },
        }

    @property
    def is_recording(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.wait(0) is None

    def take_in(self, origin: Path, label: str, span: tuple[int, int]) -> None:
        """Have the segments of another recording moved into this one; see
        `RecordingWriter.take_in`. RunError where it can't be."""
        say(
            self.directory,
            {
                "word": "take",
                "path": str(origin.absolute()),
                "label": label,
                "from_ns": span[0],
                "until_ns": span[1],
            },
            timeout=_SETTLE,
        )

    def stop(self) -> None:
        """End the recording. Never raises."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(RunError):
            say(self.directory, {"word": "stop"})
        if process.wait(_SETTLE) is None:
            process.end()
        words = self.directory.parent / f"{self.directory.name}.log"
        code = process.wait(0)
        if code:
            self._notice(
                f"the recorder ended with exit code {code}: {' '.join(_lines(words)[-1:])}"
            )

    def _cut(self) -> dict[str, Any]:
        """Wait until everything up to now is sealed; the recorder's counts, or the `problem`."""
        try:
            return say(self.directory, {"word": "cut"}, timeout=_SETTLE)
        except RunError as error:
            self._notice(str(error))
            return {"problem": str(error)}

    def _of_host(self) -> list[str]:
        """The recorder's arguments that say what is recorded, and what works there for the study."""
        if self._far is None:
            return ["--for-study", str(os.getpid())]
        return ["--for-study", str(self._far.far["pid"]), "--host", self._far.words]

    def _devices(self, targets: Sequence[Target]) -> list[str]:
        if "block" not in self._wanted.sources:
            return []
        names = self._wanted.devices or tuple(
            dict.fromkeys(name for target in targets for name in target.devices())
        )
        if not names:
            raise RunError(
                "block: the target has no block devices to record",
                hint='name them: sources.block.devices = ["sdb"]',
            )
        return [device.name for device in find_devices(self._host, names)]

    def _mounts(self, targets: Sequence[Target]) -> list[str]:
        if "syscall" not in self._wanted.sources:
            return []
        points = (
            target.facts().facts.get("filesystem", {}).get("mounted_at") for target in targets
        )
        return list(self._wanted.mounts or dict.fromkeys(str(point) for point in points if point))

    def _await(self, process: Process, words: Path, limit: float) -> str | None:
        """None once it listens; its last words where it ended."""
        while (code := process.wait(0.1)) is None:
            if (self.directory / CONTROL).exists():
                return None
            if self._clock.monotonic() >= limit:
                process.end()
                return "nothing happened for too long"
        return (_lines(words) or [f"exit code {code}"])[-1].removeprefix("iolab: ")


def _ahead(window: tuple[int, int] | None, span: tuple[int, int], ahead: Sequence[int]) -> int:
    """How far the recording is ahead of the clock of the window: at the begin of the run, or at its
    end if only that puts the window into the span."""
    fitting = [
        offset
        for offset in ahead
        if window is not None and span[0] <= window[0] + offset and window[1] + offset <= span[1]
    ]
    return [*fitting, *ahead][0]


def _cpu_share(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | None:
    """The share of all CPU time that recording took between two answers; None where a recorder
    began again in between, or does not say."""
    try:
        passed_ns = (after["now_ns"] - before["now_ns"]) * after["cpus"]
        spent_ns = after["cost_ns"] - before["cost_ns"]
    except KeyError:
        return None
    return round(spent_ns / passed_ns, 4) if passed_ns > 0 and spent_ns >= 0 else None


def _of(status: Mapping[str, Any], key: str, name: str) -> int:
    return int(status.get(key, {}).get(name, 0))


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return []
