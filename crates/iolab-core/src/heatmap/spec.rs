// SPDX-License-Identifier: Apache-2.0
//! What a heat map is asked to show.

use crate::error::TraceError;

/// Finest grid of a map.
pub const MAX_BITS: u32 = 10;
/// Most columns and equal buckets that may be asked for.
pub const MOST: u32 = 20_000;

/// What is drawn upwards.
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
    /// The value of that name.
    pub fn of_name(name: &str) -> Result<Self, TraceError> {
        match name {
            "latency" => Ok(Self::Latency),
            "offset" => Ok(Self::Offset),
            "size" => Ok(Self::Size),
            _ => Err(TraceError::new(format!("no map of {name:?}; there are latency, offset and size"))),
        }
    }
}

/// What an event adds to its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// One for each I/O.
    Count,
    /// Its latency, in ns.
    Time,
}

impl Weight {
    /// The weight of that name.
    pub fn of_name(name: &str) -> Result<Self, TraceError> {
        match name {
            "count" => Ok(Self::Count),
            "time" => Ok(Self::Time),
            _ => Err(TraceError::new(format!("no weight {name:?}; there are count and time"))),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What is drawn upwards.
    pub y: Y,
    /// Bits of the grid.
    pub bits: u32,
    /// Length of a column; `None` chooses one.
    pub interval_ns: Option<i64>,
    /// About how many columns to choose.
    pub columns_wanted: u32,
    /// Smallest value of the map.
    pub low: Option<u64>,
    /// Values from here on are outside.
    pub high: Option<u64>,
    /// At most so many equal buckets, in the grid's place.
    pub linear_buckets: Option<u32>,
    /// What an event adds.
    pub weight: Weight,
}

impl Spec {
    /// A map of a value as it is by default: offsets in equal buckets, the rest on the grid of 3 bits.
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

    /// Refuse what cannot be drawn.
    pub fn check(&self) -> Result<(), TraceError> {
        let bad = |text: String| Err(TraceError::new(text));
        if self.bits > MAX_BITS {
            return bad(format!("a map has 0 to {MAX_BITS} bits per octave, not {}", self.bits));
        }
        if self.interval_ns.is_some_and(|interval| interval < 1) {
            return bad("an interval is at least 1 ns".into());
        }
        if !(1..=MOST).contains(&self.columns_wanted) {
            return bad(format!("1 to {MOST} columns can be wanted, not {}", self.columns_wanted));
        }
        if self.linear_buckets.is_some_and(|buckets| !(1..=MOST).contains(&buckets)) {
            return bad(format!("there are 1 to {MOST} equal buckets"));
        }
        if self.high.is_some_and(|high| high <= self.low.unwrap_or(0)) {
            return bad("the range of values is empty: its end is not above its beginning".into());
        }
        Ok(())
    }
}
