# SPDX-License-Identifier: Apache-2.0
"""Archives as paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.cli.base.archives import archive_url


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("archive:/srv/a", "/srv/a"),
        ("archive:a/b", "a/b"),
        ("archive:file:///srv/a", "file:///srv/a"),
        ("archive:s3://bucket/a", "s3://bucket/a"),
        ("archive:catalog:name", "catalog:name"),
        ("rec", None),
    ],
)
def test_the_address_of_an_archive_comes_through_a_path(path: str, url: str | None) -> None:
    assert archive_url(Path(path)) == url
