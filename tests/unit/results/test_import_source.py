# SPDX-License-Identifier: Apache-2.0
"""Where imports read from: archives and trees of anyone, within bounds; whatever is left out is
counted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import threading
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from iolab.base.errors import FormatError, IolabError, UsageError
from iolab.studies.results.evidence.manifest import read_manifest
from iolab.studies.results.imports import source as import_source
from iolab.studies.results.imports.tree import import_tree
from iolab.studies.results.open.results import Results
from support.fio_files import job, output

RESULT = output(job(jobs=1), rw="write").encode()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two variants."""
    for number, variant in enumerate(("old", "new")):
        place = tmp_path / "tree" / variant
        place.mkdir(parents=True)
        (place / "fio.json").write_text(output(job(jobs=1, iops=1000.0 + number), rw="write"))
    return tmp_path / "tree"


def _tar(place: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(place, "w") as archive:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return place


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize("top", ["", "study/", "a/b/"])
def test_zip_is_read_as_tar_is(tree: Path, tmp_path: Path, top: str) -> None:
    with zipfile.ZipFile(tmp_path / "tree.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(tree.rglob("*")):
            archive.write(path, f"{top}{path.relative_to(tree)}")
    import_tree(tmp_path / "tree.zip", None, tmp_path / "out")
    assert sorted(run.variant for run in Results(tmp_path / "out").runs) == ["new", "old"]
    assert (tmp_path / "out" / "runs").is_dir()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("opener", "ending"), [(gzip.open, "gz"), (bz2.open, "bz2"), (lzma.open, "xz")]
)
def test_a_compressed_file_is_read(tmp_path: Path, opener: object, ending: str) -> None:
    with opener(tmp_path / f"fio.json.{ending}", "wb") as file:  # type: ignore[operator]
        file.write(RESULT)
    assert import_tree(tmp_path / f"fio.json.{ending}", None, tmp_path / "out").runs == 1


def test_members_that_are_no_regular_files_are_skipped_and_counted(tmp_path: Path) -> None:
    archive = _tar(
        tmp_path / "odd.tar",
        (_member("a/fio.json"), RESULT),
        (_member("b/fio.json", tarfile.LNKTYPE, "a/fio.json"), b""),
        (_member("c/fio.json", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (_member("c/pipe", tarfile.FIFOTYPE), b""),
        (_member("c/disk", tarfile.BLKTYPE), b""),
        (_member("/etc/fio.json"), RESULT),
        (_member("../up.json"), RESULT),
        (_member("a/fio.json"), b"again"),
        (_member("a/fio.json/below"), b"x"),
    )
    found = import_tree(archive, "{variant}", tmp_path / "out")
    assert {reason: len(paths) for reason, paths in found.skipped.items()} == {
        "links": 1,
        "devices, FIFOs and the like": 2,
        "names outside of the archive": 2,
        "members that come twice": 1,
        "names that clash": 1,
    }
    assert sorted(run.variant for run in Results(tmp_path / "out").runs) == ["a", "b"]
    assert not (tmp_path.parent / "up.json").exists()


def test_sparse_members_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "fio.json").write_bytes(RESULT)
    with (tmp_path / "tree" / "huge.img").open("wb") as file:
        file.truncate(1 << 40)
    found = import_tree(tmp_path / "tree", None, tmp_path / "out")
    assert found.skipped == {"sparse files": ["huge.img"]}


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_archive_that_grows_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(import_source, "RATIO_FROM", 1 << 20)
    monkeypatch.setattr(import_source, "MAX_RATIO", 500)
    place = tmp_path / f"bomb.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("fio.json", b" " * (8 << 20))
    else:
        with tarfile.open(place, "w:gz") as tar:
            member = tarfile.TarInfo("fio.json")
            member.size = 8 << 20
            tar.addfile(member, io.BytesIO(b" " * (8 << 20)))
    with pytest.raises(FormatError, match="no archive of results does"):
        import_tree(place, None, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [place.name]


def test_an_archive_beyond_its_size_or_number_of_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _tar(
        tmp_path / "tree.tar",
        (_member("a/fio.json"), RESULT),
        (_member("b/fio.json"), RESULT + b" "),
    )
    with pytest.raises(FormatError, match="--max-size allows more"):
        import_tree(archive, None, tmp_path / "out", max_bytes=len(RESULT) + 10)
    monkeypatch.setattr(import_source, "MAX_MEMBERS", 1)
    with pytest.raises(FormatError, match="more than 1 members"):
        import_tree(archive, None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _archive(place: Path, members: dict[str, bytes]) -> Path:
    """A tar, compressed tar or zip archive, by the ending of its name."""
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
        return place
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz" if place.suffix == ".gz" else "w") as archive:
        for name, content in members.items():
            member = _member(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    place.write_bytes(packed.getvalue())
    return place


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the members that are unpacked."""
    names: list[str] = []
    write = import_source._Unpacking._write

    def noted(self: import_source._Unpacking, path: PurePosixPath, *rest: Any) -> None:
        names.append(str(path))
        write(self, path, *rest)

    monkeypatch.setattr(import_source._Unpacking, "_write", noted)
    return names


@pytest.mark.parametrize("name", ["tree.tar", "tree.tar.gz", "tree.zip"])
def test_a_member_that_no_reader_takes_is_skipped_by_its_declared_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[str], name: str
) -> None:
    monkeypatch.setattr(import_source, "MAX_FILE", 1 << 16)
    members = {"a/fio.json": RESULT, "b/fio.json": bytes(3 << 16), "c/fio.json": RESULT}
    imported = import_tree(_archive(tmp_path / name, members), None, tmp_path / "out")
    assert (imported.runs, imported.skipped) == (2, {"files larger than 64 KiB": ["b/fio.json"]})
    assert written == ["a/fio.json", "c/fio.json"]


@pytest.mark.parametrize("name", ["tree.tar", "tree.tar.gz", "tree.zip"])
def test_an_archive_is_refused_by_the_declared_size_of_a_member(
    tmp_path: Path, written: list[str], name: str
) -> None:
    members = {"a/fio.json": RESULT, "b/fio.json": bytes(1 << 20)}
    with pytest.raises(FormatError, match="--max-size allows more"):
        import_tree(_archive(tmp_path / name, members), None, tmp_path / "out", max_bytes=1 << 20)
    assert written == ["a/fio.json"]


@pytest.mark.parametrize("size", [10, 1 << 30])
def test_a_zip_whose_headers_have_a_wrong_size_is_refused(tmp_path: Path, size: int) -> None:
    place = _archive(tmp_path / "tree.zip", {"a/fio.json": RESULT})
    data = bytearray(place.read_bytes())
    for magic, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        at = data.index(magic) + offset
        data[at : at + 4] = size.to_bytes(4, "little")
    place.write_bytes(data)
    with pytest.raises(FormatError, match=r"damaged|no archive of results does"):
        import_tree(place, None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_compressed_file_without_a_declared_size_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_source, "MAX_FILE", 1 << 16)
    with gzip.open(tmp_path / "fio.json.gz", "wb") as file:
        file.write(RESULT + b" " * (1 << 16))
    with pytest.raises(FormatError, match="larger than 64 KiB"):
        import_tree(tmp_path / "fio.json.gz", None, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fio.json.gz"]


def _damaged() -> list[tuple[str, bytes]]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = _member("b/fio.json")
        member.size = len(RESULT)
        archive.addfile(member, io.BytesIO(RESULT))
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as zip_archive:
        zip_archive.writestr("a/fio.json", RESULT)
    whole, whole_zip = packed.getvalue(), zipped.getvalue()
    flipped = bytearray(whole_zip)
    flipped[60] ^= 0xFF
    return [
        ("cut.tar.gz", whole[: len(whole) // 2]),
        ("cut.zip", whole_zip[:-30]),
        ("flipped.zip", bytes(flipped)),
        ("empty.tar", bytes(10240)),
        ("empty.zip", b"PK\5\6" + bytes(18)),
        ("head.gz", whole[:12]),
        ("magic.xz", b"\xfd7zXZ\0" + bytes(20)),
        ("magic.bz2", b"BZh9" + bytes(9)),
        ("zeros.bin", bytes(4096)),
        ("noise.tar", os.urandom(4096)),
        ("text.tar.gz", b"hello\n"),
        ("nothing.zip", b""),
    ]


@pytest.mark.parametrize(
    ("name", "content"), _damaged(), ids=lambda each: each if isinstance(each, str) else ""
)
def test_odd_archives_are_one_error_each(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IolabError, match=name):
        import_tree(tmp_path / name, None, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_an_encrypted_member_is_skipped(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/fio.json", RESULT)
        archive.writestr("b/fio.json", RESULT)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    at = data.rindex(b"PK\1\2")
    data[at + 8] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    assert import_tree(tmp_path / "x.zip", None, tmp_path / "out").skipped == {
        "encrypted files": ["b/fio.json"]
    }


def test_a_tree_with_fifos_links_and_loops(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(RESULT)
    os.mkfifo(tree / "old" / "fio-pipe.json")
    (tree / "loop").symlink_to(tree)
    (tree / "self").symlink_to("self")
    (tree / "out.json").symlink_to(tmp_path / "secret.json")
    (tree / "gone.json").symlink_to("nowhere")
    (tree / "inside.json").symlink_to("new/fio.json")
    done = threading.Event()
    found = []

    def run() -> None:
        found.append(import_tree(tree, "{variant}", tmp_path / "results"))
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert done.wait(30), "the import waits for a FIFO"
    assert {reason: sorted(paths) for reason, paths in found[0].skipped.items()} == {
        "devices, FIFOs and the like": ["old/fio-pipe.json"],
        "links to folders": ["loop"],
        "links to nothing": ["gone.json", "self"],
        "links out of the tree": ["out.json"],
    }
    assert sorted(run.variant for run in Results(tmp_path / "results").runs) == [
        "inside.json",
        "new",
        "old",
    ]


def test_names_that_are_no_text_are_kept_and_can_be_written(tmp_path: Path) -> None:
    for number, variant in enumerate((b"caf\xe9", b"th\xff\xfe")):
        place = tmp_path / "tree" / os.fsdecode(variant)
        place.mkdir(parents=True)
        (place / os.fsdecode(b"fio-\xe9.json")).write_text(
            output(job(jobs=1, iops=1000.0 + number), rw="write")
        )
        (place / os.fsdecode(b"note\xff.txt")).write_text("x")
    with tarfile.open(tmp_path / "tree.tar", "w") as archive:
        archive.add(tmp_path / "tree", "tree")
    for source in (tmp_path / "tree", tmp_path / "tree.tar"):
        output_ = tmp_path / f"out-{source.name}"
        found = import_tree(source, None, output_)
        results = Results(output_)
        assert [run.variant for run in results.runs] == ["caf\\udce9", "th\\udcff\\udcfe"]
        assert found.runs == 2
        assert results.observations().num_rows > 10
        assert read_manifest(output_).variants == ["caf\\udce9", "th\\udcff\\udcfe"]
        assert {len(list(run.evidence.iterdir())) for run in results.runs} == {3}


def test_a_file_that_claims_to_be_empty_and_never_ends_is_empty(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "fio.json").write_bytes(RESULT)
    endless = import_source.SourceFile("x.log", Path("/proc/self/environ"), 0)
    import_source.put_file(endless, tmp_path / "copy", "copy")
    assert (tmp_path / "copy").read_bytes() == b""


@pytest.mark.parametrize("place", ["/dev/null", "/dev/zero"])
def test_a_device_is_no_source(tmp_path: Path, place: str) -> None:
    assert stat.S_ISCHR(Path(place).stat().st_mode)
    with pytest.raises(UsageError, match="neither a directory nor a regular file"):
        import_tree(Path(place), None, tmp_path / "out")
