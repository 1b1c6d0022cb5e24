# SPDX-License-Identifier: Apache-2.0
"""What every target must do: make what it needs, remove what it made, say what it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base import registry
from iolab.base.errors import RunError
from iolab.hosts.kinds.local import LocalHost
from iolab.studies.targets.base import Permissions, RunContext
from iolab.studies.targets.made import clean_leftovers
from support.disks import attached, mounted, need_loops
from support.waiting import until

OPTIONS: dict[str, dict[str, Any]] = {
    "directory": {},
    "filesystem": {"fs": "ext4", "loop": {"size": "32m"}},
    "device": {"loop": {"size": "8m", "count": 2}},
}
"""Options with which a target of each kind works without leave to destroy; those with loop devices
need root."""


# A pool takes a machine with ZFS: tests/rig and tests/unit/targets/test_targets_zpool.py hold it to
# the same.
@pytest.fixture(params=[name for name in registry.names("target") if name != "zpool"])
def kind(request: pytest.FixtureRequest) -> str:
    if "loop" in OPTIONS[request.param]:
        need_loops()
    return str(request.param)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    until(lambda: attached(tmp_path) == [], "loop devices to be detached")
    assert mounted(tmp_path) == []


def make(kind: str, scratch: Path, **more: Any) -> Any:
    plugin = registry.load("target", kind)
    return plugin(
        plugin.options.model_validate({**OPTIONS[kind], **more}), LocalHost(), str(scratch)
    )


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
            place = target.begin(RunContext(run, "cell", 1, 1 << 20))
            places.append(place.path)
            if place.kind == "device":
                assert all(Path(node).is_block_device() for node in place.path.split(":"))
                assert len(place.path.split(":")) == 2
                target.end(run)
                continue
            path = Path(place.path)
            assert list(path.iterdir()) == []
            (path / "deep").mkdir()
            (path / "deep" / "file").write_bytes(b"x" * 5000)
            target.end(run)
            assert not path.exists()
        assert place.kind == "device" or len(set(places)) == 2
    finally:
        target.close()
    assert list(tmp_path.iterdir()) == []
    target.close()  # twice is fine


def test_what_a_torn_run_left_goes_with_the_target(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch")
    target.open(1)
    place = target.begin(RunContext("0001-aa", "cell", 1, 1))
    if place.kind == "directory":
        (Path(place.path) / "left").write_text("x")
    target.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_goes_by_the_record_and_nothing_else(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch-2")
    target.open(1)
    place = target.begin(RunContext("0001-aa", "cell", 1, 1))
    if place.kind == "directory":
        (Path(place.path) / "left").write_text("x")
    (tmp_path / "of-others").write_text("stays")
    del target  # as a kill does: nobody closes it
    assert clean_leftovers(LocalHost(), tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["of-others"]
    assert clean_leftovers(LocalHost(), tmp_path) == []


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


def test_its_fingerprint_is_the_same_when_it_is_made_again(kind: str, tmp_path: Path) -> None:
    prints = []
    for scratch in ("one", "two"):
        target = make(kind, tmp_path / scratch)
        try:
            target.open(1)
            prints.append(target.facts().fingerprint)
        finally:
            target.close()
    assert prints[0] == prints[1]


def test_a_place_that_cannot_be_written_is_refused_with_advice(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "no" / "parent" / "scratch")
    with pytest.raises(RunError) as caught:
        target.open(1)
    assert caught.value.hint
    target.close()


def test_what_it_makes_itself_destroys_nothing(kind: str, tmp_path: Path) -> None:
    plugin = registry.load("target", kind)
    target = plugin(
        plugin.options.model_validate(OPTIONS[kind]),
        LocalHost(),
        str(tmp_path / "scratch"),
        Permissions(),
        True,
    )
    assert target.destroys() == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.loops
def test_a_cold_run_keeps_its_place_and_its_files(kind: str, tmp_path: Path) -> None:
    need_loops()
    target = make(kind, tmp_path / "scratch", cache="cold")
    assert target.cold()
    assert not make(kind, tmp_path / "scratch").cold()
    try:
        target.open(1 << 20)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
        if place.kind == "directory":
            (Path(place.path) / "file").write_bytes(b"x" * (1 << 20))
        target.chill()
        if place.kind == "directory":
            assert (Path(place.path) / "file").read_bytes() == b"x" * (1 << 20)
        target.end("0001-aa")
    finally:
        target.close()


def test_observations_are_plain_numbers(kind: str, tmp_path: Path) -> None:
    target = make(kind, tmp_path / "scratch", **({"space": True} if kind == "directory" else {}))
    try:
        target.open(1 << 20)
        place = target.begin(RunContext("0001-aa", "cell", 1, 1 << 20))
        if place.kind == "directory":
            path = Path(place.path) / "file"
            path.write_bytes(b"x" * (1 << 20))
            with path.open("r+b") as file:
                file.truncate(3 << 20)  # the rest is a hole
        seen = dict(target.observe())
        assert all(isinstance(value, str | int | float) for value in seen.values())
        if place.kind == "directory":
            assert seen["apparent_bytes"] == 3 << 20
            assert seen["written_bytes"] == 1 << 20
            assert 0 < seen["fill"] < 1
            assert seen["taken_bytes"] == pytest.approx(1 << 20, rel=0.1)
        target.end("0001-aa")
    finally:
        target.close()
