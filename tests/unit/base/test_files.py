# SPDX-License-Identifier: Apache-2.0
"""Files of others: nothing waits for them or reads them without end, and no link leads a write
elsewhere."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from iolab.base.files import (
    DOCUMENT,
    is_foreign,
    open_for_writing,
    read_regular,
    replacing,
    write_atomically,
)


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"", b"x", b"0123456789" * 100_000):
        file.write_bytes(content)
        assert read_regular(file) == content
    assert read_regular(Path("/proc/self/stat")).startswith(str(os.getpid()).encode())


def test_a_file_larger_than_its_bound_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, limit=5) == b"12345"
    with file.open("r+b") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(OSError, match="is larger than 64 MiB"):
        read_regular(file)
    assert DOCUMENT == 64 << 20


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "zero", "null", "loop", "nothing"])
def test_what_is_no_regular_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "it"
    listener = socket.socket(socket.AF_UNIX)
    try:
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "socket":
            listener.bind(str(place))
        elif kind == "directory":
            place.mkdir()
        elif kind in ("zero", "null"):
            place.symlink_to(f"/dev/{kind}")
        elif kind == "loop":
            place.symlink_to(place)
        for attempt in (
            lambda: read_regular(place),
            lambda: open_for_writing(place, os.O_RDWR),
            lambda: open_for_writing(place, os.O_WRONLY),
        ):
            ended: list[OSError] = []

            def go(attempt: object = attempt, ended: list[OSError] = ended) -> None:
                try:
                    attempt()  # type: ignore[operator]
                except OSError as error:
                    ended.append(error)

            thread = threading.Thread(target=go, daemon=True)
            thread.start()
            thread.join(10)
            assert not thread.is_alive(), "it waits"
            assert len(ended) == 1
            assert ended[0].strerror
    finally:
        listener.close()


def test_a_link_is_followed_on_reading_and_never_on_writing(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"kept")
    (tmp_path / "link").symlink_to(target)
    assert read_regular(tmp_path / "link") == b"kept"
    for flags in (
        os.O_RDWR,
        os.O_WRONLY | os.O_APPEND | os.O_CREAT,
        os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    ):
        with pytest.raises(OSError, match="is a symbolic link"):
            open_for_writing(tmp_path / "link", flags)
    (tmp_path / "hard").hardlink_to(target)
    with pytest.raises(OSError, match="a second name elsewhere"):
        open_for_writing(tmp_path / "hard", os.O_RDWR)
    assert target.read_bytes() == b"kept"
    write_atomically(tmp_path / "link", "new")
    assert (
        target.read_bytes(),
        (tmp_path / "link").is_symlink(),
        (tmp_path / "link").read_bytes(),
    ) == (b"kept", False, b"new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_another_users_link_leads_to_their_own_files_only(tmp_path: Path) -> None:
    secret, theirs = tmp_path / "secret", tmp_path / "theirs"
    for file in (secret, theirs):
        file.write_bytes(b"content")
    os.chown(theirs, 12345, 12345)
    for file in (secret, theirs):
        link = tmp_path / f"to-{file.name}"
        link.symlink_to(file)
        os.chown(link, 12345, 12345, follow_symlinks=False)
    assert read_regular(tmp_path / "to-theirs") == b"content"
    with pytest.raises(OSError, match="another user's link"):
        read_regular(tmp_path / "to-secret")
    assert not is_foreign(tmp_path)
    os.chown(tmp_path, 12345, 12345)
    assert is_foreign(tmp_path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "place"
    write_atomically(place, "old")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(place.stat().st_mode) == 0o666 & ~mask

    def half() -> None:
        with replacing(place) as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert [each.name for each in tmp_path.iterdir()] == ["place"]
    assert place.read_bytes() == b"old"


def test_a_temporary_file_that_is_exchanged_meanwhile_takes_nothing_elsewhere(
    tmp_path: Path,
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    with replacing(folder / "place") as temporary:
        [made] = folder.iterdir()
        made.unlink()
        made.symlink_to(victim)
        temporary.write_bytes(b"written")
    assert victim.read_bytes() == b"kept"


def test_names_of_temporary_files_can_not_be_foretold(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        with replacing(tmp_path / "place"):
            names |= {each.name for each in tmp_path.iterdir()} - {"place"}
    assert len(names) == 3
    assert not any(str(os.getpid()) == part for name in names for part in name.split("."))
