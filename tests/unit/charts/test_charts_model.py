# SPDX-License-Identifier: Apache-2.0
"""A chart as a value: notebooks, files with their metadata, appearance."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import altair as alt
import pytest

from iolab.base.errors import IolabError, UsageError
from iolab.output.charts import Chart, before_after, change, export, over_load
from iolab.output.charts.base.model import MIME_TYPE, slug, wrap
from iolab.output.charts.base.theme import DARK, LIGHT, SHAPES
from iolab.output.charts.base.words import sentences
from support.charts_data import published, repeated


@pytest.fixture(scope="module")
def chart() -> Chart:
    return over_load(published())


def test_a_notebook_gets_the_specification_a_picture_and_words(chart: Chart) -> None:
    bundle = chart._repr_mimebundle_()
    assert bundle[MIME_TYPE]["config"] == LIGHT
    assert bundle["image/svg+xml"].startswith("<svg")
    assert chart.title in bundle["text/plain"]


def test_svg_has_title_axes_and_every_tick(chart: Chart) -> None:
    root = ElementTree.fromstring(chart.svg())
    name = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{name}title") == chart.title
    assert root.findtext(f"{name}desc") == chart.caption
    assert root.get("role") == "img"
    assert "iolab" in (root.findtext(f"{name}metadata") or "")
    texts = ["".join(text.itertext()) for text in root.iter(f"{name}text")]
    for load in ("1", "2", "64", "1024", "10\u2009000"):
        assert load in texts
    assert "numjobs" in texts
    assert "disks = 8" in texts


def test_markup_in_names_does_not_break_the_svg() -> None:
    made = over_load(published())
    odd = Chart(made.name, 'a "b" <c> & d', made.spec, made.columns, made.rows, "</svg><script>")
    root = ElementTree.fromstring(odd.svg())
    assert root.get("aria-label") == 'a "b" <c> & d'
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == "</svg><script>"


def chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    found, place = [], 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        assert struct.unpack(">I", png[place + 8 + length : place + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        found.append((kind, body))
        place += 12 + length
    return found


def test_png_is_whole_and_names_itself(chart: Chart) -> None:
    found = chunks(chart.png(scale=1))
    assert found[0][0] == b"IHDR"
    assert found[-1][0] == b"IEND"
    texts = dict(body.split(b"\0\0\0\0\0", 1) for kind, body in found if kind == b"iTXt")
    assert texts[b"Title"].decode() == chart.title
    assert texts[b"Software"].startswith(b"iolab")
    small, large = (struct.unpack(">I", chunks(chart.png(scale))[0][1][:4])[0] for scale in (1, 2))
    assert large == pytest.approx(2 * small, abs=2)


@pytest.mark.parametrize("style", ["svg", "png"])
def test_export_writes_each_chart_with_its_numbers(
    tmp_path: Path, chart: Chart, style: Literal["svg", "png"]
) -> None:
    paths = export([chart, change(published()), chart], tmp_path / "charts", style)
    assert [path.name for path in paths] == [
        f"write-iops-over-numjobs.{style}",
        "write-iops-over-numjobs.csv",
        f"write-iops-change-over-numjobs.{style}",
        "write-iops-change-over-numjobs.csv",
        f"write-iops-over-numjobs-2.{style}",
        "write-iops-over-numjobs-2.csv",
    ]
    assert (tmp_path / "charts/write-iops-over-numjobs.csv").read_text() == chart.to_csv()


def test_export_refuses_with_a_clear_line(tmp_path: Path, chart: Chart) -> None:
    with pytest.raises(UsageError, match="unknown chart format 'pdf'; there are: svg, png"):
        export([chart], tmp_path, "pdf")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, not a directory"):
        export([chart], tmp_path / "file", "svg")
    with pytest.raises(IolabError, match="can't be made"):
        export([chart], tmp_path / "file" / "below", "svg")
    (tmp_path / "taken" / "write-iops-over-numjobs.svg").mkdir(parents=True)
    with pytest.raises(IolabError, match="can't be written"):
        export([chart], tmp_path / "taken", "svg")


def test_csv_quotes_what_needs_it() -> None:
    odd = Chart("x", "x", {}, ("a", "b"), ({"a": 'one, "two"\n', "b": 0.1}, {"a": None}))
    assert odd.to_csv() == 'a,b\n"one, ""two""\n",0.1\n,\n'


def test_the_version_of_vega_lite_is_that_of_the_schema_in_tests(chart: Chart) -> None:
    assert chart.spec["$schema"] == alt.SCHEMA_URL


def test_charts_need_no_altair() -> None:
    code = "import sys, iolab.output.charts; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("config", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out(config: dict[str, Any]) -> None:
    paper = config["background"]
    for colour in config["range"]["category"]:
        assert contrast(colour, paper) >= 3, colour
    assert contrast(config["title"]["subtitleColor"], paper) >= 4.5
    for fill in (*config["range"]["diverging"], *config["range"]["ramp"]):
        assert contrast(config["text"]["color"], fill) >= 4.5, fill
    assert len(set(config["range"]["category"])) == len(config["range"]["category"]) == 8
    assert len(set(SHAPES)) == 7  # coprime with 8: colour and shape together tell 56 variants apart


def test_both_configurations_render() -> None:
    for made in (over_load(repeated()), before_after(published())):
        for config in (LIGHT, DARK):
            assert config["background"] in made.svg(config)


def test_words_below_the_title_are_wrapped_but_not_torn() -> None:
    assert wrap(["a" * 60, "b" * 60, "c"]) == ["a" * 60, "b" * 60 + " · c"]
    assert wrap([]) == []


def test_names_are_slugs() -> None:
    assert slug("write.clat.p99.9", "over", "rate (MiB/s)") == "write-clat-p99-9-over-rate-mib-s"
    assert slug("", "µ") == "chart"


def test_importing_iolab_alone_loads_no_chart_library() -> None:
    code = "import sys, iolab; sys.exit(any(name in sys.modules for name in ('vl_convert', 'iolab.output.charts')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_captions_keep_the_names_of_factors() -> None:
    assert (
        sentences(["rw = write, bs = 128k", "dots: single repetitions"])
        == "rw = write, bs = 128k. Dots: single repetitions."
    )
