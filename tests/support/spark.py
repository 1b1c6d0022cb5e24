# SPDX-License-Identifier: Apache-2.0
"""A Spark cluster on loopback for tests: a master, two workers of one core, and a server of Spark
Connect that uses them. Its processes take 4 GB together at most."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 300


def reason_without() -> str | None:
    """Why no cluster can be started here; None: it can."""
    for module in ("pyspark", "sqlglot"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: make archive-test"
    if shutil.which("java") is None:
        return "Java is not installed"
    return None


@dataclass(frozen=True)
class SparkCluster:
    """Attributes:
    master, connect: URLs of the standalone master and of the Connect server. workers: their
    processes.
    """

    master: str
    connect: str
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster that ends with the block. directory: of its files."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(directory / "work"),
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    port, connect_port = _free_port(), _free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:

        def start(*words: str, memory: str = "256m") -> subprocess.Popen[bytes]:
            log = stack.enter_context((directory / "cluster.log").open("ab"))
            process = subprocess.Popen(
                [str(home / "bin" / words[0]), *words[1:]],
                env={**environment, "SPARK_DAEMON_MEMORY": memory},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(_end, process)
            return process

        deploy = "org.apache.spark.deploy"
        place = ("--host", "127.0.0.1", "--webui-port", "0")
        first = start("spark-class", f"{deploy}.master.Master", *place, "--port", str(port))
        _wait(port, first)
        started = tuple(
            start(
                "spark-class", f"{deploy}.worker.Worker", *place,
                "--cores", "2", "--memory", "2g", master,
            )
            for _ in range(workers)
        )  # fmt: skip
        settings = {
            "spark.executor.memory": "768m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.port": str(connect_port),
        }
        server = start(
            "spark-submit", "--master", master,
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
            "spark-internal",
            memory="768m",
        )  # fmt: skip
        _wait(connect_port, server)
        yield SparkCluster(master, f"sc://127.0.0.1:{connect_port}", started)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, "a process of the cluster ended"
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the cluster does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
