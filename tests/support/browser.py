# SPDX-License-Identifier: Apache-2.0
"""What is asked of a page in a browser: again and again until it holds, for what a key or a click
brings comes later than they do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
PATIENCE = 60_000
"""Ms that a page has for what it is asked to do, however busy the machine is."""

_TYPED = """async keys => {
    for (const key of keys) {
        const place = document.activeElement ?? document.body;
        const form = place.matches('input') ? place.form : null;
        if (place.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}))) {
            if (key.length === 1 && place.matches('input')) document.execCommand('insertText', false, key);
            else if (key === 'Enter' && form) form.requestSubmit();
            else if ((key === 'Enter' || key === ' ') && place.matches('button')) place.click();
        }
        // what a browser does before the next key, too, and no more: neither a timer nor a frame comes between
        for (let step = 0; step < 100; step++) await null;
    }
}"""


def expect(place: Any, words: str | None = None) -> Any:
    """An assertion on a page or a place in it, tried again until it holds."""
    from playwright.sync_api import expect as on_page

    return on_page(place, words)


def until(page: Any, holds: Callable[[], object], words: str = "") -> None:
    """Wait until something holds that no assertion of the browser's own says, such as what pixels
    show."""
    for _ in range(PATIENCE // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    assert holds(), words


def violations(page: Any, impacts: Collection[str] = ("serious", "critical")) -> list[str]:
    """Rules of accessibility that axe-core finds violated by a page, with the first element of
    each. The test is skipped where axe-core is not installed."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (scripts/with-node npm --prefix web ci)")
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {rule['nodes'][0]['html'][:200]}"
        for rule in found
        if rule["impact"] in impacts
    ]


def typed(page: Any, keys: Sequence[str]) -> None:
    """Type in one go, faster than the page can be painted."""
    page.evaluate(_TYPED, list(keys))
