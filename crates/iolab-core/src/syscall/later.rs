// SPDX-License-Identifier: Apache-2.0
//! Later changes of a number in the round: a descriptor that is closed or reopened later in the round is not read from
//! /proc.

use super::call::Call;
use super::record::{Record, Timed};
use super::tasks::SHARES_FILES;
use std::collections::{HashMap, HashSet};

/// Positions in the round at which numbers are closed and assigned.
#[derive(Debug, Default)]
pub struct Later {
    changed: HashMap<u32, Vec<(usize, u32)>>,
    /// Tasks that were created in the round with their own table.
    apart: HashSet<u32>,
}

impl Later {
    /// Index the records of a round.
    pub fn new(round: &[Timed]) -> Self {
        let mut changed: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
        let mut apart = HashSet::new();
        for (index, timed) in round.iter().enumerate() {
            if let Record::Fork { child, flags, .. } = timed.record {
                if flags & SHARES_FILES == 0 || apart.contains(&timed.task) {
                    apart.insert(child);
                } else {
                    apart.remove(&child);
                }
            }
            let number = match timed.record {
                Record::Enter { call: Call::Close, args } => Some(args[0] as u32),
                Record::Exit { call, returned } => {
                    let gives = call.opens() || matches!(call, Call::Dup | Call::Dup2 | Call::Dup3 | Call::Fcntl);
                    u32::try_from(returned).ok().filter(|_| gives)
                }
                _ => None,
            };
            if let Some(number) = number {
                changed.entry(number).or_default().push((index, timed.task));
            }
        }
        Self { changed, apart }
    }

    /// Whether a task that does not exist yet gets a table that no existing task has.
    pub fn is_apart(&self, task: u32) -> bool {
        self.apart.contains(&task)
    }

    /// Whether a task that may share the table closes or reassigns a number after a record.
    pub fn changes(&self, after: usize, number: u32, mut shares: impl FnMut(u32) -> bool) -> bool {
        let Some(changed) = self.changed.get(&number) else { return false };
        let from = changed.partition_point(|&(index, _)| index <= after);
        changed[from..].iter().any(|&(_, task)| shares(task))
    }
}
