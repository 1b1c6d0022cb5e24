# SPDX-License-Identifier: Apache-2.0
"""Making a rig's image: a Debian by debootstrap, the recipe's stages inside it, a file system of it
all. What is done stays done."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import RunError, sudo_command

from ..kinds.rig import KERNEL_FILE, KERNELS, kernel_names, rig_home
from .apt import Mirror, check_reachable, find_mirror
from .recipe import Rig, Stage

IMAGE, KERNEL, INITRD, KEY = "image.raw", "vmlinuz", "initrd.img", "id_ed25519"
OWN_BUILDS, BUILD_FILE = "builds", "build.json"
"""Builds of the user's own: `builds/NAME/root` is what goes into the image, with what it was made
of in `build.json`."""
_ENVIRONMENT = [
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL=C.UTF-8",
    "HOME=/root",
    "DEBIAN_FRONTEND=noninteractive",
]
_NEEDED = {
    "debootstrap": "debootstrap",
    "mkfs.ext4": "e2fsprogs",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "qemu-system-x86_64": "qemu-system-x86",
}
# A command ends with its caller, so that no compiler works on the files of the next call.
_WITH_CALLER = ("setpriv", "--pdeathsig", "KILL")
# A mount space of its own: whatever becomes of the build, no mount is left.
_APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
_INSIDE = (
    'tree=$1; shift; while [ "$1" != -- ]; do mkdir -p "$tree$2" && mount --bind "$1" "$tree$2" || exit 1; shift 2; done; shift; '
    'mount -t proc proc "$tree/proc" && exec chroot "$tree" env -i "$@"'
)


@dataclass(frozen=True)
class Done:
    """A stage that was done, now or before. `seconds`: None where it had been done before."""

    name: str
    seconds: float | None


class Builder:
    """Builds one rig. `said` hears what is being done."""

    def __init__(self, rig: Rig, said: Callable[[str], None]) -> None:
        self._rig, self._said = rig, said
        self._home = rig_home(rig.name)
        self._tree, self._stamps, self._log = (
            self._home / "tree",
            self._home / "stamps",
            self._home / "build.log",
        )
        self._done: list[Done] = []

    def build(self) -> list[Done]:
        """Run the stages that are missing or have changed, in order. RunError if one fails; the
        next call continues with it."""
        if not self.missing():
            return [Done(name, None) for name in self._digests()]
        self._check()
        self._home.mkdir(parents=True, exist_ok=True)
        with self.lock():
            mirror, digests = find_mirror(), self._digests()
            if not (self._home / IMAGE).exists():
                (self._stamps / "image.json").unlink(missing_ok=True)
            self._stage("base", digests["base"], lambda: self._base(mirror), fresh=True)
            self._stage("packages", digests["packages"], lambda: self._packages(mirror))
            for stage in self._rig.recipe.stages:
                self._stage(
                    stage.name,
                    digests[stage.name],
                    lambda stage=stage: self._script(stage),  # type: ignore[misc]
                )
            self._stage("image", digests["image"], self._image)
        return self._done

    @property
    def home(self) -> Path:
        """Where the rig is kept."""
        return self._home

    @property
    def tree(self) -> Path:
        """The system that the image is made of."""
        return self._tree

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Lock the rig against other builds and starts; RunError if it is locked."""
        return _lock_file(self._home / "lock", "is being built by another iolab")

    def open_packages(self) -> None:
        """Let scripts inside the system get packages."""
        self._write_sources(find_mirror())
        if not list((self._tree / "var/lib/apt/lists").glob("*Packages*")):
            self.inside(["apt-get", "update", "-q"], "apt-get update")

    def close_packages(self) -> None:
        """Take away what `open_packages` left, which is no part of the image."""
        for name in ("etc/apt/apt.conf.d/99rig-build", "usr/sbin/policy-rc.d"):
            (self._tree / name).unlink(missing_ok=True)
        shutil.rmtree(self._tree / "var/lib/apt/lists", ignore_errors=True)
        (self._tree / "var/lib/apt/lists/partial").mkdir(parents=True)

    def missing(self) -> list[str]:
        """The stages that a build would do, the first that is missing or has changed and all after
        it; none where the image is there."""
        names = list(self._digests())
        first = next(
            (
                place
                for place, (name, digest) in enumerate(self._digests().items())
                if self._read_stamp(name) != digest
            ),
            len(names),
        )
        return names[first if (self._home / IMAGE).exists() else min(first, len(names) - 1) :]

    def check(self) -> list[str]:
        """`missing`, after a look at whether they can be done here: RunError where not."""
        missing = self.missing()
        if missing:
            self._check()
            check_reachable(find_mirror(), self._rig.recipe.suite)
        return missing

    def _digests(self) -> dict[str, str]:
        """By stage, in order: what changes with the stage or any before it."""
        recipe = self._rig.recipe
        chain = hashlib.sha256(
            repr((recipe.suite, sorted(recipe.components))).encode()
        ).hexdigest()[:16]
        digests = {"base": chain}
        parts = {
            "packages": repr((recipe.suites, recipe.kernel, recipe.packages)),
            **{stage.name: self._rig.digest(stage) for stage in recipe.stages},
            "image": repr((recipe.size, own_builds(self._home), *own_kernels(self._home).values())),
        }
        for name, part in parts.items():
            digests[name] = chain = _chain_digest(chain, part)
        return digests

    def _read_stamp(self, name: str) -> str | None:
        try:
            return str(json.loads((self._stamps / f"{name}.json").read_text("utf-8"))["digest"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _check(self) -> None:
        missing = {
            package
            for program, package in _NEEDED.items()
            if shutil.which(program, path=_path()) is None
        }
        if missing:
            raise RunError(
                f"programs are missing that a rig is made with: {', '.join(sorted(missing))}",
                hint=f"install them: apt install {' '.join(sorted(missing))}",
            )
        if os.geteuid() != 0:
            raise RunError(
                "making a system's files needs root",
                where=self._rig.name,
                hint=f"{sudo_command('rig', 'build', self._rig.name)}; starting the machine needs none",
            )
        tried = subprocess.run(
            [*_APART, "true"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": _path()},
        )
        if tried.returncode:
            raise RunError(
                f"a mount space of its own can't be had here: {tried.stderr.strip()[:200]}",
                where=self._rig.name,
                hint="containers often forbid it: build the rig outside, or with more rights",
            )

    def _stage(self, name: str, digest: str, work: Callable[[], None], fresh: bool = False) -> None:
        stamp = self._stamps / f"{name}.json"
        if self._read_stamp(name) == digest:
            self._done.append(Done(name, None))
            return
        self._said(f"{self._rig.name}: {name}")
        if fresh:
            shutil.rmtree(self._stamps, ignore_errors=True)
        stamp.unlink(missing_ok=True)
        begin = time.monotonic()
        work()
        seconds = time.monotonic() - begin
        self._stamps.mkdir(exist_ok=True)
        new = stamp.with_suffix(".new")
        new.write_text(json.dumps({"digest": digest, "seconds": round(seconds, 1)}) + "\n", "utf-8")
        new.rename(stamp)
        self._done.append(Done(name, seconds))

    def _base(self, mirror: Mirror) -> None:
        if self._tree.exists():
            shutil.rmtree(self._tree)
        self._run(
            [
                "debootstrap",
                "--variant=minbase",
                "--include=ca-certificates",
                self._rig.recipe.suite,
                str(self._tree),
                mirror.archive,
            ],
            "debootstrap",
        )

    def _packages(self, mirror: Mirror) -> None:
        recipe = self._rig.recipe
        self._write_sources(mirror)
        self.inside(["apt-get", "update", "-q"], "apt-get update")
        self.inside(
            ["apt-get", "install", "-y", "-q", recipe.kernel, *recipe.packages], "apt-get install"
        )

    def _script(self, stage: Stage) -> None:
        self.open_packages()
        place = self._tree / "rig"
        place.mkdir(exist_ok=True)
        for path in self._rig.files(stage):
            shutil.copy(path, place / path.name)
        self.inside(["sh", f"/rig/{stage.run[0]}", *stage.run[1:]], stage.name)

    def _image(self) -> None:
        """Make a file system of the tree, with the kernel next to it, and ssh keys of this user."""
        key = self._home / KEY
        if not key.exists():
            self._run(
                [
                    "ssh-keygen",
                    "-q",
                    "-t",
                    "ed25519",
                    "-N",
                    "",
                    "-C",
                    f"iolab rig {self._rig.name}",
                    "-f",
                    str(key),
                ],
                "ssh-keygen",
            )
        host_key = self._tree / "etc/ssh/ssh_host_ed25519_key"
        host_key.unlink(missing_ok=True)
        self._run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f", str(host_key)],
            "ssh-keygen",
        )
        authorized = self._tree / "root/.ssh/authorized_keys"
        authorized.write_text(key.with_suffix(".pub").read_text("utf-8"), "utf-8")
        authorized.chmod(0o600)
        shutil.copy(host_key.with_suffix(".pub"), self._home / "host_key.pub")
        boot = self._tree / "boot"
        for pattern, name in (("vmlinuz-*", KERNEL), ("initrd.img-*", INITRD)):
            images = sorted(boot.glob(pattern))
            if not images:
                raise RunError(f"no {pattern} came with {self._rig.recipe.kernel}", where=str(boot))
            shutil.copy(images[-1], self._home / name)
        self._take_own_builds()
        image = self._home / IMAGE
        with self._kernel_modules():
            self._make_file_system(image)
        self._give_to_caller()

    def _make_file_system(self, image: Path) -> None:
        new = image.with_suffix(".new")
        with new.open("wb") as file:
            file.truncate(self._rig.recipe.size)
        self._run(
            [
                "mkfs.ext4",
                "-q",
                "-F",
                "-L",
                "rig",
                "-m",
                "0",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0",
                "-d",
                str(self._tree),
                str(new),
            ],
            "mkfs.ext4",
        )
        new.rename(image)

    def _take_own_builds(self) -> None:
        """Add the user's builds to those of the recipe; remove deleted ones."""
        if self._rig.recipe.builds is None:
            return
        place = self._tree / self._rig.recipe.builds.directory.lstrip("/")
        for old in place.glob(f"*/{BUILD_FILE}"):
            shutil.rmtree(old.parent)
        for name in own_builds(self._home):
            shutil.copytree(
                self._home / OWN_BUILDS / name / "root",
                place / name,
                symlinks=True,
                copy_function=os.link,
            )

    @contextlib.contextmanager
    def _kernel_modules(self) -> Iterator[None]:
        """Add the modules of further kernels to the tree, for the image alone: stages take the
        kernel that has modules in the tree."""
        place = self._tree / "usr/lib/modules"
        for old in place.glob(f"*/{KERNEL_FILE}"):  # of an image that was interrupted
            shutil.rmtree(old.parent)
        directories = []
        try:
            for name in own_kernels(self._home):
                root = self._home / KERNELS / name / "root"
                for modules in (root / "usr/lib/modules").iterdir():
                    directories.append(place / modules.name)
                    directories[-1].mkdir()
                    os.link(root / KERNEL_FILE, directories[-1] / KERNEL_FILE)
                    shutil.copytree(
                        modules,
                        directories[-1],
                        symlinks=True,
                        dirs_exist_ok=True,
                        copy_function=os.link,
                    )
            yield
        finally:
            for directory in directories:
                shutil.rmtree(directory, ignore_errors=True)

    def _give_to_caller(self) -> None:
        """Under sudo, what is needed to start machines belongs to the user who called it."""
        if os.environ.get("SUDO_UID", "").isdecimal():
            user, group = int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", "-1"))
            for path in (
                self._home,
                *(
                    self._home / name
                    for name in (IMAGE, KERNEL, INITRD, KEY, f"{KEY}.pub", "host_key.pub", "lock")
                ),
            ):
                os.chown(path, user, group, follow_symlinks=False)

    def _write_sources(self, mirror: Mirror) -> None:
        recipe, etc = self._rig.recipe, self._tree / "etc"
        (etc / "apt/sources.list").write_text(
            mirror.lines(recipe.suite, recipe.suites, recipe.components), "utf-8"
        )
        (etc / "apt/apt.conf.d/99rig-build").write_text(
            'APT::Install-Recommends "false";\n' + mirror.settings, "utf-8"
        )
        for name in ("resolv.conf", "hosts"):
            with contextlib.suppress(OSError):
                (etc / name).write_bytes(Path("/etc", name).read_bytes())
        policy = (
            self._tree / "usr/sbin/policy-rc.d"
        )  # no service may start while packages are installed (invoke-rc.d(8))
        policy.write_text("#!/bin/sh\nexit 101\n", "utf-8")
        policy.chmod(0o755)

    def inside(
        self,
        command: Sequence[str],
        what: str,
        mounts: Mapping[Path, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Run a command inside the system, with directories of this machine mounted there; see
        `_run`."""
        words = [word for outer, inner in (mounts or {}).items() for word in (str(outer), inner)]
        self._run(
            [
                *_APART,
                "sh",
                "-c",
                _INSIDE,
                "sh",
                str(self._tree),
                *words,
                "--",
                *_ENVIRONMENT,
                *command,
            ],
            what,
            log,
        )

    def _run(self, command: Sequence[str], what: str, log: Path | None = None) -> None:
        """RunError where a command fails, with the first error of a compiler, else the last that it
        said."""
        path = log or self._log
        environment = {**os.environ, "PATH": _path()}
        with path.open("ab") as file:
            file.write(f"\n== {' '.join(command)[:300]}\n".encode())
            file.flush()
            begin = file.tell()
            done = subprocess.run(
                [*_WITH_CALLER, *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                check=False,
                env=environment,
            )
        if done.returncode:
            with path.open("rb") as file:
                file.seek(begin)
                said = file.read().decode("utf-8", "replace")
            reason = first_error(said)
            raise RunError(
                f"{what} failed: {reason}"
                if reason
                else f"{what} failed with exit code {done.returncode}: {last_words(said)}",
                where=path,
                hint="the same command continues where it stopped",
            )


def first_error(said: str) -> str:
    """Why a build failed: that the disk is full, else why sources can't be configured, else the
    compiler's first error with its file and line; empty without any of these."""
    if "No space left on device" in said:
        return "the disk is full (No space left on device)"
    if match := re.search(r"^configure: error:\s*(.*(?:\n\s+\*\*\*.*)*)", said, re.MULTILINE):
        return " ".join(re.sub(r"(?m)^\s*\*\*\*\s*", " ", match[1]).split())[:200]
    place = r"^(\S+?:\d+)(?::\d+)?: (?:fatal )?error: (.+)$"
    match = re.search(place, said, re.MULTILINE) or re.search(
        r"^(\S+): fatal error: (.+)$", said, re.MULTILINE
    )
    return f"{match[1].removeprefix('/build/source/')}: {match[2][:200]}" if match else ""


def delete_leftovers(directory: Path, prefix: str) -> None:
    """Delete the temporary directories of calls that were killed. The rig is locked."""
    for leftover in directory.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def own_builds(home: Path) -> dict[str, str]:
    """Builds of the user's own that are whole: by name a word that changes with each."""
    directories = {}
    for path in sorted((home / OWN_BUILDS).glob(f"*/root/{BUILD_FILE}")):
        directories[path.parent.parent.name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return directories


def own_kernels(home: Path) -> dict[str, str]:
    """Complete kernels that were added: by name a word that changes with each."""
    return {
        name: hashlib.sha256(
            (home / KERNELS / name / "root" / KERNEL_FILE).read_bytes()
        ).hexdigest()[:16]
        for name in kernel_names(home)
    }


def last_words(output: str) -> str:
    """The last line of a program's output that names an error, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if line.startswith(("E:", "error", "E "))),
        lines[-1] if lines else "no message",
    )[:200]


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _chain_digest(before: str, part: str) -> str:
    """A stage counts as changed where any before it has."""
    return hashlib.sha256(f"{before} {part}".encode()).hexdigest()[:16]


@contextlib.contextmanager
def _lock_file(path: Path, taken: str) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(taken, where=path.parent.name, hint="wait for it") from None
        yield
    finally:
        os.close(file)


def image_version(rig: str) -> str | None:
    """A word that changes with the image; None where it was not built."""
    try:
        image_stamp = json.loads((rig_home(rig) / "stamps/image.json").read_text("utf-8"))["digest"]
    except (OSError, ValueError, KeyError):
        return None
    return str(image_stamp) if (rig_home(rig) / IMAGE).exists() else None
