# SPDX-License-Identifier: Apache-2.0
"""Push a growing recording again and again: the segments sealed since the last push, and after a failure
those that the store did not take."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from iolab.base.errors import IolabError

from ...store.base.layout import KINDS
from ...store.catalogue import Catalogue, FileCache
from ..labels import set_labels
from ..store import Archive
from .present import PresentSegments
from .progress import Progress, count_unarchived, read_progress, write_progress
from .push import Progress as Draw
from .push import Pushed, ReadKept, push

QUIET_NS = 60 * 10**9
"""Where nothing was sealed, coverage is pushed again after this time."""


class ContinuousPush:
    """Pushes of one recording into one archive. Each attempt is written to `archive.json`.

    Attributes:
        progress: the state after the last attempt.
    """

    def __init__(
        self,
        path: Path,
        url: str,
        draw: Draw = lambda done, total: None,
        now_ns: Callable[[], int] = time.time_ns,
        wait_s: float = 0.0,
        labels: Mapping[str, str] | None = None,
        kept: ReadKept | None = None,
    ) -> None:
        """`wait_s`: time to wait for another process that pushes the recording. `labels`: of its
        host, set with the first push. `kept`: as `push` has it."""
        self._kept = kept
        self._labels = labels or {}
        self._wait_s = wait_s
        self._path, self._url, self._draw, self._now_ns = path, url, draw, now_ns
        self._archive: Archive | None = None
        self._present: PresentSegments | None = None
        self._files = FileCache()
        before = read_progress(path)
        is_same = before is not None and before.archive == url
        self.progress = before if before is not None and is_same else Progress(url)
        self._pushed_last: int | None = None

    def step(self, *, is_last: bool = False) -> Pushed | None:
        """Push new segments. None where nothing was sealed since the last success, unless it is the
        last push. IolabError where the push fails: the next one continues."""
        now_ns = self._now_ns()
        try:
            last = self._last_sealed()
            is_recent = now_ns - self.progress.pushed_ns < QUIET_NS
            if last == self._pushed_last and is_recent and not is_last:
                self._write(replace(self.progress, tried_ns=now_ns, error=""))
                return None
            if not self.progress.pushed_ns:
                # a first push to a slow store takes a minute: nothing is archived until then
                self._write(self.progress)
            if self._archive is None or self._present is None:
                self._archive = Archive.open(self._url, create=True)
                self._present = PresentSegments(self._archive)
            pushed = push(
                self._path,
                self._archive,
                self._draw,
                kept=self._kept,
                wait_s=self._wait_s,
                present=self._present,
            )
            if self._labels:
                set_labels(self._archive, pushed.host, self._labels)
                self._labels = {}
        except IolabError as error:
            # a connection or a catalog may be unusable after a failure
            self._archive = self._pushed_last = None
            self._write(replace(self.progress, tried_ns=now_ns, error=str(error)))
            raise
        self._pushed_last = last
        self._write(
            replace(
                self.progress,
                recording=pushed.recording,
                through=pushed.through,
                deleted=pushed.deleted,
                tried_ns=now_ns,
                pushed_ns=now_ns,
                error="",
            )
        )
        return pushed

    def _last_sealed(self) -> int:
        """The number of the newest sealed segment; 0 without one."""
        catalogue = Catalogue.read(self._path, self._files)
        sealed = (segment.number for kind in KINDS for segment in catalogue.sealed_of(kind))
        return max(sealed, default=0)

    def _write(self, progress: Progress) -> None:
        # where the recording can't be read, the numbers of the attempt before remain
        with contextlib.suppress(IolabError):
            catalogue = Catalogue.read(self._path, self._files)
            rows, size, from_ns = count_unarchived(catalogue, progress.through)
            progress = replace(progress, rows=rows, bytes=size, from_ns=from_ns)
        self.progress = progress
        write_progress(self._path, progress)
