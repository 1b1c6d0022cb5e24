// SPDX-License-Identifier: Apache-2.0
//! Parameters of a heat map.

use crate::error::TraceError;

/// Finest grid of a map.
pub const MAX_BITS: u32 = 10;
/// Maximum number of columns and of equal buckets.
pub const MOST: u32 = 20_000;

/// Vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Y {
    /// Latency, in ns.
    Latency,
    /// Offset, in bytes.
    Offset,
    /// Size, in bytes.
    Size,
}

impl Y {
    /// The value with this name.
    pub fn of_name(name: &str) -> Result<Self, TraceError> {
        match name {
            "latency" => Ok(Self::Latency),
            "offset" => Ok(Self::Offset),
            "size" => Ok(Self::Size),
            _ => Err(TraceError::new(format!("no map of {name:?}; values: latency, offset, size"))),
        }
    }
}

/// Weight of an event in its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// 1 for each I/O.
    Count,
    /// Latency, in ns.
    Time,
}

impl Weight {
    /// The weight with this name.
    pub fn of_name(name: &str) -> Result<Self, TraceError> {
        match name {
            "count" => Ok(Self::Count),
            "time" => Ok(Self::Time),
            _ => Err(TraceError::new(format!("no weight {name:?}; weights: count, time"))),
        }
    }
}

/// Parameters.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Vertical axis.
    pub y: Y,
    /// Bits of the grid.
    pub bits: u32,
    /// Length of a column; `None` means automatic.
    pub interval_ns: Option<i64>,
    /// Approximate number of columns of an automatic choice.
    pub columns_wanted: u32,
    /// Smallest value of the map.
    pub low: Option<u64>,
    /// End of the range of values, exclusive.
    pub high: Option<u64>,
    /// Maximum number of equal buckets, used instead of the grid.
    pub linear_buckets: Option<u32>,
    /// Weight of an event.
    pub weight: Weight,
}

impl Spec {
    /// The default map of a value: offsets in equal buckets, other values on the grid of 3 bits.
    pub fn new(y: Y) -> Self {
        Self {
            y,
            bits: 3,
            interval_ns: None,
            columns_wanted: 400,
            low: None,
            high: None,
            linear_buckets: (y == Y::Offset).then_some(512),
            weight: Weight::Count,
        }
    }

    /// Check the parameters.
    pub fn check(&self) -> Result<(), TraceError> {
        let bad = |text: String| Err(TraceError::new(text));
        if self.bits > MAX_BITS {
            return bad(format!("a map has 0 to {MAX_BITS} bits per octave, not {}", self.bits));
        }
        if self.interval_ns.is_some_and(|interval| interval < 1) {
            return bad("an interval is at least 1 ns".into());
        }
        if !(1..=MOST).contains(&self.columns_wanted) {
            return bad(format!("1 to {MOST} columns are possible, not {}", self.columns_wanted));
        }
        if self.linear_buckets.is_some_and(|buckets| !(1..=MOST).contains(&buckets)) {
            return bad(format!("1 to {MOST} equal buckets are possible"));
        }
        if self.high.is_some_and(|high| high <= self.low.unwrap_or(0)) {
            return bad("the range of values is empty: its end is not above its start".into());
        }
        Ok(())
    }
}
