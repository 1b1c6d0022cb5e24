# SPDX-License-Identifier: Apache-2.0
"""Recordings for archives, and questions to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.metadata import Begun, Facts
from iolab.recordings.store.base.schema import SAMPLES
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import SECOND, START, events

SEGMENT_S = 5
SOURCES = ("block", "syscall")


def record(path: Path, segments: int = 3, host: str = "db1", seed: int = 0) -> None:
    """A sealed recording of two sources and counters, with a gap between two sessions, and
    losses."""

    def begun(second: int) -> Begun:
        return Begun(START + second * SECOND, second * SECOND, START + second * SECOND)

    sources: dict[str, Any] = {"block": {}, "syscall": {}, "diskstats": {}}
    facts = Facts(host, "realtime", {"kind": "record"}, sources)
    with RecordingWriter.begin(path, facts, begun=begun(0)) as writer:
        for number in range(segments - 1):
            append(writer, number, seed)
        for second in range(3):
            first_ns = START + second * SECOND
            writer.loss("overrun", "block", first_ns, first_ns + SECOND, 7 + second, "full")
        writer.loss("damaged", "syscall", None, None, 3, "lines")
        writer.tick(START + (segments - 1) * SEGMENT_S * SECOND)
    with RecordingWriter.reopen(path, begun=begun(segments * SEGMENT_S + 4)) as writer:
        append(writer, segments + 1, seed)
        writer.tick(START + (segments + 2) * SEGMENT_S * SECOND)


def append(writer: RecordingWriter, number: int, seed: int) -> None:
    start_ns = START + number * SEGMENT_S * SECOND
    for source in SOURCES:
        writer.append_events(
            events(200, number + 100 * seed, source=source, start_ns=start_ns, per_s=40)
        )
    writer.append_samples(readings(SEGMENT_S, number, start_ns))
    writer.seal()


def readings(seconds: int, number: int, start_ns: int) -> pa.RecordBatch:
    """A reading a second of counters of two disks that grow through all segments."""
    lines = [
        {
            "source": "diskstats",
            "time_ns": start_ns + second * SECOND,
            "object": disk,
            "field": field,
            "value": (number * seconds + second + 1) * growth * (2 if disk == "sdb" else 1),
        }
        for second in range(seconds)
        for disk in ("sda", "sdb")
        for field, growth in (("reads", 7), ("io_ms", 300))
    ]
    return pa.RecordBatch.from_pylist(lines, schema=SAMPLES)


def answer_of(recording: Recording, text: str, **asked: Any) -> Any:
    """An answer as JSON has it, or the message of the error."""
    try:
        return as_data(parse(text), query(recording, text, **asked), None)
    except UsageError as error:
        return error.message


FIELDS = ("op", "device", "process", "file", "client", "pid", "error", "flags")
VALUES = {
    "op": ("read", "write", "flush"),
    "device": ("sda", "nvme0n1", "unknown", "nothing"),
    "process": ("fio", "a b", "unknown"),
    "latency": (">=100us", "<1ms", "=10us..10ms"),
    "size": (">4KiB", "=8KiB"),
}
BREAKDOWNS = (*FIELDS, "latency", "queue", "offset", "size", None)


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A statistic and the other arguments of a question."""
    text = draw(st.sampled_from(("io.ops", "io.bytes", "file.ops", "file.bytes")))
    for field in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2, unique=True)):
        value = draw(st.sampled_from(VALUES[field]))
        sign = "" if field in ("latency", "size") else draw(st.sampled_from(("=", "!=")))
        text += f"[{field}{sign}{value}]"
    breakdown = draw(st.sampled_from(BREAKDOWNS))
    moment = st.one_of(
        st.none(),
        st.integers(-2, 30).map(lambda second: START + second * SECOND),
        st.integers(0, 25 * SECOND).map(lambda ns: START + ns),
    )
    return text + (f"[{breakdown}]" if breakdown else ""), {
        "from_ns": draw(moment),
        "until_ns": draw(moment),
        "interval_ns": draw(st.sampled_from((None, SECOND, 2 * SECOND, SECOND // 7))),
        "columns": draw(st.sampled_from((7, 400))),
        "source": draw(st.sampled_from((None, *SOURCES))),
    }
