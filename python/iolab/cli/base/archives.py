# SPDX-License-Identifier: Apache-2.0
"""Archives (`archive:URL`) and folders of recordings as paths of the commands that ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolab.base.untrusted_text import json_text, visible

from .options import Decorated
from .output import say, tell, tell_as

if TYPE_CHECKING:
    from iolab.recordings.archive.recordings import ArchivedEvents
    from iolab.recordings.archive.spark import Cluster
    from iolab.recordings.ask.answers.answers import Answer
    from iolab.recordings.ask.fleet import FleetStatistic
    from iolab.recordings.ask.question import Question
    from iolab.recordings.store.read.recording import Recording

_ENGINE = "iolab.engine"
DRAWN = 10
"""Hosts of which an answer is printed, unless asked otherwise."""


def archive_url(path: Path) -> str | None:
    """The archive that a path names; None for any other path."""
    text = str(path)
    if not text.startswith("archive:"):
        return None
    from iolab.recordings.archive.address import url_of

    return url_of(text)


@dataclass(frozen=True)
class Fleet:
    """The recordings that a path names. name: of the path. notes: about all answers."""

    name: str
    recordings: Sequence[Recording]
    notes: tuple[str, ...] = ()


def is_fleet(path: Path) -> bool:
    """Whether a path names recordings that are asked as one: an archive, or a folder of them."""
    from iolab.recordings.store.read.folder import is_folder

    return archive_url(path) is not None or is_folder(path)


def open_fleet(path: Path) -> Fleet:
    """The recordings of an archive or a folder. UsageError or FormatError where there is none, and for
    an engine that is named for a folder."""
    from iolab.recordings.store.read.folder import open_folder

    url = archive_url(path)
    if url is not None:
        return Fleet(url, open_archive(url))
    refuse_engine(path)
    folder = open_folder(path)
    return Fleet(str(path), folder.recordings, folder.notes)


def engine_option(function: Decorated) -> Decorated:
    """`--engine`: what reads the events and maps of an archive."""

    def remember(context: click.Context, option: click.Parameter, engine: str | None) -> None:
        if engine is not None:
            context.meta[_ENGINE] = engine

    return click.option(
        "--engine",
        metavar="ENGINE",
        callback=remember,
        expose_value=False,
        help="What reads an archive: duckdb (default, in this process), spark://HOST:PORT or sc://HOST:PORT.",
    )(function)


def refuse_engine(path: Path) -> None:
    """UsageError where an engine is named for something that is no archive."""
    from iolab.base.errors import UsageError

    if _ENGINE in click.get_current_context().meta:
        raise UsageError("--engine is for archives", where=path, hint="archive:URL names one")


def _cluster() -> Cluster | None:
    """The cluster that the command names; None: DuckDB reads."""
    from iolab.recordings.archive.spark import Cluster

    engine = click.get_current_context().meta.get(_ENGINE, "duckdb")
    return None if engine == "duckdb" else Cluster.connect(engine)


def label_option(function: Decorated) -> Decorated:
    """`--label`: labels of the host in an archive."""
    return click.option(
        "--label",
        "labels",
        metavar="NAME=VALUE",
        multiple=True,
        help="A label of the host in the archive, such as rack=r1; without a value it is removed. Repeatable.",
    )(function)


def parse_labels(words: Sequence[str]) -> dict[str, str]:
    """Values of `--label` by name. UsageError where a name can't be used."""
    from iolab.base.errors import UsageError
    from iolab.recordings.archive.labels import parse_label
    from iolab.recordings.ask.fleet import HOST
    from iolab.recordings.ask.language.fields import ANY

    labels = dict(map(parse_label, words))
    for name in labels:
        if name == HOST or name in ANY:
            raise UsageError(
                f"'{name}' is a field of statistics", where="--label", hint="choose another name"
            )
    return labels


HostConditions = Mapping[str, Sequence[str]]
"""Values of hosts by field: `host`, or a label."""


def split_hosts(
    where: Sequence[str], paths: Sequence[Path]
) -> tuple[dict[str, list[str]], list[str]]:
    """(conditions of `iolab heatmap --where` on hosts, the other conditions). Where a path names an
    archive, a field that events do not have is a label of its hosts."""
    from iolab.recordings.ask.language.fields import ANY, TIME

    has_archive = any(archive_url(path) is not None for path in paths)
    hosts: dict[str, list[str]] = {}
    remaining: list[str] = []
    for text in where:
        kept = []
        field = ""
        for condition in text.split(","):
            name, sign, value = (part.strip() for part in condition.partition("="))
            # a part without a sign is one more choice for the field before it
            if re.search("[=<>]", condition):
                is_label = has_archive and name.isidentifier() and name not in {*ANY, TIME.name}
                field = name if sign and (name == "host" or is_label) else ""
                condition = value if field else condition
            if field:
                hosts.setdefault(field, []).append(condition.strip())
            else:
                kept.append(condition)
        if kept:
            remaining.append(",".join(kept))
    return hosts, remaining


def open_archive(url: str) -> list[ArchivedEvents]:
    """The recordings of an archive that hold anything. UsageError where there is none."""
    from iolab.base.errors import UsageError
    from iolab.recordings.archive import Archive
    from iolab.recordings.archive.recordings import open_recordings

    archive = Archive.open(url)
    recordings = [item for item in archive.recordings() if item.events or item.samples]
    if not recordings:
        raise UsageError("the archive is empty", where=url, hint="iolab archive push fills it")
    return open_recordings(archive, recordings, _cluster())


def open_hosts(path: Path, hosts: HostConditions) -> Fleet:
    """The recordings with events that a path names, of hosts that meet all conditions. UsageError
    where there is none."""
    from iolab.base.errors import UsageError
    from iolab.recordings.archive.recordings import ArchivedEvents
    from iolab.recordings.ask.fleet import FleetStatistic, HostCondition
    from iolab.recordings.ask.question import parse

    conditions = [HostCondition(field, "=", tuple(values)) for field, values in hosts.items()]
    question = FleetStatistic(parse("io.ops"), tuple(conditions))
    fleet = open_fleet(path)
    selected = [
        item
        for item in question.select(fleet.recordings)
        if not isinstance(item, ArchivedEvents) or item.archived.events
    ]
    if not selected:
        raise UsageError("the archive has no events", where=fleet.name)
    return replace(fleet, recordings=selected)


@dataclass(frozen=True)
class QueryOptions:
    """The options of `iolab query` that apply to any number of recordings."""

    start: str | None
    end: str | None
    interval: str | None
    style: str
    top: int | None
    source: str | None
    explain: bool

    def interval_ns(self) -> int | None:
        """Length of a column; UsageError where it is none."""
        from iolab.base.errors import UsageError
        from iolab.recordings.ask.language.quantities import parse_duration

        length = None if self.interval is None else parse_duration(self.interval)
        if length == 0:
            raise UsageError(
                "an interval is longer than nothing", where="--interval", hint="such as 1s"
            )
        return length


def ask(path: Path, text: str, options: QueryOptions, columns: Callable[[str | None], int]) -> None:
    """Answer a statistic of an archive or a folder and print it. columns: how many suit the output
    of a breakdown."""
    from iolab.recordings.ask.fleet import FleetStatistic, ask_fleet, labels_of
    from iolab.recordings.ask.question import Question

    from .spans import span_of

    fleet = open_fleet(path)
    statistic = FleetStatistic.parse(text, labels_of(fleet.recordings))
    recordings = statistic.select(fleet.recordings)
    count = columns(statistic.statistic.breakdown or statistic.by)
    span = span_of(recordings, options.start, options.end)
    for note in fleet.notes:
        say(f"note: {note}")
    interval_ns = options.interval_ns()
    if options.explain:
        question = Question.of(statistic.statistic, span, interval_ns, count, options.source)
        _explain(recordings, question, options.style)
        return
    answer = ask_fleet(
        recordings,
        statistic,
        from_ns=span[0],
        until_ns=span[1],
        interval_ns=interval_ns,
        columns=count,
        source=options.source,
    )
    if isinstance(answer, dict):
        _tell_hosts(statistic, answer, fleet.name, options.style, options.top)
    else:
        _tell(statistic, answer, fleet.name, options.style, options.top)


def _tell(asked: FleetStatistic, answer: Answer, name: str, style: str, top: int | None) -> None:
    from iolab.recordings.store.base.counts import HeatCounts

    from ..query.text import tell_answer

    statistic = asked.statistic if isinstance(answer, HeatCounts) else answer.statistic
    tell_answer(statistic, answer, name, style, top)


def _tell_hosts(
    asked: FleetStatistic, answers: dict[str, Answer], name: str, style: str, top: int | None
) -> None:
    """Print the answer of each host or value of a label, those with the most I/Os first."""
    from iolab.recordings.ask.answers.json_form import as_data, csv_lines
    from iolab.recordings.store.base.counts import HeatCounts

    field = asked.by or "host"

    def size(host: str) -> int:
        answer = answers[host]
        return answer.events if isinstance(answer, HeatCounts) else answer.total

    hosts = sorted(answers, key=lambda host: (-size(host), host))
    if style == "json":
        data = [{field: host, **as_data(asked.statistic, answers[host], top)} for host in hosts]
        text = json_text({"schema": 1, "kind": "hosts", "hosts": data})
        tell_as(style, f"{text}\n")
    elif style == "csv":
        import csv
        import io

        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        for place, host in enumerate(hosts):
            head, *rows = csv.reader(csv_lines(asked.statistic, answers[host], top))
            if not place:
                writer.writerow([field, *head])
            writer.writerows([host, *row] for row in rows)
        tell_as(style, table.getvalue())
    else:
        for host in hosts[: top or DRAWN]:
            _tell(asked, answers[host], f"{name} {host}", style, top)
        if len(hosts) > (top or DRAWN):
            say(f"{len(hosts) - (top or DRAWN)} more; --top N shows more")


def _explain(recordings: Sequence[Recording], question: Question, style: str) -> None:
    from iolab.recordings.ask.fleet import host_of
    from iolab.recordings.ask.query import plan_of

    from ..query.explain import lines

    plans = [(recording, plan_of(recording, question)) for recording in recordings]
    if style == "json":
        data = [
            {"host": host_of(recording), "recording": _key(recording), **plan.as_data()}
            for recording, plan in plans
        ]
        tell_as(style, f"{json_text({'schema': 1, 'kind': 'plans', 'recordings': data})}\n")
        return
    for recording, plan in plans:
        tell(f"{visible(host_of(recording)) or '-'} {visible(_key(recording))}", *lines(plan))


def _key(recording: Recording) -> str:
    """The key of an archived recording, the name of the directory of any other."""
    from iolab.recordings.archive.recordings import ArchivedEvents

    return recording.key if isinstance(recording, ArchivedEvents) else recording.path.name


def tell_table(rows: Sequence[Sequence[str]], left: int) -> None:
    """Rows in columns, the first `left` of them aligned to the left. Names are escaped."""

    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    tell(
        *(
            "  ".join(
                cell.ljust(width) if place < left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )
    )
