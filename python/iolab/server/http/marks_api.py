# SPDX-License-Identifier: Apache-2.0
"""Marks that users set on a recording."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from ...documents import Model
from ...errors import UsageError
from ...recording.read.recording import Recording
from ...recording.write.user_marks import add_mark, remove_mark
from ..base.models import Marks
from ..base.store import Store
from ..base.worksheet import Text
from ..queries import listing
from ..queries.parameters import recording_of

LONGEST_LABEL = 200
LONGEST_NOTE = 4000

Label = Annotated[
    str,
    StringConstraints(
        pattern=r"^[^\x00-\x1f]*[^\x00-\x20][^\x00-\x1f]*$", max_length=LONGEST_LABEL
    ),
]
Time = Annotated[int, Field(ge=0, lt=2**63)]


class MarkAdd(Model):
    """Name a span of time, or a moment, where both ends are equal; ns on the recording's clock."""

    recording: Text
    label: Label
    from_ns: Time
    until_ns: Time
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)]


class MarkRemove(Model):
    """Remove a user's mark, by its label and begin."""

    recording: Text
    label: Annotated[str, StringConstraints(max_length=LONGEST_LABEL)]
    from_ns: Time


def add(store: Store, change: MarkAdd) -> Marks:
    """Set a mark."""
    name, recording = _recording(store, change.recording)
    add_mark(recording, change.label, change.from_ns, change.until_ns, change.note)
    return listing.marks(store, {"recording": name})


def remove(store: Store, change: MarkRemove) -> Marks:
    """Remove a mark."""
    name, recording = _recording(store, change.recording)
    remove_mark(recording, change.label, change.from_ns)
    return listing.marks(store, {"recording": name})


def _recording(store: Store, name: str) -> tuple[str, Recording]:
    """Its name and the recording."""
    name = recording_of(store, {"recording": name} if name else {})
    recording = store.recording(name)
    if recording is None:
        raise UsageError(
            "a trace has no marks", where=name, hint="iolab import makes a recording of it"
        )
    store.writable_path(name)
    return name, recording
