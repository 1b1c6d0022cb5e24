# SPDX-License-Identifier: Apache-2.0
"""What an import reads from: a directory, an archive or a single file, as a list of regular files
within bounds.

Whatever else an archive or a tree holds (links out of it, devices, FIFOs, sparse files) is left out
and counted.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from iolab.base.errors import FormatError, UsageError
from iolab.base.files import EVIDENCE
from iolab.base.units import format_quantity
from iolab.base.untrusted_text import writable

MAX_BYTES = 64 << 30
"""Bytes that an archive may have unpacked, by default."""

MAX_RATIO = 2000
"""An archive that grows by more when it is unpacked is no archive of results: text packs to 1/5 up
to 1/100."""

RATIO_FROM = 256 << 20
"""Bytes unpacked below which the ratio doesn't matter."""

MAX_MEMBERS = 1_000_000

MAX_FILE = EVIDENCE
"""Bytes of an archived file above which it is left out: no reader takes a larger one."""

_CHUNK = 1 << 20

_PACKED = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\0", lzma.open), (b"BZh", bz2.open))


@dataclass(frozen=True)
class SourceFile:
    """A regular file: its path below the tree (with `/`), and where its bytes lie."""

    path: str
    place: Path
    size: int


@dataclass
class Source:
    """Files to import.

    Attributes:
        name: of the source, without what names its kind; prefix: folders that were stepped into, in
        which all files lie. files: regular files by path; skipped: why something was left out, to
        the paths. may_move: whether the files are copies made for this import.
    """

    name: str
    files: list[SourceFile] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    prefix: str = ""
    may_move: bool = False

    def skip(self, reason: str, path: str) -> None:
        """Count a path that is left out."""
        self.skipped.setdefault(reason, []).append(path)


@contextmanager
def open_source(
    place: Path, scratch: Path, *, link: bool = False, max_bytes: int = MAX_BYTES
) -> Iterator[Source]:
    """The files of a directory, of a tar or zip archive, of a compressed file, or a single file.

    An archive is unpacked into the directory `scratch`, next to the results, so that files can be
    moved; it is deleted afterwards. A single top folder is entered.

    Raises UsageError if the file does not exist, FormatError if an archive is damaged or too large.
    """
    status = _status(place)
    if stat.S_ISDIR(status.st_mode):
        source = Source(place.name or place.resolve().name)
        walk(place, source)
        yield _stepped_into(source)
        return
    if not stat.S_ISREG(status.st_mode):
        raise UsageError("is neither a directory nor a regular file", where=place)
    kind = _kind(place)
    if kind == "file":
        yield Source(_stem(place.name), [SourceFile(place.name, place, status.st_size)])
        return
    if link:
        raise UsageError("--link needs a directory, not an archive", where=place)
    with tempfile.TemporaryDirectory(prefix=".iolab-import-", dir=scratch) as directory:
        source = Source(_stem(place.name), may_move=True)
        unpacking = _Unpacking(place, Path(directory), source, max_bytes, max(status.st_size, 1))
        try:
            unpacking.unpack(kind)
        except (
            tarfile.TarError,
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
            OverflowError,
        ) as error:
            raise FormatError(
                f"the archive is damaged or can't be read: {error or type(error).__name__}",
                where=place,
            ) from None
        except OSError as error:
            raise FormatError(
                f"can't be unpacked: {error.strerror or error}", where=place
            ) from None
        yield _stepped_into(source)


def is_archive(place: Path) -> bool:
    """Whether a path is a tar or zip archive; UsageError where it can't be read."""
    return place.is_file() and _kind(place) in ("tar", "zip")


def _status(place: Path) -> os.stat_result:
    try:
        return place.stat()
    except FileNotFoundError:
        raise UsageError("no such file or directory", where=place) from None
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", where=place) from None


def _kind(place: Path) -> str:
    """`tar`, `zip`, `packed` (one compressed file) or `file`."""
    try:
        with place.open("rb") as file:
            head = file.read(8)
        if zipfile.is_zipfile(place) and head.startswith((b"PK\3\4", b"PK\5\6", b"PK\7\x08")):
            return "zip"
        if _is_tar(place):
            return "tar"
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", where=place) from None
    return "packed" if any(head.startswith(magic) for magic, _ in _PACKED) else "file"


def _is_tar(place: Path) -> bool:
    try:
        with tarfile.open(place):
            return True
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, ValueError, OverflowError):
        return False
    except OSError as error:  # gzip.BadGzipFile has no errno
        if error.errno is not None:
            raise
        return False


def _open_content(place: Path) -> IO[bytes]:
    """The content of a file, decompressed where it is compressed."""
    with place.open("rb") as file:
        head = file.read(8)
    opener = next((opener for magic, opener in _PACKED if head.startswith(magic)), None)
    return place.open("rb", buffering=0) if opener is None else cast(IO[bytes], opener(place, "rb"))


def _stem(name: str) -> str:
    for suffix in (".gz", ".xz", ".bz2", ".tgz", ".txz", ".tbz2", ".zip", ".tar"):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return name


@dataclass
class _Unpacking:
    """Writes the regular files of an archive below a directory, and stops at the bounds."""

    place: Path
    directory: Path
    source: Source
    max_bytes: int
    packed: int
    unpacked: int = 0
    members: int = 0
    folders: set[str] = field(default_factory=set)

    def unpack(self, kind: str) -> None:
        {"tar": self._tar, "zip": self._zip, "packed": self._packed_file}[kind]()
        self.source.files.sort(key=lambda file: file.path)

    def _tar(self) -> None:
        # one large buffer over the decompressor: tarfile's own reading of 512 bytes at a time costs
        # more than the decompression
        with (
            _open_content(self.place) as raw,
            io.BufferedReader(cast(io.RawIOBase, raw), _CHUNK) as stream,
            tarfile.open(fileobj=stream, mode="r:") as archive,
        ):
            for member in archive:
                self._count()
                path = self._path(member.name)
                if path is None or member.isdir():
                    continue
                if member.issparse():
                    self.source.skip("sparse files", str(path))
                elif member.islnk():
                    self._link(path, member.linkname)
                elif member.isfile():
                    if self._is_admitted(path, member.size):
                        stream.seek(member.offset_data)
                        self._write(path, stream, member.mtime, member.size)
                else:
                    self.source.skip(
                        "links" if member.issym() else "devices, FIFOs and the like", str(path)
                    )

    def _zip(self) -> None:
        with zipfile.ZipFile(self.place) as archive:
            for member in archive.infolist():
                self._count()
                path = self._path(member.filename)
                if path is None or member.is_dir():
                    continue
                mode = member.external_attr >> 16
                if mode and stat.S_IFMT(mode) and not stat.S_ISREG(mode):
                    self.source.skip(
                        "links" if stat.S_ISLNK(mode) else "devices, FIFOs and the like", str(path)
                    )
                elif member.flag_bits & 1:
                    self.source.skip("encrypted files", str(path))
                elif self._is_admitted(path, member.file_size):
                    with archive.open(member) as content:
                        self._write(path, content, _zip_time(member))

    def _packed_file(self) -> None:
        with _open_content(self.place) as content:
            self._write(PurePosixPath(_stem(self.place.name)), content, self.place.stat().st_mtime)

    def _count(self) -> None:
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise FormatError(
                f"holds more than {MAX_MEMBERS} members",
                where=self.place,
                hint="unpack what is needed, and import that",
            )

    def _path(self, name: str) -> PurePosixPath | None:
        """Path of a member below the tree; None for a member that names a place outside."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            self.source.skip("names outside of the archive", name)
            return None
        return path if path.parts else None

    def _is_admitted(self, path: PurePosixPath, size: int) -> bool:
        """Whether a member of this declared size is unpacked; decided before any of it is read.
        Raises FormatError if the archive exceeds its bounds with it."""
        self._check_bounds(self.unpacked + size)
        if size <= MAX_FILE:
            return True
        # a compressed tar is decompressed up to the next member
        self.unpacked += size
        self._skip_large(path)
        return False

    def _skip_large(self, path: PurePosixPath) -> None:
        self.source.skip(f"files larger than {format_quantity(MAX_FILE, 'B', digits=1)}", str(path))

    def _write(
        self, path: PurePosixPath, content: IO[bytes], time: float, size: int | None = None
    ) -> None:
        """Write the next `size` bytes of a stream, or all of it."""
        name = str(path)
        place = Path(f"{self.directory}/{name}")
        folder = name.rpartition("/")[0]
        try:
            if folder not in self.folders:
                place.parent.mkdir(parents=True, exist_ok=True)
                self.folders.add(folder)
        except (FileExistsError, NotADirectoryError):
            self.source.skip("names that clash", name)
            return
        try:
            file = open(place, "xb")  # noqa: PTH123, SIM115 - thousands of files, and Path is slow; closed below
        except FileExistsError:
            self.source.skip(
                "names that clash" if place.is_dir() else "members that come twice", name
            )
            return
        written = 0
        with file:
            while chunk := content.read(_CHUNK if size is None else min(_CHUNK, size - written)):
                written += len(chunk)
                self.unpacked += len(chunk)
                self._check_bounds(self.unpacked)
                if written > MAX_FILE:
                    place.unlink()
                    self._skip_large(path)
                    return
                file.write(chunk)
            if size is not None and written < size:
                raise EOFError("unexpected end of data")
        os.utime(place, (max(time, 0), max(time, 0)))
        self.source.files.append(SourceFile(name, place, written))

    def _link(self, path: PurePosixPath, name: str) -> None:
        """A hard link to a member that came before."""
        target = next(
            (file for file in self.source.files if file.path == PurePosixPath(name).as_posix()),
            None,
        )
        if target is None or (self.directory / path).exists():
            self.source.skip("links", str(path))
            return
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        os.link(target.place, self.directory / path)
        self.source.files.append(SourceFile(path.as_posix(), self.directory / path, target.size))

    def _check_bounds(self, unpacked: int) -> None:
        """Raise FormatError if this many unpacked bytes exceed the size or the ratio."""
        if unpacked > self.max_bytes:
            raise FormatError(
                f"holds more than {self.max_bytes} bytes unpacked",
                where=self.place,
                hint="--max-size allows more",
            )
        if unpacked > RATIO_FROM and unpacked > self.packed * MAX_RATIO:
            raise FormatError(
                f"grows more than {MAX_RATIO} times when it is unpacked: no archive of results does",
                where=self.place,
                hint="unpack it, and import the directory",
            )


def _zip_time(member: zipfile.ZipInfo) -> float:
    import time

    try:
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def walk(tree: Path, source: Source) -> None:
    """Regular files below a directory, links to such files within it included; links to folders
    aren't followed."""
    inside = tree.resolve()
    entry_count = 0
    for folder, folders, names in os.walk(
        tree, onerror=lambda error: source.skip("unreadable folders", str(error.filename))
    ):
        folders.sort()
        relative = Path(folder).relative_to(tree)
        for name in folders:
            if (Path(folder) / name).is_symlink():
                source.skip("links to folders", (relative / name).as_posix())
        for name in sorted(names):
            entry_count += 1
            if entry_count > MAX_MEMBERS:
                raise FormatError(
                    f"holds more than {MAX_MEMBERS} files", where=tree, hint="import a folder of it"
                )
            place = Path(folder, name)
            _take(place, (relative / name).as_posix(), inside, source)


def _take(place: Path, path: str, inside: Path, source: Source) -> None:
    try:
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            target = place.resolve(strict=True)
            if not target.is_relative_to(inside):
                source.skip("links out of the tree", path)
                return
            status = target.stat()
    except (OSError, RuntimeError):
        source.skip("links to nothing", path)
        return
    if not stat.S_ISREG(status.st_mode):
        source.skip("devices, FIFOs and the like", path)
    elif not os.access(place, os.R_OK):
        source.skip("unreadable files", path)
    elif status.st_blocks == 0 and status.st_size > RATIO_FROM:
        source.skip("sparse files", path)
    else:
        source.files.append(SourceFile(path, place, status.st_size))


def _stepped_into(source: Source) -> Source:
    """The same below the top folder, as long as that is all there is."""
    while source.files and all("/" in file.path for file in source.files):
        tops = {file.path.split("/", 1)[0] for file in source.files}
        if len(tops) > 1:
            break
        source.prefix += f"{tops.pop()}/"
        source.files = [
            SourceFile(file.path.split("/", 1)[1], file.place, file.size) for file in source.files
        ]
    return source


def put_file(file: SourceFile, place: Path, how: str) -> None:
    """Bring a file's bytes to `place`: `link` (symbolic), `copy` or `move`. No more than its size
    is read, so that an endless one ends."""
    if how == "link":
        place.symlink_to(file.place.resolve())
    elif how == "move":
        file.place.replace(place)
    else:
        with file.place.open("rb") as original, place.open("xb") as copy:
            _copy(original, copy, file.size)
        status = file.place.stat()
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy(original: IO[bytes], copy: IO[bytes], size: int) -> None:
    while size > 0 and (chunk := original.read(min(size, _CHUNK))):
        size -= len(chunk)
        copy.write(chunk)


def free_name(name: str, taken: set[str]) -> str:
    """A name for a file that UTF-8 can express and that isn't taken yet."""
    name_in_output = writable(name)
    stem, dot, suffix = name_in_output.partition(".")
    number = 1
    while name_in_output in taken or not name_in_output:
        number += 1
        name_in_output = f"{stem}-{number}{dot}{suffix}"
    taken.add(name_in_output)
    return name_in_output
