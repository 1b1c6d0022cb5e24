// SPDX-License-Identifier: Apache-2.0
//! Events as columns, for callers that store them.

use crate::event::{Event, Sink, DIMENSIONS};
use crate::filter::Filter;
use crate::names::Names;
use crate::readers::Work;

/// Columns of some events. A value that an event lacks is 0 here, and 0 in the `valid` of its column.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    filter: Filter,
    /// Completion times.
    pub time_ns: Vec<i64>,
    /// Operations, by code.
    pub op: Vec<u8>,
    /// Number of I/Os of each row.
    pub count: Vec<u64>,
    /// Latency, offset, size.
    pub values: [Column<u64>; 3],
    /// Name ids, by dimension.
    pub keys: [Column<u32>; DIMENSIONS],
    /// Events dropped by the filter so far.
    pub skipped: u64,
}

/// A column that may lack values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column<T> {
    /// Values; 0 if missing.
    pub values: Vec<T>,
    /// 1 where there is a value.
    pub valid: Vec<u8>,
}

impl<T: Copy + Default> Column<T> {
    fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or_default());
        self.valid.push(u8::from(value.is_some()));
    }
}

impl Batch {
    /// No events yet.
    pub fn new(mut filter: Filter, work: &mut Work) -> Self {
        filter.bind(&mut work.names);
        Self { filter, ..Self::default() }
    }

    /// Number of events.
    pub fn rows(&self) -> usize {
        self.time_ns.len()
    }

    /// Remove all events.
    pub fn clear(&mut self) {
        *self = Self { filter: std::mem::take(&mut self.filter), skipped: self.skipped, ..Self::default() };
    }
}

impl Sink for Batch {
    fn event(&mut self, event: &Event, _names: &Names) {
        if !self.filter.passes(event) {
            self.skipped += event.count;
            return;
        }
        self.time_ns.push(event.time_ns);
        self.op.push(event.op as u8);
        self.count.push(event.count);
        for (column, value) in self.values.iter_mut().zip([event.latency_ns, event.offset_bytes, event.size_bytes]) {
            column.push(value);
        }
        for (column, key) in self.keys.iter_mut().zip(event.keys) {
            column.push(key);
        }
    }
}
