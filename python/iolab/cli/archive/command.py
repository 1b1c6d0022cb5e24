# SPDX-License-Identifier: Apache-2.0
"""`iolab archive`: recordings as Iceberg tables, which other engines read as well."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.archives import label_option, parse_labels, tell_table
from ..base.options import PATH, bytes_of, format_option, output_option
from ..base.output import on_terminal, redraw, say, tell, tell_json
from ..study.progress import count_text
from .outliers import outliers

if TYPE_CHECKING:
    from iolab.recordings.archive import ArchivedRecording, Pushed
    from iolab.recordings.archive.maintenance import Compacted, Expired
    from iolab.recordings.archive.retention import Removed

_URL = "ARCHIVE"
LOCK_S = 120.0
"""Time for which the push of a recorder waits for another one."""


@click.group("archive")
def command() -> None:
    """Push recordings into an archive of Apache Iceberg tables, and fetch spans of time from it.

    ARCHIVE is a directory, s3://bucket/prefix, or catalog:NAME for a catalog of PyIceberg's
    configuration (REST, SQL, Hive, Glue). Needs the extra: pip install 'iolab[archive]', for S3
    'iolab[archive-s3]'. iolab query and heatmap take archive:ARCHIVE.
    """


@command.command()
@click.argument("path", metavar="RECORDING|RESULTS", type=PATH)
@click.argument("url", metavar=_URL)
@click.option(
    "--every",
    metavar="DURATION",
    help="Push again and again with this pause, until Ctrl-C. A failed push is retried.",
)
@label_option
@click.option(
    "--until-closed",
    is_flag=True,
    hidden=True,
    help="With --every: make a last push and end when standard input is closed; ignore signals.",
)
@format_option("text", "json")
def push(
    path: Path,
    url: str,
    every: str | None,
    labels: tuple[str, ...],
    until_closed: bool,
    style: str,
) -> None:
    """Push the sealed segments of a recording: events, samples, segment maps, losses, marks. Kept
    statistics are pushed as well.

    Only what the archive lacks is pushed. A push that was interrupted is completed by the next one,
    and each row arrives exactly once. Of results: their observations, and their recordings.
    """
    from iolab.base.errors import ResultsError, UsageError
    from iolab.recordings.archive.upload.continuous import ContinuousPush
    from iolab.recordings.ask.kept.archiving import kept_statistics
    from iolab.recordings.ask.language.quantities import parse_duration

    from .results import is_results, push_results

    def draw(done: int, total: int) -> None:
        if on_terminal():
            redraw("" if done == total else f"pushing: {done} of {total} files")

    pause = None if every is None else parse_duration(every) / 1e9
    labels_of_host = parse_labels(labels)
    if is_results(path):
        if pause is not None:
            raise UsageError("is for recordings", where="--every", hint="push results at their end")
        if labels:
            raise UsageError("is for recordings", where="--label", hint="push a recording with it")
        push_results(path, url, style, lambda place, done: _tell_pushed(place, url, done, style))
        return
    # the push of a recorder that was killed may still be at work
    wait_s = LOCK_S if until_closed else 0.0
    pushes = ContinuousPush(
        path, url, draw, wait_s=wait_s, labels=labels_of_host, kept=kept_statistics
    )
    if until_closed:
        _leave_signals_to_recorder()
    is_last = pause is None
    while True:
        try:
            pushed = pushes.step(is_last=is_last)
            if pushed is not None:
                _tell_pushed(path, url, pushed, style)
        except ResultsError as error:
            if is_last:
                raise
            say(f"iolab: {error}; the next try is in {every}")
        if is_last:
            return
        is_last = _wait(pause or 0.0, until_closed)


def _leave_signals_to_recorder() -> None:
    """Ctrl-C and the end of a service reach all processes: the recorder closes standard input when
    its last segment is sealed."""
    import os
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # the measured load goes first
    os.nice(5)


def _wait(pause: float, until_closed: bool) -> bool:
    """Wait for a pause in seconds; whether standard input was closed meanwhile."""
    if not until_closed:
        time.sleep(pause)
        return False
    import select
    import sys

    readable, _, _ = select.select([sys.stdin], [], [], pause)
    return bool(readable)


def _tell_pushed(path: Path, url: str, pushed: Pushed, style: str) -> None:
    if style == "json":
        tell_json({"schema": 1, "archive": url, "path": str(path), **asdict(pushed)})
        return
    tell(
        f"{path}: pushed {pushed.events:,} I/Os and {pushed.samples:,} samples of {count_text(pushed.files, 'file')} "
        f"({pushed.bytes:,} bytes) as recording {pushed.recording}; archived before: {count_text(pushed.present, 'file')}"
    )
    if pushed.rollups:
        tell(f"{path}: pushed {count_text(pushed.rollups, 'row')} of kept statistics")
    if pushed.behind:
        say(f"note: {pushed.behind:,} rows are not sealed yet; push again")
    for name, reason in pushed.refused.items():
        say(f"note: {name} is not archived: {reason}")


@command.command("list")
@click.argument("url", metavar=_URL)
@format_option("text", "json")
def list_(url: str, style: str) -> None:
    """List the recordings of an archive: host, span, I/Os, and how far they are archived."""
    from iolab.recordings.archive import Archive

    recordings = Archive.open(url).recordings()
    if style == "json":
        tell_json(
            {"schema": 1, "archive": url, "recordings": [asdict(item) for item in recordings]}
        )
        return
    if not recordings:
        say("the archive is empty")
        return
    rows: list[tuple[str, ...]] = [
        ("host", "labels", "recording", "from", "archived until", "I/Os", "samples", "segments")
    ]
    rows += [_row(recording) for recording in recordings]
    if not any(recording.labels for recording in recordings):
        rows = [(row[0], *row[2:]) for row in rows]
    tell_table(rows, left=len(rows[0]) - 3)


def _row(recording: ArchivedRecording) -> tuple[str, ...]:
    return (
        recording.host or "-",
        ",".join(f"{name}={value}" for name, value in sorted(recording.labels.items())) or "-",
        recording.recording,
        _moment(recording.first_ns, recording.clock),
        _moment(recording.until_ns, recording.clock),
        f"{recording.events:,}",
        f"{recording.samples:,}",
        f"{recording.segments:,}",
    )


def _moment(time_ns: int | None, clock: str) -> str:
    """UTC to the second, or seconds of a clock that is not the time of day."""
    from datetime import UTC, datetime

    if time_ns is None:
        return "-"
    if clock != "realtime":
        return f"{time_ns / 1e9:.3f} s"
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(time_ns)


@command.command()
@click.argument("url", metavar=f"{_URL}|RECORDING")
@format_option("text", "json")
def status(url: str, style: str) -> None:
    """Show how far an archive is behind its recordings, and the size of its tables.

    Of a recording that is pushed: what its archive lacks, and why the last push failed. The store
    is not asked.
    """
    from iolab.recordings.archive import Archive
    from iolab.recordings.store.base.layout import is_recording

    if is_recording(Path(url)):
        _tell_progress(Path(url), style)
        return
    archive = Archive.open(url)
    sizes, recordings = archive.size(), archive.recordings()
    behind = archive.rows_behind()
    if style == "json":
        tables: dict[str, Any] = {
            name: {"rows": rows, "files": files, "bytes": size}
            for name, (rows, files, size) in sizes.items()
        }
        lags = [
            {
                "host": item.host,
                "recording": item.recording,
                "until_ns": item.until_ns,
                "pushed_ns": item.pushed_ns,
                "behind": behind.get(item.recording, 0),
            }
            for item in recordings
        ]
        tell_json({"schema": 1, "archive": url, "tables": tables, "recordings": lags})
        return
    lines = [("table", "rows", "files", "bytes", "bytes/row")]
    lines += [
        (name, f"{rows:,}", f"{files:,}", f"{size:,}", f"{size / rows:.1f}" if rows else "-")
        for name, (rows, files, size) in sizes.items()
    ]
    tell_table(lines, left=1)
    if not recordings:
        return
    tell("")
    rows_of_hosts: list[tuple[str, ...]] = [
        ("host", "recording", "archived until", "last push", "rows behind")
    ]
    rows_of_hosts += [
        (
            item.host or "-",
            item.recording,
            _moment(item.until_ns, item.clock),
            _moment(item.pushed_ns, "realtime"),
            f"{behind.get(item.recording, 0):,}",
        )
        for item in recordings
    ]
    tell_table(rows_of_hosts, left=4)


def _tell_progress(path: Path, style: str) -> None:
    """Print how far the archive of a recording is behind it."""
    from iolab.base.errors import ResultsError
    from iolab.base.untrusted_text import visible
    from iolab.recordings.archive.upload.progress import read_progress

    from ..record.words import lasting

    progress = read_progress(path)
    if progress is None:
        raise ResultsError(
            "was not pushed into an archive",
            where=path,
            hint=f"iolab archive push {path} {_URL}",
        )
    behind_s = progress.behind_s(time.time_ns())
    if style == "json":
        tell_json({**progress.as_data(), "behind_s": behind_s})
        return
    last = _moment(progress.pushed_ns, "realtime") if progress.pushed_ns else "never"
    tell(f"{path}: archive {visible(progress.archive)}, last push {last}")
    if progress.rows:
        tell(
            f"not archived: {progress.rows:,} rows, {progress.bytes:,} bytes sealed; "
            f"the first is {lasting(int(behind_s))} old"
        )
    else:
        tell("everything is archived")
    if progress.deleted:
        tell(f"deleted before they were archived: {count_text(progress.deleted, 'segment')}")
    if progress.error:
        tell(f"the last attempt failed: {visible(progress.error)}")


@command.command("compact")
@click.argument("url", metavar=_URL)
@click.option("--size", default="32MiB", show_default=True, help="Join files up to this size.")
@format_option("text", "json")
def compact_(url: str, size: str, style: str) -> None:
    """Join small data files of the same day, source and host.

    Rows and answers remain, and questions open fewer files. The joined files stay until 'iolab
    archive expire' deletes them. About 30 times the size is needed as memory.
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.archive import Archive, compact

    target = bytes_of(size, "--size")
    if target < 1 << 10:
        raise UsageError("is too small", where=f"--size {size}", hint="such as 32MiB")
    archive = Archive.open(url)

    def draw(done: int, total: int) -> None:
        if on_terminal():
            redraw("" if done == total else f"compacting: {done} of {total} groups of files")

    _tell_maintenance(url, compact(archive, target, draw), style)


@command.command("expire")
@click.argument("url", metavar=_URL)
@click.option(
    "--older-than",
    "age",
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="Delete snapshots of this age. Readers and pushes that take longer fail.",
)
@click.option(
    "--for",
    "ages",
    metavar="TIER=TIME",
    multiple=True,
    help="How long rows stay: events=7d (with samples), maps=90d, kept statistics 1s=7d, 1m=30d, 1h=365d; "
    "repeatable. Default: all stay.",
)
@format_option("text", "json")
def expire_(url: str, age: str, ages: tuple[str, ...], style: str) -> None:
    """Delete old rows, old snapshots of the tables, and the files that only these have.

    With --for, rows of a tier are deleted once they are older. The oldest segments are deleted
    first, as in a recording. Segment maps and kept statistics then answer for old events. The data files are deleted
    with the snapshots that have them: at this age, by a later call. Kept statistics of which a merged
    file was archived since are deleted in any case.
    """
    from iolab.base.errors import UsageError
    from iolab.recordings.archive import Archive, delete_by_age, delete_replaced, expire
    from iolab.recordings.archive.retention import Removed, check_ages
    from iolab.recordings.ask.language.quantities import parse_duration

    age_ns = parse_duration(age)
    ages_ns: dict[str, int] = {}
    for words in ages:
        tier, sign, length = words.partition("=")
        if not sign:
            raise UsageError("is no age", where=f"--for {words}", hint="such as events=7d")
        ages_ns[tier.strip()] = parse_duration(length)
    check_ages(ages_ns)
    archive = Archive.open(url)

    def draw(done: int, total: int) -> None:
        if on_terminal():
            redraw("" if done == total else f"deleting rows: {done} of {total} files")

    removed = delete_by_age(archive, ages_ns, progress=draw) if ages_ns else {}
    for table, parts in delete_replaced(archive).items():
        before = removed.get(table, Removed())
        removed[table] = replace(before, rows=before.rows + parts.rows)
    expired = expire(archive, age_ns)
    if style == "json":
        _tell_maintenance(url, expired, style, removed)
        return
    if removed:
        _tell_maintenance(url, removed, style)
        tell("")
    _tell_maintenance(url, expired, style)


def _tell_maintenance(
    url: str,
    tables: Mapping[str, Compacted] | Mapping[str, Expired] | Mapping[str, Removed],
    style: str,
    removed: Mapping[str, Removed] | None = None,
) -> None:
    """Print what was done, by table. removed: what age deleted, for JSON."""
    data = {name: asdict(item) for name, item in tables.items()}
    if style == "json":
        deleted = {name: asdict(item) for name, item in (removed or {}).items()}
        more = {} if removed is None else {"deleted": deleted}
        tell_json({"schema": 1, "archive": url, "tables": data, **more})
        return
    names = list(next(iter(data.values())))
    rows = [("table", *(name.replace("_", " ") for name in names))]
    rows += [(name, *(f"{item[key]:,}" for key in names)) for name, item in data.items()]
    tell_table(rows, left=1)


@command.command("fetch")
@click.argument("url", metavar=_URL)
@click.option("--host", help="Fetch of this host.")
@click.option("--recording", metavar="KEY", help="Fetch this recording, by the start of its key.")
@click.option("--from", "start", metavar="TIME", help="Fetch from here, as in iolab query.")
@click.option("--to", "end", metavar="TIME", help="Fetch until here, as in iolab query.")
@click.option("--source", "sources", metavar="NAME", multiple=True, help="Fetch only this source.")
@output_option("Directory of the new recording.")
def fetch_(
    url: str,
    host: str | None,
    recording: str | None,
    start: str | None,
    end: str | None,
    sources: tuple[str, ...],
    output: Path,
) -> None:
    """Fetch a span of time of one recording into a recording of its own.

    Every other command reads it: query, heatmap, view, keep. Data files of other days, sources and
    hosts are not read.
    """
    from iolab.recordings.archive import Archive, choose, fetch
    from iolab.recordings.ask.language.quantities import parse_moment

    archive = Archive.open(url)
    archived = choose(archive, host, recording)
    ends = archived.first_ns or 0, archived.until_ns or 0
    fetched = fetch(
        archive,
        output,
        archived,
        from_ns=None if start is None else parse_moment(start, *ends),
        until_ns=None if end is None else parse_moment(end, *ends),
        sources=sources,
        progress=lambda rows: redraw(f"fetching: {rows:,} rows") if on_terminal() else None,
    )
    if on_terminal():
        redraw("")
    tell(
        f"{output}: {fetched.events:,} I/Os and {fetched.samples:,} samples of recording {archived.recording} "
        f"of host {archived.host or '-'}"
    )


command.add_command(outliers)
