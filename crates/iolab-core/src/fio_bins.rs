// SPDX-License-Identifier: Apache-2.0
//! fio's json+ latency bins, mapped to the grid.
//!
//! The key of a fio bin is a value in it, in nanoseconds: since fio 2.99 the middle of the bucket, which
//! `plat_idx_to_val` of fio's `stat.c` computes. With 6 bits, the buckets of fio and of the grid are the same, so no
//! count moves.

use crate::grid::Grid;

/// Bits per octave of fio's own histogram (`FIO_IO_U_PLAT_BITS`).
pub const FIO_BITS: u32 = 6;

/// Indices (ascending, without duplicates) and counts on fio's grid of bins given as (nanoseconds, count).
pub fn take_over(bins: impl IntoIterator<Item = (u64, u64)>) -> (Vec<u32>, Vec<u64>) {
    let grid = Grid::new(FIO_BITS).expect("6 bits are offered");
    let mut counts = std::collections::BTreeMap::new();
    for (nanoseconds, count) in bins {
        *counts.entry(grid.index(nanoseconds)).or_insert(0) += count;
    }
    counts.into_iter().unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `plat_idx_to_val` of fio 3.x, written from its description: linear below 2^(bits+1), else the middle of a bucket.
    fn fio_midpoint(index: u64) -> u64 {
        let linear = 1u64 << FIO_BITS;
        if index < linear << 1 {
            return index;
        }
        let error_bits = (index >> FIO_BITS) - 1;
        let base = 1u64 << (error_bits + u64::from(FIO_BITS));
        let bucket = index % linear;
        base + ((2 * bucket + 1) << error_bits) / 2
    }

    proptest! {
        #[test]
        fn every_fio_bin_has_a_bucket_of_its_own(index in 0u64..(29 * 64)) {
            let (indices, counts) = take_over([(fio_midpoint(index), 3)]);
            prop_assert_eq!((indices, counts), (vec![index as u32], vec![3]));
        }

        #[test]
        fn no_count_is_lost(bins in prop::collection::vec((0u64..u64::MAX, 0u64..1_000_000), 0..100)) {
            let total: u64 = bins.iter().map(|bin| bin.1).sum();
            let (_, counts) = take_over(bins);
            prop_assert_eq!(counts.iter().sum::<u64>(), total);
        }
    }
}
