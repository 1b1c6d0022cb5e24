// SPDX-License-Identifier: Apache-2.0
//! What was not read, counted: nothing is lost silently.

/// Why a line was not read.
pub type Reason = &'static str;

/// Examples of damage that are kept.
pub const EXAMPLES: usize = 5;

/// Damaged lines, losses, and unmatched issue and completion events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Lines (or records) that could not be read.
    pub damaged: u64,
    /// Records that the tracer says, or shows, that it lost.
    pub losses: u64,
    /// Completions without a start, and starts without a completion.
    pub unpaired: u64,
    /// The first damaged ones: block of the file, line in the block, reason.
    examples: Vec<(u64, u64, Reason)>,
}

impl Ledger {
    /// A damaged line (counted from 1) of a block.
    pub fn damage(&mut self, block: u64, line: u64, reason: Reason) {
        self.damaged += 1;
        // a thread meets its lines in ascending order, so the first are the smallest
        if self.examples.len() < EXAMPLES {
            self.examples.push((block, line, reason));
        }
    }

    /// Add what another thread counted.
    pub fn merge(&mut self, other: &Ledger) {
        self.damaged += other.damaged;
        self.losses += other.losses;
        self.unpaired += other.unpaired;
        self.examples.extend_from_slice(&other.examples);
        self.examples.sort_unstable();
        self.examples.truncate(EXAMPLES);
    }

    /// First damaged lines, counted from 1 over the whole file, given how many lines each block has.
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
