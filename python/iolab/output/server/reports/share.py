# SPDX-License-Identifier: Apache-2.0
"""A worksheet as one HTML file: the page with the answers that it shows, which still hovers, zooms
and crops without a service."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qsl

from iolab import __version__
from iolab.base.errors import IolabError, UsageError
from iolab.recordings.heatmap.theme import DARK, LIGHT
from iolab.recordings.heatmap.wire import colours

from ...report.page.html import json_element, standing
from ..base.store import Store
from ..base.worksheet import Sharing
from ..queries import listing
from ..queries.parameters import parameters
from ..queries.routes import ROUTES

LARGEST = 64 << 20
"""Bytes of all answers together."""
LONGEST_S = 60.0
"""Seconds that they may take."""


def share(store: Store, wanted: Sharing) -> str:
    """The file. Questions that are refused have no answer in it, as they have none in the page."""
    worksheet = wanted.worksheet
    name = worksheet.recording or (store.names[0] if len(store.names) == 1 else "")
    answers: dict[str, str] = {}
    size = 0
    limit = time.monotonic() + LONGEST_S
    for question in dict.fromkeys(wanted.questions):
        if time.monotonic() > limit:
            raise UsageError(
                f"the answers take more than {LONGEST_S:g} s",
                hint="share fewer graphs, or less time",
            )
        try:
            answer = _answer(store, question)
        except IolabError:
            continue
        size += len(answer)
        if size > LARGEST:
            raise UsageError(
                f"the answers have more than {LARGEST >> 20} MiB",
                hint="share fewer graphs, or less time",
            )
        answers[question] = answer
    # what is in a file doesn't grow
    facts = (
        [listing.facts_of(store, name).model_copy(update={"live": False})]
        if name in store.names
        else []
    )
    statistics = listing.statistics(store, {"recording": name}).statistics if facts else []
    parts = {
        "worksheet": worksheet.model_dump_json(by_alias=True),
        "recordings": _list([fact.model_dump_json() for fact in facts]),
        "statistics": _list([statistic.model_dump_json() for statistic in statistics]),
        "answers": _object(answers),
    }
    look = _object(
        {"light": colours(LIGHT).model_dump_json(), "dark": colours(DARK).model_dump_json()}
    )
    return standing(
        "live",
        worksheet.name or "worksheet",
        f"iolab {__version__}",
        [json_element("iolab-colours", look), json_element("iolab-answers", _object(parts))],
        "<main><h1>iolab</h1><p>This worksheet needs JavaScript.</p></main>",
    )


def _answer(store: Store, question: str) -> str:
    """The answer to a question as path and query, in JSON."""
    path, _, query = question.partition("?")
    route = next((route for route in ROUTES if route.path == f"/{path}" and route.models), None)
    if route is None:
        raise UsageError("there is nothing at this path", where=path[:40])
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            strict_parsing=bool(query),
            max_num_fields=200,
            errors="strict",
        )
    except ValueError:
        raise UsageError("that is not a query", where=path[:40]) from None
    answer = route.answer(
        store,
        parameters(pairs, {parameter.name: parameter.bounds for parameter in route.parameters}),
    )
    assert not isinstance(answer, bytes)
    return answer.model_dump_json(by_alias=True)


def _object(parts: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in parts.items()) + "}"


def _list(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"
