# SPDX-License-Identifier: Apache-2.0
"""The watch over alerts: once a second the latest values of their statistics, what follows from
them, and what is then done.

Whatever was said is a line of JSON in the log of alerts, one file of limited size.
"""

from __future__ import annotations

import datetime
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.base.files import open_regular
from iolab.recordings.ask.answers.answers import Series
from iolab.recordings.ask.answers.json_form import number
from iolab.recordings.ask.engine.engine import Halted
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.kept.writer import ahead_ns
from iolab.recordings.ask.language.fields import QUANTIZED
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse, same
from iolab.recordings.heatmap.overlays import lines as percentile_lines
from iolab.recordings.store.base.counts import UNITS, HeatCounts
from iolab.recordings.store.base.metadata import read_facts

from ..base.json_store import JsonStore
from ..base.store import NotServed, Store
from ..queries.listing import is_live
from .alert import (
    MOST_PREVIEWED,
    Alert,
    AlertLine,
    AlertLog,
    AlertPreview,
    Alerts,
    AlertState,
    Keep,
    RaisedSpan,
)
from .alert_rule import SECOND, Event, Reading, Standing, parse_hours, sentence, step
from .commands import Commands

LARGEST = 4 << 20
"""Bytes after which the file becomes `.1`, instead of the earlier one."""
MOST_LINES = 1000
"""Lines of an answer: the latest."""


class LogFile:
    """The file, made once there is something to say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def write(self, line: AlertLine) -> None:
        """Add a line. IolabError where it can't be written."""
        data = line.model_dump_json().encode() + b"\n"
        try:
            with self._lock:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                number = os.open(
                    self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600
                )
                with os.fdopen(number, "ab") as file:
                    file.write(data)
                    full = file.tell() > LARGEST
                if full:
                    self.path.replace(self._before)
        except OSError as error:
            raise IolabError(
                f"the log of alerts can't be written: {error.strerror}", where=self.path
            ) from None

    def latest(self) -> AlertLog:
        """The latest lines, the oldest first, of the file and of that before it; damaged ones are
        left out, as is an unfinished one."""
        try:
            now, then = _read_end(self.path), _read_end(self._before)
        except OSError as error:
            raise FormatError(f"the log of alerts can't be read: {error.strerror}") from None
        # another service may have moved the file between the two
        parts = [then[1], now[1]] if now[0] != then[0] else [now[1]]
        texts = [text for data in parts for text in data.split(b"\n")[:-1]]
        alert_lines: list[AlertLine] = []
        while texts and len(alert_lines) < MOST_LINES:
            line = _line(texts.pop())
            if line is not None:
                alert_lines.append(line)
        return AlertLog(lines=alert_lines[::-1], left=len(texts))

    @property
    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")


def _read_end(path: Path) -> tuple[int | None, bytes]:
    """(inode, None without a file; content). Of a file that another process let grow, only
    the end is read."""
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            start = file.seek(max(0, status.st_size - 2 * LARGEST))
            data = file.read(2 * LARGEST)
    except FileNotFoundError:
        return None, b""
    return status.st_ino, data.partition(b"\n")[2] if start else data


def _line(text: bytes) -> AlertLine | None:
    try:
        return AlertLine.model_validate_json(text)
    except ValidationError:
        return None


MOST = 50
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
"""Shares of the I/Os of a second, by the names of percentiles."""
SETTLE = 2 * SECOND
"""Time before the latest event that is not looked at yet: events come a little out of order."""
LONGEST = 30 * SECOND
"""Of what came since the last look, at most so much; what is before is not judged."""
PERIOD = 1.0
PASSING = 10 * SECOND
"""What prevents judging for less time is not said of an alert that is raised."""


@dataclass
class _Watched:
    """An alert, and its state when it could be judged last. problem: why it can't be now, since
    `problem_ns`; is_reported: whether that was reported."""

    alert: Alert
    standing: Standing = field(default_factory=Standing)
    seen_ns: int = 0
    problem: str = ""
    problem_ns: int = 0
    is_reported: bool = False


class Watch:
    """Alerts of a store; `log` is what was said of them. Changes are safe from any thread; `look`
    is called by one."""

    def __init__(
        self,
        store: Store,
        documents: JsonStore[Alert],
        log: LogFile,
        commands: Commands | None = None,
        *,
        now: Callable[[], int] = time.time_ns,
        wait_s: float = manage.WAIT_S,
    ) -> None:
        self.log = log
        self._store, self._documents, self._commands = store, documents, commands or Commands()
        self._now, self._wait = now, wait_s
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        for name in documents.names():
            try:
                alert, _ = documents.read(name)
                self._watched[name] = _Watched(alert)
            except (FormatError, NotServed):
                continue  # a damaged file watches nothing; saving one of that name replaces it

    def list_alerts(self) -> Alerts:
        """All alerts, with their states."""
        with self._lock:
            all_watched = [replace(watched) for _, watched in sorted(self._watched.items())]
        return Alerts(
            alerts=[_state(watched) for watched in all_watched], commands=self._commands.names
        )

    def put(self, name: str, alert: Alert) -> Alerts:
        """Watch for something, instead of the alert of that name. UsageError where it can't be
        watched."""
        self._check(alert)
        self._documents.write(name, alert)
        with self._lock:
            self._watched[name] = _Watched(alert)
        return self.list_alerts()

    def remove(self, name: str) -> None:
        """Watch for it no more."""
        self._documents.remove(name)
        with self._lock:
            self._watched.pop(name, None)

    def preview(self, alert: Alert, from_ns: int, until_ns: int) -> AlertPreview:
        """What an alert would have said in a span, by the rule of the watch. UsageError where it
        can't be watched, or the span is empty."""
        self._check(alert)
        name = self._recording(alert)
        start, last = self._store.ends(name)
        until = min(until_ns, last + SECOND) // SECOND * SECOND
        first = max(from_ns, start, until - MOST_PREVIEWED * SECOND) // SECOND * SECOND
        if first >= until:
            raise UsageError("the span of time is empty", where="from_ns")
        hours = parse_hours(alert.only_during)
        standing, raised = Standing(), list[tuple[int, int]]()
        seconds = self._seconds(alert, name, first, until)
        for begin, end, value in seconds:
            reading = Reading(begin, end, value, hours is None or hours.hold(_local(begin)))
            standing, _ = step(alert, standing, reading)
            if standing.state != "raised":
                continue
            if raised and raised[-1][1] == begin:
                raised[-1] = raised[-1][0], end
            else:
                raised.append((begin, end))
        unit = unit_of(alert)
        return AlertPreview(
            recording=name,
            t0_ns=seconds[0][0] if seconds else first,
            interval_ns=SECOND,
            unit=unit,
            values=[None if value is None else number(value) for _, _, value in seconds],
            raised=[RaisedSpan(from_ns=begin, until_ns=end) for begin, end in raised],
            sentence=sentence(alert, unit),
        )

    def look(self) -> None:
        """Judge what came since the last look, and do what follows."""
        with self._lock:
            all_watched = list(self._watched.values())
        for watched in all_watched:
            try:
                self._judge(watched)
            except Halted:
                return  # the service ends
            except IolabError as error:
                self._problem(watched, error.message)
            except (
                Exception
            ) as error:  # a fault at one alert must not end the watch over the others
                self._problem(
                    watched, f"the watch failed at this, a fault of iolab's: {error!r}"[:300]
                )

    def run(self, stopping: threading.Event) -> None:
        """Look once a second until that is set; where looking takes long, half of the time at most."""
        while not stopping.is_set():
            begun = time.monotonic()
            self.look()
            took = time.monotonic() - begun
            stopping.wait(max(PERIOD - took, took, 0.05))
        with self._lock:
            raised = [
                watched
                for watched in self._watched.values()
                if watched.standing.state == "raised" and not watched.is_reported
            ]
        for watched in raised:
            self._line(
                watched.alert,
                "problem",
                watched.standing.value,
                "it is not watched any more, and it was not clear",
            )
        self._commands.close()

    def _check(self, alert: Alert) -> None:
        statistic = parse(alert.statistic)
        if alert.percentile:
            if statistic.breakdown not in QUANTIZED or statistic.breakdown == "offset":
                raise UsageError(
                    "an alert on a percentile looks at a map of latency, queue or size",
                    where="statistic",
                    hint="such as io.ops[latency]",
                )
            if statistic.entry.weight != "count":
                raise UsageError(
                    f"percentiles are of I/Os, not of {statistic.entry.measure}",
                    where="statistic",
                    hint=f"ask for {statistic.group}.ops[{statistic.breakdown}]",
                )
        elif statistic.breakdown is not None:
            raise UsageError(
                "an alert looks at one number over time",
                where="statistic",
                hint=f"leave [{statistic.breakdown}] out, name a value of it: [{statistic.breakdown}=...], or choose a percentile",
            )
        parse_hours(alert.only_during)
        self._recording(alert)
        for action in alert.actions:
            if action.do == "command" and action.name not in self._commands.names:
                raise UsageError(
                    f"there is no command '{action.name}'",
                    where="actions",
                    hint=(
                        f"there are {', '.join(self._commands.names)}"
                        if self._commands.names
                        else "--alert-commands FILE names them"
                    ),
                )
            if isinstance(action, Keep):
                manage.parse_name(action.statistic)

    def _recording(self, alert: Alert) -> str:
        """The recording that is meant: where none is named, the only served one."""
        if alert.recording:
            self._store.open(alert.recording)
            return alert.recording
        if len(self._store.names) != 1:
            raise UsageError(
                "which recording is not said",
                where="recording",
                hint=f"there are {', '.join(self._store.names)}",
            )
        return self._store.names[0]

    def _judge(self, watched: _Watched) -> None:
        alert = watched.alert
        name = self._recording(alert)
        if not is_live(self._store, name):
            self._problem(watched, "nothing is being recorded")
            return
        hours = parse_hours(alert.only_during)
        for begin, end, value in self._values(alert, name, watched.seen_ns):
            reading = Reading(begin, end, value, hours is None or hours.hold(_local(begin)))
            standing, event = step(alert, watched.standing, reading)
            with self._lock:
                watched.standing, watched.seen_ns, watched.problem, watched.is_reported = (
                    standing,
                    end,
                    "",
                    False,
                )
            if event is not None:
                self._tell(watched, name, event, standing.value, end)

    def _values(self, alert: Alert, name: str, seen_ns: int) -> list[tuple[int, int, float | None]]:
        """Whole seconds since the last look: from, until and value; of time that was too long to be
        looked at one without a value."""
        last = self._store.ends(name)[1]
        until = (last - SETTLE) // SECOND * SECOND
        first = max(seen_ns, until - LONGEST)
        if first >= until:
            return []
        skipped: list[tuple[int, int, float | None]] = (
            [(seen_ns, first, None)] if 0 < seen_ns < first else []
        )
        return skipped + self._seconds(alert, name, first, until)

    def _seconds(
        self, alert: Alert, name: str, first: int, until: int
    ) -> list[tuple[int, int, float | None]]:
        """Whole seconds of a span: from, until and value."""
        answer = query(
            self._store.open(name),
            parse(alert.statistic),
            from_ns=first,
            until_ns=until,
            interval_ns=SECOND,
        )
        if isinstance(answer, HeatCounts):
            begin, values = first, _percentiles(answer, SHARES[alert.percentile], first, until)
        else:
            assert isinstance(answer, Series)
            begin, values = answer.t0_ns, answer.values.tolist()
        return [
            (at, at + SECOND, None if math.isnan(value) else float(value))
            for place, value in enumerate(values)
            if (at := begin + place * SECOND) >= first
        ]

    def _tell(
        self, watched: _Watched, recording: str, event: Event, value: float | None, at_ns: int
    ) -> None:
        """Say it in the log, and do what is to be done."""
        alert = watched.alert
        if event == "clear" and not alert.also_when_clear:
            return
        words = sentence(alert, unit_of(alert))
        self._line(alert, event, value, words, at_ns)
        facts = {
            "IOLAB_ALERT": alert.name,
            "IOLAB_EVENT": event,
            "IOLAB_RECORDING": recording,
            "IOLAB_STATISTIC": alert.statistic,
            "IOLAB_VALUE": "" if value is None else repr(value),
            "IOLAB_WORDS": words,
        }
        for action in alert.actions:
            problem = ""
            if action.do == "command":
                problem = self._commands.run(
                    action.name, facts, partial(self._line, alert, "problem", value)
                )
            elif isinstance(action, Keep) and event != "clear":
                problem = self._keep(recording, action)
            if problem:
                self._line(alert, "problem", value, problem)

    def _keep(self, recording: str, action: Keep) -> str:
        """Keep a statistic for a while: what was not kept before pauses of itself, whether or not
        this still runs. Why it isn't kept, or nothing."""
        statistic = parse(action.statistic)
        try:
            place = self._store.writable_path(recording)
            now = self._now() + ahead_ns(read_facts(place))
            until = now + action.minutes * 60 * SECOND
            states = [
                row["state"]
                for row in manage.list_kept(place)
                if same(statistic, parse(row["statistic"]))
            ]
            if states != ["suspended"]:
                change = manage.resume if states else manage.add
                change(place, [action.statistic], wait_s=self._wait, now_ns=now, until_ns=until)
        except IolabError as error:
            return error.message
        return ""

    def _problem(self, watched: _Watched, words: str) -> None:
        """Note why it can't be judged. Its state remains: later seconds continue from it."""
        now = self._now()
        with self._lock:
            if not watched.problem:
                watched.problem_ns = now
            watched.problem = words
            raised, lasts = watched.standing.state == "raised", now - watched.problem_ns >= PASSING
            say = raised and lasts and not watched.is_reported
            watched.is_reported = watched.is_reported or say
        if say:
            self._line(
                watched.alert,
                "problem",
                watched.standing.value,
                f"it was raised, and can't be judged any more: {words}",
            )

    def _line(
        self,
        alert: Alert,
        event: str,
        value: float | None,
        words: str,
        at_ns: int | None = None,
    ) -> None:
        try:
            self.log.write(
                AlertLine.model_validate(
                    {
                        "time_ns": self._now(),
                        "name": alert.name,
                        "event": event,
                        "value": value,
                        "words": words,
                        "at_ns": at_ns,
                        "recording": alert.recording,
                        "statistic": alert.statistic,
                        "unit": unit_of(alert),
                    }
                )
            )
        except IolabError as error:
            with self._lock:
                watched = self._watched.get(alert.name)
                if watched is not None:  # it may have been removed meanwhile
                    watched.problem = error.message


def _state(watched: _Watched) -> AlertState:
    standing, alert = watched.standing, watched.alert
    unit = unit_of(alert)
    return AlertState(
        alert=alert,
        state="unknown" if watched.problem else standing.state,
        unit=unit,
        since_ns=watched.problem_ns if watched.problem else standing.since_ns,
        value=None if standing.value is None else number(standing.value),
        problem=watched.problem,
        sentence=sentence(alert, unit),
    )


def _local(time_ns: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(time_ns / SECOND).astimezone()


def _percentiles(counts: HeatCounts, share: float, first: int, until: int) -> list[float]:
    """A percentile of each second, nan where there was no I/O. A map begins and ends with I/Os."""
    line = percentile_lines(counts, counts.columns, [share])[0]
    places = ((at - counts.t0_ns) // SECOND for at in range(first, until, SECOND))
    return [float(line[place]) if 0 <= place < len(line) else math.nan for place in places]


def unit_of(alert: Alert) -> str:
    """The unit of the values that an alert looks at; "" where its statistic is none."""
    try:
        statistic = parse(alert.statistic)
    except UsageError:
        return ""
    if not alert.percentile:
        return statistic.entry.unit
    return next((UNITS[y] for y in QUANTIZED if y == statistic.breakdown), "")
