# SPDX-License-Identifier: Apache-2.0
"""Files in directories that other users may own: read with a bound and without waiting, replaced
atomically, never written through a link.

Failures are an OSError with the reason in `strerror`.
"""

from __future__ import annotations

import ctypes
import errno
import io
import mmap
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DOCUMENT = 64 << 20
"""Bytes that a file which iolab itself writes about others may have: manifests, plans, journals."""
EVIDENCE = 1 << 30
"""Bytes that a file of a run may have: it is read whole."""


class RefusedFileError(OSError):
    """The path exists but is not opened, whatever its permissions: it is not a regular file, it is
    too large, or it is another user's link."""


_SAFE = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def read_regular(path: Path, *, limit: int = DOCUMENT) -> bytes:
    """The content of a regular file of at most `limit` bytes, opened as `open_for_reading` does.
    Raises OSError."""
    descriptor = open_for_reading(path)
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise _too_large(path, limit)
        parts = [os.read(descriptor, size + 1)]
        total = len(parts[0])
        # files of /proc have no size, and one that is written right now has more than it had
        while parts[-1] and total <= limit:
            parts.append(os.read(descriptor, 1 << 16 if total >= size else size - total + 1))
            total += len(parts[-1])
    finally:
        os.close(descriptor)
    if total > limit:
        raise _too_large(path, limit)
    return parts[0] if len(parts) < 3 else b"".join(parts)


def open_regular(path: Path) -> io.BufferedReader:
    """A regular file opened for reading as `open_for_reading` does. Raises OSError."""
    return os.fdopen(open_for_reading(path), "rb")


def map_regular(path: Path, *, limit: int | None = None) -> memoryview:
    """The content of a regular file of at most `limit` bytes, opened as `open_for_reading` does and
    mapped rather than read. Raises OSError."""
    descriptor = open_for_reading(path)
    try:
        size = os.fstat(descriptor).st_size
        if limit is not None and size > limit:
            raise _too_large(path, limit)
        if not size:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ))
    finally:
        os.close(descriptor)


def refusal(path: Path, *, limit: int = EVIDENCE) -> str:
    """Why a file of at most `limit` bytes is refused, as a phrase such as "is a FIFO, not a regular
    file"; empty where it is opened, missing, or not permitted."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > limit:
                raise _too_large(path, limit)
    except RefusedFileError as error:
        return error.strerror or str(error)
    except OSError:
        return ""
    return ""


def open_for_reading(path: Path) -> int:
    """A descriptor of a regular file. A FIFO, device or socket is refused, and nothing waits for
    its other end: RefusedFileError, an OSError.

    A symbolic link anywhere in the path is followed where root or this user made it, or where the
    file that was opened belongs to who made the link: else it may lead to what its maker could not
    read. The owner is that of the opened file, so that an exchange meanwhile changes nothing.
    Raises OSError.
    """
    try:
        return _regular(path, _open(path, os.O_RDONLY | _SAFE))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise RefusedFileError(
                errno.EINVAL, "is a socket, not a regular file", str(path)
            ) from None
        raise


def open_for_writing(path: Path, flags: int, *, mode: int = 0o666) -> int:
    """A descriptor of a regular file that is opened for writing or made, for `flags` such as
    `O_APPEND | O_CREAT`, in a folder opened as `open_folder` does.

    Never through a symbolic link of that name, nor to a file that has a second name elsewhere
    (link(2)): either may be another's. Raises OSError.
    """
    folder = open_folder(path.parent)
    try:
        descriptor = os.open(
            path.name, flags & ~os.O_TRUNC | _SAFE | os.O_NOFOLLOW, mode, dir_fd=folder
        )
    except OSError as error:
        error.filename = str(path)
        if error.errno == errno.ELOOP:
            raise OSError(
                errno.ELOOP, "is a symbolic link, through which nothing is written", str(path)
            ) from None
        if error.errno == errno.ENXIO:
            raise OSError(
                errno.EINVAL, "is a FIFO or a socket, not a regular file", str(path)
            ) from None
        raise
    finally:
        os.close(folder)
    try:
        if os.fstat(_regular(path, descriptor)).st_nlink > 1:
            raise OSError(
                errno.EMLINK,
                "has a second name elsewhere (a hard link): nothing is written there",
                str(path),
            )
        if flags & os.O_TRUNC:  # not before: the content of a refused file stays
            os.ftruncate(descriptor, 0)
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise
    return descriptor


def open_folder(path: Path) -> int:
    """A descriptor of a directory, to be used as `dir_fd`. Links are followed as
    `open_for_reading` does: RefusedFileError where another user's link leads to a directory that
    is not theirs. Raises OSError."""
    return _open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Make a directory and its parents where they are missing; `mode` is that of the last. Never
    below another user's link to a directory that is not theirs. Raises OSError."""
    try:
        os.close(open_folder(path))
        return
    except FileNotFoundError:
        if path == path.parent:
            raise
    make_folders(path.parent)
    folder = open_folder(path.parent)
    try:
        with suppress(FileExistsError):
            os.mkdir(path.name, mode, dir_fd=folder)
    finally:
        os.close(folder)
    os.close(open_folder(path))  # what was there is a directory


def remove(path: Path) -> None:
    """Remove a file, if it is there, from a folder opened as `open_folder` does. Raises OSError."""
    try:
        folder = open_folder(path.parent)
    except FileNotFoundError:
        return
    try:
        with suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
    finally:
        os.close(folder)


def remove_tree(path: Path) -> None:
    """Remove a directory and everything below it, following no link, from a folder opened as
    `open_folder` does. Raises OSError."""
    folder = open_folder(path.parent)
    try:
        shutil.rmtree(path.name, dir_fd=folder)
    finally:
        os.close(folder)


def move(source: Path, target: Path) -> None:
    """Rename a file or directory between folders opened as `open_folder` does. Raises OSError."""
    before = open_folder(source.parent)
    try:
        after = open_folder(target.parent)
        try:
            os.rename(source.name, target.name, src_dir_fd=before, dst_dir_fd=after)
        finally:
            os.close(after)
    finally:
        os.close(before)


def folders_in(path: Path) -> list[Path]:
    """Directories of a directory by name, links to directories too. Empty where there is none;
    RefusedFileError where it or one of them is another user's link to a directory that is not
    theirs. Raises OSError."""
    try:
        folder = open_folder(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        with os.scandir(folder) as entries:
            names = [(entry.name, entry.is_symlink()) for entry in entries if entry.is_dir()]
    finally:
        os.close(folder)
    for name, is_link in names:
        if is_link:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.close(open_folder(path / name))
    return sorted(path / name for name, _ in names)


@contextmanager
def replacing(path: Path, *, durable: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of a new empty file, which replaces `path` when the block ends without an
    exception, and is deleted otherwise.

    The file has a new random name in the opened directory. The path is that of the open file (below
    /proc/self/fd), so that other users of the directory cannot replace it by a link. `durable`:
    wait for the disk. Raises OSError.
    """
    folder = open_folder(path.parent)
    temporary = f".{path.name}.{os.urandom(8).hex()}.tmp"
    try:
        descriptor = os.open(
            temporary,
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            mode,
            dir_fd=folder,
        )
        try:
            yield Path(f"/proc/self/fd/{descriptor}")
            if durable:
                os.fsync(descriptor)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException as error:
            if isinstance(error, OSError) and str(error.filename or "/proc/").startswith("/proc/"):
                error.filename = str(path)  # a full disk names the file that was meant
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)
        if durable:
            os.fsync(folder)
    finally:
        os.close(folder)


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace a file by a finished one, or leave it as it was. `durable`: wait for the disk. Raises
    OSError."""
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def is_foreign(directory: Path) -> bool:
    """Whether a directory belongs to another user: it is read then, and nothing is written there
    unasked."""
    try:
        return directory.stat().st_uid != os.geteuid()
    except OSError:
        return False


def _regular(path: Path, descriptor: int) -> int:
    """The descriptor; OSError, and it is closed, where it is of no regular file."""
    try:
        _check_regular(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class _OpenHow(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_OPENAT2, _AT_FDCWD, _NO_SYMLINKS = 437, -100, 0x04
_LINKS = 40
"""Symbolic links that a path may have, as in path_resolution(7)."""
_libc = ctypes.CDLL(None, use_errno=True)
_PROC = os.stat("/proc").st_dev if os.path.isdir("/proc") else None  # noqa: PTH112, PTH116


def _open(path: Path, flags: int) -> int:
    """A descriptor of what a path leads to: by one call where no symbolic link is in it, else one
    component at a time."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    sys.audit("open", str(path), None, flags)  # as os.open does
    how = _OpenHow(flags, 0, _NO_SYMLINKS)
    descriptor: int = _libc.syscall(
        ctypes.c_long(_OPENAT2),
        ctypes.c_long(_AT_FDCWD),
        ctypes.c_char_p(name),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if descriptor >= 0:
        return descriptor
    number = ctypes.get_errno()
    # before Linux 5.6, and where a container's filter does not know the call
    if number in (errno.ELOOP, errno.ENOSYS, errno.EPERM, errno.EINTR):
        return _open_by_components(path, flags)
    raise OSError(number, os.strerror(number), str(path))


def _open_by_components(path: Path, flags: int) -> int:
    """As `_open`, each component opened in the descriptor of the one before."""
    trusted, makers, links = {0, os.geteuid()}, set[int](), 0
    pending = [part for part in reversed(str(path).split("/")) if part] or ["."]
    parent = os.open("/" if path.is_absolute() else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while pending:
            name = pending.pop()
            child = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                status = os.fstat(child)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    if links > _LINKS:
                        raise RefusedFileError(errno.ELOOP, "is a symbolic link to itself")
                    makers |= {status.st_uid} - trusted
                    if status.st_dev != _PROC:
                        target = os.readlink("", dir_fd=child)
                        pending += [part for part in reversed(target.split("/")) if part]
                        if target.startswith("/"):
                            parent = _exchange(parent, os.open("/", os.O_PATH | os.O_CLOEXEC))
                        if not pending:
                            pending = ["."]
                        continue
                    # links of proc(5) are no text, and nobody can exchange them
                    if pending:
                        parent = _exchange(parent, os.open(name, os.O_PATH | _SAFE, dir_fd=parent))
                        continue
                    follow = 0
                elif pending:
                    parent, child = child, parent
                    continue
                else:
                    follow = os.O_NOFOLLOW
                try:
                    parent = _exchange(parent, os.open(name, flags | follow, dir_fd=parent))
                except OSError:
                    # exchanged by a link since it was looked at
                    if not stat.S_ISLNK(os.lstat(name, dir_fd=parent).st_mode) or links >= _LINKS:
                        raise
                    links += 1
                    pending.append(name)
            finally:
                os.close(child)
        if makers - {os.fstat(parent).st_uid}:
            raise RefusedFileError(
                errno.EPERM, "is another user's link to a file that is not theirs"
            )
    except OSError as error:
        os.close(parent)
        error.filename = str(path)
        raise
    return parent


def _exchange(before: int, after: int) -> int:
    os.close(before)
    return after


def _check_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
    raise RefusedFileError(
        errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL,
        f"is {kind}, not a regular file",
        str(path),
    )


def _too_large(path: Path, limit: int) -> OSError:
    return RefusedFileError(errno.EFBIG, f"is larger than {limit >> 20} MiB", str(path))
