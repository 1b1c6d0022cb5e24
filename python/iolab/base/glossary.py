# SPDX-License-Identifier: Apache-2.0
"""The terms of iolab, each with one meaning: `iolab catalog glossary` and
`docs/reference/glossary.md` print them.

Help, messages, titles and documents use these terms in these meanings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One term.

    Attributes:
        name: as a sentence writes it.
        meaning: one sentence.
        symbol: how names of metrics, formulas or tables write it; empty where nothing does.
        unit: base unit of its values (`units.BASE`); None where it is no quantity.
    """

    name: str
    meaning: str
    symbol: str = ""
    unit: str | None = None


SECTIONS: dict[str, tuple[Term, ...]] = {
    "I/O and its measures": (
        Term("I/O", "One read, write, trim, flush or sync request."),
        Term("IOPS", "I/O operations completed per second.", "iops", "1/s"),
        Term("throughput", "Bytes transferred per second.", "bw", "B/s"),
        Term(
            "submission latency",
            "Time that the load generator needs to hand one I/O to the kernel.",
            "slat",
            "s",
        ),
        Term(
            "completion latency",
            "Time from the submission of one I/O to its completion.",
            "clat",
            "s",
        ),
        Term(
            "total latency",
            'Submission latency plus completion latency; "latency" alone means total latency.',
            "lat",
            "s",
        ),
        Term(
            "device latency",
            "Time from the queueing of one I/O at the device to its completion, as iostat's await.",
            "await",
            "s",
        ),
        Term(
            "percentile", "The value that a given share of the I/Os does not exceed.", "p<per cent>"
        ),
        Term("p50", "The latency that half of the I/Os do not exceed: the median.", "p50", "s"),
        Term("p99", "The latency that 99 % of the I/Os do not exceed.", "p99", "s"),
        Term("p99.9", "The latency that 99.9 % of the I/Os do not exceed.", "p99.9", "s"),
        Term(
            "tail latency", "Latency of the slowest I/Os, stated as p99, p99.9 or maximum.", "", "s"
        ),
        Term(
            "queue depth",
            "Number of I/Os in flight at one time; fio limits it for each job with iodepth.",
            "queue",
            "",
        ),
        Term(
            "device utilization",
            "Share of the time in which the device has I/Os in flight; an SSD at 100 % may still have reserves.",
            "util",
            "1",
        ),
        Term(
            "stall",
            "Three or more consecutive seconds in which the target's devices transfer no byte.",
            "stall.seconds",
            "s",
        ),
        Term(
            "Little's law", "The mean number of I/Os in flight equals IOPS times mean latency.", "L"
        ),
        Term(
            "write amplification",
            "Bytes written by the devices per byte written by the load, within the measured window.",
            "write.amplification",
            "",
        ),
        Term(
            "compression ratio",
            "Bytes in the files per byte of space that they use on the target.",
            "target.compression",
            "",
        ),
    ),
    "Load": (
        Term("workload", "The load of a run: fio, a set of files, a picture or a replay."),
        Term(
            "job",
            "One thread or process of the load generator; fio's numjobs is their number.",
            "numjobs",
            "",
        ),
        Term("block size", "Bytes of one I/O of the load.", "bs", "B"),
        Term(
            "closed loop",
            "A load in which a job submits the next I/O when an earlier one completes.",
        ),
        Term(
            "open loop",
            "A load that submits I/Os at a given rate, whether earlier ones are complete or not.",
        ),
        Term("offered IOPS", "The rate that an open loop submits.", "offered.iops", "1/s"),
        Term(
            "saturated",
            "More load does not increase throughput, or the offered rate is not reached.",
        ),
        Term(
            "working set",
            "Bytes that the load reads or writes in total, without repetitions.",
            "",
            "B",
        ),
        Term(
            "cold cache",
            "A page cache that holds nothing of the target's files when the run starts.",
        ),
        Term(
            "measured window",
            "The part of a run that counts: after layout and ramp, until the load ends.",
        ),
    ),
    "Study": (
        Term(
            "study", "One TOML file that states what to compare, under which load, and how often."
        ),
        Term(
            "variant",
            "One of the configurations that a study compares, such as a kernel or a pool layout; also called an arm.",
        ),
        Term("baseline", "The variant that all other variants are compared with."),
        Term(
            "A/A arm",
            "A second copy of the baseline, which shows how large a change noise alone makes.",
            "<baseline>-again",
        ),
        Term("factor", "A parameter that a study varies, such as numjobs or bs."),
        Term("cell", "One combination of factor levels."),
        Term("run", "One execution of one cell of one variant on one host."),
        Term(
            "repetition",
            "The number of a run among the runs of the same cell and variant.",
            "repetition",
        ),
        Term(
            "block",
            "A part of a study that runs each cell of each variant once, so that variants meet the same conditions.",
        ),
        Term("target", "The storage under test: a directory, device, file system, zpool or mount."),
        Term("host", "The machine on which commands run: this one, one reached by ssh, or a rig."),
        Term("rig", "A throw-away virtual machine to measure on."),
    ),
    "Results": (
        Term(
            "evidence",
            "The files that a run leaves: fio's output, logs, environment; iolab never changes them.",
        ),
        Term(
            "metric",
            "A measured quantity with a key, a title, a unit and a direction, such as write.clat.p99.",
        ),
        Term("observation", "The value of one metric in one run."),
        Term("gate", "A check of one way in which the numbers of a run can be wrong."),
        Term(
            "verdict",
            "The result of all gates for one run: OK, SUSPECT, INVALID or UNJUDGED, with reasons.",
        ),
        Term("OK", "No gate objects to the run."),
        Term("SUSPECT", "A gate doubts the run; it is compared, with a footnote."),
        Term(
            "INVALID",
            "The numbers of the run are wrong or incomplete; the run and its pair are excluded from comparisons.",
        ),
        Term("UNJUDGED", "A published number without evidence, so that no gate can check it."),
        Term(
            "environment drift",
            "A change of kernel, firmware, module or tool between runs of one study.",
        ),
    ),
    "Comparison": (
        Term(
            "change",
            "Difference between a variant and the baseline, as a ratio in per cent or as a difference.",
        ),
        Term("pair", "The runs of a variant and of the baseline in one cell of one block."),
        Term(
            "geometric mean",
            "The mean of ratios: the n-th root of the product of n values.",
            "geomean",
        ),
        Term(
            "confidence interval",
            "A range computed so that it contains the true change in 95 % of studies.",
            "[low, high]",
        ),
        Term(
            "p value",
            "The probability of a change at least this large where variant and baseline do not differ.",
            "p",
            "1",
        ),
        Term(
            "false discovery rate",
            "The expected share of false alarms among all changes called significant.",
            "q",
            "1",
        ),
        Term(
            "significant",
            "A change with a q of at most 0.05; other changes are marked with ~.",
            "q<=0.05",
        ),
        Term(
            "minimum detectable change", "The smallest change that the study finds with 80 % power."
        ),
        Term("power", "The probability that a study finds a change that exists.", "", "1"),
        Term("noise floor", "The changes that the A/A arm shows, where nothing differs."),
        Term("knee", "The load beyond which more load adds latency and hardly any throughput."),
    ),
    "Recording": (
        Term(
            "recording",
            "A directory with all I/O events and counter samples of one host over a time.",
        ),
        Term(
            "source",
            "A supplier of events or samples: block I/O, system calls, diskstats, kstats, iostat, fio's logs.",
        ),
        Term("probe", "The program that records events of the kernel as root."),
        Term(
            "event",
            "One I/O with its time, latency, offset, size, operation, device, process and file.",
        ),
        Term("sample", "One reading of counters."),
        Term("lost event", "An event that the kernel or a buffer dropped; each one is counted."),
        Term(
            "unmatched event",
            "An issue without its completion, or a completion without its issue; it has no latency.",
        ),
        Term(
            "gap",
            "A time in which a source was not recorded; it is hatched on maps and is not zero.",
        ),
        Term("segment", "A sealed part of a recording: at most 60 s, 64 MiB or a million rows."),
        Term(
            "retention", "The limits of age and size beyond which the oldest segments are deleted."
        ),
        Term("mark", "A named time in a recording, such as a run or an action."),
        Term("trace", "A file of I/O events from another tool, such as blkparse or biosnoop."),
        Term(
            "statistic",
            "A named question to a recording, such as io.ops[op=write][latency].",
            "group.name[filter][breakdown]",
        ),
        Term(
            "breakdown",
            "The field by which a statistic is divided, such as device, process or latency.",
        ),
        Term(
            "drill-down",
            "A further filter or breakdown of one part of an answer, such as the slow I/Os of one process.",
        ),
        Term("kept statistic", "A statistic that is stored longer than the events."),
        Term(
            "heat map",
            "A picture of a distribution over time: time across, latency, offset or size up, number of I/Os as colour.",
        ),
        Term("worksheet", "A page of graphs of several statistics over one time range."),
    ),
    "Host and ZFS": (
        Term("iowait", "Share of CPU time that is idle while I/O is outstanding.", "iowait", "1"),
        Term(
            "steal", "Share of CPU time that the hypervisor gave to other machines.", "steal", "1"
        ),
        Term(
            "pressure",
            "Share of the time in which some tasks or all tasks wait for I/O, CPU or memory (PSI).",
            "PSI",
            "1",
        ),
        Term(
            "dirty memory",
            "Data in the page cache that is not yet written to the device.",
            "dirty",
            "B",
        ),
        Term("writeback", "Dirty memory that is being written to the device.", "writeback", "B"),
        Term(
            "direct reclaim",
            "Freeing of memory by a task that needs it, which waits meanwhile.",
            "direct_reclaim",
            "1/s",
        ),
        Term("ARC", "The read cache of OpenZFS in memory.", "arc", "B"),
        Term("L2ARC", "The read cache of OpenZFS on cache devices.", "l2arc", "B"),
        Term("ZIL", "The intent log of OpenZFS, which makes synchronous writes durable.", "zil"),
        Term("transaction group", "The writes that OpenZFS syncs to the pool together.", "TXG"),
        Term("vdev", "One device of a zpool, or a group of them such as a mirror.", "vdev"),
    ),
}
"""Terms by subject, in the order in which they are printed."""
