// SPDX-License-Identifier: Apache-2.0
//! Power-of-two histograms (`zpool iostat -w` and the kernel tools: entry n counts values in [2^n, 2^(n+1))), converted
//! to the grid of 0 bits without loss.
//!
//! The grid of 0 bits has only value 0 in bucket 0, and [2^n, 2^(n+1)) in bucket n + 1, so entry n moves to bucket n +
//! 1. If a tool counts zeroes in entry 0, they are in the bucket of 1, because the tool does not distinguish them.

/// Entries of a histogram of 64-bit values.
pub const ENTRIES: usize = 64;

/// Indices (ascending) and counts on the grid of 0 bits; `None` if there are more entries than 64-bit values have.
pub fn take_over(counts: &[u64]) -> Option<(Vec<u32>, Vec<u64>)> {
    if counts.len() > ENTRIES {
        return None;
    }
    Some(
        counts.iter().enumerate().filter(|entry| *entry.1 > 0).map(|(entry, &count)| (entry as u32 + 1, count)).unzip(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_entry_covers_its_bucket(entry in 0usize..ENTRIES, count in 1u64..1_000_000) {
            let mut counts = vec![0; ENTRIES];
            counts[entry] = count;
            let (indices, taken) = take_over(&counts).unwrap();
            let grid = Grid::new(0).unwrap();
            prop_assert_eq!(taken, vec![count]);
            prop_assert_eq!(grid.lower(indices[0]), 1u64 << entry);
            prop_assert_eq!(grid.upper(indices[0]), if entry == 63 { u64::MAX } else { (1u64 << (entry + 1)) - 1 });
        }

        #[test]
        fn no_count_is_lost(counts in prop::collection::vec(0u64..1_000_000, 0..=ENTRIES)) {
            prop_assert_eq!(take_over(&counts).unwrap().1.iter().sum::<u64>(), counts.iter().sum::<u64>());
        }
    }

    #[test]
    fn too_many_entries_are_refused() {
        assert_eq!(take_over(&[0; 65]), None);
    }
}
