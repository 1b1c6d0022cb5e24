# SPDX-License-Identifier: Apache-2.0
"""`iolab query`, and `iolab heatmap` of recordings, as a user types them, and every mistake as one
line."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iolab
from iolab.api import Events
from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.output.server.base.store import Store
from iolab.output.server.queries.drill import ios
from iolab.recordings.ask import aliases
from iolab.recordings.ask.question import Question
from iolab.recordings.store.read.trace import Trace
from iolab.recordings.store.write.ingest import ingest
from iolab.recordings.store.write.writer import RecordingWriter
from support.counters import disk, kept
from support.golden import Golden
from support.recordings import SECOND, START, events


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds: every ms a read of 8 KiB by fio, every 10 ms a write of 128 KiB by dd."""
    path = tmp_path_factory.mktemp("trace") / "t.csv"
    lines = [
        f"{place},100,{8192 * place},8192,read,fio\n"
        + (f"{place},5000,{131072 * place},131072,write,dd\n" if place % 10 == 0 else "")
        for place in range(10_000)
    ]
    path.write_text("time:ms,latency:us,offset:bytes,size:bytes,op,process\n" + "".join(lines))
    return path


@pytest.fixture(scope="module")
def ingested(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ingested") / "rec"
    ingest(Trace(trace), path)
    return path


@pytest.fixture
def recording(ingested: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path / "rec"))


def done(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert run([str(arg) for arg in args]) == 0
    out, _ = capsys.readouterr()
    return out


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_series(trace: Path, recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (trace, recording):
        out = done(capsys, "query", path, "io.ops")
        assert f"{path.name}: io.ops: 11 000 I/Os over 9.999 s, 1100 1/s on average" in out
        assert "█" in out
        assert "mean 1100 1/s" in out
        found = rows(
            done(capsys, "query", path, "io.ops[op=write]", "--interval", "2s", "--format", "csv")
        )
        assert [(row["time_s"], row["value"]) for row in found] == [
            ("0", "100"),
            ("2", "100"),
            ("4", "100"),
            ("6", "100"),
            ("8", "100"),
        ]
        shown = json.loads(
            done(capsys, "query", path, "io.bytes", "--format", "json", "--interval", "10s")
        )
        assert (
            shown["schema"],
            shown["kind"],
            shown["unit"],
            shown["t0_ns"],
            shown["interval_ns"],
        ) == (1, "series", "B/s", 0, 10**10)
        assert shown["total"] == 10_000 * 8192 + 1000 * 131072


def test_a_stack(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "query", recording, "io.bytes[process]")
    assert out.splitlines()[1].split() == ["process", "average", "MiB/s", "share"]
    assert "61.5 %" in next(line for line in out.splitlines() if line.startswith("dd"))
    found = rows(
        done(
            capsys,
            "query",
            recording,
            "io.ops[process]",
            "--interval",
            "5s",
            "--format",
            "csv",
            "--top",
            "1",
        )
    )
    assert found[:2] == [
        {"time_s": "0", "process": "fio", "value": "1000"},
        {"time_s": "0", "process": "(others)", "value": "100"},
    ]
    shown = json.loads(
        done(capsys, "query", recording, "io.ops[op]", "--format", "json", "--interval", "5s")
    )
    assert [(each["key"], each["total"], each["values"]) for each in shown["keys"]] == [
        ("read", 10_000, [1000, 1000]),
        ("write", 1000, [100, 100]),
    ]
    assert shown["others"] is None


def test_names_of_others_are_never_written_to_the_terminal_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a\x1b]0;b\x07", "fio")
    (tmp_path / "t.csv").write_text(
        "time:ms,latency:us,op,process\n"
        + "".join(f"{place},{place + 1},read,{names[place % 2]}\n" for place in range(100))
    )
    for command, *args in (("query", "io.ops[process]"), ("who", "io.ops", "--range", "1us..20us")):
        out = done(capsys, command, tmp_path / "t.csv", *args)
        assert "a\\x1b]0;b\\x07" in out
        assert all(line.isprintable() for line in out.splitlines())


def test_a_map(trace: Path, recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [
        done(capsys, "query", path, "io.ops[latency]", "--interval", "1s", "--format", "csv")
        for path in (trace, recording)
    ]
    assert tables[0] == tables[1]
    found = rows(tables[0])
    assert sum(int(row["count"]) for row in found) == 11_000
    assert all(
        float(row["low"]) <= (0.005 if int(row["count"]) == 100 else 0.0001) < float(row["high"])
        for row in found
    )
    assert "I/Os in a cell" in done(capsys, "query", recording, "io.ops[size]")
    shown: dict[str, Any] = json.loads(
        done(
            capsys,
            "query",
            recording,
            "io.ops[op=write][size]",
            "--interval",
            "10s",
            "--format",
            "json",
        )
    )
    assert (shown["kind"], shown["unit"], shown["count"], shown["filtered"]) == (
        "heat",
        "B",
        [1000],
        10_000,
    )
    assert shown["low"][0] <= 131072 < shown["high"][0]


def test_a_map_of_bytes(
    trace: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [
        done(capsys, "query", path, "io.bytes[latency]", "--interval", "1s", "--format", "csv")
        for path in (trace, recording)
    ]
    assert tables[0] == tables[1]
    assert sum(int(row["bytes"]) for row in rows(tables[0])) == 10_000 * 8192 + 1000 * 131072
    for path in (trace, recording):
        shown = json.loads(
            done(
                capsys,
                "query",
                path,
                "io.bytes[op=write][size]",
                "--interval",
                "10s",
                "--format",
                "json",
            )
        )
        assert (shown["weight"], shown["count"], shown["events"], shown["filtered"]) == (
            "bytes",
            [1000 * 131072],
            1000,
            10_000,
        )
        drawn = done(capsys, "query", path, "io.bytes[offset]")
        assert "11 000 I/Os over" in drawn
        assert "203.1 MiB moved by them" in drawn
        assert "bytes in a cell" in drawn
    followed = rows(
        done(capsys, "query", recording, "io.bytes[latency]", "--follow", "--format", "csv")
    )
    assert sum(int(row["bytes"]) for row in followed) == 10_000 * 8192 + 1000 * 131072
    who = done(capsys, "who", recording, "io.bytes[latency]", "--range", "1ms..1s")
    assert "131 072 000 B within 1ms..1s, 81 920 000 B outside" in who
    difference = done(capsys, "heatmap", recording, "--against", trace, "--weight", "bytes")
    assert "difference: t.csv minus rec" in difference
    done(capsys, "heatmap", recording, "--weight", "bytes", "-o", tmp_path / "m.svg")
    assert "203.1 MiB moved by them" in (tmp_path / "m.svg").read_text()


def test_a_span_of_time(recording: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (recording, trace):
        for ends, count in (
            (("--from", "2s", "--to", "4s"), 2200),
            (("--from", "-1s"), 1100),
            (("--from", "-1h"), 11_000),
            (("--to", "1ms"), 2),
        ):
            assert (
                json.loads(done(capsys, "query", path, "io.ops", "--format", "json", *ends))[
                    "total"
                ]
                == count
            ), ends
            drawn = json.loads(
                done(capsys, "query", path, "io.ops[latency]", "--format", "json", *ends)
            )
            assert drawn["events"] == count


def test_standard_input(trace: Path) -> None:
    with trace.open("rb") as file:
        made = subprocess.run(
            [sys.executable, "-m", "iolab.cli", "query", "-", "io.ops[op]", "--format", "csv"],
            stdin=file,
            capture_output=True,
            text=True,
            check=True,
        )
    assert rows(made.stdout)[0] == {"time_s": "0", "op": "read", "value": "1000"}
    assert made.stderr == ""


@pytest.mark.slow
def test_heatmaps_of_a_recording(
    trace: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "rec: 11 000 I/Os over 10 s" in done(capsys, "heatmap", recording)
    assert "rec: 1 000 I/Os over" in done(
        capsys, "heatmap", recording, "--where", "op=write", "--y", "size"
    )
    assert "rec: 2 200 I/Os over 2 s" in done(
        capsys, "heatmap", recording, "--from", "2s", "--to", "4s"
    )
    assert "t.csv: 2 200 I/Os over 2 s" in done(
        capsys, "heatmap", trace, "--from", "2s", "--to", "4s"
    )
    assert "difference: t.csv minus rec" in done(capsys, "heatmap", recording, "--against", trace)
    assert "rec and 1 more: 22 000 I/Os" in done(capsys, "heatmap", recording, trace)
    assert "by linear" in done(
        capsys, "heatmap", recording, "--color", "linear", "--weight", "time", "--crop", "1%"
    )
    for name in ("m.svg", "m.png"):
        done(capsys, "heatmap", recording, "--y", "all", "--percentiles", "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_a_page_of_a_recording_says_whose(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from iolab.base.errors import IolabError
    from iolab.output.report.page.html import bundle_file

    try:
        bundle_file("heatmap.js")
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")
    done(capsys, "heatmap", recording, "-o", tmp_path / "m.html")
    text = (tmp_path / "m.html").read_text()
    assert "Latency of rec: 11 000 I/Os." in text


def test_whose_adds_up(recording: Path) -> None:
    from iolab.recordings.ask.drill import dimensions_of
    from iolab.recordings.ask.query import heat
    from iolab.recordings.store.read.recording import Recording

    whole = heat(Recording(recording), "latency", Question(interval_ns=10**9))
    found, left = dimensions_of(
        [Recording(recording)],
        whole,
        lambda each, where: heat(each, "latency", Question(interval_ns=10**9), where=where),
    )
    assert left == []
    assert {each.name: [(name, part.total) for name, part in each.parts] for each in found} == {
        "op": [("read", 10_000), ("write", 1000)],
        "process": [("fio", 10_000), ("dd", 1000)],
    }


def test_a_notebook_asks_the_same(trace: Path, recording: Path) -> None:
    for path in (trace, recording):
        opened = iolab.open(path)
        assert isinstance(opened, Events)
        assert opened.query("io.ops[op=write]").total == 1000
        assert opened.query("io.ops", from_="2s", to="4s").total == 2200
        drawn = opened.heatmap("size", where="op=write", interval="1s")
        assert drawn.counts.total == 1000
        assert drawn._repr_svg_().startswith("<svg")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["{rec}", "io.opps"], 2),
        (["{rec}", "io.ops[lat]"], 2),
        (["{rec}", "file.ops"], 2),
        (["{rec}", "io.ops", "--source", "zfs"], 2),
        (["{rec}", "io.ops", "--from", "soon"], 2),
        (["{rec}", "io.ops", "--from", "12:00"], 2),
        (["{rec}", "io.ops", "--from", "5s", "--to", "5s"], 2),
        (["{rec}", "io.ops", "--interval", "1"], 2),
        (["{rec}", "io.ops", "--interval", "0"], 2),
        (["{rec}", "io.ops", "--interval", "1ns"], 2),
        (["{rec}", "io.ops", "--columns", "time"], 2),
        (["{rec}", "io.ops[latency>=1h][latency]"], 3),
        (["{folder}/absent", "io.ops"], 2),
        (["{folder}", "io.ops[planet=mars]"], 2),
        (["{folder}/noise", "io.ops"], 3),
        (["{rec}"], 2),
        (["-", "io.ops", "--from", "1s"], 2),
    ],
)
def test_mistakes(
    recording: Path, args: list[str], code: int, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (recording.parent / "noise").write_bytes(bytes(range(256)) * 40)
    found = run(["query", *(arg.format(rec=recording, folder=recording.parent) for arg in args)])
    out, err = capsys.readouterr()
    assert (found, out, err.count("\n")) == (code, "", 1), err
    golden("cli/query-mistakes", f"$ iolab query {' '.join(args)}\n{err}")


def test_damage_leaves_no_other_words(recording: Path) -> None:
    """What the engine prints when it is left behind would stand beside what is told of the damage."""
    (segment,) = (recording / "events").iterdir()
    segment.write_bytes(segment.read_bytes()[:100] + bytes(5000) + segment.read_bytes()[5100:])
    made = subprocess.run(
        [sys.executable, "-m", "iolab.cli", "query", str(recording), "io.ops[process]"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0
    assert (
        made.stdout.count("events/000001.parquet: its checksum is not that of what was written")
        == 1
    )
    assert made.stderr == ""


def test_a_map_shows_all_of_the_time_that_was_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "late.csv"
    path.write_text(
        "time:ms,latency:us,offset:bytes,size:bytes,op\n0,100,0,4096,read\n"
        + "".join(f"{time},100,0,4096,read\n" for time in range(6000, 8000))
        + "9990,100,0,4096,read\n"
    )
    ingest(Trace(path), tmp_path / "rec")
    for asked in (path, tmp_path / "rec"):
        for command in (("heatmap", asked), ("query", asked, "io.ops[latency]")):
            out = done(capsys, *command, "--from", "2s", "--to", "9s")
            dense = next(line for line in out.splitlines() if "@" in line.partition("in a cell")[0])
            row = dense.partition("┤")[2] or dense.partition("│")[2]
            # seven seconds, of which the fourth to the sixth hold something
            assert "over 7 s" in out
            ruler = next(line for line in out.splitlines() if "└" in line)
            wide = len(ruler.partition("└")[2])
            marked = [place for place, sign in enumerate(row) if sign in ".:-=+*#%@"]
            assert min(marked) / wide == pytest.approx(4 / 7, abs=0.05)
            assert (max(marked) + 1) / wide == pytest.approx(6 / 7, abs=0.05)


def test_recordings_are_compared_from_their_first_io_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long each of them was at rest before."""
    for rest in (1, 11):
        with RecordingWriter.create(
            tmp_path / f"r{rest}",
            host="h",
            clock="realtime",
            origin={"kind": "record"},
            system=FakeClock(START),
        ) as writer:
            writer.append_events(events(3000, start_ns=START + rest * SECOND, per_s=1000))
            writer.tick(START + (rest + 4) * SECOND)
    out = done(
        capsys, "heatmap", tmp_path / "r1", "--against", tmp_path / "r11", "--screen", "text"
    )
    difference = out[out.index("difference: ") :].partition("\n")[2]
    rows = [
        line.partition("┤")[2] or line.partition("│")[2]
        for line in difference.splitlines()
        if "┤" in line or "│" in line
    ]
    assert rows
    assert "".join(rows).strip() == "", difference


@pytest.mark.parametrize(
    "words",
    [("show",), ("query", "io.ops"), ("heatmap",), ("import", "-o"), ("view", "--port", "0")],
)
def test_a_file_without_a_readable_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("time_us,latency_us\n1,a\n2,b\n")
    more = [*words[1:], *([str(tmp_path / "made")] if words[0] == "import" else [])]
    assert run([words[0], str(path), *more]) == 3
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert f"{path}: none of 2 lines could be read; line 2: the latency is not a number" in error
    assert "such as '1000,250'" in error


@pytest.fixture
def own_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The names that a command uses end with the test."""
    monkeypatch.setenv(aliases.VARIABLE, "")
    aliases.host_names.cache_clear()
    yield
    aliases.host_names.cache_clear()


@pytest.mark.usefixtures("own_names")
def test_clients_by_the_names_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = disk("others", "sent_bytes", [0, 0]) + disk("10.0.0.7", "sent_bytes", [0, 5])
    place = kept(tmp_path, {"tcp": rows}).path
    table = tmp_path / "names"
    table.write_text("10.0.0.7=backup\n")
    asked = ("query", place, "ip.bytes[peer=backup][peer]", "--format", "json", "--names", table)
    answer = json.loads(done(capsys, *asked))
    assert [row["key"] for row in answer["keys"]] == ["backup"]
    assert answer["statistic"] == "ip.bytes[peer=backup][peer]"
    table.write_text("10.0.0.7\n")
    assert run([str(word) for word in asked]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{table}:1" in err


def test_single_ios_are_those_of_the_service(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same I/Os as text, csv and json, and as the page gets them."""
    asked = ("io.ops[latency]", "--range", "1ms..", "--order", "-offset", "--top", "3")
    text = done(capsys, "ios", recording, *asked)
    assert "1 000 I/Os within 1ms.." in text
    assert "and 997 more" in text
    rows = list(
        csv.DictReader(io.StringIO(done(capsys, "ios", recording, *asked, "--format", "csv")))
    )
    document = json.loads(done(capsys, "ios", recording, *asked, "--format", "json"))
    assert [row["offset_bytes"] for row in rows] == [
        str(131072 * place) for place in (9990, 9980, 9970)
    ]
    assert [str(item["time_ns"]) for item in document["ios"]] == [row["time_ns"] for row in rows]
    served = ios(
        Store([recording]),
        {
            "statistic": "io.ops[latency]",
            "low": "1ms",
            "order": "offset",
            "descending": "true",
            "limit": "3",
        },
    )
    assert [item.model_dump() for item in served.ios] == document["ios"]
    assert (served.total, served.rows) == (document["total"], document["rows"]) == (1000, 1000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--range", "1ms"], "is not a range"),
        (["--slowest", "3", "--top", "4"], "--slowest cannot be combined with --top"),
        (["--slowest", "3", "--order", "time"], "--slowest cannot be combined with --order"),
        (["--order", "colour"], "can't be sorted by 'colour'"),
    ],
)
def test_a_list_that_can_not_be_made(
    recording: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert run(["ios", str(recording), "io.ops[latency]", *options]) == 2
    assert words in capsys.readouterr().err


def test_the_slowest_ios_are_listed_first(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(done(capsys, "ios", recording, "--slowest", "5", "--format", "json"))
    latencies = [item["latency_ns"] for item in document["ios"]]
    assert latencies == sorted(latencies, reverse=True)
    assert len(latencies) == 5
