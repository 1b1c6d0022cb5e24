// SPDX-License-Identifier: Apache-2.0
//! Events into cells.

use super::auto::round_factor;
use super::{HeatMap, Scale, Spec, Tally, Weight, Y};
use crate::cells::{Cells, Interval};
use crate::error::TraceError;
use crate::event::{Event, Sink};
use crate::filter::Filter;
use crate::grid::Grid;
use crate::linear::Linear;
use crate::names::Names;
use crate::readers::Work;
use crate::scan::Merge;

/// Fine columns per requested column, so that a round interval can be chosen at the end.
const FINE_COLUMNS: i64 = 20;
/// Equal buckets per requested bucket, so that the range can be fitted at the end.
const FINE_BUCKETS: u64 = 2;

/// Buckets while events are added.
#[derive(Clone, Copy, Debug)]
enum Buckets {
    Log(Grid),
    Linear { scale: Linear, base: u64, open: u64, smallest: u64, largest: u64 },
}

/// Counts events into cells.
#[derive(Clone, Debug)]
pub struct HeatSink {
    y: Y,
    weight: Weight,
    low: u64,
    high: Option<u64>,
    filter: Filter,
    buckets: Buckets,
    cells: Cells,
    tally: Tally,
}

impl HeatSink {
    pub(super) fn new(spec: &Spec, mut filter: Filter, finest_ns: i64, work: &mut Work) -> Self {
        filter.bind(&mut work.names);
        let (buckets, open) = match spec.linear_buckets {
            None => {
                let grid = Grid::new(spec.bits).expect("checked");
                (Buckets::Log(grid), grid.index(u64::MAX) as usize + 1)
            }
            Some(wanted) => {
                let open = u64::from(wanted) * FINE_BUCKETS;
                // with a complete range, the buckets are known
                let scale =
                    spec.high.map_or(Linear::FINEST, |high| Linear::covering(spec.low.unwrap_or(0), high - 1, open));
                let base = scale.index(spec.low.unwrap_or(0));
                (Buckets::Linear { scale, base, open, smallest: u64::MAX, largest: 0 }, open as usize)
            }
        };
        let interval = match spec.interval_ns {
            Some(interval) => Interval::Fixed(interval),
            None => Interval::Auto { finest: finest_ns, columns: i64::from(spec.columns_wanted) * FINE_COLUMNS },
        };
        let (low, high) = (spec.low.unwrap_or(0), spec.high);
        let cells = Cells::new(interval, open);
        Self { y: spec.y, weight: spec.weight, low, high, filter, buckets, cells, tally: Tally::default() }
    }

    #[inline(always)]
    fn count(&mut self, time_ns: i64, value: u64, amount: u64) {
        match &mut self.buckets {
            Buckets::Log(grid) => self.cells.add(time_ns, grid.index(value) as usize, amount, 0),
            Buckets::Linear { scale, base, open, smallest, largest } => {
                *smallest = value.min(*smallest);
                *largest = value.max(*largest);
                let mut place = scale.index(value).wrapping_sub(*base);
                if place >= *open {
                    Self::reopen(&mut self.cells, scale, base, *open, *smallest, *largest);
                    place = scale.index(value) - *base;
                }
                self.cells.add(time_ns, place as usize, amount, *base);
            }
        }
    }

    /// Open the buckets of all values so far, wider ones if necessary, with a margin on either side.
    #[cold]
    fn reopen(cells: &mut Cells, scale: &mut Linear, base: &mut u64, open: u64, smallest: u64, largest: u64) {
        cells.put_all_aside(*base);
        let fitting = Linear::covering(smallest, largest, open);
        if fitting.shift() > scale.shift() {
            cells.widen_buckets(fitting.shift() - scale.shift());
            *scale = fitting;
        }
        let (first, last) = (scale.index(smallest), scale.index(largest));
        let most = scale.index(u64::MAX) + u64::from(scale.shift() > 0);
        let spare = open - (last - first + 1);
        *base = first.saturating_sub(spare / 2).min(most.saturating_sub(open).min(first));
    }

    fn base(&self) -> u64 {
        match self.buckets {
            Buckets::Log(_) => 0,
            Buckets::Linear { base, .. } => base,
        }
    }

    pub(super) fn into_map(mut self, spec: &Spec) -> Result<HeatMap, TraceError> {
        let base = self.base();
        self.cells.put_all_aside(base);
        if self.cells.overflowed() {
            return Err(TraceError::new("too many cells at this interval; a longer one is needed"));
        }
        let (scale, first_bucket) = match self.buckets {
            Buckets::Log(grid) => (Scale::Log(grid), 0),
            Buckets::Linear { scale, smallest, largest, .. } => {
                let wanted = u64::from(spec.linear_buckets.unwrap_or(1));
                // a requested range is drawn completely; otherwise the range of the values
                let low = spec.low.unwrap_or(if smallest > largest { 0 } else { smallest });
                let high = spec.high.map_or(largest.max(low), |high| high - 1);
                let fitting = Linear::covering(low, high, wanted);
                let wider = if fitting.shift() > scale.shift() { fitting } else { scale };
                self.cells.widen_buckets(wider.shift() - scale.shift());
                let (first, last) = (wider.index(low), wider.index(high));
                let buckets = (last - first + 1) as u32;
                (Scale::Linear { low: wider.lower(first), width: wider.width(), buckets }, first)
            }
        };
        if spec.interval_ns.is_none() {
            if let Some(span) = self.cells.span() {
                let factor = round_factor(self.cells.interval(), span, i64::from(spec.columns_wanted));
                self.cells.lengthen_by(factor);
            }
        }
        let interval_ns = self.cells.interval();
        let (first, last) = self.cells.span().unwrap_or((0, -1));
        let column_count = u32::try_from(last - first + 1)
            .map_err(|_| TraceError::new("more columns than 32 bits count at this interval; a longer one is needed"))?;
        let cells = self.cells.sorted();
        Ok(HeatMap {
            t0_ns: first.saturating_mul(interval_ns),
            interval_ns,
            column_count,
            scale,
            column: cells.iter().map(|cell| (cell.column - first) as u32).collect(),
            index: cells.iter().map(|cell| (cell.bucket - first_bucket) as u32).collect(),
            count: cells.iter().map(|cell| cell.count).collect(),
            tally: self.tally,
        })
    }
}

impl Sink for HeatSink {
    #[inline(always)]
    fn event(&mut self, event: &Event, _names: &Names) {
        if !self.filter.passes(event) {
            self.tally.skipped += event.count;
            return;
        }
        let value = match self.y {
            Y::Latency => event.latency_ns,
            Y::Offset => event.offset_bytes,
            Y::Size => event.size_bytes,
        };
        let amount = match self.weight {
            Weight::Count => Some(event.count),
            Weight::Time => event.latency_ns.map(|latency| latency.saturating_mul(event.count)),
        };
        let (Some(value), Some(amount)) = (value, amount) else {
            self.tally.without_y += event.count;
            return;
        };
        if value < self.low || self.high.is_some_and(|high| value >= high) {
            self.tally.outside += event.count;
            return;
        }
        self.tally.events += event.count;
        self.count(event.time_ns, value, amount);
    }
}

impl Merge for HeatSink {
    fn merge(&mut self, mut other: Self, _own: &mut Work, _other_work: &Work) {
        self.cells.put_all_aside(self.base());
        other.cells.put_all_aside(other.base());
        if let (
            Buckets::Linear { scale, smallest, largest, base, .. },
            Buckets::Linear { scale: other_scale, smallest: other_smallest, largest: other_largest, .. },
        ) = (&mut self.buckets, &other.buckets)
        {
            let wider = if scale.shift() > other_scale.shift() { *scale } else { *other_scale };
            self.cells.widen_buckets(wider.shift() - scale.shift());
            other.cells.widen_buckets(wider.shift() - other_scale.shift());
            *scale = wider;
            *smallest = (*smallest).min(*other_smallest);
            *largest = (*largest).max(*other_largest);
            *base = 0;
        }
        self.cells.absorb(other.cells);
        self.tally.events += other.tally.events;
        self.tally.outside += other.tally.outside;
        self.tally.without_y += other.tally.without_y;
        self.tally.skipped += other.tally.skipped;
    }
}
