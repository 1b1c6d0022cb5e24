# SPDX-License-Identifier: Apache-2.0
"""`iolab archive outliers`: hosts by how much they differ from the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..base.archives import engine_option, tell_table
from ..base.options import format_option
from ..base.output import say, tell_json

if TYPE_CHECKING:
    from iolab.recordings.ask.outliers import HostDistance
    from iolab.recordings.store.base.counts import HeatCounts, Y
    from iolab.recordings.store.read.recording import Recording


@click.command()
@click.argument("url", metavar="ARCHIVE")
@click.argument("statistic", default="io.ops[latency]")
@click.option("--from", "start", metavar="TIME", help="Compare from here, as in iolab query.")
@click.option("--to", "end", metavar="TIME", help="Compare until here, as in iolab query.")
@click.option("--source", metavar="NAME", help="What answers, as in iolab query.")
@click.option(
    "--within", metavar="LABEL", help="Compare with hosts of the same value only, such as rack."
)
@engine_option
@format_option("text", "json")
def outliers(
    url: str,
    statistic: str,
    start: str | None,
    end: str | None,
    source: str | None,
    within: str | None,
    style: str,
) -> None:
    """Rank hosts by how much their distribution differs from that of all others.

    ARCHIVE may be a folder of recordings too. STATISTIC is a map: io.ops[latency],
    io.ops[op=read][size]. The distance is the largest difference of the cumulative shares: 0 for
    equal distributions, 1 without a common value.
    """
    from iolab.recordings.ask.fleet import HOST, FleetStatistic, ask_fleet, labels_of
    from iolab.recordings.store.base.counts import HeatCounts
    from iolab.recordings.store.read.folder import has_recordings

    from ..base.archives import Fleet, open_archive, open_fleet
    from ..base.spans import span_of
    from ..query.who import map_of

    is_local = has_recordings(Path(url))
    fleet = open_fleet(Path(url)) if is_local else Fleet(url, open_archive(url))
    for note in fleet.notes:
        say(f"note: {note}")
    opened = fleet.recordings
    question = FleetStatistic.parse(statistic, labels_of(opened))
    y = map_of(question.statistic, "an outlier")
    recordings = question.select(opened)
    _check_label(within, recordings)
    from_ns, until_ns = span_of(recordings, start, end)
    answers = ask_fleet(
        recordings,
        FleetStatistic(question.statistic, by=HOST),
        from_ns=from_ns,
        until_ns=until_ns,
        columns=2,
        source=source,
    )
    assert isinstance(answers, dict)
    maps = {host: counts for host, counts in answers.items() if isinstance(counts, HeatCounts)}
    ranked = list(_rank(maps, recordings, within))
    ranked.sort(key=lambda pair: (-pair[1].distance, pair[1].host))
    if style == "json":
        hosts = [
            asdict(item) | ({} if within is None else {within: value}) for value, item in ranked
        ]
        tell_json(
            {"schema": 1, "archive": url, "statistic": str(question.statistic), "hosts": hosts}
        )
        return
    tell_table(_rows(ranked, y, within), left=1 if within is None else 2)


def _check_label(label: str | None, recordings: Sequence[Recording]) -> None:
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.fleet import labels_of
    from iolab.recordings.ask.language.fields import near

    labels = labels_of(recordings)
    if label is not None and label not in labels:
        hint = near(label, labels) if labels else "iolab archive push --label sets one"
        raise UsageError(f"no host has the label '{label}'", where="--within", hint=hint)


def _rank(
    maps: Mapping[str, HeatCounts], recordings: Sequence[Recording], label: str | None
) -> Iterator[tuple[str, HostDistance]]:
    """(value of the label, distance) of each host; "" without a label. UsageError where no host can
    be compared."""
    from iolab.base.errors import UsageError
    from iolab.recordings.ask.fleet import HOST, value_of
    from iolab.recordings.ask.outliers import rank_hosts

    if label is None:
        yield from (("", item) for item in rank_hosts(maps))
        return
    groups: dict[str, dict[str, HeatCounts]] = {}
    for recording in recordings:
        host = value_of(recording, HOST)
        if host in maps:
            groups.setdefault(value_of(recording, label), {})[host] = maps[host]
    comparable = {
        value: group
        for value, group in groups.items()
        if sum(bool(len(counts.count)) for counts in group.values()) > 1
    }
    if not comparable:
        raise UsageError(
            f"no two hosts have the same {label}", where="--within", hint="leave --within out"
        )
    for value in sorted(groups.keys() - comparable.keys()):
        say(f"note: {label} {value} has one host: it is left out")
    for value, group in comparable.items():
        yield from ((value, item) for item in rank_hosts(group))


def _rows(
    ranked: Sequence[tuple[str, HostDistance]], y: Y, label: str | None
) -> list[tuple[str, ...]]:
    """Lines of the table."""
    from iolab.recordings.heatmap.ticks import quantity
    from iolab.recordings.store.base.counts import UNITS

    def text(amount: int | None) -> str:
        return "-" if amount is None else quantity(amount, UNITS[y])

    first = ("host",) if label is None else ("host", label)
    rows: list[tuple[str, ...]] = [
        (*first, "I/Os", "distance", "p50", "p50 others", "p99", "p99 others")
    ]
    rows += [
        (
            item.host,
            *(() if label is None else (value,)),
            f"{item.ios:,}",
            f"{item.distance:.3f}",
            *(
                text(amount)
                for pair in zip(item.quantiles, item.others, strict=True)
                for amount in pair
            ),
        )
        for value, item in ranked
    ]
    return rows
