# SPDX-License-Identifier: Apache-2.0
"""What the documents that are written for pages have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A part of a document: every field is written, nothing unknown is taken."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)
