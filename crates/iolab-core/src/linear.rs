// SPDX-License-Identifier: Apache-2.0
//! Equal buckets, for offsets. The width is a power of two, and buckets start at multiples of it, so that doubling the
//! width is exact.

/// Buckets of `2^shift` values; bucket `i` holds `i << shift` up to, not including, `(i + 1) << shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    shift: u32,
}

impl Linear {
    /// Buckets of one value each.
    pub const FINEST: Linear = Linear { shift: 0 };

    /// Buckets of `2^shift` values.
    ///
    /// # Panics
    /// If no bucket would fit 64 bits.
    pub fn new(shift: u32) -> Self {
        assert!(shift < 64, "a bucket is smaller than all values");
        Self { shift }
    }

    /// The finest scale on which at most `buckets` buckets cover `low` to `high`, both inclusive.
    pub fn covering(low: u64, high: u64, buckets: u64) -> Self {
        let fits = |shift: &u32| (high >> shift) - (low >> shift) < buckets.max(1);
        Self { shift: (0..64).find(fits).unwrap_or(63) }
    }

    /// Logarithm of the width.
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// Values per bucket.
    pub fn width(self) -> u64 {
        1 << self.shift
    }

    /// Bucket of a value.
    #[inline(always)]
    pub fn index(self, value: u64) -> u64 {
        value >> self.shift
    }

    /// Smallest value of a bucket.
    pub fn lower(self, index: u64) -> u64 {
        index << self.shift
    }

    /// The wider bucket that contains bucket `index` of this scale.
    pub fn coarsen(self, index: u64, coarse: Linear) -> u64 {
        assert!(coarse.shift >= self.shift, "a bucket cannot be divided");
        index >> (coarse.shift - self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn coarsening_commutes_with_indexing(value: u64, fine in 0u32..64, coarse in 0u32..64) {
            let (fine, coarse) = (Linear::new(fine.min(coarse)), Linear::new(fine.max(coarse)));
            prop_assert_eq!(fine.coarsen(fine.index(value), coarse), coarse.index(value));
        }

        #[test]
        fn covering_is_the_finest_that_covers(one: u64, two: u64, buckets in 2u64..5000) {
            let (low, high) = (one.min(two), one.max(two));
            let scale = Linear::covering(low, high, buckets);
            prop_assert!(scale.index(high) - scale.index(low) < buckets);
            if scale.shift() > 0 {
                let finer = Linear::new(scale.shift() - 1);
                prop_assert!(finer.index(high) - finer.index(low) >= buckets);
            }
        }

        #[test]
        fn a_value_is_in_its_bucket(value: u64, shift in 0u32..64) {
            let scale = Linear::new(shift);
            let lower = scale.lower(scale.index(value));
            prop_assert!(lower <= value && value - lower < scale.width());
        }
    }
}
