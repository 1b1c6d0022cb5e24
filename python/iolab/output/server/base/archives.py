# SPDX-License-Identifier: Apache-2.0
"""An archive that is served: its recordings, listed again after a while, and a handle for each
thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from iolab.base.errors import ResultsError
from iolab.recordings.archive import Archive
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings

FRESH_S = 30.0
"""Seconds for which a list of recordings is used. What is pushed later is shown after that."""
KEY_LETTERS = 8


@dataclass(frozen=True)
class _Listing:
    """The recordings of an archive at one moment, by key."""

    at_s: float
    recordings: dict[str, ArchivedEvents]


class ServedArchive:
    """Safe to use from several threads.

    Attributes:
        url: of the archive.
    """

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        """ResultsError and UsageError as `Archive.open`."""
        self.url, self._now = url, now
        self._guard = threading.Lock()
        self._listing: _Listing | None = None
        # tables of PyIceberg change when they are read again
        self._own = threading.local()
        self.listing()

    def listing(self) -> _Listing:
        """The recordings that hold anything; the same object until it is made again."""
        with self._guard:
            listing = self._listing
            if listing is None or self._now() - listing.at_s >= FRESH_S:
                archive = self._archive()
                filled = [item for item in archive.recordings() if item.events or item.samples]
                recordings = {item.key: item for item in open_recordings(archive, filled)}
                listing = self._listing = _Listing(self._now(), recordings)
            return listing

    def open(self, key: str) -> ArchivedEvents:
        """A recording, to be used by this thread. ResultsError where there is none any more."""
        listing = self.listing()
        if key not in listing.recordings:
            raise ResultsError("is no longer in the archive", where=f"{self.url}#{key}")
        if getattr(self._own, "listing", None) is not listing:
            self._own.listing, self._own.opened = listing, {}
        opened: dict[str, ArchivedEvents] = self._own.opened
        if key not in opened:
            opened[key] = listing.recordings[key].opened_by(self._archive())
        return opened[key]

    def _archive(self) -> Archive:
        if not hasattr(self._own, "archive"):
            self._own.archive = Archive.open(self.url)
        archive: Archive = self._own.archive
        return archive


def label_of(recording: ArchivedEvents) -> str:
    """The name under which an archived recording is served: it remains the same."""
    return f"{recording.archived.host} {recording.key[:KEY_LETTERS]}".strip()
