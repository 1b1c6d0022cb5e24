# SPDX-License-Identifier: Apache-2.0
"""Renew everything that is generated and committed (`make generate`): JSON Schemas, the page's
TypeScript types, the glossary.

`tests/unit/base/test_generated.py` fails where a committed file is not what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from iolab.base.glossary import SECTIONS
from iolab.output.report.model import schema as report_schema
from iolab.output.server.http import openapi
from iolab.studies.plan.file import schema as study_schema
from iolab.studies.results.evidence.manifest import Manifest


def generate(root: Path) -> list[Path]:
    """Write all generated files below `root`; returns their paths."""
    schemas = root / "schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    study = schemas / "study.schema.json"
    study.write_text(
        json.dumps(study_schema.json_schema(), indent=2, ensure_ascii=False) + "\n", "utf-8"
    )
    manifest = schemas / "manifest.schema.json"
    manifest.write_text(json.dumps(Manifest.model_json_schema(), indent=2) + "\n", "utf-8")
    return [
        study,
        manifest,
        _write_glossary(root),
        *report_schema.write(root),
        *openapi.write(root),
    ]


def _write_glossary(root: Path) -> Path:
    lines = [
        "<!-- Generated from python/iolab/base/glossary.py by `make generate`. -->",
        "",
        "# Glossary",
        "",
        "`iolab catalog glossary` prints the same. A symbol is how names of metrics, formulas and tables write a term.",
        "Units are base units; 1 is a share.",
    ]
    for section, terms in SECTIONS.items():
        lines += [
            "",
            f"## {section}",
            "",
            "| term | symbol | unit | meaning |",
            "|---|---|---|---|",
        ]
        for term in terms:
            unit = "" if term.unit is None else term.unit or "number"
            lines.append(
                f"| {term.name} | {f'`{term.symbol}`' if term.symbol else ''} | {unit} | {term.meaning} |"
            )
    path = root / "docs/reference/glossary.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


if __name__ == "__main__":
    for path in generate(Path(__file__).parent.parent):
        print(path)
