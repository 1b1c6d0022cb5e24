# SPDX-License-Identifier: Apache-2.0
"""Pictures: pixels where the cells are, palettes that any colour vision can order, files that are
what they say."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from iolab.recordings.heatmap.figure import Layout, Named, Panel, panels
from iolab.recordings.heatmap.model import View
from iolab.recordings.heatmap.raster import colours, draw, png, repack
from iolab.recordings.heatmap.svg import LAYOUT, svg, svg_png
from iolab.recordings.heatmap.theme import DARK, GREY, LIGHT, Theme, linear_light, rgb
from support.heatmap_data import counts

THEMES = [LIGHT, DARK, GREY]


def luminance(colours: np.ndarray) -> np.ndarray:
    """Relative luminance (WCAG 2.1) of colours, shape (n, 3) to (n,)."""
    weighted: np.ndarray = linear_light(colours.astype(float)) @ np.array([0.2126, 0.7152, 0.0722])
    return weighted


def panel(*, percentiles: bool = False, layout: Layout = LAYOUT) -> Panel:
    rising = [(time * 50, 1000 + 40 * time) for time in range(2000)]
    return panels(
        [Named("a <b> & c", counts(rising))], View("log"), layout, percentiles=percentiles
    )[0]


def decoded(picture: bytes) -> Image.Image:
    """A PNG file, every checksum checked."""
    Image.open(BytesIO(picture), formats=["PNG"]).verify()
    image = Image.open(BytesIO(picture), formats=["PNG"])
    image.load()
    return image


@settings(deadline=None, max_examples=30)
@given(
    arrays(
        np.uint8,
        st.tuples(st.integers(1, 20), st.integers(1, 30), st.just(3)),
        elements=st.integers(0, 255),
    )
)
def test_pixels_survive_the_file(pixels: np.ndarray) -> None:
    assert np.array_equal(np.asarray(decoded(png(pixels)).convert("RGB")), pixels)


def test_few_colours_make_a_palette() -> None:
    assert decoded(png(np.zeros((4, 4, 3), dtype=np.uint8))).mode == "P"
    many = np.arange(20 * 20 * 3, dtype=np.uint32).reshape(20, 20, 3)
    assert decoded(png(many.astype(np.uint8))).mode == "P"
    assert decoded(png((many * 7).astype(np.uint8) ^ (many >> 8).astype(np.uint8))).mode == "RGB"


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_palettes_order_by_lightness_and_leave_the_background_to_zero(theme: Theme) -> None:
    steps = luminance(theme.palette)
    # a byte of colour is up to 0.004 of luminance
    assert np.all(np.diff(steps) < 0.002) or np.all(np.diff(steps) > -0.002)
    assert np.all(np.diff(steps[::16]) < 0) or np.all(np.diff(steps[::16]) > 0)
    ground = luminance(np.array([rgb(theme.background)], dtype=np.uint8))[0]
    # the step for the fewest is the nearest to the background, and still told apart from it
    contrast = (max(steps[0], ground) + 0.05) / (min(steps[0], ground) + 0.05)
    assert abs(steps[0] - ground) == min(abs(steps - ground))
    assert contrast > 1.25
    assert not any(
        np.array_equal(step, rgb(theme.background)) for step in [*theme.palette, *theme.signed]
    )


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_pixels_are_where_the_cells_are(theme: Theme) -> None:
    one = panel()
    image = draw(one, theme, 2 * one.columns, 300)
    known = colours(one, theme)
    filled = ~np.all(image == rgb(theme.background), axis=2)
    for column in range(one.columns):
        rows = np.flatnonzero(one.cells.counts[:, column])
        pixels = np.flatnonzero(filled[:, 2 * column])
        assert (len(rows) > 0) == (len(pixels) > 0)
        if len(rows):
            position = one.frame.position(one.cells.edges)
            assert pixels.max() + 1 == pytest.approx(300 * (1 - position[rows[0]]), abs=0.51)
            assert pixels.min() == pytest.approx(300 * (1 - position[rows[-1] + 1]), abs=0.51)
            assert np.array_equal(image[pixels.max(), 2 * column], known[rows[0], column])


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_idle_time_is_shaded_what_was_not_recorded_is_hatched_and_neither_is_zero(
    theme: Theme,
) -> None:
    made = counts(
        [(time * 100, 50) for time in range(100)]
        + [(20_000 + time * 100, 50) for time in range(100)]
    )
    idle, blind = (
        panels([Named("a", each)], View("log"), LAYOUT)[0]
        for each in (made, replace(made, gaps=((10, 20),)))
    )
    shaded, hatched = (
        np.all(draw(one, theme, 300, 100) == rgb(colour), axis=2)
        for one, colour in ((idle, theme.shade), (blind, theme.hatch))
    )
    assert shaded[:, 100:200].all()
    assert hatched[:, 100:200].mean() == pytest.approx(0.25, abs=0.05)
    assert not shaded[:, :100].any()
    assert not hatched[:, :100].any()
    for one, absent in ((idle, theme.hatch), (blind, theme.shade)):
        assert not np.all(draw(one, theme, 300, 100) == rgb(absent), axis=2).any()


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_the_shade_is_a_little_of_the_text_on_the_background(theme: Theme) -> None:
    ground, shade, ink = luminance(
        np.array(
            [rgb(each) for each in (theme.background, theme.shade, theme.text)], dtype=np.uint8
        )
    )
    assert min(ground, ink) < shade < max(ground, ink)
    assert abs(shade - ground) < 0.15
    assert not any(
        np.array_equal(step, rgb(theme.shade)) for step in [*theme.palette, *theme.signed]
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_a_document_has_axes_with_units_and_harmless_names(theme: Theme) -> None:
    document = svg([panel(percentiles=True)], "I/O of <x>", theme)
    tree = ElementTree.fromstring(document)
    texts = [element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any("a <b> & c: 2000 I/Os" in text or "a <b> & c: 2 000 I/Os" in text for text in texts)
    assert any(text.endswith(" µs") for text in texts)
    assert {"p50", "p90", "p99", "mean", "rank"} <= set(texts)
    assert len(re.findall("<image ", document)) == 2
    assert "http://" not in document.replace("http://www.w3.org/2000/svg", "")


def test_the_png_is_small_and_names_itself() -> None:
    title = "I/O of a"
    picture = svg_png(svg([panel()], title, LIGHT), title)
    assert b"iTXtTitle\0\0\0\0\0I/O of a" in picture
    assert len(picture) < 150_000
    assert struct.unpack(">II", picture[16:24])[0] == 2160


def test_repacking_keeps_what_is_drawn() -> None:
    pixels = np.arange(300, dtype=np.uint16).astype(np.uint8).reshape(10, 10, 3)
    after = decoded(repack(png(pixels), {"Title": "µ"}))
    assert np.array_equal(np.asarray(after.convert("RGB")), pixels)
    assert after.text == {"Title": "µ"}  # type: ignore[attr-defined]  # of PNG files
