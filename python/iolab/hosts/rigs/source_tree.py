# SPDX-License-Identifier: Apache-2.0
"""Source trees of builds: a directory, a git revision or a tarball, with patches on top."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iolab.base.errors import RunError, UsageError
from iolab.base.files import write_atomically
from iolab.base.untrusted_text import visible

BUILD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PATCH = r"\.(?:patch|diff)"
_PRODUCTS = (".o", ".ko", ".lo", ".la", ".a", ".so", ".cmd", ".mod", ".order", ".symvers")


@dataclass(frozen=True)
class BuildRequest:
    """What to build.

    Attributes:
        name: of the build. base: a directory, a tarball, or the name of a build of a rig's recipe.
        revision: of git, empty for none. patches: applied in order, with -p1.
    """

    name: str
    base: str
    revision: str = ""
    patches: tuple[Path, ...] = ()

    @property
    def sources(self) -> str:
        """As it is written after `NAME=`."""
        return "+".join(
            [self.base + (f"@{self.revision}" if self.revision else ""), *map(str, self.patches)]
        )


def parse_request(text: str, home: Path | None = None) -> BuildRequest:
    """`NAME=BASE[@REVISION][+PATCH...]`; patches end with .patch or .diff. UsageError where it
    can't be read.

    `home`: where the relative paths of base and patches start; without it a base without a file of
    its name stays as it is.
    """
    name, _, rest = text.partition("=")
    base, *patches = split_sources(rest)
    if not BUILD_NAME.fullmatch(name) or not base:
        raise UsageError(
            f"'{text}' is not a build",
            hint="write NAME=DIRECTORY, NAME=REPOSITORY@REVISION, NAME=TARBALL or "
            "NAME=2.3+fix.patch",
        )
    if home is not None:
        base = str(home / os.path.expanduser(base))  # noqa: PTH111 (pathlib raises for an unknown user)
    directory, at, revision = base.rpartition("@")
    if at and revision and Path(directory).is_dir():
        base = directory
    else:
        revision = ""
    patch_paths = tuple(((home or Path()) / patch).absolute() for patch in patches)
    for patch in patch_paths:
        if not patch.is_file():
            raise UsageError(
                "is not a file", where=patch, hint=f"the build '{name}' names it as a patch"
            )
    return BuildRequest(name, base, revision, patch_paths)


def with_absolute_paths(text: str) -> str:
    """A build, `NAME=SOURCES`, with absolute paths of its base and patches; the name of a build of a
    rig's recipe stays as it is."""
    request = parse_request(text)
    base = Path(request.base)
    if base.exists():
        request = replace(request, base=str(base.absolute()))
    return f"{request.name}={request.sources}"


def split_sources(sources: str) -> list[str]:
    """The base, with its revision, and the patches, of `BASE[@REVISION][+PATCH...]`."""
    return re.split(rf"\+(?=[^+]*{_PATCH}(?:\+|$))", sources)


def fetch_sources(request: BuildRequest, fresh: Path) -> str:
    """Copy a directory, a git revision or a tarball into an empty directory, without patches.

    Returns the git revision, followed by `-modified` for a changed work tree; empty without git.
    Raises UsageError where the base is neither, RunError where it can't be read.
    """
    base = Path(request.base)
    if base.is_dir():
        if request.revision:
            return _archive(base, request.revision, fresh)
        _copy_tree(base, fresh)
        return _work_tree_revision(base)
    if not base.is_file():
        raise UsageError(
            "is neither a directory nor a tarball",
            where=visible(request.base),
            hint=f"the build '{request.name}' has it as its sources",
        )
    _unpack(base, fresh)
    return ""


def apply_patch(patch: Path, tree: Path, text: str | None = None) -> None:
    """Apply a patch with -p1, without fuzz. RunError with the first file on which it fails.

    `text`: the parts of the patch to apply; default: all.
    """
    if text is None:
        text = patch.read_text("utf-8", "surrogateescape")
    if not re.search(r"^\+\+\+ ", text, re.MULTILINE):
        raise RunError(
            "changes no file of these sources", where=patch, hint="patches are applied with -p1"
        )
    options = ("-p1", "--fuzz=0", "--batch", "--forward", "--no-backup-if-mismatch")
    done = subprocess.run(
        ["patch", *options, "-d", str(tree)],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    if done.returncode:
        output = done.stdout + done.stderr
        file, reason = "", output.strip()[-200:]
        for line in output.splitlines():
            if line.startswith("patching file "):
                file = f" to {line.removeprefix('patching file ')}"
            elif re.search("FAILED|can't find|malformed|Reversed|dangerous", line):
                reason = line.strip()
                break
        raise RunError(f"does not apply{visible(file)}: {visible(reason)}", where=patch)


def file_digests(tree: Path) -> dict[str, str]:
    """Name to a digest of the content of each file of a tree; of a symbolic link, of its target."""
    return {
        path.relative_to(tree).as_posix(): hashlib.sha256(
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        ).hexdigest()[:32]
        for path in sorted(tree.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def tree_digest(files: Mapping[str, str]) -> str:
    """The digest of a tree by the digests of its files."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:32]


def explain_failure(error: OSError, where: str) -> RunError:
    """The error if files of a build can't be read, copied or written. where: the build."""
    # the error of copying a tree is a list of (source, target, text)
    text = str(error.args[0][0][2]) if isinstance(error, shutil.Error) else str(error)
    reason = error.strerror or re.sub(r"^\[Errno \d+\] ([^:]*).*$", r"\1", text, flags=re.DOTALL)
    if reason == os.strerror(errno.ENOSPC):
        hint = "make room and run the command again"
        return RunError(f"can't be built: {reason}", where=where, hint=hint)
    file = "" if error.filename is None else f"{visible(os.fsdecode(error.filename))}: "
    return RunError(f"can't be built: {file}{reason}", where=where)


def update_tree(fresh: Path, source: Path, manifest: Path) -> str:
    """Make the files of `source` those of `fresh`, and touch none that is equal: make compiles what
    is newer than its object.

    Files that are not in `fresh` stay (objects), except those of an earlier call that were deleted
    since. In the beginning files keep their time, as rules of autotools compare it; later
    ones are newer than every object. Returns a digest of all files.
    """
    before = json.loads(manifest.read_text("utf-8")) if manifest.exists() else {}
    now = file_digests(fresh)
    source.mkdir(exist_ok=True)
    if before:
        # if this call is killed, the next one must not take its files for those of the call before
        doubtful = {**before, **now}
        unchanged = {name: digest for name, digest in before.items() if now.get(name) == digest}
        write_atomically(manifest, json.dumps({**dict.fromkeys(doubtful, ""), **unchanged}) + "\n")
    for path in sorted(fresh.rglob("*")):
        name = path.relative_to(fresh).as_posix()
        target = source / name
        if path.is_dir() and not path.is_symlink():
            target.mkdir(exist_ok=True)
            continue
        if before.get(name) == now[name] and os.path.lexists(target):
            continue
        target.unlink(missing_ok=True)
        if path.is_symlink():
            target.symlink_to(path.readlink())
        else:
            target.write_bytes(path.read_bytes())
            status = path.stat()
            target.chmod(status.st_mode & 0o777)
            if not before:
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    for name in set(before) - set(now):
        (source / name).unlink(missing_ok=True)
    write_atomically(manifest, json.dumps(now) + "\n")
    return tree_digest(now)


def patch_digests(patches: Sequence[Path]) -> dict[str, str]:
    """File name of each patch to its digest."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in patches}


def _work_tree_revision(tree: Path) -> str:
    git = ["git", "-C", str(tree)]
    try:
        commit = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
        if commit.returncode:
            return ""
        changed = subprocess.run(
            [*git, "status", "--porcelain"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return commit.stdout.strip() + ("-modified" if changed.stdout.strip() else "")


def _archive(repository: Path, revision: str, fresh: Path) -> str:
    git_command = ["git", "-C", str(repository)]
    completed = subprocess.run(
        [*git_command, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise UsageError(f"has no revision '{visible(revision)}'", where=repository)
    commit = completed.stdout.strip()
    with subprocess.Popen([*git_command, "archive", commit], stdout=subprocess.PIPE) as git:
        unpacked = subprocess.run(["tar", "-x", "-C", str(fresh)], stdin=git.stdout, check=False)
    if git.returncode or unpacked.returncode:
        raise RunError(f"revision {visible(revision)} can't be read", where=repository)
    return commit


def _copy_tree(tree: Path, fresh: Path) -> None:
    """Files of a working tree: those that git doesn't ignore, else all but products of a
    compiler."""
    listing = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others"]
    try:
        done = subprocess.run([*listing, "--exclude-standard"], capture_output=True, check=False)
    except FileNotFoundError:
        done = subprocess.CompletedProcess(listing, 127, b"")
    names = (
        [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
        if done.returncode == 0 and done.stdout
        else [
            path.relative_to(tree).as_posix()
            for path in tree.rglob("*")
            if not path.name.endswith(_PRODUCTS)
        ]
    )
    for name in names:
        path, target = tree / name, fresh / name
        if (
            path.is_symlink() or path.is_file()
        ):  # a deleted file is still in git's list; a submodule is a directory
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)


def _unpack(tarball: Path, fresh: Path) -> None:
    done = subprocess.run(
        ["tar", "-x", "-f", str(tarball.absolute()), "-C", str(fresh)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["tar failed"]
        raise RunError(f"can't be unpacked: {visible(lines[0][:200])}", where=tarball)
    tops = list(fresh.iterdir())
    if len(tops) == 1 and tops[0].is_dir():
        inner = tops[0].rename(fresh / ".unpacked")
        for path in list(inner.iterdir()):
            path.rename(fresh / path.name)
        inner.rmdir()
