# SPDX-License-Identifier: Apache-2.0
"""Archives as paths: `archive:URL`, where a command takes a recording."""

from __future__ import annotations

import re

PREFIX = "archive:"


def url_of(path: str) -> str | None:
    """The archive that a path names; None for any other path."""
    if not path.startswith(PREFIX):
        return None
    # a path has one slash where a URL has two, and three before an absolute path
    return re.sub(
        r"^([a-z][a-z0-9]*):/(?!/)",
        lambda scheme: f"{scheme[1]}://{'/' if scheme[1] == 'file' else ''}",
        path.removeprefix(PREFIX),
    )
