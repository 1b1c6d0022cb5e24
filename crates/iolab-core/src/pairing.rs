// SPDX-License-Identifier: Apache-2.0
//! Pairs start and completion of an I/O to compute its latency.
//!
//! Starts are stored by device, sector and operation. There are two kinds: when a request was queued (and by which
//! process), and when it was issued to the driver. Latency is measured from the issue if there is one, else from the
//! queueing, which is all that devices without a request queue (device mapper, md) have. After a loss all starts are
//! dropped, because a stale one would give a wrong latency. If two requests with the same key are in flight, the order
//! of their completions is unknown: they are marked as shared.

use crate::event::Op;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Maximum number of starts of each kind. Above it, all are dropped and counted, so that memory stays bounded.
pub const LIMIT: usize = 1 << 18;
/// A start older than the request timeout of the kernel has lost its completion, if the same key is started again.
const STALE_NS: u64 = 120_000_000_000;

/// Key of a start and its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Device number.
    pub device: u32,
    /// First sector.
    pub sector: u64,
    /// Operation.
    pub op: Op,
}

/// A start without its completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Time.
    pub time_ns: u64,
    /// Time of queueing, if it was issued since.
    pub queued_ns: Option<u64>,
    /// Interned name of the process that queued it.
    pub process: Option<u32>,
    /// PID of that process.
    pub pid: Option<u32>,
    /// Thread of that process.
    pub thread: Option<u32>,
    /// First sector. A request that completes in parts is stored under the sector of the rest.
    pub sector: u64,
    /// Requested bytes, if known.
    pub bytes: u64,
    /// Bytes not yet completed.
    pub left: u64,
    /// Whether other requests with the same key were in flight: the order of completions is unknown.
    pub shared: bool,
}

/// Result of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The whole request, with this start.
    Whole(Start),
    /// A part of a request; the rest is still in flight.
    Part,
    /// The start is missing.
    Unknown,
}

/// Starts in flight.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    queued: HashMap<Key, Start>,
    issued: HashMap<Key, Start>,
    /// Further starts with a key that is already in `issued`, oldest first.
    twins: HashMap<Key, VecDeque<Start>>,
    twin_count: usize,
    unpaired: u64,
}

impl Pairing {
    /// A request was queued.
    pub fn queue(&mut self, key: Key, start: Start) {
        // merged requests leave their starts behind: they are garbage, not a loss
        if self.queued.len() >= LIMIT {
            self.queued.clear();
        }
        self.queued.insert(key, start);
    }

    /// A request was merged into another one, and will have no completion.
    pub fn merged(&mut self, key: Key) {
        self.queued.remove(&key);
    }

    /// A request was split: the part at another sector was queued by the same process.
    pub fn split(&mut self, key: Key, sector: u64) {
        if let Some(&start) = self.queued.get(&key) {
            self.queue(Key { sector, ..key }, start);
        }
    }

    /// A request was issued. The process is known from the queueing, because any process may issue a request.
    pub fn issue(&mut self, key: Key, start: Start) {
        if self.issued.len() + self.twin_count >= LIMIT {
            self.forget_issued();
        }
        let queued = self.queued.remove(&key);
        let start = match queued {
            Some(queued) if queued.process.is_some() || queued.pid.is_some() => {
                let Start { process, pid, thread, .. } = queued;
                Start { queued_ns: Some(queued.time_ns), process, pid, thread, ..start }
            }
            Some(queued) => Start { queued_ns: Some(queued.time_ns), ..start },
            None => start,
        };
        self.put(key, start);
    }

    fn put(&mut self, key: Key, mut start: Start) {
        match self.issued.entry(key) {
            Entry::Vacant(place) => {
                place.insert(start);
            }
            Entry::Occupied(mut place) if place.get().time_ns.saturating_add(STALE_NS) < start.time_ns => {
                self.unpaired += 1;
                place.insert(start);
            }
            Entry::Occupied(mut place) => {
                let first = place.get_mut();
                if first.pid != start.pid || first.process != start.process {
                    (first.pid, first.process, first.thread) = (None, None, None);
                    (start.pid, start.process) = (None, None);
                }
                if first.thread != start.thread {
                    (first.thread, start.thread) = (None, None);
                }
                (first.shared, start.shared) = (true, true);
                self.twins.entry(key).or_default().push_back(start);
                self.twin_count += 1;
            }
        }
    }

    /// The driver returned a request; it will be issued again.
    pub fn requeue(&mut self, key: Key) {
        if let Some(start) = self.take_issued(key) {
            self.queue(key, Start { time_ns: start.queued_ns.unwrap_or(start.time_ns), ..start });
        }
    }

    /// The start of a request that completed.
    pub fn complete(&mut self, key: Key) -> Option<Start> {
        let start = self.take_issued(key).or_else(|| self.queued.remove(&key));
        self.unpaired += u64::from(start.is_none());
        start
    }

    /// This many bytes of an issued request completed.
    pub fn complete_part(&mut self, key: Key, bytes: u64) -> Completed {
        if self.twin_count > 0 {
            self.prefer(key, bytes);
        }
        let Some(start) = self.take_issued(key) else {
            self.unpaired += 1;
            return Completed::Unknown;
        };
        // parts are whole sectors; a size that fits no request is taken as its end
        if bytes == 0 || bytes >= start.left {
            return Completed::Whole(start);
        }
        let rest = Key { sector: key.sector.wrapping_add(bytes / 512), ..key };
        let start = Start { left: start.left - bytes, ..start };
        self.put(rest, start);
        Completed::Part
    }

    /// Of several requests with the same key, move one with this number of bytes to the front.
    fn prefer(&mut self, key: Key, bytes: u64) {
        let (Some(first), Some(twins)) = (self.issued.get_mut(&key), self.twins.get_mut(&key)) else { return };
        if first.left != bytes {
            if let Some(fitting) = twins.iter_mut().find(|twin| twin.left == bytes) {
                std::mem::swap(first, fitting);
            }
        }
    }

    fn take_issued(&mut self, key: Key) -> Option<Start> {
        let start = self.issued.remove(&key)?;
        if self.twin_count > 0 {
            if let Entry::Occupied(mut twins) = self.twins.entry(key) {
                if let Some(next) = twins.get_mut().pop_front() {
                    self.twin_count -= 1;
                    self.issued.insert(key, next);
                }
                if twins.get().is_empty() {
                    twins.remove();
                }
            }
        }
        Some(start)
    }

    fn forget_issued(&mut self) {
        self.unpaired += (self.issued.len() + self.twin_count) as u64;
        self.issued.clear();
        self.twins.clear();
        self.twin_count = 0;
    }

    /// Records were lost: no start in flight can be trusted.
    pub fn forget_all(&mut self) {
        self.forget_issued();
        self.queued.clear();
    }

    /// Completions without a start and starts without a completion since the last call; `at_end` includes those in
    /// flight.
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
    use std::hash::BuildHasher;

    fn key(sector: u64) -> Key {
        Key { device: 8 << 20, sector, op: Op::Read }
    }

    fn start(time_ns: u64) -> Start {
        Start { time_ns, ..Start::default() }
    }

    #[test]
    fn latency_counts_from_the_issue_and_the_process_from_the_queueing() {
        let mut pairing = Pairing::default();
        pairing.queue(key(8), Start { process: Some(1), ..start(5) });
        pairing.issue(key(8), Start { process: Some(2), ..start(9) });
        assert_eq!(pairing.complete(key(8)), Some(Start { process: Some(1), queued_ns: Some(5), ..start(9) }));
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
    fn parts_become_one() {
        let mut pairing = Pairing::default();
        pairing.issue(key(8), Start { bytes: 4096, left: 4096, sector: 8, ..start(5) });
        assert_eq!(pairing.complete_part(key(8), 1024), Completed::Part);
        assert_eq!(pairing.complete_part(key(10), 2048), Completed::Part);
        let Completed::Whole(begun) = pairing.complete_part(key(14), 1024) else { panic!() };
        assert_eq!((begun.sector, begun.bytes, begun.time_ns), (8, 4096, 5));
        assert_eq!(pairing.take_unpaired(true), 0);
    }

    #[test]
    fn of_two_equal_requests_the_process_is_unknown() {
        let mut pairing = Pairing::default();
        pairing.issue(key(8), start(5));
        pairing.issue(key(8), start(6));
        assert!(pairing.complete(key(8)).unwrap().shared && pairing.complete(key(8)).unwrap().shared);
        pairing.issue(key(8), start(7));
        assert_eq!(pairing.complete(key(8)), Some(start(7)));
        pairing.issue(key(8), start(8));
        pairing.issue(key(8), start(9 + STALE_NS));
        assert!(!pairing.complete(key(8)).unwrap().shared, "the first was never completed");
        assert_eq!(pairing.take_unpaired(true), 1);
    }

    #[test]
    fn a_split_request_keeps_its_process() {
        let mut pairing = Pairing::default();
        pairing.queue(key(8), Start { process: Some(1), ..start(5) });
        pairing.split(key(8), 16);
        pairing.issue(key(8), start(6));
        pairing.issue(key(16), start(7));
        assert_eq!(pairing.complete(key(16)).unwrap().process, Some(1));
        pairing.requeue(key(8));
        pairing.issue(key(8), start(9));
        assert_eq!(pairing.complete(key(8)), Some(Start { process: Some(1), queued_ns: Some(5), ..start(9) }));
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

    #[test]
    fn no_file_can_choose_keys_that_collide() {
        let hash =
            |pairing: &Pairing| (pairing.queued.hasher().hash_one(key(8)), pairing.issued.hasher().hash_one(key(8)));
        let (first, second) = (hash(&Pairing::default()), hash(&Pairing::default()));
        assert_ne!(first, second, "hashes are seeded");
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
