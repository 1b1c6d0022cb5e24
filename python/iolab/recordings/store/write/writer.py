# SPDX-License-Identifier: Apache-2.0
"""The one writer of a recording: batches go to hot files at once, which are sealed by age, by size
and at cuts."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from iolab.base.clock import Clock, SystemClock
from iolab.base.errors import ResultsError
from iolab.base.files import make_folders

from ..base.layout import (
    GROWING,
    MARKS,
    PROCESSES,
    Kind,
    hot_file,
    is_recording,
    remove_temporary,
    telling,
)
from ..base.lock import LOCK, read_lock, take_lock, tell
from ..base.loss_log import LossLog, loss_of, noted_losses
from ..base.memory import return_freed_memory
from ..base.metadata import Begun, ClockKind, Facts, Sessions, read_facts
from ..base.schema import schema_of
from ..ledger import append_line
from ..segments.hot import HotLog, RetiredLogs
from ..segments.sealing import write_segment
from .joining import MapJoiner
from .recovery import highest_number, move_segments, note_damage, recover
from .retention import Retention, drop_label, finish_dropping, segments_of_label

SEAL_S = 60.0
SEAL_BYTES = 64 * 2**20
SEAL_ROWS = 2**20
"""What is hot is sealed when it is that old, or one file of it is that large."""

DROP_S = RETRY_S = 10.0
"""Between seals, retention is looked at that often; what could not be sealed is tried again after
that."""

LOSS_KINDS = ("overrun", "damaged", "unpaired", "missed", "unknown-name", "gap")
"""overrun: the tracer had no room. damaged: could not be read. unpaired: a start or an end alone.
missed: an expected reading of counters. unknown-name: no name was found. gap: no recording."""


class PutOffError(ResultsError):
    """The disk refused to seal or to drop a segment. It is tried again; nothing is lost."""


class RecordingWriter:
    """Writes a recording. `create` or `reopen` make it, `close` ends it; it is a context manager.
    `map_joiner`: for a thread of low priority.

    Its methods may be called from several threads. Those that write raise ResultsError where the
    disk refuses; what was kept before stays readable, and the next call tries again. A clock
    that is never set decides when to seal. The times of events decide what is old.
    """

    def __init__(
        self, directory: Path, facts: Facts, lock: IO[str], system: Clock, number: int
    ) -> None:
        """Not to be called from outside."""
        self.directory, self.facts = directory, facts
        self._lock, self._system, self._next = lock, system, number
        self._guard = threading.RLock()
        self._number = 0
        self._logs: dict[Kind, HotLog] = {}
        self._retired: list[RetiredLogs] = []
        self._losses: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._lost = LossLog(directory, self._shrinks)
        self._since = math.inf
        self._failed = self._dropped = -math.inf
        self._retention = Retention(directory, self._shrinks)
        self._sessions = Sessions(facts)
        self._untold = False
        self._taken: dict[str, int] = {}
        self._absent: Sequence[str] = ()
        self.map_joiner = MapJoiner(directory, facts, self._retention, self._guard)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        host: str,
        clock: ClockKind,
        origin: Mapping[str, Any],
        sources: Mapping[str, Any] | None = None,
        retention: Mapping[str, int | None] | None = None,
        live: bool | None = None,
        system: Clock | None = None,
    ) -> RecordingWriter:
        """A new recording in an empty or absent directory, that begins now.

        Args:
            clock: what times mean: "realtime" or "trace". origin: its kind ("record", "import",
            "run") and what else is known. retention: limits `bytes` and `age_s` beyond which the
            oldest segments go. live: whether something is recorded while time passes, so that time
            without a writer is a gap. Default: by the origin.
        ResultsError where there is a recording already, something else, or no permission.
        """
        limits = {"bytes": None, "age_s": None, **(retention or {})}
        facts = Facts(host, clock, dict(origin), dict(sources or {}), limits)
        return cls.begin(path, facts, live=live, system=system)

    @classmethod
    def begin(
        cls,
        path: Path,
        facts: Facts,
        *,
        live: bool | None = None,
        begun: Begun | None = None,
        system: Clock | None = None,
    ) -> RecordingWriter:
        """As `create`, with facts. begun: when recording began; default: now. A new directory is
        private: its contents show names of files and command lines."""
        system = system or SystemClock()
        if is_recording(path):
            raise ResultsError(
                "holds a recording already",
                where=path,
                hint="choose another directory, or add to it by recording there",
            )
        with telling(path, "make a recording here"):
            make_folders(path, 0o700)
            if any(entry.name != LOCK for entry in path.iterdir()):
                raise ResultsError(
                    "is not empty and holds no recording",
                    where=path,
                    hint="choose another directory",
                )
        return cls._begin(
            path,
            facts,
            take_lock(path),
            None,
            system,
            1,
            facts.origin.get("kind") == "record" if live is None else live,
            begun or _now(system),
        )

    @classmethod
    def reopen(
        cls,
        path: Path,
        *,
        sources: Mapping[str, Any] | None = None,
        absent: Collection[str] = (),
        retention: Mapping[str, int | None] | None = None,
        live: bool | None = None,
        begun: Begun | None = None,
        system: Clock | None = None,
    ) -> RecordingWriter:
        """Continue a recording, after its last writer was closed or killed.

        What a killed one left hot is sealed up to the first batch that is torn, and the time since
        is noted as a gap. `sources` and `retention` replace what was said of them; `begun`: see
        `create`. `absent`: sources that are not recorded this time: those that were recorded before
        have a gap from now on, as sources that were not recorded before have one until now.
        ResultsError where it is being written, or is none.
        """
        system = system or SystemClock()
        begun = begun or _now(system)
        read_facts(path)
        lock = take_lock(path)
        try:
            facts = read_facts(path)
            remove_temporary(path)
            note_damage(path, facts)
            finish_dropping(path, facts)
            lock_words, changed_ns = read_lock(path, is_signed=facts.is_signed)
            alive_ns = lock_words.until_ns or changed_ns
            recover(path, facts, alive_ns or 0, begun.from_ns)
            earlier = [
                time_ns
                for session in facts.sessions
                for time_ns in (session["from_ns"], session["until_ns"])
                if time_ns is not None
            ]
            new = (
                [name for name in sources or () if name not in facts.sources]
                if facts.sources
                else []
            )
            absent = [name for name in absent if name in facts.sources]
            facts.sources |= sources or {}
            facts.retention |= retention or {}
            writer = cls._begin(
                path,
                facts,
                lock,
                alive_ns,
                system,
                highest_number(path) + 1,
                facts.origin.get("kind") == "record" if live is None else live,
                begun,
            )
            for name in new if earlier else ():
                writer._note_absence(name, min(earlier), max(earlier))
            writer._leave_out(absent)
            return writer
        except BaseException:
            lock.close()
            raise

    @classmethod
    def _begin(
        cls,
        path: Path,
        facts: Facts,
        lock: IO[str],
        alive_ns: int | None,
        system: Clock,
        number: int,
        live: bool,
        begun: Begun,
    ) -> RecordingWriter:
        try:
            # before the facts, as a lock without a checksum beside signed facts is damaged
            with telling(path, "write who records here"):
                tell(lock, alive_ns)
            if live and facts.clock == "realtime":
                facts.sessions.append(begun.session())
            facts.write(path)
            with telling(path, "write who records here"):
                tell(lock, None)
            writer = cls(path, facts, lock, system, number)
            writer._tell_lock()
            return writer
        except BaseException:
            lock.close()
            raise

    def append_events(self, batch: pa.RecordBatch) -> None:
        """Keep events (columns of `schema.EVENTS`). They survive a kill as soon as this returns."""
        self._append("events", batch)

    def append_samples(self, batch: pa.RecordBatch) -> None:
        """Keep samples (columns of `schema.SAMPLES`)."""
        self._append("samples", batch)

    def append_segment(self, events: Sequence[pa.RecordBatch], *, label: str | None = None) -> int:
        """Seal events at once, next to what is hot: for files, which can be read again after a kill.
        Returns its number.

        `label` names what they belong to, so that `drop` can take them away.
        """
        with self._guard:
            number = self._take_number()
            write_segment(self.directory, number, events, (), {}, label)
            return number

    def take_in(self, origin: Path, label: str, from_ns: int, until_ns: int) -> int:
        """Take the segments of another recording, written under a label, into this one; what was
        here under that label goes. Returns how many there were.

        Its sources tell of the time from `from_ns` to `until_ns` alone: outside of such times they
        have gaps. ResultsError where the disk refuses: nothing of it is here then.
        """
        with self._guard:
            about, losses = read_facts(origin).sources, noted_losses(origin).lines
            # numbers follow the order in which segments are sealed
            self._seal_all()
            before = [facts for _, facts in segments_of_label(self.directory, self.facts, label)]
            words = f"another attempt at {label} replaced this one"
            for facts in before:
                for source in facts["sources"]:
                    self.loss("gap", source, facts["first_ns"], facts["last_ns"] + 1, words=words)
            self.drop(label)
            try:
                moved = move_segments(origin, self.directory, self._take_number)
            except ResultsError:
                # a part would be taken for all
                with suppress(ResultsError):
                    self.drop(label)
                raise
            names = ("kind", "source", "from_ns", "until_ns", "count", "words")
            for loss in losses:
                self.loss(*(loss.get(name) for name in names))  # type: ignore[arg-type]
            for source, facts in about.items():
                columns = {
                    *facts.get("columns", ()),
                    *self.facts.sources.get(source, {}).get("columns", ()),
                }
                self.describe(source, {**facts, "columns": sorted(columns)})
                self._note_between(source, from_ns, until_ns)
            return moved

    def describe(self, source: str, facts: Mapping[str, Any]) -> None:
        """What is known of a source, in `recording.json`."""
        with self._guard:
            self.facts.sources[source] = {**self.facts.sources.get(source, {}), **facts}
            self._tell_facts()

    def note_origin(self, name: str, value: Any, session: Mapping[str, int] | None = None) -> None:
        """A part of `origin` in `recording.json`; session: more about the current session."""
        with self._guard:
            self.facts.origin[name] = value
            self.facts.sessions[-1].update(session or {})
            self._tell_facts()

    def loss(
        self,
        kind: str,
        source: str,
        from_ns: int | None,
        until_ns: int | None,
        count: int | None = None,
        words: str | None = None,
    ) -> None:
        """Note what was lost: how much (None: unknown), when (None: at no known time), of
        which source ("": of all). A gap is noted when it begins, without an end, and again when it
        is over, so that it is known whatever happens meanwhile."""
        if kind not in LOSS_KINDS:
            raise ValueError(f"no loss is called {kind}")
        with self._guard:
            if kind != "gap" or until_ns is not None:
                self._losses[source] = self._losses.get(source, 0) + (count or 1)
            line = loss_of(kind, source, from_ns, until_ns, count, words)
            self._lost.add(line, self.facts.dropped)

    def mark(
        self,
        label: str,
        from_ns: int,
        until_ns: int | None,
        kind: Literal["run", "user"] = "user",
        link: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Name a span of time; `link` leads to what it is (a run's folder)."""
        with self._guard:
            self._line(
                MARKS,
                {
                    "label": label,
                    "from_ns": from_ns,
                    "until_ns": until_ns,
                    "kind": kind,
                    **({"link": link} if link else {}),
                    **({"facts": dict(facts)} if facts else {}),
                },
                durable=True,
            )

    def process(self, pid: int, process: str, command: str, first_ns: int) -> None:
        """Note a process: its name, as events bear it, its command line, and when it was first
        seen."""
        with self._guard:
            self._line(
                PROCESSES,
                {"pid": pid, "process": process, "command": command, "first_ns": first_ns},
            )

    def seal(self) -> None:
        """A cut: what is hot becomes a sealed segment now. Where that fails the hot files stay, and
        nothing is lost."""
        with self._guard:
            self._seal_all()
            self._drop_old()

    def note_archived(self, through: int, *, drops: bool) -> None:
        """Say up to which number all segments are archived. Later ones are deleted by size alone,
        not by age. `drops`: the archived ones are deleted, with what retention deletes next."""
        with self._guard:
            self._retention.archived, self._retention.drops_archived = through, drops

    def tick(self, now_ns: int) -> None:
        """Say that everything up to `now_ns` is there, about once a second: seals what is old or
        large, drops what retention no longer allows. PutOffError where that fails."""
        with self._guard:
            self._sessions.told_ns = now_ns
            # tells readers, and the next writer, should this one be killed, until when it lived; a
            # second later it is said again
            self._tell_lock()
            passed = self._system.monotonic()
            is_retry = self._retired and passed - self._failed >= RETRY_S
            try:
                if is_retry or self._full() or passed - self._since >= SEAL_S:
                    self.seal()
                elif passed - self._dropped >= DROP_S:
                    self._drop_old()
                if self._untold:
                    self._write_facts()
            except ResultsError as error:
                raise PutOffError(error.message, where=error.where, hint=error.hint) from error

    def renew(self, begun: Begun) -> None:
        """State that recording began again: where the clock was set since, the session ends
        with what came, and another begins."""
        with self._guard:
            if not self._sessions.is_set(begun):
                return
            # what is refused now is tried again by `tick`
            with suppress(ResultsError):
                self._seal_all()
            self._sessions.end()
            self._sessions.begin(begun)
            self._tell_facts()
            self._leave_out(self._absent)

    def drop(self, label: str) -> int:
        """Remove the sealed segments of a label, as a run does that is ingested again. Returns how
        many there were."""
        with self._guard:
            return drop_label(self.directory, self.facts, label)

    def close(self) -> None:
        """Seal what is hot, end the session, release the lock. Where sealing fails, what is hot
        stays for the next writer."""
        with self._guard:
            if self._lock.closed:
                return
            now = self._system.realtime_ns()
            try:
                self._seal_all()
                if self._sessions.end(now) or self._untold:
                    self._write_facts()
                # what is too much and can't be dropped now, the next writer drops
                with suppress(ResultsError):
                    self._drop_old()
            finally:
                self._tell_lock()
                self._lock.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except ResultsError:
            if error is None:
                raise

    def _append(self, kind: Kind, batch: pa.RecordBatch) -> None:
        schema = schema_of(kind)
        if not batch.schema.equals(schema):
            raise ValueError(f"a batch of {kind} has other columns than the schema")
        if not batch.num_rows:
            return
        with self._guard:
            if self._full():
                # one that fails is tried again, and told, by `tick`; a new hot file takes more
                # meanwhile
                with suppress(ResultsError):
                    self.seal()
            log = self._logs.get(kind)
            if log is not None and log.broken:
                self._retire()
                log = None
            with telling(self.directory, f"keep {kind}"):
                if log is None:
                    if not self._logs:
                        self._number = self._take_number()
                    log = self._logs[kind] = HotLog(
                        hot_file(self.directory, self._number, kind), schema
                    )
                log.append(batch)
            self._since = min(self._since, self._system.monotonic())
            begun = self.facts.sessions[-1]["from_ns"] if self.facts.sessions else None
            if self._sessions.reach(batch):
                self._tell_facts()
                for name in self._absent:
                    self._note_absence(name, self.facts.sessions[-1]["from_ns"], begun)

    def _leave_out(self, absent: Sequence[str]) -> None:
        """Sources that are not recorded in the current session have a gap as long as it."""
        self._absent = absent
        for name in absent if self.facts.sessions else ():
            self._note_absence(name, self.facts.sessions[-1]["from_ns"], None)

    def _note_absence(self, source: str, from_ns: int | None, until_ns: int | None) -> None:
        self.loss("gap", source, from_ns, until_ns, words=f"{source} was not recorded")

    def _note_between(self, source: str, from_ns: int, until_ns: int) -> None:
        """A source that reports single times reported one: it has a gap before, and another that
        begins now."""
        session = self.facts.sessions[-1] if self.facts.sessions else None
        if session is None:
            return
        words = f"{source} reports runs alone"
        last = max(session["from_ns"] or 0, self._taken.get(source, 0))
        if last < from_ns:
            self.loss("gap", source, last, from_ns, words=words)
        self._taken[source] = max(last, until_ns)
        self.loss("gap", source, self._taken[source], None, words=words)

    def _tell_lock(self, shrinks: str = "") -> None:
        """Tell readers, and the next writer, should this one be killed, until when it lived and how
        long its files were.

        `shrinks`: a file that becomes shorter, without a report."""
        for name in GROWING:
            with suppress(OSError):
                self._sizes[name] = max(
                    self._sizes.get(name, 0), (self.directory / name).stat().st_size
                )
        hot = {
            str(log.path.relative_to(self.directory)): log.bytes
            for logs in (
                self._logs,
                *(segment.logs for segment in self._retired if not segment.is_sealed),
            )
            for log in logs.values()
        }
        # where the disk refuses, a second later it is said again
        with suppress(OSError):
            tell(
                self._lock,
                self._sessions.told_ns,
                {
                    name: size
                    for name, size in (*self._sizes.items(), *hot.items())
                    if name != shrinks
                },
            )

    def _shrinks(self, name: str) -> None:
        """A file becomes shorter: until it has, it does not count as damaged."""
        self._tell_lock(name)
        self._sizes.pop(name, None)

    def _tell_facts(self) -> None:
        """Have the facts written: now, or where the disk refuses, by a later `tick`, at the latest
        when the recording is closed."""
        self._untold = True
        with suppress(ResultsError):
            self._write_facts()

    def _write_facts(self) -> None:
        self.facts.write(self.directory)
        self._untold = False

    def _full(self) -> bool:
        return any(log.bytes >= SEAL_BYTES or log.rows >= SEAL_ROWS for log in self._logs.values())

    def _take_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _retire(self) -> None:
        """Take no more into the present hot files."""
        if self._logs:
            for log in self._logs.values():
                log.close()
            self._retired.append(RetiredLogs(self._number, self._logs))
            self._logs, self._since = {}, math.inf

    def _seal_all(self) -> None:
        self._retire()
        while self._retired:
            try:
                self._seal_one(self._retired[0])
            except ResultsError:
                self._failed = self._system.monotonic()
                raise
            del self._retired[0]
            self._tell_lock()
        # a minute of events takes a hundred MiB to seal, which would stay with the process
        return_freed_memory()

    def _seal_one(self, retired: RetiredLogs) -> None:
        if not retired.is_sealed:
            retired.write(self.directory, self._losses, self._sessions.told_ns)
            self._losses = {}
        retired.remove()
        while retired.losses:
            self._lost.add(retired.losses[0], self.facts.dropped)
            del retired.losses[0]

    def _drop_old(self) -> None:
        self._dropped = self._system.monotonic()
        told_ns = self._sessions.told_ns
        now_ns = self._system.realtime_ns() if told_ns is None else told_ns
        self._retention.apply(
            self.facts, now_ns, [segment.number for segment in self._retired], self._dropped
        )

    def _line(self, name: str, data: Mapping[str, Any], durable: bool = False) -> None:
        with telling(self.directory / name, "add a line"):
            append_line(self.directory / name, data, durable=durable)


def _now(system: Clock) -> Begun:
    now = system.realtime_ns()
    return Begun(now, round(system.monotonic() * 1e9), now)
