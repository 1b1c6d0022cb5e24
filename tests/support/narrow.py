# SPDX-License-Identifier: Apache-2.0
"""Values without None, for tests that know there is one."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value; AssertionError if it is None."""
    assert value is not None
    return value
