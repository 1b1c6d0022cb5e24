"""What every target must do: make what it needs, remove what it made, say what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab import registry
from iolab.errors import RunError
from iolab.hosts.local import LocalHost
from iolab.targets.base import RunContext

OPTIONS: dict[str, dict[str, Any]] = {"directory": {}}
"""Options with which a target of each kind works on any machine, without privilege."""


@pytest.fixture(params=registry.names("target"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(kind: str, scratch: Path) -> Any:
    plugin = registry.load("target", kind)
    return plugin(plugin.options.model_validate(OPTIONS[kind]), LocalHost(), str(scratch))


def test_it_names_itself_and_forbids_unknown_options(kind: str) -> None:
    plugin = registry.load("target", kind)
    assert plugin.name == kind
    assert plugin.__doc__
    assert all(field.description for field in plugin.options.model_fields.values())
    with pytest.raises(ValidationError, match="no_such_option"):
        plugin.options.model_validate({**OPTIONS[kind], "no_such_option": 1})


def test_runs_get_fresh_places_and_nothing_remains(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch")
    target.open(1 << 20)
    try:
        places = []
        for run in ("0001-aa", "0002-bb"):
            place = Path(target.begin(RunContext(run, "cell", 1, 1 << 20)).path)
            assert list(place.iterdir()) == []
            (place / "deep").mkdir()
            (place / "deep" / "file").write_bytes(b"x" * 5000)
            target.end(run)
            assert not place.exists()
            places.append(place)
        assert len(set(places)) == 2
    finally:
        target.close()
    assert list(tmp_path.iterdir()) == []
    target.close()  # twice is fine


def test_what_a_torn_run_left_goes_with_the_target(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch")
    target.open(1)
    (Path(target.begin(RunContext("0001-aa", "cell", 1, 1)).path) / "left").write_text("x")
    target.close()
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_refused_at_first_and_at_every_run(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch")
    try:
        with pytest.raises(RunError, match="free"):
            target.open(1 << 62)
    finally:
        target.close()
    target = make(kind, tmp_path / "scratch")
    try:
        target.open(1)
        with pytest.raises(RunError, match="free"):
            target.begin(RunContext("0001-aa", "cell", 1, 1 << 62))
    finally:
        target.close()
    assert list(tmp_path.iterdir()) == []


def test_it_says_what_it_is(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch")
    try:
        target.open(1)
        facts = target.facts()
        assert facts.facts["target"]["kind"] == kind
        assert all(isinstance(text, str) and text for text in facts.fingerprint.values())
        assert target.devices() or target.notes()  # no device is fine, silence about it isn't
        for device in target.devices():
            assert Path("/sys/class/block", device).exists()
    finally:
        target.close()


def test_a_place_that_cannot_be_written_is_refused_with_advice(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "no" / "parent" / "scratch")
    with pytest.raises(RunError) as caught:
        target.open(1)
    assert caught.value.hint
    target.close()
