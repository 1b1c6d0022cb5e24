# SPDX-License-Identifier: Apache-2.0
"""Files in directories that other users may own: read with a bound and without waiting, replaced
atomically, never written through a link.

Failures are an OSError with the reason in `strerror`.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
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

    A symbolic link is followed where it is this user's own, or where the file belongs to who made
    the link: else it may lead to what its maker could not read. Raises OSError.
    """
    try:
        return _regular(path, os.open(path, os.O_RDONLY | _SAFE | os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise RefusedFileError(
                errno.EINVAL, "is a socket, not a regular file", str(path)
            ) from None
        if error.errno != errno.ELOOP:
            raise
    maker, status = path.lstat().st_uid, _target_of(path)
    _check_regular(path, status)
    if maker not in (os.geteuid(), status.st_uid):
        raise RefusedFileError(
            errno.EPERM, "is another user's link to a file that is not theirs", str(path)
        )
    return _regular(path, os.open(path, os.O_RDONLY | _SAFE))


def open_for_writing(path: Path, flags: int, *, mode: int = 0o666) -> int:
    """A descriptor of a regular file that is opened for writing or made, for `flags` such as
    `O_APPEND | O_CREAT`.

    Never through a symbolic link, nor to a file that has a second name elsewhere (link(2)): either
    may be another's. Raises OSError.
    """
    try:
        descriptor = os.open(path, flags | _SAFE | os.O_NOFOLLOW, mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(
                errno.ELOOP, "is a symbolic link, through which nothing is written", str(path)
            ) from None
        if error.errno == errno.ENXIO:
            raise OSError(
                errno.EINVAL, "is a FIFO or a socket, not a regular file", str(path)
            ) from None
        raise
    if os.fstat(_regular(path, descriptor)).st_nlink > 1:
        os.close(descriptor)
        raise OSError(
            errno.EMLINK,
            "has a second name elsewhere (a hard link): nothing is written there",
            str(path),
        )
    return descriptor


@contextmanager
def replacing(path: Path, *, durable: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of a new empty file, which replaces `path` when the block ends without an
    exception, and is deleted otherwise.

    The file has a new random name in the opened directory. The path is that of the open file (below
    /proc/self/fd), so that other users of the directory cannot replace it by a link. `durable`:
    wait for the disk. Raises OSError.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
        except BaseException:
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


def _target_of(link: Path) -> os.stat_result:
    try:
        return link.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedFileError(errno.ELOOP, "is a symbolic link to itself", str(link)) from None
        raise


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
