// SPDX-License-Identifier: Apache-2.0
//! Counts of data that was not read: no loss is silent.

/// Why a line was not read.
pub type Reason = &'static str;

/// Maximum number of examples of damage.
pub const EXAMPLES: usize = 5;

/// Damaged lines, lost records, and unmatched issue and completion events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Lines (or records) that could not be read.
    pub damaged: u64,
    /// Records that the tracer lost, by its own report or by gaps.
    pub losses: u64,
    /// Completions without a start, and starts without a completion.
    pub unpaired: u64,
    /// The first damaged lines: block of the file, line in the block, reason.
    examples: Vec<(u64, u64, Reason)>,
}

impl Ledger {
    /// Count a damaged line (numbered from 1) of a block.
    pub fn damage(&mut self, block: u64, line: u64, reason: Reason) {
        self.damaged += 1;
        // a thread reads its lines in ascending order, so the first are the smallest
        if self.examples.len() < EXAMPLES {
            self.examples.push((block, line, reason));
        }
    }

    /// Add the counts of another thread.
    pub fn merge(&mut self, other: &Ledger) {
        self.damaged += other.damaged;
        self.losses += other.losses;
        self.unpaired += other.unpaired;
        self.examples.extend_from_slice(&other.examples);
        self.examples.sort_unstable();
        self.examples.truncate(EXAMPLES);
    }

    /// First damaged lines, numbered from 1 over the whole file, by the number of lines of each block.
    pub fn examples(&self, lines_of_block: &[u32]) -> Vec<(u64, Reason)> {
        let before =
            |block: u64| lines_of_block.iter().take(block as usize).map(|&lines| u64::from(lines)).sum::<u64>();
        self.examples.iter().map(|&(block, line, reason)| (before(block) + line, reason)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_damage_of_all_threads_is_kept() {
        let (mut one, mut two) = (Ledger::default(), Ledger::default());
        (0..8).for_each(|line| one.damage(1, line + 1, "one"));
        two.damage(0, 9, "two");
        one.merge(&two);
        assert_eq!(one.damaged, 9);
        let examples = one.examples(&[100, 50]);
        assert_eq!(examples[0], (9, "two"));
        assert_eq!(examples[1], (101, "one"));
        assert_eq!(examples.len(), EXAMPLES);
    }
}
