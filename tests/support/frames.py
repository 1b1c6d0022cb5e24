# SPDX-License-Identifier: Apache-2.0
"""Frames as the probe writes them, and a probe that runs anywhere: `python frames.py SCRIPT.json
[probe's arguments]`.

The script is JSON: `rate` events a second and source, `seconds` (then it ends), `die_after` (then
it dies with `exit_code`), `damage_after` (then it writes noise), `lose` (events lost each second),
`refuse` ({"code", "words"}: it never begins), `mute_after`, `log` (a file to which each start
appends its arguments and pid, and when it said hello), `set_ahead` (seconds by which the clock is
set ahead once the first probe has begun; those after it know, by the log).
"""

from __future__ import annotations

import itertools
import json
import os
import select
import struct
import sys
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

KINDS = ("hello", "events", "samples", "loss", "tick", "process", "note", "end")
COLUMNS = {
    "time_ns": (0, "q"),
    "op": (1, "B"),
    "count": (2, "Q"),
    "latency_ns": (3, "Q"),
    "queue_ns": (4, "Q"),
    "offset_bytes": (5, "Q"),
    "size_bytes": (6, "Q"),
    "pid": (7, "I"),
    "thread": (8, "I"),
    "device": (9, "I"),
    "process": (10, "I"),
    "file": (11, "I"),
    "mount": (12, "I"),
    "client": (13, "I"),
    "job": (14, "I"),
    "error": (15, "I"),
    "flags": (16, "I"),
}
FIRST_NAMED = 9


def frame(kind: str, payload: bytes) -> bytes:
    """Head and payload."""
    return (
        b"ioLb"
        + struct.pack("<BBHII", 2, KINDS.index(kind) + 1, 0, len(payload), zlib.crc32(payload))
        + payload
    )


def words(kind: str, **data: Any) -> bytes:
    """A frame of JSON; `loss_kind` becomes the loss's own kind."""
    if "loss_kind" in data:
        data["kind"] = data.pop("loss_kind")
    return frame(kind, json.dumps(data).encode())


def _names(names: Sequence[str]) -> bytes:
    return struct.pack("<I", len(names)) + b"".join(
        struct.pack("<H", len(name.encode())) + name.encode() for name in names
    )


def events(
    source: str,
    columns: Mapping[str, Sequence[int | None]],
    names: Mapping[str, Sequence[str]] | None = None,
    restarted: Collection[str] = (),
) -> bytes:
    """A frame of events. `names`: those that are new, by column. `restarted`: columns whose names
    are numbered from 0 again."""
    rows = len(columns["time_ns"])
    out = struct.pack("<B", len(source)) + source.encode() + struct.pack("<I", rows)
    for name, values in sorted(columns.items(), key=lambda item: COLUMNS[item[0]][0]):
        number, code = COLUMNS[name]
        flags = 4 if name in restarted else 0
        out += struct.pack("<B", number)
        if None in values:
            bits = [
                sum(
                    1 << place
                    for place, value in enumerate(values[start : start + 8])
                    if value is not None
                )
                for start in range(0, rows, 8)
            ]
            out += bytes([2 | flags, *bits])
        else:
            out += bytes([1 | flags])
        out += struct.pack(f"<{rows}{code}", *(value or 0 for value in values))
        if number >= FIRST_NAMED:
            out += _names((names or {}).get(name, ()))
    return frame("events", out)


def samples(
    source: str,
    rows: Sequence[tuple[int, int, int, int]],
    objects: Sequence[str],
    fields: Sequence[str],
) -> bytes:
    """A frame of samples: (time, object, field, value) each."""
    out = struct.pack("<B", len(source)) + source.encode() + struct.pack("<I", len(rows))
    for column, code in enumerate("qIIq"):
        out += struct.pack(f"<{len(rows)}{code}", *(row[column] for row in rows))
    return frame("samples", out + _names(objects) + _names(fields))


def hello(
    realtime_ns: int,
    sources: Sequence[str] = ("block",),
    notes: Sequence[str] = (),
    monotonic_ns: int | None = None,
    set_up_ns: int = 0,
) -> bytes:
    """The first frame. `monotonic_ns`: at that time; default: as if the machine had begun in 1970.
    `set_up_ns`: how long the rest of the setup took once the sources were covered."""
    return words(
        "hello",
        probe="0",
        kernel="6.1",
        hostname="here",
        page_size=4096,
        cpus=2,
        monotonic_ns=realtime_ns if monotonic_ns is None else monotonic_ns,
        realtime_ns=realtime_ns,
        from_ns=realtime_ns + set_up_ns,
        covered_ns={name: realtime_ns for name in sources if name != "counters"},
        sources={name: {"what": name} for name in sources},
        words=list(notes),
    )


def some_events(source: str, from_ns: int, rows: int, first: bool) -> bytes:
    """Events a microsecond apart, reads and writes in turn, half of them without a latency's
    neighbour: an offset."""
    spread = range(rows)
    return events(
        source,
        {
            "time_ns": [from_ns + 1000 * at for at in spread],
            "op": [at % 2 for at in spread],
            "latency_ns": [80_000 + 1000 * (at % 50) for at in spread],
            "offset_bytes": [None if at % 2 else 4096 * at for at in spread],
            "size_bytes": [4096] * rows,
            "device": [0] * rows,
            "process": [at % 2 for at in spread],
            "pid": [100] * rows,
        },
        {"device": ["sda"], "process": ["fio", "dd"]} if first else {},
    )


def tick(
    now_ns: int,
    so_far: Mapping[str, int],
    lost: Mapping[str, int],
    cpu_ns: int = 1_000_000,
    clocks: tuple[int, int] | None = None,
) -> bytes:
    """A second is over. `clocks`: monotonic and realtime ns at one moment; default: as in `hello`."""
    monotonic_ns, realtime_ns = clocks or (now_ns, now_ns)
    return words(
        "tick",
        now_ns=now_ns,
        monotonic_ns=monotonic_ns,
        realtime_ns=realtime_ns,
        cpu_ns=cpu_ns,
        rss_bytes=1 << 20,
        events=dict(so_far),
        lost=dict(lost),
        backlog=0,
    )


def _main(script: Mapping[str, Any], arguments: Sequence[str]) -> int:
    monotonic_ns, ahead_ns = time.monotonic_ns(), round(script.get("set_ahead", 0) * 1e9)
    log = Path(script["log"]) if script.get("log") else None
    known_ns = ahead_ns if log is not None and log.exists() and log.stat().st_size else 0
    hello_ns = time.time_ns() + known_ns
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(
                json.dumps(
                    {
                        "pid": os.getpid(),
                        "arguments": list(arguments),
                        "uid": os.geteuid(),
                        "hello_ns": hello_ns,
                    }
                )
                + "\n"
            )
    if "refuse" in script:
        print(script["refuse"]["words"], file=sys.stderr)
        return int(script["refuse"]["code"])
    out = os.fdopen(1, "wb", buffering=0, closefd=False)
    sources = [value for flag, value in itertools.pairwise(arguments) if flag == "--source"]
    out.write(hello(hello_ns, sources, monotonic_ns=monotonic_ns))
    begun, step, so_far, lost, asked = (
        time.monotonic(),
        0.1,
        dict.fromkeys(sources, 0),
        dict.fromkeys(sources, 0),
        False,
    )
    rate, first, last_tick = script.get("rate", 100), set(sources), begun
    while not asked:
        if select.select([0], [], [], step)[0]:
            heard = os.read(0, 100)
            asked = not heard or b"stop" in heard  # other words only say that somebody is there
        now = time.monotonic()
        if "die_after" in script and now - begun >= script["die_after"]:
            print("a fault of its own", file=sys.stderr)
            os._exit(script.get("exit_code", 9))
        if "damage_after" in script and now - begun >= script["damage_after"]:
            out.write(b"noise" * 100)
        if "mute_after" in script and now - begun >= script["mute_after"]:
            continue
        for name in sources:
            # so many a second whatever else the machine does, but never more at once
            rows = min(round(rate * (now - begun)) - so_far[name], max(1, round(rate)))
            if name == "counters":
                new = (["sda"], ["reads"]) if name in first else ([], [])
                out.write(
                    samples("diskstats", [(time.time_ns() + known_ns, 0, 0, so_far[name])], *new)
                )
            elif rows:
                out.write(
                    some_events(name, time.time_ns() + known_ns - 1000 * rows, rows, name in first)
                )
                so_far[name] += rows
            else:
                continue
            first.discard(name)
        if (
            asked
            or now - last_tick >= 1.0
            or (script.get("seconds") and now - begun >= script["seconds"])
        ):
            last_tick = now
            if script.get("lose"):
                for name in sources:
                    lost[name] += script["lose"]
                    out.write(
                        words(
                            "loss",
                            source=name,
                            loss_kind="overrun",
                            from_ns=time.time_ns() - 10,
                            until_ns=time.time_ns(),
                            count=script["lose"],
                            words="the ring was full",
                        )
                    )
            spent_ns = time.process_time_ns() + round(script.get("cpu", 0) * (now - begun) * 1e9)
            out.write(
                tick(
                    time.time_ns() + known_ns,
                    so_far,
                    lost,
                    spent_ns,
                    (time.monotonic_ns(), time.time_ns() + ahead_ns),
                )
            )
        if script.get("seconds") and now - begun >= script["seconds"]:
            break
    out.write(words("end", reason="asked", events=so_far, lost=lost))
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(_main(json.loads(sys.argv[1]), sys.argv[2:]))
    except BrokenPipeError:
        os._exit(0)
