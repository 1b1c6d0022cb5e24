# SPDX-License-Identifier: Apache-2.0
"""Links that another user exchanges between any two steps of opening: root reads nothing that they
could not, and writes nothing elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from iolab.base import files
from iolab.base.errors import IolabError, ResultsError
from iolab.base.files import (
    folders_in,
    make_folders,
    move,
    open_for_writing,
    read_regular,
    remove,
    remove_tree,
    write_atomically,
)
from iolab.output.server.base.json_store import JsonStore
from iolab.output.server.base.worksheet import Worksheet
from iolab.recordings.store.base.layout import is_recording
from iolab.recordings.store.write.writer import RecordingWriter
from iolab.studies.results.evidence.files import run_directories
from support.mutations import answers
from support.recordings import events

USER = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's files")


def link(place: Path, target: Path, owner: int = USER) -> None:
    """Put a link in place of what is there."""
    fresh = place.with_name("fresh")
    fresh.symlink_to(target)
    os.chown(fresh, owner, owner, follow_symlinks=False)
    fresh.rename(place)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A directory that only root can read, with a file."""
    folder = tmp_path / "root-only"
    folder.mkdir(mode=0o700)
    (folder / "file").write_bytes(b"secret")
    return folder


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Another user's directory, with a file of theirs."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "file").write_bytes(b"theirs")
    for path in (folder, folder / "file"):
        os.chown(path, USER, USER)
    return folder


@contextmanager
def exchanging(at: int, exchange: Callable[[], None]) -> Iterator[list[int]]:
    """Call `exchange` before the call number `at` of the system that looks at a path."""
    calls = [0]
    patch = pytest.MonkeyPatch()

    def hooked(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            calls[0] += 1
            if calls[0] == at:
                patch.undo()
                exchange()
            return function(*arguments, **named)

        return call

    for name in ("open", "stat", "lstat", "readlink"):
        patch.setattr(os, name, hooked(getattr(os, name)))
    try:
        yield calls
    finally:
        patch.undo()


@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("before", ["link", "regular"])
def test_no_exchange_between_two_steps_shows_a_file_of_root(
    before: str, is_folder: bool, secret: Path, theirs: Path
) -> None:
    place = theirs / "place"
    path = place / "file" if is_folder else place

    def begin() -> None:
        if place.is_dir() and not place.is_symlink():
            (place / "file").unlink()
            place.rmdir()
        else:
            place.unlink(missing_ok=True)
        if before == "link":
            link(place, theirs if is_folder else theirs / "file")
        elif is_folder:
            place.mkdir()
            (place / "file").write_bytes(b"theirs")
        else:
            place.write_bytes(b"theirs")

    def exchange() -> None:
        if place.is_dir() and not place.is_symlink():
            (place / "file").unlink()
            place.rmdir()
        link(place, secret if is_folder else secret / "file")

    seen = []
    for at in range(1, 40):
        begin()
        with exchanging(at, exchange) as calls, suppress(OSError):
            seen.append(read_regular(path))
        if calls[0] < at:
            break
    else:
        pytest.fail("every step was followed by another one")
    assert set(seen) == {b"theirs"}


def test_a_process_that_exchanges_links_gets_no_file_of_root(secret: Path, theirs: Path) -> None:
    place = theirs / "place"
    link(place, theirs)
    racer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os,sys\n"
            "place, *targets = sys.argv[1:]\n"
            "for number in range(20000):\n"
            "    os.symlink(targets[number % 2], place + '.new')\n"
            f"    os.chown(place + '.new', {USER}, {USER}, follow_symlinks=False)\n"
            "    os.rename(place + '.new', place)\n",
            str(place),
            str(secret),
            str(theirs),
        ]
    )
    seen: set[bytes] = set()
    refused = 0
    try:
        while racer.poll() is None:
            try:
                seen.add(read_regular(place / "file"))
            except OSError:
                refused += 1
            with suppress(OSError):
                write_atomically(place / "written", b"", durable=False)
    finally:
        racer.kill()
        racer.wait()
    assert seen <= {b"theirs"}
    assert refused or seen
    assert [path.name for path in secret.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "write",
    [
        lambda place: open_for_writing(place / "file", os.O_WRONLY | os.O_TRUNC),
        lambda place: open_for_writing(place / "new", os.O_WRONLY | os.O_CREAT),
        lambda place: write_atomically(place / "file", "x"),
        lambda place: make_folders(place / "a/b"),
        lambda place: remove(place / "file"),
        lambda place: remove_tree(place),
        lambda place: move(place / "file", place / "other"),
        folders_in,
    ],
    ids=["truncate", "make", "replace", "folders", "remove", "tree", "move", "list"],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["openat2", "by-components"])
def test_nothing_is_changed_through_another_users_link_of_a_directory(
    write: Callable[[Path], object],
    is_known: bool,
    secret: Path,
    theirs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_known:
        monkeypatch.setattr(files, "_open", files._open_by_components)
    (secret / "inside").mkdir()
    link(theirs / "place", secret)
    with pytest.raises(OSError):
        write(theirs / "place")
    assert sorted(path.name for path in secret.iterdir()) == ["file", "inside"]
    assert (secret / "file").read_bytes() == b"secret"


@pytest.mark.parametrize("is_known", [True, False], ids=["openat2", "by-components"])
def test_links_that_are_followed(
    is_known: bool, secret: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_known:
        monkeypatch.setattr(files, "_open", files._open_by_components)
    link(theirs / "own", secret, owner=0)
    assert read_regular(theirs / "own/file") == b"secret"
    link(theirs / "theirs", theirs)
    assert read_regular(theirs / "theirs/file") == b"theirs"
    write_atomically(theirs / "theirs/new", "x")
    assert (theirs / "new").read_bytes() == b"x"
    (theirs / "relative").symlink_to("../theirs/./own/../root-only/file")
    assert read_regular(theirs / "relative") == b"secret"
    monkeypatch.chdir(theirs)
    assert read_regular(Path("file")) == b"theirs"
    with Path("file").open("rb") as file:
        assert read_regular(Path(f"/proc/self/fd/{file.fileno()}")) == b"theirs"
    number = os.open(theirs, os.O_PATH)
    assert read_regular(Path(f"/proc/self/fd/{number}/file")) == b"theirs"
    os.close(number)
    Path("loop").symlink_to("loop")
    for path in (Path("loop"), Path("loop/file")):
        with pytest.raises(OSError, match="symbolic link"):
            read_regular(path)
    with pytest.raises(FileNotFoundError):
        read_regular(Path("absent/file"))
    with pytest.raises(NotADirectoryError):
        read_regular(Path("file/file"))


def test_no_descriptor_stays_open(secret: Path, theirs: Path) -> None:
    link(theirs / "place", secret)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("place/file", "absent", "file/x", "file"):
        for action in (read_regular, remove_tree, folders_in, make_folders, remove):
            if action is not remove or path != "file":
                with suppress(OSError):
                    action(theirs / path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_runs_below_another_users_link_are_not_listed(secret: Path, theirs: Path) -> None:
    (secret / "0001-aaaaaaaa").mkdir()
    link(theirs / "runs", secret)
    with pytest.raises(ResultsError, match="another user's link"):
        list(run_directories(theirs))


def recording(path: Path) -> Path:
    with RecordingWriter.create(path, host="", clock="trace", origin={"kind": "import"}) as writer:
        writer.append_events(events(100))
    return path


@pytest.mark.parametrize("name", ["events", "histograms"])
def test_folders_of_a_recording_that_lead_to_a_private_one(
    name: str, secret: Path, theirs: Path
) -> None:
    private = recording(secret / "private")
    path = recording(theirs / "shown")
    for place in (path, *path.rglob("*")):
        os.chown(place, USER, USER)
    before = answers(path)
    assert before[0][0] == 0
    (path / name).rename(path / "before")
    link(path / name, private / name)
    after = answers(path)
    assert after != before
    assert "another user's link" in str(after)


def test_a_recorder_as_root_writes_through_no_exchanged_directory(
    secret: Path, theirs: Path
) -> None:
    writer = RecordingWriter.create(
        theirs / "rec", host="", clock="trace", origin={"kind": "import"}
    )
    writer.append_events(events(100))
    (theirs / "rec").rename(theirs / "aside")
    link(theirs / "rec", secret)
    with suppress(IolabError):
        writer.append_events(events(100))
    with suppress(IolabError):
        writer.close()
    assert [path.name for path in secret.iterdir()] == ["file"]
    assert is_recording(theirs / "aside")


def test_a_worksheet_is_saved_through_no_linked_directory(secret: Path, tmp_path: Path) -> None:
    (tmp_path / "worksheets").symlink_to(secret)
    shelf = JsonStore(tmp_path / "worksheets", Worksheet, "worksheet")
    document = Worksheet.model_construct(name="a")  # type: ignore[call-arg]
    with pytest.raises(IolabError, match="symbolic link"):
        shelf.write("a", document)
    assert [path.name for path in secret.iterdir()] == ["file"]
