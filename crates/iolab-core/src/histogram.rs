// SPDX-License-Identifier: Apache-2.0
//! Counts on the grid. Adding, merging and coarsening are exact.

use crate::grid::{self, Grid};

/// Counts on a grid, up to the largest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    grid: Grid,
    counts: Vec<u64>,
}

impl Histogram {
    /// Empty histogram.
    pub fn new(grid: Grid) -> Self {
        Self { grid, counts: Vec::new() }
    }

    /// Count a value `count` times.
    pub fn add(&mut self, value: u64, count: u64) {
        let index = self.grid.index(value) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += count;
    }

    /// Add all counts of another histogram of the same grid.
    ///
    /// # Panics
    /// If the grids differ: coarsen first.
    pub fn merge(&mut self, other: &Histogram) {
        assert_eq!(self.grid, other.grid, "histograms of different grids");
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
    }

    /// Total count.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Indices (ascending) and counts of the buckets that are not empty.
    pub fn sparse(&self) -> (Vec<u32>, Vec<u64>) {
        self.counts
            .iter()
            .enumerate()
            .filter(|bucket| *bucket.1 > 0)
            .map(|(index, &count)| (index as u32, count))
            .unzip()
    }
}

/// Counts at ascending indices of a fine grid, converted to a coarser one: the same as counting there.
///
/// # Panics
/// If the other grid is finer.
pub fn coarsen(fine: Grid, indices: &[u32], counts: &[u64], coarse: Grid) -> (Vec<u32>, Vec<u64>) {
    let mut merged: Vec<(u32, u64)> = Vec::new();
    for (&index, &count) in indices.iter().zip(counts) {
        let index = fine.coarsen(index, coarse);
        match merged.last_mut() {
            Some(last) if last.0 == index => last.1 += count,
            _ => merged.push((index, count)),
        }
    }
    merged.into_iter().unzip()
}

/// Values at several quantiles; `None` for each if there are no counts.
pub fn quantiles(histogram: &Histogram, wanted: &[f64]) -> Vec<Option<u64>> {
    let (indices, counts) = histogram.sparse();
    wanted.iter().map(|&q| grid::quantile(histogram.grid, &indices, &counts, q)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(bits: u32, values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new(Grid::new(bits).unwrap());
        values.iter().for_each(|&value| histogram.add(value, 1));
        histogram
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(values in prop::collection::vec(0u64..1 << 50, 0..200), cut in 0usize..200, bits in 0u32..=6) {
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut merged = counted(bits, one);
            merged.merge(&counted(bits, two));
            prop_assert_eq!(merged.sparse(), counted(bits, &values).sparse());
            prop_assert_eq!(merged.total(), values.len() as u64);
        }

        #[test]
        fn coarsening_is_as_if_counted_coarse(values in prop::collection::vec(0u64..1 << 50, 0..200), bits in 0u32..=6, fewer in 0u32..=6) {
            let (fine, coarse) = (bits.max(fewer), bits.min(fewer));
            let (indices, counts) = counted(fine, &values).sparse();
            let coarsened = coarsen(Grid::new(fine).unwrap(), &indices, &counts, Grid::new(coarse).unwrap());
            prop_assert_eq!(coarsened, counted(coarse, &values).sparse());
        }

        #[test]
        fn a_percentile_is_within_the_grids_bound(mut values in prop::collection::vec(1u64..1 << 40, 1..300), q in 0.0f64..=1.0) {
            let found = quantiles(&counted(3, &values), &[q])[0].unwrap() as f64;
            values.sort_unstable();
            let exact = values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1] as f64;
            prop_assert!(exact <= found && found <= exact * (1.0 + 1.0 / 8.0));
        }
    }
}
