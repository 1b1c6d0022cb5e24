// SPDX-License-Identifier: Apache-2.0
//! One I/O, as produced by every reader.

/// Operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Discard, unmap.
    Trim,
    /// Flush of the cache of a device.
    Flush,
    /// Sync of a file.
    Sync,
    /// Other or unknown.
    Other,
}

impl Op {
    /// All operations, in the order of their codes.
    pub const ALL: [Op; 6] = [Op::Read, Op::Write, Op::Trim, Op::Flush, Op::Sync, Op::Other];

    /// Name, as in `where`.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
            Op::Sync => "sync",
            Op::Other => "other",
        }
    }

    /// The operation with this name.
    pub fn of_name(name: &str) -> Option<Op> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Decodes the letters of the kernel (`rwbs` of blktrace: `WS`, `RA`, `D`, `FWFS`), which biosnoop and iosnoop
    /// print too.
    pub fn of_letters(letters: &[u8]) -> Op {
        let has = |letter: u8| letters.contains(&letter);
        if has(b'D') {
            Op::Trim
        } else if has(b'W') {
            Op::Write
        } else if has(b'R') {
            Op::Read
        } else if has(b'F') {
            Op::Flush
        } else {
            Op::Other
        }
    }

    /// Decodes a word (`read`, `WRITE`), the code of fio (`0`) or the letters of the kernel.
    pub fn of_word(word: &[u8]) -> Op {
        match word {
            b"0" => return Op::Read,
            b"1" => return Op::Write,
            b"2" => return Op::Trim,
            _ => {}
        }
        let lower = word.to_ascii_lowercase();
        match lower.as_slice() {
            b"discard" | b"unmap" => Op::Trim,
            b"fsync" | b"fdatasync" => Op::Sync,
            b"" => Op::Other,
            word => std::str::from_utf8(word).ok().and_then(Op::of_name).unwrap_or_else(|| {
                if word.len() <= 4 {
                    Op::of_letters(&word.to_ascii_uppercase())
                } else {
                    Op::Other
                }
            }),
        }
    }
}

/// The dimensions with names as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dimension {
    /// Block device.
    Device,
    /// Process, by command name.
    Process,
    /// File, by path.
    File,
    /// Job of a load generator.
    Job,
    /// Client, by host name or address.
    Client,
}

/// Number of dimensions.
pub const DIMENSIONS: usize = 5;

impl Dimension {
    /// All dimensions, in the order of arrays.
    pub const ALL: [Dimension; DIMENSIONS] =
        [Dimension::Device, Dimension::Process, Dimension::File, Dimension::Job, Dimension::Client];

    /// Name, as in `where`.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Device => "device",
            Dimension::Process => "process",
            Dimension::File => "file",
            Dimension::Job => "job",
            Dimension::Client => "client",
        }
    }
}

/// One I/O, or `count` equal ones (a line of a histogram log).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Completion, in nanoseconds of the clock of the trace.
    pub time_ns: i64,
    /// Time from start to completion.
    pub latency_ns: Option<u64>,
    /// Offset of the first byte on the device or in the file.
    pub offset_bytes: Option<u64>,
    /// Number of bytes transferred.
    pub size_bytes: Option<u64>,
    /// Operation.
    pub op: Op,
    /// Interned names, by `Dimension`.
    pub keys: [Option<u32>; DIMENSIONS],
    /// Number of I/Os.
    pub count: u64,
}

impl Event {
    /// An I/O with only time and operation.
    pub fn at(time_ns: i64, op: Op) -> Self {
        Self { time_ns, latency_ns: None, offset_bytes: None, size_bytes: None, op, keys: [None; DIMENSIONS], count: 1 }
    }

    /// Interned name in a dimension.
    pub fn key(&self, dimension: Dimension) -> Option<u32> {
        self.keys[dimension as usize]
    }
}

/// Receives events, one at a time.
pub trait Sink {
    /// Receives an event. `work` has the names of its keys.
    fn event(&mut self, event: &Event, names: &crate::names::Names);

    /// The following events are those of block `number` of a file that is read out of order.
    fn block(&mut self, _number: u64) {}
}
