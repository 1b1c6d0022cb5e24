//! What a round still holds for a number: /proc shows a descriptor as it is at the end of the round, not at a record within it.

use super::call::Call;
use super::record::{Record, Timed};
use std::collections::HashMap;

/// Where in the round numbers are given out.
#[derive(Debug, Default)]
pub struct Later {
    made: HashMap<u32, Vec<(usize, u32)>>,
}

impl Later {
    /// Look at a round.
    pub fn new(round: &[Timed]) -> Self {
        let mut made: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
        for (index, timed) in round.iter().enumerate() {
            if let Record::Exit { call, returned } = timed.record {
                let gives = call.opens() || matches!(call, Call::Dup | Call::Dup2 | Call::Dup3 | Call::Fcntl);
                if let (true, Ok(number)) = (gives, u32::try_from(returned)) {
                    made.entry(number).or_default().push((index, timed.task));
                }
            }
        }
        Self { made }
    }

    /// Whether a number is given out again after a record, by a task that may share the table.
    pub fn anew(&self, after: usize, number: u32, mut shares: impl FnMut(u32) -> bool) -> bool {
        let Some(made) = self.made.get(&number) else { return false };
        let from = made.partition_point(|&(index, _)| index <= after);
        made[from..].iter().any(|&(_, task)| shares(task))
    }
}
