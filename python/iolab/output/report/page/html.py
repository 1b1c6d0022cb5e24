# SPDX-License-Identifier: Apache-2.0
"""One HTML file from the bundle and the two documents: nothing in it can load anything, and only
its own script runs."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from iolab.base.documents import Model
from iolab.base.errors import IolabError
from iolab.base.untrusted_text import html, page_json
from iolab.recordings.heatmap import words

from ..model.map_payload import Maps, RunMap
from ..model.payload import Details, Payload
from ..model.profile_payload import Profiles
from ..words.phrases import SPACE
from .cover_html import cover_html

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M2 13V9h3v4zm4.5 0V3h3v10zM11 13V6h3v7z' fill='%230072b2'/%3E%3C/svg%3E"
)
"""Three bars; inside the file, so that no browser asks for another."""


def render(
    payload: Payload, details: Details, maps: Maps | None = None, profiles: Profiles | None = None
) -> str:
    """The whole page. Raises IolabError where the page's script has not been built."""
    documents: dict[str, Model] = {"iolab-report": payload, "iolab-details": details}
    if maps is not None:
        documents["iolab-maps"] = maps
    if profiles is not None:
        documents["iolab-profiles"] = profiles
    return page(
        "report",
        payload.title,
        payload.generator,
        documents,
        _without_script(payload, maps, profiles),
        first=f"{_masthead(payload)}<main>{cover_html(payload.cover)}</main>",
    )


def page(
    bundle: str,
    title: str,
    generator: str,
    documents: Mapping[str, Model],
    without_script: str,
    *,
    first: str = "",
) -> str:
    """A page of one of the built bundles ("report", "heatmap") with its documents and the text for
    browsers without scripts. `first`: what is shown until the script has begun."""
    return standing(
        bundle,
        title,
        generator,
        [_embed(name, document) for name, document in documents.items()],
        without_script,
        first=first,
    )


def standing(
    bundle: str,
    title: str,
    generator: str,
    elements: Sequence[str],
    without_script: str,
    *,
    first: str = "",
) -> str:
    """A page of a built bundle with elements that hold its documents. Raises IolabError where it
    has not been built."""
    script, style = bundle_file(f"{bundle}.js"), bundle_file(f"{bundle}.css")
    if "</script" in script.lower() or "</style" in style.lower():
        raise IolabError(
            "the page's script can't be part of a page",
            where="report/static",
            hint="make setup rebuilds it",
        )
    # The script is allowed by its hash alone, so that markup that slipped into the page could run
    # nothing.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f'<meta name="generator" content="{html(generator)}">',
            f"<title>{html(title)}</title>",
            f'<link rel="icon" href="{ICON}">',
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f'<div id="app">{first}</div>',
            f"<noscript>{without_script}</noscript>",
            *elements,
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


@cache
def bundle_file(name: str) -> str:
    """A file of the built page, read once: later it may not be allowed. IolabError where it is not
    there."""
    file = resources.files("iolab.output.report") / "static" / name
    try:
        return file.read_text("utf-8")
    except OSError:
        raise IolabError(
            "the report's page has not been built",
            where=str(file),
            hint="run make setup in the clone",
        ) from None


def json_element(name: str, text: str) -> str:
    """A document as JSON: no letter of it can end the element or start a tag."""
    return f'<script type="application/json" id="{name}">{text.replace("<", chr(92) + "u003c")}</script>'


def pack(document: Model) -> str:
    """A document as gzip in base64, so that no character of it can end a script element or start a
    tag; its texts are escaped as the page shows them (`page_json`)."""
    content = page_json(document.model_dump_json()).encode()
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


def _embed(name: str, document: Model) -> str:
    return f'<script type="application/gzip;base64" id="{name}">{pack(document)}</script>'


def _masthead(payload: Payload) -> str:
    """Title and variants, as the page's script draws them."""
    variants = "".join(
        f'<span class="variant">{html(variant.name)}<small> '
        f"{'baseline, ' if variant.baseline else ''}{variant.runs} "
        f"{'run' if variant.runs == 1 else 'runs'}</small></span>"
        for variant in payload.variants
    )
    return (
        f'<header class="masthead"><div class="names"><h1>{html(payload.title)}</h1>'
        f'<p class="about">{variants}<span class="quiet">{html(payload.created)} · '
        f"{html(payload.generator)}</span></p></div></header>"
    )


def _without_script(payload: Payload, maps: Maps | None, profiles: Profiles | None) -> str:
    """The summary for browsers without scripts; the cover is above it."""
    parts = [
        '<div class="plain"><p>Charts, details and further tables need JavaScript; this is the summary.</p>'
    ]
    statements = [(part.title, part.sentences) for part in payload.summary]
    if payload.sessions is not None:
        statements.insert(0, (payload.sessions.title, payload.sessions.sentences))
    for title, sentences in statements:
        items = "".join(
            f"<li>{html(sentence.text.replace(SPACE, ' '))}</li>" for sentence in sentences
        )
        parts.append(f"<h2>{html(title)}</h2><ul>{items}</ul>")
    if maps is not None and maps.cells:
        lines = dict.fromkeys(
            _map_line(payload, cell.title, part.of[place], map_of_group.events)
            for cell in maps.cells
            for part in cell.maps[:1]
            for place, map_of_group in enumerate(part.group.maps)
        )
        parts.append(
            f"<h2>Heat maps</h2><p>They need JavaScript; recorded were:</p><ul>{''.join(lines)}</ul>"
        )
    if profiles is not None and profiles.cells:
        said = "".join(
            f"<li>{html(f'{profile.variant} {cell.title}'.strip())}: {html(profile.sampled)}; {html(profile.spent)}</li>"
            for cell in profiles.cells
            for profile in cell.profiles
        )
        parts.append(
            f"<h2>Profiles</h2><p>Flame graphs need JavaScript; sampled were:</p><ul>{said}</ul>"
        )
    return "".join([*parts, "</div>"])


def _map_line(payload: Payload, cell: str, one: RunMap, events: int) -> str:
    where = f", {cell}" if cell else ""
    layer = " at the block layer" if one.seen == "block" else ""
    return f"<li>run {html(payload.runs.ids[one.run])} ({html(one.variant + where)}): {html(words.ios(events))}{layer}</li>"
