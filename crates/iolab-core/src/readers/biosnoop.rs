// SPDX-License-Identifier: Apache-2.0
//! biosnoop of bcc (Python and libbpf), with and without queue time, and biosnoop.bt of bpftrace.
//!
//! bcc: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`, newer ones with `PATTERN`; bpftrace: `TIME(ms) [DISK]
//! COMM PID LAT(ms)`. The time is that of the completion. A command name may contain spaces.

use super::field::Field;
use super::head_lines;
use super::table::{Heading, Table};
use crate::event::Dimension;
use crate::number::scaled;

const MS: u64 = 1_000_000;

const HEADINGS: &[Heading] = &[
    ("TIME(s)", Field::Time(1_000_000_000)),
    ("TIME(ms)", Field::Time(MS)),
    ("TIME(us)", Field::Time(1000)),
    ("COMM", Field::Name(Dimension::Process)),
    ("DISK", Field::Name(Dimension::Device)),
    ("T", Field::Op),
    ("SECTOR", Field::Offset(512)),
    ("BYTES", Field::Size(1)),
    ("LAT(ms)", Field::Latency(MS)),
    ("LAT(us)", Field::Latency(1000)),
];

const BCC: &[&str] = &["TIME(s)", "COMM", "PID", "T", "BYTES", "LAT(ms)"];
const BPFTRACE: &[&str] = &["TIME(ms)", "COMM", "PID", "LAT(ms)"];

fn command(fields: &[Field]) -> Option<usize> {
    fields.iter().position(|&field| field == Field::Name(Dimension::Process))
}

fn of_head(head: &[u8], required: &'static [&'static str]) -> Option<Table> {
    head_lines(head, 50).find_map(|line| Table::of_header(line, HEADINGS, required, command))
}

/// A row of bcc without its header: number of columns after the command name, if it looks like one.
fn bare(head: &[u8]) -> Option<usize> {
    let line = head_lines(head, 1).next()?;
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let decimal = |word: &[u8]| word.contains(&b'.') && scaled(word, 1).is_some();
    if words.len() < 8 || !decimal(words[0]) || !decimal(words[words.len() - 1]) {
        return None;
    }
    let operation = |at: usize| {
        let word = words[words.len() - at];
        word.len() <= 4
            && word.iter().all(|letter| b"RWDFSMAN".contains(letter))
            && scaled(words[words.len() - at + 1], 1).is_some()
    };
    if operation(4) {
        Some(6)
    } else if words.len() >= 9 && operation(5) && decimal(words[words.len() - 2]) {
        Some(7)
    } else {
        None
    }
}

/// Whether a file is output of bcc's biosnoop.
pub fn detect(head: &[u8]) -> Option<bool> {
    Some(of_head(head, BCC).is_some() || bare(head).is_some())
}

/// The reader for bcc. Without a header, the number of columns determines their meaning.
pub fn reader(head: &[u8]) -> (Table, Option<String>) {
    if let Some(table) = of_head(head, BCC) {
        return (table, None);
    }
    let mut fields =
        vec![Field::Time(1_000_000_000), Field::Name(Dimension::Process), Field::Skip, Field::Name(Dimension::Device)];
    fields.extend([Field::Op, Field::Offset(512), Field::Size(1)]);
    let with_queue = bare(head) == Some(7);
    if with_queue {
        fields.push(Field::Skip);
    }
    fields.push(Field::Latency(MS));
    let columns = if with_queue {
        "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)"
    } else {
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)"
    };
    (Table::new(fields, 1, HEADINGS, BCC, command), Some(format!("columns {columns}, because there is no header")))
}

/// Whether a file is output of biosnoop.bt.
pub fn detect_bpftrace(head: &[u8]) -> Option<bool> {
    Some(of_head(head, BPFTRACE).is_some())
}

/// The reader for biosnoop.bt.
pub fn reader_bpftrace(head: &[u8]) -> (Table, Option<String>) {
    if let Some(table) = of_head(head, BPFTRACE) {
        return (table, None);
    }
    let fields = vec![
        Field::Time(MS),
        Field::Name(Dimension::Device),
        Field::Name(Dimension::Process),
        Field::Skip,
        Field::Latency(MS),
    ];
    (
        Table::new(fields, 2, HEADINGS, BPFTRACE, command),
        Some("columns TIME(ms) DISK COMM PID LAT(ms), because there is no header".into()),
    )
}
