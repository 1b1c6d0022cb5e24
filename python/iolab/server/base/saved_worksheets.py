# SPDX-License-Identifier: Apache-2.0
"""The worksheets that are saved, as a list."""

from __future__ import annotations

from ...errors import FormatError
from .json_store import JsonStore
from .store import NotServed
from .worksheet import SavedFacts, SavedWorksheets, Worksheet


def listed(documents: JsonStore[Worksheet]) -> SavedWorksheets:
    """What is saved, by name; what can't be read is listed with its problem."""
    found = []
    for name in documents.names():
        try:
            sheet, changed = documents.read(name)
            found.append(
                SavedFacts(
                    name=name,
                    recording=sheet.recording,
                    graphs=len(sheet.graphs),
                    changed_ns=changed,
                    problem="",
                )
            )
        except NotServed:
            continue  # removed meanwhile
        except FormatError as error:
            found.append(
                SavedFacts(name=name, recording="", graphs=0, changed_ns=0, problem=error.message)
            )
    return SavedWorksheets(worksheets=found)
