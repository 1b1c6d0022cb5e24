// SPDX-License-Identifier: Apache-2.0
//! Summary of a trace, in one pass.

use crate::event::{Dimension, Event, Op, Sink, DIMENSIONS};
use crate::filter::Filter;
use crate::fio_bins::FIO_BITS;
use crate::grid::Grid;
use crate::histogram::{quantiles, Histogram};
use crate::names::{Names, OTHER};
use crate::readers::Work;
use crate::scan::Merge;

/// Number of names of a dimension with separate latencies: the first that appear, so that memory stays bounded.
const APART: u32 = 512;
/// Percentiles in the summary.
pub const PERCENTILES: [(&str, f64); 5] = [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];

/// Distribution of a value.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram,
    count: u64,
    sum: u128,
    max: u64,
}

impl Distribution {
    fn new() -> Self {
        Self { histogram: Histogram::new(Grid::new(FIO_BITS).expect("6 bits are offered")), count: 0, sum: 0, max: 0 }
    }

    fn add(&mut self, value: u64, count: u64) {
        self.histogram.add(value, count);
        self.count += count;
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(count));
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Percentiles (upper bounds of buckets, never above the maximum) and the maximum; empty if there are no values.
    pub fn percentiles(&self) -> Vec<(&'static str, u64)> {
        if self.count == 0 {
            return Vec::new();
        }
        let found = quantiles(&self.histogram, &PERCENTILES.map(|percentile| percentile.1));
        let named =
            PERCENTILES.iter().zip(found).filter_map(|(percentile, value)| Some((percentile.0, value?.min(self.max))));
        named.chain([("max", self.max)]).collect()
    }
}

#[derive(Clone, Debug, Default)]
struct ByKey {
    counts: Vec<u64>,
    latencies: Vec<Option<Box<Distribution>>>,
}

impl ByKey {
    fn add(&mut self, key: u32, count: u64, latency: Option<u64>) {
        let place = key as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += count;
        if let Some(latency) = latency.filter(|_| key < APART) {
            self.distribution(key).add(latency, count);
        }
    }

    fn distribution(&mut self, key: u32) -> &mut Distribution {
        let place = key as usize;
        if place >= self.latencies.len() {
            self.latencies.resize(place + 1, None);
        }
        self.latencies[place].get_or_insert_with(|| Box::new(Distribution::new()))
    }
}

/// The counts.
#[derive(Clone, Debug)]
pub struct Summary {
    filter: Filter,
    /// I/Os.
    pub events: u64,
    /// Events dropped by the filter.
    pub skipped: u64,
    /// Earliest and latest time.
    pub span: Option<(i64, i64)>,
    /// I/Os by operation.
    pub ops: [u64; 6],
    /// Latencies.
    pub latency: Distribution,
    /// Sizes.
    pub size: Distribution,
    /// Latencies by operation.
    pub latency_of_op: [Distribution; 6],
    has_offset: bool,
    keys: [ByKey; DIMENSIONS],
    backwards: u64,
    /// First and last time of each block.
    blocks: Vec<(u64, i64, i64)>,
    block: u64,
    last: Option<i64>,
}

impl Summary {
    /// Nothing counted yet.
    pub fn new(mut filter: Filter, work: &mut Work) -> Self {
        filter.bind(&mut work.names);
        Self {
            filter,
            events: 0,
            skipped: 0,
            span: None,
            ops: [0; 6],
            latency: Distribution::new(),
            size: Distribution::new(),
            latency_of_op: std::array::from_fn(|_| Distribution::new()),
            has_offset: false,
            keys: Default::default(),
            backwards: 0,
            blocks: Vec::new(),
            block: 0,
            last: None,
        }
    }

    fn close_block(&mut self) {
        self.last = None;
    }

    /// Number of events that are earlier than the previous one.
    pub fn backwards(&mut self) -> u64 {
        self.blocks.sort_unstable();
        let between = self.blocks.windows(2).filter(|pair| pair[1].1 < pair[0].2).count();
        self.backwards + between as u64
    }

    /// Fields that at least one event has.
    pub fn has(&self) -> Vec<&'static str> {
        let keys = |dimension: Dimension| self.keys[dimension as usize].counts.iter().any(|&count| count > 0);
        let fields = [
            ("time", self.events > 0),
            ("latency", self.latency.count > 0),
            ("offset", self.has_offset),
            ("size", self.size.count > 0),
            ("op", self.events > self.ops[Op::Other as usize]),
        ];
        let named = Dimension::ALL.into_iter().filter(|&dimension| keys(dimension)).map(Dimension::name);
        fields.into_iter().filter(|field| field.1).map(|field| field.0).chain(named).collect()
    }

    /// The most frequent names of a dimension, up to `limit`, with their events and latencies.
    pub fn largest(
        &self,
        dimension: Dimension,
        names: &Names,
        most: usize,
    ) -> Vec<(String, u64, Option<&Distribution>)> {
        let by_key = &self.keys[dimension as usize];
        let mut order: Vec<usize> = (0..by_key.counts.len()).filter(|&key| by_key.counts[key] > 0).collect();
        let text = |key: usize| crate::names::text(names.table(dimension).name(key as u32));
        order.sort_by_key(|&key| (std::cmp::Reverse(by_key.counts[key]), key));
        order.truncate(most);
        let latency = |key: usize| by_key.latencies.get(key).and_then(|found| found.as_deref());
        order.into_iter().map(|key| (text(key), by_key.counts[key], latency(key))).collect()
    }

    /// Number of different names of a dimension.
    pub fn distinct(&self, dimension: Dimension) -> usize {
        self.keys[dimension as usize].counts.iter().filter(|&&count| count > 0).count()
    }

    /// Number of events with a name beyond the limit of names.
    pub fn other(&self, dimension: Dimension, names: &Names) -> u64 {
        let other = names.table(dimension).get(OTHER.as_bytes());
        other.and_then(|key| self.keys[dimension as usize].counts.get(key as usize)).copied().unwrap_or(0)
    }
}

impl Sink for Summary {
    fn event(&mut self, event: &Event, _names: &Names) {
        if !self.filter.passes(event) {
            self.skipped += event.count;
            return;
        }
        let time = event.time_ns;
        self.events += event.count;
        self.ops[event.op as usize] += event.count;
        self.span = Some(self.span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        match self.last {
            Some(last) => {
                self.backwards += u64::from(time < last);
                if let Some(block) = self.blocks.last_mut() {
                    block.2 = time;
                }
            }
            None => self.blocks.push((self.block, time, time)),
        }
        self.last = Some(time);
        self.has_offset |= event.offset_bytes.is_some();
        if let Some(latency) = event.latency_ns {
            self.latency.add(latency, event.count);
            self.latency_of_op[event.op as usize].add(latency, event.count);
        }
        if let Some(size) = event.size_bytes {
            self.size.add(size, event.count);
        }
        for (by_key, key) in self.keys.iter_mut().zip(event.keys) {
            if let Some(key) = key {
                by_key.add(key, event.count, event.latency_ns);
            }
        }
    }

    fn block(&mut self, number: u64) {
        self.close_block();
        self.block = number;
    }
}

impl Merge for Summary {
    fn merge(&mut self, other: Self, own: &mut Work, other_work: &Work) {
        self.events += other.events;
        self.skipped += other.skipped;
        self.backwards += other.backwards;
        self.has_offset |= other.has_offset;
        self.span = match (self.span, other.span) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
        self.blocks.extend(other.blocks);
        self.latency.merge(&other.latency);
        self.size.merge(&other.size);
        for op in 0..self.ops.len() {
            self.ops[op] += other.ops[op];
            self.latency_of_op[op].merge(&other.latency_of_op[op]);
        }
        for dimension in Dimension::ALL {
            let place = dimension as usize;
            let numbers = own.names.table_mut(dimension).absorb(other_work.names.table(dimension));
            for (key, &count) in other.keys[place].counts.iter().enumerate().filter(|entry| *entry.1 > 0) {
                self.keys[place].add(numbers[key], count, None);
            }
            for (key, latencies) in other.keys[place].latencies.iter().enumerate() {
                if let Some(latencies) = latencies.as_ref().filter(|_| numbers[key] < APART) {
                    self.keys[place].distribution(numbers[key]).merge(latencies);
                }
            }
        }
    }
}
