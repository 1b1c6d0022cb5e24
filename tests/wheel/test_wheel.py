# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make dist`, installed outside the clone where there is neither compiler nor Node:
every command works there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.cli.main import COMMANDS
from support.disks import loop_device, need_loops
from support.probe import need_tracing
from support.waiting import PATIENCE, until

ROOT = Path(__file__).parent.parent.parent
ALLOWED = (
    "sh",
    "bash",
    "fio",
    "iostat",
    "mount",
    "umount",
    "lsblk",
    "dd",
    "sync",
    "ssh",
    "git",
    "uname",
    "man",
)
"""Programs in reach of the installed iolab."""


class Installed:
    """An environment with the wheel and what pip installs with it."""

    def __init__(self, base: Path) -> None:
        self.venv, self.work = base / "venv", base / "work"
        tools = base / "tools"
        for directory in (self.work, tools):
            directory.mkdir()
        for name in ALLOWED:
            if found := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"):
                (tools / name).symlink_to(found)
        self.environment = {
            "PATH": f"{self.venv}/bin:{tools}",
            "HOME": str(base),
            "LANG": "C.UTF-8",
        }

    def run(self, *words: object, expect: int = 0) -> str:
        """Standard output of iolab."""
        done = subprocess.run(
            [self.venv / "bin/iolab", *map(str, words)],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
        )
        assert done.returncode == expect, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def python(self, code: str) -> str:
        """Standard output of a program."""
        done = subprocess.run(
            [self.venv / "bin/python", "-c", code],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """From dist/, which `make dist` fills; left out where it is empty."""
    wheels = sorted((ROOT / "dist").glob(f"iolab-*{os.uname().machine}.whl"))
    if not wheels:
        pytest.skip("there is no wheel in dist/ (make dist)")
    base = tmp_path_factory.mktemp("wheel")
    installed = Installed(base)
    subprocess.run(
        [ROOT / "scripts/install-python", "requirements/run.lock", installed.venv], check=True
    )
    python = str(installed.venv / "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # the lock file contains every requirement of the wheel
    subprocess.run([*pip, "install", "--no-deps", wheels[-1]], check=True, cwd=base)
    subprocess.run([*pip, "check"], check=True, cwd=base)
    return installed


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    need_tracing()
    need_loops("fio")
    with loop_device(tmp_path, 64 << 20) as node:
        yield node


def test_nothing_of_the_clone_is_in_it(installed: Installed) -> None:
    site = Path(installed.python("import iolab; print(iolab.__path__[0])").strip())
    assert site.is_relative_to(installed.venv)
    assert [
        path
        for path in site.rglob("*")
        if path.is_file() and str(ROOT).encode() in path.read_bytes()
    ] == []


def test_it_says_what_it_is(installed: Installed) -> None:
    assert re.match(
        r"iolab (\S+), commit [0-9a-f]{12}\+?, probe \1 \(sha256 [0-9a-f]{12}\)$",
        installed.run("--version").strip(),
    )
    site = Path(installed.python("import iolab; print(iolab.__path__[0])").strip())
    assert (
        "License-Expression: Apache-2.0"
        in next(site.parent.glob("iolab-*.dist-info/METADATA")).read_text()
    )


def test_completions_and_manual_are_installed(installed: Installed) -> None:
    share = installed.venv / "share"
    for name in (
        "bash-completion/completions/iolab",
        "zsh/site-functions/_iolab",
        "fish/vendor_completions.d/iolab.fish",
    ):
        assert "_IOLAB_COMPLETE" in (share / name).read_text()
    for name in ("iolab", *(f"iolab-{command}" for command in COMMANDS)):
        page = share / f"man/man1/{name}.1"
        assert page.read_text().startswith(f'.TH "{name.upper().replace("-", chr(92) + "-")}" "1"')
        if shutil.which("man"):
            # man-db derives the directory of the pages from PATH
            done = subprocess.run(
                ["man", "--where", name], env=installed.environment, capture_output=True, text=True
            )
            assert Path(done.stdout.strip()).resolve() == page.resolve(), done.stderr


def test_documents_are_installed(installed: Installed) -> None:
    entries = json.loads(installed.run("catalog", "documents", "--format", "json"))["entries"]
    assert {entry["name"] for entry in entries} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")
    }
    for entry in entries:
        assert Path(entry["path"]).is_relative_to(installed.venv)
        assert Path(entry["path"]).is_file()
    assert f"{installed.venv}/" in installed.run("record", "--help").split("Documentation:")[1]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_its_help(installed: Installed, name: str) -> None:
    assert "Usage: iolab" in installed.run(name, "--help")


def test_a_shipped_study_is_run_compared_and_reported(installed: Installed) -> None:
    installed.run(
        "run",
        "studies/quickstart.toml",
        "--only",
        "numjobs=1",
        "--repetitions",
        2,
        "--runtime",
        "1s",
        "-o",
        "demo",
    )
    assert "every-write" in installed.run("compare", "demo")
    installed.run("report", "demo", "-o", "demo.html")
    installed.run("report", "demo", "--charts", "charts", "--format", "svg")
    assert (installed.work / "demo.html").stat().st_size > 500_000
    assert list((installed.work / "charts").glob("*.svg"))
    installed.run("verify", "demo")


def test_a_published_table_is_imported_and_reported(installed: Installed) -> None:
    installed.run(
        "import", "--table", "studies/published/openzfs-447-max-rate-hdd.csv", "-o", "published"
    )
    installed.run("report", "published", "-o", "published.html")
    assert "published numbers" in (installed.work / "published.html").read_text()


def test_a_trace_becomes_a_page(installed: Installed) -> None:
    rows = "".join(f"{n},{100 + n % 50},8192,{n * 8192},read\n" for n in range(2000))
    (installed.work / "trace.csv").write_text(
        "time:ms,latency:us,size:bytes,offset:bytes,op\n" + rows
    )
    installed.run("heatmap", "trace.csv", "--y", "all", "-o", "map.html")
    assert "<script" in (installed.work / "map.html").read_text()
    assert "io.ops" in installed.run("query", "trace.csv", "io.ops[op]")
    installed.run("import", "trace.csv", "-o", "trace")


def test_the_rig_is_found(installed: Installed) -> None:
    done = subprocess.run(
        [installed.venv / "bin/iolab", "rig", "check", "openzfs"],
        cwd=installed.work,
        env=installed.environment,
        capture_output=True,
        text=True,
    )
    assert "there is no rig" not in done.stderr
    assert done.returncode == 5
    assert "qemu-system-x86_64 is not installed" in done.stderr


def test_doctor_finds_the_probe(installed: Installed) -> None:
    checks = {
        each["name"]: each
        for each in json.loads(installed.run("doctor", "--format", "json"))["checks"]
    }
    assert checks["probe"]["ok"]


def test_results_show_themselves_in_a_notebook(installed: Installed) -> None:
    installed.run(
        "import", "--table", "studies/published/zfs-write-compressibility.csv", "-o", "table"
    )
    assert "<table" in installed.python("import iolab; print(iolab.open('table')._repr_html_())")


@pytest.mark.loops
@pytest.mark.tracing
def test_it_records_and_shows(installed: Installed, device: str) -> None:
    installed.run(
        "record",
        "block",
        "--device",
        device,
        "--budget",
        "none",
        "-o",
        "rec",
        "--",
        "fio",
        "--name=x",
        f"--filename={device}",
        "--rw=randread",
        "--size=16m",
        "--number_ios=500",
        "--direct=1",
    )
    assert re.search(r"\b5\d\d I/Os", installed.run("show", "rec"))
    installed.run("heatmap", "rec", "-o", "rec.html")


@pytest.mark.loops
@pytest.mark.tracing
def test_it_serves_live(installed: Installed, device: str) -> None:
    with subprocess.Popen(
        [
            installed.venv / "bin/iolab",
            "live",
            "block",
            "--device",
            device,
            "--port",
            "0",
            "-o",
            "live",
        ],
        cwd=installed.work,
        env=installed.environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as live:
        assert live.stdout is not None
        lines: list[str] = []

        def address() -> str:
            assert live.stdout is not None
            lines.append(live.stdout.readline())
            found = re.search(r"http://\S+", lines[-1])
            return found[0] if found else ""

        try:
            page = until(address, "the address")
            # the address is answered with a cookie and the address without its token
            with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(
                page, timeout=PATIENCE
            ) as answer:
                assert b"<script" in answer.read()
        finally:
            live.send_signal(signal.SIGINT)
            live.communicate(timeout=PATIENCE)
    assert live.returncode == 0
