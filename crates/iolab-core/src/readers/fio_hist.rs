// SPDX-License-Identifier: Apache-2.0
//! fio's histogram logs (`write_hist_log`): `time, direction, block size, bin 0, bin 1, ...` per interval.
//!
//! Bins count the I/Os of the interval, on fio's grid of 64 per octave; `log_hist_coarseness` sums `2^c` neighbours.
//! 1856 bins are nanoseconds; fio before 3.0 had 1216 bins of microseconds. The number of columns determines both unit
//! and coarseness.

use super::{head_lines, TextFormat, Work, CUT};
use crate::event::{Event, Op, Sink};
use crate::fio_bins::FIO_BITS;
use crate::grid::Grid;
use crate::ledger::Reason;
use crate::number::digits;

const FINE_NS: usize = 29 * 64;
const FINE_US: usize = 19 * 64;

/// Reader of lines with a fixed number of bins.
#[derive(Clone, Debug)]
pub struct FioHist {
    /// Latency at the middle of each bin, in ns.
    middles: Vec<u64>,
}

fn geometry(bins: usize) -> Option<(u64, u32)> {
    (0..=6u32).find_map(|coarseness| match bins << coarseness {
        FINE_NS => Some((1, coarseness)),
        FINE_US => Some((1000, coarseness)),
        _ => None,
    })
}

impl FioHist {
    /// The reader for a file with this beginning; `None` if the number of bins is not one that fio writes.
    pub fn of_head(head: &[u8]) -> Option<Self> {
        let columns = |line: &[u8]| memchr::memchr_iter(b',', line).count() + 1;
        let bins = head_lines(head, 20)
            .find_map(|line| columns(line).checked_sub(3).filter(|&bins| geometry(bins).is_some()))?;
        let (unit, coarseness) = geometry(bins)?;
        let grid = Grid::new(FIO_BITS).expect("6 bits are offered");
        let middle = |bin: u32| {
            let low = grid.lower(bin << coarseness);
            let high = grid.upper((bin << coarseness) + (1 << coarseness) - 1);
            (low + (high - low) / 2) * unit
        };
        Some(Self { middles: (0..bins as u32).map(middle).collect() })
    }

    /// Whether a file is a histogram log.
    pub fn detect(head: &[u8]) -> Option<bool> {
        let first = head_lines(head, 1).next()?;
        let numbers =
            first.split(|&byte| byte == b',').all(|field| crate::number::unsigned(field.trim_ascii()).is_some());
        Some(numbers && Self::of_head(head).is_some())
    }
}

impl TextFormat for FioHist {
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        if line.is_empty() {
            return Ok(());
        }
        if !whole {
            return Err(CUT);
        }
        let mut at = 0;
        let mut number = || {
            let (value, end) = digits(line, at).ok_or("not a whole number where fio's histogram log has one")?;
            at = end;
            if line.get(at) == Some(&b',') {
                at += 1;
                at += usize::from(line.get(at) == Some(&b' '));
            } else if at != line.len() {
                return Err("not a comma between columns");
            }
            Ok(value)
        };
        let (time, direction, size) = (number()?, number()?, number()?);
        let op = match direction {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Trim,
            _ => return Err("no data direction of fio (0 read, 1 write, 2 trim)"),
        };
        if time > (crate::cells::LONGEST / 1_000_000) as u64 {
            return Err("a time beyond 146 years");
        }
        // a line counts completely or not at all
        let mut counts = Vec::new();
        for &middle in &self.middles {
            let count = number()?;
            if count > 1 << 40 {
                return Err("a count beyond 2^40");
            }
            if count > 0 {
                counts.push((middle, count));
            }
        }
        if at != line.len() {
            return Err("more bins than in the lines before");
        }
        for (middle, count) in counts {
            let mut event = Event::at(time as i64 * 1_000_000, op);
            event.latency_ns = Some(middle);
            event.size_bytes = Some(size).filter(|&size| size > 0);
            event.count = count;
            sink.event(&event, &work.names);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_bins_says_unit_and_coarseness() {
        assert_eq!(geometry(1856), Some((1, 0)));
        assert_eq!(geometry(464), Some((1, 2)));
        assert_eq!(geometry(1216), Some((1000, 0)));
        assert_eq!(geometry(19), Some((1000, 6)));
        assert_eq!(geometry(100), None);
    }
}
