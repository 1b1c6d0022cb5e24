# SPDX-License-Identifier: Apache-2.0
"""`make dist`: an sdist, wheels of it, their SBOM and checksums, in dist/.

Wheels are built from the unpacked sdist, so that it is whole. The extension is linked by zig
against old symbols of glibc; auditwheel proves which. The probe is static.

    dist.py [--target TRIPLE]... [--output DIRECTORY] [--twice]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLIBC = "manylinux_2_17"
"""The oldest glibc that Rust's own standard library runs on."""


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description="Build an sdist and wheels.")
    parser.add_argument("--target", action="append", help="target triple; default: this machine's")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument(
        "--twice",
        action="store_true",
        help="build each wheel again elsewhere; they must be equal byte for byte",
    )
    wanted = parser.parse_args()
    native = f"{platform.machine()}-unknown-linux-gnu"
    output = wanted.output.absolute()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    sdist = output / _backend(ROOT, "build_sdist", output)
    _tell(sdist)
    source = _unpack(sdist, "sdist")
    for target in wanted.target or [native]:
        cross = {} if target == native else {"IOLAB_TARGET": target}
        started = time.monotonic()
        wheel = _wheel(source, output, "wheel", cross)
        _tell(wheel, time.monotonic() - started)
        _audit(wheel)
        if missing := missing_parts(wheel, ROOT):
            raise SystemExit(f"dist: {wheel.name} lacks {', '.join(missing)}")
        if wanted.twice:
            _compare(
                wheel, _wheel(_unpack(sdist, "sdist-again"), ROOT / "build", "wheel-again", cross)
            )
    subprocess.run(
        [
            sys.executable,
            ROOT / "scripts/sbom.py",
            output / f"{sdist.name.removesuffix('.tar.gz')}.cdx.json",
        ],
        check=True,
    )
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(output.iterdir())
    ]
    (output / "SHA256SUMS").write_text("".join(lines), "utf-8")
    return 0


def _wheel(source: Path, output: Path, target: str, cross: dict[str, str]) -> Path:
    return output / _backend(
        source,
        "build_wheel",
        output,
        MATURIN_PEP517_ARGS=f"--zig --compatibility {GLIBC}",
        CARGO_TARGET_DIR=str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / target),
        **cross,
    )


def _compare(first: Path, again: Path) -> None:
    """SystemExit where two builds, in two directories and with nothing in common, differ in a byte."""
    if first.read_bytes() != again.read_bytes():
        with zipfile.ZipFile(first) as one, zipfile.ZipFile(again) as two:
            differ = [
                name
                for name in one.namelist()
                if name not in two.namelist() or one.read(name) != two.read(name)
            ]
        raise SystemExit(
            f"dist: two builds of {first.name} differ: {', '.join(differ) or 'order or times'}"
        )
    print(f"{first.name}: built twice, equal byte for byte")


def _unpack(sdist: Path, name: str) -> Path:
    place = ROOT / "build" / name
    shutil.rmtree(place, ignore_errors=True)
    with tarfile.open(sdist) as tar:
        # Python 3.11.2, that of Debian 12, has no filters
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(place)
    return place / sdist.name.removesuffix(".tar.gz")


def _backend(source: Path, hook: str, output: Path, **names: str) -> str:
    """Name of what a hook of the build backend made in `output`."""
    words = f"import sys; sys.path.insert(0, 'scripts'); import wheel_backend as backend; name = backend.{hook}({str(output)!r})"
    # the tools of this environment (maturin, zig) come first
    path = (
        f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:{Path.home() / '.cargo/bin'}"
    )
    log = ROOT / "build" / f"{hook}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", f"{words}; open({str(log) + '.name'!r}, 'w').write(name)"],
            cwd=source,
            env={**os.environ, "PATH": path, **names},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        raise SystemExit(
            f"dist: {hook} failed, see {log}:\n{log.read_text('utf-8', 'replace')[-2000:]}"
        )
    return Path(f"{log}.name").read_text("utf-8")


def _audit(wheel: Path) -> None:
    """SystemExit where the wheel needs more than it says."""
    said = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True
    )
    words = " ".join(said.stdout.split())
    print(f"auditwheel: {words}")
    if said.returncode or f'"{GLIBC}_' not in words:
        raise SystemExit(f"dist: {wheel.name} does not run on {GLIBC}: {said.stderr.strip()}")


def missing_parts(wheel: Path, root: Path) -> list[str]:
    """Manual pages, completions and documents that a wheel of the sources in `root` lacks."""
    share = root / "build/share"
    installed = {path.relative_to(share).as_posix() for path in share.rglob("*") if path.is_file()}
    installed.add("man/man1/iolab.1")
    data = f"{'-'.join(wheel.name.split('-')[:2])}.data/data/share"
    documents = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")}
    with zipfile.ZipFile(wheel) as archive:
        members = set(archive.namelist())
    required = {f"{data}/{name}" for name in installed}
    required |= {f"iolab/shipped/{name}" for name in documents}
    return sorted(required - members)


def _tell(path: Path, seconds: float | None = None) -> None:
    print(
        f"{path.name}: {path.stat().st_size / 1e6:.1f} MB{'' if seconds is None else f', {seconds:.0f} s'}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
