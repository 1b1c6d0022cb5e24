// SPDX-License-Identifier: Apache-2.0
//! Meaning and unit of a table column, and parsing its text into an event.

use super::Work;
use crate::event::{Dimension, Event, Op};
use crate::ledger::Reason;
use crate::number::{scaled, scaled_signed};

/// Meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Ignored.
    Skip,
    /// Completion, in units of this many nanoseconds.
    Time(u64),
    /// Start, in units of this many nanoseconds; without a completion column, the completion is start plus latency.
    Start(u64),
    /// Latency, in units of this many nanoseconds.
    Latency(u64),
    /// Offset, in units of this many bytes.
    Offset(u64),
    /// Size, in units of this many bytes.
    Size(u64),
    /// Operation.
    Op,
    /// A name.
    Name(Dimension),
}

impl Field {
    /// Whether the column has numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, Field::Skip | Field::Op | Field::Name(_))
    }

    /// Valid values of such a column.
    pub fn example(self) -> &'static str {
        match self {
            Field::Skip => "x",
            Field::Time(_) | Field::Start(_) => "1000",
            Field::Latency(_) => "250",
            Field::Offset(_) | Field::Size(_) => "4096",
            Field::Op => "read",
            Field::Name(Dimension::Device) => "sda",
            Field::Name(Dimension::Process) => "fio",
            Field::Name(Dimension::File) => "/data/file",
            Field::Name(Dimension::Job) => "job1",
            Field::Name(Dimension::Client) => "host1",
        }
    }
}

/// Nanoseconds per unit of time.
pub fn time_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "s" | "sec" | "seconds" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "µs" => 1000,
        "ns" => 1,
        _ => return None,
    })
}

/// Bytes per unit of size.
pub fn size_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "bytes" | "byte" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "sectors" | "sector" => 512,
        _ => return None,
    })
}

/// An event that is being built from columns.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    time: Option<i64>,
    start: Option<i64>,
    event: Event,
}

impl Draft {
    /// No values yet.
    pub fn new() -> Self {
        Self { time: None, start: None, event: Event::at(0, Op::Other) }
    }

    /// Parse the text of a column. Empty and "-" mean "unknown", except for a time.
    pub fn set(&mut self, field: Field, text: &[u8], work: &mut Work) -> Result<(), Reason> {
        match field {
            Field::Skip => {}
            Field::Time(unit) => self.time = Some(scaled_signed(text, unit).ok_or("the time is not a number")?),
            Field::Start(unit) => self.start = Some(scaled_signed(text, unit).ok_or("the start time is not a number")?),
            Field::Op => self.event.op = Op::of_word(text),
            _ if matches!(text, b"" | b"-") => {}
            Field::Latency(unit) => {
                self.event.latency_ns = Some(scaled(text, unit).ok_or("the latency is not a number of 0 or more")?)
            }
            // a device without a sector is printed as -1
            Field::Offset(_) if text == b"-1" => {}
            Field::Offset(unit) => {
                self.event.offset_bytes = Some(scaled(text, unit).ok_or("the offset is not a number of 0 or more")?)
            }
            Field::Size(unit) => {
                self.event.size_bytes = Some(scaled(text, unit).ok_or("the size is not a number of 0 or more")?)
            }
            Field::Name(dimension) => self.event.keys[dimension as usize] = Some(work.names.intern(dimension, text)),
        }
        Ok(())
    }

    /// The event, if its time is known.
    pub fn finish(mut self) -> Result<Event, Reason> {
        let latency = || i64::try_from(self.event.latency_ns.unwrap_or(0)).ok();
        let time = match (self.time, self.start) {
            (Some(time), _) => Some(time),
            (None, Some(start)) => latency().and_then(|latency| start.checked_add(latency)),
            (None, None) => return Err("no time"),
        };
        let time =
            time.filter(|time| time.unsigned_abs() < crate::cells::LONGEST as u64).ok_or("a time beyond 146 years")?;
        if let (None, Some(start), Some(end)) = (self.event.latency_ns, self.start, self.time) {
            self.event.latency_ns = u64::try_from(end.saturating_sub(start)).ok();
        }
        self.event.time_ns = time;
        Ok(self.event)
    }
}

impl Default for Draft {
    fn default() -> Self {
        Self::new()
    }
}
