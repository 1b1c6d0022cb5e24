"""`recording.json`: what a recording is: host, clock, sessions, sources, retention, origin, and what retention dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .. import __version__
from ..errors import ResultsError
from .layout import FACTS, telling, write_json

SCHEMA = 1

ClockKind: TypeAlias = Literal["realtime", "trace"]

STEP_NS = 1_000_000_000
"""A clock that is further off than this from where it was has been set, or the machine slept."""


@dataclass(frozen=True)
class Begun:
    """How what is recorded began: `from_ns`, from where on all of it is there; `monotonic_ns` and `realtime_ns` of one moment, by which
    all times are told."""

    from_ns: int
    monotonic_ns: int
    realtime_ns: int

    def set_by(self, monotonic_ns: int, realtime_ns: int) -> int:
        """By how many ns the time of day was set ahead since, as of these clocks at one moment (negative: back); 0 where it was not."""
        step = realtime_ns - monotonic_ns - (self.realtime_ns - self.monotonic_ns)
        return step if abs(step) > STEP_NS else 0

    @classmethod
    def of(cls, session: Mapping[str, int | None]) -> Begun:
        """How a session began."""
        return cls(*(session.get(name) or 0 for name in ("from_ns", "monotonic_ns", "realtime_ns")))

    def session(self) -> dict[str, int | None]:
        """A session of `recording.json` that begins so, and goes on."""
        return {"from_ns": self.from_ns, "until_ns": None, "monotonic_ns": self.monotonic_ns, "realtime_ns": self.realtime_ns}


@dataclass
class Facts:
    """The content of `recording.json`.

    Attributes:
        host: name of the host whose I/O it is; "" where a trace doesn't tell.
        clock: "realtime" (ns since the Unix epoch) or "trace" (whatever clock the imported traces have).
        sessions: spans in which something recorded live: from_ns, until_ns (None while it lasts, or until the next writer sees
            that it was killed), monotonic_ns and realtime_ns of one moment, by which its times are told: where the clock is set
            another one begins. None of an import.
        sources: facts of each source by its name.
        retention: limits `bytes` and `age_s`, None for no limit; perhaps `maps_bytes` and `maps_age_s` (see `retention.map_limits`).
        origin: kind "record", "import" or "run", and more of it.
        dropped: what retention removed, if anything: through (number of the last segment removed), until_ns, segments, events,
            bytes; maps_until_ns and maps_from_ns, of default maps that went and of the oldest left of a segment that is gone.
    """

    host: str
    clock: ClockKind
    origin: dict[str, Any]
    sources: dict[str, Any] = field(default_factory=dict)
    retention: dict[str, int | None] = field(default_factory=lambda: {"bytes": None, "age_s": None})
    sessions: list[dict[str, int | None]] = field(default_factory=list)
    dropped: dict[str, Any] | None = None
    iolab: str = __version__

    @property
    def dropped_through(self) -> int:
        """Segments up to this number were removed by retention; their default maps remain for longer."""
        return int((self.dropped or {}).get("through", 0))

    def as_json(self) -> dict[str, Any]:
        """As it is written."""
        return {"schema": SCHEMA, "kind": "recording", **asdict(self)}

    def write(self, directory: Path) -> None:
        """Write it as a whole, on disk on return. ResultsError where that fails; the one before then remains."""
        with telling(directory / FACTS, "write what the recording is"):
            write_json(directory / FACTS, self.as_json())


def read_facts(directory: Path) -> Facts:
    """ResultsError where there is no recording, a damaged one, or one of a newer schema."""
    path = directory / FACTS
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ResultsError("is not a recording", where=directory, hint=f"a recording's directory has a {FACTS}") from None
    except OSError as error:
        raise ResultsError(f"can't be read: {error.strerror or error}", where=path) from None
    except (ValueError, RecursionError):
        raise ResultsError("is damaged: not JSON", where=path) from None
    if not isinstance(data, dict) or data.get("kind") != "recording" or not isinstance(data.get("schema"), int):
        raise ResultsError("is damaged: doesn't say that it is a recording, and of which schema", where=path)
    if data["schema"] > SCHEMA:
        raise ResultsError(f"has schema {data['schema']}, this iolab knows up to {SCHEMA}", where=path,
                           hint=f"it was written by iolab {data.get('iolab', '(unknown)')}; use that or a newer one")
    kinds = {"host": str, "clock": str, "origin": dict, "sources": dict, "retention": dict, "sessions": list}
    wrong = [name for name, kind in kinds.items() if not isinstance(data.get(name), kind)]
    if not isinstance(data.get("dropped"), dict | None):
        wrong.append("dropped")
    if not wrong and not all(isinstance(each, dict) for each in data["sessions"]):
        wrong.append("a session")
    if wrong:
        raise ResultsError(f"is damaged: {', '.join(wrong)} is missing or of another kind", where=path)
    return Facts(data["host"], data["clock"], data["origin"], data["sources"], data["retention"], data["sessions"],
                 data.get("dropped"), str(data.get("iolab", "")))
