# SPDX-License-Identifier: Apache-2.0
"""Statistics of the NFS server: operations and bytes by version, client, procedure and file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from iolab.base.errors import UsageError
from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.available import available
from iolab.recordings.ask.query import query
from iolab.recordings.ask.question import parse
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter

SECOND = 10**9
OPERATIONS = [
    # version, client, procedure, op, file, offset, size, latency, error
    ("v3", "10.0.0.7", "READ", "read", "fh:00000a01", 0, 8192, 90_000, None),
    ("v3", "10.0.0.7", "READ", "read", "fh:00000a01", 8192, 8192, 110_000, None),
    ("v3", "10.0.0.8", "WRITE", "write", "fh:00000a02", 0, 4096, 2_000_000, None),
    ("v4", "10.0.0.8", "READ", "read", "fh:00000a03", 65536, 1024, 50_000, None),
    ("v4", "10.0.0.8", "GETATTR", "other", None, None, None, 20_000, None),
    ("v4", "10.0.0.8", "OPEN", "other", None, None, None, 30_000, "NFS4ERR_NOENT"),
]


def recorded(place: Path) -> Recording:
    """A recording of these operations, one a second, as the probe tells them."""
    rows = [
        {
            "source": "nfs",
            "time_ns": at * SECOND,
            "op": op,
            "count": 1,
            "mount": version,
            "client": client,
            "flags": procedure,
            "file": file,
            "offset_bytes": offset,
            "size_bytes": size,
            "latency_ns": latency,
            "error": error,
            "thread": 233,
        }
        for at, (version, client, procedure, op, file, offset, size, latency, error) in enumerate(
            OPERATIONS
        )
    ]
    with RecordingWriter.create(
        place,
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        live=False,
        sources={"nfs": {}},
    ) as writer:
        writer.append_events(pa.RecordBatch.from_pylist(rows, EVENTS))
    return Recording(place)


def asked(place: Recording, name: str) -> Series | Stack:
    answer = query(place, name, from_ns=0, until_ns=len(OPERATIONS) * SECOND, interval_ns=SECOND)
    assert isinstance(answer, Series | Stack)
    return answer


def totals(place: Recording, name: str) -> dict[str, float]:
    found = asked(place, name)
    assert isinstance(found, Stack)
    return dict(zip(found.keys, found.totals, strict=True))


def test_operations_and_bytes_by_who_and_what(tmp_path: Path) -> None:
    place = recorded(tmp_path / "r")
    assert totals(place, "nfs.ops[version]") == {"v3": 3, "v4": 3}
    assert totals(place, "nfs.ops[client]") == {"10.0.0.7": 2, "10.0.0.8": 4}
    assert totals(place, "nfs.ops[version=v4][procedure]") == {"GETATTR": 1, "OPEN": 1, "READ": 1}
    assert totals(place, "nfs.ops[error]") == {"none": 5, "NFS4ERR_NOENT": 1}
    assert totals(place, "nfs.bytes[op]") == {"read": 17408, "write": 4096, "other": 0}
    assert totals(place, "nfs.bytes[client=10.0.0.7][file]") == {"fh:00000a01": 16384}
    assert totals(place, "nfs.ops[file]")["unknown"] == 2
    assert asked(place, "nfs.ops[op=read][latency>=100us]").total == 1
    assert asked(place, "nfs.ops[offset>=8KiB][size<4KiB]").total == 1


def test_a_version_that_did_not_occur_is_named(tmp_path: Path) -> None:
    found = asked(recorded(tmp_path / "r"), "nfs.ops[version=v2]")
    assert found.total == 0
    assert any("v2" in note and "v3" in note for note in found.notes)


def test_what_the_source_tells(tmp_path: Path) -> None:
    found = {each.entry.name: each for each in available(recorded(tmp_path / "r"))}
    for name in ("nfs.ops", "nfs.bytes"):
        assert (found[name].source, found[name].lacking) == ("nfs", {})
        assert found[name].breakdowns == found[name].entry.breakdowns
    assert found["file.ops"].why_not


@pytest.mark.parametrize("name", ["nfs.ops[device]", "file.ops[version]", "nfs.ops[mount=v3]"])
def test_fields_of_other_statistics_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        parse(name)
