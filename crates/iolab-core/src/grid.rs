// SPDX-License-Identifier: Apache-2.0
//! The log-linear grid of all histograms of iolab.
//!
//! Values below `2^bits` have a bucket each; above, every octave is divided into `2^bits` equal buckets. This is the
//! geometry of HdrHistogram. With 6 bits it is also that of fio (`stat.h`, `FIO_IO_U_PLAT_BITS`), so that counts of
//! both can be converted without error. Indices of a grid are consecutive, merging is addition, and coarsening by whole
//! bits is exact because a coarse bucket is a union of fine ones.

/// Resolution of a grid: buckets per octave as a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    bits: u32,
}

/// A resolution that the grid does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBits(pub u32);

impl std::fmt::Display for BadBits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a grid has 0 to {} bits per octave, not {}", Grid::MAX_BITS, self.0)
    }
}

impl std::error::Error for BadBits {}

impl Grid {
    /// Finest resolution. With more bits, the index of a 64-bit value might exceed 32 bits.
    pub const MAX_BITS: u32 = 16;

    /// A grid with `2^bits` buckets per octave.
    pub fn new(bits: u32) -> Result<Self, BadBits> {
        if bits > Self::MAX_BITS {
            Err(BadBits(bits))
        } else {
            Ok(Self { bits })
        }
    }

    /// Bits per octave.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Index of the bucket that holds `value`.
    pub fn index(self, value: u64) -> u32 {
        let linear = 1u64 << self.bits;
        if value < linear {
            return value as u32;
        }
        let exponent = 63 - value.leading_zeros();
        let shift = exponent - self.bits;
        let within = (value >> shift) as u32 - linear as u32;
        ((shift + 1) << self.bits) + within
    }

    /// Smallest value of bucket `index`; saturates at the end of 64 bits.
    pub fn lower(self, index: u32) -> u64 {
        let linear = 1u32 << self.bits;
        if index < linear {
            return u64::from(index);
        }
        let shift = (index >> self.bits) - 1;
        let mantissa = u64::from(linear + (index & (linear - 1)));
        if shift > 63 - self.bits {
            u64::MAX
        } else {
            mantissa << shift
        }
    }

    /// Largest value of bucket `index` (inclusive).
    pub fn upper(self, index: u32) -> u64 {
        match self.lower(index + 1) {
            u64::MAX => u64::MAX,
            next => next - 1,
        }
    }

    /// The bucket of a grid with `bits` bits that contains bucket `index` of this grid.
    ///
    /// # Panics
    /// If the other grid is finer: a bucket cannot be divided.
    pub fn coarsen(self, index: u32, coarse: Grid) -> u32 {
        assert!(coarse.bits <= self.bits, "a coarser grid has fewer bits");
        coarse.index(self.lower(index))
    }
}

/// Value at quantile `q` (0 to 1) of the counts at `indices` (ascending): the upper bound of the bucket of the I/O with
/// rank `ceil(q n)`, at least 1. `None` if there are no counts.
pub fn quantile(grid: Grid, indices: &[u32], counts: &[u64], q: f64) -> Option<u64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
    let mut seen = 0;
    for (&index, &count) in indices.iter().zip(counts) {
        seen += count;
        if seen >= rank {
            return Some(grid.upper(index));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vectors() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/grid.json"))
            .expect("tests/vectors/grid.json");
        let vectors: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for case in vectors["cases"].as_array().expect("cases") {
            let number = |key: &str| case[key].as_str().expect(key).parse::<u64>().expect(key);
            let grid = Grid::new(number("bits") as u32).expect("bits");
            let index = grid.index(number("value"));
            assert_eq!(u64::from(index), number("index"), "{case}");
            assert_eq!(grid.lower(index), number("lower"), "{case}");
            assert_eq!(grid.upper(index), number("upper"), "{case}");
        }
    }

    #[test]
    fn too_fine_is_refused() {
        assert_eq!(Grid::new(17), Err(BadBits(17)));
    }

    proptest! {
        #[test]
        fn a_value_is_in_its_bucket(value: u64, bits in 0u32..=16) {
            let grid = Grid::new(bits).unwrap();
            let index = grid.index(value);
            prop_assert!(grid.lower(index) <= value && value <= grid.upper(index));
        }

        #[test]
        fn buckets_are_consecutive(value in 0u64..u64::MAX / 2, bits in 0u32..=16) {
            let grid = Grid::new(bits).unwrap();
            let index = grid.index(value);
            prop_assert_eq!(grid.index(grid.upper(index) + 1), index + 1);
        }

        #[test]
        fn coarsening_commutes_with_indexing(value: u64, bits in 0u32..=16, fewer in 0u32..=16) {
            let (fine, coarse) = (Grid::new(bits.max(fewer)).unwrap(), Grid::new(bits.min(fewer)).unwrap());
            prop_assert_eq!(fine.coarsen(fine.index(value), coarse), coarse.index(value));
        }

        #[test]
        fn relative_width_is_bounded(value in 1u64..u64::MAX / 2, bits in 0u32..=16) {
            let grid = Grid::new(bits).unwrap();
            let index = grid.index(value);
            let width = (grid.upper(index) - grid.lower(index)) as f64;
            prop_assert!(width <= value as f64 / f64::from(1u32 << bits));
        }

        #[test]
        fn quantile_matches_a_sorted_list(mut values in prop::collection::vec(0u64..1_000_000, 1..200), q in 0.0f64..=1.0) {
            let grid = Grid::new(6).unwrap();
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let mut counts = std::collections::BTreeMap::new();
            for &value in &values {
                *counts.entry(grid.index(value)).or_insert(0u64) += 1;
            }
            let (indices, counts): (Vec<_>, Vec<_>) = counts.into_iter().unzip();
            prop_assert_eq!(quantile(grid, &indices, &counts, q), Some(grid.upper(grid.index(values[rank - 1]))));
        }
    }
}
