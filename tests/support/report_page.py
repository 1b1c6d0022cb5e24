# SPDX-License-Identifier: Apache-2.0
"""The data of a report's page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def page_data(page: str, name: str = "iolab-report") -> dict[str, Any]:
    """A document of the page, unpacked as the browser does."""
    match = re.search(
        rf'<script type="application/gzip;base64" id="{name}">([A-Za-z0-9+/=]+)</script>', page
    )
    assert match, f"no {name} in the page"
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(match[1])))
    return data
