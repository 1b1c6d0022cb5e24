# SPDX-License-Identifier: Apache-2.0
"""DuckDB as the engine of the one executor: in memory, without a file, a network or an extension.

Questions to many recordings read their data together: each runs in a thread of its own until it
needs data, one thread at a time. When all of them wait for data, one call reads what they need, and
each continues with its part. A question is answered by the same code alone and with others, so its
answer is the same.
"""

from __future__ import annotations

import contextvars
import ctypes
import errno
import os
import re
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.base.files import is_foreign, open_folder, open_for_reading

from ...store.ledger import DamagedError, Part, check

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@contextmanager
def heeding(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C within the block calls `interrupt`, then is the KeyboardInterrupt that it always is.

    DuckDB heeds a signal in the thread that asked alone, and then waits until its other threads
    have ended what they do: they must be interrupted. In threads that get no signals, and where other
    code handles Ctrl-C, nothing is changed.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        interrupt()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        # a generator that nobody reads any more may be closed by any thread
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is handle
        ):
            signal.signal(signal.SIGINT, signal.default_int_handler)


THREADS = min(8, os.cpu_count() or 1)
IDLE = 8
"""Idle databases that are kept for other answers."""
MEMORY = "2GB"
"""Most that an answer may take; beyond, the user is asked to narrow the question. Nothing is spilled
to a disk that is measured."""

_PLAIN = re.compile(r"/[\w./ +=,@%-]*")
"""Paths without characters that are special to DuckDB."""

_CTRL_C = re.compile(r"(^|failed: )KeyboardInterrupt(:|\s*$)", re.MULTILINE)
"""How DuckDB's errors name an exception of a stream: in a line of its own, or behind what failed.
"""

AGAIN_S = 0.05
"""Seconds between two interruptions of a question that was given up and has not ended."""


class Halt:
    """Lets another thread give up a question: its engines stop at what they do, and no more begins.
    Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: list[duckdb.DuckDBPyConnection] = []
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the question was given up."""
        return self._over

    def halt(self) -> None:
        """Give the question up. Its statements are interrupted until they end: DuckDB forgets an
        interruption that comes just before a statement."""
        with self._lock:
            before, self._over = self._over, True
        if not before and self._interrupt():
            threading.Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        while self._interrupt():
            time.sleep(AGAIN_S)

    def _interrupt(self) -> bool:
        """Interrupt what is under way; whether anything is."""
        with self._lock:
            for connection in self._under_way:
                connection.interrupt()
            return bool(self._under_way)

    def begin(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """A connection works for the question; False where that was given up."""
        with self._lock:
            if not self._over:
                self._under_way.append(connection)
            return not self._over

    def end(self, connection: duckdb.DuckDBPyConnection) -> None:
        """The connection works for the question no longer."""
        with self._lock:
            self._under_way = [other for other in self._under_way if other is not connection]


class Halted(IolabError):
    """A question was given up before it was answered."""


HALT: ContextVar[Halt | None] = ContextVar("halt", default=None)
"""What the question that is answered here can be given up by."""


class Databases:
    """Databases in memory that no answer uses. To open one takes 20 ms of CPU, more than most
    answers. An answer has a database for itself, and so its own limit of memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[int, duckdb.DuckDBPyConnection]] = []

    def take(self, threads: int) -> duckdb.DuckDBPyConnection:
        """An idle database with so many threads, or a new one."""
        with self._lock:
            for place, (its_threads, database) in enumerate(self._idle):
                if its_threads == threads:
                    del self._idle[place]
                    return database
        return _open(threads)

    def give_back(self, threads: int, database: duckdb.DuckDBPyConnection) -> None:
        """Keep a database for another answer, or close it where enough are idle."""
        with self._lock:
            if len(self._idle) < IDLE:
                self._idle.append((threads, database))
                return
        database.close()

    def forget(self) -> None:
        """After a fork: the child has none of the threads of the databases, so that it can neither
        use nor close them."""
        for _, database in self._idle:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
        self._lock, self._idle = threading.Lock(), []


def _open(threads: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    database = duckdb.connect(
        ":memory:",
        config={
            "threads": threads,
            "memory_limit": MEMORY,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        },
    )
    # a progress bar would be drawn among the data. In a notebook without ipywidgets DuckDB has
    # disabled it, and refuses every setting of it
    with suppress(duckdb.InvalidInputException):
        database.execute("SET enable_progress_bar = false")
    database.execute("SET lock_configuration = true")
    return database


DATABASES = Databases()
os.register_at_fork(after_in_child=DATABASES.forget)


class Engine:
    """One connection for one answer, to a database of its own.

    `events` is what `ask` reads from: sealed files of a recording, a table in memory, or a stream
    that can be read once. All names are temporary: they end with the connection.
    """

    def __init__(self, place: Path, threads: int = THREADS) -> None:
        self.place = place
        self._threads = threads
        self._folders: dict[Path, int] = {}
        self._opened: list[int] = []
        self._is_foreign = is_foreign(place)
        self._attached: list[Path] = []
        self._is_reusable = True
        self._halt = HALT.get()
        self._go_on()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """Opened when it is first needed: an answer from memory needs none."""
        self._database = DATABASES.take(self._threads)
        connection = self._database.cursor()
        if self._halt is not None and not self._halt.begin(connection):
            connection.close()
            DATABASES.give_back(self._threads, self._database)
            raise self._given_up()
        return connection

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        if "_connection" in self.__dict__:
            if self._halt is not None:
                self._halt.end(self._connection)
            self._connection.close()
            if self._is_reusable:
                DATABASES.give_back(self._threads, self._database)
            else:
                self._database.close()
        while self._folders:
            os.close(self._folders.popitem()[1])
        while self._opened:
            os.close(self._opened.pop())

    def register(self, name: str, table: pa.Table | pa.RecordBatchReader) -> None:
        """Make a table or stream known as `name`, a word of this package."""
        self._connection.register(name, table)

    def files(self, name: str, parts: Sequence[Part]) -> None:
        """Make Parquet files of one schema known as `name`, a word of this package. DamagedError
        where one is not what was written: DuckDB checks nothing itself."""
        check(parts)
        self._attached += [part.path for part in parts]
        with self._translate_errors():
            paths = ", ".join(_quote(self._plain(part.path)) for part in parts)
            self._connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet([{paths}])"
            )

    def _plain(self, path: Path) -> str:
        """A path in which DuckDB takes no sign for a pattern, a home directory or a protocol: by a
        descriptor of its folder, where it has one."""
        if self._is_foreign:
            # who owns the directory may exchange the file between the check and DuckDB's opening
            self._opened.append(_held(path))
            return f"/proc/self/fd/{self._opened[-1]}"
        absolute = path.absolute()
        if _PLAIN.fullmatch(str(absolute)):
            return str(absolute)
        folder = absolute.parent
        if folder not in self._folders:
            self._folders[folder] = open_folder(folder)
        return f"/proc/self/fd/{self._folders[folder]}/{absolute.name}"

    def run(self, sql: str) -> None:
        """A statement without an answer."""
        self._go_on()
        with self._translate_errors():
            self._connection.execute(sql)

    def ask(self, sql: str, bound: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Columns of the answer by name, masked where they lack values. IolabError where it can't
        be given."""
        self._go_on()
        with self._translate_errors():
            answer: dict[str, Any] = self._connection.execute(sql, dict(bound or {})).fetchnumpy()
        return answer

    def stream(self, sql: str, bound: Mapping[str, Any] | None = None) -> Iterator[pa.RecordBatch]:
        """The answer in batches, as they come."""
        self._go_on()
        with self._translate_errors():
            # of `execute` the whole answer would be held
            batches: Any = self._connection.sql(sql, params=dict(bound or {})).to_arrow_reader(
                1_000_000
            )
            yield from batches

    def _go_on(self) -> None:
        """Halted where the question was given up: DuckDB forgets an interruption that comes between
        two statements."""
        if self._halt is not None and self._halt.over:
            raise self._given_up()

    def _given_up(self) -> Halted:
        return Halted("the question was given up", where=self.place)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """What DuckDB raises as this package's errors, and Ctrl-C, of which it makes errors of its
        own, as KeyboardInterrupt."""
        import duckdb

        try:
            with heeding(self._connection.interrupt):
                yield
        except (duckdb.Error, RuntimeError) as error:
            if self._is_interrupt(error):
                raise KeyboardInterrupt from None
            self._is_reusable = False
            if isinstance(error, duckdb.Error):
                raise self._translate(error) from None
            raise

    def _is_interrupt(self, error: Exception) -> bool:
        """Whether an error is Ctrl-C: during a statement, or while a stream was read, which
        passes exceptions on as text."""
        import duckdb

        if isinstance(error, duckdb.InterruptException):
            return self._halt is None or not self._halt.over
        if isinstance(error, duckdb.Error):
            return _CTRL_C.search(str(error)) is not None
        return "Query interrupted" in str(error)

    def _translate(self, error: Exception) -> IolabError:
        """DuckDB's words as an error with its place."""
        import duckdb

        words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if isinstance(error, duckdb.InterruptException):
            return self._given_up()
        if isinstance(error, duckdb.OutOfMemoryException):
            return IolabError(
                f"the answer needs more than {MEMORY} of memory",
                where=self.place,
                hint="ask for less time, a longer interval, or fewer keys",
            )
        if isinstance(error, duckdb.IOException):
            deleted = next((path for path in self._attached if not path.exists()), None)
            if deleted is not None:
                return DamagedError("was deleted while it was read", where=deleted)
        return FormatError(f"can't be read: {words}", where=self.place)


def _held(path: Path) -> int:
    """A descriptor of a file, beyond the soft limit of this process too (getrlimit(2))."""
    try:
        return open_for_reading(path)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return open_for_reading(path)


def _quote(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def int64s(values: Any) -> Any:
    """A column of counts as int64, 0 where it lacks a value."""
    return np.ma.filled(values, 0).astype(np.int64)


def single(values: Any) -> int | None:
    """The only value of a column, None where it is missing."""
    is_missing = np.ma.getmaskarray(values)
    return None if not len(values) or is_missing[0] else int(values[0])


BY = "/*by recording*/"
"""Where a statement has the column `recording` if it reads the rows of several recordings: before
its other columns, and before those that it joins or ranks by. Otherwise it is a comment."""

T = TypeVar("T")
Refusal = UsageError | FormatError
"""Errors of one recording. Any other error ends all questions."""


class Joint(Generic[T]):
    """Questions that are answered together."""

    def __init__(self, asks: Sequence[Callable[[], T]]) -> None:
        self._asks = asks
        self._outcomes: dict[int, T | BaseException] = {}
        self._inboxes: list[SimpleQueue[Any]] = [SimpleQueue() for _ in asks]
        self._reports: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        self._waiting: dict[int, Any] = {}

    def answers(self, read: Callable[[Sequence[Any]], Sequence[Any]]) -> list[T | Refusal]:
        """The answer of each question, or why there is none.

        Args:
            read: the data for some requests, in their order. An exception among them is raised
            where the data was requested.
        """
        try:
            for place in range(len(self._asks)):
                context = contextvars.copy_context()
                threading.Thread(target=context.run, args=(self._run, place), daemon=True).start()
                self._receive()
            while self._waiting:
                requests, self._waiting = self._waiting, {}
                results = read(list(requests.values()))
                for place, result in zip(requests, results, strict=True):
                    self._inboxes[place].put(result)
                    self._receive()
        except BaseException:
            for inbox in self._inboxes:
                inbox.put(Halted("another question failed"))
            raise
        return [self._outcomes[place] for place in range(len(self._asks))]  # type: ignore[misc]

    def _receive(self) -> None:
        """Wait until the question that runs needs data or ends."""
        place, request = self._reports.get()
        if place not in self._outcomes:
            self._waiting[place] = request
            return
        outcome = self._outcomes[place]
        if isinstance(outcome, BaseException) and not isinstance(outcome, Refusal):
            raise outcome

    def _run(self, place: int) -> None:
        def request(wanted: Any) -> Any:
            self._reports.put((place, wanted))
            result = self._inboxes[place].get()
            if isinstance(result, BaseException):
                raise result
            return result

        REQUEST.set(request)
        try:
            self._outcomes[place] = self._asks[place]()
        except BaseException as error:
            self._outcomes[place] = error
        self._reports.put((place, None))


REQUEST: ContextVar[Callable[[Any], Any] | None] = ContextVar("request", default=None)
"""How a question gets its data together with others; None: it is answered alone."""
