# SPDX-License-Identifier: Apache-2.0
"""`iolab archive push RESULTS`: observations of a study, and the recordings of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.output import tell, tell_json
from ..study.progress import count_text

if TYPE_CHECKING:
    from iolab.recordings.archive import Pushed
    from iolab.studies.results.open.results import Results

TellPushed = Callable[[Path, "Pushed"], None]


def is_results(path: Path) -> bool:
    """Whether a path is a results directory."""
    from iolab.studies.results.evidence.manifest import FILE
    from iolab.studies.results.open.multi_host import FILE as HOSTS

    return (path / FILE).is_file() or (path / HOSTS).is_file()


def push_results(path: Path, url: str, style: str, tell_pushed: TellPushed) -> None:
    """Push the observations of results, then their recordings. `tell_pushed` prints a push of a
    recording as text."""
    from iolab.recordings.archive import Archive, push
    from iolab.recordings.archive.upload.observations import push_observations
    from iolab.recordings.ask.kept.archiving import kept_statistics
    from iolab.studies.results.open.results import Results

    results = Results(path)
    rows = list(_rows(results))
    archive = Archive.open(url, create=True)
    pushed = push_observations(archive, _key(results), rows)
    recordings = [file.parent for file in sorted((path / "recordings").glob("*/recording.json"))]
    if style == "json":
        of_recordings = [
            {"path": str(place), **asdict(push(place, archive, kept=kept_statistics))}
            for place in recordings
        ]
        tell_json(
            {
                "schema": 1,
                "archive": url,
                "path": str(path),
                "observations": asdict(pushed),
                "recordings": of_recordings,
            }
        )
        return
    tell(
        f"{path}: {count_text(pushed.rows, 'observation')} of {count_text(len(results.runs), 'run')} "
        f"as results {pushed.results}; replaced: {pushed.replaced:,}"
    )
    for place in recordings:
        tell_pushed(place, push(place, archive, kept=kept_statistics))


def _key(results: Results) -> str:
    """The key of results: it remains the same while they grow, and wherever they are copied to."""
    import hashlib
    import json

    manifest = results.manifest
    facts = [manifest.name, manifest.created_ns, manifest.host, manifest.source]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    import json

    for run in results.runs:
        window = run.window or (None, None)
        about = {
            "host": run.plan.host,
            "study": results.manifest.name,
            "run": run.id,
            "variant": run.variant,
            "factors": json.dumps(dict(run.factors), sort_keys=True, default=str),
            "repetition": run.plan.repetition,
            "block": run.plan.block,
            "verdict": run.verdict.level.value,
            "reasons": json.dumps([reason.code for reason in run.verdict.reasons]),
            "from_ns": window[0],
            "until_ns": window[1],
        }
        for observation in run.observations.values():
            yield {
                **about,
                "metric": observation.metric,
                "value": observation.value,
                "unit": observation.unit,
                "source_file": observation.source_file,
                "source_field": observation.source_field,
            }
