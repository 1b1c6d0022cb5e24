# SPDX-License-Identifier: Apache-2.0
"""The study's JSON Schema and reference page: complete, current, and of one mind with the reader."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from iolab.studies.plan.file.load import load_study
from iolab.studies.plan.file.problems import StudyProblems
from iolab.studies.plan.file.schema import json_schema, main
from support.acting import study_text


def test_the_committed_schema_is_current(root: Path) -> None:
    committed = json.loads((root / "schemas" / "study.schema.json").read_text("utf-8"))
    assert committed == json_schema(), "stale: run `make generate`"


@pytest.mark.slow
def test_it_is_a_schema_and_is_written_as_a_file(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    main([str(tmp_path / "s.json")])
    assert json.loads((tmp_path / "s.json").read_text("utf-8")) == json_schema()
    with pytest.raises(SystemExit, match="usage"):
        main([])


def _shipped(root: Path) -> list[Path]:
    return sorted((root / "studies").glob("*.toml"))


@pytest.mark.slow
def test_every_shipped_study_is_accepted_by_reader_and_schema(root: Path) -> None:
    assert _shipped(root)
    for path in _shipped(root):
        assert load_study(path).cells
        jsonschema.validate(tomllib.loads(path.read_text("utf-8")), json_schema())


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        "[studdy]\nname = 'x'\n",
        "[target]\nkind = 'directory'\npaht = '/x'\n",
        "[sources.diskstat]\n",
        "[sources.diskstats]\nevery = 1\n",
    ],
)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(study_text() + wrong, "utf-8")
    with pytest.raises(Exception, match="unknown"):
        load_study(path)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(path.read_text("utf-8")), json_schema())


@pytest.mark.parametrize(
    "right",
    [
        "[target]\npath = '/tmp/{numjobs}'\n",
        "[sources]\n",
        "[sources.diskstats]\ninterval = '500ms'\n",
        "[variants.third]\nworkload.ramp = '{numjobs}s'\n",
        "[target]\nkind = 'filesystem'\nfs = 'ext4'\nloop = {size = 'memory / 8'}\n",
        "[target]\nkind = 'filesystem'\nfs = 'ext4'\nloop = {size = '{numjobs}g', count = 1}\n",
        "[variants.third]\nsetup = 'true'\nteardown = [['true'], 'false']\nworkload.options.size = 'memory / numjobs'\n",
        "[hooks.run]\nbefore = ['x']\n[[actions]]\nat = '1s'\nmark = 'm'\ncommand = ['true']\n",
    ],
)
def test_schema_accepts_what_the_reader_does(tmp_path: Path, right: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(study_text() + right, "utf-8")
    load_study(path)
    jsonschema.validate(tomllib.loads(path.read_text("utf-8")), json_schema())


def test_schema_accepts_sets_of_factors(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        study_text().replace(
            "[factors]\nnumjobs = [1, 4]",
            "[[factors]]\nnumjobs = [1, 4]\niodepth = [1, 2]\n"
            "zip = [['numjobs', 'iodepth']]\n[[factors]]\nnumjobs = [1, 4]\nexclude = [{numjobs = [4]}]",
        )
    )
    assert len(load_study(path).cells) == 6
    jsonschema.validate(tomllib.loads(path.read_text("utf-8")), json_schema())


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    ["[hooks.cell]\nbefore = 'x'\n", "[[actions]]\nmark = 'x'\n", "[variants.third]\nsetup = 3\n"],
)
def test_schema_and_reader_refuse_wrong_commands(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(study_text() + wrong, "utf-8")
    with pytest.raises(StudyProblems):
        load_study(path)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(path.read_text("utf-8")), json_schema())


def _keys(schema: Any, names: bool = False) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if names:
                yield key
            yield from _keys(value, names=key == "properties" and not names)
    elif isinstance(schema, list):
        for each in schema:
            yield from _keys(each)


def test_the_reference_page_has_every_key(root: Path) -> None:
    page = (root / "docs" / "reference" / "study.md").read_text("utf-8")
    missing = {
        key
        for key in _keys(json_schema())
        if f"`{key}`" not in page and f".{key}`" not in page and f"[{key}" not in page
    }
    assert not missing


def test_the_reference_pages_example_is_a_study(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "reference" / "study.md").read_text("utf-8")
    examples = [part.partition("```")[0] for part in page.split("```toml\n")[1:]]
    assert examples
    path = tmp_path / "example.toml"
    path.write_text(examples[0], "utf-8")
    assert len(load_study(path).cells) == 6
