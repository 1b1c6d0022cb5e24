// SPDX-License-Identifier: Apache-2.0
//! Frames of events: columns of I/Os of one source.
//!
//! Payload: the name of the source (length in a byte), the number of rows (u32), then the columns with values. A column
//! has its number, a byte that says whether every row has a value (1) or a bitmap follows (2), and its values; columns
//! of names also have the new names. 4 is added to that byte if ids of names start at 0 again. A missing column has no
//! values; a missing `count` is 1.

use super::bytes::{put_names, put_source, Bytes};
use crate::error::TraceError;
use crate::event::Op;
use crate::grid::Grid;
use crate::names::Table;

/// Bits of the grid for `latency_bucket`.
pub const BUCKET_BITS: u32 = 6;

/// Columns, by their number in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, as in Python.
    pub name: &'static str,
    /// Bytes per value.
    pub width: usize,
    /// Whether rows may lack a value.
    pub nullable: bool,
    /// Whether values are ids of names.
    pub named: bool,
}

const fn column(name: &'static str, width: usize, nullable: bool, named: bool) -> Column {
    Column { name, width, nullable, named }
}

/// Possible columns of a frame, in order.
pub const COLUMNS: [Column; 17] = [
    column("time_ns", 8, false, false),
    column("op", 1, false, false),
    column("count", 8, false, false),
    column("latency_ns", 8, true, false),
    column("queue_ns", 8, true, false),
    column("offset_bytes", 8, true, false),
    column("size_bytes", 8, true, false),
    column("pid", 4, true, false),
    column("thread", 4, true, false),
    column("device", 4, true, true),
    column("process", 4, true, true),
    column("file", 4, true, true),
    column("mount", 4, true, true),
    column("client", 4, true, true),
    column("job", 4, true, true),
    column("error", 4, true, true),
    column("flags", 4, true, true),
];

const COUNT: usize = 2;
const LATENCY: usize = 3;
/// Number of the first column of names.
const FIRST_NAMED: usize = 9;
/// Capacity for rows that is kept between frames; more is released.
const KEPT_ROWS: usize = 1 << 12;
/// Added to the byte before the values of a column if ids of names start at 0 again.
const RESTARTED: u8 = 4;
/// Columns of names.
pub const NAMED: usize = COLUMNS.len() - FIRST_NAMED;

/// A column of names, by its index among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Key {
    /// Block device.
    Device,
    /// Command name of the process.
    Process,
    /// File.
    File,
    /// Mount point.
    Mount,
    /// Client of a server.
    Client,
    /// Job of a load generator.
    Job,
    /// Name of the error number; None if there was no error.
    Error,
    /// Further properties of the call or request.
    Flags,
}

/// One I/O with interned names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Completion, in nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// Operation.
    pub op: Op,
    /// Time from start to completion.
    pub latency_ns: Option<u64>,
    /// Time from queueing to start.
    pub queue_ns: Option<u64>,
    /// Offset of the first byte on the device or in the file.
    pub offset_bytes: Option<u64>,
    /// Number of bytes transferred.
    pub size_bytes: Option<u64>,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub thread: Option<u32>,
    /// Ids of names, by `Key`.
    pub keys: [Option<u32>; NAMED],
}

impl Row {
    /// An I/O with only time and operation.
    pub fn at(time_ns: i64, op: Op) -> Self {
        Self {
            time_ns,
            op,
            latency_ns: None,
            queue_ns: None,
            offset_bytes: None,
            size_bytes: None,
            pid: None,
            thread: None,
            keys: [None; NAMED],
        }
    }
}

/// Values of a column, some of them missing.
#[derive(Clone, Debug, Default)]
struct Values<T> {
    values: Vec<T>,
    valid: Vec<bool>,
    present: usize,
}

impl<T: Copy + Default> Values<T> {
    fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or_default());
        self.valid.push(value.is_some());
        self.present += usize::from(value.is_some());
    }

    fn clear(&mut self) {
        empty(&mut self.values);
        empty(&mut self.valid);
        self.present = 0;
    }

    fn put<const N: usize>(&self, out: &mut Vec<u8>, number: usize, flags: u8, little: impl Fn(T) -> [u8; N]) {
        out.push(number as u8);
        if self.present == self.values.len() {
            out.push(flags | 1);
        } else {
            out.push(flags | 2);
            out.extend(
                self.valid.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit))),
            );
        }
        put_values(out, &self.values, little);
    }
}

fn empty<T>(values: &mut Vec<T>) {
    values.clear();
    values.shrink_to(KEPT_ROWS);
}

fn put_values<T: Copy, const N: usize>(out: &mut Vec<u8>, values: &[T], little: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + values.len() * N, 0);
    for (place, &value) in out[start..].chunks_exact_mut(N).zip(values) {
        place.copy_from_slice(&little(value));
    }
}

/// Pending rows of a source, and their names.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    time_ns: Vec<i64>,
    op: Vec<u8>,
    wide: [Values<u64>; 4],
    narrow: [Values<u32>; 2],
    keys: [Values<u32>; NAMED],
    tables: [Table; NAMED],
    given: [usize; NAMED],
    restarted: [bool; NAMED],
    beyond: u64,
}

impl Rows {
    /// Id of a name in a column.
    pub fn intern(&mut self, key: Key, name: &[u8]) -> u32 {
        self.tables[key as usize].intern(name)
    }

    /// The name of an id returned by `intern`.
    pub fn name(&self, key: Key, id: u32) -> &[u8] {
        self.tables[key as usize].name(id)
    }

    /// Number of names of a column.
    pub fn names(&self, key: Key) -> usize {
        self.tables[key as usize].len()
    }

    /// Drop the names of a column, so that memory stays bounded. The caller must not keep their ids.
    ///
    /// # Panics
    /// If rows are pending: they refer to the names.
    pub fn restart(&mut self, key: Key) {
        assert!(self.is_empty(), "rows that wait refer to names");
        self.beyond += self.tables[key as usize].take_beyond();
        self.tables[key as usize] = Table::default();
        self.given[key as usize] = 0;
        self.restarted[key as usize] = true;
    }

    /// I/Os since the last call with a name beyond the limit of its column.
    pub fn take_beyond(&mut self) -> u64 {
        std::mem::take(&mut self.beyond) + self.tables.iter_mut().map(Table::take_beyond).sum::<u64>()
    }

    /// Number of pending rows.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether no rows are pending.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Add a row.
    pub fn push(&mut self, row: &Row) {
        self.time_ns.push(row.time_ns);
        self.op.push(row.op as u8);
        let wide = [row.latency_ns, row.queue_ns, row.offset_bytes, row.size_bytes];
        self.wide.iter_mut().zip(wide).for_each(|(column, value)| column.push(value));
        self.narrow.iter_mut().zip([row.pid, row.thread]).for_each(|(column, value)| column.push(value));
        self.keys.iter_mut().zip(row.keys).for_each(|(column, value)| column.push(value));
    }

    /// The payload of a frame with all pending rows. Afterwards no rows are pending.
    pub fn payload(&mut self, source: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.len() * 72);
        put_source(&mut out, source);
        out.extend_from_slice(&(self.len() as u32).to_le_bytes());
        out.extend([0, 1]);
        put_values(&mut out, &self.time_ns, i64::to_le_bytes);
        out.extend([1, 1]);
        out.extend_from_slice(&self.op);
        for (number, column) in self.wide.iter().enumerate().filter(|(_, column)| column.present > 0) {
            column.put(&mut out, LATENCY + number, 0, u64::to_le_bytes);
        }
        for (number, column) in self.narrow.iter().enumerate().filter(|(_, column)| column.present > 0) {
            column.put(&mut out, LATENCY + self.wide.len() + number, 0, u32::to_le_bytes);
        }
        for (number, column) in self.keys.iter().enumerate() {
            let (table, given) = (&self.tables[number], &mut self.given[number]);
            if column.present > 0 || table.len() > *given {
                let flags = if std::mem::take(&mut self.restarted[number]) { RESTARTED } else { 0 };
                column.put(&mut out, FIRST_NAMED + number, flags, u32::to_le_bytes);
                put_names(&mut out, (*given..table.len()).map(|id| table.name(id as u32)));
                *given = table.len();
            }
        }
        self.clear();
        out
    }

    fn clear(&mut self) {
        empty(&mut self.time_ns);
        empty(&mut self.op);
        self.wide.iter_mut().for_each(Values::clear);
        self.narrow.iter_mut().for_each(Values::clear);
        self.keys.iter_mut().for_each(Values::clear);
    }
}

/// A column of a frame: little-endian values, 1 or 0 for each row with or without a value, and new names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Values; 0 if missing.
    pub values: Vec<u8>,
    /// 1 where there is a value.
    pub valid: Vec<u8>,
    /// New names.
    pub names: Vec<String>,
    /// Whether ids of names start at 0 again, with these names.
    pub restarted: bool,
}

/// A decoded frame of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Source.
    pub source: String,
    /// Number of rows.
    pub rows: usize,
    /// Columns, by number, including those that the frame omits.
    pub columns: Vec<Read>,
    /// Index of the latency on the grid of 6 bits; 0 if missing.
    pub latency_bucket: Vec<u16>,
}

/// Number of names of each column, to check ids.
pub type Known = [usize; NAMED];

/// Read a payload.
pub fn read(payload: &[u8], known: &mut impl FnMut(&str) -> Known) -> Result<(Events, Known), TraceError> {
    let mut bytes = Bytes(payload);
    let source = bytes.source()?;
    let rows = bytes.rows()?;
    let mut known = known(&source);
    let mut columns: Vec<Option<Read>> = vec![None; COLUMNS.len()];
    let mut next = 0;
    while !bytes.0.is_empty() {
        let number = usize::from(bytes.u8()?);
        let Some(column) = COLUMNS.get(number).filter(|_| number >= next) else {
            return Err(TraceError::new(format!(
                "a frame of events with a column {number} where {next} or above is expected"
            )));
        };
        next = number + 1;
        let read = read_column(&mut bytes, column, rows)?;
        if column.named {
            let names = &mut known[number - FIRST_NAMED];
            if read.restarted {
                *names = 0;
            }
            *names += read.names.len();
            check_names(&read, *names, column.name)?;
        }
        columns[number] = Some(read);
    }
    for (column, read) in COLUMNS.iter().zip(&columns) {
        if !column.nullable && read.is_none() && column.name != "count" {
            return Err(TraceError::new(format!("a frame of events without {}", column.name)));
        }
    }
    let columns = COLUMNS.iter().zip(columns).map(|(column, read)| read.unwrap_or_else(|| absent(column, rows)));
    let columns: Vec<Read> = columns.collect();
    if columns[1].values.iter().any(|&op| usize::from(op) >= Op::ALL.len()) {
        return Err(TraceError::new("a frame of events with an unknown operation"));
    }
    let grid = Grid::new(BUCKET_BITS).expect("bits that the grid has");
    let bucket = |value: &[u8]| grid.index(u64::from_le_bytes(value.try_into().expect("eight bytes"))) as u16;
    let latency_bucket = columns[LATENCY].values.chunks_exact(8).map(bucket).collect();
    Ok((Events { source, rows, columns, latency_bucket }, known))
}

fn absent(column: &Column, rows: usize) -> Read {
    if column.name == COLUMNS[COUNT].name {
        return Read { values: 1u64.to_le_bytes().repeat(rows), valid: vec![1; rows], ..Read::default() };
    }
    Read { values: vec![0; rows * column.width], valid: vec![0; rows], ..Read::default() }
}

fn read_column(bytes: &mut Bytes<'_>, column: &Column, rows: usize) -> Result<Read, TraceError> {
    let mut kind = bytes.u8()?;
    let restarted = column.named && kind & RESTARTED != 0;
    if restarted {
        kind &= !RESTARTED;
    }
    let valid = match kind {
        1 => vec![1; rows],
        2 if column.nullable => {
            let bits = bytes.take(rows.div_ceil(8))?;
            (0..rows).map(|row| bits[row / 8] >> (row % 8) & 1).collect()
        }
        _ => {
            return Err(TraceError::new(format!("a frame of events that does not say which rows have {}", column.name)))
        }
    };
    let mut values = bytes.take(rows * column.width)?.to_vec();
    for (value, _) in values.chunks_exact_mut(column.width).zip(&valid).filter(|(_, &valid)| valid == 0) {
        value.fill(0);
    }
    let names = if column.named { bytes.names()? } else { Vec::new() };
    Ok(Read { values, valid, names, restarted })
}

/// Checks that every id has a name.
fn check_names(read: &Read, names: usize, column: &str) -> Result<(), TraceError> {
    let ids = read.values.chunks_exact(4).map(|id| u32::from_le_bytes(id.try_into().expect("four bytes")) as usize);
    if ids.zip(&read.valid).any(|(id, &valid)| valid == 1 && id >= names) {
        return Err(TraceError::new(format!("a frame with an id in {column} that has no name")));
    }
    Ok(())
}
