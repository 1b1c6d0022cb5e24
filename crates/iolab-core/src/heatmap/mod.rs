// SPDX-License-Identifier: Apache-2.0
//! Trace to heat map: histograms of one value per interval of time, without storing events.

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

/// Scale of buckets.
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
        /// Number of buckets.
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
    /// Number of columns from the first to the last with a count.
    pub column_count: u32,
    /// Scale of buckets.
    pub scale: Scale,
    /// Column of each cell.
    pub column: Vec<u32>,
    /// Bucket of each cell.
    pub index: Vec<u32>,
    /// Count of each cell.
    pub count: Vec<u64>,
    /// Counts of included and excluded events.
    pub tally: Tally,
}

/// Counts of included and excluded events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events in the map.
    pub events: u64,
    /// Events with a value outside the requested range.
    pub outside: u64,
    /// Events without such a value.
    pub without_y: u64,
    /// Events dropped by the filter.
    pub skipped: u64,
}

impl Tally {
    /// All events that were read.
    pub fn seen(&self) -> u64 {
        self.events + self.outside + self.without_y + self.skipped
    }
}

/// The map of a trace, with the counts of its reader.
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
