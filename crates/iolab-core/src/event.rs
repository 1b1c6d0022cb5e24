// SPDX-License-Identifier: Apache-2.0
//! One I/O, as every reader yields it.

/// What an I/O did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// Data were read.
    Read,
    /// Data were written.
    Write,
    /// Space was given back (discard, unmap).
    Trim,
    /// A device's cache was flushed.
    Flush,
    /// A file was synced.
    Sync,
    /// Anything else, or not said.
    Other,
}

impl Op {
    /// All operations, in the order of their codes.
    pub const ALL: [Op; 6] = [Op::Read, Op::Write, Op::Trim, Op::Flush, Op::Sync, Op::Other];

    /// Name, as `where` takes it.
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

    /// The operation of that name.
    pub fn of_name(name: &str) -> Option<Op> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The kernel's letters (`rwbs` of blktrace: `WS`, `RA`, `D`, `FWFS`), as biosnoop and iosnoop print them too.
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

    /// A word (`read`, `WRITE`), fio's code (`0`) or the kernel's letters.
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

/// Who did an I/O, or to what: the dimensions whose values are names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dimension {
    /// Block device.
    Device,
    /// Process, by its command name.
    Process,
    /// File, by its path.
    File,
    /// Job of a load generator.
    Job,
    /// Client, by its host's name or address.
    Client,
}

/// How many dimensions there are.
pub const DIMENSIONS: usize = 5;

impl Dimension {
    /// All dimensions, in the order in which arrays hold them.
    pub const ALL: [Dimension; DIMENSIONS] =
        [Dimension::Device, Dimension::Process, Dimension::File, Dimension::Job, Dimension::Client];

    /// Name, as `where` takes it.
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

/// One I/O, or `count` alike ones (a line of a histogram log).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Completion, in nanoseconds on the trace's own clock.
    pub time_ns: i64,
    /// From start to completion.
    pub latency_ns: Option<u64>,
    /// First byte on the device or in the file.
    pub offset_bytes: Option<u64>,
    /// Bytes moved.
    pub size_bytes: Option<u64>,
    /// What it did.
    pub op: Op,
    /// Interned names, indexed by `Dimension`.
    pub keys: [Option<u32>; DIMENSIONS],
    /// I/Os that this stands for.
    pub count: u64,
}

impl Event {
    /// An I/O of which only time and operation are known.
    pub fn at(time_ns: i64, op: Op) -> Self {
        Self { time_ns, latency_ns: None, offset_bytes: None, size_bytes: None, op, keys: [None; DIMENSIONS], count: 1 }
    }

    /// Interned name in a dimension.
    pub fn key(&self, dimension: Dimension) -> Option<u32> {
        self.keys[dimension as usize]
    }
}

/// What takes events, one at a time.
pub trait Sink {
    /// One event, with the names that its keys stand for.
    fn event(&mut self, event: &Event, names: &crate::names::Names);

    /// The events that follow are those of block `number` of a file read out of order.
    fn block(&mut self, _number: u64) {}
}
