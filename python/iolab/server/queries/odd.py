# SPDX-License-Identifier: Apache-2.0
"""What differs most from the minutes before."""

from __future__ import annotations

from ...errors import UsageError
from ...statistics.ask.odd_words import as_data, statements
from ...statistics.ask.oddities import oddities
from ..base.models import Odd
from ..base.store import Store
from .query_params import Words, recording_of, span_of


def odd(store: Store, words: Words) -> Odd:
    """The oddities of a recording, the strongest first, with a sentence for each.

    from and to bound the time that is explained. It is compared with the time before it, or with
    that from against_from to against_to.
    """
    name = recording_of(store, words)
    opened, ends = store.open(name), store.ends(name)
    against = span_of(words, ends, "against_")
    quiet = None
    if against != (None, None):
        if against[0] is None or against[1] is None:
            raise UsageError(
                "the quiet time has no end", where="against_to", hint="name both of its ends"
            )
        quiet = against[0], against[1]
    found = oddities(opened, looked_at=span_of(words, ends), against=quiet, ends=ends)
    stated = statements(opened, found)
    return Odd.model_validate({"recording": name, **as_data(found, stated)})
