# SPDX-License-Identifier: Apache-2.0
"""Commands of a study run only where someone agreed to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import StudyError
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.trust import (
    describe_commands,
    is_trusted,
    remember,
    require_trust,
    trust_file,
)
from support.acting import study_text

HOOK = '[hooks.run]\nbefore = ["sync", "echo 3"]\n'


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def study(tmp_path: Path, extra: str = HOOK) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(study_text(extra=extra), "utf-8")
    return load_study(path)


def test_a_study_without_commands_needs_no_trust(tmp_path: Path) -> None:
    require_trust(study(tmp_path, ""), False)
    assert not trust_file().exists()


def test_commands_need_trust_and_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        require_trust(study(tmp_path), False)
    assert str(caught.value) == (
        f"{tmp_path}/s.toml: runs commands or sets options that need trust: 'sync', 'echo 3'; "
        "read them; then say --trust "
        "(trusted=True from Python)"
    )
    require_trust(study(tmp_path), True)


def test_an_agreed_text_is_remembered_and_a_changed_one_is_not(tmp_path: Path) -> None:
    assert remember(study(tmp_path))
    assert remember(study(tmp_path))
    assert len(trust_file().read_text().split()) == 1
    require_trust(study(tmp_path), False)
    assert not is_trusted(study(tmp_path, HOOK.replace("echo 3", "echo 4")))


def test_a_state_directory_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not remember(study(tmp_path))
    assert not is_trusted(study(tmp_path))


def test_the_state_directory_is_the_users() -> None:
    assert trust_file({"HOME": "/home/ann"}) == Path("/home/ann/.local/state/iolab/trusted")
    assert trust_file({"HOME": "/home/ann", "XDG_STATE_HOME": "relative"}) == Path(
        "/home/ann/.local/state/iolab/trusted"
    )
    assert trust_file({"XDG_STATE_HOME": "/s"}) == Path("/s/iolab/trusted")


def test_what_is_shown_is_what_runs(tmp_path: Path) -> None:
    sly = study(tmp_path, '[hooks.run]\nbefore = "rm x\\u001b[2K\\rsync\\u202e"\n')
    assert describe_commands(sly) == ["hooks.run.before: rm x\\x1b[2K\\rsync\\u202e"]


def test_other_machines_need_trust_unless_the_user_names_them(tmp_path: Path) -> None:
    loads = '[load]\nhosts = ["local", "root@far", "rig:lab"]\n'
    with pytest.raises(StudyError, match="puts load on other hosts: root@far"):
        require_trust(study(tmp_path, loads), False)
    assert describe_commands(study(tmp_path, loads)) == ["hosts: root@far"]
    require_trust(study(tmp_path, '[load]\nhosts = ["local"]\n'), False)
    named = load_study(tmp_path / "s.toml", Changes(load={"hosts": '["root@mine"]'}))
    require_trust(named, False)
    with pytest.raises(StudyError, match="root@server"):
        require_trust(study(tmp_path, '[target]\nhost = "root@server"\n'), False)
    assert remember(study(tmp_path, loads))
    require_trust(study(tmp_path, loads), False)
