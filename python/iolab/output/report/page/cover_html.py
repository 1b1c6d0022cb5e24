# SPDX-License-Identifier: Apache-2.0
"""The cover as plain HTML: readable before and without scripts, which add details and keys to
it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from urllib.parse import quote

from iolab.base.untrusted_text import html

from ..model.cover_payload import Cover, CoverCard, CoverCell, CoverMatrix, Obstacle
from ..model.statements import Sentence
from ..words.phrases import SPACE

SIGNS = {"SUSPECT": "!", "INVALID": "✕"}
"""Before a number, so that hatches and crosses are not the only sign of a verdict."""

SMALL_COLUMNS = 4
"""Columns of all matrices of a card up to which cards lie next to each other."""


def cover_html(cover: Cover) -> str:
    """The section of the cover; empty where there is nothing to say."""
    if not cover.cards and not cover.obstacles:
        return ""
    number = count()
    cards = "".join(_card(card, place, number) for place, card in enumerate(cover.cards))
    return (
        '<section id="cover" class="cover" aria-labelledby="cover-title">'
        f'<div class="cover-head"><h2 id="cover-title">{_text(cover.title)}</h2>{_legend(cover)}</div>'
        f"{''.join(map(_obstacle, cover.obstacles))}{_cautions(cover.cautions)}"
        f'<div class="cards">{cards}</div></section>'
    )


def _text(text: str) -> str:
    """Text from elsewhere; a no-break space stays, as it is the page's own."""
    return SPACE.join(html(part) for part in text.split(SPACE))


def _cautions(sentences: Sequence[Sentence]) -> str:
    items = "".join(
        f'<li class="tone-{sentence.tone}">{_text(sentence.text)}</li>' for sentence in sentences
    )
    return f'<ul class="cautions">{items}</ul>' if items else ""


def _obstacle(obstacle: Obstacle) -> str:
    """What can't be compared, why, and what to do."""
    items = []
    for reason in obstacle.reasons:
        links = [f'<a href="#run={quote(run)}">{_text(run)}</a>' for run in reason.runs]
        more = f" and {reason.more} more" if reason.more else ""
        items.append(
            f"<li><strong>{_text(reason.count)}</strong>: {_text(reason.text)} "
            f'<code>{_text(reason.code)}</code> <span class="quiet">({", ".join(links)}{more})</span>'
            f"<br>{_mark_code(reason.remedy)}</li>"
        )
    reasons = "".join(items)
    return (
        f'<div class="obstacle"><p class="statement">{_text(obstacle.text)}</p>'
        f"{f'<ul>{reasons}</ul>' if reasons else ''}<p>{_mark_code(obstacle.remedy)}</p></div>"
    )


def _mark_code(text: str) -> str:
    """The page's own words; what is between backquotes is code."""
    parts = [_text(part) for part in text.split("`")]
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _legend(cover: Cover) -> str:
    cells = [cell for card in cover.cards for matrix in card.matrices for cell in _all(matrix)]
    if not cells:
        return ""
    used = {cell.certainty for cell in cells}
    levels = {cell.level for cell in cells}
    parts = []
    if cover.legend and used & {"significant", "insignificant", "untested"}:
        state = "sig" if "significant" in used else "unt"
        steps = "".join(
            f'<span class="{_shade(step.shade)} {state}">{_text(step.text)}</span>'
            for step in cover.legend
        )
        parts.append(f'<span class="steps">{steps}</span> % {_text(cover.legend_note)}')
    if "value" in used:
        parts.append("stronger colour: higher")
    if "insignificant" in used:
        parts.append('<span class="key b4 ins">~</span> not significant')
    if "untested" in used:
        key = '<span class="key b4 unt">±</span> ' if "significant" in used else ""
        parts.append(f"{key}no test")
    if "SUSPECT" in levels:
        parts.append('<span class="key suspect">!</span> SUSPECT')
    if "INVALID" in levels:
        parts.append('<span class="key invalid">✕</span> INVALID')
    return f'<p class="legend">{" · ".join(parts)}</p>' if parts else ""


def _all(matrix: CoverMatrix) -> list[CoverCell]:
    return [cell for row in matrix.cells for cell in row if cell is not None]


def _card(card: CoverCard, place: int, number: Iterator[int]) -> str:
    sentences = [_sentence(sentence) for sentence in card.sentences]
    matrices = "".join(_matrix(matrix, card, number) for matrix in card.matrices)
    note = f'<p class="quiet">{_text(card.note)}</p>' if card.note else ""
    body = f'<div class="matrices">{matrices}</div>{note}'
    if len(sentences) > 1:
        items = "".join(f"<li{tone}>{text}</li>" for tone, text in sentences)
        return f'<div class="card joint"><ul class="answers">{items}</ul><div>{body}</div></div>'
    tone, text = sentences[0]
    opened = " open" if card.is_open else ""
    heading = f"<summary><h3{tone}>{text}</h3></summary>"
    columns = sum(len(matrix.columns) for matrix in card.matrices)
    small = " small" if 0 < columns <= SMALL_COLUMNS else ""
    return f'<details class="card{small}"{opened} data-card="{place}">{heading}{body}</details>'


def _sentence(sentence: Sentence) -> tuple[str, str]:
    """The tone as an attribute, and the text with its quantity set off."""
    title, colon, rest = sentence.text.partition(":")
    text = f"<strong>{_text(title)}</strong>{colon}{_text(rest)}"
    return f' class="tone-{sentence.tone}"', text


def _matrix(matrix: CoverMatrix, card: CoverCard, number: Iterator[int]) -> str:
    unit = f" ({card.unit})" if card.unit else ""
    caption = f"{matrix.title}{unit}" if matrix.title else f"{card.title}{unit}"
    corner = [
        f"{matrix.column_title} →" if matrix.column_title else "",
        f"{matrix.row_title} ↓" if matrix.row_title else "",
    ]
    columns = "".join(f'<th scope="col">{_text(text)}</th>' for text in matrix.columns)
    head = f"<tr><td>{'<br>'.join(map(_text, filter(None, corner)))}</td>{columns}</tr>"
    has_columns = any(matrix.columns)
    if not has_columns:
        head = ""
    rows = "".join(
        f'<tr><th scope="row">{_text(text or "all")}</th>{"".join(_cell(cell, number, card.has_details) for cell in row)}</tr>'
        for text, row in zip(matrix.rows, matrix.cells, strict=True)
    )
    if not has_columns and matrix.row_title:
        caption = f"{caption}, by {matrix.row_title}"
    return (
        f'<div class="matrix"><table><caption>{_text(caption)}</caption>'
        f"<thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: CoverCell | None, number: Iterator[int], has_details: bool) -> str:
    if cell is None:
        return "<td></td>"
    place = next(number)
    sign = SIGNS.get(cell.level, "") + ("~" if cell.certainty == "insignificant" else "")
    mark = f"<small>{sign}</small>" if sign else ""
    detail = (
        f'<span class="sides">{_text(cell.detail)}</span>' if has_details and cell.detail else ""
    )
    return (
        f'<td class="{cell_classes(cell)}" data-i="{place}">{mark}{_text(cell.text)}{detail}</td>'
    )


def cell_classes(cell: CoverCell) -> str:
    """The classes that give a cell its colour: of its shade, its certainty, and its verdict."""
    state = {
        "significant": "sig",
        "insignificant": "ins",
        "untested": "unt",
        "value": "val",
        "none": "non",
    }[cell.certainty]
    shade = _shade(cell.shade) if cell.has_direction else f"g{abs(cell.shade)}"
    classes = [f"v{cell.shade}" if state == "val" else shade, state]
    if cell.level in SIGNS:
        classes.append(cell.level.lower())
    return " ".join(classes)


def _shade(shade: int) -> str:
    """The class of a shade: `b` better, `w` worse."""
    return f"{'b' if shade > 0 else 'w'}{abs(shade)}" if shade else "s0"
