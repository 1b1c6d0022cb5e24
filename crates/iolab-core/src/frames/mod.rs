// SPDX-License-Identifier: Apache-2.0
//! Frames: the format in which the probe sends events, samples and messages through a pipe to the recorder.
//!
//! A frame is a header of 16 bytes (`ioLb`, version, kind, two zero bytes, length and CRC-32 of the payload;
//! little-endian) and its payload. Events and samples are columns; all other frames are JSON. A name is sent once: a
//! column of names has ids, and each frame has the new names. Their ids follow those of the same source and column, or
//! start at 0 if the frame says so. A reader checks everything: invalid data ends the reading.

mod bytes;
pub mod events;
pub mod reader;
pub mod samples;

/// Magic number of a frame.
pub const MAGIC: [u8; 4] = *b"ioLb";
/// Version of the format, incremented with every change.
pub const VERSION: u8 = 2;
/// Bytes before the payload.
pub const HEAD: usize = 16;
/// Maximum size of a payload in bytes.
pub const LIMIT: usize = 64 << 20;
/// Maximum number of rows of a frame, so that a small frame cannot require much memory.
pub const ROWS: usize = 1 << 20;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// First frame: machine and sources (JSON).
    Hello = 1,
    /// I/Os (columns).
    Events = 2,
    /// Readings of counters (columns).
    Samples = 3,
    /// A loss and its time (JSON).
    Loss = 4,
    /// End of a second (JSON).
    Tick = 5,
    /// A process (JSON).
    Process = 6,
    /// A message for the user (JSON).
    Note = 7,
    /// Last frame (JSON).
    End = 8,
}

impl Kind {
    /// All kinds, in the order of their codes, starting at 1.
    pub const ALL: [Kind; 8] =
        [Kind::Hello, Kind::Events, Kind::Samples, Kind::Loss, Kind::Tick, Kind::Process, Kind::Note, Kind::End];

    /// The kind of a code.
    pub fn of_code(code: u8) -> Option<Kind> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Name, as in Python.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Hello => "hello",
            Kind::Events => "events",
            Kind::Samples => "samples",
            Kind::Loss => "loss",
            Kind::Tick => "tick",
            Kind::Process => "process",
            Kind::Note => "note",
            Kind::End => "end",
        }
    }
}

/// A frame's bytes.
///
/// # Panics
/// If the payload is over the limit: callers split it before.
pub fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() <= LIMIT, "a frame over the limit");
    let mut out = Vec::with_capacity(HEAD + payload.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind as u8, 0, 0]);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    out.extend_from_slice(payload);
    out
}
