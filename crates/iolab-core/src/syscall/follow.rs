// SPDX-License-Identifier: Apache-2.0
//! Tracks a position through calls, exactly or not at all.
//!
//! Calls that use the same position one after another each start where the previous one ended. The order of calls that
//! overlap in time is unknown, so their positions are unknown. The kernel serialises them on regular files, so the
//! position is known again after all have returned, by the sum of their bytes.

/// A position that calls change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    at: Option<u64>,
    busy: u32,
    overlapped: bool,
    moved: u64,
}

impl Follow {
    /// A position `at`, or an unknown one.
    pub fn new(at: Option<u64>) -> Self {
        Self { at, ..Self::default() }
    }

    /// A call that uses the position was entered.
    pub fn begin(&mut self) {
        self.busy += 1;
        self.overlapped |= self.busy > 1;
    }

    /// The call returned and moved the position by `bytes`. Returns its start position if it is certain.
    pub fn end(&mut self, bytes: u64) -> Option<u64> {
        self.busy = self.busy.saturating_sub(1);
        if self.overlapped {
            self.moved = self.moved.saturating_add(bytes);
            if self.busy == 0 {
                self.at = self.at.and_then(|at| at.checked_add(self.moved));
                self.moved = 0;
                self.overlapped = false;
            }
            return None;
        }
        let began = self.at;
        self.at = began.and_then(|at| at.checked_add(bytes));
        began
    }

    /// A call that set the position returned; `begin` was called at its entry.
    pub fn set(&mut self, at: Option<u64>) {
        let alone = !self.overlapped;
        self.end(0);
        // of overlapping calls, the last one is unknown
        self.at = if alone { at } else { None };
    }

    /// The position may have changed without a record.
    pub fn lose(&mut self) {
        self.at = None;
    }

    /// Whether a call that uses it has not returned.
    pub fn busy(&self) -> bool {
        self.busy > 0
    }

    /// The position, if it is known and no call is changing it.
    pub fn at(&self) -> Option<u64> {
        if self.busy == 0 {
            self.at
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_after_another_is_exact() {
        let mut follow = Follow::new(Some(0));
        follow.begin();
        assert_eq!(follow.end(4096), Some(0));
        follow.begin();
        follow.set(Some(100));
        follow.begin();
        assert_eq!(follow.end(5), Some(100));
        assert_eq!(follow.at(), Some(105));
    }

    #[test]
    fn overlapping_calls_are_unknown_and_their_sum_is_not() {
        let mut follow = Follow::new(Some(10));
        follow.begin();
        follow.begin();
        assert_eq!((follow.end(3), follow.end(4)), (None, None));
        follow.begin();
        assert_eq!(follow.end(1), Some(17));
    }

    #[test]
    fn a_seek_among_overlapping_calls_leaves_it_unknown() {
        let mut follow = Follow::new(Some(10));
        follow.begin();
        follow.begin();
        follow.set(Some(0));
        follow.end(4);
        assert_eq!(follow.at(), None);
    }

    proptest! {
        /// The kernel moves the position at some moment within each call; the result is correct for all such moments.
        #[test]
        fn known_positions_are_true(calls in prop::collection::vec((0u32..60, 1u32..12, 0u32..12, 0u64..9, prop::option::of(0u64..50)), 1..25)) {
            let mut steps = Vec::new();
            for (index, &(start, length, within, ..)) in calls.iter().enumerate() {
                steps.push((start * 4, 2, index)); // entries after returns of the same moment would hide an overlap: order by kind
                steps.push((start * 4 + within.min(length - 1) * 4 + 1, 1, index));
                steps.push((start * 4 + length * 4, 0, index));
            }
            steps.sort_by_key(|&(time, kind, index)| (time, std::cmp::Reverse(kind), index));
            let (mut follow, mut truth, mut began) = (Follow::new(Some(7)), 7u64, vec![0u64; calls.len()]);
            for (_, kind, index) in steps {
                let (.., bytes, seek) = calls[index];
                match kind {
                    2 => follow.begin(),
                    1 => {
                        began[index] = truth;
                        truth = seek.unwrap_or(truth + bytes);
                    }
                    _ => match seek {
                        Some(at) => follow.set(Some(at)),
                        None => if let Some(start) = follow.end(bytes) { prop_assert_eq!(start, began[index]) },
                    },
                }
            }
            if let Some(at) = follow.at() {
                prop_assert_eq!(at, truth);
            }
        }
    }
}
