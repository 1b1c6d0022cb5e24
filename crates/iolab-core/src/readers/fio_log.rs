// SPDX-License-Identifier: Apache-2.0
//! fio's logs: `write_lat_log`, `write_bw_log`, `write_iops_log`.
//!
//! A line is `time, value, direction, block size[, offset][, priority][, issue time]` (fio's HOWTO, "Log File
//! Formats"); time in ms. Only the file name says what a value is (`x_lat.1.log`, `x_clat`, `x_slat`, `x_bw`,
//! `x_iops`): ns (us before fio 3.0), KiB/s, or 1 for each I/O. Since 3.2x a priority is always printed, so the last of
//! five columns is an offset or a priority, which only its values show. `log_window_value=both` adds a second value.
//! With `log_avg_msec` a line is the mean of a window and its block size is 0.

use super::{TextFormat, Work, CUT};
use crate::event::{Event, Op, Sink};
use crate::ledger::Reason;
use crate::number::{digits, Guess};

/// Meaning of the second column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Latency, in units of this many nanoseconds.
    Latency(u64),
    /// Bandwidth or IOPS.
    Rate,
}

/// Columns of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Meaning of the value.
    pub value: Value,
    /// Number of columns of a complete line.
    pub columns: usize,
    /// Whether a second value follows the first.
    pub two_values: bool,
    /// Whether an offset follows the block size.
    pub offset: bool,
}

/// Reader of lines of one layout.
#[derive(Clone, Copy, Debug)]
pub struct FioLog {
    layout: Layout,
    time: Guess,
    size: Guess,
}

const FEW: Reason = "too few columns for a line of this fio log";
const NUMBER: Reason = "not a whole number where fio's log has one";
const SEPARATOR: Reason = "not fio's \", \" between columns";
const DIRECTION: Reason = "no data direction of fio (0 read, 1 write, 2 trim)";
const TIME: Reason = "a time beyond 146 years";

impl FioLog {
    /// A reader for this layout.
    pub fn new(layout: Layout) -> Self {
        Self { layout, time: Guess::default(), size: Guess::default() }
    }

    /// A line that starts at `at` and ends at a line feed. Returns the event and the start of the next line.
    #[inline(always)]
    fn fast(&mut self, block: &[u8], at: usize) -> Option<(Event, usize)> {
        let (time, at) = self.time.digits(block, at)?;
        let (value, at) = digits(block, separator(block, at)?)?;
        let at = if self.layout.two_values { digits(block, separator(block, at)?)?.1 } else { at };
        let at = separator(block, at)?;
        let direction = u64::from(block.get(at)?.wrapping_sub(b'0'));
        let (size, mut at) = self.size.digits(block, separator(block, at + 1)?)?;
        let mut columns = 4 + usize::from(self.layout.two_values);
        let mut offset = None;
        if self.layout.offset {
            let (found, end) = digits(block, separator(block, at)?)?;
            (offset, at, columns) = (Some(found), end, columns + 1);
        }
        while columns < self.layout.columns {
            at = word(block, separator(block, at)?)?;
            columns += 1;
        }
        if *block.get(at)? != b'\n' {
            return None;
        }
        Some((self.event(time, value, direction, Some(size), offset).ok()?, at + 1))
    }

    #[inline(always)]
    fn event(
        &self,
        time: u64,
        value: u64,
        direction: u64,
        size: Option<u64>,
        offset: Option<u64>,
    ) -> Result<Event, Reason> {
        if time > (crate::cells::LONGEST / 1_000_000) as u64 {
            return Err(TIME);
        }
        let op = match direction {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Trim,
            3..=5 => Op::Sync,
            6 | 7 => Op::Other,
            _ => return Err(DIRECTION),
        };
        let mut event = Event::at(time as i64 * 1_000_000, op);
        event.latency_ns = match self.layout.value {
            Value::Latency(unit) => Some(value.saturating_mul(unit)),
            Value::Rate => None,
        };
        // an averaged line has no size and no offset
        event.size_bytes = size.filter(|&size| size > 0);
        event.offset_bytes = offset;
        Ok(event)
    }

    fn slow(&self, line: &[u8]) -> Result<Option<Event>, Reason> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut number = || fields.next().ok_or(FEW).and_then(|field| crate::number::unsigned(field).ok_or(NUMBER));
        let (time, value) = (number()?, number()?);
        if self.layout.two_values {
            number()?;
        }
        let direction = if self.layout.columns > 2 { number()? } else { 6 };
        let size = if self.layout.columns > 3 { Some(number()?) } else { None };
        let offset = if self.layout.offset { Some(number()?) } else { None };
        let taken = 2
            + usize::from(self.layout.two_values)
            + usize::from(self.layout.columns > 2)
            + usize::from(size.is_some())
            + usize::from(offset.is_some());
        let mut rest = 0;
        for field in fields {
            if word(field, 0) != Some(field.len()) {
                return Err(NUMBER);
            }
            rest += 1;
        }
        match (taken + rest).cmp(&self.layout.columns) {
            std::cmp::Ordering::Less => Err(FEW),
            std::cmp::Ordering::Greater => Err("too many columns for a line of this fio log"),
            std::cmp::Ordering::Equal => self.event(time, value, direction, size, offset).map(Some),
        }
    }
}

/// Start of the next column, after `, `.
#[inline(always)]
fn separator(block: &[u8], at: usize) -> Option<usize> {
    let pair: [u8; 2] = block.get(at..at + 2)?.try_into().ok()?;
    (pair == *b", ").then_some(at + 2)
}

/// End of a number, decimal or `0x` and hexadecimal.
#[inline(always)]
fn word(block: &[u8], at: usize) -> Option<usize> {
    // usually a single digit
    if block.get(at)?.is_ascii_digit() && matches!(block.get(at + 1), Some(b'\n' | b',')) {
        return Some(at + 1);
    }
    let rest = &block[at..];
    let (prefix, rest) = match rest {
        [b'0', b'x', rest @ ..] => (2, rest),
        _ => (0, rest),
    };
    let length = rest
        .iter()
        .take_while(|byte| if prefix == 2 { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() })
        .count();
    (length > 0).then_some(at + prefix + length)
}

impl TextFormat for FioLog {
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        if !whole {
            return Err(CUT);
        }
        if let Some(event) = self.slow(line)? {
            sink.event(&event, &work.names);
        }
        Ok(())
    }

    fn lines<S: Sink>(&mut self, block: &[u8], work: &mut Work, sink: &mut S) {
        let mut at = 0;
        while at < block.len() {
            work.line += 1;
            if let Some((event, next)) = self.fast(block, at) {
                sink.event(&event, &work.names);
                at = next;
                continue;
            }
            let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |length| at + length);
            let line = &block[at..end];
            match self.slow(super::trim_end(line)) {
                Ok(Some(event)) => sink.event(&event, &work.names),
                Ok(None) => {}
                // two old columns, or different spaces, are accepted; others are damage
                Err(reason) => work.damage(if reason == NUMBER && !line.contains(&b',') { SEPARATOR } else { reason }),
            }
            at = end + 1;
        }
    }
}
