// SPDX-License-Identifier: Apache-2.0
//! iosnoop of DTrace, and the tool of that name on Linux (perf-tools).
//!
//! DTrace prints `UID PID D BLOCK SIZE COMM PATHNAME`, preceded by requested columns: `STIME(us)` start, `TIME(us)`
//! completion, `DELTA(us)` elapsed, `DTIME(us)` disk time, `DEVICE`, ... Times are microseconds even if the header does
//! not say so (`-D`, `-A`). Linux: `[STARTs ENDs] COMM PID TYPE DEV BLOCK BYTES LATms`. Blocks are 512 bytes. Without a
//! column of times the reader refuses the file.

use super::field::Field;
use super::head_lines;
use super::table::{Heading, Table};
use crate::event::Dimension;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1000;

const HEADINGS: &[Heading] = &[
    ("TIME", Field::Time(US)),
    ("TIME(us)", Field::Time(US)),
    ("STIME", Field::Start(US)),
    ("STIME(us)", Field::Start(US)),
    ("DELTA", Field::Latency(US)),
    ("DELTA(us)", Field::Latency(US)),
    ("DTIME", Field::Latency(US)),
    ("DTIME(us)", Field::Latency(US)),
    ("DEVICE", Field::Name(Dimension::Device)),
    ("DEV", Field::Name(Dimension::Device)),
    ("D", Field::Op),
    ("TYPE", Field::Op),
    ("BLOCK", Field::Offset(512)),
    ("SIZE", Field::Size(1)),
    ("BYTES", Field::Size(1)),
    ("COMM", Field::Name(Dimension::Process)),
    ("PATHNAME", Field::Name(Dimension::File)),
    ("STARTs", Field::Start(S)),
    ("STARTS", Field::Start(S)),
    ("ENDs", Field::Time(S)),
    ("ENDS", Field::Time(S)),
    ("LATms", Field::Latency(MS)),
    ("LATMS", Field::Latency(MS)),
];

const DTRACE: &[&str] = &["UID", "PID", "D", "BLOCK", "SIZE", "COMM"];
const LINUX: &[&str] = &["COMM", "PID", "TYPE", "DEV", "BLOCK", "BYTES"];

/// A path may contain spaces, or else a command name.
fn wide(fields: &[Field]) -> Option<usize> {
    let place = |dimension| fields.iter().position(|&field| field == Field::Name(dimension));
    place(Dimension::File).or_else(|| place(Dimension::Process))
}

fn of_head(head: &[u8]) -> Option<Table> {
    head_lines(head, 50).find_map(|line| {
        [DTRACE, LINUX].into_iter().find_map(|required| Table::of_header(line, HEADINGS, required, wide))
    })
}

/// Whether a file is output of iosnoop.
pub fn detect(head: &[u8]) -> Option<bool> {
    Some(of_head(head).is_some())
}

/// The reader, or the missing column.
pub fn reader(head: &[u8]) -> Result<Table, &'static str> {
    let table = of_head(head).ok_or("no header of iosnoop; without it the columns are unknown")?;
    let timed = table.fields().iter().any(|field| matches!(field, Field::Time(_) | Field::Start(_)));
    if timed {
        Ok(table)
    } else {
        Err("iosnoop was run without times; -t gives them (DTrace: -Dt for latencies too; Linux: -ts)")
    }
}
