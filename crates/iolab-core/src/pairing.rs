//! Start and completion of an I/O become its latency.
//!
//! Starts wait by device, sector and operation. Two kinds are kept: when a request was queued (by whom) and when it was
//! issued to the driver. Latency counts from the issue where there is one, else from the queueing, as devices without a
//! request queue (device mapper, md) have that alone. After a loss all starts are forgotten: a stale one would invent a latency.

use crate::event::Op;
use std::collections::HashMap;

/// Starts of each kind that wait at most; with more, all are forgotten and counted, so that memory stays flat.
pub const LIMIT: usize = 1 << 18;

/// What a start and its completion have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Device number.
    pub device: u32,
    /// First sector.
    pub sector: u64,
    /// Operation.
    pub op: Op,
}

/// A start that waits for its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// When.
    pub time_ns: u64,
    /// Name of the process that asked, as interned.
    pub process: Option<u32>,
}

/// Starts in flight.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    queued: HashMap<Key, Start>,
    issued: HashMap<Key, Start>,
    unpaired: u64,
}

impl Pairing {
    /// A request was asked for.
    pub fn queue(&mut self, key: Key, start: Start) {
        // merged requests leave theirs behind: they are no loss, only rubbish
        if self.queued.len() >= LIMIT {
            self.queued.clear();
        }
        self.queued.insert(key, start);
    }

    /// A request went into another one, and will not complete by itself.
    pub fn merged(&mut self, key: Key) {
        self.queued.remove(&key);
    }

    /// A request went to the driver. Who asked is known from the queueing, as any process may do the issuing.
    pub fn issue(&mut self, key: Key, start: Start) {
        if self.issued.len() >= LIMIT {
            self.unpaired += self.issued.len() as u64;
            self.issued.clear();
        }
        let process = self.queued.remove(&key).and_then(|queued| queued.process).or(start.process);
        if self.issued.insert(key, Start { process, ..start }).is_some() {
            self.unpaired += 1;
        }
    }

    /// The driver gave a request back; it will be issued again.
    pub fn requeue(&mut self, key: Key) {
        if let Some(start) = self.issued.remove(&key) {
            self.queue(key, start);
        }
    }

    /// The start of a request that completed.
    pub fn complete(&mut self, key: Key) -> Option<Start> {
        let start = self.issued.remove(&key).or_else(|| self.queued.remove(&key));
        self.unpaired += u64::from(start.is_none());
        start
    }

    /// Something was lost: no start in flight can be trusted.
    pub fn forget_all(&mut self) {
        self.unpaired += self.issued.len() as u64;
        self.issued.clear();
        self.queued.clear();
    }

    /// Completions without a start and starts without a completion since the last call; `at_end` counts those in flight too.
    pub fn take_unpaired(&mut self, at_end: bool) -> u64 {
        if at_end {
            self.forget_all();
        }
        std::mem::take(&mut self.unpaired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(sector: u64) -> Key {
        Key { device: 8 << 20, sector, op: Op::Read }
    }

    fn start(time_ns: u64) -> Start {
        Start { time_ns, process: None }
    }

    #[test]
    fn latency_counts_from_the_issue_and_who_from_the_queueing() {
        let mut pairing = Pairing::default();
        pairing.queue(key(8), Start { time_ns: 5, process: Some(1) });
        pairing.issue(key(8), Start { time_ns: 9, process: Some(2) });
        assert_eq!(pairing.complete(key(8)), Some(Start { time_ns: 9, process: Some(1) }));
        assert_eq!(pairing.take_unpaired(true), 0);
    }

    #[test]
    fn without_an_issue_the_queueing_serves() {
        let mut pairing = Pairing::default();
        pairing.queue(key(8), start(5));
        assert_eq!(pairing.complete(key(8)), Some(start(5)));
    }

    #[test]
    fn after_a_loss_no_latency_is_invented() {
        let mut pairing = Pairing::default();
        pairing.issue(key(8), start(5));
        pairing.forget_all();
        assert_eq!(pairing.complete(key(8)), None);
        assert_eq!(pairing.take_unpaired(true), 2, "the start and the completion");
    }

    #[test]
    fn memory_is_bounded() {
        let mut pairing = Pairing::default();
        for sector in 0..(LIMIT as u64 + 1) {
            pairing.issue(key(sector), start(sector));
        }
        assert_eq!(pairing.issued.len(), 1);
        assert_eq!(pairing.take_unpaired(false), LIMIT as u64);
    }

    proptest! {
        #[test]
        fn every_start_and_completion_is_accounted_for(steps in prop::collection::vec((0u64..6, prop::bool::ANY), 0..200)) {
            let mut pairing = Pairing::default();
            let (mut starts, mut completions, mut paired) = (0u64, 0u64, 0u64);
            for (time, &(sector, issue)) in steps.iter().enumerate() {
                if issue {
                    pairing.issue(key(sector), start(time as u64));
                    starts += 1;
                } else {
                    completions += 1;
                    paired += u64::from(pairing.complete(key(sector)).is_some());
                }
            }
            prop_assert_eq!(pairing.take_unpaired(true), starts + completions - 2 * paired);
        }
    }
}
