# SPDX-License-Identifier: Apache-2.0
"""Questions to archives on a Spark cluster: the answers of DuckDB and of the recordings. `make
archive-test` installs Spark; without it only what needs no cluster is tested."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab import _core
from iolab.base.errors import IolabError, ResultsError, UsageError
from iolab.cli.main import run
from iolab.recordings.archive import Archive, delete_by_age, push, tables
from iolab.recordings.archive.recordings import ArchivedEvents, open_recordings
from iolab.recordings.archive.spark import Cluster
from iolab.recordings.ask import attribution
from iolab.recordings.ask.answers.json_form import as_data
from iolab.recordings.ask.attribution import Rectangle, who
from iolab.recordings.ask.engine.cells import bucket_sql
from iolab.recordings.ask.engine.engine import Engine, Joint
from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet
from iolab.recordings.ask.kept.archiving import kept_statistics
from iolab.recordings.ask.question import parse
from iolab.recordings.ask.tiers.archive_engines import read_together
from iolab.recordings.store.base.metadata import read_facts
from iolab.recordings.store.read.recording import Recording
from iolab.recordings.store.read.trace import BITS
from support.archives import answer_of, questions, record
from support.depth import depth
from support.kept_data import make
from support.recordings import SECOND, START
from support.spark import SparkCluster, reason_without, spark_cluster

needs_spark = pytest.mark.skipif(bool(reason := reason_without()), reason=reason or "")
HOSTS = ("db1", "db2", "web")


@dataclass(frozen=True)
class Fleet:
    """The same recordings as files, and in an archive as DuckDB and as Spark read them."""

    url: str
    local: dict[str, Recording]
    duckdb: dict[str, ArchivedEvents]
    spark: dict[str, ArchivedEvents]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, cluster: SparkCluster) -> Fleet:
    base = tmp_path_factory.mktemp("fleet")
    archive = Archive.open(str(base / "archive"), create=True)
    for seed, host in enumerate(HOSTS):
        record(base / host, segments=2 + seed, host=host, seed=seed)
        push(base / host, archive)
    return Fleet(
        archive.url,
        {host: Recording(base / host) for host in HOSTS},
        by_host(archive),
        by_host(archive, Cluster.connect(cluster.connect)),
    )


def by_host(archive: Archive, cluster: Cluster | None = None) -> dict[str, ArchivedEvents]:
    recordings = open_recordings(archive, archive.recordings(), cluster)
    return {recording.archived.host: recording for recording in recordings}


@needs_spark
@pytest.mark.slow
@settings(max_examples=depth(10, 60), deadline=None)
@given(host=st.sampled_from(HOSTS), question=questions())
def test_spark_answers_as_duckdb_and_the_recording_do(
    fleet: Fleet, host: str, question: tuple[str, dict[str, Any]]
) -> None:
    text, asked = question
    answer = answer_of(fleet.spark[host], text, **asked)
    assert answer == answer_of(fleet.duckdb[host], text, **asked)
    assert answer == answer_of(fleet.local[host], text, **asked)


@needs_spark
@pytest.mark.slow
@settings(max_examples=depth(4, 40), deadline=None)
@given(question=questions())
def test_spark_answers_for_all_hosts_at_once(
    fleet: Fleet, question: tuple[str, dict[str, Any]]
) -> None:
    text, asked = question
    asks = [partial(answer_of, fleet.spark[host], text, **asked) for host in HOSTS]
    assert Joint(asks).answers(read_together) == [
        answer_of(fleet.local[host], text, **asked) for host in HOSTS
    ]


@needs_spark
@pytest.mark.slow
@pytest.mark.parametrize("y", ["latency", "size", "queue"])
def test_spark_says_who(fleet: Fleet, y: str) -> None:
    box = Rectangle(START + SECOND, START + 9 * SECOND, 4_096, 10_000_000)
    answers = [
        attribution.as_data(who(recordings["db2"], y, box))
        for recordings in (fleet.local, fleet.duckdb, fleet.spark)
    ]
    assert answers[0]["inside"] > 0
    assert answers[0] == answers[1] == answers[2]


@needs_spark
@pytest.mark.slow
def test_maps_of_a_fleet_are_equal(fleet: Fleet) -> None:
    asked = FleetStatistic.parse("io.ops[latency][host]")
    maps = [
        ask_fleet(list(recordings.values()), asked, interval_ns=SECOND)
        for recordings in (fleet.duckdb, fleet.spark)
    ]
    assert isinstance(maps[0], dict)
    assert isinstance(maps[1], dict)
    assert set(maps[0]) == set(HOSTS)
    for host, counts in maps[0].items():
        assert as_data(parse("io.ops"), counts, None) == as_data(
            parse("io.ops"), maps[1][host], None
        )


@needs_spark
@pytest.mark.slow
def test_the_command_asks_a_master(fleet: Fleet, cluster: SparkCluster) -> None:
    words = ["query", f"archive:{fleet.url}", "io.bytes[host]", "--format", "csv"]

    # pyspark leaves the mode of its session there
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}

    def answer(*engine: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "iolab", *words, *engine],
            capture_output=True, text=True, timeout=300, env=environment, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    # with the same notes: Java and Spark write nothing
    assert answer("--engine", cluster.master) == answer()


@needs_spark
@pytest.mark.slow
def test_a_server_that_is_not_spark_connect(cluster: SparkCluster) -> None:
    with pytest.raises(ResultsError) as error:
        Cluster.connect(cluster.master.replace("spark://", "sc://"))
    assert "\n" not in str(error.value)


@needs_spark
@pytest.mark.slow
def test_files_of_several_hosts_and_names_with_quotes(
    tmp_path: Path, cluster: SparkCluster
) -> None:
    """A file of all hosts, as compaction leaves it, and keys that are no words."""
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    for seed, host in enumerate(("a'b", "\\' OR true --")):
        record(tmp_path / str(seed), host=host, seed=seed)
        push(tmp_path / str(seed), archive)
    keys = [recording.key for recording in by_host(archive).values()]
    rename = {keys[0]: "it's \\' OR 1=1 --", keys[1]: "plain"}
    for table in tables.TABLES:
        if "recording" not in table.columns.names:
            continue
        rows = archive.read(table)
        place = rows.column_names.index("recording")
        names = [rename[key] for key in rows["recording"].to_pylist()]
        column = pa.array(names, pa.string())
        rows = rows.set_column(place, table.columns.field("recording"), column)
        archive.commit(table, lambda change, rows=rows: change.overwrite(rows))
    duckdb, spark = by_host(archive), by_host(archive, Cluster.connect(cluster.connect))
    for host, recording in duckdb.items():
        for text in ("io.ops[process]", "io.ops[latency]"):
            asked = {"interval_ns": SECOND}
            assert answer_of(spark[host], text, **asked) == answer_of(recording, text, **asked)
    asks = [partial(answer_of, item, "io.ops[process]") for item in spark.values()]
    assert Joint(asks).answers(read_together) == [
        answer_of(item, "io.ops[process]") for item in duckdb.values()
    ]


@needs_spark
@pytest.mark.slow
def test_a_deleted_data_file_is_one_line(tmp_path: Path, cluster: SparkCluster) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec")
    push(tmp_path / "rec", archive)
    [recording] = by_host(archive, Cluster.connect(cluster.connect)).values()
    for file in Path(archive.url).rglob("events*.parquet"):
        file.unlink()
    with pytest.raises(IolabError) as error:
        answer_of(recording, "io.ops[process]")
    assert "\n" not in str(error.value)


# Without a cluster.


@pytest.fixture
def spark_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pyspark and sqlglot were installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


@pytest.mark.parametrize("url", ["presto://a:1", "spark", "spark://", "sc:/", "", "local[2]"])
def test_an_engine_that_does_not_exist(url: str) -> None:
    with pytest.raises(UsageError):
        Cluster.connect(url)


@pytest.mark.parametrize("package", ["pyspark", "sqlglot"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else object()
    )
    with pytest.raises(UsageError) as error:
        Cluster.connect("sc://127.0.0.1:1")
    assert package in error.value.message
    assert "iolab[archive-spark]" in str(error.value)


@pytest.mark.usefixtures("spark_packages")
def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(UsageError) as error:
        Cluster.connect("spark://127.0.0.1:1")
    assert "java" in error.value.message.lower()


@pytest.mark.usefixtures("spark_packages")
def test_a_cluster_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url in (f"sc://127.0.0.1:{port}", "sc://127.0.0.1:99999"):
        with pytest.raises(ResultsError) as error:
            Cluster.connect(url)
        assert "\n" not in str(error.value)


def test_an_engine_is_for_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "rec")
    for words in (["query", str(tmp_path / "rec"), "io.ops"], ["heatmap", str(tmp_path / "rec")]):
        assert run([*words, "--engine", "sc://127.0.0.1:1"]) == 2
        assert "--engine" in capsys.readouterr().err


@given(values=st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_buckets_in_sql_are_those_of_the_grid(values: list[int]) -> None:
    edges = [edge for bits in (6, 7, 62) for edge in (2**bits - 1, 2**bits)]
    values = [*values, 0, *edges]
    expression = bucket_sql("v", BITS)
    with Engine(Path()) as engine:
        engine.register("events", pa.table({"v": pa.array(values, pa.int64())}))
        rows = engine.ask(f"SELECT v, {expression} AS b FROM events")
    expected = [_core.grid_index(value, BITS) for value in rows["v"].tolist()]
    assert np.asarray(rows["b"]).tolist() == expected


@needs_spark
@pytest.mark.slow
def test_maps_answer_for_deleted_events(tmp_path: Path, cluster: SparkCluster) -> None:
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    record(tmp_path / "rec", segments=3)
    push(tmp_path / "rec", archive)
    [before] = by_host(archive).values()
    expected = answer_of(before, "io.ops[op]", interval_ns=SECOND)
    delete_by_age(archive, {"events": SECOND}, now_ns=START + 8 * SECOND)
    [recording] = by_host(archive, Cluster.connect(cluster.connect)).values()
    assert recording.facts.dropped_through == 1
    answer = answer_of(recording, "io.ops[op]", interval_ns=SECOND)
    assert answer["keys"] == expected["keys"]


@needs_spark
@pytest.mark.slow
def test_kept_statistics_answer_for_deleted_events(tmp_path: Path, cluster: SparkCluster) -> None:
    texts = (
        "io.ops[process=fio][latency]", "io.bytes[size]", "io.ops[offset]", "io.ops[process]",
        "io.utilization[device]",
    )  # fmt: skip
    archive = Archive.open(str(tmp_path / "archive"), create=True)
    for host, segments in (("here", 5), ("there", 6)):
        path = tmp_path / host
        make(path, texts, segments=segments, seconds=5, step_s=900, counters=True)
        facts = read_facts(path)
        facts.host = host
        facts.write(path)
        push(path, archive, kept=kept_statistics)
    delete_by_age(archive, {"events": SECOND, "maps": SECOND})
    duckdb, spark = by_host(archive), by_host(archive, Cluster.connect(cluster.connect))
    assert list(duckdb) == ["here", "there"]
    for text in texts:
        asked = {"interval_ns": 60 * SECOND}
        expected = [answer_of(recording, text, **asked) for recording in duckdb.values()]
        assert all("from what was kept" in answer["notes"][0] for answer in expected)
        asks = [partial(answer_of, recording, text, **asked) for recording in spark.values()]
        assert Joint(asks).answers(read_together) == expected


@needs_spark
@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_answer(fleet: Fleet, cluster: SparkCluster) -> None:
    """The last test, since the cluster has one worker afterwards."""
    cluster.workers[0].kill()
    answer = answer_of(fleet.spark["web"], "io.ops[process]", interval_ns=SECOND)
    assert answer == answer_of(fleet.local["web"], "io.ops[process]", interval_ns=SECOND)
