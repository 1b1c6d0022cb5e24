# SPDX-License-Identifier: Apache-2.0
"""A Vega-Lite specification as a picture, SVG or PNG, with its title inside.

Pictures are drawn by vl-convert, without a browser; it may load nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vl_convert

from iolab import __version__
from iolab.base.untrusted_text import html, visible_lines
from iolab.recordings.heatmap.raster import repack

_VEGA_LITE = "6.4"


def to_svg(spec: Mapping[str, Any], title: str, caption: str) -> str:
    """The picture as an SVG document with `title`, `desc` and a label for those who listen."""
    svg: str = vl_convert.vegalite_to_svg(
        _drawable(spec), vl_version=_VEGA_LITE, allowed_base_urls=[]
    )
    start = svg.index("<svg") + 4
    end = svg.index(">", start) + 1
    words = f"<title>{html(title)}</title><desc>{html(caption)}</desc>"
    words += f"<metadata>iolab {__version__}</metadata>"
    return f'{svg[:start]} role="img" aria-label="{html(title)}"{svg[start:end]}{words}{svg[end:]}'


def to_png(spec: Mapping[str, Any], title: str, caption: str, scale: float) -> bytes:
    """The picture as PNG with the textual chunks Title, Description and Software (PNG
    specification, 11.3.4)."""
    png: bytes = vl_convert.vegalite_to_png(
        _drawable(spec), vl_version=_VEGA_LITE, scale=scale, allowed_base_urls=[]
    )
    texts = {"Title": title, "Description": caption, "Software": f"iolab {__version__}"}
    return repack(png, {keyword: text for keyword, text in texts.items() if text})


def _drawable(spec: Any) -> Any:
    """The same with texts escaped: vl-convert ends the process where a text contains a control
    character."""
    if isinstance(spec, str):
        return visible_lines(spec)
    if isinstance(spec, dict):
        return {_drawable(name): _drawable(value) for name, value in spec.items()}
    return [_drawable(item) for item in spec] if isinstance(spec, list | tuple) else spec
