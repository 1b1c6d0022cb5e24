# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets of names that others chose: text, and nothing that it obeys."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from iolab.base.clock import FakeClock
from iolab.cli.main import run
from iolab.recordings.store.base.schema import EVENTS
from iolab.recordings.store.write.writer import RecordingWriter
from support.recordings import START, events

EVIL = "bl\x1b[32mock\x9b2J\u202e"
SPELT = "bl\\x1b[32mock\\x9b2J\\u202e"
SPELT_JSON = "bl\\u001b[32mock\\u009b2J\\u202e"

OWN = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[K")
"""Colours of maps, and what redraws a line."""

COMMANDS = """
import json, sys
from iolab.cli.main import run
for words in json.loads(sys.argv[1]):
    print(f"@@ {json.dumps(words)}", flush=True)
    run(words)
    sys.stderr.flush()
"""


def on_terminal(commands: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """What each command writes to a terminal, by its words, in lines."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": "120",
        "LINES": "40",
        "PYTHONIOENCODING": "utf-8",
    }
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as child:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass  # that is how a terminal ends
        finally:
            os.close(ours)
        assert child.wait() == 0
    heads = re.split(r"@@ (.*)\r\n", b"".join(parts).decode())
    return {
        head: text.replace("\r\n", "\n").split("\n")
        for head, text in zip(heads[1::2], heads[2::2], strict=True)
    }


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A recording and published numbers in which every name that others may choose is one that a
    terminal would obey."""
    batch = events(300)
    columns = [
        pa.array(
            [EVIL if value is not None else None for value in batch.column(field.name).to_pylist()],
            field.type,
        )
        if field.name in ("process", "file", "device", "client")
        else batch.column(field.name)
        for field in EVENTS
    ]
    with RecordingWriter.create(
        tmp_path / "rec",
        host=EVIL,
        clock="realtime",
        origin={"kind": "record"},
        sources={EVIL: {"what": EVIL}},
        system=FakeClock(START),
    ) as writer:
        writer.append_events(events(300, source=EVIL))
        writer.append_events(pa.RecordBatch.from_arrays(columns, schema=EVENTS))
        writer.process(1, EVIL, EVIL, START)
        writer.mark(EVIL, START, START + 1)
    (tmp_path / "t.csv").write_text(
        "variant,jobs,metric,value,unit\n"
        + "".join(
            f'"{variant}",{jobs},write.iops,{value},1/s\n'
            for variant, value in (("master", 10), (EVIL, 20))
            for jobs in (f"1{EVIL}", "2")
        )
    )
    assert run(["import", "--table", str(tmp_path / "t.csv"), "-o", str(tmp_path / "results")]) == 0
    (tmp_path / f"{EVIL}.csv").write_text(
        "time:ms,latency:us,process\n" + "".join(f"{at},{at % 7 + 1},{EVIL}\n" for at in range(99))
    )
    return tmp_path


@pytest.mark.slow
def test_names_of_others_are_spelt_on_a_terminal(hostile: Path) -> None:
    rec, results, trace = (str(hostile / name) for name in ("rec", "results", f"{EVIL}.csv"))
    asked = [
        ["query", rec, "io.ops", "--source", EVIL],
        ["query", rec, "io.ops[process]"],
        ["query", rec, "io.ops", "--source", "zz"],
        ["query", rec, "io.ops[file]", "--follow"],
        ["who", rec, "io.ops[latency]", "--range", "1us..1ms"],
        ["query", rec, "io.ops[latency]", "--source", EVIL],
        ["catalog", "statistics", rec],
        ["show", rec],
        ["heatmap", rec],
        ["show", results],
        ["show", results, "--runs"],
        ["show", trace],
        ["heatmap", trace],
        ["heatmap", f"{trace}.gone"],
        ["keep", "list", trace],
        ["compare", results, "--baseline", EVIL, "--knee"],
        ["compare", results, "--metric", EVIL],
    ]
    written = [
        ["query", rec, "io.ops[process]", "--format", "csv"],
        ["who", rec, "io.ops[latency]", "--range", "1us..1ms", "--format", "csv"],
        ["query", rec, "io.ops[file]", "--follow", "--format", "csv"],
        *(
            ["compare", results, "--format", style]
            for style in ("text", "csv", "markdown", "benchstat")
        ),
    ]
    documents = [
        ["show", rec, "--format", "json"],
        ["show", results, "--format", "json"],
        ["compare", results, "--format", "json"],
        ["query", rec, "io.ops[process]", "--format", "json"],
    ]
    shown = on_terminal([*asked, *written, *documents])
    assert len(shown) == len(asked) + len(written) + len(documents)
    for words, lines in shown.items():
        for line in lines:
            assert OWN.sub("", line).isprintable(), (words, line)
        assert "\x1b[32m" not in "\n".join(lines), words
    for each in written[:2]:
        assert SPELT in "\n".join(shown[json.dumps(each)]), each
    for each in documents:
        told = json.loads("\n".join(shown[json.dumps(each)]).replace("\r\x1b[K", ""))
        assert EVIL in json.dumps(told, ensure_ascii=False).replace("\\u001b", "\x1b"), each


def test_programs_get_names_as_they_are(hostile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["query", str(hostile / "rec"), "io.ops[process]", "--format", "csv"],
        ["compare", str(hostile / "results"), "--format", "csv"],
    ):
        capfd.readouterr()
        assert run(words) == 0
        assert EVIL in capfd.readouterr().out
    assert run(["show", str(hostile / "results"), "--format", "json"]) == 0
    assert EVIL in json.loads(capfd.readouterr().out)["variants"]


def test_what_people_read_and_json_are_spelt_in_a_pipe_as_well(
    hostile: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, rec = str(hostile / "results"), str(hostile / "rec")
    for words in (
        ["compare", results, "--format", "markdown"],
        ["compare", results, "--format", "benchstat"],
        ["show", results],
        ["show", results, "--format", "json"],
        ["show", rec, "--format", "json"],
        ["compare", results, "--format", "json"],
    ):
        capfd.readouterr()
        assert run(words) == 0
        out = capfd.readouterr().out
        assert all(line.isprintable() for line in out.split("\n")), words
        assert (SPELT_JSON if "json" in words else SPELT) in out.replace("\\\\", "\\"), words


@pytest.mark.slow
@pytest.mark.parametrize("style", ["svg", "png"])
def test_names_of_others_don_t_end_the_library_that_draws_charts(style: str, hostile: Path) -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "iolab.cli",
            "report",
            str(hostile / "results"),
            "--charts",
            str(hostile / "charts"),
            "--format",
            style,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[:400]
    drawn = sorted((hostile / "charts").glob(f"*.{style}"))
    assert drawn
    if style == "svg":
        assert all("\x1b" not in each.read_text("utf-8") for each in drawn)
