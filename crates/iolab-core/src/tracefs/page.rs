// SPDX-License-Identifier: Apache-2.0
//! Raw pages of a ring (`per_cpu/cpuN/trace_pipe_raw`) and the records in them.
//!
//! Each record begins with a word: 5 bits of type or length, 27 bits of time since the previous record
//! (`events/header_event`). Little-endian machines only, because the order of the bits differs on others.

use super::format::Layout;

const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const TIME_BITS: u32 = 27;
/// Bits of a time that are not in an absolute time stamp.
const TIME_TOP: u64 = 0xf8 << 56;

/// Header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Time of its first record, in the trace clock's nanoseconds.
    pub time_ns: u64,
    /// Whether records were lost before this page.
    pub missed: bool,
    /// Number of lost records, if the page reports it.
    pub missed_count: Option<u64>,
    /// Start and end of the records.
    start: usize,
    end: usize,
}

/// A page with inconsistent bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn(pub &'static str);

impl Head {
    /// Read the header of a page.
    pub fn of(page: &[u8], layout: &Layout) -> Result<Self, Torn> {
        let u64_at = |at: usize| page.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight")));
        let u32_at = |at: usize| page.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four")));
        let time_ns = u64_at(layout.timestamp).ok_or(Torn("the page ends within its head"))?;
        let commit = if layout.commit_size == 8 { u64_at(layout.commit) } else { u32_at(layout.commit).map(u64::from) };
        let commit = commit.ok_or(Torn("the page ends within its head"))?;
        let length = (commit & (MISSED_STORED - 1)) as usize;
        let end = layout.data.saturating_add(length);
        if end > page.len() || end > layout.size {
            return Err(Torn("the page states more bytes than it has"));
        }
        let missed = commit & MISSED != 0;
        let stored = missed && commit & MISSED_STORED != 0;
        Ok(Self { time_ns, missed, missed_count: stored.then(|| u64_at(end)).flatten(), start: layout.data, end })
    }
}

/// A position in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: usize,
    end: usize,
    time_ns: u64,
}

/// Position of a record's data in its page, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time, in the trace clock's nanoseconds.
    pub time_ns: u64,
    /// First byte of the data.
    pub start: usize,
    /// Byte after the data.
    pub end: usize,
}

impl Cursor {
    /// Before the first record.
    pub fn new(head: &Head) -> Self {
        Self { at: head.start, end: head.end, time_ns: head.time_ns }
    }

    /// The next record with data; None at the end. After an error the page has no more records.
    pub fn next(&mut self, page: &[u8]) -> Result<Option<Record>, Torn> {
        loop {
            if self.at >= self.end {
                return Ok(None);
            }
            let word = |at: usize| match page.get(at..at + 4) {
                Some(bytes) if at + 4 <= self.end => Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes"))),
                _ => Err(Torn("a record ends beyond its page")),
            };
            let torn = |reason| {
                // a call after an error returns the end
                Err(Torn(reason))
            };
            let head = match word(self.at) {
                Ok(head) => head,
                Err(error) => {
                    self.at = self.end;
                    return Err(error);
                }
            };
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let body = self.at + 4;
            let (record, next) = match kind {
                29 if delta == 0 => {
                    // the rest of the page is empty
                    self.at = self.end;
                    return Ok(None);
                }
                29 => match word(body) {
                    // a discarded record; later times are not relative to it
                    Ok(length) if length >= 4 => (None, body.checked_add(length as usize)),
                    Ok(_) => return self.stop(torn("a discarded record without length")),
                    Err(error) => return self.stop(Err(error)),
                },
                30 | 31 => match word(body) {
                    Ok(high) => {
                        let time = u64::from(high) << TIME_BITS | delta;
                        self.time_ns = if kind == 30 { self.time_ns.wrapping_add(time) } else { self.absolute(time) };
                        (None, Some(body + 4))
                    }
                    Err(error) => return self.stop(Err(error)),
                },
                0 => match word(body) {
                    Ok(length) if length >= 4 => {
                        self.time_ns = self.time_ns.wrapping_add(delta);
                        let end = body.checked_add(length as usize);
                        // records are aligned to four bytes
                        (end.map(|end| (body + 4, end)), end.and_then(|end| end.checked_next_multiple_of(4)))
                    }
                    Ok(_) => return self.stop(torn("a record without length")),
                    Err(error) => return self.stop(Err(error)),
                },
                words => {
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    let end = body + words as usize * 4;
                    (Some((body, end)), Some(end))
                }
            };
            match next {
                Some(next) if next <= self.end => self.at = next,
                _ => return self.stop(torn("a record ends beyond its page")),
            }
            if let Some((start, end)) = record {
                return Ok(Some(Record { time_ns: self.time_ns, start, end }));
            }
        }
    }

    fn stop(&mut self, error: Result<Option<Record>, Torn>) -> Result<Option<Record>, Torn> {
        self.at = self.end;
        error
    }

    /// An absolute time has 59 bits; the upper bits are those of the previous time.
    fn absolute(&self, time: u64) -> u64 {
        let full = time & !TIME_TOP | self.time_ns & TIME_TOP;
        if full < self.time_ns && self.time_ns & TIME_TOP != TIME_TOP && self.time_ns - full > 1 << 58 {
            full + (1 << 59)
        } else {
            full
        }
    }
}
