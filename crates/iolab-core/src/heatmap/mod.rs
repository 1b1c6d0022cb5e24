// SPDX-License-Identifier: Apache-2.0
//! Trace to heat map: histograms of one value per interval of time, without events in between.

mod auto;
mod sink;
mod spec;

pub use sink::HeatSink;
pub use spec::{Spec, Weight, MAX_BITS, MOST, Y};

use crate::error::TraceError;
use crate::filter::Filter;
use crate::grid::Grid;
use crate::scan::{scan, Scanned};
use crate::trace::Trace;
use std::sync::atomic::AtomicBool;

/// How values became buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Bucket i is the grid's.
    Log(Grid),
    /// Bucket i holds `low + i * width` up to, not including, `low + (i + 1) * width`.
    Linear {
        /// Smallest value of bucket 0.
        low: u64,
        /// Values per bucket.
        width: u64,
        /// How many buckets there are.
        buckets: u32,
    },
}

/// The map: parallel arrays, sorted by column, then bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatMap {
    /// Start of column 0.
    pub t0_ns: i64,
    /// Length of a column.
    pub interval_ns: i64,
    /// Columns from the first to the last that holds anything.
    pub column_count: u32,
    /// How values became buckets.
    pub scale: Scale,
    /// Column of each cell.
    pub column: Vec<u32>,
    /// Bucket of each cell.
    pub index: Vec<u32>,
    /// Count of each cell.
    pub count: Vec<u64>,
    /// What was counted, and what not.
    pub tally: Tally,
}

/// What was counted, and what not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events in the map.
    pub events: u64,
    /// Events whose value is not in the range asked for.
    pub outside: u64,
    /// Events without such a value.
    pub without_y: u64,
    /// Events that the filter left out.
    pub skipped: u64,
}

impl Tally {
    /// Events that were read, whatever became of them.
    pub fn seen(&self) -> u64 {
        self.events + self.outside + self.without_y + self.skipped
    }
}

/// The map of a trace, with what its reader counted.
pub fn heatmap(
    trace: &mut Trace,
    spec: &Spec,
    filter: &Filter,
    threads: Option<usize>,
    stop: &AtomicBool,
) -> Result<(HeatMap, Scanned<()>), TraceError> {
    spec.check()?;
    let finest = if spec.interval_ns.is_none() { auto::finest(trace, spec, filter) } else { 1 };
    let scanned = scan(trace, |work| HeatSink::new(spec, filter.clone(), finest, work), threads, stop)?;
    let map = scanned.sink.into_map(spec)?;
    Ok((map, Scanned { sink: (), work: scanned.work, lines_of_block: scanned.lines_of_block }))
}
