// SPDX-License-Identifier: Apache-2.0
//! What a round still holds for a number: /proc shows a descriptor as it is at the end of the round, not at a record within it.

use super::call::Call;
use super::record::{Record, Timed};
use super::tasks::SHARES_FILES;
use std::collections::{HashMap, HashSet};

/// Where in the round numbers are given out.
#[derive(Debug, Default)]
pub struct Later {
    made: HashMap<u32, Vec<(usize, u32)>>,
    /// Tasks that were made in it with a table of their own.
    apart: HashSet<u32>,
}

impl Later {
    /// Look at a round.
    pub fn new(round: &[Timed]) -> Self {
        let mut made: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
        let mut apart = HashSet::new();
        for (index, timed) in round.iter().enumerate() {
            if let Record::Fork { child, flags, .. } = timed.record {
                if flags & SHARES_FILES == 0 || apart.contains(&timed.task) {
                    apart.insert(child);
                } else {
                    apart.remove(&child);
                }
            }
            if let Record::Exit { call, returned } = timed.record {
                let gives = call.opens() || matches!(call, Call::Dup | Call::Dup2 | Call::Dup3 | Call::Fcntl);
                if let (true, Ok(number)) = (gives, u32::try_from(returned)) {
                    made.entry(number).or_default().push((index, timed.task));
                }
            }
        }
        Self { made, apart }
    }

    /// Whether a task that is not there yet gets a table that no task has that is there already.
    pub fn is_apart(&self, task: u32) -> bool {
        self.apart.contains(&task)
    }

    /// Whether a number is given out again after a record, by a task that may share the table.
    pub fn anew(&self, after: usize, number: u32, mut shares: impl FnMut(u32) -> bool) -> bool {
        let Some(made) = self.made.get(&number) else { return false };
        let from = made.partition_point(|&(index, _)| index <= after);
        made[from..].iter().any(|&(_, task)| shares(task))
    }
}
