# SPDX-License-Identifier: Apache-2.0
"""Responses that were sent before, by question and version of the recording's catalogue: until the
recording changes they are neither computed nor written again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeAlias

from ...errors import IolabError
from ...recording.read.folder import Folder
from ...recording.read.trace import Trace
from ...statistics.kept.files.paths import stamp
from ..base.store import Store
from .parameters import Words, recording_of

MOST_BYTES = 64 << 20
LARGEST = MOST_BYTES // 4
"""Bytes of one response; a larger one is computed each time."""
MOST = 2000
"""Responses, since questions take room as well."""

Written: TypeAlias = tuple[bytes, str]
"""A response: its bytes, and their media type."""


class ResponseCache:
    """The latest responses, up to a number of them and of bytes. Safe to use from several threads."""

    def __init__(
        self, most_bytes: int = MOST_BYTES, largest: int = LARGEST, most: int = MOST
    ) -> None:
        self._most_bytes, self._largest, self._most = most_bytes, largest, most
        self._responses: OrderedDict[Hashable, tuple[Hashable, Written]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def answer(
        self, store: Store, path: Hashable, words: Words, compute: Callable[[], Written]
    ) -> Written:
        """The response to a question, computed where it is not known. `path`: which question, and in
        which form."""
        try:
            version = _version(store, recording_of(store, words))
        except (IolabError, OSError):
            return compute()  # it says what is wrong
        key = path, tuple(sorted(words.items()))
        with self._lock:
            remembered = self._responses.get(key)
            if remembered is not None and remembered[0] == version:
                self._responses.move_to_end(key)
                return remembered[1]
        response = compute()
        self._keep(key, version, response)
        return response

    def _keep(self, key: Hashable, version: Hashable, response: Written) -> None:
        with self._lock:
            before = self._responses.pop(key, None)
            self._bytes -= 0 if before is None else len(before[1][0])
            if len(response[0]) > self._largest:
                return
            self._responses[key] = version, response
            self._bytes += len(response[0])
            while self._bytes > self._most_bytes or len(self._responses) > self._most:
                _, (_, oldest) = self._responses.popitem(last=False)
                self._bytes -= len(oldest[0])


def _version(store: Store, name: str) -> Hashable:
    """What changes whenever a recording, what is kept of it, or a trace does."""
    opened = store.open_asked(name)
    if isinstance(opened, Trace):
        status = opened.path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    recordings = opened.recordings if isinstance(opened, Folder) else (opened,)
    return tuple((item.path, item.catalogue().version, stamp(item.path)) for item in recordings)
