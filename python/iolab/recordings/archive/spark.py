# SPDX-License-Identifier: Apache-2.0
"""A Spark cluster that reads data files of archives: `spark://HOST:PORT` (a standalone master) or
`sc://HOST:PORT` (Spark Connect)."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from iolab.base.errors import IolabError, ResultsError, UsageError

from .scan import Rows
from .tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

PORTS = {"spark": 7077, "sc": 15002}
"""Schemes of clusters, and the ports that Spark uses by default."""
CONNECT_S = 5
"""Time in which a cluster must accept a connection."""
WORKERS_S = 60
"""Time in which a cluster must provide the first executor."""
SETTINGS = {
    # sums that do not fit are errors, as in DuckDB
    "spark.sql.ansi.enabled": "true",
    # only sums are exchanged
    "spark.sql.shuffle.partitions": "16",
}
_OWN_SETTINGS = {
    "spark.app.name": "iolab",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_clusters: dict[str, Cluster] = {}


class Cluster:
    """A session on a cluster.

    Attributes:
        url: as given.
    """

    def __init__(self, url: str, session: Any) -> None:
        self.url = url
        self._session = session

    @classmethod
    def connect(cls, url: str) -> Cluster:
        """The session of this process on a cluster; it ends with the process.

        UsageError where `url` names no cluster, or pyspark, sqlglot or Java is missing.
        ResultsError where the cluster does not answer or has no worker.
        """
        if url not in _clusters:
            _clusters[url] = cls(url, _session(url))
        return _clusters[url]

    def view(self, name: str, table: Table, parts: Sequence[Rows]) -> None:
        """Make rows of data files known as `name`."""
        with self._explain_errors():
            rows: Any = None
            for part in parts:
                part_rows = self._rows(table, part)
                rows = part_rows if rows is None else rows.unionAll(part_rows)
            if rows is None:
                columns = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in _columns(table)]
                rows = self._session.range(0).selectExpr(*columns)
            rows.createOrReplaceTempView(name)

    def _rows(self, table: Table, part: Rows) -> Any:
        from pyspark.sql.functions import broadcast, col

        rows = (
            self._session.read.schema(
                ", ".join(f"`{name}` {kind}" for name, kind in _columns(table))
            )
            .option("parquet.page.verify-checksum.enabled", "true")
            .parquet(*(_address(file.address) for file in part.files))
        )
        if part.segments is None:
            return rows
        # keys from an archive are no text for a statement
        listed = part.ranges().rename_columns(["r", "first", "last"])
        ranges = self._session.createDataFrame(listed)
        number = col("segment")
        is_within = (
            number == col("first")
            if listed["first"].equals(listed["last"])
            else number.between(col("first"), col("last"))
        )
        is_listed = (col("recording") == col("r")) & is_within
        return rows.join(broadcast(ranges), is_listed, "left_semi")

    def drop(self, names: Sequence[str]) -> None:
        """Make views unknown again."""
        with self._explain_errors():
            for name in names:
                self._session.catalog.dropTempView(name)

    def ask(self, sql: str, bound: Mapping[str, Any]) -> pa.Table:
        """The answer of a statement in Spark's SQL. ResultsError where Spark gives none."""
        with self._explain_errors():
            rows: pa.Table = self._session.sql(sql, args=dict(bound)).toArrow()
            return rows

    @contextlib.contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except IolabError:
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc"):
                raise ResultsError(f"Spark can't answer: {_line(error)}", where=self.url) from error
            raise


def _session(url: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise UsageError(
            "names no engine", where=url, hint="duckdb, spark://HOST:PORT or sc://HOST:PORT"
        )
    for module in ("pyspark", "sqlglot"):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"an answer by Spark needs {module}",
                where=url,
                hint="install it: pip install 'iolab[archive-spark]'",
            )
    is_own = parts.scheme == "spark"
    if is_own and not _has_java():
        raise UsageError(
            "spark:// needs Java 17 or newer here, and there is no java",
            where=url,
            hint="install it, or use a Spark Connect server: sc://HOST:PORT",
        )
    try:
        port = parts.port or PORTS[parts.scheme]
        with socket.create_connection((parts.hostname, port), CONNECT_S) as connection:
            own_address = connection.getsockname()[0]
    except (OSError, ValueError) as error:
        raise ResultsError(
            f"no Spark answers: {_line(error)}", where=url, hint="check its address and port"
        ) from error
    logging.getLogger("SQLQueryContextLogger").disabled = True
    with warnings.catch_warnings(), _messages_of_java() as messages:
        warnings.simplefilter("ignore")
        try:
            return _start(url, own_address) if is_own else _join(url)
        except Exception as error:
            if isinstance(error, IolabError):
                raise
            messages.seek(0)
            reasons = [line for line in messages.read().splitlines() if "Exception" in line]
            raise ResultsError(
                f"no session on the cluster: {reasons[0].strip() if reasons else _line(error)}",
                where=url,
            ) from error


def _join(url: str) -> Any:
    """A session of a Spark Connect server."""
    import grpc
    from pyspark.sql import SparkSession

    parts = urlsplit(url)
    # pyspark retries for minutes where something else listens; encryption has parameters in the path
    if parts.path in ("", "/"):
        with grpc.insecure_channel(f"{parts.hostname}:{parts.port or PORTS['sc']}") as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=2 * CONNECT_S)
            except grpc.FutureTimeoutError:
                raise ResultsError(
                    "what listens there is no server of Spark Connect",
                    where=url,
                    hint="check its address and port; a standalone master is spark://HOST:PORT",
                ) from None

    session = SparkSession.builder.remote(url).getOrCreate()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    atexit.register(session.stop)
    return session


def _start(url: str, own_address: str) -> Any:
    """An application of this process on a standalone cluster."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(url)
    for name, value in {**_OWN_SETTINGS, **SETTINGS, "spark.driver.host": own_address}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    atexit.register(session.stop)
    tracker = session.sparkContext._jsc.sc().statusTracker()
    end = time.monotonic() + WORKERS_S
    # the first is this process
    while len(tracker.getExecutorInfos()) < 2:
        if time.monotonic() > end:
            raise ResultsError(
                f"the cluster provided no executor within {WORKERS_S} s",
                where=url,
                hint="it has no worker, or other applications use its cores and memory",
            )
        time.sleep(0.1)
    return session


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None


@contextlib.contextmanager
def _messages_of_java() -> Iterator[IO[str]]:
    """Give Java, which is started meanwhile, a file instead of standard error."""
    with tempfile.TemporaryFile("w+", errors="replace") as messages:
        before = os.dup(2)
        os.dup2(messages.fileno(), 2)
        try:
            yield messages
        finally:
            os.dup2(before, 2)
            os.close(before)


def _columns(table: Table) -> list[tuple[str, str]]:
    """Columns of a table with their types in Spark's SQL."""
    kinds = {
        "string": "STRING",
        "int64": "BIGINT",
        "int32": "INT",
        "double": "DOUBLE",
        "date32[day]": "DATE",
    }
    return [(field.name, kinds[str(field.type)]) for field in table.columns]


def _address(address: str) -> str:
    """The address of a file as Spark has it: Hadoop's client for S3 is `s3a`."""
    return f"s3a://{address.removeprefix('s3://')}" if address.startswith("s3://") else address


def _line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
