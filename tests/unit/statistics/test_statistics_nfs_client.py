# SPDX-License-Identifier: Apache-2.0
"""Statistics of the NFS client: growth of /proc/self/mountstats by server, mount and procedure."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.recordings.ask.answers.answers import Series, Stack
from iolab.recordings.ask.answers.json_form import is_averaged
from iolab.recordings.ask.kept import manage
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording
from support.counters import NAN, SECOND, START, disk, kept, same, series, stack

FIELDS = (
    "ops",
    "transmissions",
    "timeouts",
    "sent_bytes",
    "received_bytes",
    "queue_ms",
    "rtt_ms",
    "execute_ms",
    "errors",
    "read_bytes",
    "written_bytes",
)
READ_A = {
    "ops": [100, 110, 130],
    "transmissions": [100, 110, 133],
    "timeouts": [0, 0, 2],
    "sent_bytes": [0, 1000, 3000],
    "received_bytes": [0, 41_960, 125_880],
    "queue_ms": [0, 10, 20],
    "rtt_ms": [50, 70, 110],
    "execute_ms": [60, 100, 170],
    "errors": [0, 0, 0],
    "read_bytes": [0, 40_960, 122_880],
}
WRITE_B = {"ops": [0, 0, 5], "transmissions": [0, 0, 5], "written_bytes": [0, 0, 20_480]}
LOOKUP_B = {"ops": [4, 8, 8], "errors": [1, 3, 3], "rtt_ms": [0, 4, 4], "execute_ms": [0, 8, 8]}


def recorded(place: Path) -> Recording:
    """Two mounts, of which only what moves is in a reading."""
    rows = [row for field in FIELDS for row in disk("", field, [0, 0, 0])]
    for name, fields in (
        ("alpha\t/mnt/a\tREAD", READ_A),
        ("beta\t/mnt/b c\tWRITE", WRITE_B),
        ("beta\t/mnt/b c\tLOOKUP", LOOKUP_B),
    ):
        for field, values in fields.items():
            rows += disk(name, field, values)
    return kept(place, {"nfs-client": rows})


def totals(recording: Recording, name: str) -> dict[str, int]:
    found = stack(recording, name, (0, 2))
    assert found.total == sum(found.totals)
    return dict(zip(found.keys, found.totals, strict=True))


def test_operations_and_bytes_by_server_mount_and_procedure(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    assert series(recording, "nfs.client.ops", (0, 2)).total == 39
    assert totals(recording, "nfs.client.ops[server]") == {"alpha": 30, "beta": 9}
    assert totals(recording, "nfs.client.ops[mount]") == {"/mnt/a": 30, "/mnt/b c": 9}
    by_procedure = {"READ": 30, "WRITE": 5, "LOOKUP": 4}
    assert totals(recording, "nfs.client.ops[procedure]") == by_procedure
    of_beta = {"WRITE": 5, "LOOKUP": 4}
    assert totals(recording, "nfs.client.ops[server=beta][procedure]") == of_beta
    assert totals(recording, "nfs.client.ops[procedure!=READ][mount]") == {"/mnt/b c": 9}
    assert totals(recording, "nfs.client.bytes[op]") == {"read": 122_880, "write": 20_480}
    by_direction = {"in": 125_880, "out": 3000}
    assert totals(recording, "nfs.client.traffic[direction]") == by_direction
    by_kind = {"retransmission": 3, "timeout": 2, "error": 2}
    assert totals(recording, "nfs.client.errors[kind]") == by_kind


def test_latency_is_the_mean_over_operations(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    whole = series(recording, "nfs.client.latency[mount=/mnt/a]", (0, 2))
    same(whole.values, [4e6, 3.5e6])
    assert whole.unit == "ns"
    assert whole.mean == pytest.approx(110e6 / 30)
    phases = stack(recording, "nfs.client.latency[mount=/mnt/a][phase]", (0, 2))
    assert dict(zip(phases.keys, phases.averages or [], strict=True)) == {
        "server": pytest.approx(2e6),
        "other": pytest.approx(1e6),
        "queue": pytest.approx(20e6 / 30),
    }
    by_procedure = stack(recording, "nfs.client.latency[procedure]", (0, 2))
    assert is_averaged(by_procedure)
    assert not by_procedure.adds_up
    same(by_procedure.values[by_procedure.keys.index("LOOKUP")], [2e6, NAN])


def test_names_that_did_not_occur_are_named(tmp_path: Path) -> None:
    found = series(recorded(tmp_path), "nfs.client.ops[server=gamma][procedure=REED]", (0, 2))
    assert found.total == 0
    assert any("gamma" in note and "alpha, beta" in note for note in found.notes)
    assert any("REED" in note and "LOOKUP, READ, WRITE" in note for note in found.notes)


def test_names_without_their_parts_are_no_crash(tmp_path: Path) -> None:
    rows = disk("", "ops", [0, 0]) + disk("odd", "ops", [0, 3]) + disk("a\tb\tc\td", "ops", [0, 1])
    recording = kept(tmp_path, {"nfs-client": rows})
    found = stack(recording, "nfs.client.ops[procedure]", (0, 1))
    assert dict(zip(found.keys, found.totals, strict=True)) == {"c": 1, "": 3}
    assert found.total == 4


@pytest.mark.parametrize(
    "name",
    [
        "nfs.client.ops",
        "nfs.client.ops[server=beta][procedure]",
        "nfs.client.bytes[mount]",
        "nfs.client.latency[server]",
        "nfs.client.errors[kind]",
    ],
)
def test_roll_ups_answer_as_the_readings_do(tmp_path: Path, name: str) -> None:
    recording = recorded(tmp_path)
    manage.add(recording.path, [name], backfill=True)
    recording = Recording(recording.path)
    counted, rolled_up = (
        query(recording, name, from_ns=START, until_ns=START + 2 * SECOND, kept=kept_too)
        for kept_too in (False, True)
    )
    assert isinstance(counted, Series | Stack)
    assert isinstance(rolled_up, Series | Stack)
    assert rolled_up.total == counted.total
    assert rolled_up.mean == pytest.approx(counted.mean)
    if isinstance(counted, Stack) and isinstance(rolled_up, Stack):
        assert (rolled_up.keys, rolled_up.totals) == (counted.keys, counted.totals)
        assert rolled_up.averages == pytest.approx(counted.averages)
    [table] = list((recording.path / "histograms").rglob("*.parquet"))[:1]
    assert table.stat().st_size > 0
