"""Charts as files: SVG or PNG, each with its numbers as CSV beside it and its title inside.

Pictures are drawn by vl-convert, without a browser; it is told to load nothing from elsewhere.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

import vl_convert

from ..errors import IolabError, UsageError
from ..untrusted_text import visible
from .flame import FlameChart
from .model import Chart
from .theme import LIGHT, Config

FORMATS = ("svg", "png")
_VEGA_LITE = "6.4"


def export(charts: Iterable[Chart | FlameChart], directory: Path | str, format: Literal["svg", "png"] = "svg") -> list[Path]:
    """Write each chart as `<name>.<format>` and `<name>.csv`; returns every path written, in order.

    Charts of the same name are told apart by a number. Raises UsageError for an unknown format or where a file stands
    in the directory's place, IolabError where it cannot be written.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown chart format '{format}'", hint=f"there are: {', '.join(FORMATS)}")
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError("is a file, not a directory", where=place, hint="name a directory for the charts") from None
    except OSError as error:
        raise IolabError(f"can't be made: {error.strerror}", where=place) from None
    written: list[Path] = []
    taken: set[str] = set()
    for chart in charts:
        name, number = chart.name, 1
        while name in taken:
            number += 1
            name = f"{chart.name}-{number}"
        taken.add(name)
        picture = chart.svg().encode() if format == "svg" else chart.png()
        for path, content in ((place / f"{name}.{format}", picture), (place / f"{name}.csv", chart.to_csv().encode())):
            try:
                path.write_bytes(content)
            except OSError as error:
                raise IolabError(f"can't be written: {error.strerror}", where=path) from None
            written.append(path)
    return written


def to_svg(chart: Chart, config: Config = LIGHT) -> str:
    """The chart as an SVG document with `title`, `desc` and a label for those who listen."""
    svg: str = vl_convert.vegalite_to_svg(_drawable(chart.themed(config)), vl_version=_VEGA_LITE, allowed_base_urls=[])
    start = svg.index("<svg") + 4
    end = svg.index(">", start) + 1
    words = f"<title>{escape(visible(chart.title))}</title><desc>{escape(visible(chart.caption))}</desc>"
    words += f"<metadata>{escape(_software())}</metadata>"
    return f"{svg[:start]} role=\"img\" aria-label={quoteattr(visible(chart.title))}{svg[start:end]}{words}{svg[end:]}"


def to_png(chart: Chart, scale: float = 2, config: Config = LIGHT) -> bytes:
    """The chart as PNG with the textual chunks Title, Description and Software (PNG specification, 11.3.4)."""
    png: bytes = vl_convert.vegalite_to_png(_drawable(chart.themed(config)), vl_version=_VEGA_LITE, scale=scale,
                                            allowed_base_urls=[])
    texts = {"Title": chart.title, "Description": chart.caption, "Software": _software()}
    chunks = b"".join(_text_chunk(keyword, text) for keyword, text in texts.items() if text)
    header = 8 + 25  # signature and IHDR, which must stay first
    return png[:header] + chunks + png[header:]


def _drawable(spec: Any) -> Any:
    """The same with names of others spelt: vl-convert ends the process where a text holds a control character."""
    if isinstance(spec, str):
        return spec if spec.isprintable() else "\n".join(map(visible, spec.split("\n")))
    if isinstance(spec, dict):
        return {_drawable(name): _drawable(each) for name, each in spec.items()}
    return [_drawable(each) for each in spec] if isinstance(spec, list | tuple) else spec


def _text_chunk(keyword: str, text: str) -> bytes:
    """An uncompressed iTXt chunk: length, type, data, CRC over type and data."""
    body = b"iTXt" + keyword.encode("latin-1") + b"\0\0\0\0\0" + text.encode()
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _software() -> str:
    try:
        return f"iolab {metadata.version('iolab')}"
    except metadata.PackageNotFoundError:  # straight from a source tree
        return "iolab"
