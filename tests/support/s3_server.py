# SPDX-License-Identifier: Apache-2.0
"""A server of S3 on loopback for tests: versitygw over a directory. `make archive-test` builds it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.waiting import PATIENCE

PROGRAM = "versitygw"
KEY, SECRET = "test", "a-secret-that-no-message-has"
BUCKET = "recordings"
_SMALL = 'mount -t tmpfs -o "size=$1" store "$2" && shift 2 && exec "$@"'


def reason_without() -> str | None:
    """Why no server can be started here; None: it can."""
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM}, a server of S3, is not installed: make archive-test, which needs Go"
    if importlib.util.find_spec("boto3") is None:
        return "boto3 is not installed: make archive-test"
    return None


@cache
def reason_without_mounts() -> str | None:
    """Why a server can't have a file system of its own; None: it can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    words = [*_apart(), "mount", "-t", "tmpfs", "store", "/mnt"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr.strip() or "no file system can be mounted" if done.returncode else None


def _apart() -> list[str]:
    """A namespace for mounts, which ends with its last process."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount"]


class S3Server:
    """A server of the buckets below a directory. They stay when it ends and are there when it starts
    again.

    Attributes:
        port: on loopback, also after a new start.
    """

    def __init__(self, directory: Path, size: int | None = None) -> None:
        """size: bytes of a file system of its own; None: that of the directory."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        words = [PROGRAM, "--quiet", "--port", f"127.0.0.1:{self.port}", "posix", str(directory)]
        if size is not None:
            words = [*_apart(), "sh", "-c", _SMALL, "sh", str(size), str(directory), *words]
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        secrets = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        self._process = subprocess.Popen(
            self._words,
            env={**os.environ, **secrets},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self._process.poll() is None, "the server ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def s3_server(directory: Path, size: int | None = None) -> Iterator[S3Server]:
    """A server that ends with the block."""
    directory.mkdir()
    server = S3Server(directory, size)
    try:
        yield server
    finally:
        server.kill()


def use(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a server and its credentials in the environment, and make the bucket."""
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        set_variable(name, value, monkeypatch)
    if BUCKET not in [bucket["Name"] for bucket in client().list_buckets()["Buckets"]]:
        client().create_bucket(Bucket=BUCKET)


def set_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a variable of the environment, which boto3 reads once otherwise."""
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)


def client() -> Any:
    """A client of the server in the environment."""
    import boto3

    return boto3.client("s3")
