// SPDX-License-Identifier: Apache-2.0
//! Counts by column (interval of time) and bucket, with memory that does not depend on the span of time.
//!
//! Time mostly increases, so a few columns are open as dense rows. A closed column is stored as (column, bucket,
//! count); these cells are sorted and summed when there are many. Both axes can become coarser without error: columns
//! and buckets are numbered from zero, so that wider ones are unions of narrower ones.

/// Maximum number of cells. Above it, the interval must become longer.
pub const LIMIT: usize = if cfg!(test) { 15_000 } else { 1_500_000 };

/// Times are between minus and plus this (146 years); readers ensure it. No interval is longer.
pub const LONGEST: i64 = 1 << 62;

const OPEN: usize = 4;

/// A count of a closed column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Number of the interval, counted from time 0.
    pub column: i64,
    /// Number of the bucket.
    pub bucket: u64,
    /// Number of I/Os, or their sum.
    pub count: u64,
}

/// Length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Fixed length in nanoseconds.
    Fixed(i64),
    /// Starts at this length, and becomes ten times as long whenever there are more columns than the maximum.
    Auto {
        /// Initial length in nanoseconds.
        finest: i64,
        /// Maximum number of columns.
        columns: i64,
    },
}

#[derive(Clone, Debug)]
struct Row {
    start: i64,
    column: i64,
    /// Bit n: group n has a bucket that is not zero.
    touched: u64,
    counts: Vec<u64>,
}

/// The counts.
#[derive(Clone, Debug)]
pub struct Cells {
    interval: i64,
    columns: Option<i64>,
    current: usize,
    rows: Vec<Row>,
    group: u32,
    aside: Vec<Cell>,
    first: i64,
    last: i64,
    /// The maximum number of cells was exceeded with a fixed interval.
    overflowed: bool,
}

impl Cells {
    /// No counts yet. `buckets` is the maximum number of open buckets.
    pub fn new(interval: Interval, buckets: usize) -> Self {
        let (interval, columns) = match interval {
            Interval::Fixed(interval) => (interval.clamp(1, LONGEST), None),
            // times before and after 0 are never in the same column, so there are at least two
            Interval::Auto { finest, columns } => (finest.clamp(1, LONGEST), Some(columns.max(2))),
        };
        let group = buckets.div_ceil(64).next_power_of_two().trailing_zeros();
        let row = Row { start: i64::MAX, column: i64::MAX, touched: 0, counts: vec![0; buckets] };
        Self {
            interval,
            columns,
            current: 0,
            rows: vec![row; OPEN],
            group,
            aside: Vec::new(),
            first: i64::MAX,
            last: i64::MIN,
            overflowed: false,
        }
    }

    /// Current length of an interval.
    pub fn interval(&self) -> i64 {
        self.interval
    }

    /// Whether counts were dropped because there were too many cells.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Count at a time. `place` is the number of the bucket minus `base`, the first open bucket.
    #[inline(always)]
    pub fn add(&mut self, time: i64, place: usize, count: u64, base: u64) {
        let mut row = &mut self.rows[self.current];
        // an unused row starts so late that no time is in it
        if (time.wrapping_sub(row.start) as u64) >= self.interval as u64 {
            self.turn_to(time, base);
            row = &mut self.rows[self.current];
        }
        row.touched |= 1 << (place >> self.group);
        let cell = &mut row.counts[place];
        *cell = cell.saturating_add(count);
    }

    #[cold]
    fn turn_to(&mut self, time: i64, base: u64) {
        let mut column = time.div_euclid(self.interval);
        if column < self.first || column > self.last {
            self.first = self.first.min(column);
            self.last = self.last.max(column);
            if let Some(columns) = self.columns {
                while self.last.abs_diff(self.first) >= columns as u64 {
                    self.put_all_aside(base);
                    self.lengthen();
                    column = time.div_euclid(self.interval);
                }
            }
        }
        let place = column.rem_euclid(OPEN as i64) as usize;
        if self.rows[place].column != column {
            self.close(place, base);
            self.rows[place].start = column.saturating_mul(self.interval);
            self.rows[place].column = column;
        }
        self.current = place;
    }

    /// Close a row. Sum the closed cells if there are many.
    fn close(&mut self, place: usize, base: u64) {
        self.put_aside(place, base);
        if self.aside.len() < LIMIT {
            return;
        }
        self.put_all_aside(base);
        self.sum();
        while self.aside.len() > LIMIT / 2 {
            if self.columns.is_none() {
                self.overflowed = true;
                self.aside.truncate(LIMIT / 2);
            } else if self.last - self.first <= 1 {
                // two columns have no more cells than buckets: this is the maximum
                break;
            } else {
                self.lengthen();
            }
        }
    }

    fn put_aside(&mut self, place: usize, base: u64) {
        let row = &mut self.rows[place];
        while row.touched != 0 {
            let group = row.touched.trailing_zeros() as usize;
            row.touched &= row.touched - 1;
            let from = group << self.group;
            let to = (from + (1 << self.group)).min(row.counts.len());
            for (within, count) in row.counts[from..to].iter_mut().enumerate().filter(|cell| *cell.1 > 0) {
                let bucket = base + (from + within) as u64;
                self.aside.push(Cell { column: row.column, bucket, count: std::mem::take(count) });
            }
        }
        row.column = i64::MAX;
        row.start = i64::MAX;
    }

    /// Close all rows, before a change of the scale of buckets or of `base`.
    pub fn put_all_aside(&mut self, base: u64) {
        (0..OPEN).for_each(|place| self.put_aside(place, base));
    }

    /// Divide bucket numbers by `2^shift`. All rows must be closed.
    pub fn widen_buckets(&mut self, shift: u32) {
        self.aside.iter_mut().for_each(|cell| cell.bucket >>= shift);
        self.sum();
    }

    /// Make intervals ten times as long. All rows must be closed.
    fn lengthen(&mut self) {
        self.lengthen_by(10);
    }

    /// Make intervals `factor` times as long. All rows must be closed.
    pub fn lengthen_by(&mut self, factor: i64) {
        self.interval = self.interval.saturating_mul(factor).min(LONGEST);
        for cell in &mut self.aside {
            cell.column = cell.column.div_euclid(factor);
        }
        if self.first <= self.last {
            self.first = self.first.div_euclid(factor);
            self.last = self.last.div_euclid(factor);
        }
        self.sum();
    }

    /// Add the counts of another one with the same scale of buckets. The longer interval is kept. All rows must be
    /// closed.
    pub fn absorb(&mut self, mut other: Cells) {
        while self.interval < other.interval {
            self.lengthen();
        }
        while other.interval < self.interval {
            other.lengthen();
        }
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.overflowed |= other.overflowed;
        self.aside.append(&mut other.aside);
        self.sum();
        if let Some(columns) = self.columns {
            while self.first <= self.last && self.last.abs_diff(self.first) >= columns as u64 {
                self.lengthen();
            }
        }
    }

    /// Sort the cells, and add up equal ones.
    fn sum(&mut self) {
        self.aside.sort_unstable_by_key(|cell| (cell.column, cell.bucket));
        self.aside.dedup_by(|next, kept| {
            let same = next.column == kept.column && next.bucket == kept.bucket;
            if same {
                kept.count = kept.count.saturating_add(next.count);
            }
            same
        });
    }

    /// First and last column with a count.
    pub fn span(&self) -> Option<(i64, i64)> {
        (self.first <= self.last).then_some((self.first, self.last))
    }

    /// All cells, sorted by column, then bucket. All rows must be closed.
    pub fn sorted(&mut self) -> &[Cell] {
        self.sum();
        &self.aside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn expected(events: &[(i64, usize)], interval: i64) -> Vec<Cell> {
        let mut counts = BTreeMap::new();
        for &(time, place) in events {
            *counts.entry((time.div_euclid(interval), place as u64)).or_insert(0) += 1;
        }
        counts.into_iter().map(|((column, bucket), count)| Cell { column, bucket, count }).collect()
    }

    fn counted(interval: Interval, events: &[(i64, usize)]) -> Cells {
        let mut cells = Cells::new(interval, 500);
        events.iter().for_each(|&(time, place)| cells.add(time, place, 1, 0));
        cells.put_all_aside(0);
        cells
    }

    proptest! {
        #[test]
        fn any_order_of_times_gives_the_same(events in prop::collection::vec((-100_000i64..100_000, 0usize..500), 0..400), interval in 1i64..50_000) {
            let mut cells = counted(Interval::Fixed(interval), &events);
            prop_assert_eq!(cells.sorted(), expected(&events, interval));
        }

        #[test]
        fn automatic_intervals_are_exact_and_few(
            events in prop::collection::vec((-LONGEST..LONGEST, 0usize..500), 1..200), shift in 0u32..62, columns in 2i64..100,
        ) {
            let events: Vec<_> = events.into_iter().map(|(time, place)| (time >> shift, place)).collect();
            let mut cells = counted(Interval::Auto { finest: 1, columns }, &events);
            let interval = cells.interval();
            let (first, last) = cells.span().unwrap();
            prop_assert!(last - first < columns);
            if interval < LONGEST {
                prop_assert_eq!(cells.sorted(), expected(&events, interval));
            }
        }

        #[test]
        fn parts_absorbed_are_the_whole(events in prop::collection::vec((0i64..1 << 40, 0usize..500), 1..200), cut in 0usize..200) {
            let auto = Interval::Auto { finest: 1000, columns: 50 };
            let (one, two) = events.split_at(cut.min(events.len()));
            let mut merged = counted(auto, one);
            merged.absorb(counted(auto, two));
            let mut whole = counted(auto, &events);
            prop_assert_eq!(merged.interval(), whole.interval());
            prop_assert_eq!(merged.sorted(), whole.sorted());
        }
    }

    #[test]
    fn memory_is_bounded_by_longer_intervals() {
        let mut cells = Cells::new(Interval::Auto { finest: 1, columns: 1 << 40 }, 400);
        let count = 3 * LIMIT as i64;
        (0..count).for_each(|time| cells.add(time * 7919 % 1_000_003, (time % 397) as usize, 1, 0));
        cells.put_all_aside(0);
        assert!(cells.aside.capacity() <= 2 * LIMIT + 4 * 400);
        assert!(!cells.overflowed());
        assert_eq!(cells.sorted().iter().map(|cell| cell.count).sum::<u64>(), count as u64);
    }

    #[test]
    fn a_fixed_interval_that_is_too_short_says_so() {
        let mut cells = Cells::new(Interval::Fixed(1), 4);
        (0..2 * LIMIT as i64).for_each(|time| cells.add(time, 0, 1, 0));
        assert!(cells.overflowed());
    }
}
