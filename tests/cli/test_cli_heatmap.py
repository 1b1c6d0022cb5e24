# SPDX-License-Identifier: Apache-2.0
"""`iolab heatmap` and `iolab show TRACE` as a user types them, and every mistake as one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from iolab.cli.main import run
from support.golden import Golden


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A fio latency log: two streams, 8k fast reads and 128k slow writes."""
    lines = []
    for i in range(2000):
        lines.append(f"{i}, {100_000 + 10 * i}, 0, 8192, {8192 * i}, 0")
        lines.append(f"{i}, 5000000, 1, 131072, {2**30 + 131072 * i}, 0")
    path = tmp_path / "job_lat.1.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def done(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert run([str(arg) for arg in args]) == 0
    out, _ = capsys.readouterr()
    return out


def failing(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str]:
    code = run([str(arg) for arg in args])
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return code, err


@pytest.mark.parametrize("y", ["latency", "offset", "size"])
def test_the_terminal_shows_each_y(trace: Path, y: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "heatmap", trace, "--y", y)
    assert out.startswith(f"{y.title()} · job_lat.1.log: 4 000 I/Os over 2 s")
    assert "\033" not in out, "a pipe gets no colours"
    assert "I/Os in a cell" in out


def test_the_source_that_was_asked_for_is_said(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done(capsys, "import", trace, "-o", tmp_path / "rec")
    assert done(capsys, "heatmap", tmp_path / "rec", "--source", "fio").startswith(
        "Latency · rec, fio: 4 000 I/Os over 2 s"
    )


def test_a_few_tiny_sizes_are_left_below_and_told(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace.write_text(trace.read_text() + "1, 100000, 0, 3, 0, 0\n")
    assert "1 I/O below " in done(capsys, "heatmap", trace, "--y", "size")
    assert "below" not in done(capsys, "heatmap", trace, "--y", "size", "--crop", "0")
    assert "below" not in done(capsys, "heatmap", trace, "--y", "size", "--y-range", "1..1MiB")


def test_colour_on_request(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\033[38;2;" in done(capsys, "heatmap", trace, "--screen", "truecolor")
    assert "\033[38;5;" in done(capsys, "heatmap", trace, "--screen", "256")


def test_all_maps_in_one_picture(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done(capsys, "heatmap", trace, "--y", "all", "-o", tmp_path / "m.svg", "--percentiles")
    text = (tmp_path / "m.svg").read_text()
    ElementTree.fromstring(text)
    assert all(f"{word} · job_lat.1.log" in text for word in ("Latency", "Offset", "Size"))
    done(capsys, "heatmap", trace, "-o", tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"


def test_a_picture_is_light_or_dark(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for theme, ground in (("light", "#ffffff"), ("dark", "#14181d")):
        done(capsys, "heatmap", trace, "-o", tmp_path / "m.svg", "--theme", theme)
        assert f'height="100%" fill="{ground}"' in (tmp_path / "m.svg").read_text()


def test_conditions_crop_range_and_scales(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "2 000 I/Os over" in done(capsys, "heatmap", trace, "--where", "op=write")
    done(capsys, "heatmap", trace, "--where", "op=write", "-o", trace.with_suffix(".html"))
    assert "2 000 I/Os (50 %) above the crop" in done(capsys, "heatmap", trace, "--crop", "50%")
    assert "2 000 I/Os (50 %) above" in done(
        capsys, "heatmap", trace, "--y-range", "0..1ms", "--y-scale", "linear"
    )
    assert "2 000 I/Os outside the range" in done(
        capsys, "heatmap", trace, "--y", "offset", "--y-range", "0..512MiB"
    )
    assert "by linear" in done(capsys, "heatmap", trace, "--color", "linear")
    assert "10.22 s spent in them" in done(capsys, "heatmap", trace, "--weight", "time")
    weighed = done(capsys, "heatmap", trace, "--weight", "bytes", "--y", "size")
    assert "4 000 I/Os over" in weighed
    assert " MiB moved by them" in weighed
    assert "bytes in a cell: " in weighed


def test_two_traces_on_one_scale(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other_lat.1.log"
    other.write_text("".join(f"{i}, 400000, 0, 8192, 0, 0\n" for i in range(1500)))
    out = done(capsys, "heatmap", trace, "--against", other)
    assert "job_lat.1.log: 4 000 I/Os" in out
    assert "other_lat.1.log: 1 500 I/Os" in out
    assert "difference: other_lat.1.log minus job_lat.1.log" in out
    both = done(capsys, "heatmap", trace, other, "--y", "size")
    assert "job_lat.1.log and 1 more: 5 500 I/Os" in both


def test_a_page_holds_what_it_needs(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from iolab.base.errors import IolabError
    from iolab.output.report.page.html import bundle_file

    try:
        bundle_file("heatmap.js")
    except IolabError as error:
        pytest.skip(f"the page has not been built: {error.hint}")
    done(capsys, "heatmap", trace, "--y", "all", "-o", tmp_path / "m.html")
    text = (tmp_path / "m.html").read_text()
    assert "<title>I/O of job_lat.1.log</title>" in text
    assert "Latency of job_lat.1.log: 4 000 I/Os." in text
    assert 'id="iolab-heatmap"' in text


def test_standard_input(trace: Path) -> None:
    with trace.open("rb") as file:
        made = subprocess.run(
            [sys.executable, "-m", "iolab.cli", "heatmap", "-"],
            stdin=file,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "standard input: 4 000 I/Os" in made.stdout


def test_show_says_what_a_trace_is(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "show", trace)
    assert "fio-lat trace, 4 000 I/Os over" in out
    assert "op        read 2 000, write 2 000" in out
    assert "latency by op" in out
    shown = json.loads(done(capsys, "show", trace, "--format", "json"))
    assert (shown["schema"], shown["kind"], shown["events"]["recorded"]) == (1, "trace", 4000)
    assert shown["ops"] == {"read": 2000, "write": 2000}
    assert shown["percentiles"]["size"]["max"] == 131072


def test_show_counts_damage(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text(trace.read_text() + "rubbish\n12, 3")
    out = done(capsys, "show", trace)
    assert "lines left out, such as\n  line 4001: " in out
    assert "damaged line" in done(capsys, "heatmap", trace)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["{trace}", "--y", "colour"], 2),
        (["{trace}", "-o", "{folder}/x.gif"], 2),
        (["{trace}", "-o", "{folder}/no/x.png"], 2),
        (["{trace}", "--crop", "x"], 2),
        (["{trace}", "--crop", "150%"], 2),
        (["{trace}", "--crop", "1%", "--y-range", "0..1ms"], 2),
        (["{trace}", "--y-range", "0..10"], 2),
        (["{trace}", "--y-range", "0..8KiB"], 2),
        (["{trace}", "--y-range", "1h..2h"], 3),
        (["{trace}", "--where", "op=trim"], 3),
        (["{trace}", "--where", "planet=mars"], 2),
        (["{trace}", "--format", "tape"], 2),
        (["{trace}", "--percentiles", "--weight", "time"], 2),
        (["{trace}", "--percentiles", "--weight", "bytes"], 2),
        (["-", "--weight", "bytes"], 2),
        (["{folder}/absent"], 2),
        (["{folder}"], 3),
        (["{folder}/empty"], 3),
        (["{folder}/noise"], 3),
        (["-", "--y", "all"], 2),
        ([], 2),
    ],
)
def test_mistakes(
    trace: Path, args: list[str], code: int, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (trace.parent / "empty").write_bytes(b"")
    (trace.parent / "noise").write_bytes(bytes(range(256)) * 40)
    found = failing(
        capsys, "heatmap", *(arg.format(trace=trace, folder=trace.parent) for arg in args)
    )
    assert found[0] == code
    golden("cli/heatmap-mistakes", f"$ iolab heatmap {' '.join(args)}\n{found[1]}")


def test_a_map_does_not_load_what_it_does_not_need(trace: Path) -> None:
    code = (
        "import sys; from iolab.cli.main import run; run(['heatmap', sys.argv[1]]); "
        "sys.exit(any(name in sys.modules for name in ('altair', 'scipy', 'pyarrow', 'pydantic', 'vl_convert')))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code, str(trace)], stdout=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )
