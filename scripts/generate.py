"""Renew everything that is generated and committed (`make generate`): JSON Schemas and the page's TypeScript types.

`tests/unit/base/test_generated.py` fails where a committed file is not what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from iolab.report.model import schema as report_schema
from iolab.results.evidence.manifest import Manifest
from iolab.server.http import openapi
from iolab.study import schema as study_schema


def generate(root: Path) -> list[Path]:
    """Write all generated files below `root`; returns their paths."""
    schemas = root / "schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    study = schemas / "study.schema.json"
    study.write_text(json.dumps(study_schema.json_schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    manifest = schemas / "manifest.schema.json"
    manifest.write_text(json.dumps(Manifest.model_json_schema(), indent=2) + "\n", "utf-8")
    return [study, manifest, *report_schema.write(root), *openapi.write(root)]


if __name__ == "__main__":
    for path in generate(Path(__file__).parent.parent):
        print(path)
