# SPDX-License-Identifier: Apache-2.0
"""The build backend (PEP 517): maturin, and everything of iolab that is no Python.

A wheel holds the extension, the probe (static), the built pages, rigs, studies, published tables,
schemas, documents, manual pages and completions. `pip wheel .`, `pip install .` and `make dist` all
come here. Node is needed only where the pages are not built yet; an sdist has them. The same
sources give the same bytes: times are those of the commit, and no path of the building machine gets
in.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cargo_lock
import maturin
import sbom
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path("python/iolab/output/report/static")
BUILD = Path("python/iolab/_build.json")
SHARE = Path("build/share")
"""Manual pages and completions as they are installed below a prefix's share/; `make share` makes
them."""
SHIPPED = ("studies", "schemas", "docs")
"""Directories that are in a wheel as `iolab/shipped/<name>`; documents without their pictures."""
PROGRAM = Path("python/iolab/_probe/iolab-probe")
_STAGED = """[tool.maturin]
data = "wheel.data"
sbom = { rust = false, include = ["iolab.cdx.json"] }
"""
"""What a staged tree has and a clone lacks. The bill of materials is scripts/sbom.py's: maturin's
own names paths of this machine."""
TARGET = "IOLAB_TARGET"
"""Environment variable: the target triple of a wheel for another processor; the probe's has its own
libc, musl."""


def build_editable(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """For a clone: the extension alone. What else there is is made by `make setup`, and read where
    it lies."""
    cargo_lock.make(ROOT)
    with _environment(
        MATURIN_PEP517_ARGS=f"--locked {os.environ.get('MATURIN_PEP517_ARGS', '')}".strip(),
        CARGO_ENCODED_RUSTFLAGS=_flags(ROOT),
    ):
        return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """A whole wheel. The tree is staged: what lies elsewhere in the sources is put where a wheel
    has it."""
    cargo_lock.make(ROOT)
    _need_pages()
    target = os.environ.get(TARGET, "")
    # one place, so that cargo finds what it built before: a flag with another path would build
    # everything again
    stage = ROOT / "build/stage"
    shutil.rmtree(stage, ignore_errors=True)
    _copy_sources(stage)
    words = [
        "--locked",
        *(["--target", target] if target else []),
        os.environ.get("MATURIN_PEP517_ARGS", ""),
    ]
    with _environment(
        CARGO_TARGET_DIR=os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target/wheel")),
        CARGO_ENCODED_RUSTFLAGS=_flags(stage),
        MATURIN_PEP517_ARGS=" ".join(words).strip(),
        SOURCE_DATE_EPOCH=str(_built()["time"]),
    ):
        probe_target = [target.replace("-gnu", "-musl")] if target else []
        subprocess.run(
            [stage / "scripts/build-probe", *probe_target], check=True, stdout=sys.stderr
        )
        here = Path.cwd()
        os.chdir(stage)
        try:
            return str(
                maturin.build_wheel(
                    str(here / wheel_directory), config_settings, metadata_directory
                )
            )
        finally:
            os.chdir(here)
            shutil.rmtree(stage)


def _flags(source: Path) -> str:
    """Flags of rustc that keep paths of this machine out; scripts/build-probe has the same, so that
    crates are compiled once."""
    cargo_home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    return "\x1f".join(
        [f"--remap-path-prefix={source}=/iolab", f"--remap-path-prefix={cargo_home}=/cargo"]
    )


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Mapping[str, Any] | None = None
) -> str:
    """Name, version and dependencies, without a build."""
    cargo_lock.make(ROOT)
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """The committed files, and of what is made the pages and the manual: a wheel of it needs Rust
    and a C library, no Node and no git."""
    cargo_lock.make(ROOT)
    _need_pages()
    built = _built()
    with tempfile.TemporaryDirectory() as directory:
        metadata = (
            Path(directory) / maturin.prepare_metadata_for_build_wheel(directory) / "METADATA"
        ).read_text("utf-8")
    headers, blank, readme = metadata.partition("\n\n")
    metadata = headers + blank + package_page(readme)
    version = next(
        line.partition(": ")[2] for line in headers.splitlines() if line.startswith("Version: ")
    )
    base = f"iolab-{version}"
    contents = {path: (ROOT / path).read_bytes() for path in [*_committed(), *_made()]}
    contents[Path("PKG-INFO")] = metadata.encode()
    contents[BUILD] = json.dumps(built).encode() + b"\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(contents):
            entry = tarfile.TarInfo(f"{base}/{path}")
            entry.size, entry.mtime = len(contents[path]), built["time"]
            entry.mode = (
                0o755 if (ROOT / path).is_file() and os.access(ROOT / path, os.X_OK) else 0o644
            )
            tar.addfile(entry, io.BytesIO(contents[path]))
    name = f"{base}.tar.gz"
    with (
        (Path(sdist_directory) / name).open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=built["time"], filename="") as out,
    ):
        out.write(packed.getvalue())
    return name


def _need_pages() -> None:
    if (ROOT / PAGES / "report.js").is_file():
        return
    if not shutil.which("npm"):
        raise SystemExit(
            "the pages are not built and there is no Node.js to build them: run make setup, or take an sdist, which has them"
        )
    for words in (
        ["ci", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"],
        ["run", "--silent", "build"],
    ):
        subprocess.run(
            [ROOT / "scripts/with-node", "npm", "--prefix", ROOT / "web", *words],
            check=True,
            stdout=sys.stderr,
        )


def _built() -> dict[str, Any]:
    """Of what a wheel is: `commit`, `time` (s, of the commit) and whether the tree had `changes`.
    An sdist has it as a file."""
    if (ROOT / BUILD).is_file():
        return dict(json.loads((ROOT / BUILD).read_text("utf-8")))
    try:
        commit, time = _git("log", "-1", "--format=%H %ct").split()
        return {
            "commit": commit,
            "time": int(time),
            "changes": bool(_git("status", "--porcelain").strip()),
        }
    except (OSError, subprocess.CalledProcessError, ValueError):
        return {
            "commit": "",
            "time": int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")),
            "changes": False,
        }


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
    ).stdout


def _committed() -> list[Path]:
    """Files of the sources: those that git knows, or, in an unpacked sdist, all."""
    if not (ROOT / BUILD).is_file():
        return [
            Path(name)
            for name in _git("ls-files", "-z").split("\0")
            if name and (ROOT / name).is_file()
        ]
    skipped = {"target", "build", ".venv", "__pycache__", "node_modules"}
    files = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [
        path
        for path in files
        if not skipped & set(path.parts) and path not in (BUILD, Path("PKG-INFO"))
    ]


def _made() -> list[Path]:
    return [
        path.relative_to(ROOT)
        for place in (PAGES, SHARE)
        for path in sorted((ROOT / place).rglob("*"))
        if path.is_file()
    ]


def _copy_sources(stage: Path) -> None:
    package = stage / "python/iolab"
    wanted = (
        "Cargo.toml",
        "Cargo.lock",
        "crates.lock",
        "pyproject.toml",
        "README.md",
        "scripts/",
        "crates/",
        "python/",
    )
    for path in [
        *(each for each in _committed() if str(each).startswith(wanted)),
        Path(cargo_lock.LOCK),
        *_made(),
    ]:
        if not str(path).startswith(str(SHARE)):
            _copy(ROOT / path, stage / path)
    for directory in SHIPPED:
        _copy_tree(ROOT / directory, package / "shipped" / directory)
    _copy_tree(ROOT / "rigs", package / "rigs")
    _copy_tree(ROOT / SHARE, stage / "wheel.data/data/share")
    readme = stage / "README.md"
    readme.write_text(package_page(readme.read_text("utf-8")), "utf-8")
    project = stage / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace("[tool.maturin]\n", _STAGED), "utf-8")
    (stage / "iolab.cdx.json").write_text(json.dumps(sbom.bill(ROOT), indent=1) + "\n", "utf-8")
    (stage / BUILD).write_text(json.dumps(_built()) + "\n", "utf-8")


def package_page(readme: str) -> str:
    """The README for a package's page, where relative addresses lead nowhere: without pictures, and
    with the path of a document after its name."""
    text = re.sub(r"^!\[[^]]*\]\([^)]*\)\n+", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\((?!\w+:)([^)]*)\)", r"\1 (`\2`)", text)


def _copy_tree(source: Path, to: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file() and not {"__pycache__", "images"} & set(path.parts):
            _copy(path, to / path.relative_to(source))


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    # one of two modes, whatever the umask of a clone was
    to.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


@contextmanager
def _environment(**names: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
