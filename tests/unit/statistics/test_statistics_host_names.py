# SPDX-License-Identifier: Apache-2.0
"""Names of hosts for addresses: what is displayed, what a condition means, and tables that are
damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from iolab import _core
from iolab.base.errors import UsageError
from iolab.recordings.ask import aliases as module
from iolab.recordings.ask.aliases import HostNames, host_names
from iolab.recordings.ask.answers.answers import Stack
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.query import heat, query
from iolab.recordings.ask.question import Filter, parse
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.write.writer import RecordingWriter
from support.counters import SECOND, START, disk, kept, series, stack

TABLE = """# clients
10.0.0.7=backup
10.0.0.8 web web.example
10.0.0.9 = web
FD00:0::A=six
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The table of names in use, to be changed by a test before its first question."""
    place = tmp_path / "names"
    place.write_text(TABLE)
    monkeypatch.setenv(module.VARIABLE, str(place))
    monkeypatch.setattr(module, "HOSTS", tmp_path / "no-hosts")
    host_names.cache_clear()
    yield place
    host_names.cache_clear()


def test_labels(table: Path) -> None:
    names = host_names()
    assert names.label("client", "10.0.0.7") == "backup"
    assert names.label("peer", "::ffff:10.0.0.7") == "backup"
    assert names.label("server", "fd00::a") == "six"
    assert names.label("client", "10.0.0.8") == "web (10.0.0.8)"
    for value in ("10.0.0.1", "unknown", "others", "", "web"):
        assert names.label("client", value) == value
    assert names.label("device", "10.0.0.7") == "10.0.0.7"


def test_conditions_by_name(table: Path) -> None:
    def meant(text: str) -> str:
        return str(host_names().statistic(parse(text)))

    assert meant("nfs.ops[client=backup]") == "nfs.ops[client=10.0.0.7]"
    assert meant("nfs.ops[client!=web,10.0.0.8,x]") == "nfs.ops[client!=10.0.0.8,10.0.0.9,x]"
    assert meant("ip.bytes[peer=web (10.0.0.9)]") == "ip.bytes[peer=10.0.0.9]"
    assert meant("ip.bytes[peer=other (10.0.0.9)]") == "ip.bytes[peer=other (10.0.0.9)]"
    assert meant("file.ops[process=backup]") == "file.ops[process=backup]"


def test_answers_by_name(table: Path, tmp_path: Path) -> None:
    rows = disk("others", "sent_bytes", [0, 0]) + disk("10.0.0.7", "sent_bytes", [0, 5])
    rows += disk("10.0.0.8", "sent_bytes", [0, 3]) + disk("10.0.0.3", "sent_bytes", [0, 2])
    place = kept(tmp_path, {"tcp": rows})
    ends = (0.0, 1.0)
    answer = stack(place, "ip.bytes[peer]", ends)
    assert dict(zip(answer.keys, answer.totals, strict=True)) == {
        "backup": 5,
        "web (10.0.0.8)": 3,
        "10.0.0.3": 2,
    }
    for key, total in zip(answer.keys, answer.totals, strict=True):
        narrowed = series(place, f"ip.bytes[peer={key}]", ends)
        assert narrowed.total == total
        assert str(narrowed.statistic) == f"ip.bytes[peer={key}]"


def test_events_by_name(table: Path, tmp_path: Path) -> None:
    rows = [
        {
            "source": "nfs",
            "time_ns": START + at * SECOND,
            "op": "read",
            "count": 1,
            "client": f"10.0.0.{7 + at % 3}",
            "latency_ns": 1000,
            "latency_bucket": _core.grid_index(1000, 6),
        }
        for at in range(9)
    ]
    with RecordingWriter.create(
        tmp_path / "e",
        host="here",
        clock="realtime",
        origin={"kind": "record"},
        live=False,
        sources={"nfs": {}},
    ) as writer:
        writer.append_events(pa.RecordBatch.from_pylist(rows, EVENTS))
    place = Recording(tmp_path / "e")
    answer = query(place, "nfs.ops[client=web][client]")
    assert isinstance(answer, Stack)
    assert dict(zip(answer.keys, answer.totals, strict=True)) == {
        "web (10.0.0.8)": 3,
        "web (10.0.0.9)": 3,
    }
    assert heat(place, "latency", where={"client": ("backup",)}).total == 3
    whose = who(
        place,
        "latency",
        Rectangle(),
        entry="nfs.ops",
        filters=(Filter("client", "=", ("backup",)),),
    )
    [client] = [each for each in whose.dimensions if each.field == "client"]
    assert [value.value for value in client.values] == ["backup"]


@pytest.mark.parametrize(
    "text",
    ["10.0.0.7", "backup=10.0.0.7", "10.0.0.300=x", "10.0.0.7=a;b", "10.0.0.7=\x1b[31m", "=x"],
)
def test_a_damaged_table_names_its_line(table: Path, text: str) -> None:
    table.write_text(f"10.0.0.1=one\n{text}\n")
    with pytest.raises(UsageError, match="has no address and name") as caught:
        host_names()
    assert str(caught.value.where) == f"{table}:2"


@pytest.mark.parametrize("kind", ["missing", "directory", "binary", "pipe", "large"])
def test_a_table_that_cannot_be_read(table: Path, kind: str) -> None:
    table.unlink()
    if kind == "directory":
        table.mkdir()
    elif kind == "binary":
        table.write_bytes(b"10.0.0.7=\xff\xfe\n")
    elif kind == "pipe":
        os.mkfifo(table)
    elif kind == "large":
        with table.open("wb") as file:
            file.truncate(module.MOST_BYTES + 1)
    with pytest.raises(UsageError, match="cannot be read"):
        host_names()


def test_the_hosts_file_is_second_and_its_odd_lines_are_skipped(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = table.parent / "hosts"
    hosts.write_bytes(
        b"127.0.0.1 localhost\n::1 localhost\n10.0.0.7 other\n10.0.0.2 files alias # x\n"
        b"10.0.0.2 again\nnonsense\n10.0.0.4\n10.0.0.5 \xc3\xa4\n"
    )
    monkeypatch.setattr(module, "HOSTS", hosts)
    names = host_names()
    assert names.label("client", "10.0.0.7") == "backup"
    assert names.label("client", "10.0.0.2") == "files"
    assert names.label("client", "127.0.0.1") == "127.0.0.1"
    for name in ("nonsense", "10.0.0.4", "10.0.0.5"):
        assert name not in names.by_address
    hosts.write_bytes(b"\xff\n")
    host_names.cache_clear()
    assert host_names().label("client", "10.0.0.2") == "10.0.0.2"


def test_many_addresses_are_labelled_in_little_time() -> None:
    names = HostNames({f"10.1.{place >> 8}.{place & 255}": f"h{place}" for place in range(50_000)})
    assert names.label("client", "10.1.0.9") == "h9"
    assert len(names.labels("client", [f"10.1.0.{place}" for place in range(200)] * 20)) == 4000
