// SPDX-License-Identifier: Apache-2.0
//! Frames: how the probe hands events, samples and words to whoever records them, on one pipe.
//!
//! A frame is a head of 16 bytes (`ioLb`, version, kind, two zero bytes, length and CRC-32 of the payload; little-endian)
//! and its payload. Events and samples are columns; all else is JSON. Names go over the pipe once: a column of names
//! holds numbers, and each frame brings the names that are new in it, numbered on from those of the same source and
//! column before it, or from 0 where the frame says so. A reader trusts nothing: what does not fit exactly ends the reading.

mod bytes;
pub mod events;
pub mod reader;
pub mod samples;

/// What a frame begins with.
pub const MAGIC: [u8; 4] = *b"ioLb";
/// Version of the frames, changed with every change of them.
pub const VERSION: u8 = 2;
/// Bytes before the payload.
pub const HEAD: usize = 16;
/// Bytes of a payload at most.
pub const LIMIT: usize = 64 << 20;
/// Rows of a frame at most, so that no small frame can ask for much memory.
pub const ROWS: usize = 1 << 20;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Who speaks, on which machine, with which sources (JSON).
    Hello = 1,
    /// I/Os (columns).
    Events = 2,
    /// Readings of counters (columns).
    Samples = 3,
    /// What was lost, and when (JSON).
    Loss = 4,
    /// A second is over (JSON).
    Tick = 5,
    /// A process that was seen (JSON).
    Process = 6,
    /// Words for the user (JSON).
    Note = 7,
    /// Nothing follows (JSON).
    End = 8,
}

impl Kind {
    /// All kinds, in the order of their codes, which begin with 1.
    pub const ALL: [Kind; 8] =
        [Kind::Hello, Kind::Events, Kind::Samples, Kind::Loss, Kind::Tick, Kind::Process, Kind::Note, Kind::End];

    /// The kind of a code.
    pub fn of_code(code: u8) -> Option<Kind> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Name, as Python sees it.
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
/// When the payload is over the limit: whoever makes frames cuts them before.
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
