# SPDX-License-Identifier: Apache-2.0
"""Profiles: perf samples the CPUs of the run's host during its steady part; folded stacks and how
they came about are the evidence.

What perf writes stays on the host, in a directory that is on record before it is made and goes when
the run is over. Its text is folded here, line by line: some hundred bytes a sample become some a
stack.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from iolab.base.clock import Clock
from iolab.base.errors import FormatError, RunError
from iolab.base.files import write_atomically
from iolab.formats.profiles.perf_script import fold
from iolab.hosts.base.host import Completed, Host, text_or_none
from iolab.hosts.facts.host_facts import host_facts
from iolab.hosts.ssh.remote_paths import scratch_on

from ...plan.commands import Action, Command
from ...plan.profile import Profiling
from ...results.open.profiles import FACTS_FILE, SCHEMA, STACKS_FILE
from ...targets.disks import make_recorded
from ...targets.made import Made
from ...workloads.base import Load
from ..commands import LONGEST_WAIT, OUTPUTS, CommandEnd, CommandRunner, Running
from ..resuming.interrupts import Interrupts

SCRATCH = "profile-data"
"""Directory on the host, made for each profile: below the results where that is this machine."""
MARK = "profile"
_DATA = "perf.data"
_LONGEST = 600.0
"""Seconds that perf may take to turn what it sampled into text."""
_LOST = re.compile(r"lost (\d+) chunks")
_OPEN = -1
"""perf_event_paranoid under which every user may sample all CPUs and the kernel
(sysctl/kernel.rst)."""


class Profiler:
    """Makes the profiles of one study, one at a time."""

    def __init__(self, wanted: Profiling, host: Host, clock: Clock, directory: Path) -> None:
        """`directory`: the results'."""
        self._wanted, self._host, self._clock = wanted, host, clock
        self._scratch = scratch_on(host, directory / SCRATCH)
        self._made = Made(self._scratch)

    def problem(self) -> str | None:
        """Why this host gives no profile, and what to do, in words; None where it does. Tries it
        for a moment, keeping nothing."""
        where = f"host '{self._host.name}'"
        if self._host.which("perf") is None:
            return (
                f"perf is not installed on {where}: apt install linux-perf (Debian), linux-tools-generic (Ubuntu), dnf install perf "
                "(Fedora)"
            )
        try:
            tried = self._host.run(self._record("/dev/null", ["true"]))
        except RunError as error:
            return f"perf can't be used on {where}: {error}"
        if tried.exit_code == 0:
            return None
        level = text_or_none(self._host, "/proc/sys/kernel/perf_event_paranoid")
        refused = (
            "perf_event_paranoid" in tried.stderr
            or "limited" in tried.stderr
            or "permi" in tried.stderr.lower()
        )
        if refused:
            return (
                f"perf may not sample all CPUs of {where}, where kernel.perf_event_paranoid is {level or 'unknown'}: measure there "
                f"as root, or have root say sysctl kernel.perf_event_paranoid={_OPEN} kernel.kptr_restrict=0"
            )
        return f"perf can't sample on {where}: {_words(tried)}"

    def action(self, load: Load) -> Action:
        """What is done inside a run of that load: sample, all CPUs, with their stacks."""
        after, seconds = self._span(load)
        arguments = self._record(f"{self._scratch}/{_DATA}", ["sleep", f"{seconds:g}"])
        return Action(after, MARK, Command(tuple(arguments), shlex.join(arguments)))

    def begin(self) -> None:
        """Make room for what perf writes; RunError where that can't be done."""
        self.end()
        make_recorded(self._host, self._made, self._scratch)

    def end(self) -> list[str]:
        """Remove what perf wrote; what is still there, in words. Safe to call twice."""
        return self._made.undo(self._host)

    def collect(
        self, run_dir: Path, load: Load, commands: CommandRunner, interrupts: Interrupts
    ) -> None:
        """Fold what was sampled into the run's evidence. RunError where there is nothing, or it
        can't be read."""
        after, planned = self._span(load)
        command = [
            "perf",
            "script",
            "-i",
            f"{self._scratch}/{_DATA}",
            "-F",
            "comm,tid,time,event,ip,sym,dso",
        ]
        running = commands.start(
            Command(tuple(command), shlex.join(command)), "what perf sampled, as text", run_dir, {}
        )
        text = run_dir / OUTPUTS / f"{running.number:02d}.out"
        try:
            end = self._wait(running, commands, interrupts)
            if end.failure:
                raise RunError(f"no profile: perf script: {end.failure}")
            with text.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                table = fold(lines, text.name)
            write_atomically(run_dir / STACKS_FILE, table.to_text(), durable=False)
        except FormatError as error:
            raise RunError(f"no profile: what perf sampled {error.message}") from None
        finally:
            text.unlink(missing_ok=True)
        action = self.action(load)
        assert action.command is not None
        facts: dict[str, Any] = {
            "schema": SCHEMA,
            "frequency": self._wanted.frequency,
            "after": after,
            "seconds": round(table.seconds or planned, 6),
            "event": table.event,
            "samples": table.samples,
            "damaged": table.damaged,
            "lost": self._lost(run_dir),
            "cpus": host_facts(self._host).facts.get("cpus"),
            "tool": self._version(),
            "commands": [list(action.command.arguments), command],
        }
        write_atomically(run_dir / FACTS_FILE, json.dumps(facts, indent=1) + "\n")

    def _span(self, load: Load) -> tuple[float, float]:
        return self._wanted.span(load.runtime, by_size=not load.facts.get("time_based", True))

    def _record(self, data: str, command: list[str]) -> list[str]:
        return [
            "perf",
            "record",
            "-F",
            str(self._wanted.frequency),
            "-a",
            "-g",
            "-o",
            data,
            "--",
            *command,
        ]

    def _wait(
        self, running: Running, commands: CommandRunner, interrupts: Interrupts
    ) -> CommandEnd:
        """Let it come to its end; a user who stops the study, and too long a time, end it."""
        begin = self._clock.monotonic()
        while running.process.wait(LONGEST_WAIT) is None:
            late = self._clock.monotonic() - begin > _LONGEST
            if late or interrupts.stop_now:
                end = commands.finish(running, stopped=True)
                return replace(end, failure=f"took longer than {_LONGEST:g} s") if late else end
        return commands.finish(running)

    def _lost(self, run_dir: Path) -> int:
        """Chunks of samples that perf record says it lost."""
        said = "".join(
            path.read_text("utf-8", "replace") for path in sorted((run_dir / OUTPUTS).glob("*.err"))
        )
        return sum(int(count) for count in _LOST.findall(said))

    def _version(self) -> str:
        with contextlib.suppress(RunError):
            return self._host.run(["perf", "--version"]).stdout.strip()
        return ""


def _words(tried: Completed) -> str:
    lines = [
        line.strip()
        for line in tried.stderr.splitlines()
        if line.strip() and line.strip() != "Error:"
    ]
    return lines[0][:200] if lines else f"exit code {tried.exit_code}"
