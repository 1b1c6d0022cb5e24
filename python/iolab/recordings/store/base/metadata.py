# SPDX-License-Identifier: Apache-2.0
"""`recording.json`: what a recording is: host, clock, sessions, sources, retention, origin, and
what retention dropped; and the session that its writer records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from iolab import __version__
from iolab.base.errors import ResultsError
from iolab.base.files import read_regular
from iolab.base.untrusted_text import parse_json

from ..ledger import CRC, holds, sign
from .layout import FACTS, telling, write_json
from .loss_log import is_time

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 1

ClockKind: TypeAlias = Literal["realtime", "trace"]

STEP_NS = 1_000_000_000
"""A clock that is further off than this from where it was has been set, or the machine slept."""


@dataclass(frozen=True)
class Begun:
    """How what is recorded began: `from_ns`, from where on all of it is there; `monotonic_ns` and
    `realtime_ns` of one moment, from which all times are computed."""

    from_ns: int
    monotonic_ns: int
    realtime_ns: int

    def set_by(self, monotonic_ns: int, realtime_ns: int) -> int:
        """By how many ns the time of day was set ahead since, as of these clocks at one moment
        (negative: back); 0 where it was not."""
        step = realtime_ns - monotonic_ns - (self.realtime_ns - self.monotonic_ns)
        return step if abs(step) > STEP_NS else 0

    @classmethod
    def of(cls, session: Mapping[str, int | None]) -> Begun:
        """How a session began."""
        return cls(*(session.get(name) or 0 for name in ("from_ns", "monotonic_ns", "realtime_ns")))

    def session(self) -> dict[str, int | None]:
        """A session of `recording.json` that begins so, without an end."""
        return {
            "from_ns": self.from_ns,
            "until_ns": None,
            "monotonic_ns": self.monotonic_ns,
            "realtime_ns": self.realtime_ns,
        }


@dataclass
class Facts:
    """The content of `recording.json`.

    Attributes:
        host: name of the host of the I/O; "" where a trace doesn't name it.
        clock: "realtime" (ns since the Unix epoch) or "trace" (whatever clock the imported traces
        have). sessions: spans in which something recorded live: from_ns, until_ns (None while it
        lasts, or until the next writer sees
            that it was killed), monotonic_ns and realtime_ns of one moment, by which its times are
            given: where the clock is set another one begins. None of an import.
        sources: facts of each source by its name.
        retention: limits `bytes` and `age_s`, None for no limit; perhaps `maps_bytes` and
        `maps_age_s` (see `retention.map_limits`). origin: kind "record", "import" or "run", and
        more of it.
        dropped: what retention removed, if anything: through (number of the last segment removed),
        until_ns, segments, events,
            bytes; maps_until_ns and maps_from_ns, of default maps that went and of the oldest left
            of a segment that is deleted.
        is_damaged: whether the file's checksum is not that of what it says. is_signed: whether it
        has one.
    """

    host: str
    clock: ClockKind
    origin: dict[str, Any]
    sources: dict[str, Any] = field(default_factory=dict)
    retention: dict[str, int | None] = field(default_factory=lambda: {"bytes": None, "age_s": None})
    sessions: list[dict[str, int | None]] = field(default_factory=list)
    dropped: dict[str, Any] | None = None
    iolab: str = __version__
    is_damaged: bool = False
    is_signed: bool = True

    @property
    def dropped_through(self) -> int:
        """Segments up to this number were removed by retention; their default maps remain for
        longer."""
        return int((self.dropped or {}).get("through", 0))

    def as_json(self) -> dict[str, Any]:
        """As it is written."""
        own = {
            name: value
            for name, value in asdict(self).items()
            if name not in ("is_damaged", "is_signed")
        }
        return {"schema": SCHEMA, "kind": "recording", **own}

    def write(self, directory: Path) -> None:
        """Write it as a whole, on disk on return. ResultsError where that fails; the one before
        then remains."""
        with telling(directory / FACTS, "write what the recording is"):
            write_json(directory / FACTS, sign(self.as_json()))


def read_facts(directory: Path) -> Facts:
    """ResultsError where there is no recording, a damaged one, or one of a newer schema. What it
    returns is as `Facts` has it."""
    path = directory / FACTS
    try:
        data = parse_json(read_regular(path))
    except FileNotFoundError:
        raise ResultsError(
            "is not a recording", where=directory, hint=f"a recording's directory has a {FACTS}"
        ) from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    except ValueError:
        raise ResultsError("is damaged: not JSON", where=path) from None
    if (
        not isinstance(data, dict)
        or data.get("kind") != "recording"
        or not is_time(data.get("schema"))
    ):
        raise ResultsError(
            "is damaged: doesn't say that it is a recording, and of which schema", where=path
        )
    if data["schema"] > SCHEMA:
        raise ResultsError(
            f"has schema {data['schema']}, this iolab knows up to {SCHEMA}",
            where=path,
            hint=f"it was written by iolab {data.get('iolab', '(unknown)')}; use that or a newer one",
        )
    wrong = [name for name, holds in _HOLDS.items() if not holds(data.get(name))]
    if wrong:
        raise ResultsError(
            f"is damaged: {', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} missing or of another kind",
            where=path,
        )
    dropped = None if data.get("dropped") is None else {**_NOTHING_DROPPED, **data["dropped"]}
    return Facts(
        data["host"],
        data["clock"],
        data["origin"],
        data["sources"],
        data["retention"],
        [{"from_ns": None, "until_ns": None, **session} for session in data["sessions"]],
        dropped,
        str(data.get("iolab", "")),
        not holds(data),
        CRC in data,
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_optional_time(value: object) -> bool:
    return value is None or is_time(value)


def _origin(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("files", []), list)


def _sources(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(facts, dict) for facts in value.values())


def _retention(value: object) -> bool:
    return isinstance(value, dict) and all(
        limit is None or _is_count(limit) for limit in value.values()
    )


def _sessions(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(session, dict) and all(map(_is_optional_time, session.values()))
        for session in value
    )


def _is_dropped(value: object) -> bool:
    if not isinstance(value, dict):
        return value is None
    dropped = {**_NOTHING_DROPPED, **value}
    events = dropped["events"]
    return (
        isinstance(events, dict)
        and all(
            map(
                _is_count,
                (*events.values(), *(dropped[name] for name in ("through", "segments", "bytes"))),
            )
        )
        and is_time(dropped.get("maps_until_ns", 0))
        and all(_is_optional_time(dropped.get(name)) for name in ("until_ns", "maps_from_ns"))
    )


_NOTHING_DROPPED: Mapping[str, Any] = {
    "through": 0,
    "until_ns": None,
    "segments": 0,
    "events": {},
    "bytes": 0,
}

_HOLDS: Mapping[str, Callable[[object], bool]] = {
    "host": lambda value: isinstance(value, str),
    "clock": lambda value: value in get_args(ClockKind),
    "origin": _origin,
    "sources": _sources,
    "retention": _retention,
    "sessions": _sessions,
    "dropped": _is_dropped,
}
"""Of each part whether a value is what it may hold."""

NEAR_NS = 60_000_000_000
"""So far beyond the ends of a session may its first and last event lie; further out they come of a
clock that was set."""


class Sessions:
    """Keeps the last session of `facts` until it ends; of a recording that isn't live there is
    none.

    Attributes:
        told_ns: up to where everything is there; None before anyone said so.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.told_ns: int | None = None
        self._last_ns = 0

    def reach(self, batch: pa.RecordBatch) -> bool:
        """Take in a batch that came. Returns whether the session turned out to begin earlier."""
        session = self._going()
        if session is None:
            return False
        times, begun = batch.column("time_ns").to_numpy(), session["from_ns"] or 0
        first, last = int(times.min()), int(times.max())
        if last <= max(begun, self.told_ns or 0) + NEAR_NS:
            self._last_ns = max(self._last_ns, last + 1)
        earlier = begun - NEAR_NS <= first < begun
        if earlier:
            session["from_ns"] = first
        return earlier

    def is_set(self, begun: Begun) -> bool:
        """Whether the clock was set since the session began."""
        session = self._going()
        return (
            session is not None
            and Begun.of(session).set_by(begun.monotonic_ns, begun.realtime_ns) != 0
        )

    def end(self, now_ns: int | None = None) -> bool:
        """End the session; returns whether there was one. `now_ns`: until when it lasted where
        that is not recorded; None for its last event."""
        session = self._going()
        if session is None:
            return False
        until_ns = self.told_ns if self.told_ns is not None else now_ns
        session["until_ns"] = max(session["from_ns"] or 0, until_ns or 0, self._last_ns)
        return True

    def begin(self, begun: Begun) -> None:
        """Begin another one, after that before was ended."""
        self._facts.sessions.append(begun.session())
        self.told_ns, self._last_ns = begun.from_ns, 0

    def _going(self) -> dict[str, int | None] | None:
        last = self._facts.sessions[-1] if self._facts.sessions else None
        return last if last is not None and last["until_ns"] is None else None


FactsIdentity: TypeAlias = tuple[int, int, int, int] | None
"""Inode, size and times of change of a `recording.json`; None where there is none."""


def facts_identity(path: Path) -> FactsIdentity:
    """Which `recording.json` there is: it is replaced as a whole."""
    try:
        status = (path / FACTS).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


PLACES = ("enclosure", "slot", "pool", "vdev")
"""Fields of places. Slots are `ENCLOSURE/SLOT`, vdevs `POOL/VDEV`."""
ORIGIN = "disks"
"""Where `origin` of `recording.json` has them."""


@dataclass(frozen=True)
class DiskPeriod:
    """The places of a disk, until the next period of the same disk.

    Attributes:
        disk: its kernel name. after_ns: until then the earlier places are certain. from_ns: from
        then on these are. places: by field; what is not known is missing.
    """

    disk: str
    after_ns: int
    from_ns: int
    places: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """As `recording.json` has it."""
        times = {"after_ns": self.after_ns, "from_ns": self.from_ns}
        return {"disk": self.disk, **times, **self.places}


def periods_of(origin: Mapping[str, Any]) -> Iterator[DiskPeriod]:
    """The periods of a recording, in their order. Those that are damaged are left out."""
    lines = origin.get(ORIGIN)
    for line in lines if isinstance(lines, list) else ():
        if not isinstance(line, dict) or not isinstance(line.get("disk"), str):
            continue
        places = {field: line[field] for field in PLACES if isinstance(line.get(field), str)}
        if is_time(line.get("after_ns")) and is_time(line.get("from_ns")):
            yield DiskPeriod(line["disk"], line["after_ns"], line["from_ns"], places)


def places_within(
    periods: Iterable[DiskPeriod], field: str, from_ns: int | None, until_ns: int | None
) -> tuple[dict[str, str], list[str]]:
    """(the value of a field of each disk that had only this value in a time, disks of which the
    value changed in it)."""
    of_disk: dict[str, list[DiskPeriod]] = {}
    for period in periods:
        of_disk.setdefault(period.disk, []).append(period)
    certain: dict[str, str] = {}
    changed = []
    for disk, own in of_disk.items():
        first = DiskPeriod(disk, 0, 0, {})
        ends = [period.from_ns for period in own]
        values = {
            period.places.get(field)
            for period, end_ns in zip([first, *own], [*ends, None], strict=True)
            if (end_ns is None or end_ns > (from_ns or 0))
            and (until_ns is None or period.after_ns < until_ns)
        }
        if len(values) > 1:
            changed.append(disk)
        elif (value := next(iter(values), None)) is not None:
            certain[disk] = value
    return certain, changed
