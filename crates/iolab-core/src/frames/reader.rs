// SPDX-License-Identifier: Apache-2.0
//! Reads frames from a stream of bytes, split at any position.

use super::events::{self, Events, Known};
use super::samples;
use super::{Kind, HEAD, LIMIT, MAGIC, VERSION};
use crate::error::TraceError;
use std::collections::HashMap;

/// Maximum number of sources; a stream has a few.
const SOURCES: usize = 64;

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// I/Os.
    Events(Events),
    /// Readings of counters.
    Samples(samples::Read),
    /// Any other kind, with its JSON unparsed.
    Words(Kind, Vec<u8>),
}

/// Reads frames. After damage it refuses everything, because later data cannot be trusted.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    waiting: Vec<u8>,
    events: HashMap<String, Known>,
    samples: HashMap<String, [usize; 2]>,
    damage: Option<TraceError>,
}

impl Reader {
    /// Add bytes. Returns the frames that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, TraceError> {
        if let Some(damage) = &self.damage {
            return Err(TraceError::new(format!("the stream was refused before: {damage}")));
        }
        self.waiting.extend_from_slice(bytes);
        let waiting = std::mem::take(&mut self.waiting);
        let mut frames = Vec::new();
        let mut at = 0;
        loop {
            match self.next(&waiting[at..]) {
                Ok(Some((frame, length))) => {
                    frames.push(frame);
                    at += length;
                }
                Ok(None) => break,
                Err(error) => {
                    self.damage = Some(error.clone());
                    return Err(error);
                }
            }
        }
        self.waiting.extend_from_slice(&waiting[at..]);
        Ok(frames)
    }

    /// Refuse everything from now on; for callers that detect an error in the content of a frame.
    pub fn refuse(&mut self, damage: TraceError) {
        self.damage = Some(damage);
    }

    /// Bytes of an incomplete frame.
    pub fn unfinished(&self) -> usize {
        self.waiting.len()
    }

    fn next(&mut self, bytes: &[u8]) -> Result<Option<(Frame, usize)>, TraceError> {
        // errors of the header are detected early: with a wrong length the reader would wait forever
        let magic = bytes.len().min(MAGIC.len());
        if bytes[..magic] != MAGIC[..magic] {
            return Err(TraceError::new("no frame header at its position: not output of the probe, or damaged"));
        }
        let Some(head) = bytes.get(..HEAD) else { return Ok(None) };
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        if head[4] != VERSION {
            return Err(TraceError::new(format!("frames of version {}; this iolab reads version {VERSION}", head[4])));
        }
        let Some(kind) = Kind::of_code(head[5]).filter(|_| head[6..8] == [0, 0]) else {
            return Err(TraceError::new(format!("a frame of an unknown kind ({})", head[5])));
        };
        let length = word(8) as usize;
        if length > LIMIT {
            return Err(TraceError::new(format!("a frame of {length} bytes: {LIMIT} are allowed")));
        }
        let Some(payload) = bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        if crc32fast::hash(payload) != word(12) {
            return Err(TraceError::new(format!("a frame of kind {} with a wrong CRC", kind.name())));
        }
        Ok(Some((self.payload(kind, payload)?, HEAD + length)))
    }

    fn payload(&mut self, kind: Kind, payload: &[u8]) -> Result<Frame, TraceError> {
        if self.events.len() + self.samples.len() > SOURCES {
            return Err(TraceError::new(format!("frames of more than {SOURCES} sources")));
        }
        match kind {
            Kind::Events => {
                let of_source = |source: &str| self.events.get(source).copied().unwrap_or_default();
                let (events, known) = events::read(payload, &mut { of_source })?;
                self.events.insert(events.source.clone(), known);
                Ok(Frame::Events(events))
            }
            Kind::Samples => {
                let of_source = |source: &str| self.samples.get(source).copied().unwrap_or_default();
                let (samples, known) = samples::read(payload, &mut { of_source })?;
                self.samples.insert(samples.source.clone(), known);
                Ok(Frame::Samples(samples))
            }
            _ => Ok(Frame::Words(kind, payload.to_vec())),
        }
    }
}
