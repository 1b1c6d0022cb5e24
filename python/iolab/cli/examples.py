# SPDX-License-Identifier: Apache-2.0
"""The end of each command's help: examples, and the document that describes it. Tests parse every
example with the command's own parser."""

from __future__ import annotations

from pathlib import Path

import click

from .base.installation import find_shipped

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "run": (
        ("run a study; the results go to results/quickstart", "iolab run studies/quickstart.toml"),
        (
            "show what it would do, and check that it can",
            "iolab run studies/quickstart.toml --dry-run",
        ),
        (
            "continue a study that was interrupted",
            "iolab run studies/quickstart.toml --resume -o results/quickstart",
        ),
    ),
    "ab": (
        (
            "compare OpenZFS with and without a patch, in minutes",
            "sudo iolab ab --study studies/openzfs-447-pools.toml --reduced --build old=2.3 "
            "--build new=2.3+fix.patch",
        ),
        (
            "continue where it was interrupted",
            "sudo iolab ab --resume -o results/ab-openzfs-447-pools",
        ),
    ),
    "record": (
        ("record all disks until Ctrl-C", "sudo iolab record -o rec"),
        (
            "record file I/O of one file system while a command runs",
            "sudo iolab record syscall --fs /srv -o rec -- tar -cf /srv/a.tar /etc",
        ),
        (
            "record one disk of another machine for a minute",
            "iolab record block --device sda --host root@server --duration 1min -o rec",
        ),
        (
            "record the operations of the NFS server, by client",
            "sudo iolab record nfs --duration 1min -o rec",
        ),
    ),
    "live": (
        ("watch all disks in a browser", "sudo iolab live"),
        ("watch two machines on one page", "iolab live --host root@db1 --host root@db2 -o fleet"),
        ("watch files and disks of one file system", "sudo iolab live block syscall --fs /srv"),
    ),
    "import": (
        (
            "import a directory of fio results; the layout is inferred",
            "iolab import fio-results -o results/mine",
        ),
        (
            "name the parts of the paths",
            "iolab import fio-results -o results/mine --layout '{variant}/{rw}-{iodepth:int}.json'",
        ),
        ("import a trace as a recording", "iolab import biosnoop.txt -o rec"),
    ),
    "show": (
        ("runs, verdicts and metrics of results", "iolab show results/mine"),
        ("a line for each run", "iolab show results/mine --runs"),
        ("what a recording holds, for a program", "iolab show rec --format json"),
    ),
    "compare": (
        ("compare every variant with the baseline", "iolab compare results/mine"),
        (
            "compare one metric, as CSV",
            "iolab compare results/mine --metric write.clat.p99 --format csv",
        ),
        ("compare two fio results", "iolab compare before.json after.json"),
        ("compare two results directories", "iolab compare results/monday results/tuesday"),
        (
            "compare two recordings, such as before and after an upgrade",
            "iolab compare before after",
        ),
    ),
    "check": (
        (
            "fail where a variant writes more than 5 % fewer IOPS than the baseline",
            "iolab check results/mine --rule 'write.iops >= -5 %'",
        ),
        (
            "check three results against three of the old version, measured in turn",
            "iolab check new1 new2 new3 --against old1 --against old2 --against old3 "
            "--rule 'write.iops >= -5 %' --rule 'write.clat.p99 <= +10 %' --format junit",
        ),
        (
            "check tonight's results against the history in ./history",
            "iolab check results/tonight --history history --rule 'write.iops >= -5 %'",
        ),
    ),
    "history": (
        (
            "add the results of a commit to the history in ./history",
            "iolab history add results/nightly --revision 1a2b3c4 --tag kernel=6.12.4",
        ),
        ("show what changed, and since when", "iolab history show --metric write.iops"),
        ("every value, for other programs", "iolab history show --format csv"),
    ),
    "history add": (
        (
            "add the results of a commit to the history in ./history",
            "iolab history add results/nightly --revision 1a2b3c4 --tag kernel=6.12.4",
        ),
    ),
    "history bisect": (
        (
            "find the commit after v1.0 that costs more than 5 % of the writes",
            "iolab history bisect v1.0 --build make --study studies/mine.toml --rule 'write.iops >= -5 %'",
        ),
    ),
    "history list": (("list its results", "iolab history list"),),
    "history show": (
        ("show what changed, and since when", "iolab history show --metric write.iops"),
        ("a part of the cells", "iolab history show --where numjobs=8,16"),
    ),
    "history rebuild": (("rebuild its index from the results", "iolab history rebuild"),),
    "report": (
        ("write one HTML file", "iolab report results/mine -o report.html"),
        ("write each chart as SVG with its numbers", "iolab report results/mine --charts charts"),
    ),
    "heatmap": (
        ("latency over time, in the terminal", "iolab heatmap rec"),
        (
            "offsets of writes, as a picture",
            "iolab heatmap rec --y offset --where op=write -o offsets.png",
        ),
        ("two recordings on one scale", "iolab heatmap after --against before -o difference.html"),
    ),
    "query": (
        ("I/Os per second", "iolab query rec io.ops"),
        (
            "bytes written each second, by process",
            "iolab query rec 'io.bytes[op=write][process]' --interval 1s",
        ),
    ),
    "who": (
        ("find who issued the slowest percent of the I/Os", "iolab who rec"),
        (
            "find who issued the reads of 10 ms or more",
            "iolab who rec 'io.ops[op=read][latency]' --range 10ms..",
        ),
    ),
    "ios": (
        ("list the 20 slowest I/Os", "iolab ios rec --slowest 20"),
        ("list writes of one process by time", "iolab ios rec 'io.ops[op=write][process=dd]'"),
    ),
    "odd": (
        ("what changed in the last ten minutes", "iolab odd rec"),
        (
            "the last minute, compared with a quiet time",
            "iolab odd rec --from -1min --against 0s..5min",
        ),
    ),
    "view": (
        ("show a recording in a browser", "iolab view rec"),
        ("serve several on a fixed port", "iolab view before after --port 8750"),
    ),
    "archive": (
        ("push what is sealed of a recording", "iolab archive push rec /srv/archive"),
        ("list what is archived", "iolab archive list /srv/archive"),
    ),
    "archive push": (
        ("push every minute while it grows", "iolab archive push rec /srv/archive --every 1min"),
        (
            "push into an object store by PyIceberg's catalog 'lab'",
            "iolab archive push rec catalog:lab",
        ),
    ),
    "archive list": (("list what is archived", "iolab archive list /srv/archive"),),
    "archive status": (
        ("show rows, files and bytes of each table", "iolab archive status /srv/archive"),
    ),
    "archive fetch": (
        (
            "fetch the last hour of one host and query it",
            "iolab archive fetch /srv/archive --host db1 --from -1h -o db1-hour",
        ),
    ),
    "archive compact": (("join small files of all tables", "iolab archive compact /srv/archive"),),
    "archive expire": (
        ("delete snapshots older than a week", "iolab archive expire /srv/archive --older-than 7d"),
    ),
    "archive outliers": (
        (
            "rank hosts by latency of the last hour",
            "iolab archive outliers /srv/archive --from -1h",
        ),
        (
            "rank hosts by size of their reads",
            "iolab archive outliers /srv/archive 'io.ops[op=read][size]'",
        ),
    ),
    "keep": (
        ("list what is kept", "iolab keep list rec"),
        ("keep a statistic from now on", "iolab keep add rec 'io.ops[latency]'"),
    ),
    "keep list": (("list what is kept", "iolab keep list rec"),),
    "keep add": (
        ("keep latency of one process", "iolab keep add rec 'io.ops[process=postgres][latency]'"),
    ),
    "keep pause": (("pause one statistic", "iolab keep pause rec 'io.ops[latency]'"),),
    "keep resume": (("resume all", "iolab keep resume rec"),),
    "keep drop": (("delete a statistic and its data", "iolab keep drop rec 'io.ops[latency]'"),),
    "keep prune": (("delete what is older than 30 days", "iolab keep prune rec --before -30d"),),
    "keep limits": (("show the limits", "iolab keep limits rec"),),
    "verify": (
        ("check every file of results or of a recording", "iolab verify rec"),
        ("rebuild damaged caches and maps", "iolab verify rec --repair"),
    ),
    "rig": (
        ("build a rig, start a machine and run a study on it", "sudo iolab rig build openzfs"),
        ("", "sudo iolab rig up openzfs --name lab --disks 4"),
        ("", "iolab run studies/openzfs-447-pools.toml --host rig:lab"),
    ),
    "rig build": (
        ("build a rig, or continue an interrupted build", "sudo iolab rig build openzfs"),
        (
            "build OpenZFS on a machine of your own",
            "iolab rig build --host root@zeno1 --build new=~/src/zfs+fix.patch",
        ),
    ),
    "rig check": (("check whether a rig is built", "iolab rig check openzfs"),),
    "rig builds": (
        ("list the builds of a rig", "iolab rig builds openzfs"),
        ("delete a build on a machine", "iolab rig builds --host root@zeno1 --delete new"),
    ),
    "rig kernels": (("list the kernels of a rig", "iolab rig kernels openzfs"),),
    "rig up": (
        (
            "start a machine with four slow disks",
            "sudo iolab rig up openzfs --name lab --disks 4 --disk-iops 170",
        ),
        (
            "start two clients in the private network of a server",
            "iolab rig up openzfs --name client --count 2 --network lab --disks 0",
        ),
    ),
    "rig list": (("list the machines", "iolab rig list"),),
    "rig ssh": (("run a command in a machine", "iolab rig ssh lab -- zpool status"),),
    "rig down": (("stop a machine and delete its disks", "iolab rig down lab"),),
    "doctor": (
        ("what this machine can do", "iolab doctor"),
        ("remove what a killed recorder left", "sudo iolab doctor --clean"),
    ),
    "completion": (
        (
            "print the script; bash reads it from ~/.local/share/bash-completion/completions/iolab",
            "iolab completion bash",
        ),
        ("fish reads it from ~/.config/fish/completions/iolab.fish", "iolab completion fish"),
    ),
    "catalog": (
        ("list the terms and what they mean", "iolab catalog glossary"),
        ("list the metrics", "iolab catalog metrics"),
        ("list what can be asked of a recording", "iolab catalog statistics rec"),
    ),
}
"""Command to its examples: (what it does, the command line)."""

DOCUMENTS = {
    "run": "docs/reference/study.md",
    "record": "docs/guides/recording.md",
    "live": "docs/guides/live.md",
    "import": "docs/guides/importing.md",
    "show": "docs/reference/results.md",
    "compare": "docs/method/comparison.md",
    "check": "docs/method/check.md",
    "history": "docs/method/history.md",
    "report": "docs/reference/charts.md",
    "heatmap": "docs/guides/heatmaps.md",
    "query": "docs/reference/statistics.md",
    "odd": "docs/guides/oddities.md",
    "view": "docs/guides/worksheet.md",
    "keep": "docs/guides/keeping.md",
    "verify": "docs/reference/recordings.md",
    "rig": "docs/guides/rigs.md",
    "catalog": "docs/reference/glossary.md",
    "archive": "docs/guides/archive.md",
}
"""Command to the document that describes it, as `iolab catalog documents` names it."""

_HEADING = "\b\nExamples:\n"


def add_examples(command: click.Command, name: str) -> None:
    """Append the examples of a command and the path of its document, and the examples of its
    subcommands, to their help."""
    if command.epilog and _HEADING in command.epilog:
        return
    lines = [
        line
        for what, example in EXAMPLES.get(name, ())
        for line in ([f"  # {what}"] if what else []) + [f"  {example}"]
    ]
    parts = [command.epilog] if command.epilog else []
    if lines:
        # a line of \b alone keeps click from joining the lines
        parts.append(_HEADING + "\n".join(lines))
    document = find_shipped(Path(DOCUMENTS[name])) if name in DOCUMENTS else None
    if document is not None:
        parts.append(f"\b\nDocumentation:\n  {document}")
    command.epilog = "\n\n".join(parts)
    for word, below in getattr(command, "commands", {}).items():
        add_examples(below, f"{name} {word}")
